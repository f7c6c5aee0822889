//! An image file as a source of messages.

use crate::tools::failure::Failure;
use hadoop_proto::shape::Shaped;
use hadoop_proto::{Message, decode};
use os::RealDisk;
use os::disk::{Disk, Open};
use std::path::Path;
use std::sync::Arc;
use storage::image::{FileInput, SectionName, SectionReader, StringKind, StringTables, Summary};

/// Bits of a serial number in packed permissions, ACL entries and names of extended attributes.
const SERIAL: u32 = 0x00ff_ffff;

/// An open image.
pub(in crate::tools) struct Image {
    input: FileInput,
    pub(in crate::tools) summary: Summary,
    strings: StringTables,
}

/// Owner, group and mode.
pub(in crate::tools) struct Permission {
    pub(in crate::tools) user: Option<Arc<str>>,
    pub(in crate::tools) group: Option<Arc<str>>,
    pub(in crate::tools) mode: u16,
}

impl Image {
    /// Opens a file and reads its tables of sections and strings.
    pub(in crate::tools) fn open(path: &Path) -> Result<Image, Failure> {
        let input = FileInput::new(RealDisk::default().open(path, Open::Read)?)?;
        let summary = Summary::read(&input)?;
        let mut image = Image { input, summary, strings: StringTables::empty() };
        let mut section = Vec::new();
        if let Some(mut reader) = SectionReader::open(&image.input, &image.summary, SectionName::StringTable) {
            while let Some(message) = reader.next()? {
                hadoop_proto::wire::Sink::put_delimited(&mut section, message);
            }
        }
        if !section.is_empty() {
            image.strings = StringTables::parse(&section, 0)?;
        }
        Ok(image)
    }
    /// The messages of a section; `None` if the image has no such section.
    pub(in crate::tools) fn section(&self, name: SectionName) -> Option<Messages<'_>> {
        Some(Messages { reader: SectionReader::open(&self.input, &self.summary, name)?, name })
    }

    fn string(&self, kind: StringKind, serial: u32) -> Result<Option<Arc<str>>, Failure> {
        Ok(self.strings.get(kind, serial)?.cloned())
    }
    /// Unpacks a permission: user, group, mode in 24, 24 and 16 bits.
    pub(in crate::tools) fn permission(&self, packed: u64) -> Result<Permission, Failure> {
        Ok(Permission {
            user: self.string(StringKind::User, (packed >> 40) as u32 & SERIAL)?,
            group: self.string(StringKind::Group, (packed >> 16) as u32 & SERIAL)?,
            mode: packed as u16,
        })
    }
    /// An ACL entry as text: `default:user:name:rwx`.
    pub(in crate::tools) fn acl_entry(&self, packed: u32) -> Result<String, Failure> {
        let (kind, names) = match packed >> 3 & 3 {
            0 => ("user", Some(StringKind::User)),
            1 => ("group", Some(StringKind::Group)),
            2 => ("mask", None),
            _ => ("other", None),
        };
        let name = match names {
            Some(names) => self.string(names, packed >> 6 & SERIAL)?,
            None => None,
        };
        let scope = if packed >> 5 & 1 == 1 { "default:" } else { "" };
        let symbols = ["---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"];
        Ok(format!("{scope}{kind}:{}:{}", name.as_deref().unwrap_or(""), symbols[(packed & 7) as usize]))
    }
    /// Namespace and name of an extended attribute.
    pub(in crate::tools) fn xattr_name(&self, packed: u32) -> Result<(&'static str, Arc<str>), Failure> {
        let namespaces = ["USER", "TRUSTED", "SECURITY", "SYSTEM", "RAW"];
        let number = packed >> 30 & 3 | (packed >> 5 & 1) << 2;
        let namespace = namespaces.get(number as usize).ok_or_else(|| {
            Failure::content(format!("an extended attribute of a namespace {number}, which nobody knows"))
        })?;
        let name = self.string(StringKind::Xattr, packed >> 6 & SERIAL)?;
        Ok((namespace, name.unwrap_or_else(|| "null".into())))
    }
}

/// The messages of one section.
pub(in crate::tools) struct Messages<'a> {
    reader: SectionReader<'a>,
    name: SectionName,
}

impl Messages<'_> {
    /// The next message; `None` at the end.
    #[allow(clippy::should_implement_trait)] // of a type that the caller names
    pub(in crate::tools) fn next<M: Message + Default + Shaped>(&mut self) -> Result<Option<M>, Failure> {
        let Some(bytes) = self.reader.next()? else { return Ok(None) };
        let broken = |error| Failure::content(format!("section {}: {error}", self.name.text()));
        decode(bytes.to_vec().into()).map(Some).map_err(broken)
    }
    /// A message that must be there.
    pub(in crate::tools) fn expect<M: Message + Default + Shaped>(&mut self) -> Result<M, Failure> {
        self.next()?.ok_or_else(|| Failure::content(format!("section {} ends too early", self.name.text())))
    }
}
