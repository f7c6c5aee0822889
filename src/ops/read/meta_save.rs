//! metaSave: an account of the blocks for administrators, as text.

use super::corrupt_files::path_of;
use crate::View;
use blocks::{Account, Names};
use vocab::Refusal;
use vocab::time::TimeMs;

/// The account under way (Hadoop's `FSNamesystem.metaSave`): step it under one read hold after another until it is done.
#[derive(Clone, Debug)]
pub struct MetaSave(Account);

impl MetaSave {
    /// Begins. Superusers only.
    ///
    /// # Errors
    /// `SuperuserRequired`.
    pub fn begin(view: &View<'_>) -> Result<MetaSave, Refusal> {
        view.check_superuser()?;
        let (inodes, count) = (view.state.tree.inode_count(), view.state.store.block_count());
        let all = inodes + count;
        let text = format!("{inodes} files and directories, {count} blocks = {all} total filesystem objects\n");
        Ok(MetaSave(Account::new(text)))
    }

    /// Goes on with up to `budget` blocks; whether it is done. `date` writes a time as `Mon Nov 30 19:33:40 UTC 2026`.
    pub fn step(&mut self, view: &View<'_>, date: &dyn Fn(TimeMs) -> String, budget: usize) -> bool {
        let state = view.state;
        let names = Names { path: &|block| path_of(view, block), date };
        self.0.step(&state.blocks, &state.store, view.now, &names, budget)
    }

    /// The lines since this was last called: there may be more than should be held in memory.
    pub fn take_text(&mut self) -> String {
        self.0.take_text()
    }

    /// The lines.
    pub fn text(self) -> String {
        self.0.into_text()
    }
}
