//! Messages of an image out of their XML.

use crate::tools::failure::Failure;
use crate::tools::stanza::Stanza;
use crate::tools::text::{from_utc, unhex};
use hadoop_proto::fsimage::{self as wire, i_node_section as inode, snapshot_diff_section as diff};
use hadoop_proto::hdfs;
use std::collections::HashMap;
use vocab::hash_order;

type Built<T> = Result<T, Failure>;

/// Numbers of strings: from 0, in the order in which they are met.
#[derive(Default)]
pub(super) struct Strings {
    numbers: HashMap<String, u32>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u32 {
        let next = self.numbers.len() as u32;
        *self.numbers.entry(text.to_owned()).or_insert(next)
    }
    /// All strings, in the order of Java's `HashMap`.
    pub(super) fn in_java_order(&self) -> Vec<(String, u32)> {
        let mut all: Vec<(String, u32)> = self.numbers.iter().map(|(text, number)| (text.clone(), *number)).collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        hash_order::sort(&mut all, hash_order::USUAL, |(text, _)| text);
        all
    }

    /// `user:group:mode` in one number.
    fn permission(&mut self, text: &str) -> Built<u64> {
        let [user, group, mode] = text.split(':').collect::<Vec<_>>()[..] else {
            return Err(Failure::Content(format!("Can't parse permission {text}")));
        };
        let mode = u64::from_str_radix(mode, 8).map_err(|_| Failure::Content(format!("Can't parse mode {mode}")))?;
        let (user, group) = (self.number(user), self.number(group));
        Ok(u64::from(user) << 40 | u64::from(group) << 16 | mode)
    }

    fn acl(&mut self, acls: &Stanza) -> Built<inode::AclFeatureProto> {
        let mut entries = Vec::new();
        for entry in acls.texts("acl") {
            let bad = || Failure::Content(format!("Invalid <aclSpec> : {entry}"));
            let (scope, rest) = entry.strip_prefix("default:").map_or((0, entry), |rest| (1, rest));
            let [kind, name, symbols] = rest.split(':').collect::<Vec<_>>()[..] else { return Err(bad()) };
            let kind = ["user", "group", "mask", "other"].iter().position(|known| *known == kind).ok_or_else(bad)?;
            let bits = symbols.bytes().fold(0, |bits, symbol| bits << 1 | u32::from(symbol != b'-'));
            entries.push(self.number(name) << 6 | scope << 5 | (kind as u32) << 3 | (bits & 7));
        }
        Ok(inode::AclFeatureProto { entries })
    }

    fn xattrs(&mut self, xattrs: &Stanza) -> Built<inode::XAttrFeatureProto> {
        let mut all = Vec::new();
        for xattr in xattrs.all("xattr") {
            let namespace = xattr.text("ns")?;
            let number = ["USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW"].iter().position(|known| *known == namespace);
            let number = number.ok_or_else(|| Failure::Content(format!("No enum constant {namespace}")))? as u32;
            let value = match (xattr.optional("val"), xattr.optional("valHex")) {
                (Some(text), _) => text.as_bytes().to_vec(),
                (None, Some(digits)) => unhex(digits)?,
                (None, None) => return Err(Failure::content("<xattr> had no <val> or <valHex> entry.")),
            };
            let name = self.number(xattr.text("name")?) << 6 | (number & 3) << 30 | (number >> 2 & 1) << 5;
            all.push(inode::XAttrCompactProto { name, value: Some(value.into()) });
        }
        Ok(inode::XAttrFeatureProto { x_attrs: all })
    }
}

fn signed(stanza: &Stanza, name: &str) -> Built<Option<u64>> {
    Ok(stanza.optional_number::<i64>(name)?.map(|number| number as u64))
}

fn bytes<B: From<Vec<u8>>>(stanza: &Stanza, name: &str) -> Option<B> {
    stanza.optional(name).map(|text| text.as_bytes().to_vec().into())
}

pub(super) fn name_section(head: &Stanza) -> Built<wire::NameSystemSection> {
    Ok(wire::NameSystemSection {
        namespace_id: Some(head.number::<i32>("namespaceId")? as u32),
        genstamp_v1: signed(head, "genstampV1")?,
        genstamp_v2: signed(head, "genstampV2")?,
        genstamp_v1_limit: signed(head, "genstampV1Limit")?,
        last_allocated_block_id: signed(head, "lastAllocatedBlockId")?,
        transaction_id: signed(head, "txid")?,
        rolling_upgrade_start_time: signed(head, "rollingUpgradeStartTime")?,
        last_allocated_striped_block_id: signed(head, "lastAllocatedStripedBlockId")?,
    })
}

