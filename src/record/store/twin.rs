//! The store: owner of every record, name and index.

use crate::{
    BlockHandle, BlockInfo, Blocks, Features, GroupId, Inode, InodeHandle, InodeKind, KindTag, Replica, Replicas,
    StorageNumber, UserId,
};
use std::collections::HashMap;
use std::sync::Arc;
use vocab::{BlockId, GenerationStamp, InodeId, Mode};

struct InodeEntry {
    inode: Inode,
    name: Vec<u8>,
    blocks: Blocks,
}

struct BlockEntry {
    info: BlockInfo,
    file: Option<InodeHandle>,
    replicas: Replicas,
}

/// All inodes and blocks of the file system. Handles that do not name a live record are broken invariants: calls with them panic.
pub struct Store {
    inodes: Vec<Option<InodeEntry>>,
    blocks: Vec<Option<BlockEntry>>,
    inode_ids: HashMap<InodeId, InodeHandle>,
    block_ids: HashMap<BlockId, BlockHandle>,
    users: Vec<Arc<str>>,
    groups: Vec<Arc<str>>,
    legacy_limit: GenerationStamp,
}

impl Default for Store {
    fn default() -> Store {
        Store::new()
    }
}

fn intern(list: &mut Vec<Arc<str>>, name: &str) -> u32 {
    if let Some(at) = list.iter().position(|n| &**n == name) {
        return at as u32;
    }
    list.push(name.into());
    (list.len() - 1) as u32
}

impl Store {
    /// An empty store: not even a root.
    pub fn new() -> Store {
        Store {
            inodes: vec![None],
            blocks: vec![None],
            inode_ids: HashMap::new(),
            block_ids: HashMap::new(),
            users: vec!["".into()],
            groups: vec!["".into()],
            legacy_limit: GenerationStamp(0),
        }
    }
    /// Makes room for so many inodes and blocks, so that loading them does not grow anything.
    pub fn reserve(&mut self, inodes: u64, blocks: u64) {
        self.inodes.reserve(inodes as usize);
        self.blocks.reserve(blocks as usize);
    }
    fn entry(&self, h: InodeHandle) -> &InodeEntry {
        self.inodes[h.raw() as usize].as_ref().expect("a live inode")
    }
    fn entry_mut(&mut self, h: InodeHandle) -> &mut InodeEntry {
        self.inodes[h.raw() as usize].as_mut().expect("a live inode")
    }
    fn block_entry(&self, h: BlockHandle) -> &BlockEntry {
        self.blocks[h.raw() as usize].as_ref().expect("a live block")
    }
    fn block_entry_mut(&mut self, h: BlockHandle) -> &mut BlockEntry {
        self.blocks[h.raw() as usize].as_mut().expect("a live block")
    }

    // ---- inodes

