//! ACLs, attributes and quotas by kind in their packed forms, both ways.

use super::strings::{Kind, StringTableBuilder, StringTables};
use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, StorageKind};

fn wire(error: WireError) -> ImageError {
    ImageError::Wire { section: "INODE", offset: 0, error }
}

fn content(what: String) -> ImageError {
    ImageError::Content { section: "INODE", what }
}

/// Storage kinds by their protobuf number (1 and up), which is not the Java ordinal.
const PROTO_KINDS: [StorageKind; 6] = [
    StorageKind::Disk,
    StorageKind::Ssd,
    StorageKind::Archive,
    StorageKind::RamDisk,
    StorageKind::Provided,
    StorageKind::Nvdimm,
];

/// Entries of an `AclFeatureProto`.
pub fn acl_entries(message: &[u8], strings: &StringTables) -> Result<Vec<AclEntry>, ImageError> {
    let mut out = Vec::new();
    for field in Cursor::new(message).fields() {
        match field.map_err(wire)? {
            (2, Value::Fixed32(packed)) => out.push(acl_entry(packed, strings)?),
            (2, Value::Bytes(bytes)) => {
                let mut cursor = Cursor::new(bytes);
                while !cursor.is_empty() {
                    out.push(acl_entry(cursor.fixed32().map_err(wire)?, strings)?);
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

/// One packed entry: action in bits 0 to 2, kind 3 to 4, scope 5, name serial 6 to 29.
fn acl_entry(packed: u32, strings: &StringTables) -> Result<AclEntry, ImageError> {
    let kind = [AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other][(packed >> 3 & 3) as usize];
    let table = if kind == AclKind::Group { Kind::Group } else { Kind::User };
    let scope = if packed >> 5 & 1 == 0 { AclScope::Access } else { AclScope::Default };
    let name = strings.get(table, packed >> 6 & 0xFF_FFFF)?.cloned();
    Ok(AclEntry { scope, kind, name, permission: Action((packed & 7) as u8) })
}

/// Bytes of an `AclFeatureProto`.
pub fn encode_acl(entries: &[AclEntry], strings: &mut StringTableBuilder) -> Result<Vec<u8>, ImageError> {
    let mut packed = Vec::with_capacity(entries.len() * 4);
    for entry in entries {
        let table = if entry.kind == AclKind::Group { Kind::Group } else { Kind::User };
        let serial = entry.name.as_ref().map_or(Ok(0), |name| strings.serial(table, name))?;
        let bits = u32::from(entry.permission.0) | (entry.kind as u32) << 3 | (entry.scope as u32) << 5 | serial << 6;
        packed.extend_from_slice(&bits.to_le_bytes());
    }
    let mut out = Vec::new();
    out.put_bytes_field(2, &packed);
    Ok(out)
}

/// Attributes of an `XAttrFeatureProto`.
pub fn xattrs(message: &[u8], strings: &StringTables) -> Result<Vec<Xattr>, ImageError> {
    let mut out = Vec::new();
    for field in Cursor::new(message).fields() {
        if let (1, Value::Bytes(b)) = field.map_err(wire)? {
            out.push(xattr(b, strings)?);
        }
    }
    Ok(out)
}

/// One attribute. Its packed name: third namespace bit in bit 5, name serial 6 to 29, two low namespace bits 30 to 31.
fn xattr(message: &[u8], strings: &StringTables) -> Result<Xattr, ImageError> {
    let (mut packed, mut value) = (0, &b""[..]);
    for field in Cursor::new(message).fields() {
        match field.map_err(wire)? {
            (1, Value::Fixed32(v)) => packed = v,
            (2, Value::Bytes(b)) => value = b,
            _ => {}
        }
    }
    let namespace = match packed >> 30 | (packed >> 5 & 1) << 2 {
        0 => XattrNamespace::User,
        1 => XattrNamespace::Trusted,
        2 => XattrNamespace::Security,
        3 => XattrNamespace::System,
        4 => XattrNamespace::Raw,
        other => return Err(content(format!("attribute namespace {other} does not exist"))),
    };
    let name = strings.get(Kind::Xattr, packed >> 6 & 0xFF_FFFF)?.cloned();
    let name = name.ok_or_else(|| content("attribute without a name".into()))?;
    Ok(Xattr { namespace, name, value: value.into() })
}

/// Name of the attribute (of namespace SYSTEM) that holds the storage policy of a directory, one byte. Files have a field of their own.
const STORAGE_POLICY: &str = "hsm.block.storage.policy.id";

/// Whether an attribute holds the storage policy of a directory.
pub fn is_storage_policy(xattr: &Xattr) -> bool {
    xattr.namespace == XattrNamespace::System && &*xattr.name == STORAGE_POLICY
}

/// The attribute for a storage policy.
pub fn storage_policy(policy: u8) -> Xattr {
    Xattr { namespace: XattrNamespace::System, name: STORAGE_POLICY.into(), value: [policy].into() }
}

/// Bytes of an `XAttrFeatureProto`.
pub fn encode_xattrs(all: &[Xattr], strings: &mut StringTableBuilder) -> Result<Vec<u8>, ImageError> {
    let mut out = Vec::new();
    for x in all {
        let namespace = x.namespace as u32;
        let packed = (namespace >> 2 & 1) << 5 | strings.serial(Kind::Xattr, &x.name)? << 6 | (namespace & 3) << 30;
        let mut entry = vec![1 << 3 | 5];
        entry.extend_from_slice(&packed.to_le_bytes());
        entry.put_bytes_field(2, &x.value);
        out.put_bytes_field(1, &entry);
    }
    Ok(out)
}

/// Quotas of a `QuotaByStorageTypeFeatureProto`, in ordinal order of the kinds.
pub fn kind_quotas(message: &[u8]) -> Result<[Option<u64>; 6], ImageError> {
    let mut out = [None; 6];
    for field in Cursor::new(message).fields() {
        let (1, Value::Bytes(entry)) = field.map_err(wire)? else { continue };
        let (mut kind, mut quota) = (0, -1);
        for field in Cursor::new(entry).fields() {
            match field.map_err(wire)? {
                (1, Value::Varint(v)) => kind = v,
                (2, Value::Varint(v)) => quota = v as i64,
                _ => {}
            }
        }
        let kind = (kind as usize).checked_sub(1).and_then(|i| PROTO_KINDS.get(i));
        let kind = kind.ok_or_else(|| content("quota of an unknown storage type".into()))?;
        out[*kind as usize] = u64::try_from(quota).ok();
    }
    Ok(out)
}

/// Bytes of a `QuotaByStorageTypeFeatureProto`; `None` if there is no such quota.
pub fn encode_kind_quotas(quotas: &[Option<u64>; 6]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for kind in StorageKind::ALL {
        let Some(quota) = quotas[kind as usize] else { continue };
        let number = PROTO_KINDS.iter().position(|k| *k == kind).unwrap_or(0) as u64 + 1;
        let mut entry = Vec::new();
        entry.put_varint_field(1, number);
        entry.put_varint_field(2, quota);
        out.put_bytes_field(1, &entry);
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn packed_forms_come_back() {
        let name: Arc<str> = "alice".into();
        let entries = vec![
            AclEntry { scope: AclScope::Access, kind: AclKind::User, name: Some(name.clone()), permission: Action(5) },
            AclEntry { scope: AclScope::Access, kind: AclKind::Group, name: None, permission: Action(7) },
            AclEntry { scope: AclScope::Default, kind: AclKind::Mask, name: None, permission: Action(0) },
            AclEntry { scope: AclScope::Default, kind: AclKind::Other, name: None, permission: Action(4) },
        ];
        let all: Vec<Xattr> = [
            XattrNamespace::User,
            XattrNamespace::Trusted,
            XattrNamespace::Security,
            XattrNamespace::System,
            XattrNamespace::Raw,
        ]
        .into_iter()
        .map(|namespace| Xattr { namespace, name: name.clone(), value: vec![0, 1, 255].into() })
        .collect();
        let quotas = [None, Some(1), Some(0), Some(u64::MAX >> 1), None, Some(7)];
        for expanded in [false, true] {
            let mut b = StringTableBuilder::new(expanded);
            let acl = encode_acl(&entries, &mut b).expect("room");
            let x = encode_xattrs(&all, &mut b).expect("room");
            let strings = StringTables::parse(&b.encode(), 0).expect("parses");
            assert_eq!(acl_entries(&acl, &strings), Ok(entries.clone()));
            assert_eq!(xattrs(&x, &strings), Ok(all.clone()));
        }
        assert_eq!(kind_quotas(&encode_kind_quotas(&quotas).expect("some")), Ok(quotas));
        assert_eq!(encode_kind_quotas(&[None; 6]), None);
    }
}
