//! Command lines: `name word "a word\twith escapes" option=value`.

use std::collections::BTreeMap;
use std::sync::Arc;

/// One command.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    words: Vec<Vec<u8>>,
    options: BTreeMap<String, String>,
}

/// Takes the next word, unquoted; whether it was quoted.
fn word(rest: &mut &str) -> Result<(Vec<u8>, bool), String> {
    let Some(quoted) = rest.strip_prefix('"') else {
        let (word, more) = rest.split_once(' ').unwrap_or((rest, ""));
        *rest = more;
        return Ok((word.as_bytes().to_vec(), false));
    };
    let mut word = Vec::new();
    let mut chars = quoted.char_indices();
    let hex = |digits: String| u32::from_str_radix(&digits, 16).map_err(|e| e.to_string());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => {
                *rest = quoted[at + 1..].trim_start();
                return Ok((word, true));
            }
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => word.push(b'\n'),
                Some('t') => word.push(b'\t'),
                Some('0') => word.push(0),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).map(|(_, c)| c).collect();
                    word.push(hex(digits)? as u8);
                }
                Some('u') => {
                    let digits: String =
                        chars.by_ref().map(|(_, c)| c).skip_while(|c| *c == '{').take_while(|c| *c != '}').collect();
                    let c = char::from_u32(hex(digits)?).ok_or("no character")?;
                    word.extend(c.to_string().as_bytes());
                }
                Some(c) => word.extend(c.to_string().as_bytes()),
                None => return Err("nothing after the backslash".to_owned()),
            },
            c => word.extend(c.to_string().as_bytes()),
        }
    }
    Err("no closing quote".to_owned())
}

impl Line {
    pub fn parse(line: &str) -> Result<Line, String> {
        let mut rest = line.trim();
        let (name, _) = word(&mut rest)?;
        let name = String::from_utf8(name).map_err(|e| e.to_string())?;
        let mut parsed = Line { name, words: Vec::new(), options: BTreeMap::new() };
        while !rest.is_empty() {
            let (word, quoted) = word(&mut rest)?;
            let text = String::from_utf8_lossy(&word).into_owned();
            let option = text.split_once('=').filter(|(key, _)| {
                !quoted && !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
            });
            match option {
                Some((key, value)) => _ = parsed.options.insert(key.to_owned(), value.to_owned()),
                None if word.is_empty() && !quoted => {}
                None => parsed.words.push(word),
            }
        }
        Ok(parsed)
    }

    /// Word `at`, from 0, as bytes: a path.
    pub fn path(&self, at: usize) -> Vec<u8> {
        self.words.get(at).unwrap_or_else(|| panic!("{self:?}: no word {at}")).clone()
    }

    /// Word `at` as text.
    pub fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(&self.path(at)).into_owned()
    }

    pub fn number<N: std::str::FromStr>(&self, at: usize) -> N {
        let text = self.text(at);
        text.parse().unwrap_or_else(|_| panic!("{self:?}: {text} is no number"))
    }

    /// All words from `at` on.
    pub fn paths(&self, at: usize) -> Vec<Vec<u8>> {
        self.words[at.min(self.words.len())..].to_vec()
    }

    /// Whether one of the words behind the first is this one.
    pub fn has(&self, flag: &str) -> bool {
        self.words.iter().skip(1).any(|word| word == flag.as_bytes())
    }

    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str)
    }

    pub fn option_number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        let text = self.option(key)?;
        Some(text.parse().unwrap_or_else(|_| panic!("{self:?}: {text} is no number")))
    }

    /// Octal mode, or what is usual.
    pub fn mode(&self, usual: u16) -> u16 {
        let octal = |text: &str| u16::from_str_radix(text, 8).unwrap_or_else(|_| panic!("{text} is no octal mode"));
        self.option("mode").map_or(usual, octal)
    }

    /// Lease holder of the call.
    pub fn client(&self) -> Arc<str> {
        self.option("client").unwrap_or("c1").into()
    }
}
