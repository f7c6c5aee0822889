//! Command lines in the form of Apache Commons CLI's `PosixParser`, which Hadoop's viewers use.

use std::collections::BTreeMap;

/// An option: its short name (which may have several letters), its long one, and whether a value follows.
pub(super) struct Known {
    pub(super) short: &'static str,
    pub(super) long: Option<&'static str>,
    pub(super) value: bool,
}

impl Known {
    pub(super) const fn flag(short: &'static str, long: Option<&'static str>) -> Known {
        Known { short, long, value: false }
    }
    pub(super) const fn valued(short: &'static str, long: Option<&'static str>) -> Known {
        Known { short, long, value: true }
    }
}

/// What was given, by short name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Given(BTreeMap<&'static str, String>);

impl Given {
    pub(super) fn has(&self, short: &str) -> bool {
        self.0.contains_key(short)
    }
    pub(super) fn value(&self, short: &str) -> Option<&str> {
        self.0.get(short).map(String::as_str)
    }

    /// Reads the words. The first value of an option that is given twice counts.
    ///
    /// # Errors
    /// The text of the parser's exception.
    pub(super) fn parse(known: &'static [Known], words: &[String]) -> Result<Given, String> {
        let mut given = Given::default();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            let Some((option, attached)) = find(known, word)? else { continue };
            let value = match (option.value, attached) {
                (false, _) => String::new(),
                (true, Some(attached)) => attached,
                (true, None) => match words.peek() {
                    Some(next) if !is_option(known, next) => words.next().cloned().unwrap_or_default(),
                    _ => return Err(format!("Missing argument for option: {}", option.short)),
                },
            };
            given.0.entry(option.short).or_insert(value);
        }
        Ok(given)
    }
}

fn is_option(known: &'static [Known], word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && matches!(find(known, word), Ok(Some(_)))
}

/// The option that a word is, with a value that is attached to it; `None` for a word that is no option.
fn find(known: &'static [Known], word: &str) -> Result<Option<(&'static Known, Option<String>)>, String> {
    let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) else { return Ok(None) };
    let long = name.strip_prefix('-');
    let (bare, attached) = match long.unwrap_or(name).split_once('=') {
        Some((bare, value)) => (bare, Some(value.to_owned())),
        None => (long.unwrap_or(name), None),
    };
    let exact = |option: &&Known| option.long == Some(bare) || option.short == bare;
    if let Some(option) = known.iter().find(exact) {
        return Ok(Some((option, attached)));
    }
    let mut prefixed = known.iter().filter(|option| option.long.is_some_and(|long| long.starts_with(bare)));
    if let (Some(option), None) = (prefixed.next(), prefixed.next()) {
        return Ok(Some((option, attached)));
    }
    // The value directly after a letter: `-pxml`.
    let letter = name.get(..1).unwrap_or_default();
    match known.iter().find(|option| option.short == letter && option.value) {
        Some(option) if long.is_none() => Ok(Some((option, Some(name[1..].to_owned())))),
        _ => Err(format!("Unrecognized option: {word}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static KNOWN: [Known; 3] =
        [Known::valued("p", Some("processor")), Known::valued("maxSize", None), Known::flag("v", Some("verbose"))];

    fn parse(words: &[&str]) -> Result<Given, String> {
        Given::parse(&KNOWN, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn every_form_of_an_option_is_read() {
        for words in [&["-p", "xml"][..], &["--processor", "xml"], &["--processor=xml"], &["-pxml"], &["--proc", "xml"]]
        {
            assert_eq!(parse(words).expect("parses").value("p"), Some("xml"), "{words:?}");
        }
        let given = parse(&["-v", "-maxSize", "-5", "rest"]).expect("parses");
        assert!(given.has("v"));
        assert_eq!(given.value("maxSize"), Some("-5"));
    }

    #[test]
    fn complaints_are_the_parsers() {
        assert_eq!(parse(&["-bogus"]), Err("Unrecognized option: -bogus".to_owned()));
        assert_eq!(parse(&["-p", "-v"]), Err("Missing argument for option: p".to_owned()));
    }
}
