//! A namespace as an image file: written directly in Hadoop's format, from a seed and a size, so that a rival's loader and ours read the same.
//!
//! *fresh*: a warehouse as it is after it was filled once: ids in sequence, INODE section in order of ids. *aged*: the same years later: one
//! id in twenty is left, records stand in the order of the buckets of Java's inode map, names are not in order of ids, a tenth carries an ACL or
//! an attribute, a tenth of the blocks has a random id from before sequential ones, one directory has up to a million entries.
//!
//! Memory: a few bytes a directory (fresh), 12 an inode besides (aged).

use super::ask::{Expected, Known};
use super::shape::{Node, Shape};
use hadoop_proto::wire::Sink;
use md5::{Digest, Md5};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// How old the namespace is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    Fresh,
    Aged,
}

impl Profile {
    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        if self == Profile::Fresh { "fresh" } else { "aged" }
    }
}

/// Files that are asked for after a load.
const SAMPLE: u64 = 10_000;

/// What was generated.
pub struct Generated {
    pub figures: Figures,
    pub expected: Expected,
}

/// What a namespace must count after it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    pub inodes: u64,
    pub blocks: u64,
    pub image_bytes: u64,
}

/// Numbers of the namespace in VERSION and NS_INFO.
const NAMESPACE_ID: u64 = 7;
const USERS: u64 = 200;
const GROUPS: u64 = 40;
/// Stamps below are of the time of random block ids.
const LEGACY_LIMIT: u64 = 1_000_000;
const FIRST_BLOCK: u64 = (1 << 30) + 1;
const BLOCK_BYTES: u64 = 128 << 20;
const BEGUN_MS: u64 = 1_650_000_000_000;
/// Kinds of strings, as the top bits of their numbers.
const USER: u64 = 1 << 29;
const GROUP: u64 = 2 << 29;
const XATTR: u64 = 3 << 29;

