//! Encryption of files: what clients are told of it, in which zone a path lies, and what may not be moved (Hadoop's `FSDirEncryptionZoneOp` and
//! `EncryptionZoneManager`).

use crate::View;
use namespace::Resolved;
use record::{InodeHandle, KindTag};
use std::sync::Arc;
use vocab::encryption::{DataKey, Zone};
use vocab::{InodeId, Refusal, SnapshotId};

/// How a file is encrypted (`FileEncryptionInfo`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEncryption {
    /// Cipher suite by number.
    pub suite: u32,
    /// Protocol version by number.
    pub version: u32,
    /// Name of the zone's key.
    pub zone_key: Arc<str>,
    /// The file's own key.
    pub data_key: DataKey,
}

/// A zone as clients are told of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncryptionZone {
    /// Its root.
    pub id: InodeId,
    /// Path of the root.
    pub path: Vec<u8>,
    /// What the root says.
    pub zone: Zone,
}

impl View<'_> {
    /// How a file of the present is encrypted, if it lies in a zone and has a key.
    pub(crate) fn encryption_of(&self, file: InodeHandle) -> Option<Box<FileEncryption>> {
        let (_, zone) = self.state.tree.zone_above(&self.state.store, file)?;
        self.with_key(zone, file, SnapshotId::CURRENT)
    }

    /// The same for the last inode of a path, given with all above it, at a snapshot.
    pub(crate) fn encryption_at(&self, path: &[InodeHandle], snapshot: SnapshotId) -> Option<Box<FileEncryption>> {
        let (_, zone) = self.state.tree.zone_of(&self.state.store, path, snapshot)?;
        self.with_key(zone, *path.last()?, snapshot)
    }

    fn with_key(&self, zone: Zone, file: InodeHandle, snapshot: SnapshotId) -> Option<Box<FileEncryption>> {
        if self.state.store.kind(file) != KindTag::File {
            return None;
        }
        let data_key = self.state.tree.data_key(file, snapshot)?;
        let Zone { suite, version, key: zone_key, .. } = zone;
        Some(Box::new(FileEncryption { suite, version, zone_key, data_key }))
    }

    /// How the file that a path names is encrypted; a raw path names its bytes as they are.
    pub fn encryption_of_path(&self, resolved: &Resolved<'_>) -> Option<Box<FileEncryption>> {
        if resolved.raw || resolved.last().is_none() {
            return None;
        }
        self.encryption_at(resolved.inodes(), resolved.snapshot())
    }

    /// The zone in which something lies or would be made: the nearest root on its path that exists.
    pub fn zone_of_path(&self, resolved: &Resolved<'_>) -> Option<(InodeHandle, Zone)> {
        self.state.tree.zone_of(&self.state.store, resolved.inodes(), resolved.snapshot())
    }

    /// A zone as clients are told of it.
    pub fn told(&self, root: InodeHandle, zone: Zone) -> EncryptionZone {
        let store = &self.state.store;
        EncryptionZone { id: store.inode_id(root), path: self.state.tree.path_of(store, root), zone }
    }

    /// Whether something may be renamed: not into a zone, out of one, or from one to another.
    ///
    /// # Errors
    /// `Io`, in Hadoop's words.
    pub fn check_move_between_zones(&self, source: &Resolved<'_>, target: &Resolved<'_>) -> Result<(), Refusal> {
        if !self.state.tree.has_zones() {
            return Ok(());
        }
        let above = |path: &Resolved<'_>| {
            let inodes = path.inodes();
            // of what does not exist the last inode is its parent, or one further up
            let above = if path.last().is_some() { &inodes[..inodes.len() - 1] } else { inodes };
            self.state.tree.zone_of(&self.state.store, above, path.snapshot())
        };
        let path = source.path_text();
        match (above(source), above(target)) {
            (Some(_), None) => Err(Refusal::io(format!("{path} can't be moved from an encryption zone."))),
            (None, Some(_)) => Err(Refusal::io(format!("{path} can't be moved into an encryption zone."))),
            (Some((from, _)), Some((to, _))) if from != to => {
                let name = |root| {
                    let path = self.state.tree.path_of(&self.state.store, root);
                    String::from_utf8_lossy(&path).into_owned()
                };
                let (from, to) = (name(from), name(to));
                let text = format!("{path} can't be moved from encryption zone {from} to encryption zone {to}.");
                Err(Refusal::io(text))
            }
            (Some((root, zone)), Some(_)) => self.check_not_reencrypting(&path, root, &zone),
            // a whole zone may be moved meanwhile
            (None, None) => Ok(()),
        }
    }
}
