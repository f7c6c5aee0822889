//! Bodies of records. The frame around them is `frame.rs`'s.

use crate::error::Reason;
use crate::fields::{Fields, Result};
use crate::protobuf::XattrList;
use crate::record::{AddClose, CacheDirective, CachePool, RenameOption, Token};
use crate::{Opcode, Record, legacy, protobuf};
use vocab::acl::{AclEntry, AclScope};
use vocab::layout::Feature;
use vocab::time::TimeMs;
use vocab::xattr::Xattr;
use vocab::{Action, BlockId, GenerationStamp, InodeId, Mode, StorageKind};

/// Decodes the body of a record of kind `opcode` that starts at the position of `fields`.
pub(crate) fn decode<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    use Opcode as O;
    match opcode {
        O::Add => add_close(fields, true).map(Record::Add),
        O::Close => add_close(fields, false).map(Record::Close),
        O::RenameOld | O::Delete | O::Mkdir | O::Rename | O::Concat | O::Symlink => tree(opcode, fields),
        O::SetReplication | O::SetPermissions | O::SetOwner | O::Times | O::SetStoragePolicy => {
            attribute(opcode, fields)
        }
        O::SetNamespaceQuota | O::ClearNamespaceQuota | O::SetQuota | O::SetQuotaByKind => quota(opcode, fields),
        O::SetGenstampV1 | O::SetGenstampV2 | O::AllocateBlockId | O::UpdateBlocks | O::AddBlock => {
            block(opcode, fields)
        }
        O::Truncate | O::Append | O::ReassignLease => writer(opcode, fields),
        O::GetDelegationToken | O::RenewDelegationToken | O::CancelDelegationToken | O::UpdateMasterKey => {
            secret(opcode, fields)
        }
        O::EndLogSegment => Ok(Record::EndLogSegment),
        O::StartLogSegment => Ok(Record::StartLogSegment),
        O::CreateSnapshot | O::DeleteSnapshot | O::RenameSnapshot | O::AllowSnapshot | O::DisallowSnapshot => {
            snapshot(opcode, fields)
        }
        O::AddCacheDirective | O::RemoveCacheDirective | O::ModifyCacheDirective => {
            cache_directive_record(opcode, fields)
        }
        O::AddCachePool | O::ModifyCachePool | O::RemoveCachePool => cache_pool_record(opcode, fields),
        O::SetAcl => protobuf::acl(fields).map(|(path, entries)| Record::SetAcl { path, entries }),
        O::SetXattr => {
            let XattrList { path, xattrs, given } = protobuf::xattrs(fields)?;
            Ok(Record::SetXattr { path, xattrs, given, rpc: fields.rpc()? })
        }
        O::RemoveXattr => {
            let XattrList { path, xattrs, .. } = protobuf::xattrs(fields)?;
            Ok(Record::RemoveXattr { path, xattrs, rpc: fields.rpc()? })
        }
        O::RollingUpgradeStart => Ok(Record::RollingUpgradeStart { time: TimeMs(fields.i64()?) }),
        O::RollingUpgradeFinalize => Ok(Record::RollingUpgradeFinalize { time: TimeMs(fields.i64()?) }),
        O::AddErasureCodingPolicy
        | O::EnableErasureCodingPolicy
        | O::DisableErasureCodingPolicy
        | O::RemoveErasureCodingPolicy => erasure_coding(opcode, fields),
    }
}

fn inode_id(fields: &mut Fields<'_>) -> Result<InodeId> {
    if fields.has(Feature::AddInodeId) { fields.i64().map(InodeId) } else { Ok(InodeId::GRANDFATHERED) }
}

fn atime(fields: &mut Fields<'_>) -> Result<TimeMs> {
    if fields.has(Feature::FileAccessTime) { fields.time() } else { Ok(TimeMs(0)) }
}

fn add_close<'a>(fields: &mut Fields<'a>, is_add: bool) -> Result<Box<AddClose<'a>>> {
    legacy::counted(fields, 4, true)?;
    let mut file = Box::new(AddClose {
        inode_id: inode_id(fields)?,
        path: fields.path()?,
        replication: fields.short()?,
        mtime: fields.time()?,
        atime: atime(fields)?,
        block_size: fields.number()? as u64,
        blocks: fields.blocks_full()?,
        permission: fields.permission()?,
        acl: Vec::new(),
        xattrs: Vec::new(),
        client_name: "".into(),
        client_machine: "".into(),
        overwrite: false,
        storage_policy: 0,
        erasure_coding_policy: 0,
        rpc: None,
    });
    if !is_add {
        return Ok(file);
    }
    (file.acl, file.xattrs) = acl_and_xattrs(fields)?;
    file.client_name = fields.str()?;
    file.client_machine = fields.str()?;
    if fields.has(Feature::CreateOverwrite) {
        file.overwrite = fields.bool()?;
    }
    if fields.has(Feature::BlockStoragePolicy) {
        file.storage_policy = fields.u8()?;
    }
    if fields.has(Feature::ErasureCoding) {
        file.erasure_coding_policy = fields.u8()?;
    }
    file.rpc = fields.rpc()?;
    Ok(file)
}

