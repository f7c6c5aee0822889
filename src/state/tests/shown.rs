//! What a snapshot shows: it stays as it is until the snapshot itself goes.

use super::World;
use record::{Features, InodeHandle, KindTag};
use std::collections::BTreeMap;
use vocab::SnapshotId;

/// Of each snapshot the paths below its directory, with what is there, and of a file that no longer grows its length and blocks.
pub(super) type Shown = BTreeMap<SnapshotId, Paths>;
type Paths = BTreeMap<String, (String, Option<String>)>;

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

    fn show(&self, directory: InodeHandle, snapshot: SnapshotId, above: &str, paths: &mut Paths) {
        let (tree, store) = (&self.state.tree, &self.state.store);
        for child in tree.children_at(store, directory, snapshot) {
            let path = format!("{above}/{}", String::from_utf8_lossy(child.name(store)));
            assert!(path.len() < 1_000, "a snapshot without an end: {path}");
            let inode = tree.inode_at(store, child.inode, snapshot);
            let kind = store.kind(child.inode);
            let what = format!("{:?} {:?} {:?} {:?}", kind, inode.id, inode.mode, inode.user);
            // what is being written may become shorter by a record of this test
            let is_fixed = !store.features(child.inode).contains(Features::CONSTRUCTION);
            let bytes = (kind == KindTag::File && is_fixed).then(|| self.bytes(child.inode, snapshot));
            paths.insert(path.clone(), (what, bytes));
            if kind == KindTag::Directory {
                self.show(child.inode, snapshot, &path, paths);
            }
        }
    }

    /// Length and blocks of a file, of which there must be enough.
    fn bytes(&self, file: InodeHandle, snapshot: SnapshotId) -> String {
        let (tree, store) = (&self.state.tree, &self.state.store);
        let length = tree.file_length_at(store, file, snapshot);
        let (mut before, mut ids) = (0, Vec::new());
        for b in tree.blocks_at(store, file, snapshot) {
            let block = store.block_core(b);
            if before < length {
                ids.push(block.id.0);
            }
            before += block.length;
        }
        if before < length { format!("{length} bytes, {before} there") } else { format!("{length} bytes in {ids:?}") }
    }
}

/// How a later state shows the snapshots of an earlier one otherwise. Names that came are not looked for: below directories that were renamed from
/// one snapshottable directory to another, and there again, Hadoop and we show what was made after the snapshot.
pub(super) fn otherwise(before: &Shown, after: &Shown) -> Vec<String> {
    let mut wrong = Vec::new();
    for (snapshot, paths) in before {
        let Some(now) = after.get(snapshot) else { continue };
        for (path, (what, bytes)) in paths {
            let same =
                now.get(path).is_some_and(|(now, b)| now == what && (bytes.is_none() || b.is_none() || b == bytes));
            if !same {
                wrong.push(format!("{snapshot:?} showed {path}: {what} {bytes:?}, now {:?}", now.get(path)));
            }
        }
    }
    wrong
}
