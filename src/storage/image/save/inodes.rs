//! The two large sections: arena page by arena page, by several threads for a large namespace. Pages are dealt out in turn, so that each thread's
//! pages come in order and what waits is bounded.

use super::super::features::{encode_acl, encode_kind_quotas, encode_xattrs, storage_policy};
use super::super::inode::PackedPermission;
use super::super::strings::{Kind, StringTableBuilder};
use super::super::summary::{ImageError, SectionName};
use super::{Outcome, Saver, fixed64, serial};
use hadoop_proto::wire::{Sink, varint_length};
use record::{Features, Inode, InodeHandle, InodeKind};
use state::State;
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use vocab::Block;
use vocab::erasure_coding::REPLICATION;
use vocab::storage_policy::UNSPECIFIED;

/// Pages that are encoded and handed on together, where sub-sections need not end between them.
const GROUP_PAGES: u32 = 4;
/// Encoded groups that may wait, for each thread.
const WAITING: usize = 4;

/// Some pages of records, encoded, and how many records of the section are in them.
type Group = Result<(Vec<u8>, u64), ImageError>;

/// Encodes inodes of a state.
struct Encoder<'a> {
    state: &'a State,
    strings: &'a Mutex<StringTableBuilder>,
    /// Serial numbers in the image by number of the store, 0 for not asked yet.
    users: Vec<u32>,
    groups: Vec<u32>,
    body: Vec<u8>,
    message: Vec<u8>,
}

impl Saver<'_> {
    pub(super) fn inodes(&mut self) -> Outcome {
        let store = &self.state.store;
        let mut header = Vec::new();
        header.put_varint_field(1, self.state.sequences.inode.0 as u64);
        header.put_varint_field(2, store.inode_count());
        self.out.message(&header)?;
        self.pages(SectionName::InodeSub, |encoder, page, out| encoder.inodes(page, out))
    }

    pub(super) fn directories(&mut self) -> Outcome {
        if self.state.tree.snapshots.is_empty() {
            return self.pages(SectionName::InodeDirSub, |encoder, page, out| Ok(encoder.directories(page, out)));
        }
        let (mut children, mut references, mut message) = (Vec::new(), Vec::new(), Vec::new());
        for handle in self.state.store.inodes() {
            if self.state.store.children(handle).1 == 0 {
                continue;
            }
            children.clear();
            message.clear();
            references.clear();
            for child in self.state.tree.children(&self.state.store, handle) {
                match self.renamed(child) {
                    Some(reference) => references.put_varint(reference),
                    None => children.put_varint(self.state.store.inode_id(child).0 as u64),
                }
            }
            message.put_varint_field(1, self.state.store.inode_id(handle).0 as u64);
            if !children.is_empty() {
                message.put_bytes_field(2, &children);
            }
            if !references.is_empty() {
                message.put_bytes_field(3, &references);
            }
            self.out.message(&message)?;
        }
        Ok(())
    }

    /// Writes a section page by page, and ends a sub-section whenever enough inodes were looked at.
    fn pages(
        &mut self,
        sub: SectionName,
        encode: impl Fn(&mut Encoder<'_>, u32, &mut Vec<u8>) -> Result<u64, ImageError> + Sync,
    ) -> Outcome {
        let (state, pages) = (self.state, self.state.store.inode_page_count());
        let threads = if self.beside { self.options.threads.clamp(1, 64) as u32 } else { 1 };
        let strings = Mutex::new(std::mem::take(&mut self.strings));
        let mut cuts = Cuts { every: self.sub_records, ..Cuts::default() };
        let encoder = || Encoder {
            state,
            strings: &strings,
            users: Vec::new(),
            groups: Vec::new(),
            body: Vec::new(),
            message: Vec::new(),
        };
        let outcome = if threads == 1 {
            let (mut encoder, mut buffer) = (encoder(), Vec::new());
            (0..pages).try_for_each(|page| {
                buffer.clear();
                let count = encode(&mut encoder, page, &mut buffer)?;
                buffer = self.page(sub, std::mem::take(&mut buffer), count, &mut cuts)?.unwrap_or_default();
                Ok(())
            })
        } else {
            let (encode, encoder) = (&encode, &encoder);
            let step = if self.sub_records.is_some() { 1 } else { GROUP_PAGES };
            let groups = pages.div_ceil(step);
            let pages_of = &|group: u32| group * step..((group + 1) * step).min(pages);
            let (spent, spare) = sync_channel::<Vec<u8>>(threads as usize * WAITING * 2);
            let spare = &Mutex::new(spare);
            std::thread::scope(|scope| {
                let worker = |first: u32| {
                    let (done, encoded) = sync_channel::<Group>(WAITING);
                    let groups = (first..groups).step_by(threads as usize).map(pages_of);
                    scope.spawn(move || work(encoder(), encode, groups, spare, &done));
                    encoded
                };
                let encoded: Vec<Receiver<Group>> = (0..threads).map(worker).collect();
                (0..groups).try_for_each(|group| {
                    let next = encoded[(group % threads) as usize].recv();
                    let (buffer, count) = next.unwrap_or_else(|_| unreachable!("a worker sends all its groups"))?;
                    if let Some(buffer) = self.page(sub, buffer, count, &mut cuts)? {
                        // a buffer too many is dropped
                        _ = spent.try_send(buffer);
                    }
                    Ok(())
                })
            })
        };
        self.strings = strings.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome?;
        if cuts.any {
            self.out.cut(sub)?;
        }
        self.cut = cuts.any;
        Ok(())
    }

    /// Gives a buffer back that may be filled again.
    fn page(
        &mut self,
        sub: SectionName,
        bytes: Vec<u8>,
        count: u64,
        cuts: &mut Cuts,
    ) -> Result<Option<Vec<u8>>, ImageError> {
        let spent = self.out.put_whole(bytes)?;
        cuts.pending += count;
        if cuts.every.is_some_and(|every| cuts.pending >= every) && self.out.cut(sub)? {
            (cuts.any, cuts.pending) = (true, 0);
        }
        Ok(spent)
    }
}

