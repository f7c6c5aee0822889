//! An independent client that sends at a steady rate whatever comes back: each call counts from the moment at which it was to be sent.

use crate::live::{CLIENT_PROTOCOL, connect, runtime};
use hadoop_proto::hdfs::*;
use rpc::client::{CallError, Client};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `getFileInfo` of files taken at random.
    Stat,
    /// `create` of new files; each is closed afterwards, which is not measured.
    Create,
}

/// A call that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered {
    /// Since when it was to be sent.
    pub waited: Duration,
    pub refused: bool,
}

/// The client, as long as it lives.
pub struct Probe {
    pub kind: Kind,
    answers: Receiver<Answered>,
    under_way: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    pace: Option<JoinHandle<()>>,
    // ends after what paces it
    _runtime: Runtime,
}

async fn call(client: &Client, kind: Kind, paths: &[String], number: u64) -> Result<(), CallError> {
    match kind {
        Kind::Stat => {
            let src = paths[number as usize % paths.len()].clone();
            let _: GetFileInfoResponseProto = client.call("getFileInfo", &GetFileInfoRequestProto { src }).await?;
        }
        Kind::Create => {
            let request = create_request(&created(number));
            let _: CreateResponseProto = client.call("create", &request).await?;
        }
    }
    Ok(())
}

fn created(number: u64) -> String {
    format!("/probe/{:05}/file-{number:09}", number / 1_000)
}

/// The request that makes a file.
pub fn create_request(path: &str) -> CreateRequestProto {
    CreateRequestProto {
        src: path.to_owned(),
        masked: FsPermissionProto { perm: 0o644 },
        client_name: "bench".to_owned(),
        create_flag: 1,
        create_parent: true,
        replication: 3,
        block_size: 128 << 20,
        ..CreateRequestProto::default()
    }
}

async fn close(client: &Client, number: u64) -> Result<(), CallError> {
    let request =
        CompleteRequestProto { src: created(number), client_name: "bench".to_owned(), last: None, file_id: None };
    client.call::<CompleteResponseProto>("complete", &request).await.map(drop)
}

impl Probe {
    /// Begins to call so often a second.
    pub fn start(address: SocketAddr, kind: Kind, rate: u64, paths: Arc<Vec<String>>) -> Result<Probe, String> {
        let runtime = runtime()?;
        let client = runtime.block_on(connect(address, CLIENT_PROTOCOL)).map_err(|e| e.to_string())?;
        let (sender, answers): (Sender<Answered>, _) = channel();
        let (stop, under_way) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, calls, handle) = (stop.clone(), under_way.clone(), runtime.handle().clone());
        let pace = std::thread::spawn(move || {
            let begun = Instant::now();
            for number in 0.. {
                let intended = begun + Duration::from_micros(number * 1_000_000 / rate);
                std::thread::sleep(intended.saturating_duration_since(Instant::now()));
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                let (client, paths, sender, calls) = (client.clone(), paths.clone(), sender.clone(), calls.clone());
                calls.fetch_add(1, Ordering::AcqRel);
                handle.spawn(async move {
                    let answer = call(&client, kind, &paths, number).await;
                    let waited = intended.elapsed();
                    // nobody listens any more at the end
                    _ = sender.send(Answered { waited, refused: answer.is_err() });
                    calls.fetch_sub(1, Ordering::AcqRel);
                    if kind == Kind::Create && answer.is_ok() {
                        // refused where safe mode has come meanwhile
                        _ = close(&client, number).await;
                    }
                });
            }
        });
        Ok(Probe { kind, answers, under_way, stop, pace: Some(pace), _runtime: runtime })
    }

    /// What was answered since this was asked last; waits until nothing that was sent before is left unanswered for long.
    pub fn take(&self) -> Vec<Answered> {
        let patience = Instant::now();
        // a call that waits would be missed by the one who asks now
        while self.under_way.load(Ordering::Acquire) > 1 && patience.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.answers.try_iter().collect()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(pace) = self.pace.take() {
            // it panics for nothing that matters here
            _ = pace.join();
        }
    }
}

/// Milliseconds that the calls waited.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    pub calls: usize,
    pub refused: usize,
    /// At 50, 99, 99.9, 99.99 and 100 %.
    pub at: [f64; 5],
}

impl Spread {
    pub fn of(answers: &[Answered]) -> Spread {
        let mut waited: Vec<Duration> = answers.iter().map(|answered| answered.waited).collect();
        waited.sort_unstable();
        let place = |share: f64| ((waited.len() as f64 * share).ceil() as usize).clamp(1, waited.len().max(1)) - 1;
        let at = |share| waited.get(place(share)).map_or(0.0, |w| w.as_secs_f64() * 1e3);
        let refused = answers.iter().filter(|answered| answered.refused).count();
        Spread { calls: waited.len(), refused, at: [0.5, 0.99, 0.999, 0.9999, 1.0].map(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_thousand_calls() {
        let answered = |n: u64| Answered { waited: Duration::from_millis(n), refused: n == 7 };
        let spread = Spread::of(&(1..=1_000).map(answered).collect::<Vec<_>>());
        assert_eq!((spread.calls, spread.refused), (1_000, 1));
        assert_eq!(spread.at, [500.0, 990.0, 999.0, 1_000.0, 1_000.0]);
        assert_eq!(Spread::of(&[]).at, [0.0; 5]);
    }
}
