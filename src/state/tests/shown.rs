//! What a snapshot shows: it stays as it is until the snapshot itself goes.

use super::World;
use record::{InodeHandle, KindTag};
use std::collections::BTreeMap;
use vocab::SnapshotId;

/// Of each snapshot the paths below its directory, with the id of what is there.
pub(super) type Shown = BTreeMap<SnapshotId, BTreeMap<String, String>>;

impl World {
    /// What all snapshots show.
    pub fn shown(&self) -> Shown {
        let mut all = Shown::new();
        for (_, root) in self.state.tree.snapshots.roots() {
            for snapshot in &root.snapshots {
                let paths = all.entry(snapshot.id).or_default();
                self.show(root.directory, snapshot.id, "", paths);
            }
        }
        all
    }

    fn show(&self, directory: InodeHandle, snapshot: SnapshotId, above: &str, paths: &mut BTreeMap<String, String>) {
        let (tree, store) = (&self.state.tree, &self.state.store);
        for child in tree.children_at(store, directory, snapshot) {
            let path = format!("{above}/{}", String::from_utf8_lossy(child.name(store)));
            assert!(path.len() < 1_000, "a snapshot without an end: {path}");
            let inode = tree.inode_at(store, child.inode, snapshot);
            let kind = store.kind(child.inode);
            let what = format!("{:?} {:?} {:?} {:?}", kind, inode.id, inode.mode, inode.user);
            paths.insert(path.clone(), what);
            if kind == KindTag::Directory {
                self.show(child.inode, snapshot, &path, paths);
            }
        }
    }
}

/// How a later state shows the snapshots of an earlier one otherwise.
pub(super) fn otherwise(before: &Shown, after: &Shown) -> Vec<String> {
    let mut wrong = Vec::new();
    for (snapshot, paths) in before {
        let Some(now) = after.get(snapshot) else { continue };
        for (path, what) in paths {
            if now.get(path) != Some(what) {
                wrong.push(format!("{snapshot:?} showed {path}: {what}, now {:?}", now.get(path)));
            }
        }
        for path in now.keys().filter(|path| !paths.contains_key(*path)) {
            wrong.push(format!("{snapshot:?} did not show {path}"));
        }
    }
    wrong
}
