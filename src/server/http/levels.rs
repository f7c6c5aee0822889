//! Levels of the log, changed while the process runs: by the names that Hadoop's loggers have, which are those of its classes, or by our own.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A level as log4j names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Everything.
    All,
    /// `TRACE`
    Trace,
    /// `DEBUG`
    Debug,
    /// `INFO`
    Info,
    /// `WARN`
    Warn,
    /// `ERROR`
    Error,
    /// Nothing here is fatal and goes on: as `ERROR`.
    Fatal,
    /// Nothing.
    Off,
}

const LEVELS: [(Level, &str, &str); 8] = [
    (Level::All, "ALL", "trace"),
    (Level::Trace, "TRACE", "trace"),
    (Level::Debug, "DEBUG", "debug"),
    (Level::Info, "INFO", "info"),
    (Level::Warn, "WARN", "warn"),
    (Level::Error, "ERROR", "error"),
    (Level::Fatal, "FATAL", "error"),
    (Level::Off, "OFF", "off"),
];

impl Level {
    /// By its name, however it is written.
    pub fn parse(text: &str) -> Option<Level> {
        let text = text.to_uppercase();
        LEVELS.iter().find(|(_, name, _)| *name == text).map(|(level, ..)| *level)
    }
    /// Its name.
    pub fn name(self) -> &'static str {
        LEVELS[self as usize].1
    }
    /// As filters write it.
    pub fn filter(self) -> &'static str {
        LEVELS[self as usize].2
    }
}

/// What of ours does what a package or class of Hadoop does; of several that begin a name the longest counts. Empty: all.
const HOMES: [(&str, &[&str]); 16] = [
    ("root", &[]),
    ("org", &[]),
    ("org.apache", &[]),
    ("org.apache.hadoop", &[]),
    ("org.apache.hadoop.hdfs", &["ironroot", "server", "engine", "ops", "state", "namespace", "storage", "blocks"]),
    ("org.apache.hadoop.hdfs.StateChange", &["ops", "engine"]),
    ("org.apache.hadoop.hdfs.server.blockmanagement", &["blocks"]),
    (
        "org.apache.hadoop.hdfs.server.namenode",
        &["ironroot", "server", "engine", "ops", "state", "namespace", "storage"],
    ),
    ("org.apache.hadoop.hdfs.server.namenode.FSEditLog", &["storage::journal"]),
    ("org.apache.hadoop.hdfs.server.namenode.FSImage", &["storage::image", "storage::arena"]),
    ("org.apache.hadoop.hdfs.server.namenode.FSNamesystem", &["engine", "ops", "state", "namespace"]),
    ("org.apache.hadoop.hdfs.server.namenode.NameNode", &["ironroot"]),
    ("org.apache.hadoop.http", &["server::http"]),
    ("org.apache.hadoop.ipc", &["rpc", "server::service"]),
    ("org.apache.hadoop.security", &["security"]),
    ("BlockStateChange", &["blocks"]),
];

/// Whether `name` is `package` or below it.
fn is_below(name: &str, package: &str) -> bool {
    name.strip_prefix(package).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '$']))
}

/// The modules that a logger's name means; none if it means nothing here, all if empty.
fn modules(logger: &str) -> Option<Vec<String>> {
    let home = HOMES.iter().filter(|(package, _)| is_below(logger, package)).max_by_key(|(package, _)| package.len());
    match home {
        // a class of a package that has no home here
        Some((_, [])) if !HOMES.iter().any(|(package, _)| *package == logger) => None,
        Some((_, modules)) => Some(modules.iter().map(|module| (*module).to_owned()).collect()),
        None if logger.chars().all(|c| c.is_ascii_alphanumeric() || "._:".contains(c)) => {
            Some(vec![logger.replace('.', "::")])
        }
        None => None,
    }
}

/// Puts a filter, as `tracing` writes them, in force.
type Apply = Box<dyn Fn(&str) + Send + Sync>;

/// The levels that are set.
pub struct Levels {
    root: Mutex<Level>,
    /// The filter that the process began with.
    first: String,
    set: Mutex<BTreeMap<String, Level>>,
    apply: Apply,
}

impl Levels {
    /// `first` is the filter in force, `root` the level of what it does not name.
    pub fn new(root: Level, first: String, apply: impl Fn(&str) + Send + Sync + 'static) -> Levels {
        Levels { root: Mutex::new(root), first, set: Mutex::default(), apply: Box::new(apply) }
    }

    /// The level of a logger: its own, or that of the nearest one above it that has one.
    pub fn effective(&self, logger: &str) -> Level {
        let set = self.set.lock();
        let nearest = set.iter().filter(|(name, _)| is_below(logger, name)).max_by_key(|(name, _)| name.len());
        nearest.map_or_else(|| *self.root.lock(), |(_, level)| *level)
    }

    /// Gives a logger a level. A name that means nothing here keeps it as well, as in log4j, where any name is a logger.
    pub fn set(&self, logger: &str, level: Level) {
        const LOGGERS_MAX: usize = 1_000;
        let mut set = self.set.lock();
        if logger == "root" {
            *self.root.lock() = level;
        } else if set.contains_key(logger) || set.len() < LOGGERS_MAX {
            set.insert(logger.to_owned(), level);
        }
        let mut filter = if logger == "root" || self.first.is_empty() {
            self.root.lock().filter().to_owned()
        } else {
            self.first.clone()
        };
        // what is named later counts where two name the same: longer names last
        let mut by_length: Vec<_> = set.iter().collect();
        by_length.sort_by_key(|(name, _)| name.len());
        for (name, level) in by_length {
            match modules(name) {
                Some(modules) if modules.is_empty() => filter += &format!(",{}", level.filter()),
                Some(modules) => modules.iter().for_each(|module| filter += &format!(",{module}={}", level.filter())),
                None => {}
            }
        }
        (self.apply)(&filter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn loggers_have_the_level_of_what_is_above_them() {
        let filter = Arc::new(Mutex::new(String::new()));
        let told = filter.clone();
        let levels = Levels::new(Level::Info, "info".to_owned(), move |f| *told.lock() = f.to_owned());
        assert_eq!(levels.effective("org.apache.hadoop.ipc.Server"), Level::Info);
        levels.set("org.apache.hadoop.ipc", Level::Debug);
        assert_eq!(*filter.lock(), "info,rpc=debug,server::service=debug");
        assert_eq!(levels.effective("org.apache.hadoop.ipc.Server"), Level::Debug);
        assert_eq!(levels.effective("org.apache.hadoop.ipcx"), Level::Info);
        levels.set("storage.journal", Level::All);
        assert_eq!(*filter.lock(), "info,storage::journal=trace,rpc=debug,server::service=debug");
        levels.set("no such, thing=[", Level::Off);
        assert_eq!(*filter.lock(), "info,storage::journal=trace,rpc=debug,server::service=debug");
        assert_eq!(levels.effective("no such, thing=["), Level::Off);
        levels.set("org.apache.hadoop.yarn.Nothing", Level::Off);
        levels.set("root", Level::Warn);
        assert_eq!(*filter.lock(), "warn,storage::journal=trace,rpc=debug,server::service=debug");
        assert_eq!(levels.effective("anything"), Level::Warn);
    }

    #[test]
    fn levels_have_names() {
        for (level, name, _) in LEVELS {
            assert_eq!((Level::parse(&name.to_lowercase()), level.name()), (Some(level), name));
        }
        assert_eq!((Level::parse("bogus"), Level::parse("\u{131}nfo")), (None, Some(Level::Info)));
    }
}
