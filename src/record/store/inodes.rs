//! Inodes: encode, decode, look up.

use super::wide::WideInode;
use super::{FileClass, Store};
use crate::layout::{InodeRecord, fits, inode_field as f};
use crate::{Features, FileFacts, GroupId, Inode, InodeHandle, InodeKind, KindTag, ReferenceKind, UserId};
use mem::bytes::BytesRef;
use vocab::{InodeId, Mode, SnapshotId, TimeMs};

fn tag_of(record: &InodeRecord) -> KindTag {
    match record.get(f::KIND) {
        1 => KindTag::Directory,
        2 => KindTag::File,
        3 => KindTag::Symlink,
        _ => KindTag::Reference,
    }
}
pub(super) fn class_of(kind: &InodeKind) -> FileClass {
    match *kind {
        InodeKind::Directory { storage_policy, .. } => FileClass { storage_policy, ..FileClass::default() },
        InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
            FileClass { block_size, replication, storage_policy, erasure_coding_policy }
        }
        InodeKind::Symlink | InodeKind::Reference { .. } => FileClass::default(),
    }
}

impl Store {
    #[inline]
    pub(super) fn record(&self, h: InodeHandle) -> InodeRecord {
        self.inodes.get(h.0)
    }
    fn wide(&self, h: InodeHandle) -> WideInode {
        WideInode::decode(self.wide_inodes.get(i64::from(h.raw())).expect("a wide inode has its fields"))
    }

    /// All of a record but its name and a file's blocks; and what does not fit it.
    fn encode(&mut self, inode: &Inode) -> (InodeRecord, Option<WideInode>) {
        let mut record = InodeRecord::empty();
        record.set(f::KIND, inode.kind.tag() as u64);
        record.set(f::PARENT, inode.parent.map_or(0, |p| u64::from(p.raw())));
        record.set(f::FEATURES, u64::from(inode.features.0));
        record.set(f::MODE, u64::from(inode.mode.bits()));
        match inode.kind {
            InodeKind::Directory { children, child_count, .. } => {
                record.set(f::CHILDREN, u64::from(children));
                record.set(f::CHILD_COUNT, u64::from(child_count));
            }
            InodeKind::Reference { kind, referred, snapshot } => {
                record.set(f::REFERENCE_KIND, kind as u64);
                record.set(f::REFERRED, u64::from(referred.raw()));
                record.set(f::SNAPSHOT, u64::from(snapshot.0 as u32));
            }
            InodeKind::File { .. } | InodeKind::Symlink => {}
        }
        let (owner, class) = ((inode.user.0, inode.group.0), class_of(&inode.kind));
        let packed = (
            fits(f::ID, inode.id.0),
            fits(f::MTIME, inode.mtime.0),
            fits(f::ATIME, inode.atime.0),
            self.owners.code(owner),
            self.file_classes.code(class),
        );
        let (Some(id), Some(mtime), Some(atime), Some(owner), Some(class)) = packed else {
            record.set(f::WIDE, 1);
            let (id, mtime, atime) = (inode.id.0, inode.mtime.0, inode.atime.0);
            return (record, Some(WideInode { id, mtime, atime, owner, class }));
        };
        for (field, value) in [(f::ID, id), (f::MTIME, mtime), (f::ATIME, atime), (f::OWNER, owner), (f::CLASS, class)]
        {
            record.set(field, value);
        }
        (record, None)
    }

    fn natural(&self, h: InodeHandle, record: &InodeRecord) -> WideInode {
        if record.get(f::WIDE) == 1 {
            return self.wide(h);
        }
        WideInode {
            id: record.get(f::ID) as i64,
            mtime: record.get(f::MTIME) as i64,
            atime: record.get(f::ATIME) as i64,
            owner: self.owners.value(record.get(f::OWNER)),
            class: self.file_classes.value(record.get(f::CLASS)),
        }
    }

