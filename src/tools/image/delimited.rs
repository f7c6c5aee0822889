//! The Delimited processor: a line for each inode.

use super::source::Image;
use super::tree::Tree;
use crate::tools::failure::Failure;
use hadoop_proto::fsimage::{INodeSection, i_node_section as wire};
use jiff::tz::TimeZone;
use std::io::Write;
use storage::image::SectionName;
use vocab::Mode;
use vocab::erasure_coding::{self, ErasureCodingPolicy};

/// Name of the attribute that holds a directory's storage policy.
const STORAGE_POLICY_XATTR: &str = "hsm.block.storage.policy.id";

/// Which columns, and what is between them.
pub(super) struct Columns<'d> {
    pub(super) delimiter: &'d str,
    pub(super) storage_policy: bool,
    pub(super) erasure_coding: bool,
}

/// What a line says of an inode.
#[derive(Default)]
struct Line {
    replication: i32,
    mtime: i64,
    atime: i64,
    block_size: i64,
    blocks: usize,
    size: i64,
    name_quota: i64,
    space_quota: i64,
    kind: &'static str,
    permission: u64,
    has_acl: bool,
    storage_policy: i32,
    erasure_coding: Option<String>,
}

/// Writes header and lines.
pub(super) fn write(image: &Image, columns: &Columns<'_>, out: &mut impl Write) -> Result<(), Failure> {
    let tree = Tree::load(image)?;
    eprintln!("Found {} directories in INode section.", tree.directories());
    let mut header = vec![
        "Path",
        "Replication",
        "ModificationTime",
        "AccessTime",
        "PreferredBlockSize",
        "BlocksCount",
        "FileSize",
        "NSQUOTA",
        "DSQUOTA",
        "Permission",
        "UserName",
        "GroupName",
    ];
    if columns.storage_policy {
        header.push("StoragePolicyId");
    }
    if columns.erasure_coding {
        header.push("ErasureCodingPolicy");
    }
    let header: Vec<String> =
        header.into_iter().enumerate().map(|(at, name)| if at == 0 { name.into() } else { escaped(name) }).collect();
    writeln!(out, "{}", header.join(columns.delimiter))?;
    let zone = TimeZone::system();
    let mut ignored = 0u64;
    if let Some(mut messages) = image.section(SectionName::Inode) {
        _ = messages.expect::<INodeSection>()?;
        while let Some(inode) = messages.next::<wire::INode>()? {
            let Some(parent) = tree.parent_path(inode.id) else {
                ignored += 1;
                continue;
            };
            let line = Line::of(image, &inode)?;
            line.write(image, &path(&parent, inode.name()), columns, &zone, out)?;
        }
    }
    if ignored > 0 {
        eprintln!("Ignored {ignored} nodes that are in snapshots only.");
    }
    out.flush()?;
    Ok(())
}

fn path(parent: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    match (parent, &*name) {
        (_, "") => parent.to_owned(),
        ("/", name) => format!("/{name}"),
        (parent, name) => format!("{parent}/{name}"),
    }
}

