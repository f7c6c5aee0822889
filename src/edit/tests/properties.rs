//! Decoding is total; encoding and decoding are inverse.

use edit::record::{AddClose, CacheDirective, CachePool, Permission, RenameOption, Token};
use edit::{Decoded, Record, frame};
use proptest::prelude::*;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::time::TimeMs;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Block, BlockId, GenerationStamp, InodeId, LayoutVersion, Mode, RpcIds, StorageKind, Txid};

type Owned = Record<'static>;

fn path() -> impl Strategy<Value = edit::record::Bytes<'static>> {
    "(/[a-zäß中🐱\\\\ ]{1,9}){1,4}".prop_map(|text| text.into_bytes().into())
}
fn text() -> impl Strategy<Value = edit::record::Text<'static>> {
    "[a-z🐱é]{1,12}".prop_map(Into::into)
}
fn time() -> impl Strategy<Value = TimeMs> {
    any::<i64>().prop_map(TimeMs)
}
fn rpc() -> impl Strategy<Value = Option<RpcIds>> {
    proptest::option::of(
        (any::<[u8; 16]>(), any::<i32>()).prop_map(|(client_id, call_id)| RpcIds { client_id, call_id }),
    )
}
fn block() -> impl Strategy<Value = Block> {
    (any::<i64>(), any::<u64>(), any::<i64>()).prop_map(|(id, length, stamp)| Block {
        id: BlockId(id),
        length,
        stamp: GenerationStamp(stamp),
    })
}
fn permission() -> impl Strategy<Value = Permission<'static>> {
    (text(), text(), any::<u16>()).prop_map(|(user, group, mode)| Permission { user, group, mode })
}
fn acl() -> impl Strategy<Value = Vec<AclEntry>> {
    let entry = (any::<bool>(), 0..4usize, proptest::option::of("[a-z]{1,5}"), 0..8u8).prop_map(
        |(default, kind, name, bits)| AclEntry {
            scope: if default { AclScope::Default } else { AclScope::Access },
            kind: [AclKind::User, AclKind::Group, AclKind::Mask, AclKind::Other][kind],
            name: name.map(Into::into),
            permission: Action(bits),
        },
    );
    proptest::collection::vec(entry, 0..4)
}
fn xattrs() -> impl Strategy<Value = Vec<Xattr>> {
    let namespaces = [
        XattrNamespace::User,
        XattrNamespace::Trusted,
        XattrNamespace::Security,
        XattrNamespace::System,
        XattrNamespace::Raw,
    ];
    let one = (0..5usize, "[a-z🐱]{1,200}", any::<Vec<u8>>()).prop_map(move |(namespace, name, value)| Xattr {
        namespace: namespaces[namespace],
        name: name.into(),
        value: value.into(),
    });
    proptest::collection::vec(one, 0..4)
}
fn add() -> impl Strategy<Value = Owned> {
    let numbers = (any::<i64>(), any::<u16>(), time(), time(), any::<u64>(), any::<u8>(), any::<u8>(), any::<bool>());
    (numbers, path(), proptest::collection::vec(block(), 0..4), permission(), acl(), xattrs(), text(), text(), rpc())
        .prop_map(|(numbers, path, blocks, permission, acl, xattrs, client_name, client_machine, rpc)| {
            let (inode_id, replication, mtime, atime, block_size, storage_policy, erasure_coding_policy, overwrite) =
                numbers;
            Record::Add(Box::new(AddClose {
                inode_id: InodeId(inode_id),
                path,
                replication,
                mtime,
                atime,
                block_size,
                blocks,
                permission,
                acl,
                xattrs,
                client_name,
                client_machine,
                overwrite,
                storage_policy,
                erasure_coding_policy,
                rpc,
            }))
        })
}
fn tree() -> impl Strategy<Value = Owned> {
    let options = proptest::collection::vec(
        prop_oneof![Just(RenameOption::None), Just(RenameOption::Overwrite), Just(RenameOption::ToTrash)],
        0..3,
    );
    prop_oneof![
        (path(), path(), time(), rpc()).prop_map(|(src, dst, time, rpc)| Record::RenameOld { src, dst, time, rpc }),
        (path(), time(), rpc()).prop_map(|(path, time, rpc)| Record::Delete { path, time, rpc }),
        (any::<i64>(), path(), time(), time(), permission(), acl(), xattrs()).prop_map(
            |(id, path, mtime, atime, permission, acl, xattrs)| {
                Record::Mkdir { inode_id: InodeId(id), path, mtime, atime, permission, acl, xattrs }
            }
        ),
        (path(), path(), time(), options, rpc()).prop_map(|(src, dst, time, options, rpc)| Record::Rename {
            src,
            dst,
            time,
            options,
            rpc
        }),
        (path(), proptest::collection::vec(path(), 0..5), time(), rpc())
            .prop_map(|(target, sources, time, rpc)| Record::Concat { target, sources, time, rpc }),
        (path(), any::<u16>()).prop_map(|(path, mode)| Record::SetPermissions { path, mode }),
        (path(), proptest::option::of(text()), proptest::option::of(text()))
            .prop_map(|(path, user, group)| Record::SetOwner { path, user, group }),
        (path(), time(), time()).prop_map(|(path, mtime, atime)| Record::Times { path, mtime, atime }),
        (path(), 0..6u8, any::<i64>()).prop_map(|(path, kind, quota)| Record::SetQuotaByKind {
            path,
            kind: StorageKind::from_ordinal(kind).unwrap(),
            quota
        }),
        (path(), acl()).prop_map(|(path, entries)| Record::SetAcl { path, entries }),
        (path(), xattrs(), rpc()).prop_map(|(path, xattrs, rpc)| {
            let given = !xattrs.is_empty();
            Record::SetXattr { path, xattrs, given, rpc }
        }),
        (path(), path(), proptest::option::of(Just(TimeMs(9))), rpc()).prop_map(|(root, name, mtime, rpc)| {
            Record::CreateSnapshot { root, name, mtime: mtime.or(Some(TimeMs(0))), rpc }
        }),
    ]
}
fn blocks_and_secrets() -> impl Strategy<Value = Owned> {
    let token = (text(), text(), text(), time(), time(), any::<i32>(), any::<i32>()).prop_map(
        |(owner, renewer, real_user, issue_date, max_date, sequence_number, master_key_id)| Token {
            owner,
            renewer,
            real_user,
            issue_date,
            max_date,
            sequence_number,
            master_key_id,
        },
    );
    let directive =
        (any::<i64>(), proptest::option::of(path()), proptest::option::of(any::<i16>()), proptest::option::of(text()))
            .prop_map(|(id, path, replication, pool)| CacheDirective {
                id,
                path,
                replication,
                pool,
                expiration: Some(TimeMs(id)),
            });
    let pool =
        (text(), proptest::option::of(text()), proptest::option::of(0..1024u16), proptest::option::of(any::<i64>()))
            .prop_map(|(name, owner, mode, limit)| CachePool {
                name,
                group: owner.clone(),
                owner,
                mode: mode.map(Mode::new),
                limit,
                max_relative_expiry: limit,
                default_replication: None,
            });
    prop_oneof![
        (path(), proptest::collection::vec(block(), 0..5), rpc())
            .prop_map(|(path, blocks, rpc)| Record::UpdateBlocks { path, blocks, rpc }),
        (path(), proptest::option::of(block()), block(), rpc())
            .prop_map(|(path, penultimate, last, rpc)| Record::AddBlock { path, penultimate, last, rpc }),
        (path(), text(), text(), any::<u64>(), time(), proptest::option::of(block())).prop_map(
            |(path, client_name, client_machine, new_length, time, block)| Record::Truncate {
                path,
                client_name,
                client_machine,
                new_length,
                time,
                block
            }
        ),
        (token, time()).prop_map(|(token, expiry)| Record::GetDelegationToken { token, expiry }),
        (any::<i32>(), time(), proptest::option::of(any::<Vec<u8>>()))
            .prop_map(|(id, expiry, key)| Record::UpdateMasterKey { id, expiry, key: key.map(Into::into) }),
        (directive, rpc()).prop_map(|(directive, rpc)| Record::ModifyCacheDirective { directive, rpc }),
        (pool, rpc()).prop_map(|(pool, rpc)| Record::AddCachePool { pool, rpc }),
        (text(), any::<[i32; 2]>(), 0..i32::MAX as u32, proptest::collection::vec((text(), text()), 0..3), rpc())
            .prop_map(|(codec, units, cell_size, options, rpc)| Record::AddErasureCodingPolicy {
                codec,
                data_units: units[0],
                parity_units: units[1],
                cell_size,
                options,
                rpc
            }),
    ]
}
fn record() -> impl Strategy<Value = Owned> {
    prop_oneof![add(), tree(), blocks_and_secrets()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_is_read_back(record in record(), txid in 1..u64::MAX) {
        let mut bytes = Vec::new();
        edit::encode(&record, Txid(txid), LayoutVersion::CURRENT, &mut bytes).unwrap();
        let Decoded::Frame(found) = edit::decode(&bytes, LayoutVersion::CURRENT, frame::RECORD_MAX).unwrap() else { panic!() };
        prop_assert_eq!(found.record, record);
        prop_assert_eq!((found.txid.0, found.length), (txid, bytes.len()));
        for cut in [0, 1, 4, 5, 12, 13, bytes.len() / 2, bytes.len() - 1] {
            let need = edit::decode(&bytes[..cut], LayoutVersion::CURRENT, frame::RECORD_MAX).unwrap();
            prop_assert!(matches!(need, Decoded::NeedMore(n) if n > cut && n <= bytes.len()), "{cut}: {need:?}");
        }
    }

    #[test]
    fn any_bytes_at_any_layout_give_an_answer(bytes in any::<Vec<u8>>(), opcode in 0..54u8, layout in -67..-15i32) {
        let layout = LayoutVersion(layout);
        _ = edit::decode(&bytes, layout, 1 << 16);
        let mut body = vec![opcode];
        body.extend_from_slice(&bytes);
        _ = edit::decode(&body, layout, 1 << 16);
        let mut framed = vec![opcode];
        framed.extend_from_slice(&(bytes.len() as i32 + 12).to_be_bytes());
        framed.extend_from_slice(&7i64.to_be_bytes());
        framed.extend_from_slice(&bytes);
        framed.extend_from_slice(&crc32(&framed).to_be_bytes());
        _ = edit::decode(&framed, layout, 1 << 16);
    }

    #[test]
    fn a_flipped_body_with_a_fitting_checksum_gives_an_answer(record in record(), at in any::<proptest::sample::Index>(), xor in 1..255u8, layout in -67..-60i32) {
        let mut bytes = Vec::new();
        edit::encode(&record, Txid(5), LayoutVersion::CURRENT, &mut bytes).unwrap();
        let end = bytes.len() - 4;
        if end > 13 {
            let at = 13 + at.index(end - 13);
            bytes[at] ^= xor;
        }
        let sum = crc32(&bytes[..end]);
        bytes[end..].copy_from_slice(&sum.to_be_bytes());
        if let Ok(Decoded::Frame(found)) = edit::decode(&bytes, LayoutVersion(layout), frame::RECORD_MAX) {
            let mut text = String::new();
            edit::xml::record(found.txid, &found.record, &mut text);
            _ = edit::encode(&found.record, found.txid, LayoutVersion(layout), &mut Vec::new());
        }
    }
}

/// The checksum of the format, written the slow way.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 })
    })
}

