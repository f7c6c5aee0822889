//! Files: created, written, closed, appended to, cut, joined.

use super::Context;
use crate::{Applied, Mode, RetryPayload, State};
use edit::record::AddClose;
use record::{Features, Inode, InodeHandle, InodeKind};
use vocab::erasure_coding::REPLICATION;
use vocab::{Block, BlockState, Mode as Permissions, RpcIds, TimeMs};

impl State {
    pub(super) fn apply_create(
        &mut self,
        cx: &mut Context<'_>,
        add: &AddClose<'_>,
        parent: InodeHandle,
        replaces: Option<InodeHandle>,
    ) -> Applied {
        let mut removed = 0;
        if let Some(old) = replaces {
            removed = self.remove_at(cx, old, Some(add.mtime));
        }
        let kind = InodeKind::File {
            replication: match add.erasure_coding_policy {
                REPLICATION => add.replication.clamp(cx.policy.replication_min, cx.policy.replication_max),
                _ => 1,
            },
            block_size: add.block_size.max(1),
            storage_policy: add.storage_policy,
            erasure_coding_policy: add.erasure_coding_policy,
        };
        let inode = Inode {
            id: add.inode_id,
            parent: None,
            user: self.store.intern_user(&add.permission.user),
            group: self.store.intern_group(&add.permission.group),
            mode: Permissions::new(add.permission.mode),
            mtime: add.mtime,
            atime: add.atime,
            features: Features::NONE,
            kind,
        };
        self.raise_inode(add.inode_id);
        let name = vocab::path::name(&add.path);
        self.tree.capture_arrival(&mut self.store, parent, name);
        let file = self.tree.add(&mut self.store, parent, &inode, name);
        self.tree.touch(&mut self.store, parent, add.mtime);
        if !add.acl.is_empty() {
            self.tree.apply_logical_acl(&mut self.store, file, &add.acl);
        }
        if !add.xattrs.is_empty() {
            self.set_xattrs(file, add.xattrs.clone());
        }
        self.tree.open(&mut self.store, file, &add.client_name, &add.client_machine);
        if !add.blocks.is_empty() {
            self.with_usage(file, 0, |s| s.replace_blocks(file, &add.blocks, false, cx.mode));
        }
        self.remember(cx, add.rpc, RetryPayload::File(add.inode_id));
        Applied { inode: Some(add.inode_id), removed }
    }

    /// OP_ADD of an existing file: the old form of append, or a new block list of an open file.
    pub(super) fn apply_reopen(&mut self, cx: &mut Context<'_>, add: &AddClose<'_>, file: InodeHandle) -> Applied {
        let id = self.store.inode_id(file);
        let was_open = self.is_open(file);
        if !was_open {
            self.capture(file);
        }
        let partial = self.with_usage(file, 0, |s| {
            let partial =
                if was_open { None } else { s.open_for_append(file, &add.client_name, &add.client_machine, false) };
            s.replace_blocks(file, &add.blocks, false, cx.mode);
            partial
        });
        self.store.set_times(file, add.mtime, add.atime);
        if !was_open {
            self.remember(cx, add.rpc, RetryPayload::Append(id, partial));
        }
        self.applied(file)
    }

    pub(super) fn apply_close(&mut self, cx: &mut Context<'_>, close: &AddClose<'_>, file: InodeHandle) -> Applied {
        self.with_usage(file, 0, |s| {
            s.replace_blocks(file, &close.blocks, true, cx.mode);
            // nothing is kept for a snapshot here, as in Hadoop: what it says of a file that was open then is how the file was closed
            s.tree.close(&mut s.store, file);
        });
        self.store.set_times(file, close.mtime, close.atime);
        self.mark_open(file, false);
        for b in self.store.blocks_of(file) {
            self.blocks.block_closed(&mut self.store, b);
        }
        self.store.settle(file);
        self.applied(file)
    }

    /// Replaces the block list of a file by Hadoop's rules: blocks in common are updated, at most one is cut off, new ones are added. All but the
    /// last are complete then; the last one too if `complete`.
    fn replace_blocks(&mut self, file: InodeHandle, new: &[Block], complete: bool, mode: Mode) {
        let old = self.store.block_count_of(file);
        for (i, block) in new.iter().enumerate().take(old) {
            let Some(b) = self.store.block_at(file, i) else { break };
            if complete || i + 1 < new.len() {
                self.finish_block(b, *block, mode);
            } else {
                self.update_block(b, *block);
                self.block_changed(b);
            }
        }
        if new.len() < old {
            self.drop_last_block(file);
        }
        for block in new.iter().skip(old) {
            self.push_block(file, *block, if complete { BlockState::Complete } else { BlockState::UnderConstruction });
        }
    }

