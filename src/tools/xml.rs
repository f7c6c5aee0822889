//! Text in XML as Hadoop's image viewer writes it.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

/// Writes elements that hold a value and nothing else.
pub(super) struct Elements<W> {
    out: W,
    scratch: String,
}

impl<W: Write> Elements<W> {
    pub(super) fn new(out: W) -> Elements<W> {
        Elements { out, scratch: String::new() }
    }
    /// Text as it is: markup and line ends.
    pub(super) fn raw(&mut self, text: &str) -> io::Result<&mut Self> {
        self.out.write_all(text.as_bytes())?;
        Ok(self)
    }
    /// An element with a value.
    pub(super) fn value(&mut self, name: &str, value: impl Display) -> io::Result<&mut Self> {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        _ = write!(text, "{value}");
        self.text(name, &text)?;
        self.scratch = text;
        Ok(self)
    }
    /// An element with text.
    pub(super) fn text(&mut self, name: &str, text: &str) -> io::Result<&mut Self> {
        write!(self.out, "<{name}>")?;
        escape(text, &mut self.out)?;
        write!(self.out, "</{name}>")?;
        Ok(self)
    }
    /// An element with bytes that are meant to be UTF-8.
    pub(super) fn bytes(&mut self, name: &str, bytes: &[u8]) -> io::Result<&mut Self> {
        self.text(name, &String::from_utf8_lossy(bytes))
    }
    /// An empty element, if it is so.
    pub(super) fn flag(&mut self, name: &str, set: bool) -> io::Result<&mut Self> {
        if set { self.raw(&format!("<{name}/>")) } else { Ok(self) }
    }
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Elements<Vec<u8>> {
    /// What was written since the last time.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

/// Entities, and for what XML cannot hold (and the backslash) `\`, four hex digits and `;`.
fn escape(text: &str, out: &mut impl Write) -> io::Result<()> {
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let entity = match c {
            '&' => "&amp;",
            '"' => "&quot;",
            '\'' => "&apos;",
            '<' => "&lt;",
            '>' => "&gt;",
            '\\' | '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => "",
            _ => continue,
        };
        out.write_all(&text.as_bytes()[plain..at])?;
        plain = at + c.len_utf8();
        match entity {
            "" => write!(out, "\\{:04x};", u32::from(c))?,
            entity => out.write_all(entity.as_bytes())?,
        }
    }
    out.write_all(&text.as_bytes()[plain..])
}
