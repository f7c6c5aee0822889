//! The past written down beside the pages of the tree.

use super::{AttributeCopy, DirectoryDiff, FileDiff, Gone, Link, PastTables, References, Root, Snapshot, Snapshots};
use crate::QuotaRecord;
use crate::codec::{AclEntries, AclRef, XattrEntries, XattrRef, decode_quota, encode_acl, encode_quota, encode_xattrs};
use mem::persist::{Malformed, RestReader, RestWriter};
use record::{BlockHandle, Features, GroupId, Inode, InodeHandle, InodeKind, UserId};
use std::sync::Arc;
use vocab::quota::Usage;
use vocab::{InodeId, Mode, SnapshotId, TimeMs};

type Read<T> = Result<T, Malformed>;

fn handle(rest: &mut RestReader<'_>) -> Read<InodeHandle> {
    InodeHandle::from_raw(rest.u32()?).ok_or(Malformed("an inode"))
}
fn put_snapshot(rest: &mut RestWriter, id: SnapshotId) {
    rest.u32(id.0 as u32);
}
fn snapshot(rest: &mut RestReader<'_>) -> Read<SnapshotId> {
    Ok(SnapshotId(rest.u32()? as i32))
}
fn list<T>(rest: &mut RestReader<'_>, item: impl Fn(&mut RestReader<'_>) -> Read<T>) -> Read<Vec<T>> {
    (0..rest.length(1)?).map(|_| item(rest)).collect()
}

impl Snapshots {
    pub(crate) fn write_rest(&self, rest: &mut RestWriter) {
        // the tables by inode were written before (`kept`)
        let Snapshots { counter, roots, directories: _, files: _, references: _, older_names: _, held_stripes: _ } =
            self;
        rest.u32(*counter);
        rest.length(roots.len());
        for (id, root) in roots {
            rest.i64(id.0);
            rest.u32(root.directory.raw());
            rest.u32(root.quota);
            rest.length(root.snapshots.len());
            for s in &root.snapshots {
                put_snapshot(rest, s.id);
                rest.bytes(&s.name);
                s.root.write_rest(rest);
            }
        }
    }

    pub(crate) fn restore(rest: &mut RestReader<'_>, tables: PastTables) -> Read<Snapshots> {
        let PastTables { directories, files, references } = tables;
        let mut all = Snapshots { counter: rest.u32()?, directories, files, references, ..Snapshots::default() };
        all.roots.extend(list(rest, |rest| {
            let (id, directory, quota) = (InodeId(rest.i64()?), handle(rest)?, rest.u32()?);
            let snapshots = list(rest, |rest| {
                let (id, name) = (snapshot(rest)?, rest.bytes()?.into());
                Ok(Snapshot { id, name, root: Arc::new(AttributeCopy::restore(rest)?) })
            })?;
            Ok((id, Root { directory, quota, snapshots }))
        })?);
        all.note_all_held_stripes();
        all.note_all_older_names();
        Ok(all)
    }
}

impl References {
    pub(super) fn write_rest(&self, rest: &mut RestWriter) {
        let References { names, target } = self;
        rest.length(names.len());
        names.iter().for_each(|n| put_snapshot(rest, *n));
        rest.bool(target.is_some());
        put_snapshot(rest, target.unwrap_or(SnapshotId::NONE));
    }
    pub(super) fn restore(rest: &mut RestReader<'_>) -> Read<References> {
        let names = list(rest, snapshot)?;
        let (has_target, target) = (rest.bool()?, snapshot(rest)?);
        Ok(References { names, target: has_target.then_some(target) })
    }
}

fn put_copy(rest: &mut RestWriter, copy: Option<&Arc<AttributeCopy>>) {
    rest.bool(copy.is_some());
    if let Some(copy) = copy {
        copy.write_rest(rest);
    }
}
fn copy(rest: &mut RestReader<'_>) -> Read<Option<Arc<AttributeCopy>>> {
    Ok(if rest.bool()? { Some(Arc::new(AttributeCopy::restore(rest)?)) } else { None })
}