    pub(super) fn apply_add_block(
        &mut self,
        cx: &mut Context<'_>,
        file: InodeHandle,
        penultimate: Option<&Block>,
        last: Block,
        rpc: Option<RpcIds>,
    ) -> Applied {
        let from = self.store.block_count_of(file).saturating_sub(1);
        self.with_usage(file, from, |s| {
            if let (Some(block), Some(b)) = (penultimate, s.store.last_block(file)) {
                s.finish_block(b, *block, cx.mode);
            }
            s.push_block(file, last, BlockState::UnderConstruction);
        });
        self.remember(cx, rpc, RetryPayload::Done);
        self.applied(file)
    }

    pub(super) fn apply_update_blocks(
        &mut self,
        cx: &mut Context<'_>,
        file: InodeHandle,
        blocks: &[Block],
        rpc: Option<RpcIds>,
    ) -> Applied {
        self.with_usage(file, 0, |s| s.replace_blocks(file, blocks, false, cx.mode));
        self.remember(cx, rpc, RetryPayload::Done);
        self.applied(file)
    }

    pub(super) fn apply_append(
        &mut self,
        cx: &mut Context<'_>,
        file: InodeHandle,
        client: &str,
        machine: &str,
        new_block: bool,
        rpc: Option<RpcIds>,
    ) -> Applied {
        self.capture(file);
        let from = self.store.block_count_of(file).saturating_sub(1);
        let partial = self.with_usage(file, from, |s| s.open_for_append(file, client, machine, new_block));
        self.remember(cx, rpc, RetryPayload::Append(self.store.inode_id(file), partial));
        self.applied(file)
    }

    /// Opens a closed file; unless a new block is wanted, a last block that is not full is opened too and given back.
    fn open_for_append(&mut self, file: InodeHandle, client: &str, machine: &str, new_block: bool) -> Option<Block> {
        self.tree.open(&mut self.store, file, client, machine);
        let b = self.store.last_block(file);
        self.mark_open(file, true);
        let block_size = self.tree.file_shape(&self.store, file).map(|s| s.block_size);
        let (b, block) = b
            .map(|b| (b, self.store.block_core(b)))
            .filter(|(_, block)| !new_block && Some(block.length) != block_size)?;
        self.reopen_block(b);
        Some(block)
    }

    pub(super) fn apply_truncate(
        &mut self,
        file: InodeHandle,
        client: &str,
        machine: &str,
        new_length: u64,
        time: TimeMs,
        block: Option<&Block>,
    ) -> Applied {
        self.capture_blocks(file);
        self.with_usage(file, 0, |s| {
            s.cut_blocks(file, new_length);
            if let Some(block) = block {
                s.tree.open(&mut s.store, file, client, machine);
                s.mark_open(file, true);
                s.begin_truncate(file, *block, new_length);
            }
        });
        self.store.edit_inode(file, |i| i.mtime = time);
        self.applied(file)
    }

    /// Takes out the blocks that lie beyond a length altogether, empty ones at the end too (Hadoop's `collectBlocksBeyondMax`).
    fn cut_blocks(&mut self, file: InodeHandle, new_length: u64) {
        while let Some(b) = self.store.last_block(file) {
            let length = self.store.block_core(b).length;
            if self.tree.file_length(&self.store, file) - length < new_length {
                break;
            }
            self.drop_last_block(file);
        }
    }

    pub(super) fn apply_concat(
        &mut self,
        cx: &mut Context<'_>,
        target: InodeHandle,
        sources: &[InodeHandle],
        time: TimeMs,
        rpc: Option<RpcIds>,
    ) -> Applied {
        self.capture(target);
        let latest = self.tree.latest_snapshot(&self.store, target);
        let parents: Vec<InodeHandle> = sources.iter().filter_map(|s| self.store.parent(*s)).collect();
        let from = self.store.block_count_of(target).saturating_sub(1);
        let before: Vec<_> = sources.iter().map(|s| self.tree.inode_usage(&self.store, *s)).collect();
        self.with_usage(target, from, |s| s.join_blocks(target, sources));
        for ((source, parent), usage) in sources.iter().zip(parents).zip(before) {
            self.tree.capture_departure(&mut self.store, *source, latest);
            self.tree.remove_emptied(&mut self.store, *source);
            self.tree.add_usage(&self.store, parent, &namespace::quota::negated(&usage));
        }
        self.store.edit_inode(target, |i| i.mtime = time);
        if let Some(parent) = self.store.parent(target) {
            self.tree.touch_captured(&mut self.store, parent, time, latest);
        }
        self.remember(cx, rpc, RetryPayload::Done);
        self.applied(target)
    }

    /// Moves the blocks of the sources to the end of the target; they take its replication.
    fn join_blocks(&mut self, target: InodeHandle, sources: &[InodeHandle]) {
        let Some(shape) = self.tree.file_shape(&self.store, target) else { return };
        for source in sources {
            self.store.move_blocks(*source, target);
        }
        for b in self.store.blocks_of(target) {
            self.set_block_replication(b, shape.replication);
        }
    }
}
