//! The work of re-encryption: one zone after the other, batch by batch.

use super::Shared;
use super::own_caller;
use engine::HaState;
use ops::write::reencrypt::{Outdated, Position, Waiting, next_waiting, note_progress, update_keys, walk_zone};
use security::keys::{EncryptedKey, KeyError, Keys};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use vocab::encryption::DataKey;
use vocab::{Caller, InodeId};

/// Inodes looked at in one hold.
const INODES_A_HOLD: usize = 1_000;
/// Files changed in one hold.
const FILES_A_HOLD: usize = 50;

/// How re-encryption works.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// How often it is looked whether a zone waits (`dfs.namenode.reencrypt.sleep.interval`).
    pub interval: Duration,
    /// Files whose keys are sent together (`dfs.namenode.reencrypt.batch.size`).
    pub batch: usize,
    /// Batches that are with the keeper of keys at once (`dfs.namenode.reencrypt.edek.threads`).
    pub threads: usize,
    /// Part of the time in which the lock may be held to look for files (`dfs.namenode.reencrypt.throttle.limit.handler.ratio`).
    pub looking: f64,
    /// The same to change them (`dfs.namenode.reencrypt.throttle.limit.updater.ratio`).
    pub changing: f64,
}

/// What callers and the work know of each other.
#[derive(Debug, Default)]
pub struct Reencrypting {
    wake: Notify,
    /// Id of the zone that is worked on; 0 for none.
    zone: AtomicU64,
}

impl Reencrypting {
    /// A zone was submitted.
    pub fn submitted(&self) {
        self.wake.notify_one();
    }
    /// The zone that is worked on.
    pub fn zone(&self) -> Option<InodeId> {
        Some(self.zone.load(Ordering::Acquire)).filter(|id| *id != 0).map(|id| InodeId(id as i64))
    }
}

/// Re-encrypts what waits for it, for ever.
pub async fn work(shared: Arc<Shared>, pace: Pace) {
    let Some(keys) = shared.keys.clone() else { return };
    let caller = own_caller(&shared.engine);
    let mut pause = tokio::time::interval(pace.interval);
    loop {
        tokio::select! {
            _ = pause.tick() => {}
            () = shared.reencrypting.wake.notified() => {}
        }
        while shared.engine.gate().state() == HaState::Active {
            let next = shared.engine.view("reencryption", &caller, next_waiting);
            let Some(zone) = next.filter(|_| !is_in_safe_mode(&shared, &caller)) else { break };
            shared.reencrypting.zone.store(zone.id.0 as u64, Ordering::Release);
            Work { shared: &shared, keys: &keys, caller: &caller, pace }.zone(&zone).await;
            shared.reencrypting.zone.store(0, Ordering::Release);
        }
    }
}

fn is_in_safe_mode(shared: &Shared, caller: &Caller) -> bool {
    shared.engine.view("reencryption", caller, |view| view.state.blocks.safe_mode.is_on())
}

struct Work<'a> {
    shared: &'a Arc<Shared>,
    keys: &'a Arc<Keys>,
    caller: &'a Caller,
    pace: Pace,
}

/// Files whose keys are with their keeper, and what comes of it; nothing for no files.
type Sent = (Vec<Outdated>, Option<JoinHandle<Result<Vec<EncryptedKey>, KeyError>>>);

impl Work<'_> {
    /// Goes through one zone from where its last batch ended. Several batches are with the keeper of keys at once; what comes back is written down in
    /// the order of the files, so that a restart goes on where the zone is done up to. Files whose keys are not encrypted anew count as failures.
    async fn zone(&self, zone: &Waiting) {
        let engine = &self.shared.engine;
        let root = engine.view("reencryption", self.caller, |view| {
            let (tree, store) = (&view.state.tree, &view.state.store);
            Some(tree.path_of(store, tree.find(store, zone.id)?))
        });
        let (Some(root), last) = (root, zone.last.last_file.as_deref()) else { return };
        let mut position = last.map_or_else(Position::default, |file| Position::after(&root, file));
        let (mut sent, mut all_found) = (VecDeque::new(), false);
        loop {
            while !all_found && sent.len() < self.pace.threads {
                let Some((files, is_last)) = self.batch(zone.id, &mut position).await else { return };
                all_found = is_last;
                sent.push_back(self.send(zone, files));
            }
            let Some(batch) = sent.pop_front() else { return };
            self.write_down(zone, batch, all_found && sent.is_empty()).await;
        }
    }

    /// Has keys encrypted anew, apart.
    fn send(&self, zone: &Waiting, files: Vec<Outdated>) -> Sent {
        if files.is_empty() {
            return (files, None);
        }
        let old: Vec<EncryptedKey> = files
            .iter()
            .map(|file| {
                let DataKey { material, iv, key_version } = file.key.clone();
                EncryptedKey { version: key_version, iv, material }
            })
            .collect();
        let (keys, key) = (self.keys.clone(), zone.key.clone());
        (files, Some(tokio::task::spawn_blocking(move || keys.provider().reencrypt(&key, &old))))
    }

    /// Gives files their new keys and notes how far the zone is.
    async fn write_down(&self, zone: &Waiting, (files, answer): Sent, ended: bool) {
        let engine = &self.shared.engine;
        let count = files.len() as i64;
        let made = match answer {
            None => Ok(Vec::new()),
            Some(answer) => answer.await.unwrap_or_else(|error| Err(KeyError(error.to_string()))),
        };
        let made = made.unwrap_or_else(|error| {
            tracing::warn!("Failed to re-encrypt one batch of {count} edeks of zone {}: {error}", zone.id);
            Vec::new()
        });
        let new = |key: EncryptedKey| DataKey { material: key.material, iv: key.iv, key_version: key.version };
        let changed: Vec<(Outdated, DataKey)> = files.into_iter().zip(made.into_iter().map(new)).collect();
        let (mut last_file, mut done) = (None, 0);
        for some in changed.chunks(FILES_A_HOLD) {
            let since = Instant::now();
            let (last, changed) =
                engine.turn("reencryption", self.caller, |turn| update_keys(turn, zone.id, some)).answer;
            last_file = last.or(last_file);
            done += changed;
            rest(since.elapsed(), self.pace.changing).await;
        }
        let failures = count - changed.len() as i64;
        let noted = engine.turn("reencryption", self.caller, |turn| {
            note_progress(turn, zone.id, last_file, (done, failures), ended);
        });
        engine.fence(noted).await;
    }

    /// The next files with old keys, looked for in several holds; `None` if the zone's re-encryption is over.
    async fn batch(&self, zone: InodeId, position: &mut Position) -> Option<(Vec<Outdated>, bool)> {
        let mut files = Vec::new();
        loop {
            let since = Instant::now();
            let wanted = self.pace.batch - files.len();
            let found = self
                .shared
                .engine
                .view("reencryption", self.caller, |view| walk_zone(view, zone, position, wanted, INODES_A_HOLD))?;
            rest(since.elapsed(), self.pace.looking).await;
            files.extend(found.files);
            if found.is_last || files.len() >= self.pace.batch {
                return Some((files, found.is_last));
            }
        }
    }
}

/// Leaves the lock to others, so that it was held for no more than this part of the time.
async fn rest(held: Duration, ratio: f64) {
    if ratio > 0.0 && ratio < 1.0 {
        tokio::time::sleep(held.mul_f64(1.0 / ratio - 1.0)).await;
    } else {
        tokio::task::yield_now().await;
    }
}
