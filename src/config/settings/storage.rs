//! Directories, edit log, checkpoints and images.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::address::parse_uri;
use crate::config::values::Unit;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use storage::image::{Codec, SaveOptions, SubSections};

/// One storage place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A directory of this host; `uri` is how it is shown.
    Directory {
        /// `file:` URI.
        uri: String,
        /// Absolute path.
        path: PathBuf,
    },
    /// Something else, for example a quorum of JournalNodes.
    Remote {
        /// As written.
        uri: String,
        /// For example `qjournal`.
        scheme: String,
    },
}

impl Location {
    /// The URI as shown in messages.
    pub fn uri(&self) -> &str {
        match self {
            Location::Directory { uri, .. } | Location::Remote { uri, .. } => uri,
        }
    }

    /// A URI, or a path of this host (relative to `base`).
    /// Quirk: storage_locations: what is no valid URI is taken for a path, so `file:///a b` becomes a strange directory
    /// below the current one, as in Hadoop.
    fn parse(text: &str, base: &Path) -> Location {
        match parse_uri(text) {
            Ok(uri) => match uri.scheme {
                None => Location::of_path(text, base),
                Some("file") => Location::Directory { uri: text.to_string(), path: decode(uri.path).into() },
                Some(scheme) => Location::Remote { uri: text.to_string(), scheme: scheme.to_string() },
            },
            Err(_) => Location::of_path(text, base),
        }
    }

    fn of_path(text: &str, base: &Path) -> Location {
        let mut path = PathBuf::new();
        for component in base.join(text).components() {
            match component {
                Component::ParentDir => {
                    path.pop();
                }
                Component::CurDir => {}
                other => path.push(other),
            }
        }
        Location::Directory { uri: format!("file:{}", encode(&path.display().to_string())), path }
    }
}

/// `%41` to `A`; what is no such escape stays.
fn decode(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| path.get(at + 1..at + 3)).flatten();
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Escapes what a URI's path cannot hold.
fn encode(path: &str) -> String {
    let escape = |c: char| match c {
        '\0'..=' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' | '[' | ']' | '#' | '?' | '%' => {
            format!("%{:02X}", u32::from(c))
        }
        c => c.to_string(),
    };
    path.chars().map(escape).collect()
}

/// Where image and log are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageDirectories {
    /// Directories for images (`dfs.namenode.name.dir`).
    pub name: Vec<Location>,
    /// Places for the edit log, shared ones first (`dfs.namenode.shared.edits.dir`, then `dfs.namenode.edits.dir`).
    pub edits: Vec<Location>,
    /// Those of `edits` that are shared with other NameNodes.
    pub shared_edits: Vec<Location>,
    /// Those of `edits` without which the NameNode must not go on; shared ones are always required.
    pub required_edits: Vec<Location>,
    /// How many of the others must work (`dfs.namenode.edits.dir.minimum`).
    pub minimum_edits: u32,
    /// Mode of the directories (`dfs.namenode.storage.dir.perm`).
    pub permission: u16,
    /// Whether failed directories are tried again at a checkpoint (`dfs.namenode.name.dir.restore`).
    pub restore_failed: bool,
    /// Bytes that must be free on every checked volume (`dfs.namenode.resource.du.reserved`).
    pub reserved_bytes: u64,
    /// How often free space is looked at (`dfs.namenode.resource.check.interval`).
    pub resource_check_interval: Duration,
    /// More volumes to check (`dfs.namenode.resource.checked.volumes`).
    pub checked_volumes: Vec<Location>,
    /// How many volumes that are not required must have space (`dfs.namenode.resource.checked.volumes.minimum`).
    pub checked_volumes_minimum: u32,
}

/// What relative paths are relative to.
fn base() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// The places of a key, each once.
fn locations(reader: &Reader<'_>, key: &'static str) -> Result<Vec<Location>, ConfigError> {
    let (base, texts) = (base(), reader.strings(key)?);
    let mut found: Vec<Location> = Vec::new();
    for location in texts.iter().map(|text| Location::parse(text, &base)) {
        if !found.contains(&location) {
            found.push(location);
        }
    }
    Ok(found)
}

