//! VERSION: the identity of a file system, as Java properties.

use crate::StorageError;
use crate::names;
use os::Os;
use os::disk::Disk;
use os::durable;
use std::path::Path;
use vocab::LayoutVersion;
use vocab::layout::Feature;

/// Identity of a file system and layout of its files. All but `layout` never change after a format (an upgrade sets `ctime`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StorageInfo {
    /// Layout of image and edits.
    pub layout: LayoutVersion,
    /// 31-bit number, never 0 in a formatted directory.
    pub namespace_id: i32,
    /// `CID-` and a UUID, or what the administrator gave.
    pub cluster_id: String,
    /// When it was formatted or last upgraded, in milliseconds; 0 from releases before 2.8.
    pub ctime: i64,
    /// `BP-`, a random number, the address of the host and a time, with hyphens between.
    pub block_pool_id: String,
}

impl StorageInfo {
    /// A new identity. `address` is the IP address of this host as text; `cluster_id` an existing cluster's, or `None` for a new one.
    pub fn new(os: &Os, address: &str, cluster_id: Option<&str>) -> StorageInfo {
        let number = || (os.random.u64() % 0x7fff_ffff) as i32;
        let namespace_id = std::iter::repeat_with(number).find(|id| *id != 0).unwrap_or(1);
        let now = os.clock.wall_ms();
        StorageInfo {
            layout: LayoutVersion::CURRENT,
            namespace_id,
            cluster_id: cluster_id.map_or_else(|| new_cluster_id(os), str::to_owned),
            ctime: now,
            block_pool_id: format!("BP-{}-{address}-{now}", number()),
        }
    }

    /// The text of VERSION, with a comment that tells when it was written (milliseconds since 1970).
    pub fn text(&self, now_ms: i64) -> String {
        format!(
            "#{}\nnamespaceID={}\nblockpoolID={}\nstorageType=NAME_NODE\ncTime={}\nclusterID={}\nlayoutVersion={}\n",
            java_date(now_ms),
            self.namespace_id,
            escape(&self.block_pool_id),
            self.ctime,
            escape(&self.cluster_id),
            self.layout.0
        )
    }
}

/// A new cluster id: `CID-` and a UUID.
pub fn new_cluster_id(os: &Os) -> String {
    format!("CID-{}", os.random.uuid())
}

/// Replaces VERSION under `current`.
///
/// # Errors
/// As the disk's.
pub fn write(os: &Os, current: &Path, info: &StorageInfo) -> Result<(), StorageError> {
    let path = current.join(names::VERSION);
    durable::replace(&*os.disk, &path, info.text(os.clock.wall_ms()).as_bytes()).map_err(StorageError::io(&path))
}

/// Reads VERSION under `current`, a folder of `root`, and checks each property.
///
/// # Errors
/// A property is missing or no legal value; the layout is newer than ours; another kind of node wrote it.
pub fn read(disk: &dyn Disk, root: &Path, current: &Path) -> Result<StorageInfo, StorageError> {
    read_with(disk, root, current, |layout| Some(layout).filter(|layout| !layout.newer_than(LayoutVersion::CURRENT)))
}

/// The same for the rollback of a rolling upgrade: the directories may have been taken to a newer layout, but must not be of an older one. Whatever
/// they are of, they become ours.
///
/// # Errors
/// As [`read`].
pub fn read_for_rollback(disk: &dyn Disk, root: &Path, current: &Path) -> Result<StorageInfo, StorageError> {
    read_with(disk, root, current, |layout| {
        (!LayoutVersion::CURRENT.newer_than(layout)).then_some(LayoutVersion::CURRENT)
    })
}