    fn decode(&self, h: InodeHandle, record: &InodeRecord) -> Inode {
        let WideInode { id, mtime, atime, owner, class } = self.natural(h, record);
        let handle = |field| InodeHandle::from_raw(record.get(field) as u32);
        let kind = match tag_of(record) {
            KindTag::Directory => InodeKind::Directory {
                children: record.get(f::CHILDREN) as u32,
                child_count: record.get(f::CHILD_COUNT) as u32,
                storage_policy: class.storage_policy,
            },
            KindTag::File => InodeKind::File {
                replication: class.replication,
                block_size: class.block_size,
                storage_policy: class.storage_policy,
                erasure_coding_policy: class.erasure_coding_policy,
            },
            KindTag::Symlink => InodeKind::Symlink,
            KindTag::Reference => InodeKind::Reference {
                kind: match record.get(f::REFERENCE_KIND) {
                    0 => ReferenceKind::WithName,
                    1 => ReferenceKind::WithCount,
                    _ => ReferenceKind::DstReference,
                },
                referred: handle(f::REFERRED).expect("a reference refers to an inode"),
                snapshot: SnapshotId(record.get(f::SNAPSHOT) as u32 as i32),
            },
        };
        Inode {
            id: InodeId(id),
            parent: handle(f::PARENT),
            user: UserId(owner.0),
            group: GroupId(owner.1),
            mode: Mode::new(record.get(f::MODE) as u16),
            mtime: TimeMs(mtime),
            atime: TimeMs(atime),
            features: Features(record.get(f::FEATURES) as u16),
            kind,
        }
    }

    /// Adds an inode with its name (empty for the root) and enters it into the id index, unless it is a reference.
    /// An older inode of the same id loses its place in the index.
    pub fn add_inode(&mut self, inode: &Inode, name: &[u8]) -> InodeHandle {
        let (mut record, wide) = self.encode(inode);
        record.set(f::NAME, self.names.add(name).raw());
        let h = InodeHandle(self.inodes.add(record));
        if let Some(wide) = wide {
            self.wide_inodes.set(i64::from(h.raw()), &wide.encode());
        }
        if inode.kind.tag() != KindTag::Reference {
            self.inode_ids.insert(inode.id.0, h.0);
        }
        h
    }

    /// The inode, copied out.
    pub fn inode(&self, h: InodeHandle) -> Inode {
        self.decode(h, &self.record(h))
    }

    /// Changes an inode. The id index follows a change of id; a file's blocks leave the fused form where the new features ask for it.
    /// The kind may change only for inodes without blocks.
    pub fn edit_inode(&mut self, h: InodeHandle, edit: impl FnOnce(&mut Inode)) {
        let before = self.record(h);
        let mut inode = self.decode(h, &before);
        let (old_id, was_file) = (inode.id, tag_of(&before) == KindTag::File);
        let was_indexed = tag_of(&before) != KindTag::Reference;
        edit(&mut inode);
        let tag = inode.kind.tag();
        assert!(tag == KindTag::File || self.block_count_of(h) == 0, "an inode with blocks must stay a file");
        let (mut after, wide) = self.encode(&inode);
        if self.is_fused(&before) && (wide.is_some() || inode.features.intersects(super::fuse::NEVER_FUSED)) {
            self.unfuse(h);
        }
        let before = self.record(h);
        after.set(f::NAME, before.get(f::NAME));
        if was_file && tag == KindTag::File {
            after.copy_blocks(&before);
        }
        self.inodes.edit(h.0, |r| *r = after);
        match wide {
            Some(wide) => {
                self.wide_inodes.set(i64::from(h.raw()), &wide.encode());
            }
            None if before.get(f::WIDE) == 1 => {
                self.wide_inodes.remove(i64::from(h.raw()));
            }
            None => {}
        }
        let is_indexed = tag != KindTag::Reference;
        if old_id != inode.id || was_indexed != is_indexed {
            self.forget_inode_id(old_id.0, h);
            if is_indexed {
                self.inode_ids.insert(inode.id.0, h.0);
            }
        }
    }
    /// Takes an id out of the index, if it is this inode's there.
    fn forget_inode_id(&mut self, id: i64, h: InodeHandle) {
        if self.inode_ids.get(id) == Some(h.0) {
            self.inode_ids.remove(id);
        }
    }

