//! Image files in storage directories: written to several at once, found and read again.

use super::digest::{Digest, read_digest_file};
use super::input::FileInput;
use super::load::{Loaded, Loading, load_input};
use super::save::{SaveContext, SaveOptions, encode_with};
use super::summary::ImageError;
use crate::names::{self, Kind};
use os::disk::{Disk, File, Open};
use os::durable;
use state::State;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use vocab::Txid;

/// A directory that could not take the image, and why.
#[derive(Debug)]
pub struct Failed {
    /// Its `current` folder.
    pub current: PathBuf,
    /// The first error.
    pub error: io::Error,
}

/// An image that is whole and durable under its final name in at least one directory.
#[derive(Debug)]
pub struct Saved {
    /// Digest of the file.
    pub digest: Digest,
    /// Its length in bytes.
    pub length: u64,
    /// Directories that have to be given up.
    pub failed: Vec<Failed>,
}

/// Why no image was saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The state does not fit the format.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// No directory took it.
    #[error("Failed to save in any storage directories while saving namespace.")]
    NoDirectory(Vec<Failed>),
}

/// One copy being written.
struct Copy {
    current: PathBuf,
    file: Box<dyn File>,
    offset: u64,
}

/// Encodes the state once and writes it into each `current` folder under its temporary name; gives it its final name, digest first, once the
/// content is durable.
///
/// # Errors
/// [`SaveError`]; temporary files are removed.
pub fn save(disk: &dyn Disk, directories: &[PathBuf], state: &State, context: SaveContext) -> Result<Saved, SaveError> {
    save_with(disk, directories, state, context, &SaveOptions::default())
}

/// The same in another form.
///
/// # Errors
/// As [`save`].
pub fn save_with(
    disk: &dyn Disk,
    directories: &[PathBuf],
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
) -> Result<Saved, SaveError> {
    save_as(disk, directories, state, context, options, &names::image(context.txid))
}

/// The same, as the image that a rolling upgrade goes back to.
///
/// # Errors
/// As [`save`].
pub fn save_rollback(
    disk: &dyn Disk,
    directories: &[PathBuf],
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
) -> Result<Saved, SaveError> {
    save_as(disk, directories, state, context, options, &names::rollback_image(context.txid))
}

fn save_as(
    disk: &dyn Disk,
    directories: &[PathBuf],
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
    name: &str,
) -> Result<Saved, SaveError> {
    let Saved { digest, length, mut failed } = write(disk, directories, state, context, options)?;
    let written: Vec<PathBuf> =
        directories.iter().filter(|current| failed.iter().all(|one| one.current != **current)).cloned().collect();
    let unnamed = give_names_as(disk, &written, context.txid, digest, name);
    let none = unnamed.len() == written.len();
    failed.extend(unnamed);
    if none { Err(SaveError::NoDirectory(failed)) } else { Ok(Saved { digest, length, failed }) }
}

/// The first half of [`save`]: the content is durable under its temporary name. For a process that leaves the names to another one.
///
/// # Errors
/// [`SaveError`]; temporary files are removed.
pub fn save_unnamed(
    disk: &dyn Disk,
    directories: &[PathBuf],
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
) -> Result<Saved, SaveError> {
    write(disk, directories, state, context, options)
}

fn write(
    disk: &dyn Disk,
    directories: &[PathBuf],
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
) -> Result<Saved, SaveError> {
    let temporary = names::image_checkpoint(context.txid);
    let mut failed = Vec::new();
    let mut copies = Vec::new();
    for current in directories {
        match disk.open(&current.join(&temporary), Open::Truncate) {
            Ok(file) => copies.push(Copy { current: current.clone(), file, offset: 0 }),
            Err(error) => failed.push(Failed { current: current.clone(), error }),
        }
    }
    let mut length = 0;
    let digest = encode_with(state, context, options, &mut |bytes| {
        length += bytes.len() as u64;
        keep_good(&mut copies, &mut failed, |copy| {
            copy.file.write_all_at(bytes, copy.offset)?;
            copy.offset += bytes.len() as u64;
            Ok(())
        });
    });
    let digest = match digest {
        Ok(digest) => digest,
        Err(error) => {
            copies.iter().for_each(|copy| drop(disk.remove_file(&copy.current.join(&temporary))));
            return Err(error.into());
        }
    };
    keep_good(&mut copies, &mut failed, |copy| copy.file.sync_all());
    discard(disk, &failed, context.txid);
    if copies.is_empty() { Err(SaveError::NoDirectory(failed)) } else { Ok(Saved { digest, length, failed }) }
}

/// The second half of [`save`]: digest files and final names. Gives the folders that failed.
pub fn give_names(disk: &dyn Disk, directories: &[PathBuf], txid: Txid, digest: Digest) -> Vec<Failed> {
    give_names_as(disk, directories, txid, digest, &names::image(txid))
}

fn give_names_as(disk: &dyn Disk, directories: &[PathBuf], txid: Txid, digest: Digest, name: &str) -> Vec<Failed> {
    let temporary = names::image_checkpoint(txid);
    let give = |current: &PathBuf| {
        let failed = |error| Failed { current: current.clone(), error };
        give_name(disk, current, &temporary, name, digest).err().map(failed)
    };
    let failed: Vec<Failed> = directories.iter().filter_map(give).collect();
    discard(disk, &failed, txid);
    failed
}