#[test]
fn older_layouts_leave_newer_fields_out_and_refuse_newer_records() {
    let create =
        Record::CreateSnapshot { root: b"/d"[..].into(), name: b"s"[..].into(), mtime: Some(TimeMs(5)), rpc: None };
    let length = |layout| edit::encode(&create, Txid(1), LayoutVersion(layout), &mut Vec::new()).unwrap();
    assert_eq!(length(-66), length(-65) + 8);
    let enable = Record::EnableErasureCodingPolicy { name: "RS-6-3-1024k".into(), rpc: None };
    assert!(edit::encode(&enable, Txid(1), LayoutVersion(-63), &mut Vec::new()).is_err());
    assert!(edit::encode(&create, Txid(1), LayoutVersion(-60), &mut Vec::new()).is_err());
    let mut bytes = Vec::new();
    edit::encode(&create, Txid(1), LayoutVersion(-63), &mut bytes).unwrap();
    let Decoded::Frame(found) = edit::decode(&bytes, LayoutVersion(-63), 100).unwrap() else { panic!() };
    assert!(matches!(found.record, Record::CreateSnapshot { mtime: None, .. }));
}

#[test]
fn records_before_minus_39_are_counted_arrays_of_text() {
    // OP_DELETE of layout -37: opcode, transaction id, count 2, path, time as digits, checksum.
    let mut bytes = vec![2];
    bytes.extend_from_slice(&9i64.to_be_bytes());
    bytes.extend_from_slice(&2i32.to_be_bytes());
    for text in ["/a", "1234"] {
        bytes.extend_from_slice(&(text.len() as u16).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    let sum = crc32(&bytes);
    bytes.extend_from_slice(&sum.to_be_bytes());
    let Decoded::Frame(found) = edit::decode(&bytes, LayoutVersion(-37), 100).unwrap() else { panic!() };
    assert_eq!(found.record, Record::Delete { path: b"/a"[..].into(), time: TimeMs(1234), rpc: None });
    assert_eq!((found.txid, found.length), (Txid(9), bytes.len()));
    let shorter = edit::decode(&bytes[..bytes.len() - 6], LayoutVersion(-37), 100).unwrap();
    assert_eq!(shorter, Decoded::NeedMore(bytes.len() - 5));
    bytes[12] = 3; // a count that does not fit
    assert!(edit::decode(&bytes, LayoutVersion(-37), 100).is_err());
}

#[test]
fn sizes_are_checked_before_the_body() {
    let mut bytes = vec![2];
    bytes.extend_from_slice(&1_000i32.to_be_bytes());
    let error = edit::decode(&bytes, LayoutVersion::CURRENT, 100).unwrap_err();
    assert_eq!(error.reason, edit::error::Reason::TooLarge { size: 1_005, max: 100 });
    bytes[1..5].copy_from_slice(&(-1i32).to_be_bytes());
    assert_eq!(edit::decode(&bytes, LayoutVersion::CURRENT, 100).unwrap_err().reason, edit::error::Reason::TooSmall(4));
}

#[test]
fn after_the_end_marker_only_fill_may_follow() {
    assert_eq!(edit::decode(&[0xff, 0, 0xff], LayoutVersion::CURRENT, 100).unwrap(), Decoded::Fill);
    assert_eq!(edit::decode(&[0xff, 0, 1], LayoutVersion::CURRENT, 100).unwrap_err().offset, 2);
}