/// `accept` gives the layout to go on with, or none.
fn read_with(
    disk: &dyn Disk,
    root: &Path,
    current: &Path,
    accept: impl Fn(LayoutVersion) -> Option<LayoutVersion>,
) -> Result<StorageInfo, StorageError> {
    let path = current.join(names::VERSION);
    let bytes = disk.read(&path).map_err(StorageError::io(&path))?;
    let properties = Properties { list: parse(&String::from_utf8_lossy(&bytes)), root, path: &path };
    let reported = properties.number("layoutVersion")?;
    let unexpected = || StorageError::UnexpectedVersion { directory: root.to_owned(), reported };
    let layout = accept(LayoutVersion(reported)).ok_or_else(unexpected)?;
    properties.check_type()?;
    let namespace_id = properties.number("namespaceID")?;
    let ctime = properties.number("cTime")?;
    if layout.0 == 0 {
        return Err(StorageError::DirectoryNotFormatted(root.to_owned()));
    }
    let federation = layout.supports(Feature::Federation);
    let cluster_id = if federation { properties.text("clusterID")?.to_owned() } else { String::new() };
    let block_pool_id = properties.get("blockpoolID").unwrap_or_default().to_owned();
    if federation && block_pool_id.is_empty() {
        return Err(properties.inconsistent("file VERSION has no block pool Id."));
    }
    Ok(StorageInfo { layout, namespace_id, cluster_id, ctime, block_pool_id })
}

/// One property of VERSION under `current`, a folder of `root`.
///
/// # Errors
/// The disk's.
pub fn property(disk: &dyn Disk, root: &Path, current: &Path, key: &str) -> Result<Option<String>, StorageError> {
    let path = current.join(names::VERSION);
    let bytes = disk.read(&path).map_err(StorageError::io(&path))?;
    let properties = Properties { list: parse(&String::from_utf8_lossy(&bytes)), root, path: &path };
    Ok(properties.get(key).map(str::to_owned))
}

/// Checks that the identity of another directory is the same.
///
/// Quirk: storage_identity_check: a different cTime is accepted, and an empty cluster id agrees with every other, as in Hadoop.
///
/// # Errors
/// `root` is not of the same file system as `first`.
pub fn check_same(first: &StorageInfo, other: &StorageInfo, root: &Path) -> Result<(), StorageError> {
    let inconsistent = |reason: String| Err(StorageError::Inconsistent { directory: root.to_owned(), reason });
    let (a, b) = (first.namespace_id, other.namespace_id);
    if a != 0 && b != 0 && a != b {
        return inconsistent("namespaceID is incompatible with others.".to_owned());
    }
    let (a, b) = (&first.cluster_id, &other.cluster_id);
    if !a.is_empty() && !b.is_empty() && a != b {
        return inconsistent("cluster Id is incompatible with others.".to_owned());
    }
    let (a, b) = (&first.block_pool_id, &other.block_pool_id);
    if !a.is_empty() && a != b {
        // The misspelling is Hadoop's.
        return inconsistent(format!("Unexepcted blockpoolID {b} . Expected {a}"));
    }
    Ok(())
}

struct Properties<'p> {
    list: Vec<(String, String)>,
    root: &'p Path,
    path: &'p Path,
}

impl Properties<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.list.iter().rev().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }
    fn inconsistent(&self, reason: &str) -> StorageError {
        StorageError::Inconsistent { directory: self.root.to_owned(), reason: reason.to_owned() }
    }
    fn text(&self, key: &str) -> Result<&str, StorageError> {
        self.get(key).ok_or_else(|| self.inconsistent(&format!("file VERSION has {key} missing.")))
    }
    fn number<T: std::str::FromStr>(&self, key: &'static str) -> Result<T, StorageError> {
        let value = self.text(key)?;
        value.parse().map_err(|_| StorageError::Number { path: self.path.to_owned(), key, value: value.to_owned() })
    }
    fn check_type(&self) -> Result<(), StorageError> {
        match self.text("storageType")? {
            "NAME_NODE" => Ok(()),
            other @ ("DATA_NODE" | "JOURNAL_NODE") => {
                let text = "Incompatible node types: storageType=NAME_NODE but StorageDirectory type=";
                Err(self.inconsistent(&format!("{text}{other}")))
            }
            other => Err(StorageError::NodeType { path: self.path.to_owned(), value: other.to_owned() }),
        }
    }
}

