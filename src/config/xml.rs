//! Site files: `<configuration><property><name/><value/><final/><source/></property></configuration>` and XInclude, with
//! the liberties of Hadoop's reader: any root element, unknown elements ignored, properties as attributes too.
//!
//! Quirk: empty_value_is_none: an empty `<value></value>` is no value at all (the default stays), one blank is a value.
//! Quirk: final_is_exact: `<final>` must be exactly `true`; `TRUE` or ` true ` is not final.

use super::error::ConfigError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::path::{Path, PathBuf};

/// One property as written, name trimmed, value untouched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// Name.
    pub name: String,
    /// Value; none when it was left out or empty.
    pub value: Option<String>,
    /// Whether later files may not change it.
    pub is_final: bool,
    /// Where it came from before, if the file says so.
    pub source: Option<String>,
}

/// Reads a file with all it includes. `Ok(None)` if there is no such file.
pub fn read_file(path: &Path, resource: &str) -> Result<Option<Vec<Item>>, ConfigError> {
    let mut items = Vec::new();
    Ok(parse_file(path, resource, &mut Vec::new(), &mut items)?.then_some(items))
}

/// Parses a text without a file.
#[cfg(test)]
pub fn parse_text(text: &str) -> Result<Vec<Item>, ConfigError> {
    let mut items = Vec::new();
    Parser::new(text, Path::new("main.xml"), "main.xml", &mut Vec::new(), &mut items).run()?;
    Ok(items)
}

fn parse_file(
    path: &Path,
    resource: &str,
    chain: &mut Vec<PathBuf>,
    items: &mut Vec<Item>,
) -> Result<bool, ConfigError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => decode(bytes).map_err(|line| ConfigError::Xml {
            file: path.display().to_string(),
            line,
            problem: "not UTF-8".into(),
        })?,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(source) => return Err(ConfigError::Read { file: path.to_path_buf(), source }),
    };
    // line ends as the XML standard wants them before anything is parsed
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    chain.push(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()));
    Parser::new(&text, path, resource, chain, items).run()?;
    chain.pop();
    Ok(true)
}

/// The text of a file: UTF-8, or ISO-8859-1 if its first line declares that. Fails with the line that is neither.
fn decode(bytes: Vec<u8>) -> Result<String, usize> {
    String::from_utf8(bytes).or_else(|e| {
        let bytes = e.as_bytes();
        let first = bytes.split(|&b| b == b'>').next().unwrap_or_default().to_ascii_lowercase();
        if first.starts_with(b"<?xml") && first.windows(10).any(|word| word == b"iso-8859-1") {
            return Ok(bytes.iter().map(|&b| char::from(b)).collect());
        }
        Err(1 + bytes[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count())
    })
}

/// The include that is being read, and whether its fallback counts.
#[derive(Default)]
struct Include {
    href: String,
    missing: bool,
    fallback_seen: bool,
    in_fallback: bool,
}

struct Parser<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    path: &'a Path,
    resource: &'a str,
    chain: &'a mut Vec<PathBuf>,
    items: &'a mut Vec<Item>,
    /// Names of the open elements.
    open: Vec<String>,
    includes: Vec<Include>,
    property: Item,
    /// Characters of the element that is being read, if they count.
    characters: Option<String>,
    root_closed: bool,
}

