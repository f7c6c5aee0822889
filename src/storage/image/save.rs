//! A state into an image.

mod past;

use super::digest::Digest;
use super::features::{encode_acl, encode_kind_quotas, encode_xattrs, storage_policy};
use super::inode::PackedPermission;
use super::policies;
use super::strings::{Kind, StringTableBuilder};
use super::summary::{ImageError, MAGIC, Section, SectionName, Summary};
use hadoop_proto::wire::{Sink, varint_length};
use md5::{Digest as _, Md5};
use record::{Features, Inode, InodeHandle, InodeKind};
use state::State;
use std::sync::Arc;
use vocab::erasure_coding::REPLICATION;
use vocab::layout::Feature;
use vocab::storage_policy::UNSPECIFIED;
use vocab::{Block, LayoutVersion, Txid};

/// What an image says besides the state.
#[derive(Clone, Copy, Debug)]
pub struct SaveContext {
    /// Layout to write.
    pub layout: LayoutVersion,
    /// `namespaceID` of the storage.
    pub namespace_id: u32,
    /// Last transaction in the state.
    pub txid: Txid,
    /// Whether users, groups and attribute names get string tables of their own.
    pub expanded_string_tables: bool,
}

/// Bytes are handed on in pieces of about this size.
const CHUNK: usize = 1 << 20;

/// Encodes a state as an image, handing its bytes in order to `sink`, and gives the digest of all of them. Memory is bounded; nothing is
/// allocated per inode.
///
/// # Errors
/// [`ImageError`] if the state does not fit the format (too many distinct names).
pub fn encode(state: &State, context: SaveContext, sink: &mut dyn FnMut(&[u8])) -> Result<Digest, ImageError> {
    let out =
        Output { sink, digest: Md5::new(), buffer: Vec::with_capacity(CHUNK + 4096), written: 0, sections: Vec::new() };
    Saver {
        state,
        context,
        strings: StringTableBuilder::new(context.expanded_string_tables),
        users: Vec::new(),
        groups: Vec::new(),
        references: Vec::new(),
        out,
    }
    .run()
}

/// Where bytes go: a buffer, the digest beside it, and the table of sections.
struct Output<'a> {
    sink: &'a mut dyn FnMut(&[u8]),
    digest: Md5,
    buffer: Vec<u8>,
    written: u64,
    sections: Vec<Section>,
}

impl Output<'_> {
    fn offset(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }
    fn flush(&mut self) {
        self.digest.update(&self.buffer);
        (self.sink)(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
    }
    /// A delimited message.
    fn message(&mut self, message: &[u8]) {
        self.buffer.put_delimited(message);
        if self.buffer.len() >= CHUNK {
            self.flush();
        }
    }
}

struct Saver<'a> {
    state: &'a State,
    context: SaveContext,
    strings: StringTableBuilder,
    /// Serial numbers in the image by number of the store, 0 for not given yet.
    users: Vec<u32>,
    groups: Vec<u32>,
    references: Vec<past::Reference>,
    out: Output<'a>,
}

type Outcome = Result<(), ImageError>;