const EDITS: &str = "dfs.namenode.edits.dir";
const REQUIRED: &str = "dfs.namenode.edits.dir.required";
const SHARED: &str = "dfs.namenode.shared.edits.dir";

impl StorageDirectories {
    pub(super) fn read(reader: &Reader<'_>) -> Result<StorageDirectories, ConfigError> {
        let base = base();
        let locations = |key| locations(reader, key);
        let mut name = locations("dfs.namenode.name.dir")?;
        if name.is_empty() {
            name.push(Location::parse("file:///tmp/hadoop/dfs/name", &base));
        }
        let shared_edits = locations(SHARED)?;
        if shared_edits.len() > 1 {
            return Err(ConfigError::Contradiction("Multiple shared edits directories are not yet supported".into()));
        }
        let mut own_edits = locations(EDITS)?;
        if own_edits.is_empty() {
            own_edits.clone_from(&name);
        }
        let mut edits = shared_edits.clone();
        for location in own_edits {
            if edits.contains(&location) {
                reader.warn(format!(
                    "Edits URI {} listed multiple times in {SHARED} and {EDITS}. Ignoring duplicates.",
                    location.uri()
                ));
            } else {
                edits.push(location);
            }
        }
        let required = locations(REQUIRED)?;
        check_required(&required, &edits, &shared_edits)?;
        let mut required_edits = shared_edits.clone();
        required_edits.extend(required.into_iter().filter(|location| !shared_edits.contains(location)));
        warn_of_single_copies(reader, &name, &edits);
        Ok(StorageDirectories {
            name,
            edits,
            shared_edits,
            required_edits,
            minimum_edits: reader.count("dfs.namenode.edits.dir.minimum", 0)?,
            permission: permission(reader)?,
            restore_failed: reader.boolean("dfs.namenode.name.dir.restore")?,
            reserved_bytes: reader.bytes("dfs.namenode.resource.du.reserved")?,
            resource_check_interval: reader
                .plain_duration("dfs.namenode.resource.check.interval", Unit::Milliseconds)?,
            checked_volumes: locations("dfs.namenode.resource.checked.volumes")?,
            checked_volumes_minimum: reader.count("dfs.namenode.resource.checked.volumes.minimum", 0)?,
        })
    }
}

fn check_required(required: &[Location], edits: &[Location], shared: &[Location]) -> Result<(), ConfigError> {
    let list =
        |locations: &[Location]| format!("[{}]", locations.iter().map(Location::uri).collect::<Vec<_>>().join(", "));
    match required.iter().find(|location| !edits.contains(location)) {
        Some(missing) => Err(ConfigError::Contradiction(format!(
            "Required edits directory {} not found: {EDITS}={}; {REQUIRED}={}; {SHARED}={}",
            missing.uri(),
            list(edits),
            list(required),
            list(shared)
        ))),
        None => Ok(()),
    }
}

fn warn_of_single_copies(reader: &Reader<'_>, name: &[Location], edits: &[Location]) {
    for (kind, key, count) in [("image", "dfs.namenode.name.dir", name.len()), ("namespace edits", EDITS, edits.len())]
    {
        if count == 1 {
            reader.warn(format!(
                "only one {kind} storage directory ({key}) is configured: its loss loses the file system"
            ));
        }
    }
}

/// An octal mode, also with a leading zero; `rwx` forms are not taken.
fn permission(reader: &Reader<'_>) -> Result<u16, ConfigError> {
    const KEY: &str = "dfs.namenode.storage.dir.perm";
    let text = reader.text(KEY)?;
    let mode = u16::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o1777);
    mode.ok_or_else(|| reader.wrong(KEY, format!("{text} is no octal mode")))
}

