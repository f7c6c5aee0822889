//! The laws: live state, replayed state and reloaded state are equal; what lies between two records is legal.

use super::world::{World, empty};
use mem::page::{Pages, ShadowPool};
use mem::persist::PageSets;
use record::{InodeKind, KindTag};
use state::State;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use storage::image::{self, SaveContext};
use vocab::{LayoutVersion, Txid};

/// Nothing is wrong inside a state.
pub fn sound(state: &State, what: &str) {
    assert_eq!(state.tree.check(&state.store), Vec::<String>::new(), "{what}");
    let mut owners = HashMap::new();
    let mut open = vec![state.tree.root()];
    while let Some(inode) = open.pop() {
        for b in state.store.blocks_of(inode) {
            let (block, owner) = (state.store.block(b).block, state.store.inode_id(inode));
            let other = owners.insert(block.id, owner);
            assert_eq!(other, None, "{what}: {block:?} is in file {owner} too");
        }
        if state.store.kind(inode) == KindTag::Directory {
            open.extend(state.tree.children(&state.store, inode));
        }
    }
    assert_eq!(state.blocks.check(&state.store), Vec::<String>::new(), "{what}");
    for (made, of) in state.blocks.truncates().filter(|(made, of)| *made != of.id) {
        assert_eq!(state.blocks.truncated_into(of.id), Some(made), "{what}: what a truncate copies stays");
    }
}

/// What the digest is made of, by path: to find what differs.
pub fn dump(state: &State) -> BTreeMap<String, String> {
    let (tree, store) = (&state.tree, &state.store);
    let mut all = BTreeMap::from([("sequences".to_owned(), format!("{:?}", state.sequences))]);
    let pools: Vec<_> = state.caches.pools_after("").map(|(name, pool, _)| (name, pool)).collect();
    let directives: Vec<_> = state.caches.directives_after(0).map(|(id, directive, _)| (id, directive)).collect();
    let caches = (state.caches.next_directive, pools, directives);
    all.insert("caches".to_owned(), format!("{caches:?} {:?}", state.tokens));
    let mut open = vec![(String::new(), tree.root())];
    while let Some((path, handle)) = open.pop() {
        let inode = store.inode(handle);
        let blocks: Vec<_> = store
            .blocks_of(handle)
            .iter()
            .map(|b| (state.logged_block(store.block(*b).block), store.block(*b).replication))
            .collect();
        let truncate =
            store.last_block(handle).and_then(|b| state.blocks.construction(store.block(b).block.id)?.truncate);
        let construction = tree.construction(handle).map(|c| (c.client, c.machine, truncate));
        let kind = match inode.kind {
            InodeKind::Directory { child_count, storage_policy, .. } => format!("{child_count} {storage_policy}"),
            other => format!("{other:?}"),
        };
        let (owner, group) = (store.user_name(inode.user), store.group_name(inode.group));
        let text = format!(
            "{} {owner} {group} {:?} {:?} {:?} {:?} {blocks:?} {construction:?} {:?} {:?} {:?}",
            inode.id,
            inode.mode,
            inode.mtime,
            inode.atime,
            kind,
            tree.quota(store, handle),
            tree.acl(handle),
            tree.xattrs(handle)
        );
        all.insert(path.clone(), text);
        if store.kind(handle) == KindTag::Directory {
            open.extend(
                tree.children(store, handle).map(|c| (format!("{path}/{}", String::from_utf8_lossy(store.name(c))), c)),
            );
        }
    }
    all
}

/// Two states are equal.
pub fn equal(one: &State, other: &State, what: &str) {
    if one.digest() != other.digest() {
        let (one, other) = (dump(one), dump(other));
        let differ: Vec<_> = one.iter().filter(|(path, text)| other.get(*path) != Some(*text)).collect();
        let there: Vec<_> = differ.iter().map(|(path, _)| other.get(*path)).collect();
        panic!("{what}: states differ ({} and {} inodes)\n{differ:#?}\n{there:#?}", one.len(), other.len());
    }
}

impl World {
    /// Live state equals the state that the records made.
    pub fn check_replayed(&self, what: &str) {
        sound(&self.state, what);
        sound(&self.journal.replayed, what);
        equal(
            &self.state,
            &self.journal.replayed,
            &format!("{what}: live and replayed, after {:#?}", self.journal.tail()),
        );
    }

    /// Live state equals itself, saved and loaded again.
    pub fn check_reloaded(&self, what: &str) {
        let context = SaveContext {
            layout: LayoutVersion::CURRENT,
            namespace_id: 7,
            txid: Txid(self.journal.records()),
            expanded_string_tables: true,
        };
        let mut bytes = Vec::new();
        let digest = image::encode(&self.state, context, &mut |piece| bytes.extend_from_slice(piece)).expect("encodes");
        let loaded = image::load(&bytes, digest, empty()).unwrap_or_else(|error| panic!("{what}: {error}"));
        sound(&loaded.state, what);
        assert_eq!(loaded.txid, Txid(self.journal.records()));
        equal(&self.state, &loaded.state, &format!("{what}: live and reloaded"));
    }

    /// Live state equals itself, written down for an arena file and rebuilt.
    pub fn check_restored(&mut self, what: &str) {
        let rest = self.state.freeze(&Arc::new(ShadowPool::new(1 << 30)));
        let pages = self.state.page_sets().into_iter().map(|pages| {
            let mut bytes = Vec::new();
            while pages.copy_frozen(64, &mut bytes) > 0 {}
            Pages::from_bytes(&bytes).expect("pages")
        });
        let pages = PageSets::new(pages.collect());
        drop(self.state.thaw());
        let restored = State::restore(empty(), pages, &rest).unwrap_or_else(|error| panic!("{what}: {error:?}"));
        sound(&restored, what);
        equal(&self.state, &restored, &format!("{what}: live and restored"));
    }

    /// Every prefix of the log applies; each `stride`th is looked into.
    pub fn check_prefixes(&self, stride: u64, what: &str) {
        let replayed = self.journal.replay(None, &mut |count, state| {
            if count % stride == 0 {
                sound(state, &format!("{what}, record {count}"));
            }
        });
        equal(&replayed, &self.state, &format!("{what}: from the first record on"));
    }
}