impl Saver<'_> {
    fn run(mut self) -> Result<Digest, ImageError> {
        self.out.buffer.extend_from_slice(MAGIC);
        self.section(SectionName::NsInfo, Self::name_system)?;
        if self.context.layout.supports(Feature::ErasureCoding) {
            self.section(SectionName::ErasureCoding, Self::erasure_coding)?;
        }
        self.section(SectionName::Inode, Self::inodes)?;
        self.section(SectionName::InodeDir, Self::directories)?;
        self.section(SectionName::FilesUnderConstruction, Self::open_files)?;
        self.section(SectionName::Snapshot, Self::snapshots)?;
        if self.state.tree.snapshots.count() > 0 {
            self.section(SectionName::SnapshotDiff, Self::diffs)?;
        }
        self.section(SectionName::InodeReference, Self::references)?;
        self.section(SectionName::SecretManager, Self::secrets)?;
        self.section(SectionName::CacheManager, Self::cache)?;
        self.section(SectionName::StringTable, Self::strings)?;
        let sections = std::mem::take(&mut self.out.sections);
        let summary = Summary { layout: self.context.layout, codec: None, sections };
        self.out.buffer.extend(summary.encode());
        self.out.flush();
        Ok(Digest(self.out.digest.finalize().into()))
    }

    fn section(&mut self, name: SectionName, write: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let offset = self.out.offset();
        write(self)?;
        let length = self.out.offset() - offset;
        self.out.sections.push(Section { name, offset, length });
        Ok(())
    }

    fn name_system(&mut self) -> Outcome {
        let s = &self.state.sequences;
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(self.context.namespace_id));
        m.put_varint_field(2, s.stamp_v1.0 as u64);
        m.put_varint_field(3, s.stamp.0 as u64);
        m.put_varint_field(4, s.stamp_v1_limit.0 as u64);
        m.put_varint_field(5, s.block.0 as u64);
        m.put_varint_field(6, self.context.txid.0);
        if let Some(start) = s.rolling_upgrade_start {
            m.put_varint_field(7, start.0 as u64);
        }
        m.put_varint_field(8, s.block_group.0 as u64);
        self.out.message(&m);
        Ok(())
    }

    fn erasure_coding(&mut self) -> Outcome {
        self.out.message(&policies::encode(&self.state.tree.erasure_coding));
        Ok(())
    }

    fn inodes(&mut self) -> Outcome {
        let store = &self.state.store;
        let mut header = Vec::new();
        header.put_varint_field(1, self.state.sequences.inode.0 as u64);
        header.put_varint_field(2, store.inode_count());
        self.out.message(&header);
        let (mut body, mut message) = (Vec::new(), Vec::new());
        for handle in store.inodes() {
            let inode = store.inode(handle);
            body.clear();
            message.clear();
            let (kind, field) = self.inode_body(handle, &inode, &mut body)?;
            message.put_varint_field(1, kind);
            message.put_varint_field(2, inode.id.0 as u64);
            message.put_bytes_field(3, store.name(handle));
            message.put_bytes_field(field, &body);
            self.out.message(&message);
        }
        Ok(())
    }

    /// Writes the body of the kind; gives the kind's number and the field that holds the body.
    fn inode_body(&mut self, handle: InodeHandle, inode: &Inode, out: &mut Vec<u8>) -> Result<(u64, u32), ImageError> {
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
        let store = &self.state.store;
        let user =
            serial(&mut self.users, inode.user.0, Kind::User, &mut self.strings, || store.user_name(inode.user))?;
        let group =
            serial(&mut self.groups, inode.group.0, Kind::Group, &mut self.strings, || store.group_name(inode.group))?;
        Ok(PackedPermission::new(user, group, inode.mode.bits()))
    }

    fn blocks(&self, handle: InodeHandle, out: &mut Vec<u8>) {
        let store = &self.state.store;
        for block in store.blocks_of(handle) {
            // what the journal knows of the block, as a replay would find it
            let Block { id, length, stamp } = self.state.logged_block(store.block(block).block);
            let size = 3 + varint_length(id.0 as u64) + varint_length(stamp.0 as u64) + varint_length(length);
            out.push(6 << 3 | 2);
            out.put_varint(size as u64);
            out.put_varint_field(1, id.0 as u64);
            out.put_varint_field(2, stamp.0 as u64);
            out.put_varint_field(3, length);
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
        if inode.features.contains(Features::ACL) {
            out.put_bytes_field(fields[0], &encode_acl(&self.state.tree.acl(handle), &mut self.strings)?);
        }
        let mut all = Vec::new();
        if inode.features.contains(Features::XATTRS) {
            all = self.state.tree.xattrs(handle);
        }
        if directory_policy != UNSPECIFIED {
            all.push(storage_policy(directory_policy));
        }
        if !all.is_empty() {
            out.put_bytes_field(fields[1], &encode_xattrs(&all, &mut self.strings)?);
        }
        Ok(())
    }

    fn directories(&mut self) -> Outcome {
        let store = &self.state.store;
        let plain = self.state.tree.snapshots.is_empty();
        let (mut children, mut references, mut message) = (Vec::new(), Vec::new(), Vec::new());
        for handle in store.inodes() {
            if store.children(handle).1 == 0 {
                continue;
            }
            children.clear();
            message.clear();
            references.clear();
            for child in self.state.tree.children(store, handle) {
                if !plain && let Some(reference) = self.renamed(child) {
                    references.put_varint(reference);
                    continue;
                }
                children.put_varint(store.inode_id(child).0 as u64);
            }
            message.put_varint_field(1, store.inode_id(handle).0 as u64);
            if !children.is_empty() {
                message.put_bytes_field(2, &children);
            }
            if !references.is_empty() {
                message.put_bytes_field(3, &references);
            }
            self.out.message(&message);
        }
        Ok(())
    }

    fn open_files(&mut self) -> Outcome {
        let store = &self.state.store;
        for lease in self.state.tree.leases.iter() {
            for id in &lease.files {
                let Some(handle) = store.find_inode(*id) else { continue };
                let mut m = Vec::new();
                m.put_varint_field(1, id.0 as u64);
                m.put_bytes_field(2, &self.state.tree.path_of(store, handle));
                self.out.message(&m);
            }
        }
        Ok(())
    }

    fn secrets(&mut self) -> Outcome {
        let tokens = &self.state.tokens;
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(tokens.current_key as u32));
        m.put_varint_field(2, u64::from(tokens.sequence as u32));
        m.put_varint_field(3, tokens.keys.len() as u64);
        m.put_varint_field(4, tokens.tokens.len() as u64);
        self.out.message(&m);
        for (id, key) in &tokens.keys {
            let mut m = Vec::new();
            m.put_varint_field(1, u64::from(*id as u32));
            m.put_varint_field(2, key.expiry.0 as u64);
            if let Some(secret) = &key.secret {
                m.put_bytes_field(3, secret);
            }
            self.out.message(&m);
        }
        for token in tokens.tokens.values() {
            let mut m = Vec::new();
            m.put_varint_field(1, 0);
            m.put_bytes_field(2, token.owner.as_bytes());
            m.put_bytes_field(3, token.renewer.as_bytes());
            m.put_bytes_field(4, token.real_user.as_bytes());
            m.put_varint_field(5, token.issue_date.0 as u64);
            m.put_varint_field(6, token.max_date.0 as u64);
            m.put_varint_field(7, u64::from(token.sequence_number as u32));
            m.put_varint_field(8, u64::from(token.master_key_id as u32));
            m.put_varint_field(9, token.expiry.0 as u64);
            self.out.message(&m);
        }
        Ok(())
    }

    fn cache(&mut self) -> Outcome {
        let mut m = Vec::new();
        m.put_varint_field(1, self.state.preserved.next_cache_directive.max(1));
        m.put_varint_field(2, 0);
        m.put_varint_field(3, 0);
        self.out.message(&m);
        Ok(())
    }

    fn strings(&mut self) -> Outcome {
        let section = self.strings.encode();
        self.out.buffer.extend_from_slice(&section);
        Ok(())
    }
}

fn fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    out.push((number << 3 | 1) as u8);
    out.extend_from_slice(&value.to_le_bytes());
}

/// The image's serial number of a name, looked up once per number of the store.
fn serial<'a>(
    known: &mut Vec<u32>,
    number: u32,
    kind: Kind,
    strings: &mut StringTableBuilder,
    name: impl FnOnce() -> &'a Arc<str>,
) -> Result<u32, ImageError> {
    let at = number as usize;
    if known.len() <= at {
        known.resize(at + 1, 0);
    }
    if known[at] == 0 {
        known[at] = strings.serial(kind, name())?;
    }
    Ok(known[at])
}
