//! Purpose: CPU time that a name node spends on each kind of call, ours and Java's in the same run and in turn; and how long a few callers wait.
//! Called by: the command line (`bench operations`).
//! Calls: live (name nodes as processes), startup (a small generated namespace).
//! Never: links the product; compares calls that were not answered alike.
//! Invariants: both get the same requests from the same client; requests are made before the clock runs; the first round only warms up.

mod calls;
mod few;
mod report;

use crate::live::datanode::{DataNode, Replicas};
use crate::live::{CLIENT_PROTOCOL, DATANODE_PROTOCOL, Live, connect, runtime};
use crate::startup::process::Side;
use crate::startup::{Profile, generate, in_folder};
use calls::{Call, Known, calls, shown};
use futures_util::StreamExt;
use hadoop_proto::Message;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::{ReplicaState, ReportedReplica, put_replica};
use report::Measured;
use rpc::client::{CallError, CallOptions, Client};
use std::path::PathBuf;
use std::time::Instant;
use tokio::runtime::Runtime;

pub const USAGE: &str = "bench operations [--calls N] [--rounds N] [--window N] [--no-java] [--work FOLDER]";

/// DataNodes.
const DATANODES: u32 = 3;
/// Heap of the Java name node, in megabytes.
const HEAP_MB: u64 = 2_048;

struct Options {
    calls: u64,
    rounds: usize,
    /// Calls on their way at a time.
    window: usize,
    java: bool,
    work: PathBuf,
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        calls: 4_000,
        rounds: 3,
        window: 64,
        java: true,
        work: std::env::temp_dir().join(format!("bench-operations-{}", std::process::id())),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &str| text.replace('_', "").parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--calls" => options.calls = number(value()?)?,
            "--rounds" => options.rounds = number(value()?)? as usize,
            "--window" => options.window = number(value()?)? as usize,
            "--work" => options.work = value()?.into(),
            "--no-java" => options.java = false,
            other => return Err(format!("{other} is not known\n{USAGE}")),
        }
    }
    Ok(options)
}

/// Runs `bench operations`.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = options(words)?;
    in_folder(&options.work, words, || measure(&options))
}

fn measure(options: &Options) -> Result<(), String> {
    let source = options.work.join("source");
    generate(&source, 1_000, Profile::Fresh).map_err(|e| e.to_string())?;
    let mut sides = vec![Side::Ironroot];
    if options.java {
        sides.push(Side::Java);
    }
    let settings = [
        ("dfs.namenode.safemode.threshold-pct", "0"),
        ("dfs.namenode.safemode.extension", "0"),
        ("dfs.namenode.fs-limits.max-directory-items", "6400000"),
        ("dfs.namenode.snapshot.max.limit", "65536"),
    ];
    let start = |side: Side| Live::start(side, &source, &options.work.join(side.name()), HEAP_MB, &settings);
    let lives = sides.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut cast = lives.iter().map(Cast::new).collect::<Result<Vec<_>, _>>()?;
    let mut all: Vec<Measured> = Vec::new();
    for round in 0..=options.rounds {
        for at in 0..cast.len() {
            // in turn first
            let at = (at + round) % cast.len();
            let measured = cast[at].round(options, round)?;
            // what runs first is not fast yet
            all.extend(measured.into_iter().filter(|_| round > 0));
        }
    }
    println!("{}", report::table(&all, options.window));
    println!("{}", few::table(&lives)?);
    Ok(())
}

/// A name node with those who call it.
struct Cast<'l> {
    live: &'l Live,
    runtime: Runtime,
    client: Client,
    reporter: Client,
    nodes: Vec<DataNode>,
    known: Vec<Known>,
}

