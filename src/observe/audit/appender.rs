//! Where audit lines go: a file, rolled by size or by day, or one of the process's own streams.

use super::Level;
use super::layout::{DEFAULT, Layout, Second};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What log4j calls an appender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where to.
    pub place: Place,
    /// What a line looks like; Hadoop's own pattern if `None`.
    pub layout: Option<Layout>,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
    /// A file that grows.
    File(PathBuf),
    /// A file that is renamed to `.1`, `.2` ... when it has grown (`RollingFileAppender`).
    Rolling {
        /// The file that is written.
        path: PathBuf,
        /// Size at which it is renamed.
        bytes_max: u64,
        /// Old files kept.
        kept: u32,
    },
    /// A file that is renamed by the day, or another time of a `strftime` pattern, that it was of (`DailyRollingFileAppender`).
    Daily {
        /// The file that is written.
        path: PathBuf,
        /// What is put behind its name.
        suffix: String,
    },
}

/// A target that is open.
pub struct Appender {
    target: Target,
    layout: Layout,
    file: Option<File>,
    bytes: u64,
    /// Suffix of the lines in the file.
    period: String,
    batch: Vec<u8>,
    second: Second,
    failing: bool,
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(named)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path).map_err(named)?;
    let bytes = file.metadata().map_err(named)?.len();
    Ok((file, bytes))
}

impl Appender {
    /// Opens the file, which is made if it is not there, as its folder is.
    ///
    /// # Errors
    /// The file's, with its path.
    pub fn open(target: Target) -> io::Result<Appender> {
        let (file, bytes) = match target.place.path() {
            Some(path) => open(path).map(|(file, bytes)| (Some(file), bytes))?,
            None => (None, 0),
        };
        let layout = target.layout.clone().unwrap_or_else(|| Layout::parse(DEFAULT, "", TimeZone::system()));
        Ok(Appender {
            target,
            layout,
            file,
            bytes,
            period: String::new(),
            batch: Vec::new(),
            second: Second::default(),
            failing: false,
        })
    }

    /// Adds a line.
    pub(super) fn add(&mut self, time_ms: i64, level: Level, message: &[u8]) {
        self.roll(time_ms);
        self.layout.write(&mut self.batch, time_ms, level, message, &mut self.second);
    }

    /// Writes what was added. A failure is told once; the NameNode goes on without, as it does in Hadoop.
    pub(super) fn flush(&mut self) {
        let written = match &mut self.file {
            Some(file) => file.write_all(&self.batch),
            None if self.target.place == Place::Output => io::stdout().lock().write_all(&self.batch),
            None => io::stderr().lock().write_all(&self.batch),
        };
        self.bytes += self.batch.len() as u64;
        self.batch.clear();
        self.report(written);
    }

    fn report(&mut self, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => self.failing = false,
            Err(error) if !self.failing => {
                self.failing = true;
                eprintln!("audit lines are lost: {:?}: {error}", self.target.place);
            }
            Err(_) => {}
        }
    }

    /// Begins a new file where that is due.
    fn roll(&mut self, time_ms: i64) {
        match self.target.place.clone() {
            Place::Rolling { path, bytes_max, kept } if self.bytes + self.batch.len() as u64 >= bytes_max => {
                self.flush();
                let renamed = shift(&path, kept).and_then(|()| open(&path));
                self.begin(renamed);
            }
            Place::Daily { path, suffix } => {
                let time = Timestamp::from_millisecond(time_ms).unwrap_or_default();
                let period = time.to_zoned(TimeZone::system()).strftime(&suffix).to_string();
                if !self.period.is_empty() && self.period != period {
                    self.flush();
                    let old = PathBuf::from(format!("{}{}", path.display(), self.period));
                    let renamed = std::fs::rename(&path, old).and_then(|()| open(&path));
                    self.begin(renamed);
                }
                self.period = period;
            }
            _ => {}
        }
    }

    fn begin(&mut self, opened: io::Result<(File, u64)>) {
        let outcome = opened.map(|(file, bytes)| {
            self.file = Some(file);
            self.bytes = bytes;
        });
        self.report(outcome);
    }
}

/// Renames `F` to `F.1`, `F.1` to `F.2` and so on; the last one goes.
fn shift(path: &Path, kept: u32) -> io::Result<()> {
    let numbered = |n: u32| PathBuf::from(format!("{}.{n}", path.display()));
    if kept == 0 {
        return std::fs::remove_file(path);
    }
    for n in (1..kept).rev() {
        if numbered(n).exists() {
            std::fs::rename(numbered(n), numbered(n + 1))?;
        }
    }
    std::fs::rename(path, numbered(1))
}

impl Place {
    fn path(&self) -> Option<&Path> {
        match self {
            Place::File(path) | Place::Rolling { path, .. } | Place::Daily { path, .. } => Some(path),
            Place::Output | Place::Error => None,
        }
    }
}