/// The file with its digest and the table of its sections.
struct Image {
    file: BufWriter<File>,
    digest: Md5,
    written: u64,
    sections: Vec<(&'static str, u64, u64)>,
}

impl Image {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
    }
    fn message(&mut self, out: &mut Vec<u8>, message: &[u8]) -> io::Result<()> {
        out.clear();
        out.put_delimited(message);
        self.put(out)
    }
    fn section(
        &mut self,
        name: &'static str,
        write: impl FnOnce(&mut Image, &mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let offset = self.written;
        write(self, &mut Vec::new())?;
        self.sections.push((name, self.written - offset, offset));
        Ok(())
    }
    fn finish(mut self) -> io::Result<(u64, String)> {
        let mut summary = Vec::new();
        summary.put_varint_field(1, 1);
        summary.put_varint_field(2, u64::from(-67i32 as u32));
        for (name, length, offset) in std::mem::take(&mut self.sections) {
            let mut entry = Vec::new();
            entry.put_bytes_field(1, name.as_bytes());
            entry.put_varint_field(2, length);
            entry.put_varint_field(3, offset);
            summary.put_bytes_field(4, &entry);
        }
        let mut out = Vec::new();
        out.put_delimited(&summary);
        let length = out.len() as u32;
        out.extend_from_slice(&length.to_be_bytes());
        self.put(&out)?;
        self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok((self.written, self.digest.finalize().iter().map(|b| format!("{b:02x}")).collect()))
    }
}

/// Writes VERSION, `seen_txid`, image and digest under `folder/current`, as after a format.
pub fn generate(folder: &Path, files: u64, profile: Profile) -> io::Result<Generated> {
    write(folder, Shape::new(files, profile == Profile::Aged))
}
/// The same with one block for each file.
pub fn generate_single(folder: &Path, files: u64, profile: Profile) -> io::Result<Generated> {
    write(folder, Shape::single(files, profile == Profile::Aged))
}

fn write(folder: &Path, shape: Shape) -> io::Result<Generated> {
    let current = folder.join("current");
    fs::create_dir_all(&current)?;
    let name = format!("fsimage_{:019}", 0);
    let file = BufWriter::with_capacity(1 << 20, File::create(current.join(&name))?);
    let mut image = Image { file, digest: Md5::new(), written: 0, sections: Vec::new() };
    image.put(b"HDFSIMG1")?;
    image.section("NS_INFO", |image, out| image.message(out, &name_system(&shape)))?;
    image.section("ERASURE_CODING", |image, out| image.message(out, &[]))?;
    let (mut blocks, mut bytes) = (0, 0);
    image.section("INODE", |image, out| inodes(image, out, &shape, &mut blocks, &mut bytes))?;
    image.section("INODE_DIR", |image, out| directories(image, out, &shape))?;
    image.section("FILES_UNDERCONSTRUCTION", |_, _| Ok(()))?;
    image.section("SNAPSHOT", |image, out| image.message(out, &fields(&[(1, 0), (3, 0)])))?;
    image.section("INODE_REFERENCE", |_, _| Ok(()))?;
    image.section("SECRET_MANAGER", |image, out| image.message(out, &fields(&[(1, 0), (2, 0), (3, 0), (4, 0)])))?;
    image.section("CACHE_MANAGER", |image, out| image.message(out, &fields(&[(1, 1), (2, 0), (3, 0)])))?;
    image.section("STRING_TABLE", strings)?;
    let (image_bytes, digest) = image.finish()?;
    fs::write(current.join(format!("{name}.md5")), format!("{digest} *{name}\n"))?;
    fs::write(current.join("seen_txid"), "0\n")?;
    fs::write(current.join("VERSION"), version())?;
    let sample = shape.sample(SAMPLE).into_iter().map(|(node, path)| {
        let blocks = block_count(node.random);
        Known { path, id: node.id, length: file_bytes(node.random), blocks }
    });
    let expected =
        Expected { files: shape.files(), directories: shape.directory_count(), bytes, sample: sample.collect() };
    Ok(Generated { figures: Figures { inodes: shape.inodes(), blocks, image_bytes }, expected })
}

/// VERSION of a name node that was formatted.
pub fn version() -> String {
    format!(
        "#Fri Apr 15 05:20:00 UTC 2022\nnamespaceID={NAMESPACE_ID}\nblockpoolID=BP-1-127.0.0.1-{BEGUN_MS}\nstorageType=NAME_NODE\ncTime={BEGUN_MS}\nclusterID=CID-bench\nlayoutVersion=-67\n"
    )
}

fn fields(list: &[(u32, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    list.iter().for_each(|(number, value)| out.put_varint_field(*number, *value));
    out
}

fn name_system(shape: &Shape) -> Vec<u8> {
    let limit = if shape.aged() { LEGACY_LIMIT } else { 0 };
    let last_block = FIRST_BLOCK + 8 * shape.inodes();
    fields(&[
        (1, NAMESPACE_ID),
        (2, 1000.max(limit)),
        (3, LEGACY_LIMIT + 8 * shape.inodes()),
        (4, limit),
        (5, last_block),
        (6, 0),
        (8, i64::MIN as u64),
    ])
}

fn fixed64(out: &mut Vec<u8>, number: u8, value: u64) {
    out.push(number << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn inodes(image: &mut Image, out: &mut Vec<u8>, shape: &Shape, blocks: &mut u64, bytes: &mut u64) -> io::Result<()> {
    image.message(out, &fields(&[(1, shape.last_id()), (2, shape.inodes())]))?;
    let (mut body, mut message) = (Vec::new(), Vec::new());
    for node in shape.stored() {
        body.clear();
        message.clear();
        let number = if node.is_directory {
            directory_body(&mut body, &node);
            5
        } else {
            *blocks += file_body(&mut body, &node, shape.aged());
            *bytes += file_bytes(node.random);
            4
        };
        message.put_varint_field(1, if node.is_directory { 2 } else { 1 });
        message.put_varint_field(2, node.id);
        message.put_bytes_field(3, node.name.as_bytes());
        message.put_bytes_field(number, &body);
        image.message(out, &message)?;
    }
    Ok(())
}

fn permission(node: &Node, mode: u64) -> u64 {
    let group = node.owner % GROUPS + 1;
    (node.owner % USERS + 1) << 40 | group << 16 | mode
}

fn directory_body(out: &mut Vec<u8>, node: &Node) {
    let root = node.name.is_empty();
    out.put_varint_field(1, BEGUN_MS + node.index);
    out.put_varint_field(2, if root { i64::MAX as u64 } else { u64::MAX });
    out.put_varint_field(3, u64::MAX);
    fixed64(out, 4, permission(node, 0o755));
}

/// How many blocks a file has: 1.23 in the mean.
fn block_count(random: u64) -> u64 {
    match random % 100 {
        0..88 => 1,
        88..94 => 2,
        94..97 => 3,
        97..99 => 4,
        _ => 6,
    }
}

/// Bytes of the last block.
fn last_bytes(random: u64) -> u64 {
    1 + (random >> 20) % BLOCK_BYTES
}
/// Bytes of a file.
fn file_bytes(random: u64) -> u64 {
    (block_count(random) - 1) * BLOCK_BYTES + last_bytes(random)
}

/// Block `at` of the `count` of a file: its id, stamp and length.
fn block(node: &Node, aged: bool, at: u64, count: u64) -> (u64, u64, u64) {
    let random = node.random;
    let sequential = node.index * 8 + at;
    let legacy = aged && random >> 24 & 15 < 2 && count == 1;
    let id = if legacy { random.wrapping_mul(0x9e37_79b9_7f4a_7c15) } else { FIRST_BLOCK + sequential };
    let stamp = if legacy { 1000 + random % 900_000 } else { LEGACY_LIMIT + sequential };
    (id, stamp, if at + 1 < count { BLOCK_BYTES } else { last_bytes(random) })
}

/// All blocks of a namespace, as DataNodes report them: id, stamp, length.
pub fn blocks(files: u64, profile: Profile, each: &mut dyn FnMut(u64, u64, u64)) {
    blocks_of(&Shape::new(files, profile == Profile::Aged), each);
}
/// Those of a namespace with one block for each file.
pub fn single_blocks(files: u64, profile: Profile, each: &mut dyn FnMut(u64, u64, u64)) {
    blocks_of(&Shape::single(files, profile == Profile::Aged), each);
}

fn blocks_of(shape: &Shape, each: &mut dyn FnMut(u64, u64, u64)) {
    for node in shape.stored().filter(|node| !node.is_directory) {
        let count = block_count(node.random);
        for at in 0..count {
            let (id, stamp, length) = block(&node, shape.aged(), at, count);
            each(id, stamp, length);
        }
    }
}

fn file_body(out: &mut Vec<u8>, node: &Node, aged: bool) -> u64 {
    let random = node.random;
    let count = block_count(random);
    let mtime = BEGUN_MS + node.index * 40;
    out.put_varint_field(1, if random >> 8 & 31 == 0 { 2 } else { 3 });
    out.put_varint_field(2, mtime);
    out.put_varint_field(3, mtime + (random >> 16) % 86_400_000);
    out.put_varint_field(4, BLOCK_BYTES);
    fixed64(out, 5, permission(node, 0o644));
    for at in 0..count {
        let (id, stamp, length) = block(node, aged, at, count);
        out.put_bytes_field(6, &fields(&[(1, id), (2, stamp), (3, length)]));
    }
    if aged {
        match random >> 32 & 63 {
            0..3 => out.put_bytes_field(8, &acl(random)),
            3..6 => out.put_bytes_field(9, &attribute(random)),
            _ => {}
        }
    }
    out.put_varint_field(10, 0);
    out.put_varint_field(11, 0);
    count
}

/// Three entries: a named user, the group, the mask.
fn acl(random: u64) -> Vec<u8> {
    let user = (random % USERS + 1) as u32;
    let entries = [4 | user << 6, 5 | 1 << 3, 7 | 2 << 3];
    let mut out = Vec::new();
    let packed: Vec<u8> = entries.iter().flat_map(|e| e.to_le_bytes()).collect();
    out.put_bytes_field(2, &packed);
    out
}

/// One attribute of the user's namespace with eight bytes.
fn attribute(random: u64) -> Vec<u8> {
    let mut entry = vec![1 << 3 | 5];
    entry.extend_from_slice(&(1u32 << 6).to_le_bytes());
    entry.put_bytes_field(2, &random.to_le_bytes());
    let mut out = Vec::new();
    out.put_bytes_field(1, &entry);
    out
}

fn directories(image: &mut Image, out: &mut Vec<u8>, shape: &Shape) -> io::Result<()> {
    let (mut children, mut message) = (Vec::new(), Vec::new());
    for directory in shape.stored_directories() {
        children.clear();
        message.clear();
        shape.children(directory, &mut |id| children.put_varint(id));
        if children.is_empty() {
            continue;
        }
        message.put_varint_field(1, shape.id_of(directory));
        message.put_bytes_field(2, &children);
        image.message(out, &message)?;
    }
    Ok(())
}

fn strings(image: &mut Image, out: &mut Vec<u8>) -> io::Result<()> {
    image.message(out, &fields(&[(1, USERS + GROUPS + 1), (2, 3)]))?;
    let users = (1..=USERS).map(|n| (USER | n, format!("user{n:03}")));
    let groups = (1..=GROUPS).map(|n| (GROUP | n, format!("group{n:02}")));
    for (id, text) in users.chain(groups).chain([(XATTR | 1, "checksum".to_owned())]) {
        let mut entry = fields(&[(1, id)]);
        entry.put_bytes_field(2, text.as_bytes());
        image.message(out, &entry)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;
    use storage::image::{load, read_digest_file};

    #[test]
    fn what_is_generated_loads_and_counts_as_told() {
        let folder = std::env::temp_dir().join(format!("bench-generate-{}", std::process::id()));
        for profile in [Profile::Fresh, Profile::Aged] {
            let Generated { figures, expected } = generate(&folder, 3_000, profile).expect("written");
            let name = format!("fsimage_{:019}", 0);
            let read = |name: &str| fs::read(folder.join("current").join(name)).expect("there");
            let (image, digest_name) = (read(&name), format!("{name}.md5"));
            assert_eq!(image.len() as u64, figures.image_bytes);
            let digest = read_digest_file(&read(&digest_name), &digest_name, &name).expect("a digest");
            let state = load(&image, digest, World::empty()).map_err(|e| e.to_string()).expect("loads").state;
            assert_eq!(state.tree.inode_count(), figures.inodes, "{profile:?}");
            assert_eq!(state.store.blocks().count() as u64, figures.blocks, "{profile:?}");
            assert_eq!(state.tree.check(&state.store), Vec::<String>::new(), "{profile:?}");
            assert_eq!((expected.files, expected.directories + 3_000), (3_000, figures.inodes), "{profile:?}");
            assert_eq!(expected.sample.len() as u64, SAMPLE);
            for known in &expected.sample {
                let Ok(found) = state.tree.resolve(&state.store, known.path.as_bytes()) else { panic!("{known:?}") };
                assert_eq!(found.last().map(|inode| state.store.inode_id(inode).0), Some(known.id as i64), "{known:?}");
            }
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}
