//! The three length-delimited protobuf messages inside records: attributes (of OP_ADD, OP_MKDIR, OP_SET_XATTR, OP_REMOVE_XATTR) and
//! the entries of OP_SET_ACL. Hadoop's `XAttrEditLogProto` and `AclEditLogProto`; required fields are checked.

use crate::error::Reason;
use crate::fields::{Fields, Result};
use crate::record::Bytes;
use std::borrow::Cow;
use vocab::Action;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};

/// One field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Takes the next field of a message, `None` at its end or if it is broken (then `message` keeps a non-empty rest).
fn next_field<'a>(message: &mut &'a [u8]) -> Option<(u32, Field<'a>)> {
    let mut rest = *message;
    let key = varint(&mut rest)?;
    let field = match key & 7 {
        0 => Field::Number(varint(&mut rest)?),
        2 => {
            let count = usize::try_from(varint(&mut rest)?).ok().filter(|count| *count <= rest.len())?;
            let (bytes, after) = rest.split_at(count);
            rest = after;
            Field::Bytes(bytes)
        }
        1 => skip(&mut rest, 8)?,
        5 => skip(&mut rest, 4)?,
        _ => return None,
    };
    let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0)?;
    *message = rest;
    Some((number, field))
}

fn skip<'a>(rest: &mut &'a [u8], count: usize) -> Option<Field<'a>> {
    *rest = rest.get(count..)?;
    Some(Field::Other)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (index, byte) in rest.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            *rest = &rest[index + 1..];
            return Some(value);
        }
    }
    None
}

fn delimited<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8]> {
    let mut length = 0u64;
    for shift in 0..10 {
        let byte = fields.u8()?;
        length |= u64::from(byte & 0x7f) << (7 * shift);
        if byte & 0x80 == 0 {
            return fields.take(usize::try_from(length).unwrap_or(usize::MAX));
        }
    }
    fields.fail(Reason::Protobuf)
}

/// An attribute list.
#[derive(Default)]
pub(crate) struct XattrList<'a> {
    /// Absent inside OP_ADD and OP_MKDIR.
    pub(crate) path: Bytes<'a>,
    pub(crate) xattrs: Vec<Xattr>,
    /// Whether any of them has a value, be it empty.
    pub(crate) given: bool,
}

/// Reads an attribute list.
pub(crate) fn xattrs<'a>(fields: &mut Fields<'a>) -> Result<XattrList<'a>> {
    let message = delimited(fields)?;
    if message.is_empty() {
        return Ok(XattrList::default());
    }
    xattr_list(message).map_or_else(|| fields.fail(Reason::Protobuf), Ok)
}

fn xattr_list(mut message: &[u8]) -> Option<XattrList<'_>> {
    let mut list = XattrList::default();
    while !message.is_empty() {
        match next_field(&mut message)? {
            (1, Field::Bytes(src)) => list.path = text_bytes(src),
            (2, Field::Bytes(one)) => list.xattrs.push(xattr(one, &mut list.given)?),
            _ => {}
        }
    }
    Some(list)
}

fn xattr(mut message: &[u8], given: &mut bool) -> Option<Xattr> {
    let (mut namespace, mut name, mut value): (_, Option<&[u8]>, &[u8]) = (None, None, b"");
    while !message.is_empty() {
        match next_field(&mut message)? {
            (1, Field::Number(n)) => namespace = Some(xattr_namespace(n)?),
            (2, Field::Bytes(bytes)) => name = Some(bytes),
            (3, Field::Bytes(bytes)) => (value, *given) = (bytes, true),
            _ => {}
        }
    }
    Some(Xattr { namespace: namespace?, name: String::from_utf8_lossy(name?).into(), value: value.into() })
}

fn xattr_namespace(number: u64) -> Option<XattrNamespace> {
    use XattrNamespace::*;
    [User, Trusted, Security, System, Raw].get(usize::try_from(number).ok()?).copied()
}

/// Reads path and entries of OP_SET_ACL.
pub(crate) fn acl<'a>(fields: &mut Fields<'a>) -> Result<(Bytes<'a>, Vec<AclEntry>)> {
    let message = delimited(fields)?;
    acl_list(message).map_or_else(|| fields.fail(Reason::Protobuf), Ok)
}

fn acl_list(mut message: &[u8]) -> Option<(Bytes<'_>, Vec<AclEntry>)> {
    let (mut path, mut entries) = (None, Vec::new());
    while !message.is_empty() {
        match next_field(&mut message)? {
            (1, Field::Bytes(src)) => path = Some(src),
            (2, Field::Bytes(one)) => entries.push(acl_entry(one)?),
            _ => {}
        }
    }
    Some((text_bytes(path?), entries))
}

fn acl_entry(mut message: &[u8]) -> Option<AclEntry> {
    let (mut kind, mut scope, mut permission, mut name) = (None, None, None, None);
    while !message.is_empty() {
        match next_field(&mut message)? {
            (1, Field::Number(n)) => kind = Some(acl_kind(n)?),
            (2, Field::Number(n @ 0..=1)) => scope = Some(if n == 0 { AclScope::Access } else { AclScope::Default }),
            (3, Field::Number(n @ 0..=7)) => permission = Some(Action(n as u8)),
            (4, Field::Bytes(bytes)) => name = Some(String::from_utf8_lossy(bytes).into()),
            _ => {}
        }
    }
    Some(AclEntry { scope: scope?, kind: kind?, name, permission: permission? })
}

pub(crate) fn acl_kind(number: u64) -> Option<AclKind> {
    [AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other].get(usize::try_from(number).ok()?).copied()
}

fn text_bytes(bytes: &[u8]) -> Bytes<'_> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_number(number: u8, value: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[number << 3, value]);
}

/// Writes an attribute list; an empty value is left out unless it was given, as in a removal, which names attributes only.
pub(crate) fn put_xattrs(path: &[u8], list: &[Xattr], given: bool, out: &mut Vec<u8>) {
    let (mut message, mut one) = (Vec::new(), Vec::new());
    if !path.is_empty() {
        put_bytes(1, path, &mut message);
    }
    for xattr in list {
        one.clear();
        put_number(1, xattr.namespace as u8, &mut one);
        put_bytes(2, xattr.name.as_bytes(), &mut one);
        if given || !xattr.value.is_empty() {
            put_bytes(3, &xattr.value, &mut one);
        }
        put_bytes(2, &one, &mut message);
    }
    put_varint(message.len() as u64, out);
    out.extend_from_slice(&message);
}

/// Writes path and entries of OP_SET_ACL.
pub(crate) fn put_acl(path: &[u8], entries: &[AclEntry], out: &mut Vec<u8>) {
    let (mut message, mut one) = (Vec::new(), Vec::new());
    put_bytes(1, path, &mut message);
    for entry in entries {
        one.clear();
        put_number(1, entry.kind as u8, &mut one);
        put_number(2, entry.scope as u8, &mut one);
        put_number(3, entry.permission.0 & 7, &mut one);
        if let Some(name) = &entry.name {
            put_bytes(4, name.as_bytes(), &mut one);
        }
        put_bytes(2, &one, &mut message);
    }
    put_varint(message.len() as u64, out);
    out.extend_from_slice(&message);
}
