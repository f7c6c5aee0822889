//! Children of a directory at a snapshot, one after another, in steps that take no longer where there are many.

use super::super::Gone;
use super::super::diff::{Name, at};
use super::CHUNK;
use crate::Tree;
use record::{InodeHandle, Store};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vocab::SnapshotId;
use vocab::path::compare_names;

/// A walk over the children of a directory as of a snapshot, in name order. As [`Tree::children_at`], for directories that do not change meanwhile.
#[derive(Debug)]
pub(super) struct Children {
    pub(super) directory: InodeHandle,
    /// The diff that is looked at, and its entries that were.
    diff: usize,
    entry: usize,
    /// Names of which a diff says what they were.
    told: BTreeSet<Box<[u8]>>,
    /// Those that were there, and are to come.
    gone: BTreeMap<Name, Gone>,
    /// The present child that was read last.
    after: Vec<u8>,
    /// Present children that were read, with their names where there are others to compare them with.
    ready: VecDeque<(Gone, Box<[u8]>)>,
    is_over: bool,
}

/// What a step of a walk came to.
#[derive(Debug)]
pub(super) enum Next {
    /// The next child.
    Child(Gone),
    /// It is to be looked for in another step.
    Later,
    /// There is no other.
    Over,
}

impl Children {
    pub(super) fn new(tree: &Tree, directory: InodeHandle, snapshot: SnapshotId) -> Children {
        let diffs = tree.snapshots.directory_diffs(directory);
        Children {
            directory,
            diff: at(diffs, snapshot).unwrap_or(diffs.len()),
            entry: 0,
            told: BTreeSet::new(),
            gone: BTreeMap::new(),
            after: Vec::new(),
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// What it has to be dropped bit by bit.
    pub(super) fn into_names(self) -> BTreeSet<Box<[u8]>> {
        self.told
    }

    pub(super) fn next(&mut self, tree: &Tree, store: &Store) -> Next {
        if tree.snapshots.directory_diffs(self.directory).len() > self.diff {
            self.look_at_diff(tree, store);
            return Next::Later;
        }
        if self.ready.is_empty() && !self.is_over {
            self.read_on(tree, store);
            if self.ready.is_empty() && !self.is_over {
                return Next::Later;
            }
        }
        let past_first = match (self.ready.front(), self.gone.first_key_value()) {
            (Some((_, name)), Some((first, _))) => compare_names(&first.0, name).is_le(),
            (None, gone) => gone.is_some(),
            (Some(_), None) => false,
        };
        let next = match past_first {
            true => self.gone.pop_first().map(|(_, gone)| gone),
            false => self.ready.pop_front().map(|(child, _)| child),
        };
        next.map_or(Next::Over, Next::Child)
    }

    /// Of each name the first diff tells what it was.
    fn look_at_diff(&mut self, tree: &Tree, store: &Store) {
        let diff = &tree.snapshots.directory_diffs(self.directory)[self.diff];
        let (deleted, all) = (diff.deleted.len(), diff.deleted.len() + diff.created.len());
        let until = all.min(self.entry + CHUNK);
        for at in self.entry..until {
            match diff.deleted.get(at) {
                Some(gone) => {
                    let name = gone.name(store);
                    if self.told.insert(name.into()) {
                        self.gone.insert(Name(name.into()), gone.clone());
                    }
                }
                None => _ = self.told.insert(diff.created[at - deleted].clone()),
            }
        }
        self.entry = until;
        if until == all {
            (self.diff, self.entry) = (self.diff + 1, 0);
        }
    }

    fn read_on(&mut self, tree: &Tree, store: &Store) {
        let (children, _) = tree.children_after(store, self.directory, &self.after);
        let mut last = None;
        let mut count = 0;
        for child in children.take(CHUNK) {
            count += 1;
            last = Some(child);
            let name = store.name(child);
            if !self.told.contains(name) {
                let name: Box<[u8]> = if self.gone.is_empty() { Box::default() } else { name.into() };
                self.ready.push_back((tree.entry(child), name));
            }
        }
        match last.filter(|_| count == CHUNK) {
            Some(last) => self.after = store.name(last).to_vec(),
            None => self.is_over = true,
        }
    }
}
