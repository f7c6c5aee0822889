//! Writing records at the current layout, and at older ones down to -61 while a rolling upgrade is in progress.

use crate::error::EncodeError;
use crate::fields::NO_CALL_ID;
use crate::record::{AddClose, CacheDirective, CachePool, Permission, Token};
use crate::{Record, java_text, protobuf};
use vocab::acl::AclEntry;
use vocab::layout::Feature;
use vocab::time::TimeMs;
use vocab::{Block, LayoutVersion, RpcIds, Txid};

/// Appends the whole frame of `record`; returns its bytes. Nothing is appended on an error.
///
/// # Errors
/// The record, or a field of it that is set, is newer than `layout`, or `layout` is older than -61.
pub fn encode(record: &Record<'_>, txid: Txid, layout: LayoutVersion, out: &mut Vec<u8>) -> Result<usize, EncodeError> {
    let opcode = record.opcode();
    let field_is_newer = match record {
        Record::Add(file) => file.erasure_coding_policy != 0 && !layout.supports(Feature::ErasureCoding),
        _ => false,
    };
    if field_is_newer || !opcode.in_layout(layout) || !layout.supports(Feature::Truncate) {
        return Err(EncodeError { opcode, layout });
    }
    let start = out.len();
    out.push(opcode as u8);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&txid.0.to_be_bytes());
    Body { out, layout }.record(record);
    let length = (out.len() - start - 1) as i32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
    Ok(out.len() - start)
}

struct Body<'b> {
    out: &'b mut Vec<u8>,
    layout: LayoutVersion,
}

