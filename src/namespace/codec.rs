//! Values of side tables as bytes: compact, and read without copying. What is encoded here comes back exactly; any other bytes give fewer or other
//! entries, never a panic.

use crate::QuotaRecord;
use std::sync::Arc;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::quota::{Quota, Usage};
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, StorageKind};

/// Appends a number, seven bits a byte, low bits first.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
/// Takes a number off the front.
pub fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}
/// Appends a string with its length before it.
pub fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    put_number(out, string.len() as u64);
    out.extend_from_slice(string);
}
/// Takes a string off the front.
pub fn take_string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    let (string, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(string)
}
fn take_text<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    std::str::from_utf8(take_string(bytes)?).ok()
}

/// One stored ACL entry, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // as in AclEntry
pub struct AclRef<'a> {
    pub scope: AclScope,
    pub kind: AclKind,
    pub name: Option<&'a str>,
    pub permission: Action,
}

impl AclRef<'_> {
    /// The entry, copied out.
    pub fn to_entry(self) -> AclEntry {
        let AclRef { scope, kind, name, permission } = self;
        AclEntry { scope, kind, name: name.map(Arc::from), permission }
    }
}

/// Stored ACL entries, in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct AclEntries<'a>(pub &'a [u8]);

impl<'a> Iterator for AclEntries<'a> {
    type Item = AclRef<'a>;
    fn next(&mut self) -> Option<AclRef<'a>> {
        let (head, rest) = self.0.split_first()?;
        self.0 = rest;
        let scope = if head & 1 == 0 { AclScope::Access } else { AclScope::Default };
        let kind = [AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other][usize::from(head >> 1 & 3)];
        let name = if head & 0x40 == 0 { None } else { Some(take_text(&mut self.0)?) };
        Some(AclRef { scope, kind, name, permission: Action(head >> 3 & 7) })
    }
}

/// Appends ACL entries: for each a byte of scope 1, kind 2, permission 3 and named 1 bits, and the name.
pub fn encode_acl(entries: &[AclEntry], out: &mut Vec<u8>) {
    for entry in entries {
        let named = u8::from(entry.name.is_some()) << 6;
        out.push(entry.scope as u8 | (entry.kind as u8) << 1 | (entry.permission.0 & 7) << 3 | named);
        if let Some(name) = &entry.name {
            put_string(out, name.as_bytes());
        }
    }
}

/// One extended attribute, in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // as in Xattr
pub struct XattrRef<'a> {
    pub namespace: XattrNamespace,
    pub name: &'a str,
    pub value: &'a [u8],
}

impl XattrRef<'_> {
    /// The attribute, copied out.
    pub fn to_xattr(self) -> Xattr {
        Xattr { namespace: self.namespace, name: self.name.into(), value: self.value.into() }
    }
}

/// Extended attributes, in place.
#[derive(Clone, Copy, Debug, Default)]
pub struct XattrEntries<'a>(pub &'a [u8]);

impl<'a> Iterator for XattrEntries<'a> {
    type Item = XattrRef<'a>;
    fn next(&mut self) -> Option<XattrRef<'a>> {
        use XattrNamespace::{Raw, Security, System, Trusted, User};
        let (head, rest) = self.0.split_first()?;
        self.0 = rest;
        let namespace = *[User, Trusted, Security, System, Raw].get(usize::from(*head))?;
        Some(XattrRef { namespace, name: take_text(&mut self.0)?, value: take_string(&mut self.0)? })
    }
}

/// Appends attributes: for each a byte of its namespace, its name and its value.
pub fn encode_xattrs(all: &[Xattr], out: &mut Vec<u8>) {
    for xattr in all {
        out.push(xattr.namespace as u8);
        put_string(out, xattr.name.as_bytes());
        put_string(out, &xattr.value);
    }
}

/// Bytes of a quota record: one that says which limits there are, then limits and use.
pub const QUOTA_BYTES: usize = 8 * (1 + 2 * (2 + StorageKind::ALL.len()));

