//! Re-encryption of a zone: the files' keys are encrypted anew with the newest version of the zone's key, batch by batch, while the zone is in use
//! (Hadoop's `ReencryptionHandler` and `ReencryptionUpdater`). Who re-encrypts a batch is asked between the holds of the lock.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::{Resolved, Walk};
use record::{InodeHandle, KindTag};
use std::borrow::Cow;
use std::sync::Arc;
use vocab::encryption::{DataKey, Reencryption, Zone};
use vocab::{InodeId, Refusal, SnapshotId};

/// The zone of which a path is the root.
///
/// # Errors
/// `FileNotFound`, `Io`.
fn root_of(view: &View<'_>, resolved: &Resolved<'_>) -> Result<(InodeHandle, Zone), Refusal> {
    let path = resolved.path_text();
    let root = resolved.last().ok_or_else(|| Refusal::not_found(format!("INode does not exist for {path}")))?;
    let zone = view.state.tree.own_zone(root);
    zone.map(|zone| (root, zone))
        .ok_or_else(|| Refusal::io(format!("Path {path} is not the root of an encryption zone.")))
}

/// The key of the zone of which a path is the root.
///
/// # Errors
/// Access along the path; it is no root.
pub fn key_of_root(view: &View<'_>, path: &[u8]) -> Result<Arc<str>, Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    Ok(root_of(view, &resolved)?.1.key)
}

fn under_way(zone: &Zone) -> Option<&Reencryption> {
    zone.reencryption.as_ref().filter(|last| last.completed.is_none())
}

impl View<'_> {
    /// That a zone out of or within which something is to be moved is not being re-encrypted.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn check_not_reencrypting(&self, moved: &str, root: InodeHandle, zone: &Zone) -> Result<(), Refusal> {
        if under_way(zone).is_none() {
            return Ok(());
        }
        let root = self.state.tree.path_of(&self.state.store, root);
        let text = format!(
            "{moved} can't be moved because encryption zone {} is currently under re-encryption",
            String::from_utf8_lossy(&root)
        );
        Err(Refusal::io(text))
    }
}

/// What is to be done about a zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// Re-encrypt its files with this version of its key.
    Start(Arc<str>),
    /// Stop that.
    Cancel,
}

/// `reencryptEncryptionZone`.
#[derive(Clone, Debug)]
pub struct ReencryptZone {
    /// Root of the zone.
    pub path: Vec<u8>,
    /// What is to be done.
    pub wanted: Wanted,
}

impl Write for ReencryptZone {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::ReencryptEncryptionZone;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        let action = if self.wanted == Wanted::Cancel { "CANCEL" } else { "START" };
        view.check_safe_mode(|| {
            let zone = view.path_text(&self.path);
            format!("NameNode in safemode, cannot {action} re-encryption on zone {zone}")
        })?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        if self.wanted == Wanted::Cancel && resolved.last().is_none() {
            return Err(Refusal::not_found(format!("{} does not exist.", resolved.path_text())));
        }
        let (_, zone) = root_of(&view, &resolved)?;
        let (path, now) = (resolved.path_text(), view.now.wall);
        let reencryption = match (&self.wanted, under_way(&zone)) {
            (Wanted::Start(_), Some(_)) => {
                return Err(Refusal::io(format!("Zone {path} is already submitted for re-encryption.")));
            }
            (Wanted::Start(version), None) => Reencryption {
                key_version: version.clone(),
                submitted: now,
                cancelled: false,
                reencrypted: 0,
                failures: 0,
                completed: None,
                last_file: None,
            },
            (Wanted::Cancel, None) => return Err(Refusal::io(format!("Zone {path} is not under re-encryption"))),
            (Wanted::Cancel, Some(last)) => Reencryption { cancelled: true, ..finished(last, now) },
        };
        let (rpc, path) = (view.caller.rpc_ids, Cow::Owned(resolved.path()));
        let xattrs = vec![Zone { reencryption: Some(reencryption), ..zone }.to_xattr()];
        turn.log(Record::SetXattr { path, xattrs, given: true, rpc });
        Ok(())
    }
}

/// What is stored at its end.
fn finished(last: &Reencryption, now: vocab::TimeMs) -> Reencryption {
    Reencryption { completed: Some(now), last_file: None, ..last.clone() }
}

/// A zone that waits to be re-encrypted or is being so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Its root.
    pub id: InodeId,
    /// Its key.
    pub key: Arc<str>,
    /// What is stored of the re-encryption.
    pub last: Reencryption,
}

/// The zone that has waited longest.
pub fn next_waiting(view: &View<'_>) -> Option<Waiting> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let waiting = |root| {
        let zone = tree.own_zone(root)?;
        let last = under_way(&zone)?.clone();
        Some(Waiting { id: store.inode_id(root), key: zone.key, last })
    };
    tree.zones().filter_map(waiting).min_by_key(|waiting| (waiting.last.submitted, waiting.id))
}