impl Line {
    fn of(image: &Image, inode: &wire::INode) -> Result<Line, Failure> {
        Ok(match inode.r#type() {
            wire::i_node::Type::File => Line::of_file(&inode.file.clone().unwrap_or_default()),
            wire::i_node::Type::Directory => Line::of_directory(image, &inode.directory.clone().unwrap_or_default())?,
            wire::i_node::Type::Symlink => {
                let symlink = inode.symlink.clone().unwrap_or_default();
                Line {
                    mtime: symlink.modification_time() as i64,
                    atime: symlink.access_time() as i64,
                    permission: symlink.permission(),
                    kind: "-",
                    ..Line::default()
                }
            }
        })
    }

    fn of_file(file: &wire::INodeFile) -> Line {
        let policy = file.erasure_coding_policy_id.and_then(|id| {
            ErasureCodingPolicy::built_in().find(|known| u32::from(known.id) == id).map(|known| known.name.to_string())
        });
        Line {
            replication: file.replication() as i32,
            mtime: file.modification_time() as i64,
            atime: file.access_time() as i64,
            block_size: file.preferred_block_size() as i64,
            blocks: file.blocks.len(),
            size: file.blocks.iter().fold(0i64, |size, block| size.wrapping_add(block.num_bytes() as i64)),
            permission: file.permission(),
            kind: "-",
            has_acl: file.acl.as_ref().is_some_and(|acl| !acl.entries.is_empty()),
            storage_policy: file.storage_policy_id() as i32,
            erasure_coding: policy,
            ..Line::default()
        }
    }

    fn of_directory(image: &Image, directory: &wire::INodeDirectory) -> Result<Line, Failure> {
        let mut line = Line {
            mtime: directory.modification_time() as i64,
            name_quota: directory.ns_quota() as i64,
            space_quota: directory.ds_quota() as i64,
            permission: directory.permission(),
            kind: "d",
            has_acl: directory.acl.as_ref().is_some_and(|acl| !acl.entries.is_empty()),
            ..Line::default()
        };
        for xattr in directory.x_attrs.iter().flat_map(|xattrs| &xattrs.x_attrs) {
            let (namespace, name) = image.xattr_name(xattr.name)?;
            match (namespace, &*name) {
                ("SYSTEM", STORAGE_POLICY_XATTR) => {
                    line.storage_policy = xattr.value().first().map_or(0, |id| i32::from(*id as i8));
                }
                // A length of four bytes, then the name.
                ("SYSTEM", erasure_coding::XATTR) => {
                    line.erasure_coding = xattr.value().get(4..).map(|b| String::from_utf8_lossy(b).into_owned());
                }
                _ => {}
            }
        }
        Ok(line)
    }

    fn write(
        self,
        image: &Image,
        path: &str,
        columns: &Columns<'_>,
        zone: &TimeZone,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let permission = image.permission(self.permission)?;
        let acl = if self.has_acl { "+" } else { "" };
        let mut fields = vec![
            path.to_owned(),
            self.replication.to_string(),
            minute(self.mtime, zone),
            minute(self.atime, zone),
            self.block_size.to_string(),
            self.blocks.to_string(),
            self.size.to_string(),
            self.name_quota.to_string(),
            self.space_quota.to_string(),
            format!("{}{}{acl}", self.kind, Mode::new(permission.mode)),
            permission.user.as_deref().unwrap_or("null").to_owned(),
            permission.group.as_deref().unwrap_or("null").to_owned(),
        ];
        if columns.storage_policy {
            fields.push(self.storage_policy.to_string());
        }
        if columns.erasure_coding {
            fields.push(self.erasure_coding.unwrap_or_else(|| "-".to_owned()));
        }
        let fields: Vec<String> = fields.iter().map(|field| escaped(field)).collect();
        writeln!(out, "{}", fields.join(columns.delimiter))?;
        Ok(())
    }
}

/// A time as `yyyy-MM-dd HH:mm` of a zone.
fn minute(milliseconds: i64, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(milliseconds) {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => milliseconds.to_string(),
    }
}

/// Quirk: delimited_lines_stay_lines: quotes as in CSV for `,`, `"` and line ends whatever the delimiter is; then line ends become `%x0A`,
/// `%x0D%x0A`.
pub(super) fn escaped(field: &str) -> String {
    let quoted = match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => return field.to_owned(),
    };
    if quoted.contains("\r\n") { quoted.replace("\r\n", "%x0D%x0A") } else { quoted.replace('\n', "%x0A") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimited_lines_stay_lines() {
        assert_eq!(escaped("a\tb"), "a\tb");
        assert_eq!(escaped("a,b"), "\"a,b\"");
        assert_eq!(escaped("a\"\n"), "\"a\"\"%x0A\"");
        assert_eq!(escaped("\r\n"), "\"%x0D%x0A\"");
    }
}
