//! What an arena file says of itself. FORMAT.md describes the bytes; the nouns there are the types here.

use super::Unfit;
use crate::StorageInfo;
use crate::image::Digest;
use mem::page::PAGE_BYTES;
use mem::persist::{Malformed, RestReader, RestWriter};
use vocab::{LayoutVersion, Txid};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// First bytes of the header.
const MAGIC: &[u8; 16] = b"IRONROOT ARENA\r\n";
/// First bytes of the manifest, and of the binding.
const MANIFEST_MAGIC: &[u8; 16] = b"ARENA MANIFEST\r\n";
const BINDING_MAGIC: &[u8; 16] = b"ARENA BINDING\r\n\0";
/// Version of the format itself.
const VERSION: u32 = 2;
/// Which sources laid out the memory: a number over those of all crates that decide on it (build.rs).
pub const BUILD: &str = env!("IRONROOT_MEMORY_LAYOUT");
/// Bytes of the header; where the pages begin.
pub(super) const HEADER_BYTES: usize = PAGE_BYTES;
/// Bytes of the manifest, and of the binding behind it.
pub(super) const BLOCK_BYTES: usize = 4_096;
/// Most page sets in a file.
const SETS_MAX: usize = 1_000;

/// Which state it is: the file system and the last transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Build that wrote it.
    pub build: String,
    /// VERSION of the directories.
    pub info: StorageInfo,
    /// Last transaction in it.
    pub txid: Txid,
}

/// The finalized segments since the newest image to the state's last transaction: how a restart without an image for it knows the edits it goes on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnd {
    /// First transaction of the first one.
    pub first: Txid,
    /// Bytes of their files.
    pub length: u64,
    /// xxh3 of first and last transaction, length and xxh3 of each.
    pub checksum: u64,
}

/// The image that was made from it, once there is one.
pub type Binding = Digest;

/// The header: what is known before the pages are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub identity: Identity,
    /// Pages in each set.
    pub sets: Vec<u32>,
}

/// The manifest: what is known afterwards. Where things are follows from the header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Manifest {
    /// xxh3 of the header block.
    pub header: u64,
    /// Bytes and xxh3 of the rest.
    pub rest: (u64, u64),
    /// xxh3 of the page table.
    pub table: u64,
    pub log: Option<LogEnd>,
}

/// A block of a fixed size: magic, content, zeros, and the xxh3 of all that in the last eight bytes.
fn seal(magic: &[u8; 16], content: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut block = magic.to_vec();
    block.extend(content);
    if block.len() + 8 > bytes {
        return None;
    }
    block.resize(bytes - 8, 0);
    let sum = xxh3_64(&block);
    block.extend(sum.to_le_bytes());
    Some(block)
}
fn unseal<'a>(magic: &[u8; 16], block: &'a [u8], what: &str) -> Result<&'a [u8], Unfit> {
    let damaged = || Unfit::Damaged(format!("the {what}"));
    let (content, sum) = block.split_last_chunk::<8>().ok_or_else(damaged)?;
    let content = content.strip_prefix(magic).filter(|_| xxh3_64(content) == u64::from_le_bytes(*sum));
    content.ok_or_else(damaged)
}

impl Header {
    /// The bytes of the header block; `None` if they are too many.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let Identity { build, info, txid } = &self.identity;
        let StorageInfo { layout, namespace_id, cluster_id, ctime, block_pool_id } = info;
        let mut rest = RestWriter::new();
        rest.u32(VERSION);
        rest.u32(PAGE_BYTES as u32);
        rest.text(build);
        rest.u32(layout.0.cast_unsigned());
        rest.u32(namespace_id.cast_unsigned());
        rest.text(cluster_id);
        rest.text(block_pool_id);
        rest.i64(*ctime);
        rest.u64(txid.0);
        rest.plain(&self.sets);
        seal(MAGIC, &rest.finish(), HEADER_BYTES)
    }
    /// Reads a header block.
    pub fn decode(block: &[u8]) -> Result<Header, Unfit> {
        let mut rest = RestReader::new(unseal(MAGIC, block, "header")?);
        Header::read(&mut rest).map_err(|error| Unfit::Damaged(format!("the header: {error}")))?.ok_or(Unfit::Build)
    }
    /// `None` for a header of another version or page size.
    fn read(rest: &mut RestReader<'_>) -> Result<Option<Header>, Malformed> {
        if (rest.u32()?, rest.u32()?) != (VERSION, PAGE_BYTES as u32) {
            return Ok(None);
        }
        let build = rest.text()?.to_owned();
        let (layout, namespace_id) = (LayoutVersion(rest.u32()?.cast_signed()), rest.u32()?.cast_signed());
        let (cluster_id, block_pool_id) = (rest.text()?.to_owned(), rest.text()?.to_owned());
        let (ctime, txid) = (rest.i64()?, Txid(rest.u64()?));
        let sets: Vec<u32> = rest.plain()?;
        if sets.len() > SETS_MAX {
            return Err(Malformed("fewer sets"));
        }
        let info = StorageInfo { layout, namespace_id, cluster_id, ctime, block_pool_id };
        Ok(Some(Header { identity: Identity { build, info, txid }, sets }))
    }

    /// Pages in all sets.
    pub fn pages(&self) -> u64 {
        self.sets.iter().map(|pages| u64::from(*pages)).sum()
    }
    /// Where the rest begins.
    pub fn rest_offset(&self) -> u64 {
        HEADER_BYTES as u64 + self.pages() * PAGE_BYTES as u64
    }
    /// Bytes of the page table.
    pub fn table_bytes(&self) -> u64 {
        self.pages() * 8
    }
    /// Where the manifest begins, for a rest of so many bytes.
    pub fn manifest_offset(&self, rest_bytes: u64) -> u64 {
        (self.rest_offset() + rest_bytes + self.table_bytes()).next_multiple_of(BLOCK_BYTES as u64)
    }
}

