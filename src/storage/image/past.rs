//! Snapshots, diffs and references out of an image: sections SNAPSHOT, SNAPSHOT_DIFF and INODE_REFERENCE.

use super::features::{acl_entries, is_storage_policy, kind_quotas, xattrs};
use super::inode::{Attributes, Body, DirectoryRecord, FileRecord, InodeRecord, parse_block};
use super::strings::{Kind, StringTables};
use super::summary::{ImageError, Section};
use hadoop_proto::wire::{Cursor, Value, WireError};
use namespace::build::Build;
use namespace::snapshot::{AttributeCopy, DirectoryDiff, FileDiff, Gone, Link, Snapshot};
use record::{BlockHandle, BlockInfo, Features, Inode, InodeHandle, InodeKind, KindTag, Store};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vocab::erasure_coding::REPLICATION;
use vocab::quota::Quota;
use vocab::storage_policy::UNSPECIFIED;
use vocab::{BlockState, InodeId, Mode, SnapshotId, TimeMs};

/// One INODE_REFERENCE record. [`Link::Plain`] does not occur.
#[derive(Debug)]
pub(super) struct Reference {
    pub(super) inode: InodeHandle,
    link: Link,
    target: Option<SnapshotId>,
}

/// Bytes of a section and where they are.
pub(super) type Bytes<'a> = Option<(&'a [u8], Section)>;

/// A section that was read, as it is passed on.
pub(super) fn borrow(part: &Option<(Vec<u8>, Section)>) -> Bytes<'_> {
    part.as_ref().map(|(bytes, section)| (&bytes[..], *section))
}

struct Messages<'a> {
    cursor: Cursor<'a>,
    section: Section,
}

impl<'a> Messages<'a> {
    fn new(bytes: &'a [u8], section: Section) -> Messages<'a> {
        Messages { cursor: Cursor::new(bytes), section }
    }
    fn wire(&self, error: WireError) -> ImageError {
        let end = self.section.offset + self.section.length;
        let offset = end.saturating_sub(self.cursor.rest().len() as u64);
        ImageError::Wire { section: self.section.name.text(), offset, error }
    }
    fn content(&self, what: String) -> ImageError {
        ImageError::Content { section: self.section.name.text(), what }
    }
    fn message(&mut self) -> Result<&'a [u8], ImageError> {
        self.cursor.bytes().map_err(|e| self.wire(e))
    }
    fn next(&mut self) -> Result<Option<&'a [u8]>, ImageError> {
        if self.cursor.is_empty() { Ok(None) } else { self.message().map(Some) }
    }
    /// The fields of a message.
    fn fields(&self, message: &'a [u8]) -> Result<Vec<(u32, Value<'a>)>, ImageError> {
        Cursor::new(message).fields().collect::<Result<_, _>>().map_err(|e| self.wire(e))
    }
    fn find(&self, store: &Store, id: u64) -> Result<InodeHandle, ImageError> {
        let found = store.find_inode(InodeId(id as i64));
        found.ok_or_else(|| self.content(format!("inode {id} is needed, which the image does not have")))
    }
}

/// Numbers of a repeated field, packed or not.
fn numbers(fields: &[(u32, Value<'_>)], number: u32) -> Result<Vec<u64>, WireError> {
    let mut all = Vec::new();
    for (n, value) in fields {
        match value {
            Value::Varint(v) if *n == number => all.push(*v),
            Value::Bytes(packed) if *n == number => {
                let mut cursor = Cursor::new(packed);
                while !cursor.is_empty() {
                    all.push(cursor.varint()?);
                }
            }
            _ => {}
        }
    }
    Ok(all)
}
fn number(fields: &[(u32, Value<'_>)], wanted: u32) -> Option<u64> {
    fields.iter().rev().find_map(|(n, value)| match value {
        Value::Varint(v) if *n == wanted => Some(*v),
        _ => None,
    })
}
fn bytes<'a>(fields: &[(u32, Value<'a>)], wanted: u32) -> Option<&'a [u8]> {
    fields.iter().rev().find_map(|(n, value)| match value {
        Value::Bytes(b) if *n == wanted => Some(*b),
        _ => None,
    })
}
fn snapshot_id(number: u64) -> SnapshotId {
    SnapshotId(number as u32 as i32)
}

