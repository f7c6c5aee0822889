//! Purpose: what a file costs in memory once everything about it is known: the namespace loaded, three replicas of each block reported, the whole tree
//! read with locations; then again after almost a third of the files were deleted and others made.
//! Called by: the command line (`bench memory`).
//! Calls: startup (generated namespaces of one block a file, the two programs), live (scripted DataNodes and callers over RPC), /proc.
//! Never: counts what an empty name node needs: that is measured first and taken off.
//! Invariants: both programs are measured by one formula (RssAnon + RssFile + RssShmem + swap), and each count is checked before memory is read.

use crate::live::datanode::{DataNode, Replicas};
use crate::live::{CLIENT_PROTOCOL, Live, connect, runtime};
use crate::startup::process::{self, Side, Started};
use crate::startup::{Generated, Profile, generate_single, in_folder, single_blocks};
use futures_util::future::try_join_all;
use hadoop_proto::datanode::BlockReceivedAndDeletedResponseProto;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::{ReplicaState, ReportedReplica, put_replica};
use rpc::client::Client;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const DATANODES: u32 = 3;
/// Replicas in a report: Java's DataNodes send one for each volume beyond so many.
const REPLICAS_OF_A_VOLUME: u64 = 1_000_000;
/// Of a hundred files so many are deleted, and as many made.
const RECREATED_PERCENT: u64 = 30;
/// Files that are made at a time.
const WRITERS: usize = 64;
/// Allocators give back what they do not need after about ten seconds.
const SETTLING: Duration = Duration::from_secs(14);
const PATIENCE: Duration = Duration::from_secs(600);
const CLIENT: &str = "bench";
/// Safe mode ends when all is reported, as it does where an administrator looks: without it each block would be queued as missing before. No file of
/// ours is made meanwhile.
const SETTINGS: [(&str, &str); 6] = [
    ("dfs.namenode.safemode.extension", "0"),
    ("dfs.namenode.safemode.replication.min", "3"),
    // answers for callers that try again are kept for ten minutes else, some hundred bytes each
    ("dfs.namenode.retrycache.expirytime.millis", "1000"),
    // what is to be deleted is told at once, and forgotten
    ("dfs.block.invalidate.limit", "1000000"),
    ("ironroot.checkpoint.online", "false"),
    ("dfs.block.access.token.enable", "false"),
];

pub const USAGE: &str = "bench memory [--files N] [--profile fresh|aged|both] [--no-java] [--no-recreation] [--heap MEGABYTES] [--work FOLDER]";

struct Options {
    files: u64,
    profiles: Vec<Profile>,
    java: bool,
    recreation: bool,
    heap: Option<u64>,
    work: PathBuf,
}

fn options(words: &[String]) -> Result<Options, String> {
    let work = std::env::temp_dir().join(format!("bench-memory-{}", std::process::id()));
    let both = vec![Profile::Fresh, Profile::Aged];
    let mut options = Options { files: 1_000_000, profiles: both, java: true, recreation: true, heap: None, work };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: &String| text.replace('_', "").parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--files" => options.files = number(value()?)?,
            "--heap" => options.heap = Some(number(value()?)?),
            "--work" => options.work = value()?.into(),
            "--no-java" => options.java = false,
            "--no-recreation" => options.recreation = false,
            "--profile" => match value()?.as_str() {
                "both" => {}
                "fresh" => options.profiles = vec![Profile::Fresh],
                "aged" => options.profiles = vec![Profile::Aged],
                other => return Err(format!("no profile {other}")),
            },
            other => return Err(format!("{other} is not known\n{USAGE}")),
        }
    }
    Ok(options)
}

/// Memory at one moment, in megabytes.
#[derive(Clone, Copy)]
struct Seen {
    settled: f64,
    peak: f64,
}

/// Runs `bench memory`.
pub fn run(words: &[String]) -> Result<(), String> {
    let options = options(words)?;
    in_folder(&options.work, words, || options.profiles.iter().try_for_each(|profile| table(&options, *profile)))
}

