//! Records out of the XML that a viewer wrote.

use crate::tools::failure::Failure;
use crate::tools::stanza::Stanza;
use crate::tools::text::unhex;
use edit::record::{AddClose, Bytes, CacheDirective, CachePool, Permission, RenameOption, Text, Token};
use edit::{Opcode, Record};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::permission::Action;
use vocab::time::TimeMs;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Block, BlockId, GenerationStamp, InodeId, Mode, RpcIds, StorageKind};

type Read<T> = Result<T, Failure>;

/// The record of an opcode's name with its DATA element.
pub(super) fn record(name: &str, data: &Stanza) -> Read<Record<'static>> {
    use Opcode as O;
    let opcode = Opcode::ALL.iter().copied().find(|opcode| opcode.name() == name);
    let opcode = opcode.ok_or_else(|| Failure::Content(format!("No enum constant {name}")))?;
    let d = Data(data);
    Ok(match opcode {
        O::Add => Record::Add(Box::new(d.file(true)?)),
        O::Close => Record::Close(Box::new(d.file(false)?)),
        O::RenameOld => {
            Record::RenameOld { src: d.path("SRC")?, dst: d.path("DST")?, time: d.time("TIMESTAMP")?, rpc: d.rpc()? }
        }
        O::Delete => Record::Delete { path: d.path("PATH")?, time: d.time("TIMESTAMP")?, rpc: d.rpc()? },
        O::Mkdir => Record::Mkdir {
            inode_id: InodeId(data.number("INODEID")?),
            path: d.path("PATH")?,
            mtime: d.time("TIMESTAMP")?,
            atime: d.time("TIMESTAMP")?,
            permission: d.permission()?,
            acl: d.acl()?,
            xattrs: d.xattrs()?,
        },
        O::SetReplication => {
            Record::SetReplication { path: d.path("PATH")?, replication: data.number::<i16>("REPLICATION")? as u16 }
        }
        O::SetPermissions => Record::SetPermissions { path: d.path("SRC")?, mode: data.number("MODE")? },
        O::SetOwner => {
            Record::SetOwner { path: d.path("SRC")?, user: d.optional("USERNAME"), group: d.optional("GROUPNAME") }
        }
        O::SetGenstampV1 => Record::SetGenstampV1 { stamp: GenerationStamp(data.number("GENSTAMP")?) },
        O::SetNamespaceQuota => Record::SetNamespaceQuota { path: d.path("SRC")?, quota: data.number("NSQUOTA")? },
        O::ClearNamespaceQuota => Record::ClearNamespaceQuota { path: d.path("SRC")? },
        O::Times => Record::Times { path: d.path("PATH")?, mtime: d.time("MTIME")?, atime: d.time("ATIME")? },
        O::SetQuota => Record::SetQuota {
            path: d.path("SRC")?,
            namespace: data.number("NSQUOTA")?,
            space: data.number("DSQUOTA")?,
        },
        O::Rename => Record::Rename {
            src: d.path("SRC")?,
            dst: d.path("DST")?,
            time: d.time("TIMESTAMP")?,
            options: rename_options(data.text("OPTIONS")?)?,
            rpc: d.rpc()?,
        },
        O::Concat => {
            Record::Concat { target: d.path("TRG")?, sources: d.sources()?, time: d.time("TIMESTAMP")?, rpc: d.rpc()? }
        }
        O::Symlink => Record::Symlink {
            inode_id: InodeId(data.number("INODEID")?),
            path: d.path("PATH")?,
            target: d.path("VALUE")?,
            mtime: d.time("MTIME")?,
            atime: d.time("ATIME")?,
            permission: d.permission()?,
            rpc: d.rpc()?,
        },
        O::EndLogSegment => Record::EndLogSegment,
        O::StartLogSegment => Record::StartLogSegment,
        _ => return d.later(opcode),
    })
}

fn rename_options(text: &str) -> Read<Vec<RenameOption>> {
    let option = |name| match name {
        "NONE" => Ok(RenameOption::None),
        "OVERWRITE" => Ok(RenameOption::Overwrite),
        "TO_TRASH" => Ok(RenameOption::ToTrash),
        other => Err(Failure::Content(format!("unknown rename option {other}"))),
    };
    text.split('|').filter(|name| !name.is_empty()).map(option).collect()
}

/// The DATA element of a record.
struct Data<'s>(&'s Stanza);

