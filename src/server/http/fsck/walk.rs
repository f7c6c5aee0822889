//! The walk over the tree, in the order of Hadoop's: an entry at a time, depth first, by the caller's rights.

use super::{Check, End};
use crate::service::refusal_text;
use ops::read::file_info::get_file_info;
use ops::read::fsck::{CorruptBlock, CorruptBlocksWalk, FileCheck, check_file};
use ops::read::listing::{ListingVisitor, get_listing};
use ops::read::snapshots::{Snapshottable, get_snapshottable};
use ops::status::{FileStatus, LocatedBlocks};
use record::KindTag;
use std::collections::VecDeque;
use vocab::{Refusal, storage_policy};

/// Files looked at under one hold of the lock.
const FILES_AT_A_TIME: usize = 32;
/// Missing blocks looked at under one hold.
const CORRUPT_SLICE: usize = 500;
/// A line end is sent after so many entries, to show that the check goes on.
const PROGRESS_EVERY: u64 = 1_000;

/// What a listing says of an entry.
pub(super) struct Entry {
    pub path: String,
    pub kind: KindTag,
    pub length: u64,
    pub replication: u16,
    pub block_size: u64,
    pub mode: u16,
    pub policy: u8,
    pub coding: Option<String>,
}

impl Entry {
    fn of(status: &FileStatus<'_>, path: String) -> Entry {
        Entry {
            path,
            kind: status.kind,
            length: status.length,
            replication: status.replication,
            block_size: status.block_size,
            mode: status.mode.bits(),
            policy: if status.storage_policy == 0 { storage_policy::HOT } else { status.storage_policy },
            coding: status.erasure_coding.as_ref().map(|policy| policy.name.to_string()),
        }
    }
}

/// Entries of a page.
struct Page<'a> {
    parent: &'a str,
    entries: VecDeque<Entry>,
    last: Vec<u8>,
}

impl ListingVisitor for Page<'_> {
    fn entry(&mut self, status: &FileStatus<'_>, _: Option<&LocatedBlocks>) {
        self.last = status.name.to_vec();
        let name = String::from_utf8_lossy(&status.name);
        let path = match (self.parent, &*name) {
            (parent, "") => parent.to_owned(),
            (parent, name) if parent.ends_with('/') => format!("{parent}{name}"),
            (parent, name) => format!("{parent}/{name}"),
        };
        self.entries.push_back(Entry::of(status, path));
    }
}

/// A directory that is being walked.
struct Frame {
    path: String,
    entries: VecDeque<Entry>,
    /// Where the next page begins; `None` after the last one.
    next: Option<Vec<u8>>,
}

fn failed(refusal: Refusal) -> End {
    End::Failed(refusal_text(refusal))
}

impl Check {
    /// Checks the path asked for; false if there is nothing.
    ///
    /// # Errors
    /// The first refusal of a page or a file.
    pub(super) async fn check(&mut self) -> Result<bool, End> {
        if self.asked.snapshots {
            let found = self.shared.engine.view("fsck", &self.caller, |view| {
                let path = |found: &Snapshottable<'_>| String::from_utf8_lossy(&found.path()).into_owned();
                get_snapshottable(view).iter().map(path).collect()
            });
            self.snapshottable = found;
        }
        let path = self.asked.path.clone();
        let root = self.shared.engine.view("fsck", &self.caller, |view| {
            Ok(get_file_info(view, path.as_bytes())?.map(|status| Entry::of(&status, path.clone())))
        });
        let Some(root) = root.map_err(failed)? else { return Ok(false) };
        if self.asked.corrupt_only {
            self.list_corrupt().await?;
            return Ok(true);
        }
        let mut frames = vec![Frame { path: String::new(), entries: VecDeque::from([root]), next: None }];
        while let Some(frame) = frames.last_mut() {
            let Some(kind) = frame.entries.front().map(|entry| entry.kind) else {
                match frame.next.take() {
                    Some(next) => self.read_page(frame, &next)?,
                    None => drop(frames.pop()),
                }
                continue;
            };
            if kind == KindTag::File {
                let many = frame.entries.iter().take(FILES_AT_A_TIME).take_while(|e| e.kind == KindTag::File).count();
                let files: Vec<Entry> = frame.entries.drain(..many).collect();
                self.check_files(&files).await?;
            } else if let Some(entry) = frame.entries.pop_front() {
                match self.past_of(&entry).map_err(failed)? {
                    // the past first: the directory waits for its turn
                    Some(past) => {
                        frame.entries.push_front(entry);
                        frames.push(Frame { path: String::new(), entries: VecDeque::from([past]), next: None });
                    }
                    None => frames.extend(self.enter(entry)),
                }
            }
            if !self.out.send_if_full().await {
                return Err(End::Left);
            }
            tokio::task::yield_now().await;
        }
        Ok(true)
    }

