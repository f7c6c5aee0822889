//! The tree of an image, as far as paths need it: names of directories and who is whose child.

use super::source::Image;
use crate::tools::failure::Failure;
use hadoop_proto::fsimage::{INodeSection, i_node_directory_section, i_node_reference_section, i_node_section};
use std::collections::HashMap;
use storage::image::SectionName;

/// Number of the root directory.
pub(super) const ROOT: u64 = 16385;

/// Names and parents. Inodes of snapshots only have no parent.
pub(super) struct Tree {
    names: HashMap<u64, Box<str>>,
    parents: HashMap<u64, u64>,
}

impl Tree {
    /// Reads the directories of an image.
    pub(super) fn load(image: &Image) -> Result<Tree, Failure> {
        let mut tree = Tree { names: HashMap::new(), parents: HashMap::new() };
        let mut referred = Vec::new();
        if let Some(mut messages) = image.section(SectionName::InodeReference) {
            while let Some(reference) = messages.next::<i_node_reference_section::INodeReference>()? {
                referred.push(reference.referred_id());
            }
        }
        if let Some(mut messages) = image.section(SectionName::Inode) {
            let section: INodeSection = messages.expect()?;
            for _ in 0..section.num_inodes() as i64 {
                let inode: i_node_section::INode = messages.expect()?;
                if inode.r#type() == i_node_section::i_node::Type::Directory {
                    tree.names.insert(inode.id, String::from_utf8_lossy(inode.name()).into());
                }
            }
        }
        if let Some(mut messages) = image.section(SectionName::InodeDir) {
            while let Some(entry) = messages.next::<i_node_directory_section::DirEntry>()? {
                for child in &entry.children {
                    tree.parents.insert(*child, entry.parent());
                }
                for reference in &entry.ref_children {
                    let child = referred.get(*reference as usize).ok_or_else(|| {
                        Failure::content(format!("section INODE_DIR names reference {reference}, which is not there"))
                    })?;
                    tree.parents.insert(*child, entry.parent());
                }
            }
        }
        Ok(tree)
    }

    /// Path of the directory that an inode is in; `None` for one that is in snapshots only.
    pub(super) fn parent_path(&self, inode: u64) -> Option<String> {
        let mut names: Vec<&str> = Vec::new();
        let mut at = inode;
        while at != ROOT {
            at = *self.parents.get(&at)?;
            if at != ROOT {
                names.push(self.names.get(&at)?);
            }
            // A damaged image may go round in circles.
            if names.len() > self.names.len() {
                return None;
            }
        }
        names.reverse();
        Some(format!("/{}", names.join("/")))
    }
    /// The directory that an inode is in.
    pub(super) fn parent(&self, inode: u64) -> Option<u64> {
        self.parents.get(&inode).copied()
    }
    /// Name of a directory.
    pub(super) fn name(&self, directory: u64) -> Option<&str> {
        self.names.get(&directory).map(|name| &**name)
    }
    /// How many directories there are.
    pub(super) fn directories(&self) -> usize {
        self.names.len()
    }
}
