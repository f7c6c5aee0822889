//! The DetectCorruption processor: inodes that a directory lists and that are not there, and directories that are not there themselves.

use super::delimited::escaped;
use super::source::Image;
use super::tree::Tree;
use crate::tools::failure::Failure;
use hadoop_proto::fsimage::{INodeSection, i_node_directory_section, i_node_reference_section, i_node_section as wire};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use storage::image::SectionName;

/// What is wrong about an inode.
#[derive(Default, Clone, Copy)]
struct Corruption {
    /// When it was found, from 0.
    order: usize,
    is_missing: bool,
    missing_children: u32,
}

impl Corruption {
    fn name(self) -> &'static str {
        match (self.is_missing, self.missing_children > 0) {
            (true, true) => "CorruptNodeWithMissingChild",
            (true, false) => "CorruptNode",
            (false, _) => "MissingChild",
        }
    }
}

/// What was found, and what is needed to describe it.
struct Search<'d> {
    tree: Tree,
    inodes: HashSet<u64>,
    referred: HashSet<u64>,
    corruptions: HashMap<u64, Corruption>,
    delimiter: &'d str,
}

/// Writes a line for each corruption.
pub(super) fn write(image: &Image, delimiter: &str, out: &mut impl Write) -> Result<(), Failure> {
    let tree = Tree::load(image)?;
    let (inodes, referred, corruptions) = (HashSet::new(), HashSet::new(), HashMap::new());
    let mut search = Search { tree, inodes, referred, corruptions, delimiter };
    search.read(image)?;
    let header =
        ["CorruptionType", "Id", "IsSnapshot", "ParentPath", "ParentId", "Name", "NodeType", "CorruptChildren"];
    writeln!(out, "{}", header.join(delimiter))?;
    let mut left = search.corruptions.clone();
    // First what has a path, in the order of the image.
    if let Some(mut messages) = image.section(SectionName::Inode) {
        _ = messages.expect::<INodeSection>()?;
        while let Some(inode) = messages.next::<wire::INode>()? {
            let Some(path) = search.tree.parent_path(inode.id) else { continue };
            if left.remove(&inode.id).is_some() {
                let name = String::from_utf8_lossy(inode.name());
                writeln!(out, "{}", search.line(inode.id, false, &path, &name))?;
            }
        }
    }
    for id in search.in_java_order(left) {
        let name = search.tree.name(id).unwrap_or_default();
        writeln!(out, "{}", search.line(id, true, "", name))?;
    }
    out.flush()?;
    Ok(())
}

impl Search<'_> {
    fn read(&mut self, image: &Image) -> Result<(), Failure> {
        if let Some(mut messages) = image.section(SectionName::InodeReference) {
            while let Some(reference) = messages.next::<i_node_reference_section::INodeReference>()? {
                self.referred.insert(reference.referred_id());
            }
        }
        if let Some(mut messages) = image.section(SectionName::Inode) {
            let section: INodeSection = messages.expect()?;
            for _ in 0..section.num_inodes() as i64 {
                self.inodes.insert(messages.expect::<wire::INode>()?.id);
            }
        }
        if let Some(mut messages) = image.section(SectionName::InodeDir) {
            while let Some(entry) = messages.next::<i_node_directory_section::DirEntry>()? {
                self.directory(&entry);
            }
        }
        Ok(())
    }

    /// References are not looked at: what they refer to is looked at where it was first.
    fn directory(&mut self, entry: &i_node_directory_section::DirEntry) {
        if !self.inodes.contains(&entry.parent()) {
            self.found(entry.parent()).is_missing = true;
        }
        let missing: Vec<u64> = entry.children.iter().copied().filter(|child| !self.inodes.contains(child)).collect();
        for child in &missing {
            self.found(*child).is_missing = true;
        }
        if !missing.is_empty() {
            self.found(entry.parent()).missing_children = missing.len() as u32;
        }
    }
    fn found(&mut self, id: u64) -> &mut Corruption {
        let order = self.corruptions.len();
        self.corruptions.entry(id).or_insert(Corruption { order, ..Corruption::default() })
    }

    fn line(&self, id: u64, only_in_snapshots: bool, parent_path: &str, name: &str) -> String {
        let corruption = self.corruptions.get(&id).copied().unwrap_or_default();
        let kind = match (self.inodes.contains(&id), self.referred.contains(&id)) {
            (true, _) => "Node",
            (false, true) => "Ref",
            (false, false) => "Unknown",
        };
        let parent = self.tree.parent(id).map_or_else(|| "Missing".to_owned(), |parent| (parent as i64).to_string());
        let fields = [
            corruption.name().to_owned(),
            (id as i64).to_string(),
            only_in_snapshots.to_string(),
            escaped(parent_path),
            parent,
            escaped(name),
            kind.to_owned(),
            corruption.missing_children.to_string(),
        ];
        fields.join(self.delimiter)
    }

    /// Quirk: corruptions_come_in_the_order_of_a_hash_map: those without a path as Java's `HashMap` of their ids yields them.
    fn in_java_order(&self, left: HashMap<u64, Corruption>) -> Vec<u64> {
        let mut capacity = 16;
        while self.corruptions.len() * 4 > capacity * 3 {
            capacity *= 2;
        }
        let bucket = |id: u64| {
            let hash = (id ^ id >> 32) as u32;
            (hash ^ hash >> 16) as usize & (capacity - 1)
        };
        let mut ids: Vec<(usize, usize, u64)> = left.into_iter().map(|(id, c)| (bucket(id), c.order, id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, _, id)| id).collect()
    }
}
