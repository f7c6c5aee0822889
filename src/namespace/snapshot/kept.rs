//! What is kept of inodes for their snapshots, in tables that can be written down bit by bit while they go on changing: what changes after it was written is
//! written once more at the end, and a later entry of an inode stands for all earlier ones.

use super::{DirectoryDiff, FileDiffs, References, Snapshots};
use crate::Tree;
use mem::persist::{Malformed, RestReader, RestWriter};
use record::InodeHandle;
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Bound;

/// A table by inode. It grows without ever being moved as a whole.
#[derive(Debug)]
pub(crate) struct Kept<V> {
    map: BTreeMap<InodeHandle, V>,
    /// What changed since the table has begun to be written down.
    changed: Option<BTreeSet<InodeHandle>>,
}

impl<V> Default for Kept<V> {
    fn default() -> Kept<V> {
        Kept { map: BTreeMap::new(), changed: None }
    }
}

impl<V> Kept<V> {
    pub(crate) fn get(&self, inode: &InodeHandle) -> Option<&V> {
        self.map.get(inode)
    }
    pub(crate) fn contains_key(&self, inode: &InodeHandle) -> bool {
        self.map.contains_key(inode)
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
    pub(crate) fn keys(&self) -> btree_map::Keys<'_, InodeHandle, V> {
        self.map.keys()
    }
    pub(crate) fn values(&self) -> btree_map::Values<'_, InodeHandle, V> {
        self.map.values()
    }
    pub(crate) fn iter(&self) -> btree_map::Iter<'_, InodeHandle, V> {
        self.map.iter()
    }
    /// Entries after one.
    pub(crate) fn after(&self, inode: Option<InodeHandle>) -> btree_map::Range<'_, InodeHandle, V> {
        self.map.range((inode.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded))
    }
    fn note(&mut self, inode: InodeHandle) {
        if let Some(changed) = &mut self.changed {
            changed.insert(inode);
        }
    }
    pub(crate) fn get_mut(&mut self, inode: &InodeHandle) -> Option<&mut V> {
        self.note(*inode);
        self.map.get_mut(inode)
    }
    pub(crate) fn insert(&mut self, inode: InodeHandle, value: V) {
        self.note(inode);
        self.map.insert(inode, value);
    }
    pub(crate) fn remove(&mut self, inode: &InodeHandle) -> Option<V> {
        self.note(*inode);
        self.map.remove(inode)
    }
}

impl<V: Default> Kept<V> {
    pub(crate) fn or_default(&mut self, inode: InodeHandle) -> &mut V {
        self.note(inode);
        self.map.entry(inode).or_default()
    }
}