    /// What the inode is.
    pub fn kind(&self, h: InodeHandle) -> KindTag {
        tag_of(&self.record(h))
    }
    /// Its id.
    pub fn inode_id(&self, h: InodeHandle) -> InodeId {
        let record = self.record(h);
        InodeId(if record.get(f::WIDE) == 1 { self.wide(h).id } else { record.get(f::ID) as i64 })
    }
    /// Its parent.
    pub fn parent(&self, h: InodeHandle) -> Option<InodeHandle> {
        InodeHandle::from_raw(self.record(h).get(f::PARENT) as u32)
    }
    /// Moves it under another parent (only the link upwards; child lists are the namespace's).
    pub fn set_parent(&mut self, h: InodeHandle, parent: Option<InodeHandle>) {
        self.inodes.edit(h.0, |r| r.set(f::PARENT, parent.map_or(0, |p| u64::from(p.raw()))));
    }
    /// Its permission bits.
    pub fn mode(&self, h: InodeHandle) -> Mode {
        Mode::new(self.record(h).get(f::MODE) as u16)
    }
    /// Owner and group.
    pub fn owner(&self, h: InodeHandle) -> (UserId, GroupId) {
        let record = self.record(h);
        let (user, group) =
            if record.get(f::WIDE) == 1 { self.wide(h).owner } else { self.owners.value(record.get(f::OWNER)) };
        (UserId(user), GroupId(group))
    }
    /// Features and parent: what a walk upwards looks at.
    pub fn features_and_parent(&self, h: InodeHandle) -> (Features, Option<InodeHandle>) {
        let record = self.record(h);
        (Features(record.get(f::FEATURES) as u16), InodeHandle::from_raw(record.get(f::PARENT) as u32))
    }
    fn class(&self, h: InodeHandle, record: &InodeRecord) -> FileClass {
        if record.get(f::WIDE) == 1 { self.wide(h).class } else { self.file_classes.value(record.get(f::CLASS)) }
    }
    /// The storage policy set on a file or directory itself; 0 for none and for anything else.
    pub fn own_storage_policy(&self, h: InodeHandle) -> u8 {
        self.class(h, &self.record(h)).storage_policy
    }
    /// Whether any directory may have a storage policy. Once true it stays.
    pub fn may_have_directory_policies(&self) -> bool {
        self.file_classes.has_noted()
    }
    /// The erasure coding policy of a file; 0 for replication and for anything else.
    pub fn own_erasure_coding_policy(&self, h: InodeHandle) -> u8 {
        self.class(h, &self.record(h)).erasure_coding_policy
    }
    /// A file's attributes and features; `None` for anything else.
    pub fn file(&self, h: InodeHandle) -> Option<FileFacts> {
        let record = self.record(h);
        if record.get(f::KIND) != KindTag::File as u64 {
            return None;
        }
        let FileClass { block_size, replication, storage_policy, erasure_coding_policy } = self.class(h, &record);
        let features = Features(record.get(f::FEATURES) as u16);
        Some(FileFacts { block_size, replication, storage_policy, erasure_coding_policy, features })
    }
    /// Its times: of modification and of access.
    pub fn times(&self, h: InodeHandle) -> (TimeMs, TimeMs) {
        let record = self.record(h);
        if record.get(f::WIDE) == 1 {
            let wide = self.wide(h);
            return (TimeMs(wide.mtime), TimeMs(wide.atime));
        }
        (TimeMs(record.get(f::MTIME) as i64), TimeMs(record.get(f::ATIME) as i64))
    }
    /// Raises its modification time; an earlier one changes nothing.
    pub fn raise_mtime(&mut self, h: InodeHandle, time: TimeMs) {
        let (mtime, atime) = self.times(h);
        if mtime < time {
            self.set_times(h, time, atime);
        }
    }
    /// Sets its permission bits.
    pub fn set_mode(&mut self, h: InodeHandle, mode: Mode) {
        self.inodes.edit(h.0, |r| r.set(f::MODE, u64::from(mode.bits())));
    }
    /// Its features.
    pub fn features(&self, h: InodeHandle) -> Features {
        Features(self.record(h).get(f::FEATURES) as u16)
    }
    /// Changes the features only; the same as through [`Store::edit_inode`].
    pub fn set_features(&mut self, h: InodeHandle, features: Features) {
        if features.intersects(super::fuse::NEVER_FUSED) && self.is_fused(&self.record(h)) {
            self.unfuse(h);
        }
        self.inodes.edit(h.0, |r| r.set(f::FEATURES, u64::from(features.0)));
    }
    /// Sets both times; the same as through [`Store::edit_inode`], in fewer steps.
    pub fn set_times(&mut self, h: InodeHandle, mtime: TimeMs, atime: TimeMs) {
        let record = self.record(h);
        match (fits(f::MTIME, mtime.0), fits(f::ATIME, atime.0)) {
            (Some(mtime), Some(atime)) if record.get(f::WIDE) == 0 => self.inodes.edit(h.0, |r| {
                r.set(f::MTIME, mtime);
                r.set(f::ATIME, atime);
            }),
            _ => self.edit_inode(h, |i| (i.mtime, i.atime) = (mtime, atime)),
        }
    }
    /// Child list and child count of a directory; zeros for anything else.
    pub fn children(&self, h: InodeHandle) -> (u32, u32) {
        let record = self.record(h);
        match tag_of(&record) {
            KindTag::Directory => (record.get(f::CHILDREN) as u32, record.get(f::CHILD_COUNT) as u32),
            _ => (0, 0),
        }
    }
    /// Sets child list and child count of a directory.
    pub fn set_children(&mut self, h: InodeHandle, list: u32, count: u32) {
        self.inodes.edit(h.0, |r| {
            assert!(tag_of(r) == KindTag::Directory, "children of an inode that is no directory");
            r.set(f::CHILDREN, u64::from(list));
            r.set(f::CHILD_COUNT, u64::from(count));
        });
    }
    /// What a reference stands for; `None` for anything else.
    pub fn referred(&self, h: InodeHandle) -> Option<InodeHandle> {
        let record = self.record(h);
        if tag_of(&record) == KindTag::Reference { InodeHandle::from_raw(record.get(f::REFERRED) as u32) } else { None }
    }

