//! Answers, byte by byte as Hadoop's viewer writes them: members come in the order of a hash map of Java's.

use super::index::Index;
use super::query::Query;
use crate::tools::failure::Failure;
use crate::tools::text::hex;
use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hadoop_proto::fsimage::i_node_section::{AclFeatureProto, INode, XAttrFeatureProto, i_node::Type};
use std::fmt::Write;

/// What stands for the replication of a striped file.
const STRIPED_REPLICATION: i32 = 1;

/// A `RemoteException`.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    class: &'static str,
    pub(super) message: Option<String>,
}

impl Refusal {
    fn new(status: StatusCode, class: &'static str, message: Option<&str>) -> Refusal {
        Refusal { status, class, message: message.map(str::to_owned) }
    }
    pub(super) fn not_found(message: &str) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, "java.io.FileNotFoundException", Some(message))
    }
    pub(super) fn illegal(message: Option<&str>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "java.lang.IllegalArgumentException", message)
    }
    fn hadoop_illegal(message: &str) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "org.apache.hadoop.HadoopIllegalArgumentException", Some(message))
    }
    /// What the image holds is not what it should be.
    fn broken(failure: &Failure) -> Refusal {
        Refusal::new(StatusCode::FORBIDDEN, "java.io.IOException", Some(&failure.to_string()))
    }

    /// As JSON.
    pub(super) fn content(&self) -> String {
        let name = self.class.rsplit('.').next().unwrap_or_default();
        let message = self.message.as_deref().map_or("null".to_owned(), quoted);
        let class = self.class;
        format!(
            "{{\"RemoteException\":{{\"exception\":\"{name}\",\"javaClassName\":\"{class}\",\"message\":{message}}}}}"
        )
    }
}

type Told<T> = Result<T, Refusal>;

/// The answer to a request.
pub(super) fn content(index: &Index, query: &Query) -> Told<String> {
    let path = query.path()?;
    let operation = query.value("op").ok_or_else(|| Refusal::illegal(Some("Param op must be specified.")))?;
    let answer = match operation.to_uppercase().as_str() {
        "GETFILESTATUS" => |index: &Index, inode: &INode, _: &Query| {
            Ok(format!("{{\"FileStatus\":\n{}\n}}\n", status(index, inode, "")?))
        },
        "LISTSTATUS" => listing,
        "GETACLSTATUS" => acl,
        "GETXATTRS" => xattrs,
        "LISTXATTRS" => xattr_names,
        "GETCONTENTSUMMARY" => summary,
        _ => return Err(Refusal::illegal(Some("Invalid value for webhdfs parameter \"op\""))),
    };
    if !path.starts_with('/') {
        return Err(Refusal::illegal(None));
    }
    let inode = index.find(path).ok_or_else(|| Refusal::not_found(path))?;
    answer(index, &inode, query)
}

fn listing(index: &Index, inode: &INode, _: &Query) -> Told<String> {
    let all = if inode.r#type() == Type::Directory {
        let inside = index.children(inode.id).unwrap_or_default().iter().filter_map(|child| index.inode(*child));
        inside.map(|child| status(index, &child, &String::from_utf8_lossy(child.name()))).collect::<Told<Vec<_>>>()?
    } else {
        vec![status(index, inode, "")?]
    };
    Ok(format!("{{\"FileStatuses\":{{\"FileStatus\":[\n{}\n]}}}}\n", all.join(",")))
}

/// What is told of every kind of inode.
struct Facts {
    permission: u64,
    mtime: u64,
    atime: u64,
    replication: u32,
    block_size: u64,
    length: u64,
    quota: (u64, u64),
}

fn facts(inode: &INode) -> Facts {
    let none = Facts {
        permission: 0,
        mtime: 0,
        atime: 0,
        replication: 0,
        block_size: 0,
        length: 0,
        quota: (u64::MAX, u64::MAX),
    };
    match (&inode.file, &inode.directory, &inode.symlink) {
        (Some(file), ..) => Facts {
            permission: file.permission(),
            mtime: file.modification_time(),
            atime: file.access_time(),
            replication: file.replication(),
            block_size: file.preferred_block_size(),
            length: file.blocks.iter().fold(0, |length, block| length.wrapping_add(block.num_bytes())),
            ..none
        },
        (_, Some(directory), _) => Facts {
            permission: directory.permission(),
            mtime: directory.modification_time(),
            quota: (directory.ns_quota(), directory.ds_quota()),
            ..none
        },
        (.., Some(symlink)) => Facts {
            permission: symlink.permission(),
            mtime: symlink.modification_time(),
            atime: symlink.access_time(),
            ..none
        },
        _ => none,
    }
}