impl DirectoryDiff {
    pub(super) fn write_rest(&self, rest: &mut RestWriter) {
        let DirectoryDiff { snapshot, children, is_root, copy, created, deleted } = self;
        put_snapshot(rest, *snapshot);
        rest.u32(*children);
        rest.bool(*is_root);
        put_copy(rest, copy.as_ref());
        rest.length(created.len());
        created.iter().for_each(|name| rest.bytes(name));
        rest.length(deleted.len());
        for gone in deleted {
            rest.u32(gone.inode.raw());
            match &gone.link {
                Link::Plain => rest.u8(0),
                Link::Renamed => rest.u8(1),
                Link::Named { name, last } => {
                    rest.u8(2);
                    rest.bytes(name);
                    put_snapshot(rest, *last);
                }
            }
        }
    }
    pub(super) fn restore(rest: &mut RestReader<'_>) -> Read<DirectoryDiff> {
        let (snapshot_id, children, is_root, copy) = (snapshot(rest)?, rest.u32()?, rest.bool()?, copy(rest)?);
        let created = list(rest, |rest| Ok(rest.bytes()?.into()))?;
        let deleted = list(rest, |rest| {
            let inode = handle(rest)?;
            let link = match rest.u8()? {
                0 => Link::Plain,
                1 => Link::Renamed,
                2 => Link::Named { name: rest.bytes()?.into(), last: snapshot(rest)? },
                _ => return Err(Malformed("a link")),
            };
            Ok(Gone { inode, link })
        })?;
        Ok(DirectoryDiff { snapshot: snapshot_id, children, is_root, copy, created, deleted })
    }
}

impl FileDiff {
    pub(super) fn write_rest(&self, rest: &mut RestWriter) {
        let FileDiff { snapshot, length, copy, blocks } = self;
        put_snapshot(rest, *snapshot);
        rest.u64(*length);
        put_copy(rest, copy.as_ref());
        rest.bool(blocks.is_some());
        rest.length(blocks.as_ref().map_or(0, Vec::len));
        blocks.iter().flatten().for_each(|b| rest.u32(b.raw()));
    }
    pub(super) fn restore(rest: &mut RestReader<'_>) -> Read<FileDiff> {
        let (snapshot, length, copy, has_blocks) = (snapshot(rest)?, rest.u64()?, copy(rest)?, rest.bool()?);
        let blocks = list(rest, |rest| BlockHandle::from_raw(rest.u32()?).ok_or(Malformed("a block")))?;
        Ok(FileDiff { snapshot, length, copy, blocks: has_blocks.then_some(blocks) })
    }
}

impl AttributeCopy {
    fn write_rest(&self, rest: &mut RestWriter) {
        let AttributeCopy { name, inode, acl, xattrs, quota } = self;
        rest.bytes(name);
        rest.i64(inode.id.0);
        rest.u32(inode.user.0);
        rest.u32(inode.group.0);
        rest.u16(inode.mode.bits());
        rest.i64(inode.mtime.0);
        rest.i64(inode.atime.0);
        rest.u16(inode.features.0);
        match inode.kind {
            InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
                rest.u8(1);
                rest.u16(replication);
                rest.u64(block_size);
                rest.u8(storage_policy);
                rest.u8(erasure_coding_policy);
            }
            InodeKind::Directory { storage_policy, .. } => {
                rest.u8(0);
                rest.u8(storage_policy);
            }
            InodeKind::Symlink | InodeKind::Reference { .. } => rest.u8(2),
        }
        let mut bytes = Vec::new();
        encode_acl(acl, &mut bytes);
        rest.bytes(&bytes);
        bytes.clear();
        encode_xattrs(xattrs, &mut bytes);
        rest.bytes(&bytes);
        rest.bytes(&encode_quota(&QuotaRecord { limits: *quota, usage: Usage::default() }));
    }
    fn restore(rest: &mut RestReader<'_>) -> Read<AttributeCopy> {
        let name = rest.bytes()?.into();
        let mut inode = Inode {
            id: InodeId(rest.i64()?),
            parent: None,
            user: UserId(rest.u32()?),
            group: GroupId(rest.u32()?),
            mode: Mode::new(rest.u16()?),
            mtime: TimeMs(rest.i64()?),
            atime: TimeMs(rest.i64()?),
            features: Features(rest.u16()?),
            kind: InodeKind::Symlink,
        };
        inode.kind = match rest.u8()? {
            0 => InodeKind::Directory { children: 0, child_count: 0, storage_policy: rest.u8()? },
            1 => InodeKind::File {
                replication: rest.u16()?,
                block_size: rest.u64()?,
                storage_policy: rest.u8()?,
                erasure_coding_policy: rest.u8()?,
            },
            _ => InodeKind::Symlink,
        };
        let acl = AclEntries(rest.bytes()?).map(AclRef::to_entry).collect();
        let xattrs = XattrEntries(rest.bytes()?).map(XattrRef::to_xattr).collect();
        let quota = decode_quota(rest.bytes()?).limits;
        Ok(AttributeCopy { name, inode, acl, xattrs, quota })
    }
}
