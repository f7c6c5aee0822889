//! Whether an image hangs together: what its sections say of each other, beyond what each says by itself.

use super::stages::Built;
use super::summary::{ImageError, SectionName, Summary};
use std::collections::HashSet;

fn content(section: &'static str, what: String) -> ImageError {
    ImageError::Content { section, what }
}

/// No section but parts of one is in the table twice.
pub(super) fn listed_once(summary: &Summary) -> Result<(), ImageError> {
    use SectionName::{InodeDirSub, InodeReferenceSub, InodeSub, SnapshotDiffSub};
    let is_part = |name| matches!(name, InodeSub | InodeReferenceSub | InodeDirSub | SnapshotDiffSub);
    let mut sections = summary.sections.iter().zip(summary.sections.iter().skip(1));
    match sections.find(|(one, next)| one.name == next.name && !is_part(one.name)) {
        Some((twice, _)) => Err(content(twice.name.text(), "is there twice".to_owned())),
        None => Ok(()),
    }
}

/// The way up from every directory ends, at the root or at one that is in none.
pub(super) fn no_circles(built: &Built) -> Result<(), ImageError> {
    let (mut known, mut way) = (HashSet::with_capacity(built.parents.len()), Vec::new());
    for directory in &built.parents {
        let mut at = Some(*directory);
        while let Some(inode) = at.filter(|inode| !known.contains(inode)) {
            way.push(inode);
            // a way without circles passes through directories with children only
            if way.len() > built.parents.len() {
                let id = built.store.inode_id(*directory);
                return Err(content("INODE_DIR", format!("directory {id} lies below itself")));
            }
            at = built.store.parent(inode);
        }
        known.extend(way.drain(..));
    }
    Ok(())
}