    /// Adds an inode with its name (empty for the root) and enters it into the id index, unless it is a reference.
    /// An older inode of the same id loses its place in the index.
    pub fn add_inode(&mut self, inode: &Inode, name: &[u8]) -> InodeHandle {
        self.inodes.push(Some(InodeEntry { inode: inode.clone(), name: name.to_vec(), blocks: Blocks::new() }));
        let h = InodeHandle::from_raw((self.inodes.len() - 1) as u32).expect("not zero");
        if inode.kind.tag() != KindTag::Reference {
            self.inode_ids.insert(inode.id, h);
        }
        h
    }
    /// The inode, copied out.
    pub fn inode(&self, h: InodeHandle) -> Inode {
        self.entry(h).inode.clone()
    }
    /// Changes an inode. The id index follows a change of id; a file's blocks leave the fused form where the new features ask for it.
    /// The kind may change only for inodes without blocks.
    pub fn edit_inode(&mut self, h: InodeHandle, edit: impl FnOnce(&mut Inode)) {
        let mut inode = self.inode(h);
        let before = inode.id;
        edit(&mut inode);
        assert!(
            inode.kind.tag() == KindTag::File || self.entry(h).blocks.is_empty(),
            "an inode with blocks must stay a file"
        );
        if self.inode_ids.get(&before) == Some(&h) {
            self.inode_ids.remove(&before);
        }
        if inode.kind.tag() != KindTag::Reference {
            self.inode_ids.insert(inode.id, h);
        }
        self.entry_mut(h).inode = inode;
    }
    /// What the inode is.
    pub fn kind(&self, h: InodeHandle) -> KindTag {
        self.entry(h).inode.kind.tag()
    }
    /// Its id.
    pub fn inode_id(&self, h: InodeHandle) -> InodeId {
        self.entry(h).inode.id
    }
    /// Its parent.
    pub fn parent(&self, h: InodeHandle) -> Option<InodeHandle> {
        self.entry(h).inode.parent
    }
    /// Moves it under another parent (only the link upwards; child lists are the namespace's).
    pub fn set_parent(&mut self, h: InodeHandle, parent: Option<InodeHandle>) {
        self.entry_mut(h).inode.parent = parent;
    }
    /// Its permission bits.
    pub fn mode(&self, h: InodeHandle) -> Mode {
        self.entry(h).inode.mode
    }
    /// Owner and group.
    pub fn owner(&self, h: InodeHandle) -> (UserId, GroupId) {
        (self.entry(h).inode.user, self.entry(h).inode.group)
    }
    /// Its features.
    pub fn features(&self, h: InodeHandle) -> Features {
        self.entry(h).inode.features
    }
    /// Changes the features only; the same as through [`Store::edit_inode`].
    pub fn set_features(&mut self, h: InodeHandle, features: Features) {
        self.edit_inode(h, |i| i.features = features);
    }
    /// Child list and child count of a directory; zeros for anything else.
    pub fn children(&self, h: InodeHandle) -> (u32, u32) {
        match self.entry(h).inode.kind {
            InodeKind::Directory { children, child_count, .. } => (children, child_count),
            _ => (0, 0),
        }
    }
    /// Sets child list and child count of a directory.
    pub fn set_children(&mut self, h: InodeHandle, list: u32, count: u32) {
        match &mut self.entry_mut(h).inode.kind {
            InodeKind::Directory { children, child_count, .. } => (*children, *child_count) = (list, count),
            _ => panic!("children of an inode that is no directory"),
        }
    }
    /// What a reference stands for; `None` for anything else.
    pub fn referred(&self, h: InodeHandle) -> Option<InodeHandle> {
        match self.entry(h).inode.kind {
            InodeKind::Reference { referred, .. } => Some(referred),
            _ => None,
        }
    }
    /// Its name.
    pub fn name(&self, h: InodeHandle) -> &[u8] {
        &self.entry(h).name
    }
    /// Gives it another name.
    pub fn rename(&mut self, h: InodeHandle, new_name: &[u8]) {
        self.entry_mut(h).name = new_name.to_vec();
    }
    /// The inode of an id.
    pub fn find_inode(&self, id: InodeId) -> Option<InodeHandle> {
        self.inode_ids.get(&id).copied()
    }
    /// Removes an inode, its name and its place in the id index. Blocks still attached are detached as by [`Store::take_blocks`].
    pub fn remove_inode(&mut self, h: InodeHandle) {
        self.take_blocks(h);
        let entry = self.inodes[h.raw() as usize].take().expect("a live inode");
        if self.inode_ids.get(&entry.inode.id) == Some(&h) {
            self.inode_ids.remove(&entry.inode.id);
        }
    }
    /// How many inodes there are, references included.
    pub fn inode_count(&self) -> u64 {
        self.inodes.iter().flatten().count() as u64
    }
    /// All inodes in arena order, references included.
    pub fn inodes(&self) -> impl Iterator<Item = InodeHandle> + '_ {
        self.inodes.iter().enumerate().filter(|(_, e)| e.is_some()).filter_map(|(i, _)| InodeHandle::from_raw(i as u32))
    }

    // ---- owners

    /// The serial number of a user, new if need be.
    pub fn intern_user(&mut self, name: &str) -> UserId {
        UserId(intern(&mut self.users, name))
    }
    /// The serial number of a group, new if need be.
    pub fn intern_group(&mut self, name: &str) -> GroupId {
        GroupId(intern(&mut self.groups, name))
    }
    /// Name of a user; the empty one for a number never given out.
    pub fn user_name(&self, id: UserId) -> &Arc<str> {
        self.users.get(id.0 as usize).unwrap_or(&self.users[0])
    }
    /// Name of a group; the empty one for a number never given out.
    pub fn group_name(&self, id: GroupId) -> &Arc<str> {
        self.groups.get(id.0 as usize).unwrap_or(&self.groups[0])
    }
    /// The serial number of a user that is known already.
    pub fn find_user(&self, name: &str) -> Option<UserId> {
        self.users.iter().position(|n| &**n == name).map(|i| UserId(i as u32))
    }
    /// The serial number of a group that is known already.
    pub fn find_group(&self, name: &str) -> Option<GroupId> {
        self.groups.iter().position(|n| &**n == name).map(|i| GroupId(i as u32))
    }

    // ---- blocks of a file

    /// The blocks of a file, in order; empty for anything else.
    pub fn blocks_of(&self, h: InodeHandle) -> Blocks {
        self.entry(h).blocks.clone()
    }
    /// How many blocks a file has.
    pub fn block_count_of(&self, h: InodeHandle) -> usize {
        self.entry(h).blocks.len()
    }
    /// The `at`th block of a file.
    pub fn block_at(&self, h: InodeHandle, at: usize) -> Option<BlockHandle> {
        self.entry(h).blocks.get(at).copied()
    }
    /// The last block of a file.
    pub fn last_block(&self, h: InodeHandle) -> Option<BlockHandle> {
        self.entry(h).blocks.last().copied()
    }
    /// Appends a block to a file and enters it into its index. `info.file` is set to the file, whatever it says.
    pub fn push_block(&mut self, h: InodeHandle, info: &BlockInfo) -> BlockHandle {
        assert!(self.kind(h) == KindTag::File, "blocks belong to files");
        let b = self.add_block(info);
        self.block_entry_mut(b).file = Some(h);
        self.entry_mut(h).blocks.push(b);
        b
    }
    /// Adds a block that belongs to no file (yet). `info.file` is ignored.
    pub fn add_block(&mut self, info: &BlockInfo) -> BlockHandle {
        self.blocks.push(Some(BlockEntry {
            info: BlockInfo { file: None, ..*info },
            file: None,
            replicas: Replicas::new(),
        }));
        let b = BlockHandle::from_raw((self.blocks.len() - 1) as u32).expect("not zero");
        self.block_ids.insert(self.index_id(info), b);
        b
    }
    /// Cuts the last block off: it belongs to no file now and is marked deleted, but stays until [`Store::remove_block`].
    pub fn remove_last_block(&mut self, h: InodeHandle) -> Option<BlockHandle> {
        let b = self.entry_mut(h).blocks.pop()?;
        self.detach(b);
        Some(b)
    }
    /// Cuts all blocks off a file, as [`Store::remove_last_block`] does.
    pub fn take_blocks(&mut self, h: InodeHandle) -> Blocks {
        let list = std::mem::take(&mut self.entry_mut(h).blocks);
        list.iter().for_each(|b| self.detach(*b));
        list
    }
    /// Appends all blocks of `from` to those of `to`; `from` has none afterwards.
    pub fn move_blocks(&mut self, from: InodeHandle, to: InodeHandle) {
        let list = std::mem::take(&mut self.entry_mut(from).blocks);
        for b in &list {
            self.block_entry_mut(*b).file = Some(to);
        }
        self.entry_mut(to).blocks.extend(list);
    }
    /// Replaces a file's list of blocks and nothing else: neither the blocks that leave it nor those that enter are touched (snapshot diffs
    /// hold some of them on). To be followed by [`Store::set_block_file`] where ownership changes. The list as it was is returned.
    pub fn set_blocks(&mut self, h: InodeHandle, list: &[BlockHandle]) -> Blocks {
        std::mem::replace(&mut self.entry_mut(h).blocks, Blocks::from_slice(list))
    }
    /// Sets or clears the file that a block belongs to, without touching any list; clearing does not mark it deleted.
    pub fn set_block_file(&mut self, b: BlockHandle, file: Option<InodeHandle>) {
        self.block_entry_mut(b).file = file;
    }
    fn detach(&mut self, b: BlockHandle) {
        let entry = self.block_entry_mut(b);
        entry.file = None;
        entry.info.deleted = true;
    }
    /// Puts the only block of a file into the file's own record where that is possible: complete, contiguous, at most three replicas,
    /// neither construction nor snapshot diffs. To be called when a file is closed and after it was loaded. Handles of the block end here.
    pub fn settle(&mut self, _h: InodeHandle) {}

    // ---- blocks

    fn index_id(&self, info: &BlockInfo) -> BlockId {
        if info.block.id.is_striped() && info.block.stamp >= self.legacy_limit {
            info.block.id.group()
        } else {
            info.block.id
        }
    }
    /// The block of an id; for an internal block of a striped group, the group.
    pub fn find_block(&self, id: BlockId) -> Option<BlockHandle> {
        self.block_ids.get(&id).or_else(|| self.block_ids.get(&id.group()).filter(|_| id.is_striped())).copied()
    }
    /// The block, copied out.
    pub fn block(&self, b: BlockHandle) -> BlockInfo {
        let entry = self.block_entry(b);
        BlockInfo { file: entry.file.map(|f| self.inode_id(f)), ..entry.info }
    }
    /// The file that a block belongs to.
    pub fn block_file(&self, b: BlockHandle) -> Option<InodeHandle> {
        self.block_entry(b).file
    }
    /// Changes a block; its index follows a change of id or stamp. `file` cannot be changed here.
    pub fn edit_block(&mut self, b: BlockHandle, edit: impl FnOnce(&mut BlockInfo)) {
        let mut info = self.block(b);
        let before = self.index_id(&info);
        edit(&mut info);
        if self.block_ids.get(&before) == Some(&b) {
            self.block_ids.remove(&before);
        }
        self.block_ids.insert(self.index_id(&info), b);
        self.block_entry_mut(b).info = info;
    }
    /// Frees a block and its index entry. It must belong to no list (detached, or the holder drops the list).
    pub fn remove_block(&mut self, b: BlockHandle) {
        let entry = self.blocks[b.raw() as usize].take().expect("a live block");
        let id = self.index_id(&entry.info);
        if self.block_ids.get(&id) == Some(&b) {
            self.block_ids.remove(&id);
        }
    }
    /// How many blocks there are, detached ones included.
    pub fn block_count(&self) -> u64 {
        self.blocks.iter().flatten().count() as u64
    }
    /// All blocks, in no order that means anything.
    pub fn blocks(&self) -> impl Iterator<Item = BlockHandle> + '_ {
        self.blocks.iter().enumerate().filter(|(_, e)| e.is_some()).filter_map(|(i, _)| BlockHandle::from_raw(i as u32))
    }
    /// Blocks with a stamp below this one are of the time of random ids (`genstampV1Limit`). To be set before blocks are added.
    pub fn set_legacy_limit(&mut self, limit: GenerationStamp) {
        self.legacy_limit = limit;
    }

    // ---- replicas

    /// Replicas of a block, in the order they were added.
    pub fn replicas(&self, b: BlockHandle) -> Replicas {
        self.block_entry(b).replicas.clone()
    }
    /// How many replicas are recorded.
    pub fn replica_count(&self, b: BlockHandle) -> usize {
        self.block_entry(b).replicas.len()
    }
    /// Records a replica. `false` if one of the same storage and index is there already; its flags are set anew.
    pub fn add_replica(&mut self, b: BlockHandle, replica: Replica) -> bool {
        let list = &mut self.block_entry_mut(b).replicas;
        if let Some(old) = list.iter_mut().find(|r| r.storage == replica.storage && r.index == replica.index) {
            *old = replica;
            return false;
        }
        list.push(replica);
        true
    }
    /// Forgets all replicas of a block on this storage. `false` if there is none.
    pub fn remove_replica(&mut self, b: BlockHandle, storage: StorageNumber) -> bool {
        let list = &mut self.block_entry_mut(b).replicas;
        let before = list.len();
        list.retain(|r| r.storage != storage);
        list.len() != before
    }
    /// Forgets one internal block of a striped group on this storage. `false` if there is none.
    pub fn remove_internal_replica(&mut self, b: BlockHandle, storage: StorageNumber, index: u8) -> bool {
        let list = &mut self.block_entry_mut(b).replicas;
        let before = list.len();
        list.retain(|r| r.storage != storage || r.index != index);
        list.len() != before
    }
    /// Sets all replicas of a block at once.
    pub fn set_replicas(&mut self, b: BlockHandle, replicas: &[Replica]) {
        self.block_entry_mut(b).replicas = Replicas::from_slice(replicas);
    }

    /// Lets slots that were freed before the tick before this one be used again. The owner calls it about once a second.
    pub fn tick(&mut self) {}
}
