//! What a client learns of an inode (Hadoop's `HdfsFileStatus`), and of a file's blocks (`LocatedBlocks`).

use crate::View;
use crate::encryption::FileEncryption;
use blocks::{Located, Reader};
use namespace::Resolved;
use record::{BlockInfo, Features, Inode, InodeHandle, InodeKind, KindTag};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::erasure_coding::ErasureCodingPolicy;
use vocab::{BlockState, InodeId, Mode, SnapshotId, TimeMs};

/// Status of an inode. Borrows names from the state; [`FileStatus::into_owned`] cuts loose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileStatus<'a> {
    /// File, directory or symlink.
    pub kind: KindTag,
    /// Name within the directory that was listed; empty for the path asked for itself.
    pub name: Cow<'a, [u8]>,
    /// Inode id.
    pub id: InodeId,
    /// Length in bytes; 0 for directories.
    pub length: u64,
    /// Replication; 0 for directories.
    pub replication: u16,
    /// Preferred block size in bytes; 0 for directories.
    pub block_size: u64,
    /// Modification time.
    pub mtime: TimeMs,
    /// Access time.
    pub atime: TimeMs,
    /// Permission bits.
    pub mode: Mode,
    /// Owner.
    pub owner: Arc<str>,
    /// Group.
    pub group: Arc<str>,
    /// Target of a symlink.
    pub symlink: Option<Cow<'a, [u8]>>,
    /// Number of children; 0 for files.
    pub children: u32,
    /// Storage policy in effect, 0 if none is set up to the root.
    pub storage_policy: u8,
    /// Marks.
    pub flags: StatusFlags,
    /// Erasure coding policy in effect.
    pub erasure_coding: Option<Cow<'a, ErasureCodingPolicy>>,
    /// How the file is encrypted, if it is.
    pub encryption: Option<Box<FileEncryption>>,
}

/// Marks of a status, numbered as `HdfsFileStatusProto.Flags`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StatusFlags(pub u32);

impl StatusFlags {
    /// The inode has an ACL.
    pub const ACL: u32 = 1;
    /// It is encrypted.
    pub const ENCRYPTED: u32 = 2;
    /// It is erasure coded.
    pub const ERASURE_CODED: u32 = 4;
    /// It is a snapshottable directory.
    pub const SNAPSHOTTABLE: u32 = 8;
}

impl<'a> FileStatus<'a> {
    /// Sets the coding policy in effect, and the flag that says that there is one.
    pub fn set_erasure_coding(&mut self, policy: Option<&'a ErasureCodingPolicy>) {
        self.erasure_coding = policy.map(Cow::Borrowed);
        self.flags.0 &= !StatusFlags::ERASURE_CODED;
        if policy.is_some() {
            self.flags.0 |= StatusFlags::ERASURE_CODED;
        }
    }

    /// The same without borrows.
    pub fn into_owned(self) -> FileStatus<'static> {
        FileStatus {
            name: self.name.into_owned().into(),
            symlink: self.symlink.map(|s| s.into_owned().into()),
            erasure_coding: self.erasure_coding.map(|policy| Cow::Owned(policy.into_owned())),
            ..self
        }
    }

    /// The same for who sees bytes as they are stored: a raw path tells that something is encrypted, but not how.
    pub fn raw(self, raw: bool) -> Self {
        FileStatus { encryption: self.encryption.filter(|_| !raw), ..self }
    }
}

/// One block of a file with where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocatedBlock {
    /// Where the block begins in the file, in bytes.
    pub offset: u64,
    /// Block and replicas.
    pub located: Located,
}

/// Blocks of (a range of) a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LocatedBlocks {
    /// Length of the file without a last block that is being written.
    pub file_length: u64,
    /// Whether the file is open.
    pub under_construction: bool,
    /// Blocks that the range touches.
    pub blocks: Vec<LocatedBlock>,
    /// The last block of the file; `None` for a file without blocks.
    pub last: Option<LocatedBlock>,
    /// Whether there is a last block and it is complete.
    pub last_complete: bool,
    /// Erasure coding policy of the file.
    pub erasure_coding: Option<Box<ErasureCodingPolicy>>,
    /// How the file is encrypted, if that is known here.
    pub encryption: Option<Box<FileEncryption>>,
}