impl Body<'_> {
    fn record(&mut self, record: &Record<'_>) {
        use Record as R;
        match record {
            R::Add(file) => self.add(file),
            R::Close(file) => self.file(file),
            R::RenameOld { src, dst, time, rpc } => self.str(src).str(dst).time(*time).rpc(rpc),
            R::Delete { path, time, rpc } => self.str(path).time(*time).rpc(rpc),
            R::Mkdir { inode_id, path, mtime, atime, permission, acl, xattrs } => {
                self.i64(inode_id.0).str(path).time(*mtime).time(*atime).permission(permission).acl(acl);
                protobuf::put_xattrs(b"", xattrs, false, self.out);
            }
            R::SetReplication { path, replication } => _ = self.str(path).u16(*replication),
            R::SetPermissions { path, mode } => _ = self.str(path).u16(*mode),
            R::SetOwner { path, user, group } => {
                self.str(path)
                    .str(user.as_deref().unwrap_or("").as_bytes())
                    .str(group.as_deref().unwrap_or("").as_bytes());
            }
            R::SetGenstampV1 { stamp } | R::SetGenstampV2 { stamp } => _ = self.i64(stamp.0),
            R::SetNamespaceQuota { path, quota } => _ = self.str(path).i64(*quota),
            R::ClearNamespaceQuota { path } => _ = self.str(path),
            R::Times { path, mtime, atime } => _ = self.str(path).time(*mtime).time(*atime),
            R::SetQuota { path, namespace, space } => _ = self.str(path).i64(*namespace).i64(*space),
            R::Rename { src, dst, time, options, rpc } => {
                self.str(src).str(dst).time(*time).i32(options.len() as i32);
                self.out.extend(options.iter().map(|option| *option as u8));
                self.rpc(rpc);
            }
            R::Concat { target, sources, time, rpc } => {
                self.str(target).i32(sources.len() as i32);
                for source in sources {
                    self.str(source);
                }
                self.time(*time).rpc(rpc);
            }
            R::Symlink { inode_id, path, target, mtime, atime, permission, rpc } => {
                self.i64(inode_id.0).str(path).str(target).time(*mtime).time(*atime).permission(permission).rpc(rpc);
            }
            R::EndLogSegment | R::StartLogSegment => {}
            R::UpdateBlocks { path, blocks, rpc } => self.str(path).blocks_compact(blocks.iter()).rpc(rpc),
            R::AllocateBlockId { id } => _ = self.i64(*id),
            R::AddBlock { path, penultimate, last, rpc } => {
                self.str(path).blocks_compact(penultimate.iter().chain([last])).rpc(rpc);
            }
            R::Truncate { path, client_name, client_machine, new_length, time, block } => {
                self.str(path).str(client_name.as_bytes()).str(client_machine.as_bytes());
                self.i64(*new_length as i64).time(*time).blocks_compact(block.iter());
            }
            R::Append { path, client_name, client_machine, new_block, rpc } => {
                self.str(path)
                    .str(client_name.as_bytes())
                    .str(client_machine.as_bytes())
                    .u8(u8::from(*new_block))
                    .rpc(rpc);
            }
            R::ReassignLease { holder, path, new_holder } => {
                _ = self.str(holder.as_bytes()).str(path).str(new_holder.as_bytes())
            }
            _ => self.rarer(record),
        }
    }

    fn rarer(&mut self, record: &Record<'_>) {
        use Record as R;
        match record {
            R::GetDelegationToken { token, expiry } | R::RenewDelegationToken { token, expiry } => {
                _ = self.token(token).time(*expiry)
            }
            R::CancelDelegationToken { token } => _ = self.token(token),
            R::UpdateMasterKey { id, expiry, key } => {
                self.vlong(i64::from(*id)).vlong(expiry.0);
                self.vlong(key.as_ref().map_or(-1, |key| key.len() as i64));
                self.out.extend_from_slice(key.as_deref().unwrap_or(b""));
            }
            R::CreateSnapshot { root, name, mtime, rpc } | R::DeleteSnapshot { root, name, mtime, rpc } => {
                self.str(root).str(name).snapshot_time(mtime).rpc(rpc);
            }
            R::RenameSnapshot { root, old, new, mtime, rpc } => {
                self.str(root).str(old).str(new).snapshot_time(mtime).rpc(rpc)
            }
            R::AllowSnapshot { root } | R::DisallowSnapshot { root } => _ = self.str(root),
            R::AddCacheDirective { directive, rpc } | R::ModifyCacheDirective { directive, rpc } => {
                self.cache_directive(directive).rpc(rpc);
            }
            R::RemoveCacheDirective { id, rpc } => self.i64(*id).rpc(rpc),
            R::AddCachePool { pool, rpc } | R::ModifyCachePool { pool, rpc } => self.cache_pool(pool).rpc(rpc),
            R::RemoveCachePool { name, rpc } => self.str(name.as_bytes()).rpc(rpc),
            R::SetAcl { path, entries } => protobuf::put_acl(path, entries, self.out),
            R::RollingUpgradeStart { time } | R::RollingUpgradeFinalize { time } => _ = self.time(*time),
            R::SetXattr { path, xattrs, given, rpc } => {
                protobuf::put_xattrs(path, xattrs, *given, self.out);
                self.rpc(rpc);
            }
            R::RemoveXattr { path, xattrs, rpc } => {
                protobuf::put_xattrs(path, xattrs, false, self.out);
                self.rpc(rpc);
            }
            R::SetStoragePolicy { path, policy } => _ = self.str(path).u8(*policy),
            R::SetQuotaByKind { path, kind, quota } => _ = self.str(path).i32(*kind as i32).i64(*quota),
            R::AddErasureCodingPolicy { codec, data_units, parity_units, cell_size, options, rpc } => {
                self.str(codec.as_bytes()).i32(*data_units).i32(*parity_units);
                self.i32(*cell_size as i32).i32(options.len() as i32);
                for (key, value) in options {
                    self.str(key.as_bytes()).str(value.as_bytes());
                }
                self.rpc(rpc);
            }
            R::EnableErasureCodingPolicy { name, rpc }
            | R::DisableErasureCodingPolicy { name, rpc }
            | R::RemoveErasureCodingPolicy { name, rpc } => self.str(name.as_bytes()).rpc(rpc),
            _ => unreachable!("encoded by `record`"),
        }
    }

    /// The part that OP_ADD and OP_CLOSE share.
    fn file(&mut self, file: &AddClose<'_>) {
        self.i64(file.inode_id.0).str(&file.path).u16(file.replication).time(file.mtime).time(file.atime);
        self.i64(file.block_size as i64).i32(file.blocks.len() as i32);
        for block in &file.blocks {
            self.i64(block.id.0).i64(block.length as i64).i64(block.stamp.0);
        }
        self.permission(&file.permission);
    }
    fn add(&mut self, file: &AddClose<'_>) {
        self.file(file);
        self.acl(&file.acl);
        protobuf::put_xattrs(b"", &file.xattrs, false, self.out);
        self.str(file.client_name.as_bytes()).str(file.client_machine.as_bytes());
        self.u8(u8::from(file.overwrite)).u8(file.storage_policy);
        if self.layout.supports(Feature::ErasureCoding) {
            self.u8(file.erasure_coding_policy);
        }
        self.rpc(&file.rpc);
    }

    fn u8(&mut self, value: u8) -> &mut Self {
        self.out.push(value);
        self
    }
    fn u16(&mut self, value: u16) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }
    fn i32(&mut self, value: i32) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }
    fn i64(&mut self, value: i64) -> &mut Self {
        self.out.extend_from_slice(&value.to_be_bytes());
        self
    }
    fn time(&mut self, time: TimeMs) -> &mut Self {
        self.i64(time.0)
    }
    /// Since -66; a record without a time (read from an older log) is written with 0.
    fn snapshot_time(&mut self, time: &Option<TimeMs>) -> &mut Self {
        if self.layout.supports(Feature::SnapshotModificationTime) { self.time(time.unwrap_or_default()) } else { self }
    }
    fn vlong(&mut self, value: i64) -> &mut Self {
        put_vlong(value, self.out);
        self
    }
    fn str(&mut self, text: &[u8]) -> &mut Self {
        let start = self.out.len();
        self.u16(0);
        java_text::put(text, self.out);
        let count = (self.out.len() - start - 2) as u16;
        self.out[start..start + 2].copy_from_slice(&count.to_be_bytes());
        self
    }
    fn text(&mut self, text: &str) -> &mut Self {
        self.vlong(text.len() as i64);
        self.out.extend_from_slice(text.as_bytes());
        self
    }
    fn permission(&mut self, permission: &Permission<'_>) -> &mut Self {
        self.text(&permission.user).text(&permission.group).u16(permission.mode)
    }
    fn acl(&mut self, entries: &[AclEntry]) {
        self.i32(entries.len() as i32);
        for entry in entries {
            let bits = (entry.permission.0 & 7) | (entry.kind as u8) << 3 | (entry.scope as u8) << 5;
            match &entry.name {
                Some(name) => _ = self.u8(bits | 1 << 6).str(name.as_bytes()),
                None => _ = self.u8(bits),
            }
        }
    }
    fn blocks_compact<'r>(&mut self, blocks: impl Iterator<Item = &'r Block> + Clone) -> &mut Self {
        self.vlong(blocks.clone().count() as i64);
        let (mut length, mut stamp) = (0i64, 0i64);
        for block in blocks {
            self.i64(block.id.0)
                .vlong((block.length as i64).wrapping_sub(length))
                .vlong(block.stamp.0.wrapping_sub(stamp));
            (length, stamp) = (block.length as i64, block.stamp.0);
        }
        self
    }
    fn rpc(&mut self, rpc: &Option<RpcIds>) {
        match rpc {
            Some(ids) => {
                self.u16(16).out.extend_from_slice(&ids.client_id);
                self.i32(ids.call_id);
            }
            None => _ = self.u16(0).i32(NO_CALL_ID),
        }
    }
    fn token(&mut self, token: &Token<'_>) -> &mut Self {
        self.u8(0)
            .text(&token.owner)
            .text(&token.renewer)
            .text(&token.real_user)
            .vlong(token.issue_date.0)
            .vlong(token.max_date.0);
        self.vlong(i64::from(token.sequence_number)).vlong(i64::from(token.master_key_id))
    }
    fn cache_directive(&mut self, directive: &CacheDirective<'_>) -> &mut Self {
        let CacheDirective { id, path, replication, pool, expiration } = directive;
        let present = [path.is_some(), replication.is_some(), pool.is_some(), expiration.is_some()];
        self.i64(*id).i32(flags(&present));
        path.iter().for_each(|path| _ = self.str(path));
        replication.iter().for_each(|replication| _ = self.u16(*replication as u16));
        pool.iter().for_each(|pool| _ = self.str(pool.as_bytes()));
        expiration.iter().for_each(|time| _ = self.time(*time));
        self
    }
    fn cache_pool(&mut self, pool: &CachePool<'_>) -> &mut Self {
        let CachePool { name, owner, group, mode, limit, max_relative_expiry, default_replication } = pool;
        let present = [
            owner.is_some(),
            group.is_some(),
            mode.is_some(),
            limit.is_some(),
            max_relative_expiry.is_some(),
            default_replication.is_some(),
        ];
        self.str(name.as_bytes()).i32(flags(&present));
        owner.iter().for_each(|owner| _ = self.str(owner.as_bytes()));
        group.iter().for_each(|group| _ = self.str(group.as_bytes()));
        mode.iter().for_each(|mode| _ = self.u16(mode.bits()));
        limit.iter().for_each(|limit| _ = self.i64(*limit));
        max_relative_expiry.iter().for_each(|expiry| _ = self.i64(*expiry));
        default_replication.iter().for_each(|replication| _ = self.u16(*replication as u16));
        self
    }
}

/// Flag word with bit i set where field i is present.
fn flags(present: &[bool]) -> i32 {
    present.iter().enumerate().map(|(bit, present)| i32::from(*present) << bit).sum()
}

/// Hadoop's variable-length integer (`WritableUtils`): -112..127 in one byte, else a marker with sign and length, then the magnitude.
fn put_vlong(value: i64, out: &mut Vec<u8>) {
    if (-112..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    let (magnitude, base) = if value < 0 { (!value, -120i32) } else { (value, -112) };
    let length = (8 - magnitude.leading_zeros() as usize / 8).max(1);
    out.push((base - length as i32) as u8);
    out.extend_from_slice(&magnitude.to_be_bytes()[8 - length..]);
}
