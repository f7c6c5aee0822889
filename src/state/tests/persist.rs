//! The state written down while it goes on, and rebuilt.

use super::*;
use crate::caches::{CacheDirective, CachePool};
use crate::tokens::{MasterKey, Token};
use mem::page::{Pages, ShadowPool};
use mem::persist::{Malformed, PageSets};
use record::{InodeHandle, Replica, StorageNumber};
use std::sync::Arc;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::quota::Quota;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{BlockState, Mode};

fn empty() -> State {
    World::new().state
}

/// A bit of everything.
fn rich() -> World {
    let mut w = World::new();
    w.mkdir("/d");
    w.mkdir("/d/below");
    for n in 0..300i64 {
        let path: &'static str = Box::leak(format!("/d/file{n:03}").into_boxed_str());
        w.file(path, &[block(1_073_741_825 + n, 1_001 + n, 10)]);
    }
    w.file("/long", &(0..9).map(|n| block(1_073_752_000 + n, 9_000 + n, 100)).collect::<Vec<_>>());
    w.open("/open", &[block(1_073_753_000, 9_100, 100), block(1_073_753_001, 9_101, 0)]);
    w.apply(&delete("/d/file007"));
    let (d, file) = (w.find("/d").unwrap(), w.find("/d/file001").unwrap());
    let State { store, tree, .. } = &mut w.state;
    let entry = AclEntry {
        scope: AclScope::Access,
        kind: AclKind::User,
        name: Some("bob".into()),
        permission: vocab::Action::ALL,
    };
    tree.set_acl(store, file, &[entry]);
    let xattr = Xattr { namespace: XattrNamespace::User, name: "x".into(), value: b"y".as_slice().into() };
    tree.set_xattrs(store, d, &[xattr]);
    tree.set_quota_limits(store, d, Quota { namespace: Some(1_000), space: Some(1 << 40), ..Quota::default() });
    store.edit_inode(file, |inode| inode.mtime = TimeMs(-5));
    let tokens = &mut w.state.tokens;
    tokens.current_key = 3;
    tokens.keys.insert(3, MasterKey { expiry: TimeMs(77), secret: Some([1, 2].as_slice().into()) });
    tokens.keys.insert(4, MasterKey { expiry: TimeMs(78), secret: None });
    let token = Token {
        owner: "o".into(),
        renewer: "r".into(),
        real_user: "".into(),
        issue_date: TimeMs(1),
        max_date: TimeMs(2),
        sequence_number: 5,
        master_key_id: 3,
        expiry: TimeMs(9),
    };
    tokens.tokens.insert(5, token);
    w.state.sequences.rolling_upgrade_start = Some(TimeMs(0));
    let (owner, group, mode) = ("o".into(), "g".into(), Mode::new(0o640));
    let pool = CachePool { owner, group, mode, limit: 7, default_replication: 2, longest_life_ms: 60_000 };
    w.state.caches.put_pool("pool".into(), pool);
    let (path, pool) = (b"/a"[..].into(), "pool".into());
    w.state.caches.put_directive(8, CacheDirective { path, replication: 3, pool, expiry: TimeMs(11) });
    w.state.caches.next_directive = 12;
    w.state.tree.snapshots.counter = 2;
    w
}

fn copy_all(state: &State) -> Vec<Vec<u8>> {
    let copy = |pages: &Pages| {
        let mut bytes = Vec::new();
        while pages.copy_frozen(3, &mut bytes) > 0 {}
        bytes
    };
    state.page_sets().into_iter().map(copy).collect()
}
fn rebuild(pages: &[Vec<u8>], rest: &[u8]) -> Result<State, Malformed> {
    let pages = pages.iter().map(|bytes| Pages::from_bytes(bytes).unwrap()).collect();
    State::restore(empty(), PageSets::new(pages), rest)
}
fn pool() -> Arc<ShadowPool> {
    Arc::new(ShadowPool::new(1 << 30))
}

#[test]
fn what_was_frozen_comes_back_whatever_happens_meanwhile() {
    let mut w = rich();
    let digest = w.state.digest();
    let rest = w.state.freeze(&pool());
    for n in (0..300).step_by(2).filter(|n| *n != 7) {
        w.apply(&delete(Box::leak(format!("/d/file{n:03}").into_boxed_str())));
    }
    w.mkdir("/later");
    w.apply(&World::close_record("/open", &[block(1_073_753_000, 9_100, 100), block(1_073_753_001, 9_101, 7)]));
    assert_ne!(w.state.digest(), digest);
    let mut restored = rebuild(&copy_all(&w.state), &rest).unwrap();
    assert_eq!(restored.digest(), digest);
    assert_eq!(restored.tree.check(&restored.store), Vec::<String>::new());
    assert_eq!(restored.tree.leases.iter().map(|l| (&*l.holder, l.files.len())).collect::<Vec<_>>(), [("client", 1)]);
    assert_eq!(restored.tokens, rich().state.tokens);
    // it goes on like any other
    w.state = std::mem::replace(&mut restored, empty());
    w.mkdir("/later");
    w.apply(&delete("/d"));
    assert!(w.find("/later").is_some() && w.find("/d").is_none() && w.is_open("/open"));
}

