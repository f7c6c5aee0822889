//! The store's naive twin: maps of natural values. What the packed store must agree with after any sequence of calls.

use crate::{BlockInfo, Inode, InodeHandle, KindTag, Replica};
use std::collections::HashMap;
use vocab::{BlockId, GenerationStamp, InodeId};

pub(super) struct TwinInode {
    pub(super) inode: Inode,
    pub(super) name: Vec<u8>,
    pub(super) blocks: Vec<u32>,
}

pub(super) struct TwinBlock {
    pub(super) info: BlockInfo,
    pub(super) file: Option<InodeHandle>,
    pub(super) replicas: Vec<Replica>,
}

/// Inodes go by the packed store's handles, blocks by numbers of the twin's own.
#[derive(Default)]
pub(super) struct Twin {
    pub(super) inodes: HashMap<InodeHandle, TwinInode>,
    pub(super) blocks: HashMap<u32, TwinBlock>,
    pub(super) inode_ids: HashMap<InodeId, InodeHandle>,
    pub(super) block_ids: HashMap<(bool, BlockId), u32>,
    pub(super) limit: GenerationStamp,
    next: u32,
}

impl Twin {
    fn key(&self, info: &BlockInfo) -> (bool, BlockId) {
        let legacy = info.block.stamp < self.limit;
        (legacy, if info.block.id.is_striped() && !legacy { info.block.id.group() } else { info.block.id })
    }

    pub(super) fn add_inode(&mut self, h: InodeHandle, inode: &Inode, name: &[u8]) {
        let old = self.inodes.insert(h, TwinInode { inode: inode.clone(), name: name.to_vec(), blocks: Vec::new() });
        assert!(old.is_none(), "{h:?} given out twice");
        if inode.kind.tag() != KindTag::Reference {
            self.inode_ids.insert(inode.id, h);
        }
    }
    pub(super) fn edit_inode(&mut self, h: InodeHandle, edit: impl FnOnce(&mut Inode)) {
        let inode = &mut self.inodes.get_mut(&h).unwrap().inode;
        let before = inode.clone();
        edit(inode);
        let after = inode.clone();
        let indexed = |i: &Inode| i.kind.tag() != KindTag::Reference;
        if before.id != after.id || indexed(&before) != indexed(&after) {
            if self.inode_ids.get(&before.id) == Some(&h) {
                self.inode_ids.remove(&before.id);
            }
            if indexed(&after) {
                self.inode_ids.insert(after.id, h);
            }
        }
    }
    pub(super) fn remove_inode(&mut self, h: InodeHandle) -> Vec<u32> {
        let blocks = self.take_blocks(h);
        let id = self.inodes.remove(&h).unwrap().inode.id;
        if self.inode_ids.get(&id) == Some(&h) {
            self.inode_ids.remove(&id);
        }
        blocks
    }

    pub(super) fn push_block(&mut self, h: InodeHandle, info: &BlockInfo) -> u32 {
        let b = self.add_block(info);
        self.blocks.get_mut(&b).unwrap().file = Some(h);
        self.inodes.get_mut(&h).unwrap().blocks.push(b);
        b
    }
    pub(super) fn add_block(&mut self, info: &BlockInfo) -> u32 {
        self.next += 1;
        self.blocks.insert(self.next, TwinBlock { info: *info, file: None, replicas: Vec::new() });
        self.block_ids.insert(self.key(info), self.next);
        self.next
    }
    fn detach(&mut self, b: u32) {
        let block = self.blocks.get_mut(&b).unwrap();
        (block.file, block.info.deleted) = (None, true);
    }
    pub(super) fn remove_last_block(&mut self, h: InodeHandle) -> Option<u32> {
        let b = self.inodes.get_mut(&h).unwrap().blocks.pop()?;
        self.detach(b);
        Some(b)
    }
    pub(super) fn take_blocks(&mut self, h: InodeHandle) -> Vec<u32> {
        let list = std::mem::take(&mut self.inodes.get_mut(&h).unwrap().blocks);
        list.iter().for_each(|b| self.detach(*b));
        list
    }
    pub(super) fn move_blocks(&mut self, from: InodeHandle, to: InodeHandle) {
        let list = std::mem::take(&mut self.inodes.get_mut(&from).unwrap().blocks);
        list.iter().for_each(|b| self.blocks.get_mut(b).unwrap().file = Some(to));
        self.inodes.get_mut(&to).unwrap().blocks.extend(list);
    }
    pub(super) fn edit_block(&mut self, b: u32, edit: impl FnOnce(&mut BlockInfo)) {
        let mut info = self.blocks[&b].info;
        let before = self.key(&info);
        edit(&mut info);
        self.blocks.get_mut(&b).unwrap().info = info;
        let after = self.key(&info);
        if before != after {
            if self.block_ids.get(&before) == Some(&b) {
                self.block_ids.remove(&before);
            }
            self.block_ids.insert(after, b);
        }
    }
    pub(super) fn remove_block(&mut self, b: u32) {
        let block = self.blocks.remove(&b).unwrap();
        let key = self.key(&block.info);
        if self.block_ids.get(&key) == Some(&b) {
            self.block_ids.remove(&key);
        }
    }
    pub(super) fn find_block(&self, id: BlockId) -> Option<u32> {
        let legacy = self.block_ids.get(&(true, id));
        let other = if id.is_striped() { id.group() } else { id };
        legacy.or_else(|| self.block_ids.get(&(false, other))).copied()
    }

    pub(super) fn add_replica(&mut self, b: u32, replica: Replica) -> bool {
        let list = &mut self.blocks.get_mut(&b).unwrap().replicas;
        match list.iter_mut().find(|r| r.storage == replica.storage && r.index == replica.index) {
            Some(old) => {
                *old = replica;
                false
            }
            None => {
                list.push(replica);
                true
            }
        }
    }
    pub(super) fn retain_replicas(&mut self, b: u32, keep: impl Fn(&Replica) -> bool) -> bool {
        let list = &mut self.blocks.get_mut(&b).unwrap().replicas;
        let before = list.len();
        list.retain(keep);
        list.len() != before
    }
}