/// The references, in the order of the section. To be read once all inodes are there.
pub(super) fn references(part: Bytes<'_>, store: &Store) -> Result<Vec<Reference>, ImageError> {
    let Some((section_bytes, section)) = part else { return Ok(Vec::new()) };
    let mut messages = Messages::new(section_bytes, section);
    let mut all = Vec::new();
    while let Some(message) = messages.next()? {
        let fields = messages.fields(message)?;
        let inode = messages.find(store, number(&fields, 1).unwrap_or(0))?;
        let target = number(&fields, 3).map(snapshot_id);
        let link = match target {
            Some(_) => Link::Renamed,
            None => Link::Named {
                name: bytes(&fields, 2).unwrap_or_default().into(),
                last: snapshot_id(number(&fields, 4).unwrap_or(0)),
            },
        };
        all.push(Reference { inode, link, target });
    }
    Ok(all)
}

/// What reading the past needs.
pub(super) struct Past<'a> {
    pub(super) strings: &'a StringTables,
    pub(super) store: &'a mut Store,
    pub(super) build: &'a mut Build,
    pub(super) references: &'a [Reference],
    /// Attributes of the roots of all snapshots.
    roots: HashMap<SnapshotId, Arc<AttributeCopy>>,
    /// Whether created lists may name what is nowhere.
    lenient: bool,
}

