//! The ReverseXML processor: an image with the content of its XML.

use super::rebuild::{self, Strings};
use crate::tools::failure::Failure;
use crate::tools::stanza::{Stanza, broken};
use hadoop_proto::fsimage::{self as wire, file_summary};
use hadoop_proto::{Message, hdfs};
use md5::{Digest, Md5};
use quick_xml::Reader;
use quick_xml::events::Event;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use storage::image::{MAGIC, SectionName};
use vocab::LayoutVersion;

/// Sections of the XML with their names in the image. All must be there, but the last one may be missing.
const SECTIONS: [(&str, SectionName); 10] = [
    ("NameSection", SectionName::NsInfo),
    ("ErasureCodingSection", SectionName::ErasureCoding),
    ("INodeSection", SectionName::Inode),
    ("SecretManagerSection", SectionName::SecretManager),
    ("CacheManagerSection", SectionName::CacheManager),
    ("INodeReferenceSection", SectionName::InodeReference),
    ("INodeDirectorySection", SectionName::InodeDir),
    ("FileUnderConstructionSection", SectionName::FilesUnderConstruction),
    ("SnapshotSection", SectionName::Snapshot),
    ("SnapshotDiffSection", SectionName::SnapshotDiff),
];

/// Reads XML and writes the image, and its digest beside it.
pub(super) fn write(input: &Path, output: &Path) -> Result<(), Failure> {
    let file = File::open(input).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Content(format!("{} (No such file or directory)", input.display())),
        _ => error.into(),
    })?;
    let image = Output { file: BufWriter::new(File::create(output)?), digest: Md5::new(), offset: 0 };
    let mut reverse = Reverse {
        reader: Reader::from_reader(BufReader::new(file)),
        image,
        strings: Strings::default(),
        summary: wire::FileSummary { ondisk_version: 1, ..Default::default() },
    };
    reverse.run()?;
    reverse.image.file.flush()?;
    let digest: String = reverse.image.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::write(output.with_file_name(format!("{name}.md5")), format!("{digest} *{name}\n"))?;
    Ok(())
}

struct Output {
    file: BufWriter<File>,
    digest: Md5,
    offset: u64,
}

impl Output {
    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.digest.update(bytes);
        self.offset += bytes.len() as u64;
        self.file.write_all(bytes)?;
        Ok(())
    }
    fn message(&mut self, message: &impl Message) -> Result<(), Failure> {
        self.bytes(&message.encode_length_delimited_to_vec())
    }
}

struct Reverse {
    reader: Reader<BufReader<File>>,
    image: Output,
    strings: Strings,
    summary: wire::FileSummary,
}

impl Reverse {
    fn run(&mut self) -> Result<(), Failure> {
        match self.tag()? {
            Some((name, _)) if name == "fsimage" => {}
            _ => return Err(Failure::content("Expected tag event for fsimage")),
        }
        self.version()?;
        self.image.bytes(MAGIC)?;
        let mut missing: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        while !missing.is_empty() {
            let Some((name, is_empty)) = self.tag()? else { break };
            let known = SECTIONS.iter().find(|(known, _)| *known == name);
            let Some((_, section)) = known else {
                return Err(Failure::Content(format!("FSImage XML contains an unknown section <{name}>")));
            };
            if !missing.contains(&name.as_str()) {
                return Err(Failure::Content(format!("Found multiple {name} sections")));
            }
            missing.retain(|other| *other != name);
            let start = self.image.offset;
            self.section(*section, is_empty)?;
            self.record(*section, start);
        }
        if !matches!(missing[..], [] | ["SnapshotDiffSection"]) {
            let missing = missing.join(", ");
            return Err(Failure::Content(format!(
                "FSImage XML ended prematurely, without including section(s) {missing}"
            )));
        }
        self.finish()
    }

    /// Strings, the table of sections and its length.
    fn finish(&mut self) -> Result<(), Failure> {
        let start = self.image.offset;
        let entries = self.strings.in_java_order();
        self.image
            .message(&wire::StringTableSection { num_entry: Some(entries.len() as u32), ..Default::default() })?;
        for (text, id) in entries {
            self.image.message(&wire::string_table_section::Entry { id: Some(id), str: Some(text) })?;
        }
        self.record(SectionName::StringTable, start);
        let table = self.summary.encode_length_delimited_to_vec();
        self.image.bytes(&table)?;
        self.image.bytes(&(table.len() as u32).to_be_bytes())
    }

