//! Access control lists between their two forms: *logical* (every entry, as clients and records have them) and *stored* (the extended entries only;
//! owner, mask and other live in the mode). Hadoop's `AclStorage`.

use crate::Tree;
use record::{InodeHandle, KindTag, Store};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::{Action, Mode};

fn unnamed(kind: AclKind, permission: Action) -> AclEntry {
    AclEntry { scope: AclScope::Access, kind, name: None, permission }
}

/// The three entries that a mode stands for.
pub fn minimal(mode: Mode) -> [AclEntry; 3] {
    [unnamed(AclKind::User, mode.user()), unnamed(AclKind::Group, mode.group()), unnamed(AclKind::Other, mode.other())]
}

/// A mode of three actions and a sticky bit.
fn mode_of(user: Action, group: Action, other: Action, sticky: bool) -> Mode {
    Mode::new(u16::from(user.0) << 6 | u16::from(group.0) << 3 | u16::from(other.0) | if sticky { 0o1000 } else { 0 })
}

/// All entries that stored ones and a mode stand for: access entries, then default ones.
pub fn logical(stored: &[AclEntry], mode: Mode) -> Vec<AclEntry> {
    let access = stored.iter().take_while(|e| e.scope == AclScope::Access).count();
    let mut all = Vec::with_capacity(stored.len() + 3);
    if access == 0 {
        all.extend(minimal(mode));
    } else {
        all.push(unnamed(AclKind::User, mode.user()));
        all.extend_from_slice(&stored[..access]);
        all.push(unnamed(AclKind::Mask, mode.group()));
        all.push(unnamed(AclKind::Other, mode.other()));
    }
    all.extend_from_slice(&stored[access..]);
    all
}

/// Stored entries and mode that a logical list stands for. The list is in order: owner first; mask (if any entry is named) and other last of the
/// access entries; default entries behind. `None` if it has fewer than three access entries.
pub fn stored(logical: &[AclEntry], mode: Mode) -> Option<(Vec<AclEntry>, Mode)> {
    let access = logical.iter().take_while(|e| e.scope == AclScope::Access).count();
    if access < 3 {
        return None;
    }
    let (list, defaults) = logical.split_at(access);
    let mode = mode_of(list[0].permission, list[access - 2].permission, list[access - 1].permission, mode.sticky());
    let mut kept = Vec::with_capacity(logical.len());
    if access > 3 {
        kept.extend_from_slice(&list[1..access - 2]);
    }
    kept.extend_from_slice(defaults);
    Some((kept, mode))
}

impl Tree {
    /// All entries of an inode.
    pub fn logical_acl(&self, store: &Store, inode: InodeHandle) -> Vec<AclEntry> {
        logical(&self.acl(inode), store.mode(inode))
    }

    /// Sets a logical list as a record has it: the whole result; an empty one removes the ACL and gives the group its own bits back.
    /// Default entries of a file are dropped. A list that is too short changes nothing.
    pub fn apply_logical_acl(&mut self, store: &mut Store, inode: InodeHandle, entries: &[AclEntry]) {
        let mode = store.mode(inode);
        if entries.is_empty() {
            let mut stored = self.acl_entries(inode);
            let group = stored.find(|e| e.scope == AclScope::Access && e.kind == AclKind::Group && e.name.is_none());
            if let Some(group) = group.map(|e| e.permission) {
                store.edit_inode(inode, |i| i.mode = mode_of(mode.user(), group, mode.other(), mode.sticky()));
            }
            self.set_acl(store, inode, &[]);
            return;
        }
        let Some((mut kept, mode)) = stored(entries, mode) else { return };
        if store.kind(inode) != KindTag::Directory {
            kept.retain(|e| e.scope == AclScope::Access);
        }
        self.set_acl(store, inode, &kept);
        store.edit_inode(inode, |i| i.mode = mode);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(scope: AclScope, kind: AclKind, name: Option<&str>, bits: u8) -> AclEntry {
        AclEntry { scope, kind, name: name.map(Into::into), permission: Action(bits) }
    }

    #[test]
    fn logical_and_stored_are_inverse() {
        use AclKind::{Group, Mask, Other, User};
        use AclScope::{Access, Default};
        let full = vec![
            entry(Access, User, None, 7),
            entry(Access, User, Some("bob"), 5),
            entry(Access, Group, None, 1),
            entry(Access, Mask, None, 5),
            entry(Access, Other, None, 0),
            entry(Default, User, None, 7),
            entry(Default, Group, None, 5),
            entry(Default, Other, None, 5),
        ];
        let (kept, mode) = stored(&full, Mode::new(0o1777)).expect("complete");
        assert_eq!(mode, Mode::new(0o1750));
        assert_eq!(kept.len(), 5);
        assert_eq!(logical(&kept, mode), full);

        let minimal_only = minimal(Mode::new(0o640)).to_vec();
        assert_eq!(stored(&minimal_only, Mode::new(0)), Some((vec![], Mode::new(0o640))));
        assert_eq!(stored(&minimal_only[..2], Mode::new(0)), None);
    }
}
