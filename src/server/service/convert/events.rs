//! Edit records as events for those who follow the log (Hadoop's `InotifyFSEditLogOpTranslator`).

use super::attributes::{acl_to_wire, xattr_to_wire};
use edit::Record;
use edit::record::{AddClose, Permission};
use hadoop_proto::Message;
use hadoop_proto::hdfs::{
    AppendEventProto, CloseEventProto, CreateEventProto, EventBatchProto, EventProto, EventType, FsPermissionProto,
    INodeType, MetadataUpdateEventProto, MetadataUpdateType, RenameEventProto, TruncateEventProto, UnlinkEventProto,
};
use vocab::{Mode, Txid};

/// The events of a record; `None` for one that is none of the followers' business.
pub fn batch(txid: Txid, record: &Record<'_>) -> Option<EventBatchProto> {
    let events = match record {
        Record::Add(add) if add.blocks.is_empty() => vec![created_file(add)],
        Record::Add(add) => vec![appended(&add.path, false)],
        Record::Close(close) => {
            let length: u64 = close.blocks.iter().map(|block| block.length).sum();
            vec![closed(&close.path, length as i64, close.mtime.0)]
        }
        Record::Append { path, new_block, .. } => vec![appended(path, *new_block)],
        Record::Concat { target, sources, time, .. } => {
            let unlinked = sources.iter().map(|source| unlinked(source, time.0));
            // the length is not in the record
            std::iter::once(appended(target, false)).chain(unlinked).chain([closed(target, -1, time.0)]).collect()
        }
        Record::RenameOld { src, dst, time, .. } | Record::Rename { src, dst, time, .. } => {
            let renamed = RenameEventProto { src_path: text(src), dest_path: text(dst), timestamp: time.0 };
            vec![event(EventType::EventRename, &renamed)]
        }
        Record::Delete { path, time, .. } => vec![unlinked(path, time.0)],
        Record::Mkdir { path, mtime, permission, .. } => {
            let made = created(INodeType::ITypeDirectory, path, mtime.0, permission);
            vec![event(EventType::EventCreate, &made)]
        }
        Record::Symlink { path, target, atime, permission, .. } => {
            let made = created(INodeType::ITypeSymlink, path, atime.0, permission);
            vec![event(EventType::EventCreate, &CreateEventProto { symlink_target: Some(text(target)), ..made })]
        }
        Record::Truncate { path, new_length, time, .. } => {
            let truncated = TruncateEventProto { path: text(path), file_size: *new_length as i64, timestamp: time.0 };
            vec![event(EventType::EventTruncate, &truncated)]
        }
        _ => vec![event(EventType::EventMetadata, &metadata(record)?)],
    };
    Some(EventBatchProto { txid: txid.0 as i64, events })
}

/// What a record changes about an inode, its name and content apart.
fn metadata(record: &Record<'_>) -> Option<MetadataUpdateEventProto> {
    Some(match record {
        Record::SetReplication { path, replication } => MetadataUpdateEventProto {
            replication: Some((*replication).into()),
            ..changed(MetadataUpdateType::MetaTypeReplication, path)
        },
        Record::SetPermissions { path, mode } => {
            MetadataUpdateEventProto { perms: Some(perms(*mode)), ..changed(MetadataUpdateType::MetaTypePerms, path) }
        }
        Record::SetOwner { path, user, group } => MetadataUpdateEventProto {
            owner_name: Some(user.as_deref().unwrap_or_default().to_owned()),
            group_name: Some(group.as_deref().unwrap_or_default().to_owned()),
            ..changed(MetadataUpdateType::MetaTypeOwner, path)
        },
        Record::Times { path, mtime, atime } => MetadataUpdateEventProto {
            mtime: Some(mtime.0),
            atime: Some(atime.0),
            ..changed(MetadataUpdateType::MetaTypeTimes, path)
        },
        Record::SetXattr { path, xattrs, .. } | Record::RemoveXattr { path, xattrs, .. } => MetadataUpdateEventProto {
            x_attrs: xattrs.iter().map(xattr_to_wire).collect(),
            x_attrs_removed: Some(matches!(record, Record::RemoveXattr { .. })),
            ..changed(MetadataUpdateType::MetaTypeXattrs, path)
        },
        Record::SetAcl { path, entries } => MetadataUpdateEventProto {
            acls: entries.iter().map(acl_to_wire).collect(),
            ..changed(MetadataUpdateType::MetaTypeAcls, path)
        },
        _ => return None,
    })
}