impl<'a> View<'a> {
    /// Status of an inode under a name (empty for the path itself). `storage_policy` is the one in effect.
    pub fn status(&self, inode: InodeHandle, name: &'a [u8], storage_policy: u8) -> FileStatus<'a> {
        self.status_of(inode, self.state.store.inode(inode), Cow::Borrowed(name), storage_policy)
    }

    /// Status of the last inode of a path, given with all above it, as it was at a snapshot.
    pub fn past_status(
        &self,
        path: &[InodeHandle],
        name: Vec<u8>,
        storage_policy: u8,
        snapshot: SnapshotId,
    ) -> FileStatus<'a> {
        let (tree, store) = (&self.state.tree, &self.state.store);
        let inode = path.last().copied().unwrap_or_else(|| tree.root());
        let mut status = self.status_of(inode, tree.inode_at(store, inode, snapshot), Cow::Owned(name), storage_policy);
        status.set_erasure_coding(tree.erasure_coding_policy_at(store, path, snapshot));
        if tree.has_zones() {
            status.flags.0 &= !StatusFlags::ENCRYPTED;
            if tree.zone_of(store, path, snapshot).is_some() {
                status.flags.0 |= StatusFlags::ENCRYPTED;
            }
            status.encryption = self.encryption_at(path, snapshot);
        }
        match status.kind {
            KindTag::File => status.length = tree.file_length_at(store, inode, snapshot),
            KindTag::Directory => {
                status.children = tree.children_at(store, inode, snapshot).len() as u32;
                if tree.snapshot_root(store, inode).is_some_and(|root| root.by_id(snapshot).is_some()) {
                    status.flags.0 &= !StatusFlags::SNAPSHOTTABLE;
                }
            }
            KindTag::Symlink | KindTag::Reference => {}
        }
        status
    }

    fn status_of(&self, inode: InodeHandle, i: Inode, name: Cow<'a, [u8]>, storage_policy: u8) -> FileStatus<'a> {
        let store = &self.state.store;
        let mut flags = 0;
        if i.features.contains(Features::ACL) {
            flags |= StatusFlags::ACL;
        }
        // The root counts as snapshottable from the start (with room for no snapshot), in Hadoop too.
        if i.features.contains(Features::SNAPSHOTTABLE) || inode == self.state.tree.root() {
            flags |= StatusFlags::SNAPSHOTTABLE;
        }
        let erasure_coding = self.state.tree.erasure_coding_policy(store, inode).map(Cow::Borrowed);
        if erasure_coding.is_some() {
            flags |= StatusFlags::ERASURE_CODED;
        }
        let mut encryption = None;
        if self.state.tree.has_zones() && self.state.tree.zone_above(store, inode).is_some() {
            flags |= StatusFlags::ENCRYPTED;
            encryption = self.encryption_of(inode);
        }
        let mut status = FileStatus {
            kind: i.kind.tag(),
            name,
            id: i.id,
            length: 0,
            replication: 0,
            block_size: 0,
            mtime: i.mtime,
            atime: i.atime,
            mode: i.mode,
            owner: store.user_name(i.user).clone(),
            group: store.group_name(i.group).clone(),
            symlink: None,
            children: 0,
            storage_policy,
            flags: StatusFlags(flags),
            erasure_coding,
            encryption,
        };
        match i.kind {
            InodeKind::File { replication, block_size, .. } => {
                status.length = self.state.tree.file_length(store, inode);
                status.replication = replication;
                status.block_size = block_size;
            }
            InodeKind::Directory { child_count, .. } => status.children = child_count,
            InodeKind::Symlink => status.symlink = Some(Cow::Borrowed(self.state.tree.symlink_target(inode))),
            InodeKind::Reference { .. } => {}
        }
        status
    }

    /// Status of an inode as the answer for its own path.
    pub fn own_status(&self, inode: InodeHandle) -> FileStatus<'a> {
        let policy = match self.state.store.kind(inode) {
            KindTag::Symlink => 0,
            _ => self.state.tree.storage_policy(&self.state.store, inode),
        };
        self.status(inode, b"", policy)
    }

    /// Status of what a path names, in the present or the past, as the answer for the path.
    pub fn status_of_path(&self, resolved: &Resolved<'_>) -> Option<FileStatus<'a>> {
        let inode = resolved.last()?;
        match resolved.snapshot() {
            SnapshotId::CURRENT => Some(self.own_status(inode).raw(resolved.raw)),
            snapshot => {
                let policy = self.past_policy(inode, snapshot);
                Some(self.past_status(resolved.inodes(), Vec::new(), policy, snapshot).raw(resolved.raw))
            }
        }
    }
    /// The storage policy in effect for an inode in a snapshot.
    ///
    /// Quirk: in_a_snapshot_the_storage_policy_is_that_of_now: as in Hadoop; only that of the snapshot's own root is the one of then, if it had one
    pub(crate) fn past_policy(&self, inode: InodeHandle, snapshot: SnapshotId) -> u8 {
        let (tree, store) = (&self.state.tree, &self.state.store);
        let is_root = tree.snapshot_root(store, inode).is_some_and(|root| root.by_id(snapshot).is_some());
        match tree.inode_at(store, inode, snapshot).kind {
            InodeKind::Directory { storage_policy, .. } if is_root && storage_policy != 0 => storage_policy,
            InodeKind::Symlink => 0,
            _ => tree.storage_policy(store, inode),
        }
    }

    /// Where the caller reads from.
    pub fn reader(&self) -> Reader<'static> {
        Reader { node: self.state.blocks.node_at(&self.client_machine()), location: None }
    }

    /// A block with its locations, nearest first.
    pub fn locate(&self, b: record::BlockHandle, offset: u64, reader: &Reader<'_>) -> LocatedBlock {
        let mut located = self.state.blocks.locate(&self.state.store, b);
        self.state.blocks.sort_locations(&mut located, reader, self.now.monotonic);
        LocatedBlock { offset, located }
    }

