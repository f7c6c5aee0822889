//! Elements of the viewers' XML.

use crate::tools::failure::Failure;
use quick_xml::Reader;
use quick_xml::events::Event;
use std::io::BufRead;
use std::str::FromStr;

/// An element: its text, or the elements in it, in order.
#[derive(Debug, Default)]
pub(super) struct Stanza {
    text: String,
    children: Vec<(String, Stanza)>,
}

/// Elements nested deeper than this are not what a viewer writes.
const DEPTH_MAX: usize = 16;

impl Stanza {
    /// Reads the content of the element that was just begun, up to its end.
    pub(super) fn read(reader: &mut Reader<impl BufRead>, depth: usize) -> Result<Stanza, Failure> {
        if depth > DEPTH_MAX {
            return Err(Failure::content("elements are nested too deep"));
        }
        let (mut stanza, mut text, mut buffer) = (Stanza::default(), String::new(), Vec::new());
        loop {
            buffer.clear();
            match reader.read_event_into(&mut buffer).map_err(broken)? {
                Event::Start(start) => {
                    let name = start.name().as_ref().to_owned();
                    stanza.children.push((name, Stanza::read(reader, depth + 1)?));
                }
                Event::Empty(start) => {
                    let name = start.name().as_ref().to_owned();
                    stanza.children.push((name, Stanza::default()));
                }
                Event::Text(part) => text.push_str(&part.xml10_content()),
                Event::CData(part) => text.push_str(&part.xml10_content()),
                Event::GeneralRef(reference) => {
                    let name = reference.xml10_content().into_owned();
                    let resolved = match reference.resolve_char_ref().map_err(broken)? {
                        Some(c) => Some(c.to_string()),
                        None => quick_xml::escape::resolve_xml_entity(&name).map(str::to_owned),
                    };
                    text.push_str(&resolved.ok_or_else(|| Failure::Content(format!("unknown entity &{name};")))?);
                }
                Event::End(_) => break,
                Event::Eof => {
                    return Err(Failure::content("XML document structures must start and end within the same entity."));
                }
                _ => {}
            }
        }
        if stanza.children.is_empty() {
            stanza.text = plain(&text)?;
        }
        Ok(stanza)
    }

    /// The text of an element without elements.
    pub(super) fn into_text(self) -> String {
        self.text
    }
    /// The first element of a name.
    pub(super) fn child(&self, name: &str) -> Option<&Stanza> {
        self.children.iter().find(|(known, _)| known == name).map(|(_, child)| child)
    }
    /// All elements of a name.
    pub(super) fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s Stanza> {
        self.children.iter().filter(move |(known, _)| known == name).map(|(_, child)| child)
    }
    /// Puts an element at the end.
    pub(super) fn add(&mut self, name: String, child: Stanza) {
        self.children.push((name, child));
    }
    /// The texts of all elements of a name.
    pub(super) fn texts<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'s str> {
        self.all(name).map(|child| child.text.as_str())
    }
    /// The numbers in all elements of a name.
    pub(super) fn numbers<'s, N: FromStr + 's>(
        &'s self,
        name: &'s str,
    ) -> impl Iterator<Item = Result<N, Failure>> + 's {
        self.texts(name).map(number)
    }
    /// The first element of a name, which must be there.
    pub(super) fn expect(&self, name: &str) -> Result<&Stanza, Failure> {
        self.child(name).ok_or_else(|| Failure::Content(format!("no entry found for {name}")))
    }
    /// The text of an element that must be there.
    pub(super) fn text(&self, name: &str) -> Result<&str, Failure> {
        Ok(&self.expect(name)?.text)
    }
    /// The text of an element that may be there.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.as_str())
    }
    /// The number in an element.
    pub(super) fn number<N: FromStr>(&self, name: &str) -> Result<N, Failure> {
        number(self.text(name)?)
    }
    /// The number in an element that may be missing.
    pub(super) fn optional_number<N: FromStr>(&self, name: &str) -> Result<Option<N>, Failure> {
        self.optional(name).map(number).transpose()
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, Failure> {
    text.parse().map_err(|_| Failure::Content(format!("For input string: \"{text}\"")))
}

pub(super) fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Content(error.to_string())
}

/// Text without the marks for what XML cannot hold: `\`, four hex digits, `;`.
fn plain(text: &str) -> Result<String, Failure> {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mark = part.split_once(';').and_then(|(digits, rest)| Some((u32::from_str_radix(digits, 16).ok()?, rest)));
        let (number, rest) =
            mark.ok_or_else(|| Failure::Content(format!("error parsing unmangling sequence in {text}")))?;
        plain.push(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER));
        plain.push_str(rest);
    }
    Ok(plain)
}
