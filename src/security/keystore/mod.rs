//! Purpose: Java's key stores as files: whom to trust, and keys that are kept in them.
//! Called by: kms and groups (truststores), jceks.
//! Calls: the forms in this folder.
//! Never: writes one; trusts a length that a file says.
//! Invariants: a file whose digest does not fit the password gives nothing.

pub mod sealed;
pub mod serialized;

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use sha1::{Digest, Sha1};
use std::fs;
use std::path::Path;

/// An entry of a store.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its name, in small letters.
    pub alias: String,
    /// What it is.
    pub content: Content,
}

/// What an entry holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    /// A certificate that is trusted (DER).
    Trusted(Vec<u8>),
    /// A private key, left as it is.
    Private,
    /// A secret key, sealed: a serialized object.
    Secret(serialized::Value),
}

/// Size of the digest at the end.
const DIGEST_BYTES: usize = 20;
/// What is digested between the password and the entries.
const SALT: &[u8] = b"Mighty Aphrodite";

/// The entries of a store in the form JKS or JCEKS (`sun.security.provider.JavaKeyStore`, `com.sun.crypto.provider.JceKeyStore`). Without a
/// password its integrity is not looked at.
///
/// # Errors
/// It is no such store, or the password is wrong.
pub fn entries(bytes: &[u8], password: Option<&str>) -> Result<Vec<Entry>, String> {
    let short = || "the key store is cut short".to_owned();
    let body = bytes.len().checked_sub(DIGEST_BYTES).map(|length| &bytes[..length]).ok_or_else(short)?;
    if let Some(password) = password {
        let mut digest = Sha1::new();
        password.encode_utf16().for_each(|unit| digest.update(unit.to_be_bytes()));
        digest.update(SALT);
        digest.update(body);
        if digest.finalize()[..] != bytes[body.len()..] {
            return Err("Keystore was tampered with, or password was incorrect".to_owned());
        }
    }
    let mut input = Input(body);
    let magic = input.u32().ok_or_else(short)?;
    let version = input.u32().ok_or_else(short)?;
    if !matches!(magic, MAGIC_JKS | MAGIC_JCEKS) || !matches!(version, 1 | 2) {
        return Err("Invalid keystore format".to_owned());
    }
    let count = input.u32().ok_or_else(short)?;
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(entry(&mut input, version).ok_or("the key store holds something that is no entry")?);
    }
    Ok(found)
}

const MAGIC_JKS: u32 = 0xFEED_FEED;
const MAGIC_JCEKS: u32 = 0xCECE_CECE;

fn entry(input: &mut Input<'_>, version: u32) -> Option<Entry> {
    let kind = input.u32()?;
    let alias = input.text()?;
    let _created = input.bytes(8)?;
    let content = match kind {
        1 => {
            let _key = input.block()?;
            for _ in 0..input.u32()? {
                certificate(input, version)?;
            }
            Content::Private
        }
        2 => Content::Trusted(certificate(input, version)?.to_vec()),
        3 => Content::Secret(serialized::object(input)?),
        _ => return None,
    };
    Some(Entry { alias, content })
}

fn certificate<'a>(input: &mut Input<'a>, version: u32) -> Option<&'a [u8]> {
    if version == 2 {
        let _kind = input.text()?;
    }
    input.block()
}

/// Certificates that a truststore holds (DER), in Java's older form or in PKCS #12, whatever its name says.
///
/// # Errors
/// It cannot be read, with the reason in words.
pub fn trusted(path: &Path, password: Option<&str>) -> Result<Vec<Vec<u8>>, String> {
    let name = |problem: String| format!("{}: {problem}", path.display());
    let bytes = fs::read(path).map_err(|error| name(error.to_string()))?;
    let is_pkcs12 = bytes.first() == Some(&0x30);
    let found =
        if is_pkcs12 { trusted_pkcs12(&bytes, password.unwrap_or_default()) } else { trusted_java(&bytes, password) };
    found.map_err(name)
}

fn trusted_java(bytes: &[u8], password: Option<&str>) -> Result<Vec<Vec<u8>>, String> {
    let certificate = |entry: Entry| match entry.content {
        Content::Trusted(certificate) => Some(certificate),
        _ => None,
    };
    Ok(entries(bytes, password)?.into_iter().filter_map(certificate).collect())
}

fn trusted_pkcs12(bytes: &[u8], password: &str) -> Result<Vec<Vec<u8>>, String> {
    let store = KeyStore::from_pkcs12(bytes, password, Pkcs12ImportPolicy::Relaxed);
    let store = store.map_err(|error| error.to_string())?;
    let certificate = |(_, entry): (&String, &KeyStoreEntry)| match entry {
        KeyStoreEntry::Certificate(certificate) => Some(certificate.as_der().to_vec()),
        _ => None,
    };
    Ok(store.entries().filter_map(certificate).collect())
}

/// Bytes still to be read, in the order of Java's `DataInput`.
#[derive(Clone, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    fn u8(&mut self) -> Option<u8> {
        self.bytes(1).map(|bytes| bytes[0])
    }
    fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }
    /// Bytes after their number.
    pub(crate) fn block(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.bytes(usize::try_from(count).ok()?)
    }
    /// Text after its length in two bytes.
    fn text(&mut self) -> Option<String> {
        let length = self.u16()?;
        self.bytes(length.into()).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}
