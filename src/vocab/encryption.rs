//! Encryption zones: what is stored of them in extended attributes, in the form that Hadoop stores (`ZoneEncryptionInfoProto`,
//! `PerFileEncryptionInfoProto`).

use crate::time::TimeMs;
use crate::xattr::{Xattr, XattrNamespace};
use std::sync::Arc;

/// Attribute of a zone's root, in the raw namespace.
pub const ZONE: &str = "hdfs.crypto.encryption.zone";
/// Attribute of a file in a zone, in the raw namespace.
pub const FILE: &str = "hdfs.crypto.file.encryption.info";
/// Number of the suite AES/CTR/NoPadding, on the wire and stored.
pub const AES_CTR_NO_PADDING: u32 = 2;
/// Number of the suite SM4/CTR/NoPadding.
pub const SM4_CTR_NO_PADDING: u32 = 3;
/// Number of the only protocol version there is (`ENCRYPTION_ZONES`).
pub const VERSION: u32 = 2;

/// What a zone's root says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Cipher suite by number.
    pub suite: u32,
    /// Protocol version by number.
    pub version: u32,
    /// Name of the key that the files' own keys are encrypted with.
    pub key: Arc<str>,
    /// The last re-encryption, if there was one.
    pub reencryption: Option<Reencryption>,
}

/// How far a zone's re-encryption is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reencryption {
    /// Version of the zone's key that files get.
    pub key_version: Arc<str>,
    /// When it was asked for.
    pub submitted: TimeMs,
    /// Whether it was cancelled.
    pub cancelled: bool,
    /// Files done.
    pub reencrypted: i64,
    /// Files that could not be done.
    pub failures: i64,
    /// When it ended.
    pub completed: Option<TimeMs>,
    /// The last file that was done: where to go on from.
    pub last_file: Option<Arc<str>>,
}

/// The encrypted key of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataKey {
    /// The key, encrypted with a version of the zone's key.
    pub material: Arc<[u8]>,
    /// Initialisation vector.
    pub iv: Arc<[u8]>,
    /// That version.
    pub key_version: Arc<str>,
}

/// Whether an attribute makes a directory the root of a zone.
pub fn is_zone(xattr: &Xattr) -> bool {
    xattr.namespace == XattrNamespace::Raw && &*xattr.name == ZONE
}

/// The suite of a cipher by Java's name.
pub fn suite_of_cipher(name: &str) -> Option<u32> {
    match name {
        "AES/CTR/NoPadding" => Some(AES_CTR_NO_PADDING),
        "SM4/CTR/NoPadding" => Some(SM4_CTR_NO_PADDING),
        _ => None,
    }
}

fn raw(name: &str, value: Vec<u8>) -> Xattr {
    Xattr { namespace: XattrNamespace::Raw, name: name.into(), value: value.into() }
}

impl Zone {
    /// The attribute.
    pub fn to_xattr(&self) -> Xattr {
        let mut out = Vec::new();
        put_number(1, self.suite.into(), &mut out);
        put_number(2, self.version.into(), &mut out);
        put_bytes(3, self.key.as_bytes(), &mut out);
        if let Some(reencryption) = &self.reencryption {
            put_bytes(4, &reencryption.encode(), &mut out);
        }
        raw(ZONE, out)
    }

    /// What an attribute's value says; `None` if it is none.
    pub fn parse(value: &[u8]) -> Option<Zone> {
        let mut zone = Zone { suite: 0, version: 0, key: "".into(), reencryption: None };
        each_field(value, |number, field| {
            match (number, field) {
                (1, Field::Number(suite)) => zone.suite = suite as u32,
                (2, Field::Number(version)) => zone.version = version as u32,
                (3, Field::Bytes(key)) => zone.key = text(key),
                (4, Field::Bytes(value)) => zone.reencryption = Some(Reencryption::parse(value)?),
                _ => {}
            }
            Some(())
        })?;
        (zone.suite != 0 && zone.version != 0).then_some(zone)
    }
}