/// Where sub-sections end.
#[derive(Default)]
struct Cuts {
    /// Records in a sub-section, if there are any.
    every: Option<u64>,
    pending: u64,
    any: bool,
}

fn work(
    mut encoder: Encoder<'_>,
    encode: &(impl Fn(&mut Encoder<'_>, u32, &mut Vec<u8>) -> Result<u64, ImageError> + Sync),
    groups: impl Iterator<Item = Range<u32>>,
    spare: &Mutex<Receiver<Vec<u8>>>,
    done: &SyncSender<Group>,
) {
    for mut pages in groups {
        let mut buffer = spare.lock().unwrap_or_else(PoisonError::into_inner).try_recv().unwrap_or_default();
        buffer.clear();
        let count = pages.try_fold(0, |count, page| Ok(count + encode(&mut encoder, page, &mut buffer)?));
        let outcome = count.map(|count| (buffer, count));
        if done.send(outcome).is_err() {
            return;
        }
    }
}

/// Bytes of a field's content with its length before it.
fn delimited_length(bytes: &[u8]) -> usize {
    varint_length(bytes.len() as u64) + bytes.len()
}

fn put_block(block: Block, out: &mut Vec<u8>) {
    let Block { id, length, stamp } = block;
    let size = 3 + varint_length(id.0 as u64) + varint_length(stamp.0 as u64) + varint_length(length);
    out.push(6 << 3 | 2);
    out.put_varint(size as u64);
    out.put_varint_field(1, id.0 as u64);
    out.put_varint_field(2, stamp.0 as u64);
    out.put_varint_field(3, length);
}

impl Encoder<'_> {
    fn inodes(&mut self, page: u32, out: &mut Vec<u8>) -> Result<u64, ImageError> {
        let store = &self.state.store;
        let mut count = 0;
        for handle in store.inodes_of_page(page) {
            let inode = store.inode(handle);
            let mut body = std::mem::take(&mut self.body);
            body.clear();
            let (kind, field) = self.body(handle, &inode, &mut body)?;
            let (id, name) = (inode.id.0 as u64, store.name(handle));
            // each of the four fields has a tag of one byte
            let size = 4 + varint_length(kind) + varint_length(id) + delimited_length(name) + delimited_length(&body);
            out.put_varint(size as u64);
            out.put_varint_field(1, kind);
            out.put_varint_field(2, id);
            out.put_bytes_field(3, name);
            out.put_bytes_field(field, &body);
            self.body = body;
            count += 1;
        }
        Ok(count)
    }

    /// Counts the inodes looked at, as Hadoop does: sub-sections end by them.
    fn directories(&mut self, page: u32, out: &mut Vec<u8>) -> u64 {
        let store = &self.state.store;
        let mut count = 0;
        for handle in store.inodes_of_page(page) {
            count += 1;
            if store.children(handle).1 == 0 {
                continue;
            }
            self.body.clear();
            self.message.clear();
            for child in self.state.tree.children(store, handle) {
                self.body.put_varint(store.inode_id(child).0 as u64);
            }
            self.message.put_varint_field(1, store.inode_id(handle).0 as u64);
            self.message.put_bytes_field(2, &self.body);
            out.put_delimited(&self.message);
        }
        count
    }

    /// Writes the body of the kind; gives the kind's number and the field that holds the body.
    fn body(&mut self, handle: InodeHandle, inode: &Inode, out: &mut Vec<u8>) -> Result<(u64, u32), ImageError> {
        let permission = self.permission(inode)?;
        Ok(match inode.kind {
            InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy } => {
                let striped = erasure_coding_policy != REPLICATION;
                if !striped {
                    out.put_varint_field(1, u64::from(replication));
                }
                out.put_varint_field(2, inode.mtime.0 as u64);
                out.put_varint_field(3, inode.atime.0 as u64);
                out.put_varint_field(4, block_size);
                fixed64(out, 5, permission.0);
                self.blocks(handle, out);
                self.construction(handle, inode, out);
                self.features(handle, inode, UNSPECIFIED, out, [8, 9])?;
                out.put_varint_field(10, u64::from(storage_policy));
                out.put_varint_field(11, striped.into());
                if striped {
                    out.put_varint_field(12, erasure_coding_policy.into());
                }
                (1, 4)
            }
            InodeKind::Directory { storage_policy, .. } => {
                let limits = self.state.tree.quota(&self.state.store, handle).map(|q| q.limits).unwrap_or_default();
                let number = |limit: Option<u64>| limit.map_or(u64::MAX, |v| v);
                out.put_varint_field(1, inode.mtime.0 as u64);
                out.put_varint_field(2, number(limits.namespace));
                out.put_varint_field(3, number(limits.space));
                fixed64(out, 4, permission.0);
                self.features(handle, inode, storage_policy, out, [5, 6])?;
                if let Some(quotas) = encode_kind_quotas(&limits.by_kind) {
                    out.put_bytes_field(7, &quotas);
                }
                (2, 5)
            }
            InodeKind::Symlink => {
                fixed64(out, 1, permission.0);
                out.put_bytes_field(2, self.state.tree.symlink_target(handle));
                out.put_varint_field(3, inode.mtime.0 as u64);
                out.put_varint_field(4, inode.atime.0 as u64);
                (3, 6)
            }
            InodeKind::Reference { .. } => {
                return Err(ImageError::Unsupported(format!("references between snapshots (inode {})", inode.id)));
            }
        })
    }

    fn permission(&mut self, inode: &Inode) -> Result<PackedPermission, ImageError> {
        let known = |list: &[u32], number: u32| list.get(number as usize).copied().filter(|serial| *serial != 0);
        let (user, group) = (known(&self.users, inode.user.0), known(&self.groups, inode.group.0));
        let (user, group) = match (user, group) {
            (Some(user), Some(group)) => (user, group),
            _ => {
                let store = &self.state.store;
                let strings = &mut self.strings.lock().unwrap_or_else(PoisonError::into_inner);
                let user = serial(&mut self.users, inode.user.0, Kind::User, strings, || store.user_name(inode.user))?;
                let name = || store.group_name(inode.group);
                (user, serial(&mut self.groups, inode.group.0, Kind::Group, strings, name)?)
            }
        };
        Ok(PackedPermission::new(user, group, inode.mode.bits()))
    }

    fn blocks(&self, handle: InodeHandle, out: &mut Vec<u8>) {
        let store = &self.state.store;
        // such a block is complete: the journal knows nothing else of it
        if let Some(block) = store.fused_block(handle) {
            return put_block(block, out);
        }
        for block in store.blocks_of(handle) {
            // what the journal knows of the block, as a replay would find it
            put_block(self.state.logged_block(store.block_core(block)), out);
        }
    }

    fn construction(&self, handle: InodeHandle, inode: &Inode, out: &mut Vec<u8>) {
        if !inode.features.contains(Features::CONSTRUCTION) {
            return;
        }
        if let Some(construction) = self.state.tree.construction(handle) {
            let mut m = Vec::new();
            m.put_bytes_field(1, construction.client.as_bytes());
            m.put_bytes_field(2, construction.machine.as_bytes());
            out.put_bytes_field(7, &m);
        }
    }

    /// ACL and attributes, in the given two fields. The storage policy of a directory is one of its attributes.
    fn features(
        &mut self,
        handle: InodeHandle,
        inode: &Inode,
        directory_policy: u8,
        out: &mut Vec<u8>,
        fields: [u32; 2],
    ) -> Outcome {
        if !inode.features.intersects(Features::ACL.with(Features::XATTRS)) && directory_policy == UNSPECIFIED {
            return Ok(());
        }
        let strings = &mut self.strings.lock().unwrap_or_else(PoisonError::into_inner);
        if inode.features.contains(Features::ACL) {
            out.put_bytes_field(fields[0], &encode_acl(&self.state.tree.acl(handle), strings)?);
        }
        let mut all = Vec::new();
        if inode.features.contains(Features::XATTRS) {
            all = self.state.tree.xattrs(handle);
        }
        if directory_policy != UNSPECIFIED {
            all.push(storage_policy(directory_policy));
        }
        if !all.is_empty() {
            out.put_bytes_field(fields[1], &encode_xattrs(&all, strings)?);
        }
        Ok(())
    }
}
