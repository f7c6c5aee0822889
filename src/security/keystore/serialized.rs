//! Objects as Java serializes them, as far as key stores have them (Java Object Serialization Specification, chapter 6).

use super::Input;
use std::collections::HashMap;
use std::rc::Rc;

/// A value of an object's field, or an object.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Nothing, or something of no interest here.
    Other,
    /// A string.
    Text(String),
    /// An array of bytes.
    Bytes(Vec<u8>),
    /// An object.
    Object {
        /// Its class.
        class: String,
        /// Fields of it and the classes above it.
        fields: HashMap<String, Value>,
        /// What the class wrote besides its fields.
        data: Vec<u8>,
    },
}

impl Value {
    /// A field of an object.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object { fields, .. } => fields.get(name),
            _ => None,
        }
    }
    /// A field that is an array of bytes.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        match self.field(name)? {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// Objects within objects, at most.
const DEPTH_MAX: u32 = 32;
/// Bytes that references may stand for, in all: a few bytes of a file could name a long array over and over.
const COPIED_MAX: usize = 1 << 20;
/// Number of the first thing that can be referred to.
const FIRST_HANDLE: u32 = 0x7E_0000;
const SERIALIZABLE: u8 = 2;
const EXTERNALIZABLE: u8 = 4;
const WRITES_ITSELF: u8 = 1;
const WRITES_BLOCKS: u8 = 8;

/// The object of a stream that begins here; `None` if there is none.
pub fn object(input: &mut Input<'_>) -> Option<Value> {
    if input.u32()? != 0xACED_0005 {
        return None;
    }
    let mut reader = Reader { input, known: Vec::new(), copied: 0 };
    match reader.content(0)? {
        Content::Value(value) => Some(value),
        _ => None,
    }
}

#[derive(Debug)]
struct Class {
    name: String,
    flags: u8,
    fields: Vec<(u8, String)>,
    above: Option<Rc<Class>>,
}

#[derive(Clone, Debug)]
enum Content {
    Value(Value),
    Class(Rc<Class>),
    Block(Vec<u8>),
    EndOfBlocks,
}

struct Reader<'a, 'b> {
    input: &'a mut Input<'b>,
    /// What can be referred to; an object while it is read is of no interest.
    known: Vec<Content>,
    /// Bytes that references have stood for.
    copied: usize,
}

impl Reader<'_, '_> {
    fn content(&mut self, depth: u32) -> Option<Content> {
        if depth > DEPTH_MAX {
            return None;
        }
        Some(match self.input.u8()? {
            0x70 => Content::Value(Value::Other),
            0x71 => {
                let at = self.input.u32()?.checked_sub(FIRST_HANDLE)?;
                let named = self.known.get(at as usize)?;
                self.copied += match named {
                    Content::Value(Value::Text(text)) => text.len(),
                    Content::Value(Value::Bytes(bytes)) => bytes.len(),
                    _ => 0,
                };
                if self.copied > COPIED_MAX {
                    return None;
                }
                named.clone()
            }
            0x72 => Content::Class(self.class(depth)?),
            0x73 => Content::Value(self.object(depth)?),
            0x74 => {
                let length = self.input.u16()?;
                self.string(length.into())?
            }
            0x75 => Content::Value(self.array(depth)?),
            0x77 => {
                let length = self.input.u8()?;
                Content::Block(self.input.bytes(length.into())?.to_vec())
            }
            0x78 => Content::EndOfBlocks,
            0x7A => Content::Block(self.input.block()?.to_vec()),
            0x7C => {
                let _high = self.input.u32().filter(|high| *high == 0)?;
                let length = self.input.u32()?;
                self.string(length as usize)?
            }
            _ => return None,
        })
    }

    fn string(&mut self, length: usize) -> Option<Content> {
        let text = String::from_utf8_lossy(self.input.bytes(length)?).into_owned();
        let text = Content::Value(Value::Text(text));
        self.known.push(text.clone());
        Some(text)
    }

    fn class(&mut self, depth: u32) -> Option<Rc<Class>> {
        let name = self.input.text()?;
        let _version = self.input.bytes(8)?;
        let handle = self.known.len();
        self.known.push(Content::EndOfBlocks);
        let flags = self.input.u8()?;
        let mut fields = Vec::new();
        for _ in 0..self.input.u16()? {
            let kind = self.input.u8()?;
            fields.push((kind, self.input.text()?));
            if matches!(kind, b'[' | b'L') {
                self.content(depth + 1)?;
            }
        }
        while !matches!(self.content(depth + 1)?, Content::EndOfBlocks) {}
        let above = match self.content(depth + 1)? {
            Content::Class(class) => Some(class),
            Content::Value(Value::Other) => None,
            _ => return None,
        };
        let class = Rc::new(Class { name, flags, fields, above });
        self.known[handle] = Content::Class(class.clone());
        Some(class)
    }

