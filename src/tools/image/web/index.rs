//! An image that is asked by path: the messages of its inodes as they are, and who is in which directory.

use crate::tools::failure::Failure;
use crate::tools::image::source::Image;
use crate::tools::image::tree::ROOT;
use hadoop_proto::fsimage::{INodeSection, i_node_directory_section, i_node_reference_section, i_node_section::INode};
use hadoop_proto::{Message, decode};
use std::collections::HashMap;
use storage::image::SectionName;

/// Messages one after another, and where each is.
pub(super) struct Index {
    pub(super) image: Image,
    messages: Vec<u8>,
    /// Number of an inode, where its message begins and ends; sorted.
    inodes: Vec<(u64, usize, usize)>,
    children: HashMap<u64, Box<[u64]>>,
}

impl Index {
    /// Reads inodes and directories.
    pub(super) fn load(image: Image) -> Result<Index, Failure> {
        let mut index = Index { image, messages: Vec::new(), inodes: Vec::new(), children: HashMap::new() };
        let mut referred = Vec::new();
        if let Some(mut messages) = index.image.section(SectionName::InodeReference) {
            while let Some(reference) = messages.next::<i_node_reference_section::INodeReference>()? {
                referred.push(reference.referred_id());
            }
        }
        if let Some(mut messages) = index.image.section(SectionName::Inode) {
            let section: INodeSection = messages.expect()?;
            for _ in 0..section.num_inodes() as i64 {
                let inode: INode = messages.expect()?;
                let start = index.messages.len();
                inode.encode(&mut index.messages).map_err(|error| Failure::content(error.to_string()))?;
                index.inodes.push((inode.id, start, index.messages.len()));
            }
        }
        index.inodes.sort_unstable();
        if let Some(mut messages) = index.image.section(SectionName::InodeDir) {
            while let Some(entry) = messages.next::<i_node_directory_section::DirEntry>()? {
                let reference = |number: &u32| {
                    referred.get(*number as usize).copied().ok_or_else(|| {
                        Failure::content(format!("section INODE_DIR names reference {number}, which is not there"))
                    })
                };
                let mut children = entry.children.clone();
                children.extend(entry.ref_children.iter().map(reference).collect::<Result<Vec<_>, _>>()?);
                index.children.insert(entry.parent(), children.into());
            }
        }
        Ok(index)
    }

    /// An inode by its number.
    pub(super) fn inode(&self, id: u64) -> Option<INode> {
        let at = self.inodes.binary_search_by_key(&id, |(known, ..)| *known).ok()?;
        let (_, start, end) = self.inodes[at];
        decode(self.messages[start..end].to_vec().into()).ok()
    }

    /// Who is in a directory; `None` for whatever has nothing in it.
    pub(super) fn children(&self, directory: u64) -> Option<&[u64]> {
        self.children.get(&directory).map(|children| &**children)
    }

    /// What a path names. Slashes may be doubled; an inode that is renamed across snapshots has the name that it had first.
    pub(super) fn find(&self, path: &str) -> Option<INode> {
        let mut inode = self.inode(ROOT)?;
        for component in path.split('/').filter(|component| !component.is_empty()) {
            let mut inside = self.children(inode.id)?.iter().filter_map(|child| self.inode(*child));
            inode = inside.find(|child| String::from_utf8_lossy(child.name()) == component)?;
        }
        Some(inode)
    }
}