    fn record(&mut self, section: SectionName, start: u64) {
        self.summary.sections.push(file_summary::Section {
            name: Some(section.text().to_owned()),
            length: Some(self.image.offset - start),
            offset: Some(start),
        });
    }

    fn version(&mut self) -> Result<(), Failure> {
        match self.tag()? {
            Some((name, false)) if name == "version" => {}
            _ => return Err(Failure::content("No <version> section found at the top of the fsimage XML.")),
        }
        let version = Stanza::read(&mut self.reader, 1)?;
        if version.child("onDiskVersion").is_none() {
            return Err(Failure::content("The <version> section doesn't contain the onDiskVersion."));
        }
        let layout: i32 = version.number("layoutVersion")?;
        if layout != LayoutVersion::CURRENT.0 {
            let current = LayoutVersion::CURRENT.0;
            return Err(Failure::Content(format!(
                "Layout version mismatch: this software writes {current}, the XML is {layout}"
            )));
        }
        self.summary.ondisk_version = version.number("onDiskVersion")?;
        self.summary.layout_version = layout as u32;
        Ok(())
    }

    /// The next element's name, and whether nothing is in it; `None` where the element around it ends.
    fn tag(&mut self) -> Result<Option<(String, bool)>, Failure> {
        let mut buffer = Vec::new();
        loop {
            buffer.clear();
            match self.reader.read_event_into(&mut buffer).map_err(broken)? {
                Event::Start(start) => return Ok(Some((start.name().as_ref().to_owned(), false))),
                Event::Empty(start) => return Ok(Some((start.name().as_ref().to_owned(), true))),
                Event::End(_) | Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }
    /// The next element within the present one.
    fn element(&mut self) -> Result<Option<(String, Stanza)>, Failure> {
        match self.tag()? {
            None => Ok(None),
            Some((name, true)) => Ok(Some((name, Stanza::default()))),
            Some((name, false)) => Ok(Some((name, Stanza::read(&mut self.reader, 1)?))),
        }
    }
    /// The fields at the head of a section, up to the first of its records, which is given too.
    fn head(&mut self, records: &[&str]) -> Result<(Stanza, Option<(String, Stanza)>), Failure> {
        let mut head = Stanza::default();
        while let Some((name, stanza)) = self.element()? {
            if records.contains(&name.as_str()) {
                return Ok((head, Some((name, stanza))));
            }
            head.add(name, stanza);
        }
        Ok((head, None))
    }

    fn section(&mut self, section: SectionName, is_empty: bool) -> Result<(), Failure> {
        let records: &[&str] = match section {
            SectionName::Inode => &["inode"],
            SectionName::SecretManager => &["delegationKey", "token"],
            SectionName::CacheManager => &["pool", "directive"],
            SectionName::Snapshot => &["snapshot"],
            SectionName::InodeReference => &["ref"],
            SectionName::InodeDir => &["directory"],
            SectionName::FilesUnderConstruction => &["inode"],
            SectionName::SnapshotDiff => &["dirDiffEntry", "fileDiffEntry"],
            _ => &[],
        };
        let (head, mut record) = if is_empty { (Stanza::default(), None) } else { self.head(records)? };
        self.section_head(section, &head)?;
        while let Some((name, stanza)) = record {
            if !records.contains(&name.as_str()) {
                return Err(Failure::Content(format!("Found unknown tag {name} in section {}", section.text())));
            }
            self.section_record(section, &name, &stanza)?;
            record = self.element()?;
        }
        Ok(())
    }

    fn section_head(&mut self, section: SectionName, head: &Stanza) -> Result<(), Failure> {
        match section {
            SectionName::NsInfo => self.image.message(&rebuild::name_section(head)?),
            SectionName::ErasureCoding => self.image.message(&rebuild::erasure_coding(head)?),
            SectionName::Inode => self.image.message(&wire::INodeSection {
                last_inode_id: head.optional_number::<i64>("lastInodeId")?.map(|id| id as u64),
                num_inodes: Some(head.number::<i64>("numInodes")? as u64),
            }),
            SectionName::SecretManager => self.image.message(&wire::SecretManagerSection {
                current_id: Some(head.number("currentId")?),
                token_sequence_number: Some(head.number("tokenSequenceNumber")?),
                num_keys: Some(head.number("numDelegationKeys")?),
                num_tokens: Some(head.number("numTokens")?),
            }),
            SectionName::CacheManager => self.image.message(&wire::CacheManagerSection {
                next_directive_id: head.number::<i64>("nextDirectiveId")? as u64,
                num_pools: head.number("numPools")?,
                num_directives: head.number("numDirectives")?,
            }),
            SectionName::Snapshot => {
                let directories = head.all("snapshottableDir").flat_map(|list| list.numbers::<u64>("dir"));
                self.image.message(&wire::SnapshotSection {
                    snapshot_counter: Some(head.number("snapshotCounter")?),
                    snapshottable_dir: directories.collect::<Result<_, _>>()?,
                    num_snapshots: Some(head.number("numSnapshots")?),
                })
            }
            _ => Ok(()),
        }
    }

    fn section_record(&mut self, section: SectionName, name: &str, record: &Stanza) -> Result<(), Failure> {
        let strings = &mut self.strings;
        match (section, name) {
            (SectionName::Inode, _) => self.image.message(&rebuild::inode(record, strings)?),
            (SectionName::SecretManager, "delegationKey") => self.image.message(&rebuild::delegation_key(record)?),
            (SectionName::SecretManager, _) => self.image.message(&rebuild::token(record)?),
            (SectionName::CacheManager, "pool") => self.image.message(&hdfs::CachePoolInfoProto {
                pool_name: Some(record.text("poolName")?.into()),
                owner_name: Some(record.text("ownerName")?.into()),
                group_name: Some(record.text("groupName")?.into()),
                mode: Some(record.number("mode")?),
                limit: Some(record.number("limit")?),
                max_relative_expiry: Some(record.number("maxRelativeExpiry")?),
                default_replication: None,
            }),
            (SectionName::CacheManager, _) => self.image.message(&rebuild::cache_directive(record)?),
            (SectionName::Snapshot, _) => self.image.message(&wire::snapshot_section::Snapshot {
                snapshot_id: Some(record.number("id")?),
                root: Some(rebuild::inode(record.expect("root")?, strings)?),
            }),
            (SectionName::InodeReference, _) => self.image.message(&wire::i_node_reference_section::INodeReference {
                referred_id: record.optional_number("referredId")?,
                name: record.optional("name").map(|name| name.as_bytes().to_vec().into()),
                dst_snapshot_id: record.optional_number::<i32>("dstSnapshotId")?.map(|id| id as u32),
                last_snapshot_id: record.optional_number::<i32>("lastSnapshotId")?.map(|id| id as u32),
            }),
            (SectionName::InodeDir, _) => self.image.message(&wire::i_node_directory_section::DirEntry {
                parent: Some(record.number("parent")?),
                children: record.numbers("child").collect::<Result<_, _>>()?,
                ref_children: record.numbers("refChild").collect::<Result<_, _>>()?,
            }),
            (SectionName::FilesUnderConstruction, _) => {
                self.image.message(&wire::files_under_construction_section::FileUnderConstructionEntry {
                    inode_id: record.optional_number("id")?,
                    full_path: record.optional("path").map(str::to_owned),
                })
            }
            (_, name) => self.diffs(name == "fileDiffEntry", record),
        }
    }

    /// The differences of one inode.
    fn diffs(&mut self, is_file: bool, entry: &Stanza) -> Result<(), Failure> {
        use wire::snapshot_diff_section as diff;
        let kind = if is_file { diff::diff_entry::Type::Filediff } else { diff::diff_entry::Type::Directorydiff };
        self.image.message(&diff::DiffEntry {
            r#type: kind.into(),
            inode_id: Some(entry.number("inodeId")?),
            num_of_diff: Some(entry.number("count")?),
        })?;
        for stanza in entry.all("fileDiff") {
            self.image.message(&rebuild::file_diff(stanza, &mut self.strings)?)?;
        }
        for stanza in entry.all("dirDiff") {
            self.image.message(&rebuild::directory_diff(stanza, &mut self.strings)?)?;
            for created in stanza.all("created") {
                let name = Some(created.text("name")?.as_bytes().to_vec().into());
                self.image.message(&diff::CreatedListEntry { name })?;
            }
        }
        Ok(())
    }
}
