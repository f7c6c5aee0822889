//! Content summary: a walk that can stop after any number of inodes and go on in another hold of the lock. Between holds it keeps ids and names, no
//! handles; what vanished meanwhile is skipped.

use crate::{Tree, quota};
use record::{InodeHandle, KindTag, Store};
use vocab::quota::Usage;
use vocab::{InodeId, Refusal};

/// Totals of a subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Sum of file lengths in bytes.
    pub length: u64,
    /// Files.
    pub files: u64,
    /// Directories, the top one included.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Bytes times replicas, and by kind.
    pub usage: Usage,
}

/// A walk in progress.
#[derive(Clone, Debug)]
pub struct SummaryWalk {
    /// Totals so far.
    pub totals: Summary,
    /// Directories entered, with the last child that was counted.
    open: Vec<(InodeId, Vec<u8>)>,
}

impl SummaryWalk {
    /// Begins at an inode: counts it, and enters it if it is a directory.
    ///
    /// # Errors
    /// What `enter` says of a directory that may not be entered.
    pub fn new(
        tree: &Tree,
        store: &Store,
        top: InodeHandle,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<SummaryWalk, Refusal> {
        let mut walk = SummaryWalk { totals: Summary::default(), open: Vec::new() };
        walk.count(tree, store, top, enter)?;
        Ok(walk)
    }

    /// Whether all is counted.
    pub fn is_done(&self) -> bool {
        self.open.is_empty()
    }

    /// Counts up to `budget` more inodes.
    ///
    /// # Errors
    /// What `enter` says of a directory that may not be entered.
    pub fn step(
        &mut self,
        tree: &Tree,
        store: &Store,
        budget: usize,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut left = budget;
        while let Some((id, after)) = self.open.pop() {
            let Some(directory) = tree.find(store, id).filter(|d| store.kind(*d) == KindTag::Directory) else {
                continue;
            };
            let (children, _) = tree.children_after(store, directory, &after);
            for child in children {
                if left == 0 {
                    self.open.push((id, after));
                    return Ok(());
                }
                left -= 1;
                if store.kind(child) == KindTag::Directory || left == 0 {
                    self.open.push((id, store.name(child).to_vec()));
                    self.count(tree, store, child, enter)?;
                    break;
                }
                self.count(tree, store, child, enter)?;
            }
            if left == 0 {
                break;
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        tree: &Tree,
        store: &Store,
        inode: InodeHandle,
        enter: &dyn Fn(InodeHandle) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        match store.kind(inode) {
            KindTag::Directory => {
                enter(inode)?;
                self.totals.directories += 1;
                self.open.push((store.inode_id(inode), Vec::new()));
            }
            KindTag::File => {
                self.totals.files += 1;
                self.totals.length += tree.file_length(store, inode);
            }
            KindTag::Symlink => self.totals.symlinks += 1,
            KindTag::Reference => {}
        }
        quota::add(&mut self.totals.usage, &tree.inode_usage(store, inode));
        Ok(())
    }
}

impl Tree {
    /// Length of a file in bytes: the sum of its blocks, the last one of an open file included as far as it is known.
    pub fn file_length(&self, store: &Store, file: InodeHandle) -> u64 {
        let count = store.block_count_of(file);
        (0..count).filter_map(|at| store.block_at(file, at)).map(|b| store.block_core(b).length).sum()
    }
}
