//! Snapshots, diffs and references into an image: sections SNAPSHOT, SNAPSHOT_DIFF and INODE_REFERENCE.

use super::super::features::{encode_acl, encode_kind_quotas, encode_xattrs, storage_policy};
use super::super::inode::PackedPermission;
use super::super::strings::Kind;
use super::super::summary::ImageError;
use super::{Outcome, Saver, fixed64, serial};
use hadoop_proto::wire::Sink;
use namespace::snapshot::{AttributeCopy, DirectoryDiff, FileDiff, Link};
use record::{InodeHandle, InodeKind};
use std::sync::Arc;
use vocab::SnapshotId;
use vocab::erasure_coding::REPLICATION;
use vocab::quota::Quota;
use vocab::storage_policy::UNSPECIFIED;
use vocab::xattr::Xattr;

/// One INODE_REFERENCE record.
pub(super) struct Reference {
    id: u64,
    /// Name and last snapshot, or the snapshot of the target.
    known: Result<(Arc<[u8]>, SnapshotId), SnapshotId>,
}

impl Saver<'_> {
    /// The number of a new reference record.
    fn refer(&mut self, inode: InodeHandle, known: Result<(Arc<[u8]>, SnapshotId), SnapshotId>) -> u64 {
        self.references.push(Reference { id: self.state.store.inode_id(inode).0 as u64, known });
        self.references.len() as u64 - 1
    }
    /// The number of the record for an inode that lies where a rename put it; `None` for any other.
    pub(super) fn renamed(&mut self, inode: InodeHandle) -> Option<u64> {
        let target = self.state.tree.snapshots.references(inode)?.target?;
        Some(self.refer(inode, Err(target)))
    }

    pub(super) fn snapshots(&mut self) -> Outcome {
        let past = &self.state.tree.snapshots;
        let mut header = Vec::new();
        header.put_varint_field(1, u64::from(past.counter));
        let mut ids = Vec::new();
        past.roots().for_each(|(id, _)| ids.put_varint(id.0 as u64));
        if !ids.is_empty() {
            header.put_bytes_field(2, &ids);
        }
        header.put_varint_field(3, past.count() as u64);
        self.out.message(&header)?;
        for (id, root) in past.roots() {
            for snapshot in &root.snapshots {
                let body = self.directory_copy(&snapshot.root)?;
                let (mut inode, mut message) = (Vec::new(), Vec::new());
                inode.put_varint_field(1, 2);
                inode.put_varint_field(2, id.0 as u64);
                inode.put_bytes_field(3, &snapshot.name);
                inode.put_bytes_field(5, &body);
                message.put_varint_field(1, u64::from(snapshot.id.0 as u32));
                message.put_bytes_field(2, &inode);
                self.out.message(&message)?;
            }
        }
        Ok(())
    }

    /// Diffs of all inodes, newest first.
    pub(super) fn diffs(&mut self) -> Outcome {
        let (store, past) = (&self.state.store, &self.state.tree.snapshots);
        let mut inodes: Vec<InodeHandle> = past.with_diffs().collect();
        // Hadoop has an entry for every directory that allows snapshots, and the root always counts as one
        inodes.push(self.state.tree.root());
        inodes.extend(past.roots().map(|(_, root)| root.directory));
        inodes.sort_unstable_by_key(|inode| store.inode_id(*inode));
        inodes.dedup();
        for inode in inodes {
            let (directory, file) = (past.directory_diffs(inode), past.file_diffs(inode));
            let mut entry = Vec::new();
            entry.put_varint_field(1, if file.is_empty() { 2 } else { 1 });
            entry.put_varint_field(2, store.inode_id(inode).0 as u64);
            entry.put_varint_field(3, (directory.len() + file.len()) as u64);
            self.out.message(&entry)?;
            for diff in file.iter().rev() {
                self.file_diff(diff)?;
            }
            for diff in directory.iter().rev() {
                self.directory_diff(inode, diff)?;
            }
        }
        Ok(())
    }

    fn file_diff(&mut self, diff: &FileDiff) -> Outcome {
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(diff.snapshot.0 as u32));
        m.put_varint_field(2, diff.length);
        if let Some(copy) = &diff.copy {
            m.put_bytes_field(3, &copy.name);
            let body = self.file_copy(copy)?;
            m.put_bytes_field(4, &body);
        }
        for b in diff.blocks.iter().flatten() {
            let block = self.state.logged_block(self.state.store.block_core(*b));
            let mut body = Vec::new();
            body.put_varint_field(1, block.id.0 as u64);
            body.put_varint_field(2, block.stamp.0 as u64);
            body.put_varint_field(3, block.length);
            m.put_bytes_field(5, &body);
        }
        self.out.message(&m)?;
        Ok(())
    }

    fn directory_diff(&mut self, directory: InodeHandle, diff: &DirectoryDiff) -> Outcome {
        let store = &self.state.store;
        let root = self.state.tree.snapshots.root(store.inode_id(directory));
        // a root diff whose snapshot went (nested directories) holds its attributes itself
        let is_root = diff.is_root && root.is_some_and(|r| r.by_id(diff.snapshot).is_some());
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(diff.snapshot.0 as u32));
        m.put_varint_field(2, u64::from(diff.children));
        m.put_varint_field(3, u64::from(is_root));
        if let Some(copy) = diff.copy.as_ref().filter(|_| !is_root) {
            m.put_bytes_field(4, &copy.name);
            let body = self.directory_copy(copy)?;
            m.put_bytes_field(5, &body);
        }
        m.put_varint_field(6, diff.created.len() as u64);
        let (mut plain, mut others) = (Vec::new(), Vec::new());
        for gone in &diff.deleted {
            let known = match &gone.link {
                Link::Plain => {
                    plain.put_varint(store.inode_id(gone.inode).0 as u64);
                    continue;
                }
                Link::Named { name, last } => Ok((name.clone(), *last)),
                Link::Renamed => {
                    let target = self.state.tree.snapshots.references(gone.inode).and_then(|r| r.target);
                    Err(target.unwrap_or(SnapshotId::CURRENT))
                }
            };
            let at = self.refer(gone.inode, known);
            others.put_varint(at);
        }
        for (field, list) in [(7, plain), (8, others)] {
            if !list.is_empty() {
                m.put_bytes_field(field, &list);
            }
        }
        self.out.message(&m)?;
        for name in &diff.created {
            let mut entry = Vec::new();
            entry.put_bytes_field(1, name);
            self.out.message(&entry)?;
        }
        Ok(())
    }

    /// What was referred to in the sections before.
    pub(super) fn references(&mut self) -> Outcome {
        for Reference { id, known } in std::mem::take(&mut self.references) {
            let mut m = Vec::new();
            m.put_varint_field(1, id);
            match known {
                Ok((name, last)) => {
                    m.put_bytes_field(2, &name);
                    m.put_varint_field(4, u64::from(last.0 as u32));
                }
                Err(target) => m.put_varint_field(3, u64::from(target.0 as u32)),
            }
            self.out.message(&m)?;
        }
        Ok(())
    }

    fn copied_permission(&mut self, copy: &AttributeCopy) -> Result<PackedPermission, ImageError> {
        let (store, inode) = (&self.state.store, &copy.inode);
        let user =
            serial(&mut self.users, inode.user.0, Kind::User, &mut self.strings, || store.user_name(inode.user))?;
        let group =
            serial(&mut self.groups, inode.group.0, Kind::Group, &mut self.strings, || store.group_name(inode.group))?;
        Ok(PackedPermission::new(user, group, inode.mode.bits()))
    }

    fn copied_features(&mut self, copy: &AttributeCopy, policy: u8, out: &mut Vec<u8>, fields: [u32; 2]) -> Outcome {
        if !copy.acl.is_empty() {
            out.put_bytes_field(fields[0], &encode_acl(&copy.acl, &mut self.strings)?);
        }
        let mut all: Vec<Xattr> = copy.xattrs.clone();
        if policy != UNSPECIFIED {
            all.push(storage_policy(policy));
        }
        if !all.is_empty() {
            out.put_bytes_field(fields[1], &encode_xattrs(&all, &mut self.strings)?);
        }
        Ok(())
    }

    fn directory_copy(&mut self, copy: &AttributeCopy) -> Result<Vec<u8>, ImageError> {
        let policy = match copy.inode.kind {
            InodeKind::Directory { storage_policy, .. } => storage_policy,
            _ => UNSPECIFIED,
        };
        let Quota { namespace, space, by_kind } = copy.quota;
        let number = |limit: Option<u64>| limit.map_or(u64::MAX, |v| v);
        let mut out = Vec::new();
        out.put_varint_field(1, copy.inode.mtime.0 as u64);
        out.put_varint_field(2, number(namespace));
        out.put_varint_field(3, number(space));
        let permission = self.copied_permission(copy)?;
        fixed64(&mut out, 4, permission.0);
        self.copied_features(copy, policy, &mut out, [5, 6])?;
        if let Some(quotas) = encode_kind_quotas(&by_kind) {
            out.put_bytes_field(7, &quotas);
        }
        Ok(out)
    }

    fn file_copy(&mut self, copy: &AttributeCopy) -> Result<Vec<u8>, ImageError> {
        let InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } = copy.inode.kind else {
            return Ok(Vec::new());
        };
        let striped = erasure_coding_policy != REPLICATION;
        let mut out = Vec::new();
        if !striped {
            out.put_varint_field(1, u64::from(replication));
        }
        out.put_varint_field(2, copy.inode.mtime.0 as u64);
        out.put_varint_field(3, copy.inode.atime.0 as u64);
        out.put_varint_field(4, block_size);
        let permission = self.copied_permission(copy)?;
        fixed64(&mut out, 5, permission.0);
        self.copied_features(copy, UNSPECIFIED, &mut out, [8, 9])?;
        out.put_varint_field(10, u64::from(storage_policy));
        out.put_varint_field(11, striped.into());
        if striped {
            out.put_varint_field(12, erasure_coding_policy.into());
        }
        Ok(out)
    }
}
