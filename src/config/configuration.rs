//! The merged configuration: later resources win unless a key is final, old names lead to new ones, values refer to others.
//!
//! Quirk: core_site_loses_to_hdfs_default: resources come in Hadoop's order (core-default, core-site, hdfs-default, hdfs-site), so a key of HDFS that is set in
//! core-site.xml is overwritten by its own default unless it is final.
//! Quirk: expansion: an unknown variable ends the expansion, what stands behind it stays as written.

use super::error::ConfigError;
use super::registry::{Origin, registry};
use super::xml::Item;
use super::{Environment, values};
use std::collections::{BTreeMap, BTreeSet};

/// How often a value is looked through for the next `${}`.
const SUBSTITUTIONS: usize = 20;

/// One value and where it came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Property {
    /// As written: neither trimmed nor expanded.
    pub value: String,
    /// Resources it came through, the last one last; empty for the echo of an old name.
    pub sources: Vec<String>,
}

/// The configuration of this process.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    properties: BTreeMap<String, Property>,
    finals: BTreeSet<String>,
    /// Keys set by the command line or by ourselves: no file changes them.
    settled: BTreeSet<String>,
    environment: Environment,
    notices: Vec<String>,
}

impl Configuration {
    /// Nothing but what values may refer to.
    pub fn empty(environment: Environment) -> Configuration {
        Configuration { environment, ..Configuration::default() }
    }

    /// Hadoop's defaults alone.
    #[cfg(test)]
    pub fn with_defaults(environment: Environment) -> Configuration {
        let mut configuration = Configuration::empty(environment);
        configuration.add_defaults(Origin::Core);
        configuration.add_defaults(Origin::Hdfs);
        configuration
    }

    /// Adds one of the default files.
    pub fn add_defaults(&mut self, origin: Origin) {
        let items = registry().keys().filter(|key| key.origin == origin).filter_map(|key| {
            let value = key.default.as_deref()?.to_string();
            Some(Item { name: key.name.to_string(), value: Some(value), ..Item::default() })
        });
        self.add(items.collect(), origin.resource());
    }

    /// Adds what a file says. `resource` is its name in `/conf` and in messages.
    pub fn add(&mut self, items: Vec<Item>, resource: &str) {
        for item in items {
            let name = match registry().replacement(&item.name) {
                Some(new) => {
                    self.note(format!("{} in {resource} is deprecated. Instead, use {new}", item.name));
                    new.to_string()
                }
                None => item.name,
            };
            if let Some(value) = item.value {
                if self.finals.contains(&name) {
                    if self.properties.get(&name).is_some_and(|property| property.value != value) {
                        self.note(format!("{resource}:an attempt to override final parameter: {name};  Ignoring."));
                    }
                } else if !self.settled.contains(&name) {
                    let sources = item.source.into_iter().chain([resource.to_string()]).collect();
                    self.properties.insert(name.clone(), Property { value, sources });
                }
            }
            if item.is_final {
                self.finals.insert(name);
            }
        }
    }

    /// Sets a key for good, also a final one. `source` is what `/conf` shows ("programmatically", "from command line").
    pub fn set(&mut self, name: &str, value: &str, source: &str) {
        let name = values::trim(name);
        let (name, source) = match registry().replacement(name) {
            Some(new) => {
                self.echo(name, value);
                (new, format!("because {name} is deprecated"))
            }
            None => {
                for old in
                    registry().old_names(name).filter(|old| self.properties.contains_key(*old)).collect::<Vec<_>>()
                {
                    self.echo(old, value);
                }
                (name, source.to_string())
            }
        };
        self.properties.insert(name.to_string(), Property { value: value.to_string(), sources: vec![source] });
        self.settled.insert(name.to_string());
    }

    /// Keeps the old name that was set beside the new one, as Hadoop shows it.
    fn echo(&mut self, old: &str, value: &str) {
        self.properties.insert(old.to_string(), Property { value: value.to_string(), sources: Vec::new() });
    }

    /// Says something to the administrator; the caller logs it once logging works.
    pub fn note(&mut self, text: String) {
        self.notices.push(text);
    }

    /// What there is to say about the files read so far (final keys, old names, missing files).
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// All properties, by name.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Property)> {
        self.properties.iter().map(|(name, property)| (name.as_str(), property))
    }

    /// Takes a key away, as if neither a file nor a default named it.
    pub fn unset(&mut self, name: &str) {
        self.properties.remove(name);
        self.settled.remove(name);
    }

    /// Names of all keys that have a value.
    pub fn names(&self) -> Vec<String> {
        self.properties().map(|(name, _)| name.to_owned()).collect()
    }

    /// Whether files may not change the key any more.
    pub fn is_final(&self, name: &str) -> bool {
        self.finals.contains(name)
    }

    /// The value as written. Old names lead to the new one.
    pub fn raw(&self, name: &str) -> Option<&str> {
        let name = values::trim(name);
        self.properties.get(registry().replacement(name).unwrap_or(name)).map(|property| property.value.as_str())
    }

    /// The value with `${}` replaced.
    pub fn get(&self, name: &str) -> Result<Option<String>, ConfigError> {
        self.raw(name).map(|value| self.expand(value)).transpose()
    }

    /// The value with `${}` replaced and without blanks around it.
    pub fn trimmed(&self, name: &str) -> Result<Option<String>, ConfigError> {
        Ok(self.get(name)?.map(|value| values::trim(&value).to_string()))
    }

    /// Replaces `${name}`, the first innermost one first, at most 20 times.
    pub fn expand(&self, expression: &str) -> Result<String, ConfigError> {
        let mut text = expression.to_string();
        for _ in 0..SUBSTITUTIONS {
            let Some((start, end)) = find_variable(&text) else { return Ok(text) };
            let Some(value) = self.variable(&text[start + 2..end]) else { return Ok(text) };
            if value.contains(&text[start..=end]) {
                return Ok(expression.to_string()); // it names itself
            }
            text.replace_range(start..=end, &value);
        }
        Err(ConfigError::Substitution { depth: SUBSTITUTIONS, expression: expression.to_string() })
    }

    fn variable(&self, name: &str) -> Option<String> {
        let found = match name.strip_prefix("env.") {
            Some(name) if !name.is_empty() => self.environment_variable(name),
            _ => self.environment.properties.get(name).cloned(),
        };
        found.or_else(|| self.raw(name).map(str::to_string))
    }

    /// `NAME`, `NAME-when unset` or `NAME:-when unset or empty`.
    fn environment_variable(&self, name: &str) -> Option<String> {
        let of = |name: &str| self.environment.variables.get(name).cloned();
        let colon = name.find(":-");
        match name.find('-') {
            Some(dash) if colon.is_some_and(|colon| colon + 1 == dash) => {
                let known = of(&name[..dash - 1]).filter(|value| !value.is_empty());
                Some(known.unwrap_or_else(|| name[dash + 1..].to_string()))
            }
            Some(dash) => Some(of(&name[..dash]).unwrap_or_else(|| name[dash + 1..].to_string())),
            None => of(name),
        }
    }
}

/// Where the first `${name}` starts and its bracket ends; a name has neither `$`, `}` nor a blank.
fn find_variable(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(start) = text[from..].find("${").map(|at| from + at) {
        let name = &text[start + 2..];
        match name.find(['}', '$', ' ']) {
            Some(end) if end > 0 && name[end..].starts_with('}') => return Some((start, start + 2 + end)),
            _ => from = start + 2,
        }
    }
    None
}

#[cfg(test)]
mod tests;
