//! getEZForPath, getEnclosingRoot, listEncryptionZones, listReencryptionStatus.

use crate::View;
use crate::encryption::EncryptionZone;
use namespace::Walk;
use record::InodeHandle;
use vocab::encryption::{Reencryption, Zone};
use vocab::{Action, InodeId, Refusal};

/// getEZForPath: the zone in which the path lies, which need not exist.
///
/// # Errors
/// Access along the path, and READ of what it names.
pub fn get_zone(view: &View<'_>, path: &[u8]) -> Result<Option<EncryptionZone>, Refusal> {
    let resolved = view.resolve(path, Walk::Read)?;
    view.check_inode(&resolved, Action::READ)?;
    Ok(view.zone_of_path(&resolved).map(|(root, zone)| view.told(root, zone)))
}

/// getEnclosingRoot: the zone's root, or that of the file system.
///
/// # Errors
/// As [`get_zone`].
pub fn get_enclosing_root(view: &View<'_>, path: &[u8]) -> Result<Vec<u8>, Refusal> {
    Ok(get_zone(view, path)?.map_or_else(|| b"/".to_vec(), |zone| zone.path))
}

/// Zones with higher ids than `after`, in the order of their ids.
fn zones_after(view: &View<'_>, after: i64) -> Vec<(InodeId, InodeHandle, Zone)> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let found = tree.zones().filter_map(|root| Some((store.inode_id(root), root, tree.own_zone(root)?)));
    let mut found: Vec<_> = found.filter(|(id, ..)| id.0 > after).collect();
    found.sort_by_key(|(id, ..)| *id);
    found
}

/// The path of a zone's root, unless only a snapshot holds it.
fn present_path(view: &View<'_>, root: InodeHandle) -> Option<Vec<u8>> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let path = tree.path_of(store, root);
    let leads_back = tree.resolve(store, &path).is_ok_and(|resolved| resolved.last() == Some(root));
    leads_back.then_some(path)
}

/// listEncryptionZones: some zones after an id, and whether there are more.
pub fn list_zones(view: &View<'_>, after: i64) -> (Vec<EncryptionZone>, bool) {
    let all = zones_after(view, after);
    let told = |(id, root, zone): &(InodeId, InodeHandle, Zone)| {
        Some(EncryptionZone { id: *id, path: present_path(view, *root)?, zone: zone.clone() })
    };
    let zones: Vec<EncryptionZone> = all.iter().filter_map(told).take(view.settings.zones_listed).collect();
    let has_more = zones.len() < all.len();
    // what only snapshots hold does not call for another page
    let has_more = has_more && zones.len() == view.settings.zones_listed;
    (zones, has_more)
}

/// How far a re-encryption is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It was asked for.
    Submitted,
    /// It is under way.
    Processing,
    /// It has ended.
    Completed,
}

/// The last re-encryption of a zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reencrypting {
    /// The zone's root.
    pub id: InodeId,
    /// Its path.
    pub path: Vec<u8>,
    /// How far it is.
    pub state: State,
    /// What is stored of it.
    pub last: Reencryption,
}

/// listReencryptionStatus: of some zones after an id, and whether there are more. `processing` is the zone being worked on.
pub fn list_reencryption(view: &View<'_>, after: i64, processing: Option<InodeId>) -> (Vec<Reencrypting>, bool) {
    let mut all = zones_after(view, after);
    all.retain(|(.., zone)| zone.reencryption.is_some());
    let told = |(id, root, zone): &(InodeId, InodeHandle, Zone)| {
        let last = zone.reencryption.clone()?;
        let state = match last.completed {
            Some(_) => State::Completed,
            None if processing == Some(*id) => State::Processing,
            None => State::Submitted,
        };
        Some(Reencrypting { id: *id, path: present_path(view, *root)?, state, last })
    };
    let listed: Vec<Reencrypting> = all.iter().filter_map(told).take(view.settings.reencryption_listed).collect();
    let has_more = all.len() > view.settings.reencryption_listed;
    (listed, has_more)
}