fn acl_and_xattrs(fields: &mut Fields<'_>) -> Result<(Vec<AclEntry>, Vec<Xattr>)> {
    let acl = if fields.has(Feature::ExtendedAcl) { acl_entries(fields)? } else { Vec::new() };
    let xattrs = if fields.has(Feature::Xattrs) { protobuf::xattrs(fields)?.xattrs } else { Vec::new() };
    Ok((acl, xattrs))
}

fn acl_entries(fields: &mut Fields<'_>) -> Result<Vec<AclEntry>> {
    let count = i64::from(fields.i32()?);
    let count = fields.count(count, 1)?;
    let mut entries = Vec::with_capacity(count);
    for _ in 0..count {
        let bits = fields.u8()?;
        let Some(kind) = protobuf::acl_kind(u64::from(bits >> 3 & 3)) else { return fields.fail(Reason::Protobuf) };
        let scope = if bits >> 5 & 1 == 0 { AclScope::Access } else { AclScope::Default };
        let name = if bits >> 6 & 1 == 1 { Some(fields.str()?.into()) } else { None };
        entries.push(AclEntry { scope, kind, name, permission: Action(bits & 7) });
    }
    Ok(entries)
}

fn tree<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    match opcode {
        Opcode::RenameOld => {
            legacy::counted(fields, 3, false)?;
            Ok(Record::RenameOld { src: fields.path()?, dst: fields.path()?, time: fields.time()?, rpc: fields.rpc()? })
        }
        Opcode::Delete => {
            legacy::counted(fields, 2, false)?;
            Ok(Record::Delete { path: fields.path()?, time: fields.time()?, rpc: fields.rpc()? })
        }
        Opcode::Mkdir => {
            legacy::counted(fields, 2, true)?;
            let (inode_id, path, mtime) = (inode_id(fields)?, fields.path()?, fields.time()?);
            let (atime, permission) = (atime(fields)?, fields.permission()?);
            let (acl, xattrs) = acl_and_xattrs(fields)?;
            Ok(Record::Mkdir { inode_id, path, mtime, atime, permission, acl, xattrs })
        }
        Opcode::Rename => rename(fields),
        Opcode::Concat => concat(fields),
        _ => {
            legacy::counted(fields, 4, false)?;
            let (inode_id, path, target) = (inode_id(fields)?, fields.path()?, fields.path()?);
            let (mtime, atime, permission) = (fields.time()?, fields.time()?, fields.permission()?);
            Ok(Record::Symlink { inode_id, path, target, mtime, atime, permission, rpc: fields.rpc()? })
        }
    }
}

fn rename<'a>(fields: &mut Fields<'a>) -> Result<Record<'a>> {
    legacy::counted(fields, 3, false)?;
    let (src, dst, time) = (fields.path()?, fields.path()?, fields.time()?);
    let count = i64::from(fields.i32()?);
    let count = fields.count(count, 1)?;
    let mut options = Vec::with_capacity(count);
    for _ in 0..count {
        options.push(match fields.u8()? {
            0 => RenameOption::None,
            1 => RenameOption::Overwrite,
            2 => RenameOption::ToTrash,
            other => return fields.fail(Reason::Value { field: "rename option", value: i64::from(other) }),
        });
    }
    Ok(Record::Rename { src, dst, time, options, rpc: fields.rpc()? })
}

fn concat<'a>(fields: &mut Fields<'a>) -> Result<Record<'a>> {
    let array = if fields.has(Feature::EditlogOpOptimization) { None } else { Some(fields.i32()?) };
    let target = fields.path()?;
    let count = legacy::concat_sources(fields, array)?;
    let mut sources = Vec::with_capacity(count);
    for _ in 0..count {
        sources.push(fields.path()?);
    }
    Ok(Record::Concat { target, sources, time: fields.time()?, rpc: fields.rpc()? })
}

