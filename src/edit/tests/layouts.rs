//! Records as each layout has them, built field by field from FORMAT.md.

use edit::{Decoded, Record, frame};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::time::TimeMs;
use vocab::{Action, Block, BlockId, GenerationStamp, InodeId, LayoutVersion, RpcIds, Txid};

/// Bytes of one record at one layout.
struct Builder {
    layout: i32,
    body: Vec<u8>,
}

impl Builder {
    fn new(layout: i32) -> Builder {
        Builder { layout, body: Vec::new() }
    }
    fn raw(mut self, bytes: &[u8]) -> Builder {
        self.body.extend_from_slice(bytes);
        self
    }
    fn str(self, text: &str) -> Builder {
        self.raw(&(text.len() as u16).to_be_bytes()).raw(text.as_bytes())
    }
    /// A number that was text before -39; `width` bytes since.
    fn number(self, value: i64, width: usize) -> Builder {
        if self.layout > -39 { self.str(&value.to_string()) } else { self.raw(&value.to_be_bytes()[8 - width..]) }
    }
    fn since(self, layout: i32, add: impl FnOnce(Builder) -> Builder) -> Builder {
        if self.layout <= layout { add(self) } else { self }
    }
    /// The count of array elements in front of records before -39.
    fn counted(self, count: i32) -> Builder {
        if self.layout > -39 { self.raw(&count.to_be_bytes()) } else { self }
    }
    fn rpc(self) -> Builder {
        self.since(-47, |b| b.raw(&16u16.to_be_bytes()).raw(&[9; 16]).raw(&77i32.to_be_bytes()))
    }
    fn permission(self) -> Builder {
        self.raw(&[4]).raw(b"hdfs").raw(&[5]).raw(b"staff").raw(&0o644u16.to_be_bytes())
    }
    fn frame(self, opcode: u8) -> Vec<u8> {
        let mut frame = vec![opcode];
        if self.layout <= -56 {
            frame.extend_from_slice(&(self.body.len() as i32 + 12).to_be_bytes());
        }
        if self.layout <= -37 {
            frame.extend_from_slice(&42i64.to_be_bytes());
        }
        frame.extend_from_slice(&self.body);
        if self.layout <= -28 {
            let sum = frame.iter().fold(!0u32, |sum, byte| {
                (0..8).fold(sum ^ u32::from(*byte), |s, _| if s & 1 == 1 { s >> 1 ^ 0xedb8_8320 } else { s >> 1 })
            });
            frame.extend_from_slice(&(!sum).to_be_bytes());
        }
        frame
    }
}

/// Decodes a frame; checks that every shorter piece asks for more, and that the scan sees the same length.
fn decode(bytes: &[u8], layout: i32) -> Record<'_> {
    let version = LayoutVersion(layout);
    let found = edit::decode(bytes, version, frame::RECORD_MAX);
    let Ok(Decoded::Frame(found)) = found else { panic!("layout {layout}: {found:?}") };
    assert_eq!((found.length, found.txid), (bytes.len(), Txid(if layout <= -37 { 42 } else { 0 })), "layout {layout}");
    for cut in 0..bytes.len() {
        let part = edit::decode(&bytes[..cut], version, frame::RECORD_MAX);
        assert!(matches!(part, Ok(Decoded::NeedMore(more)) if more > cut), "layout {layout} cut at {cut}: {part:?}");
    }
    let Ok(Decoded::Frame(hop)) = frame::hop(bytes, version, frame::RECORD_MAX) else { panic!("layout {layout}") };
    assert_eq!(hop.length, bytes.len());
    found.record
}

/// Layouts from the newest down to `oldest`, without those that were reserved for old release lines: their features are not those of the
/// numbers before them (`LayoutVersion::supports` has the table).
fn plain(oldest: i32) -> impl Iterator<Item = i32> {
    (-67..=oldest).filter(|layout| !matches!(layout, -34..=-31 | -41 | -44))
}