/// Something that such a table has of an inode.
pub(crate) trait Written: Sized {
    /// What an entry begins with; the next number says that the inode has none any more.
    const TAG: u8;
    fn write(&self, rest: &mut RestWriter);
    fn read(rest: &mut RestReader<'_>) -> Result<Self, Malformed>;
}

/// The end of all entries.
const END: u8 = 0;

impl Written for Vec<DirectoryDiff> {
    const TAG: u8 = 1;
    fn write(&self, rest: &mut RestWriter) {
        rest.length(self.len());
        self.iter().for_each(|diff| diff.write_rest(rest));
    }
    fn read(rest: &mut RestReader<'_>) -> Result<Self, Malformed> {
        (0..rest.length(1)?).map(|_| DirectoryDiff::restore(rest)).collect()
    }
}
impl Written for FileDiffs {
    const TAG: u8 = 3;
    fn write(&self, rest: &mut RestWriter) {
        rest.bool(self.deleted);
        rest.length(self.list.len());
        self.list.iter().for_each(|diff| diff.write_rest(rest));
    }
    fn read(rest: &mut RestReader<'_>) -> Result<Self, Malformed> {
        let deleted = rest.bool()?;
        let list = (0..rest.length(1)?).map(|_| super::FileDiff::restore(rest)).collect::<Result<_, _>>()?;
        Ok(FileDiffs { list, deleted })
    }
}
impl Written for References {
    const TAG: u8 = 5;
    fn write(&self, rest: &mut RestWriter) {
        self.write_rest(rest);
    }
    fn read(rest: &mut RestReader<'_>) -> Result<Self, Malformed> {
        References::restore(rest)
    }
}

impl<V: Written> Kept<V> {
    /// Writes up to `budget` entries after one; gives the last one, `None` after the end.
    fn write_on(&self, after: Option<InodeHandle>, budget: &mut u64, rest: &mut RestWriter) -> Option<InodeHandle> {
        for (inode, value) in self.after(after) {
            rest.u8(V::TAG);
            rest.u32(inode.raw());
            let before = rest.len();
            value.write(rest);
            *budget = budget.saturating_sub(1 + (rest.len() - before) as u64 / ENTRY_BYTES);
            if *budget == 0 {
                return Some(*inode);
            }
        }
        None
    }
    /// Writes what has changed since, and stops looking.
    fn write_changed(&mut self, rest: &mut RestWriter) {
        for inode in self.changed.take().unwrap_or_default() {
            let value = self.map.get(&inode);
            rest.u8(V::TAG + u8::from(value.is_none()));
            rest.u32(inode.raw());
            if let Some(value) = value {
                value.write(rest);
            }
        }
    }
    fn read_entry(&mut self, tag: u8, inode: InodeHandle, rest: &mut RestReader<'_>) -> Result<bool, Malformed> {
        if tag == V::TAG {
            self.map.insert(inode, V::read(rest)?);
        } else if tag == V::TAG + 1 {
            self.map.remove(&inode);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

/// About the bytes of an entry: longer ones count as several.
const ENTRY_BYTES: u64 = 256;

/// The tables being written down.
#[derive(Debug, Default)]
pub struct PastCopy {
    /// Which table is next, and after which inode.
    table: u8,
    after: Option<InodeHandle>,
    is_begun: bool,
    rest: RestWriter,
}

impl Tree {
    /// Begins to write down what is kept for snapshots. What changes from now on is noted until [`Tree::end_past_copy`].
    pub fn begin_past_copy(&mut self) -> PastCopy {
        let Snapshots { directories, files, references, .. } = &mut self.snapshots;
        (directories.changed, files.changed, references.changed) =
            (Some(BTreeSet::new()), Some(BTreeSet::new()), Some(BTreeSet::new()));
        PastCopy { is_begun: true, ..PastCopy::default() }
    }

    /// Writes about so many more entries; whether there are others.
    pub fn copy_past(&self, copy: &mut PastCopy, budget: u64) -> bool {
        let Snapshots { directories, files, references, .. } = &self.snapshots;
        let PastCopy { table, after, rest, .. } = copy;
        let mut budget = budget;
        while *table < 3 {
            *after = match *table {
                0 => directories.write_on(*after, &mut budget, rest),
                1 => files.write_on(*after, &mut budget, rest),
                _ => references.write_on(*after, &mut budget, rest),
            };
            if after.is_some() {
                return true;
            }
            *table += 1;
        }
        false
    }

    /// Writes what is missing, and what has changed meanwhile. What else is to be written down follows in the same rest.
    pub fn end_past_copy(&mut self, mut copy: PastCopy) -> RestWriter {
        if !copy.is_begun {
            copy = self.begin_past_copy();
        }
        while self.copy_past(&mut copy, u64::MAX) {}
        let Snapshots { directories, files, references, .. } = &mut self.snapshots;
        directories.write_changed(&mut copy.rest);
        files.write_changed(&mut copy.rest);
        references.write_changed(&mut copy.rest);
        copy.rest.u8(END);
        copy.rest
    }

    /// Stops noting what changes: nothing comes of what was written.
    pub fn abandon_past_copy(&mut self) {
        let Snapshots { directories, files, references, .. } = &mut self.snapshots;
        (directories.changed, files.changed, references.changed) = (None, None, None);
    }
}

/// What was written down.
#[derive(Debug, Default)]
pub struct PastTables {
    pub(super) directories: Kept<Vec<DirectoryDiff>>,
    pub(super) files: Kept<FileDiffs>,
    pub(super) references: Kept<References>,
}

impl PastTables {
    /// Reads it back.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn restore(rest: &mut RestReader<'_>) -> Result<PastTables, Malformed> {
        let mut tables = PastTables::default();
        loop {
            let tag = rest.u8()?;
            if tag == END {
                return Ok(tables);
            }
            let inode = InodeHandle::from_raw(rest.u32()?).ok_or(Malformed("an inode with a past"))?;
            let known = tables.directories.read_entry(tag, inode, rest)?
                || tables.files.read_entry(tag, inode, rest)?
                || tables.references.read_entry(tag, inode, rest)?;
            if !known {
                return Err(Malformed("an entry of the past"));
            }
        }
    }
}