pub(super) fn erasure_coding(head: &Stanza) -> Built<wire::ErasureCodingSection> {
    let mut policies = Vec::new();
    for policy in head.all("erasureCodingPolicy") {
        let state = match policy.optional("policyState") {
            None => None,
            Some("DISABLED") => Some(hdfs::ErasureCodingPolicyState::Disabled.into()),
            Some("ENABLED") => Some(hdfs::ErasureCodingPolicyState::Enabled.into()),
            Some("REMOVED") => Some(hdfs::ErasureCodingPolicyState::Removed.into()),
            Some(other) => return Err(Failure::Content(format!("No enum constant {other}"))),
        };
        let schema = policy.expect("ecSchema")?;
        let option = |option: &Stanza| {
            let (key, value) = (option.text("key")?.to_owned(), option.text("value")?.to_owned());
            Ok(hdfs::EcSchemaOptionEntryProto { key, value })
        };
        let options = schema.all("extraOptions").flat_map(|options| options.all("option")).map(option);
        policies.push(hdfs::ErasureCodingPolicyProto {
            name: Some(policy.text("policyName")?.to_owned()),
            schema: Some(hdfs::EcSchemaProto {
                codec_name: schema.text("codecName")?.to_owned(),
                data_units: schema.number::<i32>("dataUnits")?.cast_unsigned(),
                parity_units: schema.number::<i32>("parityUnits")?.cast_unsigned(),
                options: options.collect::<Built<_>>()?,
            }),
            cell_size: Some(policy.number("cellSize")?),
            id: policy.number("policyId")?,
            state,
        });
    }
    Ok(wire::ErasureCodingSection { policies })
}

pub(super) fn inode(stanza: &Stanza, strings: &mut Strings) -> Built<inode::INode> {
    let kind = stanza.text("type")?;
    let id = stanza.number::<i64>("id")? as u64;
    let mut built = inode::INode { id, name: bytes(stanza, "name"), ..Default::default() };
    match kind {
        "FILE" => {
            built.set_type(inode::i_node::Type::File);
            built.file = Some(file(stanza, strings)?);
        }
        "DIRECTORY" => {
            built.set_type(inode::i_node::Type::Directory);
            built.directory = Some(directory(stanza, strings)?);
        }
        "SYMLINK" => {
            built.set_type(inode::i_node::Type::Symlink);
            built.symlink = Some(inode::INodeSymlink {
                permission: stanza.optional("permission").map(|text| strings.permission(text)).transpose()?,
                target: bytes(stanza, "target"),
                modification_time: signed(stanza, "mtime")?,
                access_time: signed(stanza, "atime")?,
            });
        }
        other => return Err(Failure::Content(format!("INode XML found with unknown <type> {other}"))),
    }
    Ok(built)
}

fn file(stanza: &Stanza, strings: &mut Strings) -> Built<inode::INodeFile> {
    let open = |open: &Stanza| -> Built<inode::FileUnderConstructionFeature> {
        Ok(inode::FileUnderConstructionFeature {
            client_name: Some(open.text("clientName")?.to_owned()),
            client_machine: Some(open.text("clientMachine")?.to_owned()),
        })
    };
    let striped = stanza.optional("blockType").map(|kind| match kind {
        "STRIPED" => Ok(hdfs::BlockTypeProto::Striped.into()),
        "CONTIGUOUS" => Ok(hdfs::BlockTypeProto::Contiguous.into()),
        other => Err(Failure::Content(format!("INode XML found with unknown <blocktype> {other}"))),
    });
    // Policies belong to striped files only.
    let policy = striped.is_some().then(|| stanza.optional_number("erasureCodingPolicyId"));
    let permission = stanza.optional("permission").map(|text| strings.permission(text)).transpose()?;
    Ok(inode::INodeFile {
        replication: stanza.optional_number::<i32>("replication")?.map(|number| number as u32),
        modification_time: signed(stanza, "mtime")?,
        access_time: signed(stanza, "atime")?,
        preferred_block_size: signed(stanza, "preferredBlockSize")?,
        permission,
        blocks: blocks(stanza)?,
        file_uc: stanza.child("file-under-construction").map(open).transpose()?,
        acl: stanza.child("acls").map(|acls| strings.acl(acls)).transpose()?,
        x_attrs: stanza.child("xattrs").map(|xattrs| strings.xattrs(xattrs)).transpose()?,
        storage_policy_id: stanza.optional_number("storagePolicyId")?,
        block_type: striped.transpose()?,
        erasure_coding_policy_id: policy.transpose()?.flatten(),
    })
}

fn blocks(stanza: &Stanza) -> Built<Vec<hdfs::BlockProto>> {
    let block = |block: &Stanza| {
        Ok(hdfs::BlockProto {
            block_id: block.number::<i64>("id")? as u64,
            gen_stamp: block.number::<i64>("genstamp")? as u64,
            num_bytes: Some(block.number::<i64>("numBytes")? as u64),
        })
    };
    stanza.all("blocks").flat_map(|blocks| blocks.all("block")).map(block).collect()
}