impl<'a> Parser<'a> {
    fn new(
        text: &'a str,
        path: &'a Path,
        resource: &'a str,
        chain: &'a mut Vec<PathBuf>,
        items: &'a mut Vec<Item>,
    ) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Parser {
            text,
            reader: Reader::from_str(text),
            path,
            resource,
            chain,
            items,
            open: Vec::new(),
            includes: Vec::new(),
            property: Item::default(),
            characters: None,
            root_closed: false,
        }
    }

    fn wrong_at(&self, offset: u64, problem: impl Into<String>) -> ConfigError {
        let end = usize::try_from(offset).unwrap_or(usize::MAX).min(self.text.len());
        let line = 1 + self.text.as_bytes()[..end].iter().filter(|&&b| b == b'\n').count();
        ConfigError::Xml { file: self.path.display().to_string(), line, problem: problem.into() }
    }

    fn wrong(&self, problem: impl Into<String>) -> ConfigError {
        self.wrong_at(self.reader.buffer_position(), problem)
    }

    fn run(mut self) -> Result<(), ConfigError> {
        loop {
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(e) => return Err(self.wrong_at(self.reader.error_position(), e.to_string())),
            };
            match event {
                Event::Start(element) => self.start(&element)?,
                Event::Empty(element) => {
                    self.start(&element)?;
                    self.end(element.local_name().as_ref())?;
                }
                Event::End(element) => self.end(element.local_name().as_ref())?,
                Event::Text(text) => self.characters(&text.into_inner())?,
                Event::CData(text) => self.characters(&text.into_inner())?,
                Event::GeneralRef(reference) => {
                    let resolved = match reference.resolve_char_ref() {
                        Ok(Some(c)) => c.to_string(),
                        Ok(None) => match quick_xml::escape::resolve_xml_entity(&reference.xml10_content()) {
                            Some(text) => text.to_string(),
                            None => {
                                let name = reference.xml10_content();
                                return Err(self.wrong(format!("undeclared general entity \"{name}\"")));
                            }
                        },
                        Err(e) => return Err(self.wrong(e.to_string())),
                    };
                    self.characters(&resolved)?;
                }
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
                Event::Eof => return self.finish(),
            }
        }
    }

    fn finish(self) -> Result<(), ConfigError> {
        match self.open.last() {
            Some(name) => Err(self.wrong(format!("the file ends inside element <{name}>"))),
            None if !self.root_closed => Err(self.wrong("the file has no root element")),
            None => Ok(()),
        }
    }

    fn characters(&mut self, text: &str) -> Result<(), ConfigError> {
        if self.open.is_empty() && !text.trim().is_empty() {
            return Err(self.wrong("text outside of the root element"));
        }
        if let Some(characters) = &mut self.characters {
            characters.push_str(text);
        }
        Ok(())
    }

    /// True inside a fallback whose include was found.
    fn skipping(&self) -> bool {
        self.includes.iter().any(|include| include.in_fallback && !include.missing)
    }

    fn start(&mut self, element: &BytesStart<'_>) -> Result<(), ConfigError> {
        if self.root_closed {
            return Err(self.wrong("a second root element"));
        }
        let name: String = element.local_name().as_ref().into();
        let mut attributes = Vec::new();
        for attribute in element.attributes() {
            let attribute = attribute.map_err(|e| self.wrong(e.to_string()))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|e| self.wrong(e.to_string()))?
                .into_owned();
            let name: &str = attribute.key.local_name().into_inner();
            attributes.push((name.to_string(), value));
        }
        match name.as_str() {
            "property" => {
                self.property = Item::default();
                for (name, value) in attributes {
                    match name.as_str() {
                        "name" => self.property.name = value.trim().to_string(),
                        "value" => self.property.value = Some(value),
                        "final" => self.property.is_final = value == "true",
                        "source" => self.property.source = Some(value),
                        _ => {}
                    }
                }
            }
            "name" | "value" | "final" | "source" => self.characters = Some(String::new()),
            "include" => {
                let href = attributes.into_iter().find(|(name, _)| name == "href").map(|(_, value)| value);
                self.include(href)?;
            }
            "fallback" => {
                if let Some(include) = self.includes.last_mut() {
                    include.fallback_seen = true;
                    include.in_fallback = true;
                }
            }
            _ => {}
        }
        self.open.push(name);
        Ok(())
    }

    fn include(&mut self, href: Option<String>) -> Result<(), ConfigError> {
        let mut include = Include::default();
        if let (Some(href), false) = (href, self.skipping()) {
            let target =
                self.path.parent().unwrap_or(Path::new("")).join(href.strip_prefix("file://").unwrap_or(&href));
            if std::fs::canonicalize(&target).is_ok_and(|target| self.chain.contains(&target)) {
                return Err(self.wrong(format!("the file includes itself through '{href}'")));
            }
            include.missing = !parse_file(&target, self.resource, self.chain, self.items)?;
            include.href = href;
        }
        self.includes.push(include);
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), ConfigError> {
        self.open.pop();
        self.root_closed = self.open.is_empty();
        match name {
            "name" | "value" | "final" | "source" => {
                let text = self.characters.take().filter(|text| !text.is_empty());
                match (name, text) {
                    ("name", Some(text)) => self.property.name = text.trim().to_string(),
                    ("value", Some(text)) => self.property.value = Some(text),
                    ("final", text) => self.property.is_final = text.as_deref() == Some("true"),
                    ("source", Some(text)) => self.property.source = Some(text),
                    _ => {}
                }
            }
            "property" => {
                let property = std::mem::take(&mut self.property);
                if !property.name.is_empty() && !self.skipping() {
                    self.items.push(property);
                }
            }
            "fallback" => {
                if let Some(include) = self.includes.last_mut() {
                    include.in_fallback = false;
                }
            }
            "include" => {
                if let Some(include) = self.includes.pop()
                    && include.missing
                    && !include.fallback_seen
                {
                    let file = self.path.display().to_string();
                    return Err(ConfigError::Include { href: include.href, file });
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
