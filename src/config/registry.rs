//! Every key of Hadoop 3.5.0, its default, whether a NameNode reads it and whether we honour it; and the old names.
//! The data stands in two tables beside this file.

use super::{Configuration, values};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Where a default comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// `core-default.xml`
    Core,
    /// `hdfs-default.xml`
    Hdfs,
    /// `hdfs-rbf-default.xml`; a NameNode does not load it.
    Router,
    /// No default file names it; only Hadoop's code does, or ours (`ironroot.`).
    Code,
}

impl Origin {
    /// The resource name as `/conf` shows it.
    pub const fn resource(self) -> &'static str {
        match self {
            Origin::Core => "core-default.xml",
            Origin::Hdfs => "hdfs-default.xml",
            Origin::Router => "hdfs-rbf-default.xml",
            Origin::Code => "code",
        }
    }
}

/// One key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// Name, for example `dfs.replication`.
    pub name: &'static str,
    /// Where its default stands.
    pub origin: Origin,
    /// Default as written there, not expanded; none if there is none.
    pub default: Option<Cow<'static, str>>,
    /// Whether a Java NameNode reads it.
    pub namenode: bool,
    /// Whether this NameNode reads it.
    pub honoured: bool,
}

/// All keys and old names.
pub struct Registry {
    keys: BTreeMap<&'static str, Key>,
    replacements: BTreeMap<&'static str, &'static str>,
}

/// The one registry.
pub fn registry() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
        keys: rows(include_str!("keys.tsv")).map(key).map(|key| (key.name, key)).collect(),
        replacements: rows(include_str!("deprecated.tsv"))
            .map(|row| row.split_once('\t').expect("old and new name"))
            .collect(),
    });
    &REGISTRY
}

fn rows(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn key(row: &'static str) -> Key {
    let fields: Vec<&'static str> = row.split('\t').collect();
    let [name, origin, default, namenode, honoured] = fields[..] else { panic!("keys.tsv: five columns in {row:?}") };
    let origin = [Origin::Core, Origin::Hdfs, Origin::Router, Origin::Code]
        .into_iter()
        .find(|known| known.resource() == origin)
        .unwrap_or_else(|| panic!("keys.tsv: origin {origin:?}"));
    let default = (!default.is_empty()).then(|| unescape(default));
    Key { name, origin, default, namenode: namenode == "namenode", honoured: honoured == "honoured" }
}

fn unescape(text: &'static str) -> Cow<'static, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        plain.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(c) => c,
                None => '\\',
            },
            c => c,
        });
    }
    Cow::Owned(plain)
}

impl Registry {
    /// All keys, by name.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values()
    }

    /// A key by its name. Names with the port of a server in them (`ipc.8020.callqueue.impl`) are found as well.
    pub fn key(&self, name: &str) -> Option<&Key> {
        let by_port = || {
            let (port, rest) = name.strip_prefix("ipc.")?.split_once('.')?;
            port.parse::<u16>().ok()?;
            self.keys.get(format!("ipc.[port_number].{rest}").as_str())
        };
        self.keys.get(name).or_else(by_port)
    }

    /// The name that replaced a deprecated one.
    pub fn replacement(&self, old: &str) -> Option<&'static str> {
        self.replacements.get(old).copied()
    }

    /// The deprecated names of a key.
    pub fn old_names(&self, new: &str) -> impl Iterator<Item = &'static str> {
        self.replacements.iter().filter(move |(_, known)| **known == new).map(|(old, _)| *old)
    }
}

/// The keys that an administrator has set to something else than the default, that a Java NameNode would read, and that
/// we do not honour yet: to be named once at start. Keys of other components and unknown ones are left alone.
pub fn not_honoured(configuration: &Configuration) -> Vec<&'static Key> {
    let not_the_administrators = |source: &String| {
        [Origin::Core.resource(), Origin::Hdfs.resource(), "programmatically"].contains(&source.as_str())
    };
    configuration
        .properties()
        .filter(|(_, property)| !property.sources.last().is_some_and(not_the_administrators))
        .filter_map(|(name, property)| Some((registry().key(name)?, property)))
        .filter(|(key, _)| key.namenode && !key.honoured)
        .filter(|(key, property)| key.default.as_deref().map(values::trim) != Some(values::trim(&property.value)))
        .map(|(key, _)| key)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    #[test]
    fn the_tables_are_whole() {
        let of = |origin| registry().keys().filter(|key| key.origin == origin).count();
        assert_eq!([of(Origin::Core), of(Origin::Hdfs), of(Origin::Router)], [487, 646, 98]);
        assert_eq!(registry().key("dfs.replication").unwrap().default.as_deref(), Some("3"));
        let sensitive = registry().key("hadoop.security.sensitive-config-keys").unwrap().default.clone().unwrap();
        assert!(sensitive.starts_with("\n      secret$\n      password$\n"), "{sensitive:?}");
        assert_eq!(registry().key("fs.s3a.select.input.csv.record.delimiter").unwrap().default.as_deref(), Some("\\n"));
        assert_eq!(registry().key("dfs.namenode.rpc-address").unwrap().default, None);
    }

    #[test]
    fn old_names_both_ways() {
        assert_eq!(registry().replacement("dfs.block.size"), Some("dfs.blocksize"));
        assert_eq!(registry().replacement("dfs.blocksize"), None);
        assert_eq!(registry().old_names("fs.defaultFS").collect::<Vec<_>>(), ["fs.default.name"]);
        for (old, new) in &registry().replacements {
            assert!(registry().replacement(new).is_none(), "{old} leads to another old name");
        }
    }

    #[test]
    fn keys_with_a_port() {
        assert_eq!(registry().key("ipc.8020.callqueue.impl").unwrap().name, "ipc.[port_number].callqueue.impl");
        assert_eq!(registry().key("ipc.x.callqueue.impl"), None);
    }

    #[test]
    fn only_changed_keys_of_the_namenode_are_named() {
        let mut configuration = Configuration::with_defaults(Environment::default());
        for (key, value) in [
            ("dfs.namenode.gc.time.monitor.enable", "false"), // the NameNode's, changed, not honoured
            ("dfs.namenode.fslock.fair", " true "),           // the same, but as the default
            ("dfs.replication", "2"),                         // honoured
            ("dfs.datanode.handler.count", "20"),             // a DataNode's
            ("yarn.resourcemanager.hostname", "rm"),          // unknown
        ] {
            configuration.set(key, value, "hdfs-site.xml");
        }
        configuration.set("dfs.namenode.startup", "UPGRADE", "programmatically"); // set by ourselves
        let names: Vec<_> = not_honoured(&configuration).iter().map(|key| key.name).collect();
        assert_eq!(names, ["dfs.namenode.gc.time.monitor.enable"]);
    }
}
