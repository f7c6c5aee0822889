//! Encryption zones in the tree: which directories are roots of one, and in which one something lies.

use crate::Tree;
use record::{InodeHandle, KindTag, Store};
use vocab::SnapshotId;
use vocab::encryption::{DataKey, FILE, Zone, is_zone};
use vocab::xattr::{Xattr, XattrNamespace};

impl Tree {
    /// Roots of zones, also of such that only a snapshot holds, in no order that means anything.
    pub fn zones(&self) -> impl Iterator<Item = InodeHandle> {
        self.zones.iter().copied()
    }
    /// Whether there is any zone.
    pub fn has_zones(&self) -> bool {
        !self.zones.is_empty()
    }
    /// The zone that a directory is the root of.
    pub fn own_zone(&self, directory: InodeHandle) -> Option<Zone> {
        if !self.zones.contains(&directory) {
            return None;
        }
        Zone::parse(self.xattr(directory, XattrNamespace::Raw, vocab::encryption::ZONE)?.value)
    }

    /// The zone in which the last inode of a path lies, given with all above it, as it is or was at a snapshot; and its root.
    pub fn zone_of(&self, store: &Store, path: &[InodeHandle], snapshot: SnapshotId) -> Option<(InodeHandle, Zone)> {
        if self.zones.is_empty() {
            return None;
        }
        let own = |inode: &InodeHandle| {
            let zone = match snapshot {
                SnapshotId::CURRENT => self.own_zone(*inode)?,
                past => Zone::parse(&self.xattrs_at(*inode, past).iter().find(|xattr| is_zone(xattr))?.value)?,
            };
            Some((*inode, zone))
        };
        path.iter().rev().filter(|inode| store.kind(**inode) == KindTag::Directory).find_map(own)
    }

    /// The same for an inode of the present.
    pub fn zone_above(&self, store: &Store, inode: InodeHandle) -> Option<(InodeHandle, Zone)> {
        if self.zones.is_empty() {
            return None;
        }
        let mut current = Some(inode);
        while let Some(inode) = current {
            if let Some(zone) = self.own_zone(inode) {
                return Some((inode, zone));
            }
            current = store.parent(inode);
        }
        None
    }

    /// The key of a file as it is or was at a snapshot.
    pub fn data_key(&self, file: InodeHandle, snapshot: SnapshotId) -> Option<DataKey> {
        let is_key = |xattr: &&Xattr| xattr.namespace == XattrNamespace::Raw && &*xattr.name == FILE;
        match snapshot {
            SnapshotId::CURRENT => DataKey::parse(self.xattr(file, XattrNamespace::Raw, FILE)?.value),
            past => DataKey::parse(&self.xattrs_at(file, past).iter().find(is_key)?.value),
        }
    }
}
