//! Purpose: images of before the protobuf format (layouts -16 to -51) into a state: releases 0.18 to 2.3, for an upgrade.
//! Called by: image (a file without its magic), storage (the image of a directory without transaction ids).
//! Calls: namespace (bulk building), state.
//! Never: writes this format; drops what it does not understand.
//! Invariants: any bytes give a state or an error with an offset; nothing is reserved for a count that the file cannot hold.

mod build;
mod cursor;
mod nodes;
mod tail;

use super::load::Loaded;
use super::summary::ImageError;
use cursor::Cursor;
use nodes::Nodes;
use state::State;
use vocab::layout::{Feature, LayoutVersion};
use vocab::{BlockId, GenerationStamp, InodeId, Txid};

/// Name of the "section" in errors.
const SECTION: &str = "of an old image";
/// Stamps that legacy blocks may still get (Hadoop's `RESERVED_LEGACY_GENERATION_STAMPS`).
const RESERVED_STAMPS: i64 = 1 << 40;

/// Whether a file begins like an image of this format.
pub fn is_legacy(file: &[u8]) -> bool {
    layout(file).is_some()
}

fn layout(file: &[u8]) -> Option<LayoutVersion> {
    let layout = LayoutVersion(i32::from_be_bytes(file.first_chunk().copied()?));
    let known = layout.supports(Feature::NamespaceQuota) && !layout.supports(Feature::ProtobufFormat);
    known.then_some(layout)
}

/// What stands before the inodes.
struct Header {
    namespace_id: u32,
    inodes: i64,
    txid: Txid,
    last_inode: Option<InodeId>,
    snapshot_counter: u32,
}

/// Loads the bytes of an image of this format into `state`, which must be empty.
///
/// # Errors
/// [`ImageError`]; `state` is gone then.
pub fn load(file: &[u8], mut state: State) -> Result<Loaded, ImageError> {
    let layout = layout(file).ok_or(ImageError::UnrecognizedFormat)?;
    let mut cursor = Cursor::new(file, layout);
    let header = header(&mut cursor, &mut state)?;
    let last = header.last_inode.unwrap_or(InodeId::ROOT);
    let mut nodes = Nodes::new(last);
    nodes.read(&mut cursor, header.inodes)?;
    nodes.read_under_construction(&mut cursor)?;
    if cursor.has(Feature::DelegationToken) {
        tail::secrets(&mut cursor, &mut state.tokens)?;
    }
    if cursor.has(Feature::Caching) {
        tail::caches(&mut cursor, &mut state.caches)?;
    }
    if cursor.remaining() > 0 {
        return Err(cursor.content("goes on after its end"));
    }
    state.sequences.inode = nodes.last_id();
    build::build(nodes, &mut state)?;
    state.tree.snapshots.counter = header.snapshot_counter;
    Ok(Loaded { state, txid: header.txid, layout, namespace_id: header.namespace_id })
}

fn header(cursor: &mut Cursor<'_>, state: &mut State) -> Result<Header, ImageError> {
    cursor.i32()?; // the layout
    if cursor.has(Feature::AddLayoutFlags) && cursor.i32()? != 0 {
        return Err(ImageError::Unsupported("layout flags".into()));
    }
    let (namespace_id, inodes) = (cursor.i32()? as u32, cursor.i64()?);
    let sequences = &mut state.sequences;
    sequences.stamp_v1 = GenerationStamp(cursor.i64()?);
    if cursor.has(Feature::SequentialBlockId) {
        sequences.stamp = GenerationStamp(cursor.i64()?);
        sequences.stamp_v1_limit = GenerationStamp(cursor.i64()?);
        sequences.block = BlockId(cursor.i64()?);
    } else {
        // blocks of before keep their random ids and stamps, new ones count on far above them
        sequences.stamp = GenerationStamp(sequences.stamp_v1.0.saturating_add(RESERVED_STAMPS));
        sequences.stamp_v1_limit = sequences.stamp;
    }
    let txid = if cursor.has(Feature::StoredTxids) { Txid(cursor.i64()?.max(0) as u64) } else { Txid(0) };
    let last_inode = if cursor.has(Feature::AddInodeId) { Some(InodeId(cursor.i64()?)) } else { None };
    let mut snapshot_counter = 0;
    if cursor.has(Feature::Snapshot) {
        snapshot_counter = cursor.i32()? as u32;
        if cursor.i32()? > 0 {
            return Err(ImageError::Unsupported("snapshots in an old layout".into()));
        }
    }
    if cursor.has(Feature::FsimageCompression) && cursor.bool()? {
        let codec = String::from_utf8_lossy(cursor.text()?).into_owned();
        return Err(ImageError::Unsupported(format!("the codec {codec} in an old layout")));
    }
    Ok(Header { namespace_id, inodes, txid, last_inode, snapshot_counter })
}