/// A quota record in [`QUOTA_BYTES`] bytes.
pub fn encode_quota(record: &QuotaRecord) -> [u8; QUOTA_BYTES] {
    let QuotaRecord { limits, usage } = record;
    let limits = [limits.namespace, limits.space].into_iter().chain(limits.by_kind);
    let usage = [usage.namespace, usage.space].into_iter().chain(usage.by_kind);
    let set = limits.clone().enumerate().fold(0u64, |set, (i, limit)| set | u64::from(limit.is_some()) << i);
    let words = [set].into_iter().chain(limits.map(Option::unwrap_or_default)).chain(usage.map(|n| n as u64));
    let mut bytes = [0; QUOTA_BYTES];
    for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    bytes
}
/// The record of what [`encode_quota`] gave.
pub fn decode_quota(bytes: &[u8]) -> QuotaRecord {
    let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let mut next = || words.next().unwrap_or(0);
    let set = next();
    let mut limit = |i: usize| Some(next()).filter(|_| set >> i & 1 == 1);
    let limits = Quota { namespace: limit(0), space: limit(1), by_kind: std::array::from_fn(|i| limit(i + 2)) };
    let usage =
        Usage { namespace: next() as i64, space: next() as i64, by_kind: std::array::from_fn(|_| next() as i64) };
    QuotaRecord { limits, usage }
}
/// Whether what [`encode_quota`] gave has no limit but that of names, and `more` fits it: a quick answer for most directories with a quota, the
/// root above all.
pub fn fits_names_alone(bytes: &[u8], more: &Usage) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
    let (limit, used) = (word(1), word(1 + 2 + StorageKind::ALL.len()) as i64);
    word(0) == 1 && i64::try_from(limit).is_ok_and(|limit| used <= limit.saturating_sub(more.namespace.max(0)))
}
/// Adds to the use in what [`encode_quota`] gave, as [`crate::quota::add`] does.
pub fn add_use(bytes: &mut [u8], more: &Usage) {
    let (words, _) = bytes.as_chunks_mut::<8>();
    let Some([namespace, space, by_kind @ ..]) = words.get_mut(1 + 2 + StorageKind::ALL.len()..) else { return };
    let add = |word: &mut [u8; 8], more| *word = i64::from_le_bytes(*word).saturating_add(more).to_le_bytes();
    add(namespace, more.namespace);
    add(space, more.space);
    if more.by_kind.iter().any(|n| *n != 0) {
        by_kind.iter_mut().zip(more.by_kind).for_each(|(word, more)| add(word, more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        prop_oneof![Just(String::new()), "[a-z0-9_.]{1,12}", "\\PC{0,200}"]
    }
    fn entry() -> impl Strategy<Value = AclEntry> {
        let kind = prop::sample::select(vec![AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other]);
        (any::<bool>(), kind, prop::option::of(text()), 0u8..8).prop_map(|(default, kind, name, bits)| AclEntry {
            scope: if default { AclScope::Default } else { AclScope::Access },
            kind,
            name: name.map(Into::into),
            permission: Action(bits),
        })
    }
    fn xattr() -> impl Strategy<Value = Xattr> {
        use XattrNamespace::{Raw, Security, System, Trusted, User};
        let namespace = prop::sample::select(vec![User, Trusted, Security, System, Raw]);
        (namespace, text(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(namespace, name, value)| Xattr {
            namespace,
            name: name.into(),
            value: value.into(),
        })
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            acl in prop::collection::vec(entry(), 0..8),
            xattrs in prop::collection::vec(xattr(), 0..8),
            limits in any::<[Option<u64>; 8]>(),
            usage in any::<[i64; 8]>(),
        ) {
            let mut bytes = Vec::new();
            encode_acl(&acl, &mut bytes);
            prop_assert_eq!(AclEntries(&bytes).map(AclRef::to_entry).collect::<Vec<_>>(), acl);
            bytes.clear();
            encode_xattrs(&xattrs, &mut bytes);
            prop_assert_eq!(XattrEntries(&bytes).map(XattrRef::to_xattr).collect::<Vec<_>>(), xattrs);
            let record = QuotaRecord {
                limits: Quota { namespace: limits[0], space: limits[1], by_kind: std::array::from_fn(|i| limits[i + 2]) },
                usage: Usage { namespace: usage[0], space: usage[1], by_kind: std::array::from_fn(|i| usage[i + 2]) },
            };
            prop_assert_eq!(decode_quota(&encode_quota(&record)), record);
            let (mut bytes, mut more) = (encode_quota(&record), record);
            add_use(&mut bytes, &record.usage);
            crate::quota::add(&mut more.usage, &record.usage);
            prop_assert_eq!(decode_quota(&bytes), more);
            let names = Quota { namespace: record.limits.namespace, ..Quota::default() };
            for limits in [record.limits, names] {
                let (before, one) = (QuotaRecord { limits, ..record }, Usage { namespace: 1, ..Usage::default() });
                let room = limits.namespace.is_some_and(|limit| (before.usage.namespace as i128) < limit.min(i64::MAX as u64) as i128);
                let alone = limits == names && limits.namespace.is_some_and(|limit| limit <= i64::MAX as u64);
                prop_assert_eq!(fits_names_alone(&encode_quota(&before), &one), alone && room);
            }
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(AclEntries(&bytes).count() <= bytes.len());
            prop_assert!(XattrEntries(&bytes).count() <= bytes.len());
            decode_quota(&bytes);
            crate::construction::decode(&bytes);
        }
    }
}
