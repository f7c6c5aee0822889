//! How long a few callers wait, each with one call at a time: what a server that gathers calls must not make worse.

use crate::live::{CLIENT_PROTOCOL, Live, connect, runtime};
use hadoop_proto::hdfs::*;
use rpc::client::{CallError, Client};
use std::time::{Duration, Instant};

/// How long each is measured, and warmed up before.
const MEASURED: Duration = Duration::from_secs(4);
const WARM_UP: Duration = Duration::from_secs(1);
const CALLERS: [usize; 3] = [1, 4, 16];

/// Waits of callers, in microseconds: calls a second, 50 and 99 %.
fn spread(live: &Live, callers: usize, write: bool) -> Result<(f64, f64, f64), String> {
    let runtime = runtime()?;
    let waits = runtime.block_on(async {
        let mut tasks = Vec::new();
        for caller in 0..callers {
            let client = connect(live.address(), CLIENT_PROTOCOL).await?;
            tasks.push(tokio::spawn(one(client, caller, callers, write)));
        }
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(task.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))?);
        }
        Ok::<_, CallError>(waits)
    });
    let mut waits = waits.map_err(|e| e.to_string())?;
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok((waits.len() as f64 / MEASURED.as_secs_f64(), at(0.5), at(0.99)))
}

async fn one(client: Client, caller: usize, callers: usize, write: bool) -> Result<Vec<Duration>, CallError> {
    let (begun, mut waits) = (Instant::now(), Vec::new());
    for number in 0.. {
        let since = Instant::now();
        if since - begun > WARM_UP + MEASURED {
            break;
        }
        if write {
            let request = MkdirsRequestProto {
                src: format!("/few/{callers}/{caller}/{}/{number}", number / 1_000),
                masked: FsPermissionProto { perm: 0o755 },
                create_parent: true,
                unmasked: None,
            };
            let _: MkdirsResponseProto = client.call("mkdirs", &request).await?;
        } else {
            let _: GetFileInfoResponseProto =
                client.call("getFileInfo", &GetFileInfoRequestProto { src: "/user/hive/warehouse".to_owned() }).await?;
        }
        if since - begun > WARM_UP {
            waits.push(since.elapsed());
        }
    }
    Ok(waits)
}

/// A table of all name nodes.
pub fn table(lives: &[Live]) -> Result<String, String> {
    let mut out = "callers with one call each at a time, waits in us\n\n| call | callers | name node | calls/s | p50 | p99 |\n|---|---|---|---|---|---|\n".to_owned();
    for write in [false, true] {
        for callers in CALLERS {
            for live in lives {
                let (rate, p50, p99) = spread(live, callers, write)?;
                let call = if write { "mkdirs" } else { "getFileInfo" };
                out += &format!("| {call} | {callers} | {} | {rate:.0} | {p50:.0} | {p99:.0} |\n", live.side.name());
            }
        }
    }
    Ok(out)
}
