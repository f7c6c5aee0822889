//! `HdfsFileStatusProto`, written straight onto the buffer of the answer.

use super::encryption;
use super::erasure_coding;
use super::located::put_blocks;
use super::nested;
use blocks::Blocks;
use bytes::BytesMut;
use hadoop_proto::hdfs::hdfs_file_status_proto::FileType;
use hadoop_proto::wire::{Sink, WireType, varint_length};
use ops::status::{FileStatus, LocatedBlocks};
use record::KindTag;

/// Locations to go with a status, and what their nodes are looked up in.
pub struct Locations<'a> {
    /// The file's blocks.
    pub located: &'a LocatedBlocks,
    /// The DataNodes.
    pub blocks: &'a Blocks,
    /// Block pool id.
    pub pool: &'a str,
}

/// Writes the content of a status.
pub fn put_status(out: &mut BytesMut, status: &FileStatus<'_>, locations: Option<Locations<'_>>) {
    let kind = match status.kind {
        KindTag::Directory => FileType::IsDir,
        KindTag::Symlink => FileType::IsSymlink,
        KindTag::File | KindTag::Reference => FileType::IsFile,
    };
    out.put_varint_field(1, kind as u64);
    out.put_bytes_field(2, &status.name);
    out.put_varint_field(3, status.length);
    let mode = u64::from(status.mode.bits());
    out.put_tag(4, WireType::Bytes);
    out.put_varint(1 + varint_length(mode) as u64);
    out.put_varint_field(1, mode);
    out.put_bytes_field(5, status.owner.as_bytes());
    out.put_bytes_field(6, status.group.as_bytes());
    out.put_varint_field(7, status.mtime.0 as u64);
    out.put_varint_field(8, status.atime.0 as u64);
    if let Some(target) = &status.symlink {
        out.put_bytes_field(9, target);
    }
    out.put_varint_field(10, status.replication.into());
    out.put_varint_field(11, status.block_size);
    if let Some(Locations { located, blocks, pool }) = locations {
        nested(out, 12, |out| put_blocks(out, blocks, pool, located, status.encryption.as_deref()));
    }
    out.put_varint_field(13, status.id.0 as u64);
    out.put_varint_field(14, status.children.into());
    if let Some(encryption) = &status.encryption {
        out.put_message_field(15, &encryption::file(encryption));
    }
    out.put_varint_field(16, status.storage_policy.into());
    if let Some(policy) = &status.erasure_coding {
        out.put_message_field(17, &erasure_coding::policy(policy));
    }
    out.put_varint_field(18, status.flags.0.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::Message;
    use hadoop_proto::hdfs::{FsPermissionProto, HdfsFileStatusProto, LocatedBlocksProto};
    use ops::status::StatusFlags;
    use vocab::{InodeId, Mode, TimeMs};

    #[test]
    fn equals_prost() {
        let (empty, nodes) =
            (LocatedBlocks { file_length: 7, last_complete: true, ..Default::default() }, Blocks::default());
        for (located, symlink, accessed, mode) in
            [(false, None, -1, 0o755), (true, Some(&b"/t"[..]), 1_796_061_337_935, 0), (false, None, 0, 0o1777)]
        {
            let status = FileStatus {
                kind: KindTag::File,
                name: b"f\xff"[..].into(),
                id: InodeId(16_406),
                length: 1 << 40,
                replication: 3,
                block_size: 128 << 20,
                mtime: TimeMs(1_796_061_337_922),
                atime: TimeMs(accessed),
                mode: Mode::new(mode),
                owner: "root".into(),
                group: "supergroup".into(),
                symlink: symlink.map(Into::into),
                children: 2,
                storage_policy: 7,
                flags: StatusFlags(9),
                erasure_coding: None,
                encryption: None,
            };
            let locations = LocatedBlocksProto { file_length: 7, ..Default::default() };
            let expected = HdfsFileStatusProto {
                file_type: 2,
                path: b"f\xff"[..].into(),
                length: 1 << 40,
                permission: FsPermissionProto { perm: mode.into() },
                owner: "root".into(),
                group: "supergroup".into(),
                modification_time: 1_796_061_337_922,
                access_time: accessed as u64,
                symlink: symlink.map(Into::into),
                block_replication: Some(3),
                blocksize: Some(128 << 20),
                locations: located.then_some(locations),
                file_id: Some(16_406),
                children_num: Some(2),
                storage_policy: Some(7),
                flags: Some(9),
                ..Default::default()
            };
            let mut out = BytesMut::new();
            put_status(&mut out, &status, located.then_some(Locations { located: &empty, blocks: &nodes, pool: "BP" }));
            assert_eq!(&out[..], expected.encode_to_vec());
        }
    }
}
