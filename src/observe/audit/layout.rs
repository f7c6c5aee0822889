//! Patterns of log lines in log4j's words (`PatternLayout`), as far as a line of the audit log has parts.

use super::Level;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::io::Write as _;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// `%d`, with a `strftime` pattern for all but the milliseconds, and what stands before those.
    Time(String, Option<char>),
    Level,
    Logger(String),
    Message,
    Thread,
}

/// A piece and the width it is padded to: to the left if negative.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part(Piece, isize);

/// How a line is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    parts: Vec<Part>,
    zone: TimeZone,
}

/// The pattern of Hadoop's own audit appender.
pub(super) const DEFAULT: &str = "%d{ISO8601} %p %c{2}: %m%n";
const SECONDS: &str = "%Y-%m-%d %H:%M:%S";

impl Layout {
    /// Reads a pattern. `logger` is the full name of the logger. Parts that are not known are dropped, as nothing is known of them here (`%L`).
    pub fn parse(pattern: &str, logger: &str, zone: TimeZone) -> Layout {
        let (mut parts, mut literal) = (Vec::new(), String::new());
        let mut rest = pattern.chars().peekable();
        while let Some(c) = rest.next() {
            if c != '%' {
                literal.push(c);
                continue;
            }
            let mut width = String::new();
            while let Some(c) = rest.next_if(|c| c.is_ascii_digit() || *c == '-' || *c == '.') {
                width.push(c);
            }
            let Some(letter) = rest.next() else { break };
            let mut argument = String::new();
            if rest.next_if_eq(&'{').is_some() {
                argument = rest.by_ref().take_while(|c| *c != '}').collect();
            }
            let piece = match letter {
                '%' => {
                    literal.push('%');
                    continue;
                }
                'n' => {
                    literal.push('\n');
                    continue;
                }
                'd' => time(&argument),
                'p' => Piece::Level,
                'c' | 'C' => Piece::Logger(last_parts(logger, argument.parse().ok())),
                'm' => Piece::Message,
                't' => Piece::Thread,
                _ => continue,
            };
            if !literal.is_empty() {
                parts.push(Part(Piece::Literal(std::mem::take(&mut literal)), 0));
            }
            let width = width.split('.').next().unwrap_or("").parse().unwrap_or(0);
            parts.push(Part(piece, width));
        }
        if !literal.is_empty() {
            parts.push(Part(Piece::Literal(literal), 0));
        }
        Layout { parts, zone }
    }

    /// Appends a line. `second` remembers the text of the last second written.
    pub(super) fn write(&self, out: &mut Vec<u8>, time_ms: i64, level: Level, message: &[u8], second: &mut Second) {
        for Part(piece, width) in &self.parts {
            let from = out.len();
            match piece {
                Piece::Literal(text) | Piece::Logger(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Level => out.extend_from_slice(level.name().as_bytes()),
                Piece::Message => out.extend_from_slice(message),
                Piece::Thread => out.extend_from_slice(b"main"),
                Piece::Time(pattern, millis) => {
                    out.extend_from_slice(second.text(time_ms, pattern, &self.zone).as_bytes());
                    if let Some(before) = millis {
                        write!(out, "{before}{:03}", time_ms.rem_euclid(1_000)).expect("writing to memory");
                    }
                }
            }
            let missing = width.unsigned_abs().saturating_sub(out.len() - from);
            let at = if *width > 0 { from } else { out.len() };
            if missing > 0 {
                out.splice(at..at, std::iter::repeat_n(b' ', missing));
            }
        }
    }
}

/// The text of the last second: thousands of lines share it.
#[derive(Default)]
pub(super) struct Second {
    second: i64,
    text: String,
}

impl Second {
    fn text(&mut self, time_ms: i64, pattern: &str, zone: &TimeZone) -> &str {
        let second = time_ms.div_euclid(1_000);
        if self.text.is_empty() || self.second != second {
            let time = Timestamp::from_second(second).unwrap_or_default();
            self.text = time.to_zoned(zone.clone()).strftime(pattern).to_string();
            self.second = second;
        }
        &self.text
    }
}

/// A date format: log4j's names, or a pattern of Java's `SimpleDateFormat` with milliseconds at most at its end.
fn time(format: &str) -> Piece {
    match format {
        "" | "ISO8601" => Piece::Time(SECONDS.to_owned(), Some(',')),
        "ABSOLUTE" => Piece::Time("%H:%M:%S".to_owned(), Some(',')),
        "DATE" => Piece::Time("%d %b %Y %H:%M:%S".to_owned(), Some(',')),
        _ => {
            let (text, millis) = match format.strip_suffix("SSS") {
                Some(text) => {
                    (&text[..text.len() - text.chars().last().map_or(0, char::len_utf8)], text.chars().last())
                }
                None => (format, None),
            };
            let known = [
                ("yyyy", "%Y"),
                ("MM", "%m"),
                ("dd", "%d"),
                ("HH", "%H"),
                ("mm", "%M"),
                ("ss", "%S"),
                ("yy", "%y"),
                ("'T'", "T"),
                ("Z", "%z"),
            ];
            Piece::Time(known.iter().fold(text.to_owned(), |text, (java, ours)| text.replace(java, ours)), millis)
        }
    }
}

/// The last `count` parts of a dotted name.
fn last_parts(name: &str, count: Option<usize>) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let from = count.filter(|count| *count > 0).map_or(0, |count| parts.len().saturating_sub(count));
    parts[from..].join(".")
}