fn table(options: &Options, profile: Profile) -> Result<(), String> {
    let sources = [("empty", 0), ("source", options.files)].map(|(name, files)| {
        let folder = options.work.join(format!("{name}-{}", profile.name()));
        (generate_single(&folder, files, profile).map_err(|e| format!("{}: {e}", folder.display())), folder, files)
    });
    let [(empty, empty_folder, _), (generated, source, files)] = sources;
    empty?;
    let generated = generated?;
    println!("{} files of one block, {}: {} inodes", files, profile.name(), generated.figures.inodes);
    println!("{:<10} {:<34} {:>9} {:>9} {:>9} {:>14}", "", "", "MB", "bytes/file", "peak MB", "peak / settled");
    for side in [Side::Ironroot, Side::Java] {
        if side == Side::Java && !options.java {
            continue;
        }
        let folder = options.work.join(format!("{}-{}", profile.name(), side.name()));
        let heap = options.heap.unwrap_or(512 + files * 700 / 1_000_000);
        let live = Live::start(side, &empty_folder, &folder, heap, &SETTINGS)?;
        let base = settle(&live);
        drop(live);
        fs::remove_dir_all(&folder).map_err(text)?;
        println!("{:<10} {:<34} {:>9.1}", side.name(), "empty", base.settled);
        let line = |live: &Live, what: &str| {
            let seen = settle(live);
            let bytes = (seen.settled - base.settled) * 1_048_576.0 / files as f64;
            let (settled, peak) = (seen.settled, seen.peak);
            println!("{:<10} {what:<34} {settled:>9.1} {bytes:>9.1} {peak:>9.1} {:>14.3}", side.name(), peak / settled);
            // what it is made of: ours tells
            let parts = if side == Side::Ironroot { live.numbers("Ironroot:name=Memory")? } else { Vec::new() };
            let parts: Vec<String> = parts
                .iter()
                .map(|(part, bytes)| (part, bytes / files as f64))
                .filter(|(_, bytes)| *bytes >= 0.05)
                .map(|(part, bytes)| format!("{part} {bytes:.1}"))
                .collect();
            if !parts.is_empty() {
                println!("{:<10}   bytes/file: {}", "", parts.join(", "));
            }
            Ok::<_, String>(())
        };
        let live = Live::start(side, &source, &folder, heap, &SETTINGS)?;
        line(&live, "loaded")?;
        let cluster = Cluster::new(&live, files, profile)?;
        let listed = cluster.walk()?;
        if listed.files != generated.expected.files {
            return Err(format!("the walk finds {} files, not {}", listed.files, generated.expected.files));
        }
        cluster.all_reported(generated.figures.blocks)?;
        cluster.walk()?;
        line(&live, "walked, three replicas reported")?;
        if options.recreation {
            cluster.recreate(&generated, listed)?;
            cluster.walk()?;
            line(&live, &format!("{RECREATED_PERCENT} % deleted and made anew"))?;
        }
        drop(cluster);
        drop(live);
        fs::remove_dir_all(&folder).map_err(text)?;
    }
    Ok(())
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Memory once it does not change by itself any more. A Java program collects its garbage before.
fn settle(live: &Live) -> Seen {
    if live.side == Side::Java {
        // where there is no such tool its memory counts as it is
        _ = std::process::Command::new("jcmd").args([&live.id().to_string(), "GC.run"]).output();
    }
    std::thread::sleep(SETTLING);
    let mut started = Started::default();
    process::memory(live.id(), &mut started);
    Seen { settled: started.settled_mb, peak: started.peak_mb }
}

/// What a walk has seen.
#[derive(Default)]
struct Listed {
    files: u64,
    /// Directories of files, with how many.
    leaves: Vec<(String, u64)>,
}

struct Cluster<'l> {
    live: &'l Live,
    runtime: Runtime,
    client: Client,
    nodes: Vec<DataNode>,
}