/// Rules for `-format`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Whether formatting is possible at all (`dfs.namenode.support.allow.format`).
    pub allowed: bool,
    /// Whether a formatted directory is never formatted again (`dfs.reformat.disabled`).
    pub again_disabled: bool,
}

impl Format {
    /// What to say where formatting is not allowed.
    pub fn not_allowed(&self) -> String {
        const KEY: &str = "dfs.namenode.support.allow.format";
        format!(
            "The option {KEY} is set to false for this filesystem, so it cannot be formatted. You will need to set {KEY} \
             parameter to true in order to format this filesystem"
        )
    }

    pub(super) fn read(reader: &Reader<'_>) -> Result<Format, ConfigError> {
        Ok(Format {
            allowed: reader.boolean("dfs.namenode.support.allow.format")?,
            again_disabled: reader.boolean("dfs.reformat.disabled")?,
        })
    }
}

/// The edit log.
#[derive(Clone, Debug, PartialEq)]
pub struct EditLog {
    /// Bytes of the largest record that is read (`dfs.namenode.max.op.size`).
    pub max_record_bytes: u32,
    /// How often an automatic roll is thought of (`dfs.namenode.edit.log.autoroll.check.interval.ms`).
    pub roll_check_interval: Duration,
    /// A segment is rolled once it holds this many transactions: `autoroll.multiplier.threshold` times
    /// `dfs.namenode.checkpoint.txns`.
    pub roll_transactions: u64,
}

impl EditLog {
    pub(super) fn read(reader: &Reader<'_>) -> Result<EditLog, ConfigError> {
        let multiplier = reader.float("dfs.namenode.edit.log.autoroll.multiplier.threshold")?;
        let transactions = reader.amount("dfs.namenode.checkpoint.txns", 0)?;
        Ok(EditLog {
            max_record_bytes: reader.count("dfs.namenode.max.op.size", 0)?,
            roll_check_interval: reader
                .plain_duration("dfs.namenode.edit.log.autoroll.check.interval.ms", Unit::Milliseconds)?,
            roll_transactions: (multiplier * transactions as f32) as u64, // saturates
        })
    }
}

/// When checkpoints are made and what is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoints {
    /// At the latest after (`dfs.namenode.checkpoint.period`).
    pub period: Duration,
    /// At the latest after this many transactions (`dfs.namenode.checkpoint.txns`).
    pub transactions: u64,
    /// How often that is looked at (`dfs.namenode.checkpoint.check.period`).
    pub check: Duration,
    /// Whether they are made while the server works, from an arena file (`ironroot.checkpoint.online`).
    pub online: bool,
    /// Whether those make an image too (`ironroot.checkpoint.image`).
    pub image: bool,
    /// Bytes of memory for what changes meanwhile (`ironroot.checkpoint.pool.bytes`).
    pub pool_bytes: u64,
    /// Whether a restart may use the arena file (`ironroot.restart.arena`).
    pub restart_from_arena: bool,
    /// From so many inodes on an arena file is made at once where a restart would find none (`ironroot.restart.arena.inodes`).
    pub unasked_from: u64,
    /// Images of a checkpointer on this host, for `-importCheckpoint` (`dfs.namenode.checkpoint.dir`).
    pub directories: Vec<Location>,
    /// Its edits (`dfs.namenode.checkpoint.edits.dir`).
    pub edits_directories: Vec<Location>,
    /// Images kept (`dfs.namenode.num.checkpoints.retained`).
    pub images_kept: u32,
    /// Transactions kept before the oldest kept image (`dfs.namenode.num.extra.edits.retained`).
    pub extra_transactions_kept: u64,
    /// Segments that these may be in at most (`dfs.namenode.max.extra.edits.segments.retained`).
    pub extra_segments_kept: u32,
    /// Form of images (`dfs.image.compress`, `dfs.image.compression.codec`, `dfs.image.parallel.*`).
    pub image_options: SaveOptions,
    /// Most bytes a second of an image that is sent, 0 for no limit (`dfs.image.transfer.bandwidthPerSec`).
    pub transfer_bytes_per_second: u64,
}

