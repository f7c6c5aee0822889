//! Typed reading of single keys, with a record of every key that was read: what is recorded is what we honour.

use crate::config::values::{self, Unit};
use crate::config::{ConfigError, Configuration, registry};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::Duration;

/// Reads keys of one configuration. A key that is not set has the registry's default.
pub struct Reader<'a> {
    configuration: &'a Configuration,
    read: RefCell<BTreeSet<&'static str>>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Reader<'a> {
    /// A reader that has read nothing.
    pub fn new(configuration: &'a Configuration) -> Reader<'a> {
        Reader { configuration, read: RefCell::default(), warnings: RefCell::default() }
    }

    /// What is read from.
    pub(super) fn configuration(&self) -> &'a Configuration {
        self.configuration
    }

    /// The keys read so far.
    #[cfg(test)]
    pub fn keys_read(&self) -> BTreeSet<&'static str> {
        self.read.borrow().clone()
    }

    /// Values that were passed over in favour of the default, in Hadoop's words.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    pub(super) fn warn(&self, text: String) {
        self.warnings.borrow_mut().push(text);
    }

    /// All keys that start with `prefix`: what follows it, and the trimmed value. Such keys are not in the registry.
    pub fn with_prefix(&self, prefix: &str) -> Result<Vec<(String, String)>, ConfigError> {
        let mut found = Vec::new();
        for (name, property) in self.configuration.properties() {
            if let Some(rest) = name.strip_prefix(prefix) {
                let value = self.configuration.expand(&property.value)?;
                found.push((rest.to_string(), values::trim(&value).to_string()));
            }
        }
        Ok(found)
    }

    /// The error for a value that its key does not allow.
    pub fn wrong(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        ConfigError::Value { key: key.into(), problem: problem.into() }
    }

    /// The trimmed value, or the default; nothing if there is neither.
    pub fn optional(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        self.read.borrow_mut().insert(key);
        if let Some(value) = self.configuration.trimmed(key)? {
            return Ok(Some(value));
        }
        let default = registry().key(key).and_then(|key| key.default.as_deref());
        default.map(|value| Ok(values::trim(&self.configuration.expand(value)?).to_string())).transpose()
    }

    /// The value as it is: blanks at its ends count.
    pub fn raw(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        self.read.borrow_mut().insert(key);
        self.configuration.get(key)
    }

    /// The trimmed value; nothing also if it is empty.
    pub fn non_empty(&self, key: &'static str) -> Result<Option<String>, ConfigError> {
        Ok(self.optional(key)?.filter(|value| !value.is_empty()))
    }

    /// The trimmed value of a key that has a default.
    pub fn text(&self, key: &'static str) -> Result<String, ConfigError> {
        Ok(self.optional(key)?.unwrap_or_else(|| panic!("the registry has no default for {key}")))
    }

    /// The trimmed value; empty if there is neither value nor default.
    pub(super) fn text_or_empty(&self, key: &'static str) -> Result<String, ConfigError> {
        Ok(self.optional(key)?.unwrap_or_default())
    }

    fn parsed<T>(&self, key: &'static str, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        parse(&self.text(key)?).map_err(|problem| self.wrong(key, problem))
    }

    /// `getInt`.
    pub fn int(&self, key: &'static str) -> Result<i32, ConfigError> {
        self.parsed(key, values::int)
    }

    /// `getInt` of a key that may be without value and default.
    pub fn optional_int(&self, key: &'static str) -> Result<Option<i32>, ConfigError> {
        let value = self.optional(key)?;
        value.map(|text| values::int(&text).map_err(|problem| self.wrong(key, problem))).transpose()
    }

    /// `getInt` of a count, which must be `least` or more.
    pub fn count(&self, key: &'static str, least: u32) -> Result<u32, ConfigError> {
        let value = self.int(key)?;
        let fits = u32::try_from(value).ok().filter(|count| *count >= least);
        fits.ok_or_else(|| self.wrong(key, format!("{value} is less than {least}")))
    }

    /// `getLong`.
    pub fn long(&self, key: &'static str) -> Result<i64, ConfigError> {
        self.parsed(key, values::long)
    }

    /// `getLong` of an amount, which must be `least` or more.
    pub fn amount(&self, key: &'static str, least: u64) -> Result<u64, ConfigError> {
        self.at_least(key, self.long(key)?, least)
    }

    /// `getLongBytes`.
    pub fn long_bytes(&self, key: &'static str) -> Result<i64, ConfigError> {
        self.parsed(key, values::long_bytes)
    }

    /// `getLongBytes`, never negative.
    pub fn bytes(&self, key: &'static str) -> Result<u64, ConfigError> {
        self.at_least(key, self.long_bytes(key)?, 0)
    }

    fn at_least(&self, key: &'static str, value: i64, least: u64) -> Result<u64, ConfigError> {
        let fits = u64::try_from(value).ok().filter(|amount| *amount >= least);
        fits.ok_or_else(|| self.wrong(key, format!("{value} is less than {least}")))
    }

    /// `getTimeDuration`: with unit suffixes; a bare number counts in `unit`, and the result is cut to whole ones.
    pub fn duration(&self, key: &'static str, unit: Unit) -> Result<Duration, ConfigError> {
        let count = self.parsed(key, |text| values::time_duration(text, unit))?;
        unit.duration(count).ok_or_else(|| self.wrong(key, format!("{count} is less than 0")))
    }

    /// `getLong` or `getInt` of a time: a bare number in `unit`, without suffixes.
    pub fn plain_duration(&self, key: &'static str, unit: Unit) -> Result<Duration, ConfigError> {
        let count = self.long(key)?;
        unit.duration(count).ok_or_else(|| self.wrong(key, format!("{count} is less than 0")))
    }

    /// `getFloat`: single precision, so that products with it come out as Hadoop's do.
    pub fn float(&self, key: &'static str) -> Result<f32, ConfigError> {
        self.parsed(key, values::float)
    }

    /// `getDouble`.
    pub fn double(&self, key: &'static str) -> Result<f64, ConfigError> {
        self.parsed(key, values::double)
    }

    /// `getBoolean`: anything but `true` and `false` means the default.
    pub fn boolean(&self, key: &'static str) -> Result<bool, ConfigError> {
        let text = self.text(key)?;
        if let Some(value) = values::boolean(&text) {
            return Ok(value);
        }
        let default = registry().key(key).and_then(|key| values::boolean(key.default.as_deref()?));
        let default = default.unwrap_or_else(|| panic!("the registry has no boolean default for {key}"));
        if !text.is_empty() {
            self.warn(format!("Invalid value for boolean: {text}, choose default value: {default} for {key}"));
        }
        Ok(default)
    }

    /// `getTrimmedStringCollection`; empty if there is neither value nor default.
    pub fn strings(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        Ok(values::trimmed_strings(&self.optional(key)?.unwrap_or_default()))
    }
    /// `getTrimmedStrings`: with empty ones and repetitions.
    pub fn items(&self, key: &'static str) -> Result<Vec<String>, ConfigError> {
        Ok(values::trimmed_items(&self.optional(key)?.unwrap_or_default()))
    }
}
