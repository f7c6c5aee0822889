//! Purpose: `/fsck`: what `hdfs fsck` prints, streamed as the tree is walked.
//! Called by: the router.
//! Calls: engine (one short view per page of a directory and per handful of files), ops.
//! Never: holds the state lock while it waits for the reader; checks more at a time than fits a slice.
//! Invariants: the answer is 200 whatever is found; the words at its end tell the tool how it went, as with Hadoop's `NamenodeFsck`.

mod block;
mod copy;
mod file;
mod salvage;
mod storage;
mod summary;
mod walk;

use super::caller::caller_of;
use super::{Parameters, Remote, Web};
use crate::service::{Shared, audit, refusal_text, superuser};
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use storage::StorageSummary;
use summary::{Kind, Totals};
use tokio::sync::mpsc;
use vocab::Caller;

/// Bytes gathered before they are sent.
const CHUNK_BYTES: usize = 16 << 10;
/// Chunks that wait for the reader; then the walk waits too.
const CHUNKS_WAITING: usize = 8;

/// What is asked for.
#[derive(Clone, Debug, Default)]
struct Asked {
    path: String,
    files: bool,
    blocks: bool,
    locations: bool,
    racks: bool,
    details: bool,
    domains: bool,
    policies: bool,
    maintenance: bool,
    open: bool,
    corrupt_only: bool,
    after: Option<String>,
    move_away: bool,
    delete: bool,
    block_ids: Option<String>,
    progress: bool,
    snapshots: bool,
    replicate: bool,
}

impl Asked {
    fn read(parameters: &HashMap<String, String>) -> Asked {
        let is = |name: &str| parameters.contains_key(name);
        let of = |name: &str| parameters.get(name).cloned();
        Asked {
            path: of("path").unwrap_or_else(|| "/".to_owned()),
            files: is("files"),
            blocks: is("blocks"),
            locations: is("locations"),
            racks: is("racks"),
            details: is("replicadetails"),
            domains: is("upgradedomains"),
            policies: is("storagepolicies"),
            maintenance: is("maintenance"),
            open: is("openforwrite"),
            corrupt_only: is("listcorruptfileblocks"),
            after: of("startblockafter"),
            move_away: is("move"),
            delete: is("delete"),
            block_ids: of("blockId"),
            progress: is("showprogress"),
            snapshots: is("includeSnapshots"),
            replicate: is("replicate"),
        }
    }
    /// Whether replicas are shown one by one.
    fn replicas(&self) -> bool {
        self.locations || self.racks || self.details || self.domains
    }
}

/// Text on its way to the reader.
struct Out {
    text: String,
    chunks: mpsc::Sender<Bytes>,
}

impl Out {
    fn put(&mut self, text: &str) {
        self.text += text;
    }
    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }
    /// Sends what has gathered; false if nobody reads any more.
    async fn send(&mut self) -> bool {
        if self.text.is_empty() {
            return !self.chunks.is_closed();
        }
        self.chunks.send(std::mem::take(&mut self.text).into()).await.is_ok()
    }
    /// The same once there is enough.
    async fn send_if_full(&mut self) -> bool {
        if self.text.len() < CHUNK_BYTES { !self.chunks.is_closed() } else { self.send().await }
    }
}

/// A check under way.
struct Check {
    shared: Arc<Shared>,
    caller: Caller,
    asked: Asked,
    out: Out,
    /// Paths of the directories whose snapshots are looked at as well.
    snapshottable: HashSet<String>,
    /// Something that was to be done could not be.
    internal_error: bool,
    directories: u64,
    symlinks: u64,
    replicated: Totals,
    striped: Totals,
    storage: StorageSummary,
}

/// Why a check ends early.
enum End {
    /// The message of an exception.
    Failed(String),
    /// Nobody reads any more.
    Left,
}

