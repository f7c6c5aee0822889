//! getEZForPath and getEnclosingRoot, as they are where no path is encrypted: such images are refused at load.

use crate::View;
use namespace::Walk;
use vocab::{Action, Refusal};

/// getEZForPath and getEnclosingRoot: that the caller may ask about the path, which need not exist.
///
/// # Errors
/// Access along the path, and READ of what it names.
pub fn get_zone(view: &View<'_>, path: &[u8]) -> Result<(), Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    view.check_inode(&resolved, Action::READ)
}