fn rpc(layout: i32) -> Option<RpcIds> {
    (layout <= -47).then_some(RpcIds { client_id: [9; 16], call_id: 77 })
}

#[test]
fn an_add_of_every_layout() {
    for layout in plain(-16) {
        let bytes = Builder::new(layout)
            .counted(if layout <= -17 { 5 } else { 4 })
            .since(-42, |b| b.raw(&16_400i64.to_be_bytes()))
            .str("/a/b")
            .number(3, 2)
            .number(1_111, 8)
            .since(-17, |b| b.number(2_222, 8))
            .number(4_096, 8)
            .raw(&1i32.to_be_bytes())
            .raw(&5i64.to_be_bytes())
            .raw(&6i64.to_be_bytes())
            .raw(&7i64.to_be_bytes())
            .permission()
            .since(-53, |b| b.raw(&1i32.to_be_bytes()).raw(&[1 << 6 | 1 << 3 | 5]).str("ops"))
            .since(-57, |b| b.raw(&[11, 0x12, 9, 0x08, 0, 0x12, 1, b'x', 0x1a, 2, b'v', b'w']))
            .str("client")
            .str("host")
            .since(-58, |b| b.raw(&[1]))
            .since(-60, |b| b.raw(&[7]))
            .since(-64, |b| b.raw(&[1]))
            .rpc()
            .frame(0);
        let Record::Add(file) = decode(&bytes, layout) else { panic!("layout {layout}") };
        assert_eq!(file.inode_id, InodeId(if layout <= -42 { 16_400 } else { 0 }));
        assert_eq!(
            (&*file.path, file.replication, file.mtime, file.block_size),
            (&b"/a/b"[..], 3, TimeMs(1_111), 4_096)
        );
        assert_eq!(file.atime, TimeMs(if layout <= -17 { 2_222 } else { 0 }));
        assert_eq!(file.blocks, [Block { id: BlockId(5), length: 6, stamp: GenerationStamp(7) }]);
        assert_eq!((&*file.permission.user, &*file.permission.group, file.permission.mode), ("hdfs", "staff", 0o644));
        let entry =
            AclEntry { scope: AclScope::Access, kind: AclKind::Group, name: Some("ops".into()), permission: Action(5) };
        assert_eq!(file.acl, if layout <= -53 { vec![entry] } else { vec![] });
        assert_eq!(
            file.xattrs.iter().map(|x| (&*x.name, &*x.value)).collect::<Vec<_>>(),
            if layout <= -57 { vec![("x", &b"vw"[..])] } else { vec![] }
        );
        assert_eq!((&*file.client_name, &*file.client_machine), ("client", "host"));
        assert_eq!((file.overwrite, file.storage_policy), (layout <= -58, if layout <= -60 { 7 } else { 0 }));
        assert_eq!((file.erasure_coding_policy, file.rpc), (u8::from(layout <= -64), rpc(layout)));
    }
}