    /// Its name.
    pub fn name(&self, h: InodeHandle) -> &[u8] {
        self.names.get(BytesRef::from_raw(self.record(h).get(f::NAME)))
    }
    /// Asks for the memory of an inode that will be looked at soon.
    pub fn prefetch_inode(&self, h: InodeHandle) {
        self.inodes.prefetch(h.0);
    }
    /// The same of its name; looks at the inode.
    pub fn prefetch_name(&self, h: InodeHandle) {
        self.names.prefetch(BytesRef::from_raw(self.record(h).get(f::NAME)));
    }
    /// Gives it another name.
    pub fn rename(&mut self, h: InodeHandle, new_name: &[u8]) {
        self.names.remove(BytesRef::from_raw(self.record(h).get(f::NAME)));
        let name = self.names.add(new_name).raw();
        self.inodes.edit(h.0, |r| r.set(f::NAME, name));
    }

    /// The inode of an id.
    pub fn find_inode(&self, id: InodeId) -> Option<InodeHandle> {
        self.inode_ids.get(id.0).map(InodeHandle)
    }
    /// Removes an inode, its name and its place in the id index. Blocks still attached are detached as by [`Store::take_blocks`].
    pub fn remove_inode(&mut self, h: InodeHandle) {
        self.take_blocks(h);
        let record = self.record(h);
        let id = self.inode_id(h);
        self.forget_inode_id(id.0, h);
        self.names.remove(BytesRef::from_raw(record.get(f::NAME)));
        if record.get(f::WIDE) == 1 {
            self.wide_inodes.remove(i64::from(h.raw()));
        }
        self.inodes.remove(h.0);
    }

    /// How many inodes there are, references included.
    pub fn inode_count(&self) -> u64 {
        self.inodes.len()
    }
    /// All inodes in arena order, references included.
    pub fn inodes(&self) -> impl Iterator<Item = InodeHandle> + '_ {
        self.inodes.slots().map(InodeHandle)
    }
    /// How many arena pages the inodes are in, for walks in slices with [`Store::inodes_of_page`].
    pub fn inode_page_count(&self) -> u32 {
        self.inodes.page_count()
    }
    /// The inodes of one arena page (1,024 at most).
    pub fn inodes_of_page(&self, page: u32) -> impl Iterator<Item = InodeHandle> + '_ {
        self.inodes.page_slots(page).map(InodeHandle)
    }
    /// Inodes by ascending id, references excepted, from `start` on.
    pub fn inodes_by_id(&self, start: InodeId) -> impl Iterator<Item = (InodeId, InodeHandle)> + '_ {
        self.inode_ids.iter_from(start.0).map(|(id, h)| (InodeId(id), InodeHandle(h)))
    }

    pub(super) fn is_fused(&self, record: &InodeRecord) -> bool {
        record.get(f::KIND) == KindTag::File as u64 && record.holds_block()
    }
}