    /// The directory of an entry's snapshots, if they are looked at and were not yet.
    fn past_of(&mut self, entry: &Entry) -> Result<Option<Entry>, Refusal> {
        if entry.kind != KindTag::Directory || !self.snapshottable.remove(&entry.path) {
            return Ok(None);
        }
        self.progress();
        let path = format!("{}/.snapshot", entry.path.trim_end_matches('/'));
        self.shared.engine.view("fsck", &self.caller, |view| {
            Ok(get_file_info(view, path.as_bytes())?.map(|status| Entry::of(&status, path.clone())))
        })
    }

    /// A line end now and then.
    fn progress(&mut self) {
        let seen = self.directories + self.symlinks + self.replicated.files + self.striped.files;
        if seen.is_multiple_of(PROGRESS_EVERY) {
            self.out.line("");
        }
    }

    /// A directory, which is walked next, or a symbolic link.
    fn enter(&mut self, entry: Entry) -> Option<Frame> {
        self.progress();
        if entry.kind == KindTag::Symlink {
            if self.asked.files {
                self.out.line(&format!("{} <symlink>", entry.path));
            }
            self.symlinks += 1;
            return None;
        }
        if self.asked.files {
            self.out.line(&format!("{} <dir>", entry.path));
        }
        self.directories += 1;
        Some(Frame { path: entry.path, entries: VecDeque::new(), next: Some(Vec::new()) })
    }

    fn read_page(&self, frame: &mut Frame, start_after: &[u8]) -> Result<(), End> {
        let mut page = Page { parent: &frame.path, entries: VecDeque::new(), last: Vec::new() };
        let found = self
            .shared
            .engine
            .view("fsck", &self.caller, |view| get_listing(view, frame.path.as_bytes(), start_after, false, &mut page));
        let Some(found) = found.map_err(failed)? else { return Ok(()) };
        let Page { entries, last, .. } = page;
        frame.entries = entries;
        frame.next = (found.remaining > 0).then_some(last);
        Ok(())
    }

    /// Files under one hold, then their lines. As in Hadoop nothing that comes after a refused file is looked at.
    async fn check_files(&mut self, files: &[Entry]) -> Result<(), End> {
        let details = self.asked.replicas();
        let checks: Vec<Result<Option<FileCheck>, Refusal>> = self.shared.engine.view("fsck", &self.caller, |view| {
            let check = |file: &Entry| check_file(view, file.path.as_bytes(), file.length, details);
            files.iter().map(check).collect()
        });
        for (file, check) in files.iter().zip(checks) {
            self.progress();
            let Some(check) = check.map_err(failed)? else { continue };
            self.report_file(file, &check);
            if self.asked.replicate {
                self.replicate(file, &check);
            }
            if self.is_lost(file, &check) {
                if self.asked.move_away {
                    self.move_away(file).await;
                }
                if self.asked.delete {
                    self.delete(file).await;
                }
            }
        }
        Ok(())
    }

    /// Blocks without a good replica, from the cookie of an earlier answer on.
    async fn list_corrupt(&mut self) -> Result<(), End> {
        let path = self.asked.path.clone();
        let pasts = self.asked.snapshots;
        let after = ops::read::corrupt_files::CorruptFilesWalk::from_cookie(self.asked.after.as_deref());
        let engine = self.shared.engine.clone();
        let begun =
            engine.view("fsck", &self.caller, |view| CorruptBlocksWalk::begin(view, path.as_bytes(), after, pasts));
        // where nothing is missing the cookie comes back as it is
        let (mut cookie, mut lines) = (self.asked.after.clone().unwrap_or_else(|| "0".to_owned()), Vec::new());
        if let Some(mut walk) = begun.map_err(failed)? {
            while !engine.view("fsck", &self.caller, |view| walk.step(view, CORRUPT_SLICE)) {
                tokio::task::yield_now().await;
            }
            cookie = walk.seen.max(after).to_string();
            lines.extend(walk.found.iter().flat_map(corrupt_lines));
        }
        let count = match lines.len() {
            0 if cookie == "0" => "no".to_owned(),
            0 => "no more".to_owned(),
            n => n.to_string(),
        };
        self.out.line(&format!("Cookie:\t{cookie}"));
        lines.iter().for_each(|line| self.out.line(line));
        self.out.line(&format!("\n\nThe filesystem under path '{path}' has {count} CORRUPT files"));
        self.out.line("");
        Ok(())
    }
}

/// The file's line, if there still is one, and those of its past.
fn corrupt_lines(block: &CorruptBlock) -> Vec<String> {
    let name = format!("blk_{}", block.id.0);
    let present =
        block.present.then(|| format!("{name}\t{}\t{}", block.redundancy, String::from_utf8_lossy(&block.path)));
    let pasts = block.pasts.iter().map(|path| format!("{name}\t{}", String::from_utf8_lossy(path)));
    present.into_iter().chain(pasts).collect()
}
