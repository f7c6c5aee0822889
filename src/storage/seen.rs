//! `seen_txid`: the first transaction of the newest segment, a lower bound of what a load must find.

use crate::names;
use os::disk::Disk;
use os::durable;
use std::io;
use std::path::Path;
use vocab::Txid;

/// Replaces the file under `current`.
///
/// # Errors
/// As the disk's.
pub fn write(disk: &dyn Disk, current: &Path, txid: Txid) -> io::Result<()> {
    durable::replace(disk, &current.join(names::SEEN_TXID), format!("{}\n", txid.0).as_bytes())
}

/// Reads the file under `current`. Only its first line counts; a missing file and a negative number are 0, as in Hadoop
/// (`PersistentLongFile`).
///
/// # Errors
/// As the disk's; `InvalidData` for a line that is no number, blanks included.
pub fn read(disk: &dyn Disk, current: &Path) -> io::Result<Txid> {
    let path = current.join(names::SEEN_TXID);
    if disk.metadata(&path)?.is_none() {
        return Ok(Txid(0));
    }
    let bytes = disk.read(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or("");
    let number = line.parse::<i64>().map_err(|_| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: no number in the first line: {line:?}", path.display()))
    })?;
    Ok(Txid(number.max(0) as u64))
}