impl<'a> Past<'a> {
    pub(super) fn new(
        strings: &'a StringTables,
        store: &'a mut Store,
        build: &'a mut Build,
        references: &'a [Reference],
        lenient: bool,
    ) -> Past<'a> {
        Past { strings, store, build, references, roots: HashMap::new(), lenient }
    }

    /// Reads both sections. All inodes, blocks and child lists must be there.
    pub(super) fn load(&mut self, snapshots: Bytes<'_>, diffs: Bytes<'_>) -> Result<(), ImageError> {
        for reference in self.references {
            self.build.add_reference(reference.inode, &reference.link, reference.target);
        }
        if let Some((section_bytes, section)) = snapshots {
            self.snapshots(&mut Messages::new(section_bytes, section))?;
        }
        if let Some((section_bytes, section)) = diffs {
            self.diffs(&mut Messages::new(section_bytes, section))?;
        }
        Ok(())
    }

    fn snapshots(&mut self, messages: &mut Messages<'_>) -> Result<(), ImageError> {
        let header = messages.message()?;
        let fields = messages.fields(header)?;
        self.build.set_snapshot_counter(number(&fields, 1).unwrap_or(0) as u32);
        for id in numbers(&fields, 2).map_err(|e| messages.wire(e))? {
            let directory = self.directory(messages, id)?;
            self.build.allow_snapshots(self.store, directory);
        }
        for _ in 0..number(&fields, 3).unwrap_or(0) {
            let message = messages.message()?;
            let fields = messages.fields(message)?;
            let root = bytes(&fields, 2).unwrap_or_default();
            let root = InodeRecord::parse(root).map_err(|e| messages.wire(e))?;
            let Body::Directory(body) = root.body else {
                return Err(messages.content(format!("the snapshot of inode {} is of no directory", root.id)));
            };
            let record = DirectoryRecord::parse(body).map_err(|e| messages.wire(e))?;
            let directory = self.directory(messages, root.id as u64)?;
            let copy = Arc::new(self.directory_copy(root.name, &record)?);
            let id = snapshot_id(number(&fields, 1).unwrap_or(0));
            self.roots.insert(id, copy.clone());
            if !self.build.add_snapshot(self.store, directory, Snapshot { id, name: root.name.into(), root: copy }) {
                let name = String::from_utf8_lossy(root.name);
                return Err(messages.content(format!("snapshot {name} of inode {} cannot be", root.id)));
            }
        }
        Ok(())
    }

    /// Quirk: a_root_diff_may_be_of_the_snapshot_of_a_directory_above: where snapshottable directories lie in each other and the inner one's snapshot
    /// went, Hadoop's image says of its diff no more than the snapshot; what it reads from that are the attributes of the other directory.
    fn copy_of_another(&self, directory: InodeHandle, snapshot: SnapshotId) -> Option<Arc<AttributeCopy>> {
        let copy = AttributeCopy::clone(self.roots.get(&snapshot)?);
        Some(Arc::new(AttributeCopy { name: self.build.attributes(self.store, directory).name, ..copy }))
    }

    fn directory(&self, messages: &Messages<'_>, id: u64) -> Result<InodeHandle, ImageError> {
        let directory = messages.find(self.store, id)?;
        match self.store.kind(directory) {
            KindTag::Directory => Ok(directory),
            _ => Err(messages.content(format!("inode {id} is no directory"))),
        }
    }

    fn diffs(&mut self, messages: &mut Messages<'_>) -> Result<(), ImageError> {
        while let Some(message) = messages.next()? {
            let fields = messages.fields(message)?;
            let id = number(&fields, 2).unwrap_or(0);
            let count = number(&fields, 3).unwrap_or(0);
            match number(&fields, 1) {
                Some(1) => self.file_diffs(messages, id, count)?,
                Some(2) => self.directory_diffs(messages, id, count)?,
                kind => return Err(messages.content(format!("a diff of kind {kind:?}"))),
            }
        }
        Ok(())
    }

    /// Diffs are written newest first.
    fn directory_diffs(&mut self, messages: &mut Messages<'_>, id: u64, count: u64) -> Result<(), ImageError> {
        let directory = self.directory(messages, id)?;
        let (mut all, mut deleted, mut forgotten) = (Vec::new(), HashSet::<Box<[u8]>>::new(), false);
        for _ in 0..count {
            let message = messages.message()?;
            let fields = messages.fields(message)?;
            let snapshot = snapshot_id(number(&fields, 1).unwrap_or(0));
            let is_root = number(&fields, 3) == Some(1);
            let mut diff = DirectoryDiff {
                snapshot,
                children: number(&fields, 2).unwrap_or(0) as u32,
                is_root,
                copy: None,
                created: Vec::new(),
                deleted: Vec::new(),
            };
            if is_root {
                let own = self.build.snapshot_copy(self.store, directory, snapshot);
                diff.is_root = own.is_some();
                diff.copy = own.or_else(|| self.copy_of_another(directory, snapshot));
                if diff.copy.is_none() {
                    return Err(messages.content(format!("diff {snapshot} of inode {id} is of no snapshot")));
                }
            } else if let Some(copy) = bytes(&fields, 5) {
                let record = DirectoryRecord::parse(copy).map_err(|e| messages.wire(e))?;
                diff.copy = Some(Arc::new(self.directory_copy(bytes(&fields, 4).unwrap_or_default(), &record)?));
            }
            for _ in 0..number(&fields, 6).unwrap_or(0) {
                let entry = messages.message()?;
                let entry = messages.fields(entry)?;
                diff.created.push(bytes(&entry, 1).unwrap_or_default().into());
            }
            diff.created.sort_by(|a, b| vocab::path::compare_names(a, b));
            let is_there = |name: &[u8]| deleted.contains(name) || self.build.has_child(self.store, directory, name);
            if let Some(at) = diff.created.iter().position(|name| !is_there(name)) {
                if !(self.lenient || forgotten) {
                    let name = String::from_utf8_lossy(&diff.created[at]);
                    return Err(messages.content(format!(
                        "Cannot find an INode associated with the INode {name} in created list while loading FSImage."
                    )));
                }
                // Quirk: what_concat_took_is_in_no_created_list: 2.x left it there, and cannot load such images
                diff.created.retain(|name| is_there(name));
            }
            for gone in numbers(&fields, 7).map_err(|e| messages.wire(e))? {
                // Quirk: a_deleted_inode_that_the_image_lacks_is_forgotten: 3.5.0 writes such images (symlinks) and cannot load them
                match self.store.find_inode(InodeId(gone as i64)) {
                    Some(inode) => diff.deleted.push(Gone { inode, link: Link::Plain }),
                    None => forgotten = true,
                }
            }
            for at in numbers(&fields, 8).map_err(|e| messages.wire(e))? {
                let reference = usize::try_from(at).ok().and_then(|at| self.references.get(at));
                let missing =
                    || messages.content(format!("inode {id} needs reference {at}, which the image does not have"));
                let Reference { inode, link, .. } = reference.ok_or_else(missing)?;
                diff.deleted.push(Gone { inode: *inode, link: link.clone() });
            }
            deleted.extend(diff.deleted.iter().map(|gone| match &gone.link {
                Link::Named { name, .. } => Box::from(&**name),
                Link::Plain | Link::Renamed => Box::<[u8]>::from(self.store.name(gone.inode)),
            }));
            all.push(diff);
        }
        if !all.is_empty() {
            all.reverse();
            self.build.set_directory_diffs(self.store, directory, all);
        }
        Ok(())
    }

    fn file_diffs(&mut self, messages: &mut Messages<'_>, id: u64, count: u64) -> Result<(), ImageError> {
        let file = messages.find(self.store, id)?;
        if self.store.kind(file) != KindTag::File {
            return Err(messages.content(format!("inode {id} is no file")));
        }
        let features = self.store.features(file);
        self.store.set_features(file, features.with(Features::SNAPSHOT_DIFFS));
        let mut all = Vec::new();
        for _ in 0..count {
            let message = messages.message()?;
            let fields = messages.fields(message)?;
            let copy = match bytes(&fields, 4) {
                None => None,
                Some(copy) => {
                    let record = FileRecord::parse(copy, &mut Vec::new()).map_err(|e| messages.wire(e))?;
                    Some(Arc::new(self.file_copy(bytes(&fields, 3).unwrap_or_default(), &record)?))
                }
            };
            let blocks = self.blocks(messages, &fields, file)?;
            let (snapshot, length) = (snapshot_id(number(&fields, 1).unwrap_or(0)), number(&fields, 2).unwrap_or(0));
            all.push(FileDiff { snapshot, length, copy, blocks: (!blocks.is_empty()).then_some(blocks) });
        }
        if !all.is_empty() {
            all.reverse();
            self.build.set_file_diffs(self.store, file, all);
            self.build.settle_replication(self.store, file);
        }
        Ok(())
    }

    /// Blocks of a diff: those that the file has, and others that it has for this diff only.
    fn blocks(
        &mut self,
        messages: &Messages<'_>,
        fields: &[(u32, Value<'_>)],
        file: InodeHandle,
    ) -> Result<Vec<BlockHandle>, ImageError> {
        let mut blocks = Vec::new();
        for (at, value) in fields {
            let (5, Value::Bytes(message)) = (*at, value) else { continue };
            let block = parse_block(message).map_err(|e| messages.wire(e))?;
            let known = self.store.find_block(block.id).filter(|b| self.store.block_file(*b) == Some(file));
            let b = match known {
                Some(b) => b,
                None if self.store.find_block(block.id).is_some() => {
                    return Err(messages.content(format!("block {} is in two files", block.id)));
                }
                None => {
                    let b =
                        self.store.add_block(&BlockInfo { block, state: BlockState::Complete, ..BlockInfo::default() });
                    self.store.set_block_file(b, file);
                    b
                }
            };
            blocks.push(b);
        }
        Ok(blocks)
    }

    fn copy(
        &mut self,
        name: &[u8],
        attributes: &Attributes<'_>,
        kind: InodeKind,
        quota: Quota,
    ) -> Result<AttributeCopy, ImageError> {
        let permission = attributes.permission;
        let user = self.strings.get(Kind::User, permission.user())?.map_or("", |s| s);
        let group = self.strings.get(Kind::Group, permission.group())?.map_or("", |s| s);
        let mut inode = Inode {
            id: InodeId(0),
            parent: None,
            user: self.store.intern_user(user),
            group: self.store.intern_group(group),
            mode: Mode::new(permission.mode()),
            mtime: TimeMs(attributes.mtime),
            atime: TimeMs(attributes.atime),
            features: Features::NONE,
            kind,
        };
        let acl = attributes.acl.map_or(Ok(Vec::new()), |message| acl_entries(message, self.strings))?;
        let mut xattrs = attributes.xattrs.map_or(Ok(Vec::new()), |message| xattrs(message, self.strings))?;
        if let InodeKind::Directory { storage_policy, .. } = &mut inode.kind
            && let Some(at) = xattrs.iter().position(is_storage_policy)
        {
            *storage_policy = xattrs.remove(at).value.first().copied().unwrap_or(UNSPECIFIED);
        }
        for (there, feature) in [
            (!acl.is_empty(), Features::ACL),
            (!xattrs.is_empty(), Features::XATTRS),
            (quota != Quota::default(), Features::QUOTA),
        ] {
            if there {
                inode.features.insert(feature);
            }
        }
        Ok(AttributeCopy { name: name.into(), inode, acl, xattrs, quota })
    }

    fn directory_copy(&mut self, name: &[u8], record: &DirectoryRecord<'_>) -> Result<AttributeCopy, ImageError> {
        let limit = |value: i64| u64::try_from(value).ok();
        let mut quota =
            Quota { namespace: limit(record.namespace_quota), space: limit(record.space_quota), ..Quota::default() };
        if let Some(message) = record.kind_quotas {
            quota.by_kind = kind_quotas(message)?;
        }
        let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: UNSPECIFIED };
        self.copy(name, &record.attributes, kind, quota)
    }

    fn file_copy(&mut self, name: &[u8], record: &FileRecord<'_>) -> Result<AttributeCopy, ImageError> {
        let (erasure_coding_policy, replication) = match record.erasure_coding_policy {
            Some(id) => (id as u8, 1),
            None => (REPLICATION, record.replication as u16),
        };
        let kind = InodeKind::File {
            replication,
            block_size: record.block_size.max(1),
            storage_policy: record.storage_policy as u8,
            erasure_coding_policy,
        };
        self.copy(name, &record.attributes, kind, Quota::default())
    }
}