/// Parses the text of a Java properties file.
fn parse(text: &str) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut lines = text.split(['\n', '\r']);
    while let Some(line) = lines.next() {
        let mut logical = line.trim_start_matches([' ', '\t', '\u{c}']).to_owned();
        if logical.is_empty() || logical.starts_with(['#', '!']) {
            continue;
        }
        while logical.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1 {
            logical.pop();
            match lines.next() {
                Some(next) => logical.push_str(next.trim_start_matches([' ', '\t', '\u{c}'])),
                None => break,
            }
        }
        list.push(split(&logical));
    }
    list
}

/// Splits at the first `=`, `:` or blank that is not escaped.
fn split(line: &str) -> (String, String) {
    let blank = |c: char| matches!(c, ' ' | '\t' | '\u{c}');
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (blank(c) || c == '=' || c == ':');
        escaped = !escaped && c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(blank);
    (unescape(key), unescape(rest))
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        match characters.next() {
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\u{c}'),
            Some('u') => {
                let hex: String = characters.by_ref().take(4).collect();
                let unit = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                plain.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        match c {
            ' ' if index > 0 => escaped.push(' '),
            ' ' | '\\' | '=' | ':' | '#' | '!' => escaped.extend(['\\', c]),
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            ' '..='~' => escaped.push(c),
            _ => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04X}"))),
        }
    }
    escaped
}

/// A time as Java's `Date.toString` shows it, in UTC: `Mon Nov 30 11:17:25 UTC 2026`.
fn java_date(ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, second) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000) / 1000);
    // Days to a date, counted in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = year_of_era + era * 400 + i64::from(month < 2);
    format!(
        "{} {} {day:02} {:02}:{:02}:{:02} UTC {year}",
        DAYS[days.rem_euclid(7) as usize],
        MONTHS[month as usize],
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_java_writes_them() {
        assert_eq!(java_date(1_796_037_445_446), "Mon Nov 30 11:17:25 UTC 2026");
        assert_eq!(java_date(0), "Thu Jan 01 00:00:00 UTC 1970");
        assert_eq!(java_date(951_782_400_000), "Tue Feb 29 00:00:00 UTC 2000");
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        let text = "#c\n a = b c \nk\\:1:v\\\n   w\n! x\nu=\\u00e9\\t\nempty\n";
        let pairs = parse(text);
        let expected = [("a", "b c "), ("k:1", "vw"), ("u", "é\t"), ("empty", "")];
        assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        assert_eq!(unescape(&escape(" a:b=é\t#")), " a:b=é\t#");
    }

    #[test]
    fn storage_identity_check() {
        let info = StorageInfo {
            layout: LayoutVersion::CURRENT,
            namespace_id: 5,
            cluster_id: "CID-a".into(),
            ctime: 1,
            block_pool_id: "BP-1".into(),
        };
        let root = Path::new("/b");
        let check = |other: StorageInfo| check_same(&info, &other, root).map_err(|e| e.to_string());
        assert_eq!(check(StorageInfo { ctime: 9, ..info.clone() }), Ok(()));
        assert_eq!(check(StorageInfo { cluster_id: String::new(), ..info.clone() }), Ok(()));
        let text = "Directory /b is in an inconsistent state: ";
        assert_eq!(
            check(StorageInfo { block_pool_id: "BP-2".into(), ..info.clone() }),
            Err(format!("{text}Unexepcted blockpoolID BP-2 . Expected BP-1"))
        );
        assert_eq!(
            check(StorageInfo { namespace_id: 6, ..info.clone() }),
            Err(format!("{text}namespaceID is incompatible with others."))
        );
    }
}