impl Cast<'_> {
    fn new(live: &Live) -> Result<Cast<'_>, String> {
        let runtime = runtime()?;
        let joined = runtime.block_on(async {
            let client = connect(live.address(), CLIENT_PROTOCOL).await?;
            let reporter = connect(live.address(), DATANODE_PROTOCOL).await?;
            let mut nodes = Vec::new();
            for number in 1..=DATANODES {
                let node = DataNode::join(live.address(), number, 1).await?;
                node.report(&[Replicas { packed: Vec::new(), count: 0 }], 1).await?;
                node.live();
                nodes.push(node);
            }
            Ok::<_, CallError>((client, reporter, nodes))
        });
        let (client, reporter, nodes) = joined.map_err(|e| e.to_string())?;
        Ok(Cast { live, runtime, client, reporter, nodes, known: Vec::new() })
    }

    fn round(&mut self, options: &Options, round: usize) -> Result<Vec<Measured>, String> {
        self.known = vec![Known::default(); options.calls as usize];
        let mut measured = Vec::new();
        for call in calls() {
            let done = self.calls(&call, options, round)?;
            measured.extend(Some(done).filter(|_| call.measured));
        }
        Ok(measured)
    }

    /// The encoded request number `n`.
    fn body(&self, call: &Call, round: usize, number: u64) -> Result<Vec<u8>, String> {
        let known = &self.known[number as usize];
        let node = &self.nodes[number as usize % self.nodes.len()];
        match call.method {
            "blockReceivedAndDeleted" => Ok(node.received(known.reported()).encode_to_vec()),
            "sendHeartbeat" => Ok(node.heartbeat(false).encode_to_vec()),
            "blockReport" => Ok(node.full_report(0, &replicas(&self.known), 0, 2).encode_to_vec()),
            _ => call.body(round, number, known),
        }
    }

    /// Makes the calls of one row, a window of them at a time.
    fn calls(&mut self, call: &Call, options: &Options, round: usize) -> Result<Measured, String> {
        let numbers: Vec<u64> = (0..options.calls).filter(|number| number % call.every == 0).collect();
        let bodies = numbers.iter().map(|number| Ok((*number, self.body(call, round, *number)?)));
        let bodies = bodies.collect::<Result<Vec<_>, String>>()?;
        let client = if call.datanode { &self.reporter } else { &self.client };
        let (before, since) = (self.live.threads(), Instant::now());
        let answers: Vec<(u64, Result<rpc::client::Answer, CallError>)> = self.runtime.block_on(async {
            let asked = bodies.iter().map(|(number, body)| async move {
                (*number, client.call_with(CallOptions::default(), call.method, body).await)
            });
            futures_util::stream::iter(asked).buffer_unordered(options.window).collect().await
        });
        let (nanos, took) = (self.live.cpu_since(&before), since.elapsed());
        let (mut refused, mut refusal) = (0, String::new());
        for (number, answer) in answers {
            match answer {
                Ok(answer) => self.learn(call.method, number, &answer.body)?,
                Err(error @ CallError::Remote(_)) => {
                    refused += 1;
                    refusal = shown(&error);
                }
                Err(error) => return Err(format!("{}: {error}", call.method)),
            }
        }
        let (side, name) = (self.live.side, call.name());
        let per = if call.method == "blockReport" { self.known.len() as u64 } else { 1 };
        let units = numbers.len() as u64 * per;
        let (micros, rate) = (nanos as f64 / 1e3 / units as f64, units as f64 / took.as_secs_f64());
        Ok(Measured { side, name, frequent: call.frequent, calls: units, micros, rate, refused, refusal })
    }

    fn learn(&mut self, method: &str, number: u64, body: &[u8]) -> Result<(), String> {
        let known = &mut self.known[number as usize];
        let failed = |e| format!("{method}: {e}");
        match method {
            "create" => {
                known.file =
                    CreateResponseProto::decode(body).map_err(failed)?.fs.and_then(|fs| fs.file_id).unwrap_or(0)
            }
            "addBlock" => {
                known.block = ExtendedBlockProto {
                    num_bytes: Some(10),
                    ..AddBlockResponseProto::decode(body).map_err(failed)?.block.b
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A full report of what was written.
fn replicas(known: &[Known]) -> Replicas {
    let mut all = Replicas { packed: Vec::new(), count: 0 };
    for Known { block, .. } in known {
        let replica = ReportedReplica {
            block_id: block.block_id as i64,
            length: block.num_bytes(),
            generation_stamp: block.generation_stamp as i64,
            state: ReplicaState::Finalized,
        };
        put_replica(&mut all.packed, &replica);
        all.count += 1;
    }
    all
}
