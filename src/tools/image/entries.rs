//! An image as entries with a key and a text that does not depend on order or numbering.

use super::source::{Image, Messages};
use super::view::View;
use crate::tools::failure::Failure;
use crate::tools::xml::Elements;
use hadoop_proto::fsimage as wire;
use hadoop_proto::fsimage::i_node_section::XAttrFeatureProto;
use hadoop_proto::hdfs;
use std::fmt::{self, Display, Formatter};
use storage::image::SectionName;

/// What an entry is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::tools) enum Key {
    /// Something that has a number.
    Number(&'static str, u64),
    /// Something that has a name.
    Name(&'static str, Box<str>),
}

impl Display for Key {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(kind, number) => write!(f, "{kind} {number}"),
            Key::Name(kind, name) => write!(f, "{kind} {name}"),
        }
    }
}

type Visit<'v> = &'v mut dyn FnMut(Key, &str);

/// Calls `visit` with every entry of an image.
pub(in crate::tools) fn each(image: &Image, visit: Visit<'_>) -> Result<(), Failure> {
    let mut reader = Entries { view: View { image, xml: Elements::new(Vec::new()) }, references: Vec::new(), visit };
    // References first: others name them by their place.
    let names = [
        SectionName::InodeReference,
        SectionName::NsInfo,
        SectionName::ErasureCoding,
        SectionName::Inode,
        SectionName::Snapshot,
        SectionName::InodeDir,
        SectionName::FilesUnderConstruction,
        SectionName::SnapshotDiff,
        SectionName::SecretManager,
        SectionName::CacheManager,
    ];
    for name in names {
        if let Some(messages) = image.section(name) {
            reader.section(name, messages)?;
        }
    }
    Ok(())
}

struct Entries<'i, 'v> {
    view: View<'i, Vec<u8>>,
    /// What each reference says.
    references: Vec<String>,
    visit: Visit<'v>,
}

impl Entries<'_, '_> {
    /// Gives what was written to the view as an entry.
    fn written(&mut self, key: Key) {
        let text = String::from_utf8_lossy(&self.view.xml.take()).into_owned();
        (self.visit)(key, &text);
    }
    fn reference(&self, number: u32) -> Result<&str, Failure> {
        let text = self.references.get(number as usize).map(String::as_str);
        text.ok_or_else(|| Failure::Content(format!("there is no reference {number}")))
    }
    /// Attributes in the order of their names.
    fn sort_xattrs(&self, xattrs: &mut Option<XAttrFeatureProto>) -> Result<(), Failure> {
        let Some(xattrs) = xattrs else { return Ok(()) };
        let name = |packed| self.view.image.xattr_name(packed);
        let mut named = Vec::new();
        for xattr in xattrs.x_attrs.drain(..) {
            named.push((name(xattr.name)?, xattr));
        }
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        xattrs.x_attrs.extend(named.into_iter().map(|(_, xattr)| xattr));
        Ok(())
    }

    fn section(&mut self, name: SectionName, messages: Messages<'_>) -> Result<(), Failure> {
        match name {
            SectionName::InodeReference => self.references(messages),
            SectionName::NsInfo => {
                self.view.name_section(messages)?;
                self.written(Key::Name("name system", "".into()));
                Ok(())
            }
            SectionName::ErasureCoding => self.policies(messages),
            SectionName::Inode => self.inodes(messages),
            SectionName::Snapshot => self.snapshots(messages),
            SectionName::InodeDir => self.directories(messages),
            SectionName::FilesUnderConstruction => self.open_files(messages),
            SectionName::SnapshotDiff => self.diffs(messages),
            SectionName::SecretManager => self.secrets(messages),
            SectionName::CacheManager => self.cache(messages),
            _ => Ok(()),
        }
    }

    fn references(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        while let Some(reference) = messages.next::<wire::i_node_reference_section::INodeReference>()? {
            let name = String::from_utf8_lossy(reference.name()).into_owned();
            let (from, to) = (reference.last_snapshot_id() as i32, reference.dst_snapshot_id() as i32);
            self.references.push(format!("{} as {name:?} from {from} to {to}", reference.referred_id()));
        }
        Ok(())
    }

    fn policies(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::ErasureCodingSection = messages.expect()?;
        for policy in &section.policies {
            self.view.erasure_coding_policy(policy)?;
            self.written(Key::Number("erasure coding policy", policy.id.into()));
        }
        Ok(())
    }

    fn inodes(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::INodeSection = messages.expect()?;
        (self.visit)(Key::Name("last inode id", "".into()), &section.last_inode_id().to_string());
        for _ in 0..section.num_inodes() as i64 {
            let inode: wire::i_node_section::INode = messages.expect()?;
            self.inode("inode", inode.id, inode)?;
        }
        Ok(())
    }

    fn inode(&mut self, kind: &'static str, key: u64, mut inode: wire::i_node_section::INode) -> Result<(), Failure> {
        if let Some(file) = &mut inode.file {
            self.sort_xattrs(&mut file.x_attrs)?;
        }
        if let Some(directory) = &mut inode.directory {
            self.sort_xattrs(&mut directory.x_attrs)?;
        }
        self.view.inode_fields(&inode)?;
        self.written(Key::Number(kind, key));
        Ok(())
    }