impl Checkpoints {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Checkpoints, ConfigError> {
        Ok(Checkpoints {
            period: reader.duration("dfs.namenode.checkpoint.period", Unit::Seconds)?,
            transactions: reader.amount("dfs.namenode.checkpoint.txns", 0)?,
            check: reader.duration("dfs.namenode.checkpoint.check.period", Unit::Seconds)?,
            online: reader.boolean("ironroot.checkpoint.online")?,
            image: reader.boolean("ironroot.checkpoint.image")?,
            pool_bytes: reader.bytes("ironroot.checkpoint.pool.bytes")?,
            restart_from_arena: reader.boolean("ironroot.restart.arena")?,
            unasked_from: reader.amount("ironroot.restart.arena.inodes", 0)?,
            directories: locations(reader, "dfs.namenode.checkpoint.dir")?,
            edits_directories: locations(reader, "dfs.namenode.checkpoint.edits.dir")?,
            images_kept: reader.count("dfs.namenode.num.checkpoints.retained", 1)?,
            extra_transactions_kept: reader.amount("dfs.namenode.num.extra.edits.retained", 0)?,
            extra_segments_kept: reader.count("dfs.namenode.max.extra.edits.segments.retained", 0)?,
            image_options: image_options(reader)?,
            transfer_bytes_per_second: reader.bytes("dfs.image.transfer.bandwidthPerSec")?,
        })
    }
}

