//! The store written down: its page sets, and the shared values beside them.

use super::{BlockClass, FileClass, Store};
use crate::StorageNumber;
use crate::distinct::{Distinct, Value};
use mem::arena::Arena;
use mem::bytes::Bytes;
use mem::index::ids::IdIndex;
use mem::index::table::Table;
use mem::intern::Interner;
use mem::lists::Lists;
use mem::page::Pages;
use mem::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use mem::side::SideTable;
use vocab::GenerationStamp;

/// A value of few fields, written field by field.
trait Plain: Sized {
    fn put(&self, rest: &mut RestWriter);
    fn take(rest: &mut RestReader<'_>) -> Result<Self, Malformed>;
}

impl Plain for (u32, u32) {
    fn put(&self, rest: &mut RestWriter) {
        rest.u32(self.0);
        rest.u32(self.1);
    }
    fn take(rest: &mut RestReader<'_>) -> Result<(u32, u32), Malformed> {
        Ok((rest.u32()?, rest.u32()?))
    }
}
impl Plain for FileClass {
    fn put(&self, rest: &mut RestWriter) {
        let FileClass { block_size, replication, storage_policy, erasure_coding_policy } = *self;
        rest.u64(block_size);
        rest.u16(replication);
        rest.u8(storage_policy);
        rest.u8(erasure_coding_policy);
    }
    fn take(rest: &mut RestReader<'_>) -> Result<FileClass, Malformed> {
        Ok(FileClass {
            block_size: rest.u64()?,
            replication: rest.u16()?,
            storage_policy: rest.u8()?,
            erasure_coding_policy: rest.u8()?,
        })
    }
}
impl Plain for BlockClass {
    fn put(&self, rest: &mut RestWriter) {
        let BlockClass { replication, storage_policy, erasure_coding_policy } = *self;
        rest.u16(replication);
        rest.u8(storage_policy);
        rest.u8(erasure_coding_policy);
    }
    fn take(rest: &mut RestReader<'_>) -> Result<BlockClass, Malformed> {
        Ok(BlockClass { replication: rest.u16()?, storage_policy: rest.u8()?, erasure_coding_policy: rest.u8()? })
    }
}
fn put_all<'a, T: Plain + 'a>(rest: &mut RestWriter, values: impl ExactSizeIterator<Item = &'a T>) {
    rest.length(values.len());
    values.for_each(|value| value.put(rest));
}
fn take_distinct<T: Plain + Value>(rest: &mut RestReader<'_>, bits: u32) -> Result<Distinct<T>, Malformed> {
    let values = (0..rest.length(4)?).map(|_| T::take(rest)).collect::<Result<Vec<T>, _>>()?;
    Distinct::from_values(bits, &values).ok_or(Malformed("distinct values"))
}
impl Persist for Store {
    fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.inodes.page_sets(sets);
        self.blocks.page_sets(sets);
        self.names.page_sets(sets);
        self.lists.page_sets(sets);
        self.inode_ids.page_sets(sets);
        self.block_ids.page_sets(sets);
        self.striped_ids.page_sets(sets);
        self.legacy_ids.page_sets(sets);
        self.wide_inodes.page_sets(sets);
        self.wide_blocks.page_sets(sets);
    }
    fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.inodes.page_sets_mut(sets);
        self.blocks.page_sets_mut(sets);
        self.names.page_sets_mut(sets);
        self.lists.page_sets_mut(sets);
        self.inode_ids.page_sets_mut(sets);
        self.block_ids.page_sets_mut(sets);
        self.striped_ids.page_sets_mut(sets);
        self.legacy_ids.page_sets_mut(sets);
        self.wide_inodes.page_sets_mut(sets);
        self.wide_blocks.page_sets_mut(sets);
    }

    /// All but the floor of storage numbers: who writes a store down knows which numbers are out, see [`Store::set_storage_floor`].
    fn write_rest(&self, rest: &mut RestWriter) {
        let Store { inodes, blocks, names, lists, inode_ids, block_ids, striped_ids, legacy_ids, .. } = self;
        let Store { users, groups, owners, file_classes, block_classes, wide_inodes, wide_blocks, .. } = self;
        let Store { legacy_limit, fused, storage_floor: _, .. } = self;
        inodes.write_rest(rest);
        blocks.write_rest(rest);
        names.write_rest(rest);
        lists.write_rest(rest);
        inode_ids.write_rest(rest);
        block_ids.write_rest(rest);
        striped_ids.write_rest(rest);
        legacy_ids.write_rest(rest);
        users.write_rest(rest);
        groups.write_rest(rest);
        put_all(rest, owners.values().iter());
        put_all(rest, file_classes.values().iter());
        put_all(rest, block_classes.values().iter());
        wide_inodes.write_rest(rest);
        wide_blocks.write_rest(rest);
        rest.i64(legacy_limit.0);
        rest.u64(*fused);
    }

    fn restore(pages: &mut PageSets, rest: &mut RestReader<'_>) -> Result<Store, Malformed> {
        let store = Store {
            inodes: Arena::restore(pages, rest)?,
            blocks: Arena::restore(pages, rest)?,
            names: Bytes::restore(pages, rest)?,
            lists: Lists::restore(pages, rest)?,
            inode_ids: IdIndex::restore(pages, rest)?,
            block_ids: IdIndex::restore(pages, rest)?,
            striped_ids: IdIndex::restore(pages, rest)?,
            legacy_ids: Table::restore(pages, rest)?,
            users: Interner::restore(rest)?,
            groups: Interner::restore(rest)?,
            owners: take_distinct(rest, super::OWNER_BITS)?,
            file_classes: take_distinct(rest, super::CLASS_BITS)?,
            block_classes: take_distinct(rest, super::CLASS_BITS)?,
            wide_inodes: SideTable::restore(pages, rest)?,
            wide_blocks: SideTable::restore(pages, rest)?,
            legacy_limit: GenerationStamp(rest.i64()?),
            fused: rest.u64()?,
            storage_floor: StorageNumber(0),
        };
        if store.users.is_empty() || store.groups.is_empty() {
            return Err(Malformed("the empty name"));
        }
        Ok(store)
    }
}

impl Store {
    /// Replicas on storages with numbers below this one are of an earlier incarnation of the server, whose numbers say nothing now: they are seen by
    /// nobody, and the first change of a block's replicas drops them. For a store that was restored.
    pub fn set_storage_floor(&mut self, floor: StorageNumber) {
        self.storage_floor = floor;
    }
    /// What [`Store::set_storage_floor`] set; 0 for a store that was not restored.
    pub fn storage_floor(&self) -> StorageNumber {
        self.storage_floor
    }
}