/// A file whose key is of an older version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outdated {
    /// The file.
    pub id: InodeId,
    /// Its key.
    pub key: DataKey,
}

/// How far the walk through a zone has come: the names from its root to what was seen last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Position(Vec<Vec<u8>>);

impl Position {
    /// After a file whose path was stored; the zone may have been renamed since.
    pub fn after(root: &[u8], file: &str) -> Position {
        let below = file.as_bytes().strip_prefix(root).unwrap_or_default();
        Position(below.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }
}

/// Some files of a zone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// Those with older keys.
    pub files: Vec<Outdated>,
    /// Whether the walk has seen all.
    pub is_last: bool,
}

/// Walks on through a zone, in the order of names and depth first, until `files_max` files with other keys than `version` are found or
/// `inodes_max` inodes seen. Zones in the zone are left out. `None` if the zone is gone or its re-encryption is over.
pub fn walk_zone(
    view: &View<'_>,
    zone: InodeId,
    position: &mut Position,
    files_max: usize,
    inodes_max: usize,
) -> Option<Batch> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let root = tree.find(store, zone)?;
    let version = under_way(&tree.own_zone(root)?)?.key_version.clone();
    let mut batch = Batch::default();
    let enters = |inode| store.kind(inode) == KindTag::Directory && tree.own_zone(inode).is_none();
    // the directories on the way to the position, as far as they are still there
    let mut above = vec![root];
    for name in &position.0 {
        match tree.child(store, above[above.len() - 1], name).filter(|child| enters(*child)) {
            Some(child) => above.push(child),
            None => break,
        }
    }
    position.0.truncate(above.len());
    for _ in 0..inodes_max {
        let directory = above[above.len() - 1];
        let after = position.0.get(above.len() - 1).map_or(&b""[..], Vec::as_slice);
        let Some(child) = tree.children_after(store, directory, after).0.next() else {
            above.pop();
            position.0.truncate(above.len());
            if above.is_empty() {
                batch.is_last = true;
                break;
            }
            continue;
        };
        position.0.truncate(above.len() - 1);
        position.0.push(store.name(child).to_vec());
        if enters(child) {
            above.push(child);
        } else if store.kind(child) == KindTag::File
            && let Some(key) = tree.data_key(child, SnapshotId::CURRENT).filter(|key| key.key_version != version)
        {
            batch.files.push(Outdated { id: store.inode_id(child), key });
            if batch.files.len() >= files_max {
                break;
            }
        }
    }
    Some(batch)
}

/// Gives files their new keys, where they still have the old ones and lie in the zone. Returns the path of the last one of them all, and how many
/// were changed.
pub fn update_keys(turn: &mut Turn<'_>, zone: InodeId, files: &[(Outdated, DataKey)]) -> (Option<Vec<u8>>, i64) {
    let (mut last, mut changed) = (None, 0);
    for (old, new) in files {
        let view = turn.view();
        let (tree, store) = (&view.state.tree, &view.state.store);
        let Some(file) = tree.find(store, old.id) else { continue };
        let lies_there = tree.zone_above(store, file).is_some_and(|(root, _)| store.inode_id(root) == zone);
        if !lies_there || tree.data_key(file, SnapshotId::CURRENT).as_ref() != Some(&old.key) {
            continue;
        }
        let path = tree.path_of(store, file);
        last = Some(path.clone());
        changed += 1;
        turn.log(Record::SetXattr { path: Cow::Owned(path), xattrs: vec![new.to_xattr()], given: true, rpc: None });
    }
    (last, changed)
}

/// Notes how far a zone's re-encryption is, or that it has ended. Nothing if it was cancelled in the meantime.
pub fn note_progress(turn: &mut Turn<'_>, zone: InodeId, last_file: Option<Vec<u8>>, done: (i64, i64), ended: bool) {
    let view = turn.view();
    let (tree, store) = (&view.state.tree, &view.state.store);
    let Some(root) = tree.find(store, zone) else { return };
    let Some(found) = tree.own_zone(root) else { return };
    let Some(last) = under_way(&found) else { return };
    let mut noted =
        Reencryption { reencrypted: last.reencrypted + done.0, failures: last.failures + done.1, ..last.clone() };
    if let Some(path) = last_file {
        noted.last_file = Some(String::from_utf8_lossy(&path).into());
    }
    if ended {
        noted = finished(&noted, view.now.wall);
    }
    if noted == *last {
        return;
    }
    let path = Cow::Owned(tree.path_of(store, root));
    let xattrs = vec![Zone { reencryption: Some(noted), ..found }.to_xattr()];
    turn.log(Record::SetXattr { path, xattrs, given: true, rpc: None });
}
