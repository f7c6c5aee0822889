//! metaSave: an account of the blocks for administrators, as text.

use super::corrupt_files::path_of;
use crate::View;
use blocks::Names;
use vocab::Refusal;
use vocab::time::TimeMs;

/// The account (Hadoop's `FSNamesystem.metaSave`); `date` writes a time as `Mon Nov 30 19:33:40 UTC 2026`. Superusers only.
///
/// # Errors
/// `SuperuserRequired`.
pub fn meta_save(view: &View<'_>, date: &dyn Fn(TimeMs) -> String) -> Result<String, Refusal> {
    view.check_superuser()?;
    let state = view.state;
    let (inodes, count) = (state.tree.inode_count(), state.store.block_count());
    let names = Names { path: &|block| path_of(view, block), date };
    let account = state.blocks.account(&state.store, view.now, &names);
    let all = inodes + count;
    Ok(format!("{inodes} files and directories, {count} blocks = {all} total filesystem objects\n{account}"))
}