#[test]
fn blocks_come_back_as_the_journal_knows_them() {
    let mut w = rich();
    let digest = w.state.digest();
    let file = w.find("/open").unwrap();
    let blocks = w.state.store.blocks_of(file);
    // a client has committed a length that no record has; a block before the last waits for its DataNodes
    let last = w.state.store.block_core(blocks[1]);
    w.state.uncommitted.insert(last.id, last);
    w.state.store.edit_block(blocks[1], |info| {
        info.block.length = 55;
        info.state = BlockState::Committed;
    });
    w.state.store.edit_block(blocks[0], |info| info.state = BlockState::Committed);
    assert_eq!(w.state.digest(), digest);
    let rest = w.state.freeze(&pool());
    let restored = rebuild(&copy_all(&w.state), &rest).unwrap();
    assert_eq!(restored.digest(), digest);
    let blocks = restored.store.blocks_of(restored.tree.resolve(&restored.store, b"/open").unwrap().last().unwrap());
    let states: Vec<_> =
        blocks.iter().map(|b| (restored.store.block(*b).state, restored.store.block_core(*b).length)).collect();
    assert_eq!(states, [(BlockState::Complete, 100), (BlockState::UnderConstruction, 0)]);
}

#[test]
fn replicas_of_an_earlier_incarnation_are_hints_and_nothing_else() {
    let mut w = rich();
    let place = |w: &World, path: &str| w.state.store.blocks_of(w.find(path).unwrap())[0];
    let on = |storage| Replica { storage: StorageNumber(storage), ..Replica::default() };
    w.state.blocks.set_storage_floor(StorageNumber(7));
    let (fused, separate) = (place(&w, "/d/file010"), place(&w, "/long"));
    for b in [fused, separate] {
        w.state.store.set_replicas(b, &[on(3), on(6)]);
    }
    let rest = w.state.freeze(&pool());
    w.state = rebuild(&copy_all(&w.state), &rest).unwrap();
    assert_eq!((w.state.store.storage_floor(), w.state.blocks.storage_ceiling()), (StorageNumber(7), StorageNumber(7)));
    for path in ["/d/file010", "/long"] {
        let b = place(&w, path);
        assert_eq!((w.state.store.replicas(b).len(), w.state.store.replica_count(b)), (0, 0));
        assert_eq!(w.state.store.hints(b).iter().map(|r| r.storage.0).collect::<Vec<_>>(), [3, 6]);
        assert!(!w.state.store.remove_replica(b, StorageNumber(3)));
        assert!(w.state.store.add_replica(b, on(7)));
        assert_eq!(w.state.store.replicas(b).to_vec(), [on(7)]);
        assert!(w.state.store.hints(b).is_empty());
    }
}

#[test]
fn what_was_cut_off_and_not_freed_yet_is_freed_afterwards() {
    let mut w = rich();
    let d: InodeHandle = w.find("/d").unwrap();
    w.state.tree.detach(&mut w.state.store, d);
    assert!(w.state.reclaim(50), "some are freed, others wait");
    let rest = w.state.freeze(&pool());
    let mut restored = rebuild(&copy_all(&w.state), &rest).unwrap();
    assert_eq!(w.state.thaw().len(), 0);
    assert!(restored.tree.has_detached());
    while restored.reclaim(1_000) {}
    while w.state.reclaim(1_000) {}
    assert_eq!(restored.digest(), w.state.digest());
    assert_eq!(restored.store.inode_count(), w.state.store.inode_count());
}

#[test]
fn cut_or_altered_rests_are_refused_or_another_state() {
    let mut w = rich();
    let rest = w.state.freeze(&pool());
    let pages = copy_all(&w.state);
    for cut in (0..rest.len()).step_by(97) {
        assert!(rebuild(&pages, &rest[..cut]).is_err(), "cut at {cut}");
    }
    let mut longer = rest.clone();
    longer.push(0);
    assert_eq!(rebuild(&pages, &longer).err(), Some(Malformed("the end")));
    assert!(rebuild(&pages[1..], &rest).is_err());
}
