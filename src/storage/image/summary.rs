//! The ends of an image file: magic, table of sections, length of the table.

use super::input::{Input, bytes_at};
use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use vocab::LayoutVersion;

/// The first eight bytes of a protobuf image.
pub const MAGIC: &[u8; 8] = b"HDFSIMG1";
/// `ondiskVersion` of every protobuf image.
const ONDISK_VERSION: u64 = 1;

/// Why an image cannot be loaded. The text names what and where; the caller adds the file.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ImageError {
    /// Not an image, or cut short.
    #[error("Unrecognized file format")]
    UnrecognizedFormat,
    /// The digest beside the file does not fit, or cannot be read.
    #[error("{0}")]
    Digest(String),
    /// Bytes that are not wire format.
    #[error("section {section} at offset {offset}: {error}")]
    Wire {
        /// Section.
        section: &'static str,
        /// Offset in the file, in bytes.
        offset: u64,
        /// What is wrong.
        error: WireError,
    },
    /// Legal bytes with an impossible meaning.
    #[error("section {section}: {what}")]
    Content {
        /// Section.
        section: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The file cannot be read.
    #[error("{0}")]
    Read(String),
    /// Known to Hadoop, not supported here yet.
    #[error("the image uses {0}, which is not supported yet; nothing was changed")]
    Unsupported(String),
    /// A section nobody knows.
    #[error("Unrecognized section {0}")]
    UnknownSection(String),
    /// A layout this software does not read.
    #[error("layout version {0} of the image is not supported")]
    Layout(i32),
}

/// Names of sections, in the order in which they are loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs)] // Hadoop's names
pub enum SectionName {
    NsInfo,
    StringTable,
    ExtendedAcl,
    ErasureCoding,
    Inode,
    InodeSub,
    InodeReference,
    InodeReferenceSub,
    Snapshot,
    InodeDir,
    InodeDirSub,
    FilesUnderConstruction,
    SnapshotDiff,
    SnapshotDiffSub,
    SecretManager,
    CacheManager,
}

impl SectionName {
    const ALL: [(SectionName, &'static str); 16] = [
        (SectionName::NsInfo, "NS_INFO"),
        (SectionName::StringTable, "STRING_TABLE"),
        (SectionName::ExtendedAcl, "EXTENDED_ACL"),
        (SectionName::ErasureCoding, "ERASURE_CODING"),
        (SectionName::Inode, "INODE"),
        (SectionName::InodeSub, "INODE_SUB"),
        (SectionName::InodeReference, "INODE_REFERENCE"),
        (SectionName::InodeReferenceSub, "INODE_REFERENCE_SUB"),
        (SectionName::Snapshot, "SNAPSHOT"),
        (SectionName::InodeDir, "INODE_DIR"),
        (SectionName::InodeDirSub, "INODE_DIR_SUB"),
        (SectionName::FilesUnderConstruction, "FILES_UNDERCONSTRUCTION"),
        (SectionName::SnapshotDiff, "SNAPSHOT_DIFF"),
        (SectionName::SnapshotDiffSub, "SNAPSHOT_DIFF_SUB"),
        (SectionName::SecretManager, "SECRET_MANAGER"),
        (SectionName::CacheManager, "CACHE_MANAGER"),
    ];

    /// The name in the file.
    pub fn text(self) -> &'static str {
        Self::ALL[self as usize].1
    }
    fn parse(text: &[u8]) -> Option<SectionName> {
        Self::ALL.iter().find(|(_, t)| t.as_bytes() == text).map(|(n, _)| *n)
    }
}

/// One entry of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// Which.
    pub name: SectionName,
    /// First byte, from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
}

/// The table at the end of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Layout version of the content.
    pub layout: LayoutVersion,
    /// Java class name of the codec of every section; `None` when stored plain.
    pub codec: Option<String>,
    /// Sections, in order of loading.
    pub sections: Vec<Section>,
}

impl Summary {
    /// Reads the table from the end of a whole file.
    ///
    /// # Errors
    /// [`ImageError`] where magic, lengths, names or ranges are not right.
    pub fn parse(file: &[u8]) -> Result<Summary, ImageError> {
        Summary::read(&file)
    }

    /// The same of a file that is not in memory.
    ///
    /// # Errors
    /// As [`Summary::parse`]; and as the disk's.
    pub fn read(input: &dyn Input) -> Result<Summary, ImageError> {
        let (length, head) = (input.length(), MAGIC.len() as u64);
        if length < head + 4 || bytes_at(input, 0, head)? != MAGIC {
            return Err(ImageError::UnrecognizedFormat);
        }
        let body_end = length - 4;
        let tail = bytes_at(input, body_end, 4)?;
        let table = u64::from(u32::from_be_bytes(tail.try_into().unwrap_or_default()));
        if table == 0 || table > body_end - head {
            return Err(ImageError::UnrecognizedFormat);
        }
        let start = body_end - table;
        let wire = |error| ImageError::Wire { section: "summary", offset: start, error };
        let bytes = bytes_at(input, start, table)?;
        let message = Cursor::new(&bytes).bytes().map_err(wire)?;
        let mut summary = Self::parse_message(message, start).map_err(|e| match e {
            Err(error) => wire(error),
            Ok(other) => other,
        })?;
        summary.sections.sort_by_key(|s| (s.name, s.offset));
        Ok(summary)
    }