#[test]
fn tree_records_of_every_layout() {
    for layout in plain(-24) {
        let rename =
            Builder::new(layout).counted(3).str("/a").str("/b").number(5, 8).raw(&1i32.to_be_bytes()).raw(&[1]).rpc();
        let expected = Record::Rename {
            src: b"/a"[..].into(),
            dst: b"/b"[..].into(),
            time: TimeMs(5),
            options: vec![edit::record::RenameOption::Overwrite],
            rpc: rpc(layout),
        };
        assert_eq!(decode(&rename.frame(15), layout), expected);
        // The sources of a concat have a count of their own since -39; before, the array's count less target and time.
        let concat = Builder::new(layout).counted(4).str("/t");
        let concat = concat.since(-39, |b| b.raw(&2i32.to_be_bytes())).str("/x").str("/y").number(6, 8).rpc();
        let expected = Record::Concat {
            target: b"/t"[..].into(),
            sources: vec![b"/x"[..].into(), b"/y"[..].into()],
            time: TimeMs(6),
            rpc: rpc(layout),
        };
        assert_eq!(decode(&concat.frame(16), layout), expected);
        let mkdir = Builder::new(layout)
            .counted(3)
            .since(-42, |b| b.raw(&20_000i64.to_be_bytes()))
            .str("/d")
            .number(8, 8)
            .number(9, 8)
            .permission()
            .since(-53, |b| b.raw(&0i32.to_be_bytes()))
            .since(-57, |b| b.raw(&[0]));
        let bytes = mkdir.frame(3);
        let Record::Mkdir { inode_id, mtime, atime, .. } = decode(&bytes, layout) else { panic!("layout {layout}") };
        assert_eq!((inode_id.0, mtime, atime), (if layout <= -42 { 20_000 } else { 0 }, TimeMs(8), TimeMs(9)));
        let snapshot =
            Builder::new(layout).str("/d").str("s").since(-66, |b| b.raw(&3i64.to_be_bytes())).rpc().frame(26);
        let Record::CreateSnapshot { mtime, .. } = decode(&snapshot, layout) else { panic!("layout {layout}") };
        assert_eq!(mtime, (layout <= -66).then_some(TimeMs(3)));
    }
}

#[test]
fn every_opcode_has_the_same_body_at_its_first_layout_and_now_but_for_what_came_later() {
    // All kinds that take part in the golden logs are covered there; here: what no release writes any more.
    let quota = Builder::new(-67).str("/q").raw(&5i64.to_be_bytes()).frame(11);
    assert_eq!(decode(&quota, -67), Record::SetNamespaceQuota { path: b"/q"[..].into(), quota: 5 });
    let clear = Builder::new(-16).str("/q").frame(12);
    assert_eq!(decode(&clear, -16), Record::ClearNamespaceQuota { path: b"/q"[..].into() });
    for obsolete in [5, 6, 53, 254] {
        let bytes = Builder::new(-67).str("/q").frame(obsolete);
        let error = edit::decode(&bytes, LayoutVersion(-67), frame::RECORD_MAX).unwrap_err();
        assert_eq!(error.reason, edit::error::Reason::UnknownOpcode(obsolete));
    }
}

/// The layouts reserved for old release lines read as the layout they descend from, whatever their number; -44 has inode ids besides.
#[test]
fn adds_of_old_release_lines_read_as_their_ancestors_do() {
    for (layout, ancestor, has_inode_id) in [
        (-31, -19, false),
        (-32, -19, false),
        (-33, -27, false),
        (-34, -30, false),
        (-41, -19, false),
        (-44, -19, true),
    ] {
        let add = |with_id: bool| {
            let add = Builder::new(ancestor).counted(5);
            let add = if with_id { add.raw(&16_400i64.to_be_bytes()) } else { add };
            add.str("/a/b")
                .number(3, 2)
                .number(1_111, 8)
                .number(2_222, 8)
                .number(4_096, 8)
                .raw(&1i32.to_be_bytes())
                .raw(&5i64.to_be_bytes())
                .raw(&6i64.to_be_bytes())
                .raw(&7i64.to_be_bytes())
                .permission()
                .str("client")
                .str("host")
                .frame(0)
        };
        let bytes = add(has_inode_id);
        let found = edit::decode(&bytes, LayoutVersion(layout), frame::RECORD_MAX);
        let Ok(Decoded::Frame(found)) = found else { panic!("layout {layout}: {found:?}") };
        assert_eq!((found.length, found.txid), (bytes.len(), Txid(0)), "layout {layout}");
        let Record::Add(found) = found.record else { panic!("layout {layout}") };
        assert_eq!(found.inode_id, InodeId(if has_inode_id { 16_400 } else { 0 }), "layout {layout}");
        let plain = add(false);
        let Record::Add(mut expected) = decode(&plain, ancestor) else { panic!("layout {ancestor}") };
        expected.inode_id = found.inode_id;
        assert_eq!(found, expected, "layout {layout}");
        for cut in 0..bytes.len() {
            let part = edit::decode(&bytes[..cut], LayoutVersion(layout), frame::RECORD_MAX);
            assert!(
                matches!(part, Ok(Decoded::NeedMore(more)) if more > cut),
                "layout {layout} cut at {cut}: {part:?}"
            );
        }
    }
}