fn attribute<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    Ok(match opcode {
        Opcode::SetReplication => Record::SetReplication { path: fields.path()?, replication: fields.short()? },
        Opcode::SetPermissions => Record::SetPermissions { path: fields.path()?, mode: fields.u16()? },
        Opcode::SetOwner => {
            Record::SetOwner { path: fields.path()?, user: fields.str_or_absent()?, group: fields.str_or_absent()? }
        }
        Opcode::Times => {
            legacy::counted(fields, 3, false)?;
            Record::Times { path: fields.path()?, mtime: fields.time()?, atime: fields.time()? }
        }
        _ => Record::SetStoragePolicy { path: fields.path()?, policy: fields.u8()? },
    })
}

fn quota<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    let path = fields.path()?;
    Ok(match opcode {
        Opcode::SetNamespaceQuota => Record::SetNamespaceQuota { path, quota: fields.i64()? },
        Opcode::ClearNamespaceQuota => Record::ClearNamespaceQuota { path },
        Opcode::SetQuota => Record::SetQuota { path, namespace: fields.i64()?, space: fields.i64()? },
        _ => {
            let ordinal = fields.i32()?;
            let Some(kind) = u8::try_from(ordinal).ok().and_then(StorageKind::from_ordinal) else {
                return fields.fail(Reason::Value { field: "storage type", value: i64::from(ordinal) });
            };
            Record::SetQuotaByKind { path, kind, quota: fields.i64()? }
        }
    })
}

fn block<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    Ok(match opcode {
        Opcode::SetGenstampV1 => Record::SetGenstampV1 { stamp: GenerationStamp(fields.i64()?) },
        Opcode::SetGenstampV2 => Record::SetGenstampV2 { stamp: GenerationStamp(fields.i64()?) },
        Opcode::AllocateBlockId => Record::AllocateBlockId { id: BlockId(fields.i64()?).0 },
        Opcode::UpdateBlocks => {
            Record::UpdateBlocks { path: fields.path()?, blocks: fields.blocks_compact()?, rpc: fields.rpc()? }
        }
        _ => {
            let path = fields.path()?;
            let blocks = fields.blocks_compact()?;
            let (penultimate, last) = match blocks[..] {
                [last] => (None, last),
                [penultimate, last] => (Some(penultimate), last),
                _ => return fields.fail(Reason::Count(blocks.len() as i64)),
            };
            Record::AddBlock { path, penultimate, last, rpc: fields.rpc()? }
        }
    })
}

fn writer<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    if opcode == Opcode::ReassignLease {
        return Ok(Record::ReassignLease { holder: fields.str()?, path: fields.path()?, new_holder: fields.str()? });
    }
    let (path, client_name, client_machine) = (fields.path()?, fields.str()?, fields.str()?);
    if opcode == Opcode::Append {
        return Ok(Record::Append { path, client_name, client_machine, new_block: fields.bool()?, rpc: fields.rpc()? });
    }
    let (new_length, time) = (fields.i64()? as u64, TimeMs(fields.i64()?));
    let blocks = fields.blocks_compact()?;
    let block = match blocks[..] {
        [] => None,
        [block] => Some(block),
        _ => return fields.fail(Reason::Count(blocks.len() as i64)),
    };
    Ok(Record::Truncate { path, client_name, client_machine, new_length, time, block })
}

fn secret<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    Ok(match opcode {
        Opcode::GetDelegationToken => Record::GetDelegationToken { token: token(fields)?, expiry: fields.time()? },
        Opcode::RenewDelegationToken => Record::RenewDelegationToken { token: token(fields)?, expiry: fields.time()? },
        Opcode::CancelDelegationToken => Record::CancelDelegationToken { token: token(fields)? },
        _ => {
            let (id, expiry, length) = (fields.vint()?, TimeMs(fields.vlong()?), fields.vint()?);
            let key = if length == -1 {
                None
            } else {
                let length = fields.count(i64::from(length), 1)?;
                Some(fields.take(length)?.into())
            };
            Record::UpdateMasterKey { id, expiry, key }
        }
    })
}

fn token<'a>(fields: &mut Fields<'a>) -> Result<Token<'a>> {
    let version = fields.u8()?;
    if version != 0 {
        return fields.fail(Reason::Value { field: "delegation token version", value: i64::from(version) });
    }
    Ok(Token {
        owner: fields.text()?,
        renewer: fields.text()?,
        real_user: fields.text()?,
        issue_date: TimeMs(fields.vlong()?),
        max_date: TimeMs(fields.vlong()?),
        sequence_number: fields.vint()?,
        master_key_id: fields.vint()?,
    })
}

