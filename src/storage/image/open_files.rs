//! What the section of open files tells beyond Hadoop's: what a truncate that is under way cuts the last block of a file to, or makes it of.
//!
//! Quirk: an_image_tells_what_a_truncate_makes_a_block_of: Hadoop's images do not, so that a name node that starts from one cannot finish the cut, and
//! has the only replicas of a block deleted that is to be copied. Here each entry may have one more field, which Hadoop skips.

use super::cut::Records;
use super::inode::parse_block;
use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use state::State;
use vocab::{Block, InodeId};

/// The field, a `BlockProto`: far from those that Hadoop may come to use.
pub(super) const TRUNCATE: u32 = 1_001;

/// A `BlockProto`.
pub(super) fn encode_block(block: &Block) -> Vec<u8> {
    let Block { id, length, stamp } = *block;
    let mut m = Vec::new();
    m.put_varint_field(1, id.0 as u64);
    m.put_varint_field(2, stamp.0 as u64);
    m.put_varint_field(3, length);
    m
}

/// Goes on with the truncates that the entries of the section tell of.
pub(super) fn load(entries: &mut Records<'_>, state: &mut State) -> Result<(), ImageError> {
    while let Some(message) = entries.next()? {
        let truncate = parse(message).map_err(|e| entries.wire(e))?;
        let State { store, blocks, .. } = state;
        if let Some((file, block)) = truncate
            && let Some(last) = store.find_inode(file).and_then(|file| store.last_block(file))
        {
            blocks.resume_truncate(store, store.block_core(last).id, block);
        }
    }
    Ok(())
}

fn parse(message: &[u8]) -> Result<Option<(InodeId, Block)>, WireError> {
    let (mut file, mut truncate) = (InodeId(0), None);
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Varint(v)) => file = InodeId(v as i64),
            (TRUNCATE, Value::Bytes(b)) => truncate = Some(parse_block(b)?),
            _ => {}
        }
    }
    Ok(truncate.map(|block| (file, block)))
}