/// The page.
pub(super) async fn page(
    State(web): State<Arc<Web>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    Parameters(parameters): Parameters,
) -> Response {
    let Some(shared) = web.node.get().and_then(|node| node.shared()) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "NameNode is still loading.").into_response();
    };
    let caller = caller_of(&shared, &parameters, remote.0, &web.settings.static_user).await;
    let (chunks, mut receiver) = mpsc::channel(CHUNKS_WAITING);
    let check = Check {
        asked: Asked::read(&parameters),
        out: Out { text: String::new(), chunks },
        snapshottable: HashSet::new(),
        internal_error: false,
        directories: 0,
        symlinks: 0,
        replicated: Totals::new(Kind::Replicated, &shared),
        striped: Totals::new(Kind::Striped, &shared),
        storage: StorageSummary::default(),
        shared,
        caller,
    };
    tokio::spawn(check.run());
    let chunks =
        futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx).map(|chunk| chunk.map(Ok::<_, std::io::Error>)));
    ([(header::CONTENT_TYPE, "text/plain;charset=utf-8")], Body::from_stream(chunks)).into_response()
}

impl Check {
    async fn run(mut self) {
        if self.asked.progress {
            let text = "The fsck switch -showprogress is deprecated and no longer has any effect. \
                        Progress is now shown by default.";
            self.out.line(text);
        }
        let since = Instant::now();
        let source = match self.asked.block_ids.clone() {
            Some(ids) => {
                match superuser(&self.shared, &self.caller, "fsck") {
                    Ok(()) => self.blocks_by_id(&ids),
                    Err(refusal) => {
                        audit::log(&self.shared, &self.caller, false, "fsck", Some(&self.asked.path), "");
                        self.failed(since, &refusal_text(refusal));
                    }
                }
                format!("blocksIds={:?}", ids.split(' ').collect::<Vec<_>>()).replace('"', "")
            }
            None => {
                self.whole().await;
                self.asked.path.clone()
            }
        };
        audit::log(&self.shared, &self.caller, true, "fsck", Some(&source), "");
        self.out.send().await;
    }

    fn date(&self) -> String {
        self.shared.reload.date(self.shared.engine.now().wall)
    }

    /// Who began it, and where from.
    fn started(&self) -> String {
        let method = if self.caller.real_user.is_some() { "PROXY" } else { "SIMPLE" };
        let from = self.caller.address.ip().to_canonical();
        format!("FSCK started by {} (auth:{method}) from /{from}", self.caller.user)
    }

    fn ended(&self, since: Instant) -> String {
        format!("FSCK ended at {} in {} milliseconds", self.date(), since.elapsed().as_millis())
    }

    async fn whole(&mut self) {
        let since = Instant::now();
        let path = self.asked.path.clone();
        let begin = format!("{} for path {path} at {}", self.started(), self.date());
        tracing::info!("{begin}");
        self.out.line(&begin);
        match self.check().await {
            Ok(true) if self.asked.corrupt_only => {}
            Ok(true) => {
                let healthy = self.replicated.is_healthy() && self.striped.is_healthy();
                let words = if healthy { "HEALTHY" } else { "CORRUPT" };
                self.summary(words);
                let ended = self.ended(since);
                self.out.line(&ended);
                if self.internal_error {
                    // its end is told once more, as Hadoop does
                    return self.failed(since, "fsck encountered internal errors!");
                }
                self.out.put(&format!("\n\nThe filesystem under path '{path}' is {words}"));
            }
            Ok(false) => self.out.put(&format!("\n\nPath '{path}' does not exist")),
            Err(End::Failed(message)) => self.failed(since, &message),
            Err(End::Left) => {}
        }
    }

    fn failed(&mut self, since: Instant, message: &str) {
        let ended = self.ended(since);
        self.out.line(&ended);
        self.out.line(message);
        self.out.put(&format!("\n\nFsck on path '{}' FAILED", self.asked.path));
    }

    fn summary(&mut self, words: &str) {
        let (nodes, racks) = self.shared.engine.view("fsck", &self.caller, |view| {
            let blocks = &view.state.blocks;
            (blocks.live_count(), blocks.racks().count())
        });
        self.out.line(&format!("\nStatus: {words}"));
        self.out.line(&format!(" Number of data-nodes:\t{nodes}"));
        self.out.line(&format!(" Number of racks:\t\t{racks}"));
        self.out.line(&format!(" Total dirs:\t\t\t{}", self.directories));
        self.out.line(&format!(" Total symlinks:\t\t{}", self.symlinks));
        self.out.line(&format!("\nReplicated Blocks:\n{}", self.replicated));
        self.out.line(&format!("\nErasure Coded Block Groups:\n{}", self.striped));
        if self.asked.policies {
            self.out.put(&self.storage.to_string());
        }
    }
}
