//! Purpose: the one transition, for live calls, restart and standby alike.
//! Called by: ops (after the append), storage (replay).
//! Calls: namespace, blocks (through the joint), record.
//! Never: fails, invents an id, a stamp or a time, or walks a path again.
//! Invariants: everything comes from the record, the fitted handles and the policy.

pub(crate) mod attributes;
mod caches;
mod files;
mod snapshots;
mod tree;

use crate::fit::Plan;
use crate::{Applied, Effect, Effects, Fitted, Mode, State};
use edit::Record;
use vocab::{Policy, RpcIds};

/// The inputs of a transition that are the same for all records.
pub(crate) struct Context<'a> {
    pub policy: &'a Policy,
    pub mode: Mode,
    pub effects: &'a mut Effects,
}

impl State {
    /// Applies a record that fits. Cannot fail and invents nothing: ids, stamps and times come from the record.
    pub fn apply(
        &mut self,
        record: &Record<'_>,
        fitted: Fitted,
        policy: &Policy,
        mode: Mode,
        effects: &mut Effects,
    ) -> Applied {
        if self.tree.has_cleanup() && self.waits_for_cleanup(&fitted.plan) {
            self.end_cleanup();
        }
        let cx = &mut Context { policy, mode, effects };
        match (record, fitted.plan) {
            (Record::Add(add), Plan::Create { parent, replaces }) => self.apply_create(cx, add, parent, replaces),
            (Record::Add(add), Plan::Inode(file)) => self.apply_reopen(cx, add, file),
            (Record::Close(close), Plan::Inode(file)) => self.apply_close(cx, close, file),
            (Record::AddBlock { penultimate, last, rpc, .. }, Plan::Inode(file)) => {
                self.apply_add_block(cx, file, penultimate.as_ref(), *last, *rpc)
            }
            (Record::UpdateBlocks { blocks, rpc, .. }, Plan::Inode(file)) => {
                self.apply_update_blocks(cx, file, blocks, *rpc)
            }
            (Record::Append { client_name, client_machine, new_block, rpc, .. }, Plan::Inode(file)) => {
                self.apply_append(cx, file, client_name, client_machine, *new_block, *rpc)
            }
            (Record::Truncate { client_name, client_machine, new_length, time, block, .. }, Plan::Inode(file)) => {
                self.apply_truncate(file, client_name, client_machine, *new_length, *time, block.as_ref())
            }
            (Record::Concat { time, rpc, .. }, Plan::Concat { target, sources }) => {
                self.apply_concat(cx, target, &sources, *time, *rpc)
            }
            (Record::ReassignLease { new_holder, .. }, Plan::Inode(file)) => {
                self.tree.reassign(&self.store, file, new_holder);
                cx.effects.push(Effect::LeaseReassigned(self.store.inode_id(file)));
                self.applied(file)
            }
            (Record::Mkdir { inode_id, .. }, Plan::RaiseInode) => {
                self.raise_inode(*inode_id);
                Applied::default()
            }
            (
                Record::AllowSnapshot { .. }
                | Record::DisallowSnapshot { .. }
                | Record::CreateSnapshot { .. }
                | Record::DeleteSnapshot { .. }
                | Record::RenameSnapshot { .. },
                Plan::Inode(directory),
            ) => self.apply_snapshots(cx, record, directory),
            (_, Plan::Tables) => self.apply_tables(cx, record),
            (_, plan) => self.apply_tree(cx, record, plan),
        }
    }

    /// Whether a change touches what the deletion of a snapshot under way may have to do with: then that comes to its end first, so that both leave
    /// what they leave in a replay.
    fn waits_for_cleanup(&self, plan: &Plan) -> bool {
        let waits = |inode: &record::InodeHandle| self.tree.waits_for_cleanup(&self.store, *inode);
        match plan {
            Plan::Tables | Plan::RaiseInode => false,
            Plan::Create { parent, replaces } => self.waits_for_entry(*parent) || replaces.as_ref().is_some_and(waits),
            Plan::Inode(inode) | Plan::Delete(inode) => waits(inode),
            Plan::Rename { inode, parent, replaces, .. } => {
                waits(inode) || self.waits_for_entry(*parent) || replaces.as_ref().is_some_and(waits)
            }
            Plan::Concat { target, sources } => waits(target) || sources.iter().any(waits),
        }
    }

    /// The same of a new entry of a directory: it may be above the one whose snapshot goes.
    fn waits_for_entry(&self, parent: record::InodeHandle) -> bool {
        self.tree.has_past_above(&self.store, parent)
    }

    /// Ends the deletion of a snapshot that is under way.
    pub fn end_cleanup(&mut self) {
        while self.tree.has_cleanup() {
            // not much more than that
            self.free_detached(crate::joint::FREED_AT_ONCE);
        }
    }

    fn applied(&self, inode: record::InodeHandle) -> Applied {
        Applied { inode: Some(self.store.inode_id(inode)), removed: 0 }
    }

    fn raise_inode(&mut self, id: vocab::InodeId) {
        self.sequences.inode = self.sequences.inode.max(id);
    }

    fn remember(&mut self, cx: &Context<'_>, rpc: Option<RpcIds>, payload: crate::RetryPayload) {
        if let Some(ids) = rpc.filter(|_| cx.policy.retry_cache) {
            self.retry.insert(ids, payload);
        }
    }

    /// Cuts an inode off and frees small subtrees at once. Gives how many inodes went so far.
    fn remove(&mut self, cx: &mut Context<'_>, inode: record::InodeHandle) -> u64 {
        self.tree.detach(&mut self.store, inode);
        self.free_first(cx)
    }

    /// Frees what little there is of what waits for it; the rest goes in slices. Gives how many inodes went.
    fn free_first(&mut self, cx: &mut Context<'_>) -> u64 {
        let removed = self.free_detached(self.freed_at_once(cx));
        self.free_later(cx);
        removed
    }

    /// How many inodes and blocks may be freed in the hold of a record.
    fn freed_at_once(&self, cx: &Context<'_>) -> u64 {
        if cx.mode == Mode::Live { self.freed_at_once } else { u64::MAX }
    }

    /// Lets what waits be freed in slices.
    fn free_later(&self, cx: &mut Context<'_>) {
        if self.tree.has_detached() {
            cx.effects.push(Effect::Reclaim);
        }
    }
}
