//! What an image tells of a truncate that is under way.

use edit::Record;
use edit::record::{AddClose, Permission};
use state::{Effects, Fit, Mode, RootAttributes, State};
use storage::image::{self, SaveContext};
use vocab::{Block, BlockId, GenerationStamp, InodeId, LayoutVersion, Policy, TimeMs, Txid};

fn empty() -> State {
    State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) })
}

fn apply(state: &mut State, record: &Record<'_>) {
    let policy = Policy::default();
    let Fit::Fits(fitted) = state.fit(record, &policy) else { panic!("{record:?}") };
    state.apply(record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
}

fn block(id: i64, stamp: i64, length: u64) -> Block {
    Block { id: BlockId(id), length, stamp: GenerationStamp(stamp) }
}

fn reloaded(state: &State) -> State {
    let context =
        SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 7, txid: Txid(9), expanded_string_tables: true };
    let mut bytes = Vec::new();
    let digest = image::encode(state, context, &mut |piece| bytes.extend_from_slice(piece)).expect("encodes");
    image::load(&bytes, digest, empty()).expect("loads").state
}

/// A file of one block of 600 bytes, cut to 400 by a recovery that makes `cut` of it.
fn truncated(cut: Block) -> State {
    let mut state = empty();
    let written = AddClose {
        inode_id: InodeId(16_386),
        path: b"/file"[..].into(),
        replication: 3,
        mtime: TimeMs(1),
        atime: TimeMs(1),
        block_size: 1_000,
        blocks: vec![block(1_073_741_825, 1_001, 600)],
        permission: Permission { user: "u".into(), group: "g".into(), mode: 0o644 },
        acl: vec![],
        xattrs: vec![],
        client_name: "c".into(),
        client_machine: "m".into(),
        overwrite: false,
        storage_policy: 0,
        erasure_coding_policy: 0,
        rpc: None,
    };
    apply(&mut state, &Record::Add(Box::new(written.clone())));
    apply(&mut state, &Record::Close(Box::new(written)));
    let (client_name, client_machine) = ("c".into(), "m".into());
    let (path, time) = (b"/file"[..].into(), TimeMs(2));
    apply(&mut state, &Record::Truncate { path, client_name, client_machine, new_length: 400, time, block: Some(cut) });
    state
}

#[test]
fn an_image_tells_what_a_truncate_makes_a_block_of() {
    let (old, new) = (block(1_073_741_825, 1_001, 600), block(1_073_741_826, 1_002, 400));
    let live = truncated(new);
    assert!(live.store.find_block(old.id).is_none(), "the old block has left the file system");
    let loaded = reloaded(&live);
    assert_eq!(loaded.blocks.truncated_into(old.id), Some(new.id), "its replicas are not deleted");
    assert_eq!(loaded.blocks.construction(new.id).and_then(|c| c.truncate), Some(old));
    assert_eq!(loaded.digest(), live.digest());
    assert_eq!(reloaded(&loaded).digest(), live.digest(), "and again");
}

#[test]
fn an_image_tells_how_far_a_block_is_cut_in_place() {
    let live = truncated(block(1_073_741_825, 1_002, 600));
    let loaded = reloaded(&live);
    let cut = loaded.blocks.construction(BlockId(1_073_741_825)).and_then(|c| c.truncate);
    assert_eq!(cut, Some(block(1_073_741_825, 1_002, 400)));
    assert_eq!(loaded.digest(), live.digest());
}
