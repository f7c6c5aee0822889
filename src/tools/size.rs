//! `size`: what a NameNode needs for an image, without loading it.

use super::failure::Failure;
use super::image::source::Image;
use hadoop_proto::Message;
use hadoop_proto::fsimage::{INodeSection, i_node_directory_section, i_node_section as wire, snapshot_diff_section};
use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use storage::image::{Digest, SectionName};

/// Bytes of an inode record (`record::layout`: eight words).
const INODE: u64 = 64;
/// Bytes of a block record of its own; the block of a closed file with one block lies in the inode's.
const BLOCK: u64 = 32;
/// Bytes of an entry of an id index, in tenths (`namespace/BUDGET.md`).
const INDEX_TENTHS: u64 = 48;
/// Bytes of a child in a directory's list: a handle and a byte of hash.
const CHILD: u64 = 5;
/// Bytes of a child in a directory with more than [`SMALL_LIST`]: a handle in a leaf.
const CHILD_OF_MANY: u64 = 8;
const SMALL_LIST: usize = 128;
/// Blocks whose handles lie in the file's record.
const BLOCKS_IN_RECORD: usize = 6;
/// Bytes of a handle in a list of blocks.
const HANDLE: u64 = 4;
/// Bytes of a replica in the storages' lists, in tenths (`namespace/BUDGET.md`).
const REPLICA_TENTHS: u64 = 21;
/// As much of a file is digested to see how fast this host is.
const SAMPLE_BYTES: usize = 256 << 20;

/// What an image holds.
#[derive(Default)]
struct Counts {
    files: u64,
    directories: u64,
    symlinks: u64,
    blocks: u64,
    fused: u64,
    handles_in_lists: u64,
    replicas: u64,
    name_bytes: u64,
    feature_bytes: u64,
    child_bytes: u64,
    diff_bytes: u64,
}

/// Writes the estimate.
pub fn run(path: &Path) -> ExitCode {
    super::ended(write(path, &mut std::io::stdout().lock()), "")
}

fn write(path: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let image = Image::open(path)?;
    let length = std::fs::metadata(path)?.len();
    let begin = Instant::now();
    let counts = Counts::of(&image)?;
    let decoding = begin.elapsed();
    let digesting = digest_time(path, length)?;
    let inodes = counts.files + counts.directories + counts.symlinks;
    writeln!(out, "layout {}, {length} bytes", image.summary.layout.0)?;
    writeln!(
        out,
        "{inodes} inodes: {} files, {} directories, {} symlinks",
        counts.files, counts.directories, counts.symlinks
    )?;
    writeln!(out, "{} blocks with {} replicas\n", counts.blocks, counts.replicas)?;
    let parts = counts.parts();
    for (name, bytes) in &parts {
        writeln!(out, "{name:<40} {bytes:>16}")?;
    }
    let sum: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    writeln!(out, "{:<40} {sum:>16}", "resident bytes")?;
    if let Some(each) = (sum * 10).checked_div(counts.files) {
        writeln!(out, "{:<40} {:>16}", "for each file", format!("{}.{}", each / 10, each % 10))?;
    }
    // A load is bound by the digest of the file, which one thread makes, or by the threads that decode.
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let expected = digesting.max(decoding / threads);
    writeln!(out, "\nexpected load time on this host: {:.2} s", expected.as_secs_f64())?;
    Ok(())
}

/// How long this host needs to read and digest so many bytes, from a sample of the file.
fn digest_time(path: &Path, length: u64) -> Result<Duration, Failure> {
    let mut file = std::fs::File::open(path)?;
    let mut piece = vec![0; 1 << 20];
    let (mut digested, begin) = (0, Instant::now());
    while digested < SAMPLE_BYTES {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        std::hint::black_box(Digest::of(&piece[..count]));
        digested += count;
    }
    Ok(begin.elapsed().mul_f64(length as f64 / digested.max(1) as f64))
}