    fn parse_message(message: &[u8], limit: u64) -> Result<Summary, Result<ImageError, WireError>> {
        let (mut ondisk, mut layout, mut codec, mut sections) = (None, None, None, Vec::new());
        for field in Cursor::new(message).fields() {
            match field.map_err(Err)? {
                (1, Value::Varint(v)) => ondisk = Some(v),
                (2, Value::Varint(v)) => layout = Some(v as u32 as i32),
                (3, Value::Bytes(b)) => codec = Some(String::from_utf8_lossy(b).into_owned()),
                (4, Value::Bytes(b)) => sections.push(Self::parse_section(b, limit)?),
                _ => {}
            }
        }
        match (ondisk, layout) {
            (Some(ONDISK_VERSION), Some(layout)) => {
                Ok(Summary { layout: LayoutVersion(layout), codec: codec.filter(|c| !c.is_empty()), sections })
            }
            (Some(other), _) => {
                Err(Ok(ImageError::Content { section: "summary", what: format!("Unsupported file version {other}") }))
            }
            _ => Err(Ok(ImageError::UnrecognizedFormat)),
        }
    }

    fn parse_section(message: &[u8], limit: u64) -> Result<Section, Result<ImageError, WireError>> {
        let (mut name, mut length, mut offset) = (&b""[..], 0, 0);
        for field in Cursor::new(message).fields() {
            match field.map_err(Err)? {
                (1, Value::Bytes(b)) => name = b,
                (2, Value::Varint(v)) => length = v,
                (3, Value::Varint(v)) => offset = v,
                _ => {}
            }
        }
        let Some(known) = SectionName::parse(name) else {
            return Err(Ok(ImageError::UnknownSection(String::from_utf8_lossy(name).into_owned())));
        };
        let fits = offset >= MAGIC.len() as u64 && offset.checked_add(length).is_some_and(|end| end <= limit);
        if !fits {
            let what = format!("range {offset} + {length} is outside the file");
            return Err(Ok(ImageError::Content { section: known.text(), what }));
        }
        Ok(Section { name: known, offset, length })
    }

    /// The section of a name, if the file has it.
    pub fn section(&self, name: SectionName) -> Option<Section> {
        self.sections.iter().find(|s| s.name == name).copied()
    }

    /// Table and length as they stand at the end of a file.
    pub fn encode(&self) -> Vec<u8> {
        let mut message = Vec::new();
        message.put_varint_field(1, ONDISK_VERSION);
        message.put_varint_field(2, u64::from(self.layout.0 as u32));
        if let Some(codec) = &self.codec {
            message.put_bytes_field(3, codec.as_bytes());
        }
        for section in &self.sections {
            let mut entry = Vec::new();
            entry.put_bytes_field(1, section.name.text().as_bytes());
            entry.put_varint_field(2, section.length);
            entry.put_varint_field(3, section.offset);
            message.put_bytes_field(4, &entry);
        }
        let mut out = Vec::new();
        out.put_delimited(&message);
        let length = out.len() as u32;
        out.extend_from_slice(&length.to_be_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(sections: Vec<Section>) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(&[0; 40]);
        file.extend(Summary { layout: LayoutVersion::CURRENT, codec: None, sections }.encode());
        file
    }

    #[test]
    fn sections_come_back_in_order_of_loading() {
        let a = Section { name: SectionName::Inode, offset: 8, length: 10 };
        let b = Section { name: SectionName::StringTable, offset: 20, length: 4 };
        let read = Summary::parse(&file(vec![a, b])).expect("parses");
        assert_eq!(read.sections, vec![b, a]);
        assert_eq!(read.layout, LayoutVersion(-67));
    }

    #[test]
    fn a_byte_after_the_end_or_a_range_outside_is_refused() {
        let mut longer = file(vec![]);
        longer.push(0);
        assert!(Summary::parse(&longer).is_err());
        let outside = file(vec![Section { name: SectionName::Inode, offset: 8, length: 1000 }]);
        assert!(matches!(Summary::parse(&outside), Err(ImageError::Content { section: "INODE", .. })));
        assert_eq!(Summary::parse(b"HDFSIMG1"), Err(ImageError::UnrecognizedFormat));
    }

    #[test]
    fn any_cut_is_an_error_and_no_panic() {
        let whole = file(vec![Section { name: SectionName::Inode, offset: 8, length: 10 }]);
        for n in 0..whole.len() {
            assert!(Summary::parse(&whole[..n]).is_err(), "cut at {n}");
        }
    }
}
