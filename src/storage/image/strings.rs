//! The string tables of an image: one shared table (before layout -65, or with `maskBits` 0), or one for each kind.

use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use std::collections::HashMap;
use std::sync::Arc;
use vocab::limits::STRING_SERIAL_MAX;

/// Which table a number belongs to; the number's bits above [`SERIAL_BITS`] in the expanded form. Table 0 is the shared one of the plain form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Kind {
    /// User names.
    User = 1,
    /// Group names.
    Group = 2,
    /// Names of extended attributes.
    Xattr = 3,
}

/// Bits of a table id that hold the serial number in the expanded form.
const SERIAL_BITS: u32 = 29;
/// `maskBits` of the expanded form.
const MASK_BITS: u32 = 3;
/// Bound on entries believed before they are read, so that a damaged count allocates nothing.
const RESERVE_MAX: usize = 1 << 16;

/// The tables of an image being read. Serial 0 is "no string".
#[derive(Debug)]
pub struct StringTables {
    tables: [HashMap<u32, Arc<str>>; 4],
    expanded: bool,
}

impl StringTables {
    /// Tables without an entry.
    pub fn empty() -> StringTables {
        StringTables { tables: Default::default(), expanded: false }
    }

    /// Reads the whole section.
    ///
    /// # Errors
    /// [`ImageError`] on damaged bytes, a number of mask bits other than 0 or 3, or a table that does not exist.
    pub fn parse(section: &[u8], offset: u64) -> Result<StringTables, ImageError> {
        let wire = |error| ImageError::Wire { section: "STRING_TABLE", offset, error };
        let content = |what: String| ImageError::Content { section: "STRING_TABLE", what };
        let mut cursor = Cursor::new(section);
        let (mut entries, mut mask) = (0, 0);
        for field in Cursor::new(cursor.bytes().map_err(wire)?).fields() {
            match field.map_err(wire)? {
                (1, Value::Varint(v)) => entries = v as u32,
                (2, Value::Varint(v)) => mask = v as u32,
                _ => {}
            }
        }
        if mask != 0 && mask != MASK_BITS {
            return Err(content(format!("unsupported number of mask bits {mask}")));
        }
        let mut tables = StringTables { tables: Default::default(), expanded: mask != 0 };
        tables.tables[0].reserve((entries as usize).min(RESERVE_MAX));
        for _ in 0..entries {
            let (id, text) = Self::parse_entry(cursor.bytes().map_err(wire)?).map_err(wire)?;
            let (table, serial) =
                if tables.expanded { (id >> SERIAL_BITS, id & ((1 << SERIAL_BITS) - 1)) } else { (0, id) };
            let table = tables
                .tables
                .get_mut(table as usize)
                .ok_or_else(|| content(format!("id {id:#x} is of no known table")))?;
            table.insert(serial, String::from_utf8_lossy(text).into());
        }
        Ok(tables)
    }

    fn parse_entry(message: &[u8]) -> Result<(u32, &[u8]), WireError> {
        let (mut id, mut text) = (0, &b""[..]);
        for field in Cursor::new(message).fields() {
            match field? {
                (1, Value::Varint(v)) => id = v as u32,
                (2, Value::Bytes(b)) => text = b,
                _ => {}
            }
        }
        Ok((id, text))
    }

    /// The string of a serial number; `None` for serial 0, unless the table has one.
    ///
    /// Quirk: a_reconstructed_image_has_a_string_zero: Hadoop's image viewer, when it makes an image of XML (ReverseXML), numbers strings from 0.
    ///
    /// # Errors
    /// [`ImageError::Content`] for a number without an entry.
    pub fn get(&self, kind: Kind, serial: u32) -> Result<Option<&Arc<str>>, ImageError> {
        let table = if self.expanded { kind as usize } else { 0 };
        match self.tables[table].get(&serial) {
            Some(text) => Ok(Some(text)),
            None if serial == 0 => Ok(None),
            None => Err(ImageError::Content {
                section: "STRING_TABLE",
                what: format!("no entry for {kind:?} number {serial}"),
            }),
        }
    }
}

/// The tables of an image being written: numbers are handed out while the other sections are encoded.
#[derive(Debug, Default)]
pub struct StringTableBuilder {
    serials: [HashMap<Arc<str>, u32>; 4],
    order: [Vec<Arc<str>>; 4],
    expanded: bool,
}

impl StringTableBuilder {
    /// An empty builder; `expanded` chooses the form with a table for each kind.
    pub fn new(expanded: bool) -> StringTableBuilder {
        StringTableBuilder { expanded, ..StringTableBuilder::default() }
    }

    /// The serial number of a string, new if it has none. The empty string has one as any other: 0 says that there is no string,
    /// which Java does not take for a user, nor we for the name of an attribute.
    ///
    /// # Errors
    /// [`ImageError::Content`] when a table is full (2^24 - 1 strings).
    pub fn serial(&mut self, kind: Kind, text: &Arc<str>) -> Result<u32, ImageError> {
        let table = if self.expanded { kind as usize } else { 0 };
        if let Some(serial) = self.serials[table].get(text) {
            return Ok(*serial);
        }
        let serial = self.order[table].len() as u32 + 1;
        if serial > STRING_SERIAL_MAX {
            return Err(ImageError::Content {
                section: "STRING_TABLE",
                what: format!("more than {STRING_SERIAL_MAX} strings"),
            });
        }
        self.order[table].push(text.clone());
        self.serials[table].insert(text.clone(), serial);
        Ok(serial)
    }

    /// The section's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.put_varint_field(1, self.order.iter().map(|o| o.len() as u64).sum());
        if self.expanded {
            header.put_varint_field(2, u64::from(MASK_BITS));
        }
        let mut out = Vec::new();
        out.put_delimited(&header);
        for (table, order) in self.order.iter().enumerate() {
            for (i, text) in order.iter().enumerate() {
                let id = (i as u32 + 1) | ((table as u32) << SERIAL_BITS);
                let mut entry = Vec::new();
                entry.put_varint_field(1, u64::from(id));
                entry.put_bytes_field(2, text.as_bytes());
                out.put_delimited(&entry);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(expanded: bool) {
        let mut b = StringTableBuilder::new(expanded);
        let alice: Arc<str> = "alice".into();
        let staff: Arc<str> = "staff".into();
        let user = b.serial(Kind::User, &alice).expect("room");
        let group = b.serial(Kind::Group, &staff).expect("room");
        assert_eq!(b.serial(Kind::User, &alice), Ok(user), "one number a string");
        let empty = b.serial(Kind::Xattr, &"".into()).expect("room");
        assert_eq!(user == group, expanded, "own numbers for each kind only in the expanded form");
        let read = StringTables::parse(&b.encode(), 0).expect("parses");
        assert_eq!(read.get(Kind::User, user), Ok(Some(&alice)));
        assert_eq!(read.get(Kind::Group, group), Ok(Some(&staff)));
        assert_eq!(read.get(Kind::Xattr, empty), Ok(Some(&"".into())), "an empty name is a name");
        assert_eq!(read.get(Kind::Group, 0), Ok(None));
        assert!(read.get(Kind::User, 77).is_err());
    }

    #[test]
    fn both_forms_come_back() {
        round(false);
        round(true);
    }

    #[test]
    fn other_mask_bits_are_refused() {
        let mut header = Vec::new();
        header.put_varint_field(1, 0);
        header.put_varint_field(2, 4);
        let mut section = Vec::new();
        section.put_delimited(&header);
        assert!(matches!(StringTables::parse(&section, 0), Err(ImageError::Content { .. })));
    }
}