impl Counts {
    fn of(image: &Image) -> Result<Counts, Failure> {
        let mut counts = Counts::default();
        if let Some(mut messages) = image.section(SectionName::Inode) {
            let section: INodeSection = messages.expect()?;
            for _ in 0..section.num_inodes() as i64 {
                counts.inode(&messages.expect()?);
            }
        }
        if let Some(mut messages) = image.section(SectionName::InodeDir) {
            while let Some(entry) = messages.next::<i_node_directory_section::DirEntry>()? {
                let count = entry.children.len() + entry.ref_children.len();
                counts.child_bytes += count as u64 * if count > SMALL_LIST { CHILD_OF_MANY } else { CHILD };
            }
        }
        if let Some(mut messages) = image.section(SectionName::SnapshotDiff) {
            while let Some(entry) = messages.next::<snapshot_diff_section::DiffEntry>()? {
                counts.diffs(&entry, &mut messages)?;
            }
        }
        Ok(counts)
    }

    fn inode(&mut self, inode: &wire::INode) {
        self.name_bytes += inode.name().len() as u64;
        match (&inode.file, &inode.directory) {
            (Some(file), _) => self.file(file),
            (None, Some(directory)) => {
                self.directories += 1;
                self.features(&directory.acl, &directory.x_attrs);
            }
            (None, None) => {
                self.symlinks += 1;
                self.feature_bytes += inode.symlink.as_ref().map_or(0, |symlink| symlink.target().len() as u64);
            }
        }
    }

    fn file(&mut self, file: &wire::INodeFile) {
        self.files += 1;
        self.blocks += file.blocks.len() as u64;
        let replicas = if file.erasure_coding_policy_id.is_some() { 1 } else { file.replication() };
        self.replicas += file.blocks.len() as u64 * u64::from(replicas);
        if file.blocks.len() == 1 && file.file_uc.is_none() {
            self.fused += 1;
        } else if file.blocks.len() > BLOCKS_IN_RECORD {
            self.handles_in_lists += file.blocks.len() as u64;
        }
        self.feature_bytes += file.file_uc.as_ref().map_or(0, |open| open.encoded_len() as u64);
        self.features(&file.acl, &file.x_attrs);
    }

    fn features(&mut self, acl: &Option<wire::AclFeatureProto>, xattrs: &Option<wire::XAttrFeatureProto>) {
        self.feature_bytes += acl.as_ref().map_or(0, |acl| acl.encoded_len() as u64);
        self.feature_bytes += xattrs.as_ref().map_or(0, |xattrs| xattrs.encoded_len() as u64);
    }

    fn diffs(
        &mut self,
        entry: &snapshot_diff_section::DiffEntry,
        messages: &mut super::image::source::Messages<'_>,
    ) -> Result<(), Failure> {
        for _ in 0..entry.num_of_diff() as i32 {
            if entry.r#type() == snapshot_diff_section::diff_entry::Type::Filediff {
                self.diff_bytes += messages.expect::<snapshot_diff_section::FileDiff>()?.encoded_len() as u64;
                continue;
            }
            let diff: snapshot_diff_section::DirectoryDiff = messages.expect()?;
            self.diff_bytes += diff.encoded_len() as u64;
            for _ in 0..diff.created_list_size() as i32 {
                _ = messages.expect::<snapshot_diff_section::CreatedListEntry>()?;
                self.diff_bytes += HANDLE;
            }
        }
        Ok(())
    }

    /// Resident bytes by part.
    fn parts(&self) -> [(&'static str, u64); 9] {
        let inodes = self.files + self.directories + self.symlinks;
        [
            ("inode records", inodes * INODE),
            ("block records", (self.blocks - self.fused) * BLOCK),
            ("names", self.name_bytes),
            ("index of inode ids", inodes * INDEX_TENTHS / 10),
            ("index of block ids", self.blocks * INDEX_TENTHS / 10),
            ("child lists", self.child_bytes),
            ("block lists", self.handles_in_lists * HANDLE),
            ("attributes, open files, snapshots", self.feature_bytes + self.diff_bytes),
            ("replicas, once reported", self.replicas * REPLICA_TENTHS / 10),
        ]
    }
}