fn directory(stanza: &Stanza, strings: &mut Strings) -> Built<inode::INodeDirectory> {
    let quota = |quota: &Stanza| {
        let name = quota.text("type")?;
        let kind = hdfs::StorageTypeProto::from_str_name(name);
        let kind = kind.ok_or_else(|| Failure::Content(format!("<typeQuota> had unknown <type> {name}")))?;
        let quota = quota.number::<i64>("quota")? as u64;
        Ok(inode::QuotaByStorageTypeEntryProto { storage_type: kind.into(), quota })
    };
    Ok(inode::INodeDirectory {
        modification_time: signed(stanza, "mtime")?,
        ns_quota: signed(stanza, "nsquota")?,
        ds_quota: signed(stanza, "dsquota")?,
        permission: stanza.optional("permission").map(|text| strings.permission(text)).transpose()?,
        acl: stanza.child("acls").map(|acls| strings.acl(acls)).transpose()?,
        x_attrs: stanza.child("xattrs").map(|xattrs| strings.xattrs(xattrs)).transpose()?,
        type_quotas: Some(inode::QuotaByStorageTypeFeatureProto {
            quotas: stanza.all("typeQuota").map(quota).collect::<Built<_>>()?,
        }),
    })
}

pub(super) fn delegation_key(stanza: &Stanza) -> Built<wire::secret_manager_section::DelegationKey> {
    Ok(wire::secret_manager_section::DelegationKey {
        id: Some(stanza.number("id")?),
        expiry_date: Some(from_utc(stanza.text("expiry")?)? as u64),
        key: Some(unhex(stanza.text("key")?)?.into()),
    })
}

pub(super) fn token(stanza: &Stanza) -> Built<wire::secret_manager_section::PersistToken> {
    let date = |name| stanza.optional(name).map(|text| from_utc(text).map(|time| time as u64)).transpose();
    let text = |name| stanza.optional(name).map(str::to_owned);
    Ok(wire::secret_manager_section::PersistToken {
        version: stanza.optional_number("version")?,
        owner: text("owner"),
        renewer: text("renewer"),
        real_user: text("realUser"),
        issue_date: date("issueDate")?,
        max_date: date("maxDate")?,
        sequence_number: stanza.optional_number("sequenceNumber")?,
        master_key_id: stanza.optional_number("masterKeyId")?,
        expiry_date: date("expiryDate")?,
    })
}

pub(super) fn cache_directive(stanza: &Stanza) -> Built<hdfs::CacheDirectiveInfoProto> {
    let expiration = |expiration: &Stanza| -> Built<hdfs::CacheDirectiveInfoExpirationProto> {
        let is_relative = expiration.child("relative").is_some();
        Ok(hdfs::CacheDirectiveInfoExpirationProto { millis: expiration.number("millis")?, is_relative })
    };
    Ok(hdfs::CacheDirectiveInfoProto {
        id: Some(stanza.number("id")?),
        path: Some(stanza.text("path")?.to_owned()),
        replication: Some(stanza.number("replication")?),
        pool: Some(stanza.text("pool")?.to_owned()),
        expiration: stanza.child("expiration").map(expiration).transpose()?,
    })
}

pub(super) fn file_diff(stanza: &Stanza, strings: &mut Strings) -> Built<diff::FileDiff> {
    Ok(diff::FileDiff {
        snapshot_id: stanza.optional_number::<i32>("snapshotId")?.map(|id| id as u32),
        file_size: signed(stanza, "size")?,
        name: bytes(stanza, "name"),
        snapshot_copy: stanza.child("snapshotCopy").map(|copy| file(copy, strings)).transpose()?,
        blocks: blocks(stanza)?,
    })
}

pub(super) fn directory_diff(stanza: &Stanza, strings: &mut Strings) -> Built<diff::DirectoryDiff> {
    Ok(diff::DirectoryDiff {
        snapshot_id: stanza.optional_number::<i32>("snapshotId")?.map(|id| id as u32),
        children_size: Some(stanza.number("childrenSize")?),
        is_snapshot_root: Some(stanza.child("isSnapshotRoot").is_some()),
        name: bytes(stanza, "name"),
        snapshot_copy: stanza.child("snapshotCopy").map(|copy| directory(copy, strings)).transpose()?,
        created_list_size: Some(stanza.number("createdListSize")?),
        deleted_i_node: stanza.numbers("deletedInode").collect::<Built<_>>()?,
        deleted_i_node_ref: stanza.numbers("deletedInoderef").collect::<Built<_>>()?,
    })
}