/// Removes what failed directories were left with.
fn discard(disk: &dyn Disk, failed: &[Failed], txid: Txid) {
    for failure in failed {
        // the directory is given up already; a leftover is only untidy and is removed by the next purge
        _ = disk.remove_file(&failure.current.join(names::image_checkpoint(txid)));
    }
}

/// Does a step for each copy; those that fail leave.
fn keep_good(copies: &mut Vec<Copy>, failed: &mut Vec<Failed>, mut step: impl FnMut(&mut Copy) -> io::Result<()>) {
    copies.retain_mut(|copy| match step(copy) {
        Ok(()) => true,
        Err(error) => {
            failed.push(Failed { current: copy.current.clone(), error });
            false
        }
    });
}

/// Digest file first, then the name: for a new image, or one that gets another name.
pub(crate) fn give_name(disk: &dyn Disk, current: &Path, from: &str, name: &str, digest: Digest) -> io::Result<()> {
    durable::replace(disk, &current.join(names::digest(name)), digest.file_text(name).as_bytes())?;
    durable::rename(disk, &current.join(from), &current.join(name))
}

/// The newest image of several directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its last transaction.
    pub txid: Txid,
    /// All copies, in the order of the directories.
    pub copies: Vec<PathBuf>,
}

/// Finds the newest image. Rollback images do not count here.
///
/// # Errors
/// As the disk's, with the folder that could not be listed.
pub fn newest(disk: &dyn Disk, directories: &[PathBuf]) -> Result<Option<Newest>, Failed> {
    Ok(all(disk, directories)?.into_iter().next())
}

/// Finds all images, the newest first. Rollback images do not count here.
///
/// # Errors
/// As the disk's, with the folder that could not be listed.
pub fn all(disk: &dyn Disk, directories: &[PathBuf]) -> Result<Vec<Newest>, Failed> {
    find(disk, directories, |kind| if let Kind::Image(txid) = kind { Some(txid) } else { None })
}

/// Finds the images that rolling upgrades go back to, the newest first.
///
/// # Errors
/// As [`all`].
pub fn all_rollback(disk: &dyn Disk, directories: &[PathBuf]) -> Result<Vec<Newest>, Failed> {
    find(disk, directories, |kind| if let Kind::RollbackImage(txid) = kind { Some(txid) } else { None })
}

/// Finds the images of both kinds, the newest first: a start may begin with any.
///
/// # Errors
/// As [`all`].
pub fn all_of_both_kinds(disk: &dyn Disk, directories: &[PathBuf]) -> Result<Vec<Newest>, Failed> {
    find(disk, directories, |kind| match kind {
        Kind::Image(txid) | Kind::RollbackImage(txid) => Some(txid),
        _ => None,
    })
}

fn find(
    disk: &dyn Disk,
    directories: &[PathBuf],
    counts: impl Fn(Kind) -> Option<Txid>,
) -> Result<Vec<Newest>, Failed> {
    let mut all: BTreeMap<Reverse<Txid>, Vec<PathBuf>> = BTreeMap::new();
    for current in directories {
        let mut names = disk.list(current).map_err(|error| Failed { current: current.clone(), error })?;
        names.sort();
        for name in names {
            if let Some(txid) = counts(names::kind(&name)) {
                all.entry(Reverse(txid)).or_default().push(current.join(name));
            }
        }
    }
    Ok(all.into_iter().map(|(Reverse(txid), copies)| Newest { txid, copies }).collect())
}

/// Why a copy of an image was not used.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Image or digest file cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is damaged or not supported.
    #[error("Image file {path}: {error}")]
    Image {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: ImageError,
    },
}

/// Loads the first good copy of an image. `fresh` makes the empty state that each try begins with.
///
/// # Errors
/// One error for each copy, if none is good.
pub fn load_copies(
    disk: &dyn Disk,
    image: &Newest,
    fresh: impl Fn() -> State,
    loading: Loading<'_>,
) -> Result<(Loaded, PathBuf), Vec<CopyError>> {
    let mut errors = Vec::new();
    for path in &image.copies {
        match load_file(disk, path, fresh(), loading) {
            Ok(loaded) if loaded.txid == image.txid => return Ok((loaded, path.clone())),
            Ok(loaded) => {
                let what = format!("holds transactions up to {} but its name says {}", loaded.txid, image.txid);
                let error = ImageError::Content { section: "NS_INFO", what };
                errors.push(CopyError::Image { path: path.clone(), error });
            }
            Err(error) => errors.push(error),
        }
    }
    Err(errors)
}

fn load_file(disk: &dyn Disk, path: &Path, state: State, loading: Loading<'_>) -> Result<Loaded, CopyError> {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let digest_name = names::digest(name);
    let digest_path = path.with_file_name(&digest_name);
    let image = |error| CopyError::Image { path: path.to_path_buf(), error };
    let absent =
        disk.metadata(&digest_path).map_err(|error| CopyError::Io { path: digest_path.clone(), error })?.is_none();
    if absent {
        let text = format!("No MD5 file found corresponding to image file {}", path.display());
        return Err(image(ImageError::Digest(text)));
    }
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |error| CopyError::Io { path, error }
    };
    let digest_text = disk.read(&digest_path).map_err(io(&digest_path))?;
    let expected = read_digest_file(&digest_text, &digest_name, name).map_err(image)?;
    let input = disk.open(path, Open::Read).and_then(FileInput::new).map_err(io(path))?;
    load_input(&input, expected, state, loading).map_err(|error| match error {
        ImageError::Read(text) => io(path)(io::Error::other(text)),
        error => image(error),
    })
}