/// A change in which all fields that Hadoop always sends have the values of none.
fn changed(kind: MetadataUpdateType, path: &[u8]) -> MetadataUpdateEventProto {
    MetadataUpdateEventProto {
        path: text(path),
        r#type: kind as i32,
        mtime: Some(0),
        atime: Some(0),
        replication: Some(0),
        owner_name: Some(String::new()),
        group_name: Some(String::new()),
        x_attrs_removed: Some(false),
        ..MetadataUpdateEventProto::default()
    }
}

fn created_file(add: &AddClose<'_>) -> EventProto {
    let made = CreateEventProto {
        replication: Some(add.replication.into()),
        overwrite: Some(add.overwrite),
        default_block_size: Some(add.block_size as i64),
        erasure_coded: Some(add.erasure_coding_policy != 0),
        ..created(INodeType::ITypeFile, &add.path, add.atime.0, &add.permission)
    };
    event(EventType::EventCreate, &made)
}

fn created(kind: INodeType, path: &[u8], ctime: i64, permission: &Permission<'_>) -> CreateEventProto {
    CreateEventProto {
        r#type: kind as i32,
        path: text(path),
        ctime,
        owner_name: permission.user.to_string(),
        group_name: permission.group.to_string(),
        perms: perms(permission.mode),
        replication: Some(0),
        symlink_target: Some(String::new()),
        overwrite: Some(false),
        default_block_size: Some(0),
        erasure_coded: None,
    }
}

fn appended(path: &[u8], new_block: bool) -> EventProto {
    event(EventType::EventAppend, &AppendEventProto { path: text(path), new_block: Some(new_block) })
}

fn closed(path: &[u8], file_size: i64, timestamp: i64) -> EventProto {
    event(EventType::EventClose, &CloseEventProto { path: text(path), file_size, timestamp })
}

fn unlinked(path: &[u8], timestamp: i64) -> EventProto {
    event(EventType::EventUnlink, &UnlinkEventProto { path: text(path), timestamp })
}

fn event(kind: EventType, contents: &impl Message) -> EventProto {
    EventProto { r#type: kind as i32, contents: contents.encode_to_vec().into() }
}

fn perms(mode: u16) -> FsPermissionProto {
    FsPermissionProto { perm: (mode & Mode::MASK).into() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use edit::frame::{self, Decoded};
    use hadoop_proto::hdfs::{EventsListProto, GetEditsFromTxidResponseProto};
    use std::fmt::Write;

    /// `events.tsv` was written by Hadoop 3.5.0 from the log beside it: for every transaction the answer that holds its events alone.
    #[test]
    fn events_of_every_kind_of_record_are_byte_for_byte_those_of_hadoop() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/edits/3.5.0/allops/");
        let read = |name: &str| std::fs::read(format!("{folder}{name}")).expect("a golden file");
        let log = read("edits_0000000000000000001-0000000000000000123");
        let (layout, mut at) = frame::header(&log).unwrap();
        let mut seen = 0;
        for line in String::from_utf8(read("events.tsv")).unwrap().lines().filter(|line| !line.starts_with('#')) {
            let Decoded::Frame(frame) = frame::decode(&log[at..], layout, 1 << 20).unwrap() else { panic!("{line}") };
            at += frame.length;
            let (txid, first) = (frame.txid.0 as i64, frame.txid.0);
            let answer = batch(frame.txid, &frame.record).map(|batch| GetEditsFromTxidResponseProto {
                events_list: EventsListProto {
                    events: Vec::new(),
                    first_txid: txid,
                    last_txid: txid,
                    sync_txid: 999,
                    batch: vec![batch],
                },
            });
            let hex = answer.map_or("-".to_owned(), |answer| {
                answer.encode_to_vec().iter().fold(String::new(), |mut hex, byte| {
                    write!(hex, "{byte:02x}").unwrap();
                    hex
                })
            });
            let mut fields = line.split('\t');
            assert_eq!(fields.next().unwrap(), first.to_string());
            let opcode = fields.next().unwrap();
            assert_eq!(hex, fields.next().unwrap(), "{first} {opcode}");
            seen += usize::from(hex != "-");
        }
        assert_eq!((at, seen), (log.len(), 54));
    }
}
