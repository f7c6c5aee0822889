//! Files for others: images with their digests, finished segments and the list of them, and images that a checkpointer brings.

use crate::StorageError;
use crate::image::{Digest, read_digest_file};
use crate::names::{self, Kind};
use md5::{Digest as _, Md5};
use os::disk::{Disk, File, Open};
use os::durable;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// A file to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Where it is.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Bytes.
    pub length: u64,
    /// MD5 in hexadecimal digits, where a digest file says it.
    pub digest: Option<String>,
}

fn list(disk: &dyn Disk, folder: &Path) -> Result<Vec<String>, StorageError> {
    disk.list(folder).map_err(StorageError::io(folder))
}

/// The image of a transaction, one for a rollback too, or the newest one. `None` if there is none.
///
/// # Errors
/// The disk's.
pub fn image(disk: &dyn Disk, folders: &[PathBuf], txid: Option<Txid>) -> Result<Option<Served>, StorageError> {
    let mut best: Option<(Txid, PathBuf, String)> = None;
    for folder in folders {
        for name in list(disk, folder)? {
            let (found, counts) = match names::kind(&name) {
                Kind::Image(found) => (found, txid.is_none_or(|txid| txid == found)),
                Kind::RollbackImage(found) => (found, txid == Some(found)),
                _ => continue,
            };
            if counts && best.as_ref().is_none_or(|(newest, ..)| *newest < found) {
                best = Some((found, folder.clone(), name));
            }
        }
    }
    best.map(|(_, folder, name)| served(disk, &folder, name)).transpose()
}

/// Transaction of the newest image, or image for a rollback.
///
/// # Errors
/// The disk's.
pub fn newest_image(disk: &dyn Disk, folders: &[PathBuf], rollback: bool) -> Result<Option<Txid>, StorageError> {
    let mut newest = None;
    for folder in folders {
        let of = |name: String| match names::kind(&name) {
            Kind::Image(txid) if !rollback => Some(txid),
            Kind::RollbackImage(txid) if rollback => Some(txid),
            _ => None,
        };
        newest = newest.max(list(disk, folder)?.into_iter().filter_map(of).max());
    }
    Ok(newest)
}

/// The finished segment of just these transactions.
///
/// # Errors
/// The disk's.
pub fn segment(disk: &dyn Disk, folders: &[PathBuf], first: Txid, last: Txid) -> Result<Option<Served>, StorageError> {
    let wanted = names::finalized(first, last);
    for folder in folders {
        let is_there = disk.metadata(&folder.join(&wanted)).map_err(StorageError::io(folder))?.is_some();
        if is_there {
            return served(disk, folder, wanted).map(Some);
        }
    }
    Ok(None)
}

fn served(disk: &dyn Disk, folder: &Path, name: String) -> Result<Served, StorageError> {
    let path = folder.join(&name);
    let found = disk.metadata(&path).map_err(StorageError::io(&path))?;
    let length = found.map_or(0, |found| found.length);
    let digest = names::digest(&name);
    let text = match disk.metadata(&folder.join(&digest)).map_err(StorageError::io(folder))? {
        Some(_) => Some(disk.read(&folder.join(&digest)).map_err(StorageError::io(folder))?),
        None => None,
    };
    let digest = text.and_then(|text| read_digest_file(&text, &digest, &name).ok()).map(|digest| digest.hex());
    Ok(Served { path, name, length, digest })
}

/// Finished segments from a transaction on, without gaps: what lies before a gap is left out (Hadoop's `JournalSet.getEditLogManifest`). And
/// the last transaction that they reach, `from` - 1 if there are none.
///
/// # Errors
/// A folder that cannot be listed.
pub fn manifest(disk: &dyn Disk, folders: &[PathBuf], from: Txid) -> Result<(Vec<(Txid, Txid)>, Txid), StorageError> {
    let mut longest: BTreeMap<Txid, Txid> = BTreeMap::new();
    for folder in folders {
        for name in list(disk, folder)? {
            if let Kind::Finalized(first, last) = names::kind(&name) {
                let reached = longest.entry(first).or_insert(last);
                *reached = (*reached).max(last);
            }
        }
    }
    let (mut found, mut next) = (Vec::new(), from);
    loop {
        match longest.get(&next) {
            Some(last) => {
                found.push((next, *last));
                next = last.next();
            }
            None => match longest.range(next..).next() {
                Some((first, _)) => {
                    found.clear();
                    next = *first;
                }
                None => return Ok((found, Txid(next.0.saturating_sub(1)))),
            },
        }
    }
}

/// An image on its way in, into all folders at once.
#[derive(Debug)]
pub struct Upload<'a> {
    disk: &'a dyn Disk,
    txid: Txid,
    copies: Vec<(PathBuf, Box<dyn File>)>,
    failed: Vec<(PathBuf, io::Error)>,
    length: u64,
    digest: Md5,
}

