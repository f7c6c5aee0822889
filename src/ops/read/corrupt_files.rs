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
    /// What a cookie says, of 32 bits as Java's numbers are; whatever is no such number means the beginning.
    pub fn from_cookie(text: Option<&str>) -> u64 {
        let number = text.and_then(|text| text.parse::<i32>().ok());
        number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
    }

    /// Begins at the cookie of an earlier answer, 0 for the beginning. `None` if no block is missing at all.
    ///
    /// # Errors
    /// `Io` while the queues are not filled yet.
    pub fn begin(view: &View<'_>, below: &[u8], cookie: u64) -> Result<Option<CorruptFilesWalk>, Refusal> {
        let walk = CorruptFilesWalk { below: below.to_vec(), skip: cookie, seen: 0, ticket: 0, files: Vec::new() };
        Ok(any_missing(view)?.then_some(walk))
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

/// Whether any block is missing. Before the queues are filled none counts as missing.
///
/// # Errors
/// `Io` where some are, and the queues are not filled.
pub(super) fn any_missing(view: &View<'_>) -> Result<bool, Refusal> {
    let any = view.state.blocks.missing_blocks(0).next().is_some();
    if any && !view.state.blocks.populating_queues() {
        let text = "Cannot run listCorruptFileBlocks because replication queues have not been initialized.";
        return Err(Refusal::io(text));
    }
    Ok(any)
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
    use super::{CorruptFilesWalk, is_below};

    #[test]
    fn nothing_is_missing_before_the_queues_are_filled() {
        let mut w = crate::tests::World::new();
        w.state.blocks = blocks::Blocks::new(blocks::Settings::default(), 1);
        assert!(!w.state.blocks.populating_queues());
        let begun =
            w.view(&crate::tests::superuser(), |v| CorruptFilesWalk::begin(v, b"/", 0).map(|walk| walk.is_none()));
        assert_eq!(begun, Ok(true));
    }

    #[test]
    fn a_cookie_that_is_no_number_of_32_bits_means_the_beginning() {
        let all = [None, Some(""), Some("-1"), Some("1x"), Some(" 1"), Some("2147483648"), Some("99999999999")];
        assert_eq!(all.map(CorruptFilesWalk::from_cookie), [0; 7]);
        let all = [Some("1"), Some("+1"), Some("2147483647")];
        assert_eq!(all.map(CorruptFilesWalk::from_cookie), [1, 1, i32::MAX as u64]);
    }

    #[test]
    fn nothing_lies_below_a_path_with_a_slash_at_its_end() {
        assert!(is_below(b"/d/f", b"/d") && is_below(b"/d", b"/d") && is_below(b"/d", b"/"));
        assert!(!is_below(b"/d/f", b"/d/") && !is_below(b"/df", b"/d"));
    }
}
