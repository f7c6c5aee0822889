//! Blocks with their locations: `LocatedBlockProto` and `LocatedBlocksProto`, written straight onto the buffer of the answer.

use super::datanode::{found, put_info};
use super::encryption;
use super::erasure_coding;
use super::kinds::kind_to_wire;
use super::nested;
use blocks::{Blocks, Located, Node, Target};
use bytes::{BufMut, BytesMut};
use hadoop_proto::Message;
use hadoop_proto::hdfs::{DatanodeInfoProto, ExtendedBlockProto, LocatedBlockProto};
use hadoop_proto::wire::{Sink, WireType};
use ops::encryption::FileEncryption;
use ops::status::{LocatedBlock, LocatedBlocks};
use vocab::Block;

/// The empty block token: four empty fields, as a name node without block tokens sends it.
const NO_TOKEN: [u8; 8] = [0x0a, 0, 0x12, 0, 0x1a, 0, 0x22, 0];

/// Writes the content of a block with its pool.
pub fn put_extended(out: &mut BytesMut, pool: &str, block: &Block) {
    out.put_bytes_field(1, pool.as_bytes());
    out.put_varint_field(2, block.id.0 as u64);
    out.put_varint_field(3, block.stamp.0 as u64);
    out.put_varint_field(4, block.length);
}

/// Writes the content of `LocatedBlocksProto`.
pub fn put_blocks(
    out: &mut BytesMut,
    blocks: &Blocks,
    pool: &str,
    list: &LocatedBlocks,
    encryption: Option<&FileEncryption>,
) {
    out.put_varint_field(1, list.file_length);
    for block in &list.blocks {
        nested(out, 2, |out| put_block(out, blocks, pool, block));
    }
    out.put_varint_field(3, list.under_construction.into());
    if let Some(last) = &list.last {
        nested(out, 4, |out| put_block(out, blocks, pool, last));
    }
    // Quirk: an_empty_file_has_no_complete_last_block: Java says so of closed ones too
    out.put_varint_field(5, u64::from(list.last_complete && list.last.is_some()));
    if let Some(encryption) = encryption {
        out.put_message_field(6, &encryption::file(encryption));
    }
    if let Some(policy) = &list.erasure_coding {
        out.put_message_field(7, &erasure_coding::policy(policy));
    }
}

/// Writes the content of `LocatedBlockProto`. Locations that are gone are left out.
pub fn put_block(out: &mut BytesMut, blocks: &Blocks, pool: &str, block: &LocatedBlock) {
    let LocatedBlock { offset, located } = block;
    let list = || located.locations.iter().filter_map(|t| found(blocks, t));
    nested(out, 1, |out| put_extended(out, pool, &located.block));
    out.put_varint_field(2, *offset);
    for (node, ..) in list() {
        nested(out, 3, |out| put_info(out, 0, node));
    }
    out.put_varint_field(4, u64::from(located.corrupt));
    out.put_bytes_field(5, &NO_TOKEN);
    let count = list().count();
    if count > 0 {
        out.put_tag(6, WireType::Bytes);
        out.put_varint(count as u64);
        if blocks.caching.is_empty() {
            out.put_bytes(0, count);
        } else {
            list().for_each(|(node, ..)| out.put_u8(blocks.caching.is_cached(located.block.id, node.number).into()));
        }
    }
    for (.., target) in list() {
        out.put_varint_field(7, kind_to_wire(target.kind) as u64);
    }
    for (_, id, _) in list() {
        out.put_bytes_field(8, id.as_bytes());
    }
    put_indices(out, blocks, located);
}

/// Which internal block of a striped group each place has, with a token for each.
fn put_indices(out: &mut BytesMut, blocks: &Blocks, located: &Located) {
    // clients take for a group what has this field, though it be empty
    let Some(indices) = &located.indices else { return };
    let there = |at: usize| located.locations.get(at).is_none_or(|t| found(blocks, t).is_some());
    let indices: Vec<u8> = indices.iter().enumerate().filter(|(at, _)| there(*at)).map(|(_, index)| *index).collect();
    out.put_bytes_field(9, &indices);
    indices.iter().for_each(|_| out.put_bytes_field(10, &NO_TOKEN));
}

/// A DataNode as a message of its own.
pub fn info(node: &Node) -> DatanodeInfoProto {
    let mut out = BytesMut::new();
    put_info(&mut out, 0, node);
    DatanodeInfoProto::decode(out.freeze()).expect("written as this message")
}

/// A block to be recovered: no offset, no storages.
pub fn recovering(blocks: &Blocks, block: &Block, locations: &[Target], pool: &str) -> LocatedBlockProto {
    let locs: Vec<_> = locations.iter().filter_map(|t| found(blocks, t)).map(|(node, ..)| info(node)).collect();
    LocatedBlockProto {
        b: ExtendedBlockProto {
            pool_id: pool.to_owned(),
            block_id: block.id.0 as u64,
            generation_stamp: block.stamp.0 as u64,
            num_bytes: Some(block.length),
        },
        offset: u64::MAX,
        is_cached: vec![false; locs.len()],
        locs,
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::hdfs::LocatedBlocksProto;

    #[test]
    fn an_empty_file_has_no_complete_last_block() {
        let list = LocatedBlocks { last_complete: true, ..LocatedBlocks::default() };
        let mut out = BytesMut::new();
        put_blocks(&mut out, &Blocks::default(), "BP", &list, None);
        let expected = LocatedBlocksProto { is_last_block_complete: false, ..Default::default() };
        assert_eq!(out, expected.encode_to_vec());
    }
}