    /// Blocks of a file that touch `length` bytes from `offset` on, by Hadoop's walk: the block that holds `offset` and those after it up to the
    /// range's end. An empty last block being written comes along if the range goes beyond what precedes it.
    pub fn located_blocks(&self, file: InodeHandle, offset: u64, length: u64, reader: &Reader<'_>) -> LocatedBlocks {
        let state = self.state;
        let mut answer = LocatedBlocks {
            under_construction: state.is_open(file),
            erasure_coding: state.tree.erasure_coding_policy(&state.store, file).cloned().map(Box::new),
            ..LocatedBlocks::default()
        };
        let blocks = state.store.blocks_of(file);
        let infos: SmallVec<[BlockInfo; 4]> = blocks.iter().map(|b| state.store.block(*b)).collect();
        let Some(last) = infos.last() else { return answer };
        answer.last_complete = last.state == BlockState::Complete;
        let total: u64 = infos.iter().map(|i| i.block.length).sum();
        let last_start = total - last.block.length;
        answer.file_length = if answer.last_complete { total } else { last_start };
        let (mut at, mut start) = (0, 0);
        if infos[0].block.length > 0 {
            while at < infos.len() && start + infos[at].block.length <= offset {
                start += infos[at].block.length;
                at += 1;
            }
        }
        // Quirk: a_range_beyond_the_largest_number: Java's end of the range wraps around, and only the first block is given
        let end = (offset as i64).wrapping_add(length as i64);
        while at < infos.len() {
            answer.blocks.push(self.locate(blocks[at], start, reader));
            start += infos[at].block.length;
            at += 1;
            if start as i64 >= end {
                break;
            }
        }
        answer.last = match answer.blocks.last() {
            Some(given) if at == blocks.len() => Some(given.clone()),
            _ => Some(self.locate(blocks[blocks.len() - 1], last_start, reader)),
        };
        answer
    }

    /// [`View::located_blocks`] of a file as it was at a snapshot.
    pub fn past_blocks(
        &self,
        file: InodeHandle,
        snapshot: SnapshotId,
        offset: u64,
        length: u64,
        reader: &Reader<'_>,
    ) -> LocatedBlocks {
        let state = self.state;
        if snapshot == SnapshotId::CURRENT {
            return self.located_blocks(file, offset, length, reader);
        }
        let whole = state.tree.file_length_at(&state.store, file, snapshot);
        let blocks = state.tree.blocks_at(&state.store, file, snapshot);
        let mut answer = LocatedBlocks {
            erasure_coding: state.tree.erasure_coding_policy(&state.store, file).cloned().map(Box::new),
            ..LocatedBlocks::default()
        };
        if blocks.is_empty() {
            return answer;
        }
        (answer.file_length, answer.last_complete) = (whole, true);
        let end = (offset as i64).saturating_add((length as i64).min(whole as i64 - offset as i64));
        // behind an empty first block Hadoop does not look any further
        let is_first_empty = state.store.block_core(blocks[0]).length == 0;
        let (mut start, mut last) = (0, None);
        for b in &blocks {
            let size = state.store.block_core(*b).length;
            if last.is_none() && (is_first_empty || start + size >= whole) {
                last = Some((*b, start));
            }
            // the block that holds the offset comes for an empty range too
            let touches = match answer.blocks.is_empty() {
                true => is_first_empty || start + size > offset,
                false => (start as i64) < end,
            };
            if touches {
                answer.blocks.push(self.locate(*b, start, reader));
            }
            start += size;
        }
        answer.last = last.map(|(b, start)| self.locate(b, start, reader));
        answer
    }

    /// All blocks of a file, for a status with locations.
    pub fn all_located_blocks(&self, file: InodeHandle, reader: &Reader<'_>) -> LocatedBlocks {
        self.located_blocks(file, 0, self.state.tree.file_length(&self.state.store, file), reader)
    }
}

/// Status of `/.reserved` itself, which is no inode.
pub fn reserved_status() -> FileStatus<'static> {
    FileStatus {
        kind: KindTag::Directory,
        name: Cow::Borrowed(b""),
        id: InodeId(-1),
        length: 0,
        replication: 0,
        block_size: 0,
        mtime: TimeMs(0),
        atime: TimeMs(0),
        mode: Mode::new(0o1770),
        owner: "".into(),
        group: "".into(),
        symlink: None,
        children: 0,
        storage_policy: 0,
        flags: StatusFlags::default(),
        erasure_coding: None,
        encryption: None,
    }
}

impl View<'_> {
    /// Status of an inode by id, cut loose from the state.
    ///
    /// # Errors
    /// `FileNotFound` if it is gone.
    pub fn status_of_id(&self, id: InodeId) -> Result<FileStatus<'static>, vocab::Refusal> {
        let inode = self.state.tree.find(&self.state.store, id);
        let inode = inode.ok_or_else(|| vocab::Refusal::not_found(format!("File does not exist: inode {id}")))?;
        Ok(self.own_status(inode).into_owned())
    }
}