impl Reencryption {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_bytes(1, self.key_version.as_bytes(), &mut out);
        put_number(2, self.submitted.0 as u64, &mut out);
        put_number(3, self.cancelled.into(), &mut out);
        put_number(4, self.reencrypted as u64, &mut out);
        put_number(5, self.failures as u64, &mut out);
        if let Some(completed) = self.completed {
            put_number(6, completed.0 as u64, &mut out);
        }
        if let Some(last_file) = &self.last_file {
            put_bytes(7, last_file.as_bytes(), &mut out);
        }
        out
    }

    fn parse(value: &[u8]) -> Option<Reencryption> {
        let mut found = Reencryption {
            key_version: "".into(),
            submitted: TimeMs(0),
            cancelled: false,
            reencrypted: 0,
            failures: 0,
            completed: None,
            last_file: None,
        };
        each_field(value, |number, field| {
            match (number, field) {
                (1, Field::Bytes(version)) => found.key_version = text(version),
                (2, Field::Number(time)) => found.submitted = TimeMs(time as i64),
                (3, Field::Number(flag)) => found.cancelled = flag != 0,
                (4, Field::Number(count)) => found.reencrypted = count as i64,
                (5, Field::Number(count)) => found.failures = count as i64,
                (6, Field::Number(time)) => found.completed = Some(TimeMs(time as i64)),
                (7, Field::Bytes(path)) => found.last_file = Some(text(path)),
                _ => {}
            }
            Some(())
        })?;
        Some(found)
    }
}

impl DataKey {
    /// The attribute of a file.
    pub fn to_xattr(&self) -> Xattr {
        let mut out = Vec::new();
        put_bytes(1, &self.material, &mut out);
        put_bytes(2, &self.iv, &mut out);
        put_bytes(3, self.key_version.as_bytes(), &mut out);
        raw(FILE, out)
    }

    /// What an attribute's value says; `None` if it is none.
    pub fn parse(value: &[u8]) -> Option<DataKey> {
        let (mut material, mut iv, mut key_version) = (None, None, None);
        each_field(value, |number, field| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => material = Some(bytes),
                (2, Field::Bytes(bytes)) => iv = Some(bytes),
                (3, Field::Bytes(bytes)) => key_version = Some(bytes),
                _ => {}
            }
            Some(())
        })?;
        Some(DataKey { material: material?.into(), iv: iv?.into(), key_version: text(key_version?) })
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Fields of a stored message, in the form of protocol buffers; others than numbers and bytes do not occur.
fn each_field<'a>(mut rest: &'a [u8], mut visit: impl FnMut(u64, Field<'a>) -> Option<()>) -> Option<()> {
    while !rest.is_empty() {
        let tag = number(&mut rest)?;
        let field = match tag & 7 {
            0 => Field::Number(number(&mut rest)?),
            2 => {
                let length = usize::try_from(number(&mut rest)?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                rest = after;
                Field::Bytes(bytes)
            }
            _ => return None,
        };
        visit(tag >> 3, field)?;
    }
    Some(())
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(field: u64, value: u64, out: &mut Vec<u8>) {
    put(field << 3, out);
    put(value, out);
}

fn put_bytes(field: u64, value: &[u8], out: &mut Vec<u8>) {
    put(field << 3 | 2, out);
    put(value.len() as u64, out);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_forms_come_back() {
        let mut zone = Zone { suite: 2, version: 2, key: "k1".into(), reencryption: None };
        assert_eq!(&*zone.to_xattr().value, b"\x08\x02\x10\x02\x1a\x02k1");
        assert_eq!(Zone::parse(&zone.to_xattr().value), Some(zone.clone()));
        for (completed, last_file) in [(None, None), (Some(TimeMs(1 << 41)), Some("/z/ö".into()))] {
            zone.reencryption = Some(Reencryption {
                key_version: "k1@1".into(),
                submitted: TimeMs(1_796_089_170_372),
                cancelled: completed.is_some(),
                reencrypted: 300,
                failures: -1,
                completed,
                last_file,
            });
            let value = zone.to_xattr().value;
            assert_eq!(Zone::parse(&value), Some(zone.clone()));
            (1..value.len()).for_each(|end| drop(Zone::parse(&value[..end])));
        }
        let key = DataKey { material: [1, 2][..].into(), iv: [3; 16][..].into(), key_version: "k1@0".into() };
        let value = key.to_xattr().value;
        assert_eq!(DataKey::parse(&value), Some(key));
        assert_eq!(DataKey::parse(&value[..value.len() - 6]), None);
        assert_eq!(Zone::parse(b""), None);
    }
}