impl<'a> Upload<'a> {
    /// Opens a file of a name for the time being in every folder.
    pub fn begin(disk: &'a dyn Disk, folders: &[PathBuf], txid: Txid) -> Upload<'a> {
        let mut upload = Upload { disk, txid, copies: Vec::new(), failed: Vec::new(), length: 0, digest: Md5::new() };
        for folder in folders {
            match disk.open(&folder.join(names::image_checkpoint(txid)), Open::Truncate) {
                Ok(file) => upload.copies.push((folder.clone(), file)),
                Err(error) => upload.failed.push((folder.clone(), error)),
            }
        }
        upload
    }

    fn each(&mut self, mut step: impl FnMut(&Path, &dyn File) -> io::Result<()>) {
        let failed = &mut self.failed;
        self.copies.retain(|(folder, file)| match step(folder, &**file) {
            Ok(()) => true,
            Err(error) => {
                failed.push((folder.clone(), error));
                false
            }
        });
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        let at = self.length;
        self.each(|_, file| file.write_all_at(bytes, at));
        self.digest.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// Takes what came so far away again.
    pub fn give_up(self) {
        for (folder, _) in &self.copies {
            // a leftover is only untidy and is removed by the next purge
            let _ = self.disk.remove_file(&folder.join(names::image_checkpoint(self.txid)));
        }
    }

    /// Gives the image its name, once it is whole and durable. Returns the folders that failed.
    ///
    /// # Errors
    /// It is not what was announced, or no folder took it; nothing of it is left.
    pub fn finish(mut self, length: u64, digest: Option<&str>) -> Result<Vec<(PathBuf, io::Error)>, String> {
        let came = Digest(std::mem::take(&mut self.digest).finalize().into());
        let wrong = if self.length != length {
            Some(format!("received length {} is not of the advertised size {length}.", self.length))
        } else {
            digest
                .filter(|digest| *digest != came.hex())
                .map(|digest| format!("computed digest {} does not match advertised digest {digest}", came.hex()))
        };
        if let Some(wrong) = wrong {
            self.give_up();
            return Err(wrong);
        }
        self.each(|_, file| file.sync_all());
        let (disk, name, temporary) = (self.disk, names::image(self.txid), names::image_checkpoint(self.txid));
        self.each(|folder, _| {
            durable::replace(disk, &folder.join(names::digest(&name)), came.file_text(&name).as_bytes())?;
            durable::rename(disk, &folder.join(&temporary), &folder.join(&name))
        });
        if self.copies.is_empty() {
            let reasons = self.failed.iter().map(|(folder, error)| format!("{}: {error}", folder.display()));
            return Err(reasons.collect::<Vec<_>>().join("; "));
        }
        Ok(self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use os::Os;

    fn folder(names: &[&str]) -> (Os, PathBuf) {
        let (os, disk, _) = Os::simulated(3);
        let current = PathBuf::from("/name/current");
        disk.create_directories(&current, 0o700).unwrap();
        for name in names {
            disk.open(&current.join(name), Open::CreateNew).unwrap().write_all_at(b"x", 0).unwrap();
        }
        (os, current)
    }

    #[test]
    fn segments_without_gaps() {
        let names = [(1, 2), (3, 3), (7, 9), (10, 10)].map(|(a, b)| names::finalized(Txid(a), Txid(b)));
        let (os, current) = folder(&names.each_ref().map(|name| name.as_str()));
        let from = |txid| {
            let (found, last) = manifest(&*os.disk, std::slice::from_ref(&current), Txid(txid)).unwrap();
            (found.iter().map(|(a, b)| (a.0, b.0)).collect::<Vec<_>>(), last.0)
        };
        assert_eq!(from(1), (vec![(7, 9), (10, 10)], 10));
        assert_eq!(from(8), (vec![(10, 10)], 10));
        assert_eq!(from(10), (vec![(10, 10)], 10));
        assert_eq!(from(11), (vec![], 10));
    }

    #[test]
    fn an_image_comes_and_is_found() {
        let (os, current) = folder(&["fsimage_0000000000000000003"]);
        let folders = [current.clone()];
        let mut upload = Upload::begin(&*os.disk, &folders, Txid(9));
        upload.write(b"ima");
        upload.write(b"ge");
        let hex = Digest::of(b"image").hex();
        assert_eq!(upload.finish(5, Some(&hex)).unwrap().len(), 0);
        let found = image(&*os.disk, &folders, None).unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.length, found.digest), ("fsimage_0000000000000000009", 5, Some(hex)));
        assert_eq!(image(&*os.disk, &folders, Some(Txid(3))).unwrap().unwrap().digest, None);
        assert_eq!(image(&*os.disk, &folders, Some(Txid(4))).unwrap(), None);
        for (length, digest) in [(6, None), (5, Some("0"))] {
            let mut upload = Upload::begin(&*os.disk, &folders, Txid(11));
            upload.write(b"image");
            assert!(upload.finish(length, digest).is_err());
            let names = os.disk.list(&current).unwrap();
            assert!(!names.iter().any(|name| name.contains("11")), "{names:?}");
        }
    }
}