/// Owner, group and mode.
fn permission(index: &Index, packed: u64) -> Told<(String, String, u16)> {
    let permission = index.image.permission(packed).map_err(|failure| Refusal::broken(&failure))?;
    let text = |name: Option<std::sync::Arc<str>>| name.as_deref().map_or("null".to_owned(), quoted);
    Ok((text(permission.user), text(permission.group), permission.mode))
}

fn status(index: &Index, inode: &INode, suffix: &str) -> Told<String> {
    let of = facts(inode);
    let (owner, group, mode) = permission(index, of.permission)?;
    let (suffix, children) = (quoted(suffix), index.children(inode.id).map_or(0, <[u64]>::len));
    let striped = inode.file.as_ref().is_some_and(|file| file.erasure_coding_policy_id.is_some());
    let replication = if striped { STRIPED_REPLICATION } else { of.replication as i32 };
    let (length, size) = (of.length as i64, of.block_size as i64);
    let (mtime, atime, id) = (of.mtime as i64, of.atime as i64, inode.id as i64);
    let kind = inode.r#type().as_str_name();
    // With one member more the map is larger, and the order another.
    Ok(match &inode.symlink {
        Some(symlink) => format!(
            "{{\"owner\":{owner},\"replication\":{replication},\"length\":{length},\"permission\":\"{mode:o}\",\"type\":\"{kind}\",\
             \"blockSize\":{size},\"pathSuffix\":{suffix},\"modificationTime\":{mtime},\"childrenNum\":{children},\"symlink\":{},\
             \"accessTime\":{atime},\"group\":{group},\"fileId\":{id}}}",
            quoted(&String::from_utf8_lossy(symlink.target()))
        ),
        None => format!(
            "{{\"owner\":{owner},\"replication\":{replication},\"pathSuffix\":{suffix},\"modificationTime\":{mtime},\
             \"childrenNum\":{children},\"length\":{length},\"permission\":\"{mode:o}\",\"type\":\"{kind}\",\"blockSize\":{size},\
             \"accessTime\":{atime},\"group\":{group},\"fileId\":{id}}}"
        ),
    })
}

fn acl(index: &Index, inode: &INode, _: &Query) -> Told<String> {
    let (owner, group, mode) = permission(index, facts(inode).permission)?;
    let feature: Option<&AclFeatureProto> = match (&inode.file, &inode.directory) {
        (Some(file), _) => file.acl.as_ref(),
        (None, Some(directory)) => directory.acl.as_ref(),
        (None, None) => None,
    };
    let entries = feature.iter().flat_map(|feature| &feature.entries);
    let entries: Vec<String> = entries
        .map(|entry| index.image.acl_entry(*entry).map(|text| quoted(&text)))
        .collect::<Result<_, _>>()
        .map_err(|failure| Refusal::broken(&failure))?;
    Ok(format!(
        "{{\"AclStatus\":{{\"entries\":[{}],\"group\":{group},\"owner\":{owner},\"permission\":\"{mode:o}\",\"stickyBit\":{}}}}}",
        entries.join(","),
        mode & 0o1000 != 0
    ))
}

/// Names and values of an inode's attributes.
fn all_xattrs(index: &Index, inode: &INode) -> Told<Vec<(String, Vec<u8>)>> {
    let feature: Option<&XAttrFeatureProto> = match (&inode.file, &inode.directory) {
        (Some(file), _) => file.x_attrs.as_ref(),
        (None, Some(directory)) => directory.x_attrs.as_ref(),
        (None, None) => None,
    };
    let named = |xattr: &hadoop_proto::fsimage::i_node_section::XAttrCompactProto| {
        let (namespace, name) = index.image.xattr_name(xattr.name).map_err(|failure| Refusal::broken(&failure))?;
        Ok((format!("{}.{name}", namespace.to_lowercase()), xattr.value().to_vec()))
    };
    feature.iter().flat_map(|feature| &feature.x_attrs).map(named).collect()
}

