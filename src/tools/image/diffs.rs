//! Differences of snapshots as XML.

use super::source::Messages;
use super::view::View;
use crate::tools::failure::Failure;
use hadoop_proto::fsimage::snapshot_diff_section as wire;
use std::io::Write;

impl<W: Write> View<'_, W> {
    pub(super) fn diffs(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        self.xml.raw("<SnapshotDiffSection>")?;
        while let Some(entry) = messages.next::<wire::DiffEntry>()? {
            let is_file = entry.r#type() == wire::diff_entry::Type::Filediff;
            let name = if is_file { "fileDiffEntry" } else { "dirDiffEntry" };
            self.xml.raw(&format!("<{name}>"))?.value("inodeId", entry.inode_id() as i64)?;
            self.xml.value("count", entry.num_of_diff() as i32)?;
            for _ in 0..entry.num_of_diff() as i32 {
                if is_file {
                    self.file_diff(&messages.expect()?)?;
                    continue;
                }
                let diff: wire::DirectoryDiff = messages.expect()?;
                let mut created = Vec::new();
                for _ in 0..diff.created_list_size() as i32 {
                    let entry: wire::CreatedListEntry = messages.expect()?;
                    created.push(String::from_utf8_lossy(entry.name()).into_owned());
                }
                self.directory_diff(&diff, &created)?;
            }
            self.xml.raw(&format!("</{name}>"))?;
        }
        self.xml.raw("</SnapshotDiffSection>\n")?;
        Ok(())
    }

    /// A copy that the image does not hold is shown as a file of defaults.
    pub(super) fn file_diff(&mut self, diff: &wire::FileDiff) -> Result<(), Failure> {
        self.xml.raw("<fileDiff>")?.value("snapshotId", diff.snapshot_id() as i32)?;
        self.xml.value("size", diff.file_size() as i64)?.bytes("name", diff.name())?.raw("<snapshotCopy>")?;
        self.file(&diff.snapshot_copy.clone().unwrap_or_default())?;
        self.xml.raw("</snapshotCopy>\n")?;
        self.blocks(&diff.blocks)?;
        self.xml.raw("</fileDiff>\n")?;
        Ok(())
    }

    /// A difference of a directory with the names that were created since.
    pub(super) fn directory_diff(&mut self, diff: &wire::DirectoryDiff, created: &[String]) -> Result<(), Failure> {
        self.xml.raw("<dirDiff>")?.value("snapshotId", diff.snapshot_id() as i32)?;
        self.xml.value("childrenSize", diff.children_size() as i32)?.flag("isSnapshotRoot", diff.is_snapshot_root())?;
        self.xml.bytes("name", diff.name())?;
        if let Some(copy) = &diff.snapshot_copy {
            self.xml.raw("<snapshotCopy>")?;
            self.directory(copy)?;
            self.xml.raw("</snapshotCopy>\n")?;
        }
        self.xml.value("createdListSize", diff.created_list_size() as i32)?;
        for inode in &diff.deleted_i_node {
            self.xml.value("deletedInode", *inode as i64)?;
        }
        for reference in &diff.deleted_i_node_ref {
            self.xml.value("deletedInoderef", *reference as i32)?;
        }
        for name in created {
            self.xml.raw("<created>")?.text("name", name)?.raw("</created>\n")?;
        }
        self.xml.raw("</dirDiff>\n")?;
        Ok(())
    }
}