    fn snapshots(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let mut section: wire::SnapshotSection = messages.expect()?;
        section.snapshottable_dir.sort_unstable();
        let counter = section.snapshot_counter();
        (self.visit)(Key::Name("snapshot counter", "".into()), &counter.to_string());
        for directory in &section.snapshottable_dir {
            (self.visit)(Key::Number("snapshottable directory", *directory), "");
        }
        for _ in 0..section.num_snapshots() as i32 {
            let snapshot: wire::snapshot_section::Snapshot = messages.expect()?;
            self.inode("snapshot", snapshot.snapshot_id().into(), snapshot.root.clone().unwrap_or_default())?;
        }
        Ok(())
    }

    fn directories(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        while let Some(mut entry) = messages.next::<wire::i_node_directory_section::DirEntry>()? {
            entry.children.sort_unstable();
            let mut text: Vec<String> = entry.children.iter().map(u64::to_string).collect();
            let references: Result<Vec<&str>, Failure> =
                entry.ref_children.iter().map(|n| self.reference(*n)).collect();
            let mut references = references?;
            references.sort_unstable();
            text.extend(references.into_iter().map(str::to_owned));
            (self.visit)(Key::Number("children of", entry.parent()), &text.join(", "));
        }
        Ok(())
    }

    fn open_files(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        use wire::files_under_construction_section::FileUnderConstructionEntry;
        while let Some(entry) = messages.next::<FileUnderConstructionEntry>()? {
            (self.visit)(Key::Number("open file", entry.inode_id()), entry.full_path());
        }
        Ok(())
    }

    fn diffs(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        use wire::snapshot_diff_section as diff;
        while let Some(entry) = messages.next::<diff::DiffEntry>()? {
            let is_file = entry.r#type() == diff::diff_entry::Type::Filediff;
            for _ in 0..entry.num_of_diff() as i32 {
                if is_file {
                    let mut of_file: diff::FileDiff = messages.expect()?;
                    if let Some(copy) = &mut of_file.snapshot_copy {
                        self.sort_xattrs(&mut copy.x_attrs)?;
                    }
                    self.view.file_diff(&of_file)?;
                } else {
                    self.directory_diff(&mut messages)?;
                }
            }
            // An entry without differences says nothing.
            if entry.num_of_diff() > 0 {
                self.written(Key::Number("differences of", entry.inode_id()));
            }
        }
        Ok(())
    }

    fn directory_diff(&mut self, messages: &mut Messages<'_>) -> Result<(), Failure> {
        let mut diff: wire::snapshot_diff_section::DirectoryDiff = messages.expect()?;
        let mut created = Vec::new();
        for _ in 0..diff.created_list_size() as i32 {
            let entry: wire::snapshot_diff_section::CreatedListEntry = messages.expect()?;
            created.push(String::from_utf8_lossy(entry.name()).into_owned());
        }
        let deleted = std::mem::take(&mut diff.deleted_i_node_ref);
        let mut deleted: Vec<String> =
            deleted.into_iter().map(|n| self.reference(n).map(str::to_owned)).collect::<Result<_, _>>()?;
        created.sort_unstable();
        deleted.sort_unstable();
        diff.deleted_i_node.sort_unstable();
        if let Some(copy) = &mut diff.snapshot_copy {
            self.sort_xattrs(&mut copy.x_attrs)?;
        }
        self.view.directory_diff(&diff, &created)?;
        self.view.xml.raw(&format!("{deleted:?}"))?;
        Ok(())
    }

    fn secrets(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::SecretManagerSection = messages.expect()?;
        let text = format!("key {}, token {}", section.current_id(), section.token_sequence_number());
        (self.visit)(Key::Name("last secrets", "".into()), &text);
        for _ in 0..section.num_keys() as i32 {
            let key: wire::secret_manager_section::DelegationKey = messages.expect()?;
            self.view.delegation_key(&key)?;
            self.written(Key::Number("delegation key", key.id().into()));
        }
        for _ in 0..section.num_tokens() as i32 {
            let token: wire::secret_manager_section::PersistToken = messages.expect()?;
            self.view.token(&token)?;
            self.written(Key::Number("token", token.sequence_number().into()));
        }
        Ok(())
    }

    fn cache(&mut self, mut messages: Messages<'_>) -> Result<(), Failure> {
        let section: wire::CacheManagerSection = messages.expect()?;
        (self.visit)(Key::Name("next cache directive", "".into()), &section.next_directive_id.to_string());
        for _ in 0..section.num_pools as i32 {
            let pool: hdfs::CachePoolInfoProto = messages.expect()?;
            self.view.cache_pool(&pool)?;
            self.written(Key::Name("cache pool", pool.pool_name().into()));
        }
        for _ in 0..section.num_directives as i32 {
            let directive: hdfs::CacheDirectiveInfoProto = messages.expect()?;
            self.view.cache_directive(&directive)?;
            self.written(Key::Number("cache directive", directive.id() as u64));
        }
        Ok(())
    }
}