/// How images are written. Loading needs no setting: it is told by the image, and always done by all cores.
fn image_options(reader: &Reader<'_>) -> Result<SaveOptions, ConfigError> {
    let (compress, class) = (reader.boolean("dfs.image.compress")?, reader.text("dfs.image.compression.codec")?);
    let codec = match (compress, Codec::of_class(&class)) {
        (true, None) => {
            return Err(reader.wrong("dfs.image.compression.codec", format!("Not a supported codec: {class}")));
        }
        (true, codec) => codec,
        (false, _) => None,
    };
    let parallel = SubSections {
        threshold: reader.amount("dfs.image.parallel.inode.threshold", 0)?,
        target: reader.amount("dfs.image.parallel.target.sections", 0)?,
    };
    let parallel = reader.boolean("dfs.image.parallel.load")?.then_some(parallel);
    Ok(SaveOptions { codec, parallel, ..SaveOptions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, Environment};

    #[test]
    fn images_take_the_form_that_is_set() {
        let options = |keys: &[(&str, &str)]| {
            let mut conf = Configuration::with_defaults(Environment::default());
            keys.iter().for_each(|(key, value)| conf.set(key, value, "hdfs-site.xml"));
            image_options(&Reader::new(&conf))
        };
        let plain = options(&[]).expect("defaults");
        assert!(plain.codec.is_none() && plain.parallel.is_none());
        let lz4 = ("dfs.image.compression.codec", "org.apache.hadoop.io.compress.Lz4Codec");
        assert!(options(&[lz4]).expect("a codec alone changes nothing").codec.is_none());
        assert_eq!(options(&[lz4, ("dfs.image.compress", "true")]).expect("a codec").codec, Some(Codec::Lz4));
        assert!(options(&[("dfs.image.compress", "true"), ("dfs.image.compression.codec", "x.Y")]).is_err());
        let parallel = options(&[("dfs.image.parallel.load", "true")]).expect("sub-sections").parallel;
        assert_eq!(parallel.map(|p| (p.threshold, p.target)), Some((1_000_000, 12)));
    }

    fn read(keys: &[(&str, &str)]) -> Result<StorageDirectories, ConfigError> {
        let mut conf = Configuration::with_defaults(Environment::default());
        for (key, value) in keys {
            conf.set(key, value, "hdfs-site.xml");
        }
        StorageDirectories::read(&Reader::new(&conf))
    }

    fn uris(locations: &[Location]) -> String {
        locations.iter().map(Location::uri).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn storage_locations() {
        let base = Path::new("/tmp/cfgobs");
        for (text, uri, path) in [
            ("file:///a/b", "file:///a/b", "/a/b"),
            ("/a/b", "file:/a/b", "/a/b"),
            ("a/b", "file:/tmp/cfgobs/a/b", "/tmp/cfgobs/a/b"),
            ("file://host/a", "file://host/a", "/a"),
            ("file:/a", "file:/a", "/a"),
            ("file:///a%20b", "file:///a%20b", "/a b"),
            ("file:///a b", "file:/tmp/cfgobs/file:/a%20b", "/tmp/cfgobs/file:/a b"),
            ("[DISK]file:///a", "file:/tmp/cfgobs/%5BDISK%5Dfile:/a", "/tmp/cfgobs/[DISK]file:/a"),
            ("/a/../b", "file:/b", "/b"),
            ("/a/", "file:/a", "/a"),
            ("/a:b", "file:/a:b", "/a:b"),
            ("~/x", "file:/tmp/cfgobs/~/x", "/tmp/cfgobs/~/x"),
        ] {
            let expected = Location::Directory { uri: uri.into(), path: path.into() };
            assert_eq!(Location::parse(text, base), expected, "for {text}");
        }
        let remote = Location::Remote { uri: "qjournal://h1:1;h2:2/c".into(), scheme: "qjournal".into() };
        assert_eq!(Location::parse("qjournal://h1:1;h2:2/c", base), remote);
    }

    #[test]
    fn edits_directories() {
        const NAME: (&str, &str) = ("dfs.namenode.name.dir", "/n1,/n2");
        for (keys, expected) in [
            (vec![NAME], "file:/n1, file:/n2"),
            (vec![("dfs.namenode.name.dir", "/a,,/a, /b ")], "file:/a, file:/b"),
            (vec![NAME, (EDITS, "/e")], "file:/e"),
            (vec![NAME, (EDITS, "")], "file:/n1, file:/n2"),
            (vec![("dfs.namenode.name.dir", "")], "file:///tmp/hadoop/dfs/name"),
            (vec![NAME, (SHARED, "file:///sh")], "file:///sh, file:/n1, file:/n2"),
            (vec![(EDITS, "/n1,file:///sh"), (SHARED, "file:///sh")], "file:///sh, file:/n1"),
            (
                vec![NAME, (SHARED, "qjournal://h1:8485;h2:8485;h3:8485/c")],
                "qjournal://h1:8485;h2:8485;h3:8485/c, file:/n1, file:/n2",
            ),
        ] {
            assert_eq!(uris(&read(&keys).unwrap().edits), expected, "for {keys:?}");
        }
        let problem = read(&[(SHARED, "file:///s1,file:///s2")]).unwrap_err().to_string();
        assert_eq!(problem, "Multiple shared edits directories are not yet supported");
        let both = read(&[(EDITS, "/n1"), (REQUIRED, "/n1"), (SHARED, "file:///sh")]).unwrap();
        assert_eq!(uris(&both.required_edits), "file:///sh, file:/n1");
        let problem = read(&[("dfs.namenode.name.dir", "/n1"), (REQUIRED, "/n2")]).unwrap_err().to_string();
        assert_eq!(
            problem,
            "Required edits directory file:/n2 not found: dfs.namenode.edits.dir=[file:/n1]; \
             dfs.namenode.edits.dir.required=[file:/n2]; dfs.namenode.shared.edits.dir=[]"
        );
    }

    #[test]
    fn mode_of_directories() {
        let mode = |text| read(&[("dfs.namenode.storage.dir.perm", text)]).map(|d| d.permission);
        assert_eq!(read(&[]).unwrap().permission, 0o700);
        assert_eq!(mode("0755").unwrap(), 0o755);
        let problem = mode("rwx").unwrap_err().to_string();
        assert_eq!(problem, "rwx is no octal mode (configuration property 'dfs.namenode.storage.dir.perm')");
    }
}