/// Bodies of everything that logs of those lines hold besides adds, in the form of the layout `form`.
fn frames(form: i32, inode_id: bool) -> Vec<(u8, Vec<u8>)> {
    let new = |count| Builder::new(form).counted(count);
    let id = |builder: Builder| if inode_id { builder.raw(&16_400i64.to_be_bytes()) } else { builder };
    let token = |builder: Builder| {
        // version, owner, renewer, real user as Hadoop's Text, then numbers of variable length
        builder.raw(&[0, 1, b'o', 1, b'r', 0, 5, 6, 7, 8])
    };
    let close = id(new(5)).str("/a").number(3, 2).number(1, 8).number(2, 8).number(4_096, 8).raw(&0i32.to_be_bytes());
    let all = [
        (1, new(3).str("/a").str("/b").number(5, 8)),
        (2, new(2).str("/a").number(5, 8)),
        (3, id(new(3)).str("/d").number(8, 8).number(9, 8).permission()),
        (4, Builder::new(form).str("/a").number(2, 2)),
        (7, Builder::new(form).str("/a").raw(&0o644u16.to_be_bytes())),
        (8, Builder::new(form).str("/a").str("u").str("")),
        (9, close.permission()),
        (10, Builder::new(form).raw(&77i64.to_be_bytes())),
        (11, Builder::new(form).str("/q").raw(&5i64.to_be_bytes())),
        (12, Builder::new(form).str("/q")),
        (13, new(3).str("/a").number(5, 8).number(-1, 8)),
        (14, Builder::new(form).str("/q").raw(&5i64.to_be_bytes()).raw(&(-1i64).to_be_bytes())),
        (15, new(3).str("/a").str("/b").number(5, 8).raw(&1i32.to_be_bytes()).raw(&[1])),
        (16, new(4).str("/t").str("/x").str("/y").number(6, 8)),
        (17, id(new(4)).str("/l").str("/t").number(5, 8).number(6, 8).permission()),
        (18, token(Builder::new(form)).number(9, 8)),
        (19, token(Builder::new(form)).number(9, 8)),
        (20, token(Builder::new(form))),
        (21, Builder::new(form).raw(&[1, 9, 1, 0xaa])),
    ];
    all.into_iter().map(|(opcode, builder)| (opcode, builder.frame(opcode))).collect()
}

#[test]
fn every_record_of_old_release_lines_reads_as_their_ancestors_do() {
    let lines = [(-31, -27, false), (-32, -27, false), (-33, -27, false), (-34, -30, false), (-41, -27, false)];
    for (layout, form, has_inode_id) in lines.into_iter().chain([(-44, -27, true)]) {
        for ((opcode, bytes), (_, plain)) in frames(form, has_inode_id).into_iter().zip(frames(form, false)) {
            let what = format!("layout {layout}, opcode {opcode}");
            let found = edit::decode(&bytes, LayoutVersion(layout), frame::RECORD_MAX);
            let Ok(Decoded::Frame(found)) = found else { panic!("{what}: {found:?}") };
            assert_eq!((found.length, found.txid), (bytes.len(), Txid(0)), "{what}");
            let expected = format!("{:?}", decode(&plain, form));
            let expected = if has_inode_id { expected.replace("InodeId(0)", "InodeId(16400)") } else { expected };
            assert_eq!(format!("{:?}", found.record), expected, "{what}");
            for cut in 0..bytes.len() {
                let part = edit::decode(&bytes[..cut], LayoutVersion(layout), frame::RECORD_MAX);
                assert!(matches!(part, Ok(Decoded::NeedMore(more)) if more > cut), "{what} cut at {cut}: {part:?}");
            }
        }
    }
}