impl Manifest {
    /// The bytes of the manifest block.
    pub fn encode(&self) -> Vec<u8> {
        let Manifest { header, rest, table, log } = self;
        let mut out = RestWriter::new();
        [*header, rest.0, rest.1, *table].into_iter().for_each(|number| out.u64(number));
        out.bool(log.is_some());
        if let Some(LogEnd { first, length, checksum }) = log {
            [first.0, *length, *checksum].into_iter().for_each(|number| out.u64(number));
        }
        seal(MANIFEST_MAGIC, &out.finish(), BLOCK_BYTES).expect("some numbers fit a block")
    }
    /// Reads a manifest block.
    pub fn decode(block: &[u8]) -> Result<Manifest, Unfit> {
        let mut rest = RestReader::new(unseal(MANIFEST_MAGIC, block, "manifest")?);
        Manifest::read(&mut rest).map_err(|error| Unfit::Damaged(format!("the manifest: {error}")))
    }
    fn read(rest: &mut RestReader<'_>) -> Result<Manifest, Malformed> {
        let (header, of_rest, table) = (rest.u64()?, (rest.u64()?, rest.u64()?), rest.u64()?);
        let log = match rest.bool()? {
            true => Some(LogEnd { first: Txid(rest.u64()?), length: rest.u64()?, checksum: rest.u64()? }),
            false => None,
        };
        Ok(Manifest { header, rest: of_rest, table, log })
    }
}

/// The bytes of the binding block.
pub(super) fn encode_binding(image: &Binding) -> Vec<u8> {
    seal(BINDING_MAGIC, &image.0, BLOCK_BYTES).expect("a digest fits a block")
}
/// Reads a binding block; anything but a whole one is none.
pub(super) fn decode_binding(block: &[u8]) -> Option<Binding> {
    let content = unseal(BINDING_MAGIC, block, "binding").ok()?;
    content.first_chunk().copied().map(Digest)
}

/// Checksum of one page. What is read must be that page of that checkpoint, not one that an earlier file left in its place.
pub(super) fn page_checksum(page: &[u8], number: u64, txid: Txid) -> u64 {
    xxh3_64_with_seed(page, (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ txid.0.rotate_left(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let info = StorageInfo {
            layout: LayoutVersion::CURRENT,
            namespace_id: -5,
            cluster_id: "CID-x".into(),
            ctime: 7,
            block_pool_id: "BP-1".into(),
        };
        Header { identity: Identity { build: BUILD.into(), info, txid: Txid(9) }, sets: vec![3, 0, 40] }
    }

    #[test]
    fn blocks_come_back_and_every_changed_byte_is_found() {
        let header = header();
        let block = header.encode().unwrap();
        assert_eq!((block.len(), Header::decode(&block).unwrap()), (HEADER_BYTES, header.clone()));
        assert_eq!((header.pages(), header.manifest_offset(1)), (43, (44 << 16) + 4_096));
        let log = Some(LogEnd { first: Txid(1), length: 2, checksum: 3 });
        let manifest = Manifest { header: 1, rest: (2, 3), table: 4, log };
        let block = manifest.encode();
        assert_eq!(Manifest::decode(&block).unwrap(), manifest);
        for at in 0..block.len() {
            let mut changed = block.clone();
            changed[at] ^= 1;
            assert!(Manifest::decode(&changed).is_err(), "{at}");
        }
        let binding = Digest([7; 16]);
        assert_eq!(decode_binding(&encode_binding(&binding)), Some(binding));
        assert_eq!(decode_binding(&[0; BLOCK_BYTES]), None);
        assert_eq!(decode_binding(&[]), None);
    }

    #[test]
    fn a_page_elsewhere_or_of_another_checkpoint_is_another_page() {
        let sums = [(0, 1), (1, 1), (0, 2)].map(|(number, txid)| page_checksum(&[5; PAGE_BYTES], number, Txid(txid)));
        assert!(sums[0] != sums[1] && sums[0] != sums[2] && sums[1] != sums[2]);
    }

    #[test]
    fn a_header_too_long_is_not_written() {
        let mut header = header();
        header.identity.info.cluster_id = "x".repeat(HEADER_BYTES);
        assert_eq!(header.encode(), None);
    }
}