fn xattrs(index: &Index, inode: &INode, query: &Query) -> Told<String> {
    let asked = query.values("xattr.name").map(xattr_name).collect::<Told<Vec<_>>>()?;
    let encoding = query.value("encoding").filter(|encoding| !encoding.is_empty()).unwrap_or("TEXT").to_uppercase();
    if !["TEXT", "HEX", "BASE64"].contains(&encoding.as_str()) {
        let text = format!("No enum constant org.apache.hadoop.fs.XAttrCodec.{encoding}");
        return Err(Refusal::illegal(Some(&text)));
    }
    if inode.symlink.is_some() {
        return Ok("{\"XAttrs\":null}".to_owned());
    }
    let mut all = all_xattrs(index, inode)?;
    if !asked.is_empty() {
        let found = |name: &String| all.iter().find(|(known, _)| known == name).cloned();
        all = asked.iter().map(found).collect::<Option<Vec<_>>>().ok_or_else(|| {
            let class = "org.apache.hadoop.hdfs.protocol.XAttrNotFoundException";
            Refusal::new(StatusCode::FORBIDDEN, class, Some("At least one of the attributes provided was not found."))
        })?;
    }
    let shown = |value: &[u8]| match encoding.as_str() {
        "HEX" => format!("0x{}", hex(value)),
        "BASE64" => format!("0s{}", STANDARD.encode(value)),
        _ => format!("\"{}\"", String::from_utf8_lossy(value)),
    };
    let all: Vec<String> = all
        .iter()
        .map(|(name, value)| format!("{{\"name\":{},\"value\":{}}}", quoted(name), quoted(&shown(value))))
        .collect();
    Ok(format!("{{\"XAttrs\":[{}]}}", all.join(",")))
}

/// A name as the image has it: its namespace in small letters.
fn xattr_name(text: &str) -> Told<String> {
    let unprefixed = || {
        let text = "An XAttr name must be prefixed with user/trusted/security/system/raw, followed by a '.'";
        Refusal::hadoop_illegal(text)
    };
    let (namespace, name) = text.split_once('.').ok_or_else(unprefixed)?;
    let namespace = namespace.to_lowercase();
    if !["user", "trusted", "security", "system", "raw"].contains(&namespace.as_str()) {
        return Err(unprefixed());
    }
    if name.is_empty() {
        return Err(Refusal::hadoop_illegal("XAttr name cannot be empty."));
    }
    Ok(format!("{namespace}.{name}"))
}

fn xattr_names(index: &Index, inode: &INode, _: &Query) -> Told<String> {
    let names: Vec<String> = all_xattrs(index, inode)?.iter().map(|(name, _)| quoted(name)).collect();
    Ok(format!("{{\"XAttrNames\":{}}}", quoted(&format!("[{}]", names.join(",")))))
}

/// Counts of a tree; symlinks count as files.
#[derive(Default)]
struct Counts {
    directories: u64,
    files: u64,
    length: u64,
    space: u64,
}

fn summary(index: &Index, inode: &INode, _: &Query) -> Told<String> {
    let (mut counts, mut left) = (Counts::default(), vec![inode.clone()]);
    // an image may go round in circles
    let mut seen = std::collections::HashSet::new();
    while let Some(inode) = left.pop() {
        if !seen.insert(inode.id) {
            continue;
        }
        match inode.r#type() {
            Type::Directory => {
                counts.directories += 1;
                let children = index.children(inode.id).unwrap_or_default();
                left.extend(children.iter().filter_map(|child| index.inode(*child)));
            }
            Type::File | Type::Symlink => {
                let of = facts(&inode);
                counts.files += 1;
                counts.length = counts.length.wrapping_add(of.length);
                counts.space = counts.space.wrapping_add(of.length.wrapping_mul(of.replication.into()));
            }
        }
    }
    let (names, space) = facts(inode).quota;
    Ok(format!(
        "{{\"ContentSummary\":\n{{\"directoryCount\":{},\"quota\":{},\"length\":{},\"spaceConsumed\":{},\"fileCount\":{},\
         \"spaceQuota\":{}}}\n}}\n",
        counts.directories, names as i64, counts.length as i64, counts.space as i64, counts.files, space as i64
    ))
}

/// A JSON string with the escapes of Jackson.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => _ = write!(out, "\\u{:04X}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
