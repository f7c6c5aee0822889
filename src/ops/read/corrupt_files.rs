//! listCorruptFileBlocks: files with blocks of which no good replica is left.

use crate::View;
use vocab::{BlockId, Refusal};

/// A listing under way: missing blocks are looked at in slices.
#[derive(Clone, Debug)]
pub struct CorruptFilesWalk {
    below: Vec<u8>,
    /// Blocks still to be passed over: a page begins where the last one ended.
    skip: u64,
    /// Blocks looked at or passed over.
    seen: u64,
    ticket: u64,
    /// Paths of the files, one for each block.
    pub files: Vec<Vec<u8>>,
}

impl CorruptFilesWalk {
    /// Begins at the cookie of an earlier answer, 0 for the beginning. `None` if no block is missing at all.
    ///
    /// # Errors
    /// `Io` while the queues are not filled yet.
    pub fn begin(view: &View<'_>, below: &[u8], cookie: u64) -> Result<Option<CorruptFilesWalk>, Refusal> {
        if !view.state.blocks.populating_queues() {
            let text = "Cannot run listCorruptFileBlocks because replication queues have not been initialized.";
            return Err(Refusal::io(text));
        }
        let none = view.state.blocks.missing_blocks(0).next().is_none();
        let walk = CorruptFilesWalk { below: below.to_vec(), skip: cookie, seen: 0, ticket: 0, files: Vec::new() };
        Ok((!none).then_some(walk))
    }

    /// Looks at up to `budget` blocks; whether the answer is complete.
    pub fn step(&mut self, view: &View<'_>, budget: usize) -> bool {
        let mut looked = 0;
        for (ticket, block) in view.state.blocks.missing_blocks(self.ticket).take(budget) {
            (self.ticket, looked) = (ticket, looked + 1);
            self.seen += 1;
            if self.seen <= self.skip {
                continue;
            }
            self.files.extend(path_of(view, block).filter(|path| is_below(path, &self.below)));
            if self.files.len() >= view.settings.corrupt_files_limit {
                return true;
            }
        }
        looked < budget
    }

    /// Where the next page begins.
    pub fn cookie(&self) -> u64 {
        self.seen.max(self.skip)
    }
}

/// Path of the file that a block belongs to, if there is one, in the present or the past: one that is only in snapshots has the path that it had.
pub(super) fn path_of(view: &View<'_>, block: BlockId) -> Option<Vec<u8>> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let file = store.block_file(store.find_block(block)?)?;
    // files that were cut off lose their blocks a little later
    tree.is_counted(store, file).then(|| tree.path_of(store, file))
}

/// Whether a path is another or below it, by its text (`DFSUtil.isParentEntry`).
///
/// Quirk: nothing_lies_below_a_path_with_a_slash_at_its_end: but for the root
pub(super) fn is_below(path: &[u8], other: &[u8]) -> bool {
    let rest = path.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || other == b"/")
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn nothing_lies_below_a_path_with_a_slash_at_its_end() {
        assert!(is_below(b"/d/f", b"/d") && is_below(b"/d", b"/d") && is_below(b"/d", b"/"));
        assert!(!is_below(b"/d/f", b"/d/") && !is_below(b"/df", b"/d"));
    }
}