fn snapshot<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    let root = fields.path()?;
    let mtime = |fields: &mut Fields<'a>| -> Result<Option<TimeMs>> {
        if fields.has(Feature::SnapshotModificationTime) { Ok(Some(TimeMs(fields.i64()?))) } else { Ok(None) }
    };
    Ok(match opcode {
        Opcode::CreateSnapshot => {
            Record::CreateSnapshot { root, name: fields.path()?, mtime: mtime(fields)?, rpc: fields.rpc()? }
        }
        Opcode::DeleteSnapshot => {
            Record::DeleteSnapshot { root, name: fields.path()?, mtime: mtime(fields)?, rpc: fields.rpc()? }
        }
        Opcode::RenameSnapshot => Record::RenameSnapshot {
            root,
            old: fields.path()?,
            new: fields.path()?,
            mtime: mtime(fields)?,
            rpc: fields.rpc()?,
        },
        Opcode::AllowSnapshot => Record::AllowSnapshot { root },
        _ => Record::DisallowSnapshot { root },
    })
}

/// Reads the flag word of a cache record; flags beyond `known` are an error, as in Hadoop.
fn flags(fields: &mut Fields<'_>, known: i32) -> Result<i32> {
    let flags = fields.i32()?;
    if flags & !known == 0 {
        Ok(flags)
    } else {
        fields.fail(Reason::Value { field: "cache flags", value: i64::from(flags) })
    }
}

fn flagged<'a, T>(
    fields: &mut Fields<'a>,
    present: bool,
    read: impl FnOnce(&mut Fields<'a>) -> Result<T>,
) -> Result<Option<T>> {
    if present { read(fields).map(Some) } else { Ok(None) }
}

fn cache_directive_record<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    if opcode == Opcode::RemoveCacheDirective {
        return Ok(Record::RemoveCacheDirective { id: fields.i64()?, rpc: fields.rpc()? });
    }
    let id = fields.i64()?;
    let flags = flags(fields, 0xf)?;
    let directive = CacheDirective {
        id,
        path: flagged(fields, flags & 1 != 0, Fields::path)?,
        replication: flagged(fields, flags & 2 != 0, |f| f.u16().map(|v| v as i16))?,
        pool: flagged(fields, flags & 4 != 0, Fields::str)?,
        expiration: flagged(fields, flags & 8 != 0, |f| f.i64().map(TimeMs))?,
    };
    let rpc = fields.rpc()?;
    Ok(match opcode {
        Opcode::AddCacheDirective => Record::AddCacheDirective { directive, rpc },
        _ => Record::ModifyCacheDirective { directive, rpc },
    })
}

fn cache_pool_record<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    let name = fields.str()?;
    if opcode == Opcode::RemoveCachePool {
        return Ok(Record::RemoveCachePool { name, rpc: fields.rpc()? });
    }
    let flags = flags(fields, 0x3f)?;
    let pool = CachePool {
        name,
        owner: flagged(fields, flags & 1 != 0, Fields::str)?,
        group: flagged(fields, flags & 2 != 0, Fields::str)?,
        mode: flagged(fields, flags & 4 != 0, |f| f.u16().map(Mode::new))?,
        limit: flagged(fields, flags & 8 != 0, Fields::i64)?,
        max_relative_expiry: flagged(fields, flags & 16 != 0, Fields::i64)?,
        default_replication: flagged(fields, flags & 32 != 0, |f| f.u16().map(|v| v as i16))?,
    };
    let rpc = fields.rpc()?;
    Ok(match opcode {
        Opcode::AddCachePool => Record::AddCachePool { pool, rpc },
        _ => Record::ModifyCachePool { pool, rpc },
    })
}

fn erasure_coding<'a>(opcode: Opcode, fields: &mut Fields<'a>) -> Result<Record<'a>> {
    let name = fields.str()?;
    Ok(match opcode {
        Opcode::EnableErasureCodingPolicy => Record::EnableErasureCodingPolicy { name, rpc: fields.rpc()? },
        Opcode::DisableErasureCodingPolicy => Record::DisableErasureCodingPolicy { name, rpc: fields.rpc()? },
        Opcode::RemoveErasureCodingPolicy => Record::RemoveErasureCodingPolicy { name, rpc: fields.rpc()? },
        _ => {
            let (data_units, parity_units) = (fields.i32()?, fields.i32()?);
            let cell = fields.i32()?;
            let Ok(cell_size) = u32::try_from(cell) else {
                return fields.fail(Reason::Value { field: "cell size", value: i64::from(cell) });
            };
            let count = i64::from(fields.i32()?);
            let count = fields.count(count, 4)?;
            let mut options = Vec::with_capacity(count);
            for _ in 0..count {
                options.push((fields.str()?, fields.str()?));
            }
            Record::AddErasureCodingPolicy {
                codec: name,
                data_units,
                parity_units,
                cell_size,
                options,
                rpc: fields.rpc()?,
            }
        }
    })
}