impl Cluster<'_> {
    /// DataNodes that have reported all blocks.
    fn new(live: &Live, files: u64, profile: Profile) -> Result<Cluster<'_>, String> {
        let runtime = runtime()?;
        let client = runtime.block_on(connect(live.address(), CLIENT_PROTOCOL)).map_err(text)?;
        let mut volumes: Vec<Replicas> = Vec::new();
        single_blocks(files, profile, &mut |id, stamp, length| {
            if volumes.last().is_none_or(|volume| volume.count == REPLICAS_OF_A_VOLUME) {
                volumes.push(Replicas { packed: Vec::new(), count: 0 });
            }
            let Some(volume) = volumes.last_mut() else { return };
            let (block_id, generation_stamp) = (id as i64, stamp as i64);
            let replica = ReportedReplica { block_id, length, generation_stamp, state: ReplicaState::Finalized };
            put_replica(&mut volume.packed, &replica);
            volume.count += 1;
        });
        let mut nodes = Vec::new();
        for number in 1..=DATANODES {
            let joined = runtime.block_on(async {
                let node = DataNode::join(live.address(), number, volumes.len()).await?;
                // it goes on in the background, and ends with the runtime
                drop(node.live());
                node.report(&volumes, 1).await?;
                Ok::<_, rpc::client::CallError>(node)
            });
            nodes.push(joined.map_err(text)?);
        }
        Ok(Cluster { live, runtime, client, nodes })
    }

    fn figure(&self, attribute: &str) -> Result<u64, String> {
        let told = self.live.attribute("Hadoop:service=NameNode,name=FSNamesystem", attribute)?;
        told.as_u64().ok_or(format!("FSNamesystem has no {attribute}"))
    }
    fn wait_for(&self, attribute: &str, wanted: u64) -> Result<(), String> {
        let since = Instant::now();
        while self.figure(attribute)? != wanted {
            if since.elapsed() > PATIENCE {
                return Err(format!("{attribute} is {}, not {wanted}", self.figure(attribute)?));
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }
    /// Waits until no block wants a replica.
    fn all_reported(&self, blocks: u64) -> Result<(), String> {
        self.wait_for("BlocksTotal", blocks)?;
        self.wait_for("MissingBlocks", 0)?;
        self.wait_for("UnderReplicatedBlocks", 0)
    }

    /// Lists all of it, with status and locations of each file.
    fn walk(&self) -> Result<Listed, String> {
        let (mut listed, mut folders) = (Listed::default(), vec![String::new()]);
        while let Some(folder) = folders.pop() {
            let (mut start_after, mut left, mut files) = (Default::default(), 1, 0);
            while left > 0 {
                let src = if folder.is_empty() { "/".to_owned() } else { folder.clone() };
                let request = GetListingRequestProto { src, start_after, need_location: true };
                let answer = self.runtime.block_on(self.client.call::<GetListingResponseProto>("getListing", &request));
                let page = answer.map_err(text)?.dir_list.ok_or(format!("{folder} is not there"))?;
                for entry in &page.partial_listing {
                    if entry.locations.is_some() {
                        files += 1;
                    } else {
                        folders.push(format!("{folder}/{}", String::from_utf8_lossy(&entry.path)));
                    }
                }
                left = page.remaining_entries;
                start_after = page.partial_listing.last().map(|last| last.path.clone()).unwrap_or_default();
            }
            listed.files += files;
            if files > 0 {
                listed.leaves.push((folder, files));
            }
        }
        Ok(listed)
    }

    /// Deletes whole directories of files, as many as come to so many per cent, and makes as many files of one block under the same directories.
    fn recreate(&self, generated: &Generated, listed: Listed) -> Result<(), String> {
        let (wanted, mut taken) = (generated.expected.files * RECREATED_PERCENT / 100, Vec::new());
        let mut files = 0;
        // every third one or so, not a corner of the tree; a huge one may be more than is wanted
        let leaves = listed.leaves.iter().filter(|(_, count)| *count <= wanted);
        for (_, leaf) in leaves.enumerate().filter(|(at, _)| at % 3 != 2 || wanted > listed.files / 2) {
            if files >= wanted {
                break;
            }
            files += leaf.1;
            taken.push(leaf.clone());
        }
        for (folder, _) in &taken {
            let request = DeleteRequestProto { src: folder.clone(), recursive: true };
            let deleted = self.runtime.block_on(self.client.call::<DeleteResponseProto>("delete", &request));
            if !deleted.map_err(text)?.result {
                return Err(format!("{folder} is not there"));
            }
        }
        self.wait_for("BlocksTotal", generated.figures.blocks - files)?;
        let next =
            std::sync::Mutex::new(taken.iter().flat_map(|(folder, count)| (0..*count).map(move |n| (folder, n))));
        let writer = || async {
            loop {
                let Some((folder, n)) = next.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next() else {
                    return Ok::<_, String>(());
                };
                self.write(&format!("{folder}/made-{n:08}-anew-.c000")).await?;
            }
        };
        self.runtime.block_on(try_join_all((0..WRITERS).map(|_| writer())))?;
        self.all_reported(generated.figures.blocks)?;
        self.wait_for("PendingDeletionBlocks", 0)
    }

    /// A file of one block, which all DataNodes get.
    async fn write(&self, path: &str) -> Result<(), String> {
        let create = CreateRequestProto {
            src: path.to_owned(),
            masked: FsPermissionProto { perm: 0o644 },
            client_name: CLIENT.to_owned(),
            create_flag: 1,
            create_parent: true,
            replication: DATANODES,
            block_size: 128 << 20,
            ..CreateRequestProto::default()
        };
        let failed = |e: rpc::client::CallError| format!("{path}: {e}");
        let created: CreateResponseProto = self.client.call("create", &create).await.map_err(failed)?;
        let file_id = created.fs.and_then(|status| status.file_id);
        let add = AddBlockRequestProto {
            src: path.to_owned(),
            client_name: CLIENT.to_owned(),
            file_id,
            ..AddBlockRequestProto::default()
        };
        let added: AddBlockResponseProto = self.client.call("addBlock", &add).await.map_err(failed)?;
        let last = ExtendedBlockProto { num_bytes: Some(1_000), ..added.block.b };
        let block = BlockProto { block_id: last.block_id, gen_stamp: last.generation_stamp, num_bytes: last.num_bytes };
        for node in &self.nodes {
            let request = node.received(block);
            let _: BlockReceivedAndDeletedResponseProto =
                node.call("blockReceivedAndDeleted", &request).await.map_err(failed)?;
        }
        let complete =
            CompleteRequestProto { src: path.to_owned(), client_name: CLIENT.to_owned(), last: Some(last), file_id };
        let closed: CompleteResponseProto = self.client.call("complete", &complete).await.map_err(failed)?;
        if closed.result { Ok(()) } else { Err(format!("{path} is not closed")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_understood() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let options = options(&words("--files 1_000 --profile aged --no-java")).unwrap();
        assert_eq!((options.files, options.java, options.profiles.len()), (1_000, false, 1));
        assert!(super::options(&words("--files x")).is_err() && super::options(&words("--size 3")).is_err());
        assert!(options.work.is_absolute());
    }
}