    fn class_of_next(&mut self, depth: u32) -> Option<Rc<Class>> {
        match self.content(depth + 1)? {
            Content::Class(class) => Some(class),
            _ => None,
        }
    }

    fn object(&mut self, depth: u32) -> Option<Value> {
        let class = self.class_of_next(depth)?;
        self.known.push(Content::Value(Value::Other));
        let mut lineage = Vec::new();
        let mut at = Some(&class);
        while let Some(class) = at.filter(|_| lineage.len() <= DEPTH_MAX as usize) {
            lineage.push(class.clone());
            at = class.above.as_ref();
        }
        let (mut fields, mut data) = (HashMap::new(), Vec::new());
        for part in lineage.iter().rev() {
            if part.flags & SERIALIZABLE != 0 {
                // the one class of Hadoop that is kept in key stores writes no fields
                if !part.name.ends_with("JavaKeyStoreProvider$KeyMetadata") {
                    self.fields(part, &mut fields, depth)?;
                }
            } else if part.flags & EXTERNALIZABLE == 0 || part.flags & WRITES_BLOCKS == 0 {
                return None;
            }
            if part.flags & WRITES_ITSELF != 0 || part.flags & EXTERNALIZABLE != 0 {
                loop {
                    match self.content(depth + 1)? {
                        Content::EndOfBlocks => break,
                        Content::Block(bytes) => data.extend(bytes),
                        _ => {}
                    }
                }
            }
        }
        Some(Value::Object { class: class.name.clone(), fields, data })
    }

    fn fields(&mut self, class: &Class, fields: &mut HashMap<String, Value>, depth: u32) -> Option<()> {
        for (kind, name) in &class.fields {
            let value = match size(*kind) {
                Some(size) => self.input.bytes(size).map(|_| Value::Other)?,
                None => match self.content(depth + 1)? {
                    Content::Value(value) => value,
                    _ => return None,
                },
            };
            fields.insert(name.clone(), value);
        }
        Some(())
    }

    fn array(&mut self, depth: u32) -> Option<Value> {
        let class = self.class_of_next(depth)?;
        let handle = self.known.len();
        self.known.push(Content::Value(Value::Other));
        let count = self.input.u32()? as usize;
        let kind = *class.name.as_bytes().get(1)?;
        let Some(size) = size(kind) else {
            for _ in 0..count {
                self.content(depth + 1)?;
            }
            return Some(Value::Other);
        };
        let bytes = self.input.bytes(count.checked_mul(size)?)?;
        let value = if kind == b'B' { Value::Bytes(bytes.to_vec()) } else { Value::Other };
        self.known[handle] = Content::Value(value.clone());
        Some(value)
    }
}

/// Bytes of a primitive value of this kind; `None` for an object.
fn size(kind: u8) -> Option<usize> {
    match kind {
        b'B' | b'Z' => Some(1),
        b'C' | b'S' => Some(2),
        b'I' | b'F' => Some(4),
        b'J' | b'D' => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array of objects: one of bytes, and references to it.
    fn references(bytes: usize, count: u32) -> Vec<u8> {
        let class = |name: &str, out: &mut Vec<u8>| {
            out.push(0x72);
            out.extend(u16::try_from(name.len()).expect("short").to_be_bytes());
            out.extend(name.as_bytes());
            out.extend([0; 8]);
            out.extend([SERIALIZABLE, 0, 0, 0x78, 0x70]);
        };
        let mut out = 0xACED_0005_u32.to_be_bytes().to_vec();
        out.push(0x75);
        class("[[B", &mut out);
        out.extend((count + 1).to_be_bytes());
        out.push(0x75);
        class("[B", &mut out);
        out.extend(u32::try_from(bytes).expect("short").to_be_bytes());
        out.resize(out.len() + bytes, 7);
        for _ in 0..count {
            out.push(0x71);
            // after both classes and the outer array
            out.extend((FIRST_HANDLE + 3).to_be_bytes());
        }
        out
    }

    #[test]
    fn references_do_not_make_much_of_little() {
        assert_eq!(object(&mut Input(&references(1_000, 100))), Some(Value::Other));
        assert_eq!(object(&mut Input(&references(1_000, 2_000))), None);
        assert_eq!(object(&mut Input(&references(1 << 19, 2))), Some(Value::Other));
        assert_eq!(object(&mut Input(&references(1 << 19, 3))), None);
    }
}
