//! Whether an image hangs together: what its sections say of each other, beyond what each says by itself.

use super::stages::Built;
use super::summary::{ImageError, SectionName, Summary};
use record::InodeHandle;

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

/// A bit for each inode that is known; handles are numbers in sequence.
#[derive(Default)]
struct Known(Vec<u64>);

impl Known {
    fn place(inode: InodeHandle) -> (usize, u64) {
        (inode.raw() as usize / 64, 1 << (inode.raw() % 64))
    }
    fn contains(&self, inode: InodeHandle) -> bool {
        let (word, bit) = Known::place(inode);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
    fn insert(&mut self, inode: InodeHandle) {
        let (word, bit) = Known::place(inode);
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        self.0[word] |= bit;
    }
}

/// The way up from every directory ends, at the root or at one that is in none. Returns whether all end at the root.
pub(super) fn no_circles(built: &Built) -> Result<bool, ImageError> {
    let (mut known, mut way, mut below_root) = (Known::default(), Vec::new(), true);
    for directory in &built.parents {
        let mut at = Some(*directory);
        while let Some(inode) = at.filter(|inode| !known.contains(*inode)) {
            way.push(inode);
            // a way without circles passes through directories with children only
            if way.len() > built.parents.len() {
                let id = built.store.inode_id(*directory);
                return Err(content("INODE_DIR", format!("directory {id} lies below itself")));
            }
            at = built.store.parent(inode);
        }
        let ends_elsewhere = at.is_none() && way.last().is_some_and(|last| *last != built.build.root());
        below_root &= !ends_elsewhere;
        way.drain(..).for_each(|inode| known.insert(inode));
    }
    Ok(below_root)
}