impl Data<'_> {
    /// Records of blocks, snapshots and all that came after the first releases.
    fn later(&self, opcode: Opcode) -> Read<Record<'static>> {
        use Opcode as O;
        let (d, data) = (self, self.0);
        Ok(match opcode {
            O::UpdateBlocks => Record::UpdateBlocks { path: d.path("PATH")?, blocks: d.blocks()?, rpc: d.rpc()? },
            O::AddBlock => {
                let mut blocks = d.blocks()?;
                let last = blocks.pop().ok_or_else(|| Failure::content("no entry found for BLOCK"))?;
                Record::AddBlock { path: d.path("PATH")?, penultimate: blocks.pop(), last, rpc: d.rpc()? }
            }
            O::ReassignLease => Record::ReassignLease {
                holder: d.text("LEASEHOLDER")?,
                path: d.path("PATH")?,
                new_holder: d.text("NEWHOLDER")?,
            },
            O::SetGenstampV2 => Record::SetGenstampV2 { stamp: GenerationStamp(data.number("GENSTAMPV2")?) },
            O::AllocateBlockId => Record::AllocateBlockId { id: data.number("BLOCK_ID")? },
            O::Truncate => Record::Truncate {
                path: d.path("SRC")?,
                client_name: d.text("CLIENTNAME")?,
                client_machine: d.text("CLIENTMACHINE")?,
                new_length: data.number::<i64>("NEWLENGTH")? as u64,
                time: d.time("TIMESTAMP")?,
                block: d.blocks()?.pop(),
            },
            O::Append => Record::Append {
                path: d.path("PATH")?,
                client_name: d.text("CLIENT_NAME")?,
                client_machine: d.text("CLIENT_MACHINE")?,
                new_block: data.text("NEWBLOCK")? == "true",
                rpc: d.rpc()?,
            },
            O::CreateSnapshot => {
                let (root, name) = (d.path("SNAPSHOTROOT")?, d.path("SNAPSHOTNAME")?);
                Record::CreateSnapshot { root, name, mtime: d.optional_time("MTIME")?, rpc: d.rpc()? }
            }
            O::DeleteSnapshot => {
                let (root, name) = (d.path("SNAPSHOTROOT")?, d.path("SNAPSHOTNAME")?);
                Record::DeleteSnapshot { root, name, mtime: d.optional_time("MTIME")?, rpc: d.rpc()? }
            }
            O::RenameSnapshot => Record::RenameSnapshot {
                root: d.path("SNAPSHOTROOT")?,
                old: d.path("SNAPSHOTOLDNAME")?,
                new: d.path("SNAPSHOTNEWNAME")?,
                mtime: d.optional_time("MTIME")?,
                rpc: d.rpc()?,
            },
            O::AllowSnapshot => Record::AllowSnapshot { root: d.path("SNAPSHOTROOT")? },
            O::DisallowSnapshot => Record::DisallowSnapshot { root: d.path("SNAPSHOTROOT")? },
            O::SetAcl => Record::SetAcl { path: d.path("SRC")?, entries: d.acl()? },
            O::SetXattr => {
                let given = data.all("XATTR").any(|xattr| xattr.child("VALUE").is_some());
                Record::SetXattr { path: d.path("SRC")?, xattrs: d.xattrs()?, given, rpc: d.rpc()? }
            }
            O::RemoveXattr => Record::RemoveXattr { path: d.path("SRC")?, xattrs: d.xattrs()?, rpc: d.rpc()? },
            O::RollingUpgradeStart => Record::RollingUpgradeStart { time: d.time("STARTTIME")? },
            O::RollingUpgradeFinalize => Record::RollingUpgradeFinalize { time: d.time("FINALIZETIME")? },
            O::SetStoragePolicy => {
                Record::SetStoragePolicy { path: d.path("PATH")?, policy: data.number::<i8>("POLICYID")? as u8 }
            }
            O::SetQuotaByKind => {
                let number: u8 = data.number("STORAGETYPE")?;
                let kind = StorageKind::from_ordinal(number)
                    .ok_or_else(|| Failure::Content(format!("unknown storage type {number}")))?;
                Record::SetQuotaByKind { path: d.path("SRC")?, kind, quota: data.number("DSQUOTA")? }
            }
            _ => return d.administration(opcode),
        })
    }

    /// Tokens, caches and erasure coding policies.
    fn administration(&self, opcode: Opcode) -> Read<Record<'static>> {
        use Opcode as O;
        let (d, data) = (self, self.0);
        Ok(match opcode {
            O::GetDelegationToken => Record::GetDelegationToken { token: d.token()?, expiry: d.time("EXPIRY_TIME")? },
            O::RenewDelegationToken => {
                Record::RenewDelegationToken { token: d.token()?, expiry: d.time("EXPIRY_TIME")? }
            }
            O::CancelDelegationToken => Record::CancelDelegationToken { token: d.token()? },
            O::UpdateMasterKey => {
                let key = data.expect("DELEGATION_KEY")?;
                let bytes = key.optional("KEY").map(unhex).transpose()?.map(Bytes::Owned);
                Record::UpdateMasterKey {
                    id: key.number("KEY_ID")?,
                    expiry: TimeMs(key.number("EXPIRY_DATE")?),
                    key: bytes,
                }
            }
            O::AddCacheDirective => Record::AddCacheDirective { directive: d.cache_directive()?, rpc: d.rpc()? },
            O::ModifyCacheDirective => Record::ModifyCacheDirective { directive: d.cache_directive()?, rpc: d.rpc()? },
            O::RemoveCacheDirective => Record::RemoveCacheDirective { id: data.number("ID")?, rpc: d.rpc()? },
            O::AddCachePool => Record::AddCachePool { pool: d.cache_pool()?, rpc: d.rpc()? },
            O::ModifyCachePool => Record::ModifyCachePool { pool: d.cache_pool()?, rpc: d.rpc()? },
            O::RemoveCachePool => Record::RemoveCachePool { name: d.text("POOLNAME")?, rpc: d.rpc()? },
            O::AddErasureCodingPolicy => {
                let option = |option: &Stanza| {
                    Ok((Text::Owned(option.text("KEY")?.into()), Text::Owned(option.text("VALUE")?.into())))
                };
                Record::AddErasureCodingPolicy {
                    codec: d.text("CODEC")?,
                    data_units: data.number("DATAUNITS")?,
                    parity_units: data.number("PARITYUNITS")?,
                    cell_size: data.number("CELLSIZE")?,
                    options: data.all("EXTRAOPTION").map(option).collect::<Read<_>>()?,
                    rpc: d.rpc()?,
                }
            }
            O::EnableErasureCodingPolicy => {
                Record::EnableErasureCodingPolicy { name: d.text("POLICYNAME")?, rpc: d.rpc()? }
            }
            O::DisableErasureCodingPolicy => {
                Record::DisableErasureCodingPolicy { name: d.text("POLICYNAME")?, rpc: d.rpc()? }
            }
            O::RemoveErasureCodingPolicy => {
                Record::RemoveErasureCodingPolicy { name: d.text("POLICYNAME")?, rpc: d.rpc()? }
            }
            other => return Err(Failure::Content(format!("{} is not read from XML", other.name()))),
        })
    }

    fn text(&self, name: &str) -> Read<Text<'static>> {
        Ok(Text::Owned(self.0.text(name)?.to_owned()))
    }
    fn path(&self, name: &str) -> Read<Bytes<'static>> {
        Ok(Bytes::Owned(self.0.text(name)?.as_bytes().to_vec()))
    }
    fn optional(&self, name: &str) -> Option<Text<'static>> {
        self.0.optional(name).map(|text| Text::Owned(text.to_owned()))
    }
    fn time(&self, name: &str) -> Read<TimeMs> {
        Ok(TimeMs(self.0.number(name)?))
    }
    fn optional_time(&self, name: &str) -> Read<Option<TimeMs>> {
        Ok(self.0.optional_number(name)?.map(TimeMs))
    }

    /// OP_ADD and OP_CLOSE. The viewer leaves out the storage policy and the attributes of a file, which are therefore lost.
    fn file(&self, add: bool) -> Read<AddClose<'static>> {
        let data = self.0;
        Ok(AddClose {
            inode_id: InodeId(data.number("INODEID")?),
            path: self.path("PATH")?,
            replication: data.number::<i16>("REPLICATION")? as u16,
            mtime: self.time("MTIME")?,
            atime: self.time("ATIME")?,
            block_size: data.number::<i64>("BLOCKSIZE")? as u64,
            blocks: self.blocks()?,
            permission: self.permission()?,
            acl: if add { self.acl()? } else { Vec::new() },
            xattrs: Vec::new(),
            client_name: self.text("CLIENT_NAME")?,
            client_machine: self.text("CLIENT_MACHINE")?,
            overwrite: data.optional("OVERWRITE") == Some("true"),
            storage_policy: 0,
            erasure_coding_policy: data.optional_number::<i8>("ERASURE_CODING_POLICY_ID")?.unwrap_or_default() as u8,
            rpc: if add { self.rpc()? } else { None },
        })
    }

    fn blocks(&self) -> Read<Vec<Block>> {
        let block = |block: &Stanza| {
            Ok(Block {
                id: BlockId(block.number("BLOCK_ID")?),
                length: block.number::<i64>("NUM_BYTES")? as u64,
                stamp: GenerationStamp(block.number("GENSTAMP")?),
            })
        };
        self.0.all("BLOCK").map(block).collect()
    }

    fn permission(&self) -> Read<Permission<'static>> {
        let status = Data(self.0.expect("PERMISSION_STATUS")?);
        Ok(Permission {
            user: status.text("USERNAME")?,
            group: status.text("GROUPNAME")?,
            mode: status.0.number("MODE")?,
        })
    }

    fn acl(&self) -> Read<Vec<AclEntry>> {
        let entry = |entry: &Stanza| {
            let (kind, symbols) = (entry.text("TYPE")?, entry.text("PERM")?);
            let kind = match kind {
                "USER" => AclKind::User,
                "GROUP" => AclKind::Group,
                "MASK" => AclKind::Mask,
                "OTHER" => AclKind::Other,
                other => return Err(Failure::Content(format!("unknown type of an ACL entry: {other}"))),
            };
            let scope = if entry.text("SCOPE")? == "DEFAULT" { AclScope::Default } else { AclScope::Access };
            let bits = (0..8).find(|bits| Action(*bits).symbol() == symbols);
            let permission = Action(bits.ok_or_else(|| Failure::Content(format!("Invalid permission {symbols}")))?);
            Ok(AclEntry { scope, kind, name: entry.optional("NAME").map(Into::into), permission })
        };
        self.0.all("ENTRY").map(entry).collect()
    }

    fn xattrs(&self) -> Read<Vec<Xattr>> {
        let xattr = |xattr: &Stanza| {
            let namespace = match xattr.text("NAMESPACE")? {
                "USER" => XattrNamespace::User,
                "TRUSTED" => XattrNamespace::Trusted,
                "SECURITY" => XattrNamespace::Security,
                "SYSTEM" => XattrNamespace::System,
                "RAW" => XattrNamespace::Raw,
                other => return Err(Failure::Content(format!("unknown namespace {other}"))),
            };
            let value = xattr.optional("VALUE").map(|text| unhex(text.trim_start_matches("0x"))).transpose()?;
            Ok(Xattr { namespace, name: xattr.text("NAME")?.into(), value: value.unwrap_or_default().into() })
        };
        self.0.all("XATTR").map(xattr).collect()
    }

    fn sources(&self) -> Read<Vec<Bytes<'static>>> {
        let sources = Data(self.0.expect("SOURCES")?);
        let names = (1..).map(|number| format!("SOURCE{number}")).take_while(|name| sources.0.child(name).is_some());
        names.map(|name| sources.path(&name)).collect()
    }

    fn rpc(&self) -> Read<Option<RpcIds>> {
        let id = self.0.optional("RPC_CLIENTID").unwrap_or_default();
        if id.is_empty() {
            return Ok(None);
        }
        let bytes = unhex(&id.replace('-', ""))?;
        let client_id = bytes.try_into().map_err(|_| Failure::Content(format!("Invalid UUID string: {id}")))?;
        Ok(Some(RpcIds { client_id, call_id: self.0.number("RPC_CALLID")? }))
    }

    fn token(&self) -> Read<Token<'static>> {
        let token = Data(self.0.expect("DELEGATION_TOKEN_IDENTIFIER")?);
        Ok(Token {
            owner: token.text("OWNER")?,
            renewer: token.text("RENEWER")?,
            real_user: token.text("REALUSER")?,
            issue_date: token.time("ISSUE_DATE")?,
            max_date: token.time("MAX_DATE")?,
            sequence_number: token.0.number("SEQUENCE_NUMBER")?,
            master_key_id: token.0.number("MASTER_KEY_ID")?,
        })
    }

    fn cache_directive(&self) -> Read<CacheDirective<'static>> {
        Ok(CacheDirective {
            id: self.0.number("ID")?,
            path: self.0.optional("PATH").map(|path| Bytes::Owned(path.as_bytes().to_vec())),
            replication: self.0.optional_number("REPLICATION")?,
            pool: self.optional("POOL"),
            expiration: self.optional_time("EXPIRATION")?,
        })
    }

    fn cache_pool(&self) -> Read<CachePool<'static>> {
        Ok(CachePool {
            name: self.text("POOLNAME")?,
            owner: self.optional("OWNERNAME"),
            group: self.optional("GROUPNAME"),
            mode: self.0.optional_number("MODE")?.map(Mode::new),
            limit: self.0.optional_number("LIMIT")?,
            max_relative_expiry: self.0.optional_number("MAXRELATIVEEXPIRY")?,
            default_replication: self.0.optional_number("DEFAULTREPLICATION")?,
        })
    }
}
