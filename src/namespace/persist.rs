//! The tree written down: child lists and side tables as pages, and beside them what is small. Leases are made anew from the open files.

use crate::children::Lists;
use crate::erasure_coding::Policies;
use crate::reclaim::{Detached, Waiting};
use crate::snapshot::PastTables;
use crate::{Tree, lease};
use mem::page::Pages;
use mem::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use mem::side::SideTable;
use record::{InodeHandle, Store};
use std::sync::Arc;
use vocab::erasure_coding::{ErasureCodingPolicy, PolicyState, Units};

impl Tree {
    /// The page sets, always the same in the same order.
    pub fn page_sets<'a>(&'a self, sets: &mut Vec<&'a Pages>) {
        self.lists.page_sets(sets);
        [&self.acls, &self.xattrs, &self.quotas, &self.constructions, &self.symlinks]
            .into_iter()
            .for_each(|table| table.page_sets(sets));
    }
    /// The same, to freeze them.
    pub fn page_sets_mut<'a>(&'a mut self, sets: &mut Vec<&'a mut Pages>) {
        self.lists.page_sets_mut(sets);
        [&mut self.acls, &mut self.xattrs, &mut self.quotas, &mut self.constructions, &mut self.symlinks]
            .into_iter()
            .for_each(|table| table.page_sets_mut(sets));
    }

    /// Writes down what is not in pages.
    pub fn write_rest(&self, rest: &mut RestWriter) {
        // leases are derived from the open files; a new field has to be decided on here
        let Tree { root, lists, acls, xattrs, quotas, constructions, symlinks, leases: _, detached, .. } = self;
        let Tree { inode_count, snapshots, erasure_coding, zones, .. } = self;
        rest.u32(root.raw());
        lists.write_rest(rest);
        [acls, xattrs, quotas, constructions, symlinks].into_iter().for_each(|table| table.write_rest(rest));
        // nothing is written down in the middle of a snapshot's deletion
        debug_assert!(!self.has_cleanup(), "a snapshot's deletion is under way");
        let subtrees =
            || detached.iter().filter_map(|waiting| if let Waiting::Subtree(job) = waiting { Some(job) } else { None });
        rest.length(subtrees().count());
        subtrees().for_each(|job| job.write_rest(rest));
        rest.u64(*inode_count);
        snapshots.write_rest(rest);
        erasure_coding.write_rest(rest);
        rest.length(zones.len());
        zones.iter().for_each(|zone| rest.u32(zone.raw()));
    }

    /// Rebuilds the tree of a restored store.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn restore(
        store: &Store,
        pages: &mut PageSets,
        rest: &mut RestReader<'_>,
        past: PastTables,
    ) -> Result<Tree, Malformed> {
        let root = InodeHandle::from_raw(rest.u32()?).ok_or(Malformed("a root"))?;
        let mut tree = Tree {
            root,
            lists: Lists::restore(pages, rest)?,
            acls: SideTable::restore(pages, rest)?,
            xattrs: SideTable::restore(pages, rest)?,
            quotas: SideTable::restore(pages, rest)?,
            constructions: SideTable::restore(pages, rest)?,
            symlinks: SideTable::restore(pages, rest)?,
            leases: lease::Leases::default(),
            detached: (0..rest.length(17)?)
                .map(|_| Detached::restore(rest).map(Waiting::Subtree))
                .collect::<Result<_, _>>()?,
            cleanups: 0,
            inode_count: rest.u64()?,
            moves: 0,
            counting: None,
            ways: crate::ways::Ways::default(),
            snapshots: crate::snapshot::Snapshots::restore(rest, past)?,
            erasure_coding: Policies::restore(rest)?,
            zones: (0..rest.length(4)?).map(|_| zone(rest)).collect::<Result<_, _>>()?,
        };
        tree.derive_leases(store);
        tree.recount_past(store);
        Ok(tree)
    }
}

fn zone(rest: &mut RestReader<'_>) -> Result<InodeHandle, Malformed> {
    InodeHandle::from_raw(rest.u32()?).ok_or(Malformed("a zone"))
}

impl Policies {
    /// All but what is soft: which ones were disabled since the start.
    fn write_rest(&self, rest: &mut RestWriter) {
        rest.bool(self.on_directories);
        rest.length(self.all().len());
        for policy in self.all().values() {
            let ErasureCodingPolicy { id, name, codec, units, stripe, options, state } = policy;
            rest.u8(*id);
            rest.text(name);
            rest.text(codec);
            rest.u32(units.data.cast_unsigned());
            rest.u32(units.parity.cast_unsigned());
            rest.u32(stripe.cell_size);
            rest.length(options.len());
            for (key, value) in options {
                rest.text(key);
                rest.text(value);
            }
            rest.u8(*state as u8);
        }
    }
    fn restore(rest: &mut RestReader<'_>) -> Result<Policies, Malformed> {
        let mut policies = Policies::default();
        policies.on_directories = rest.bool()?;
        for _ in 0..rest.length(16)? {
            let (id, name, codec) = (rest.u8()?, rest.text()?.into(), rest.text()?.into());
            let units = Units { data: rest.u32()?.cast_signed(), parity: rest.u32()?.cast_signed() };
            let stripe = units.stripe(rest.u32()?);
            let mut options: Vec<(Arc<str>, Arc<str>)> = Vec::new();
            for _ in 0..rest.length(16)? {
                options.push((rest.text()?.into(), rest.text()?.into()));
            }
            let state = PolicyState::of(rest.u8()?.into()).ok_or(Malformed("a state of a policy"))?;
            policies.insert(ErasureCodingPolicy { id, name, codec, units, stripe, options, state });
        }
        Ok(policies)
    }
}
