//! What a new inode begins with: group of its parent, mode, inherited ACL (`FSDirectory.copyINodeDefaultAcl`); and missing ancestors.

use crate::{Turn, View};
use edit::Record;
use edit::record::Permission;
use namespace::acl::{logical, stored};
use namespace::{Place, Resolved};
use record::{Features, InodeHandle};
use std::sync::Arc;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::quota::Usage;
use vocab::{Action, InodeId, Mode, Refusal};

/// Mode of a create or mkdir as the client sends it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CreateModes {
    /// The client's mode with its umask applied.
    pub masked: Mode,
    /// Without the umask; absent from old clients. Used where a default ACL is inherited (HDFS-6962).
    pub unmasked: Option<Mode>,
}

impl CreateModes {
    /// The same with write and execute for the owner, for ancestors made on the way. The sticky bit is left out.
    fn with_owner_access(self) -> CreateModes {
        let widen = |m: Mode| Mode::new(m.bits() & 0o777 | 0o300);
        CreateModes { masked: widen(self.masked), unmasked: self.unmasked }
    }
}

/// Mode and logical ACL (empty: none) of a new inode.
pub struct NewAttributes {
    /// Mode bits.
    pub mode: Mode,
    /// All entries, as records have them.
    pub acl: Vec<AclEntry>,
}

impl View<'_> {
    /// Mode and ACL of a new child of `parent`.
    pub fn new_attributes(&self, parent: InodeHandle, modes: CreateModes, directory: bool) -> NewAttributes {
        if !self.state.store.features(parent).contains(Features::ACL) {
            return NewAttributes { mode: modes.masked, acl: Vec::new() };
        }
        let defaults: Vec<AclEntry> = self
            .state
            .tree
            .acl_entries(parent)
            .filter(|e| e.scope == AclScope::Default)
            .map(|e| e.to_entry())
            .collect();
        if defaults.is_empty() {
            return NewAttributes { mode: modes.masked, acl: Vec::new() };
        }
        let mode = if self.settings.acl_inheritance { modes.unmasked.unwrap_or(modes.masked) } else { modes.masked };
        inherit(&defaults, mode, directory)
    }

    /// The group of a new child of `parent`.
    pub fn new_group(&self, parent: InodeHandle) -> Arc<str> {
        self.state.store.group_name(self.state.store.owner(parent).1).clone()
    }
}

/// The default entries of a parent become access entries of the child, filtered by the mode asked for; a directory keeps them as its defaults too.
fn inherit(defaults: &[AclEntry], mode: Mode, directory: bool) -> NewAttributes {
    let minimal = defaults.len() == 3;
    let and = |a: Action, b: Action| Action(a.0 & b.0);
    let mut entries: Vec<AclEntry> = defaults
        .iter()
        .map(|e| {
            let permission = match (e.kind, &e.name) {
                (AclKind::User, None) => and(e.permission, mode.user()),
                (AclKind::Group, _) if minimal => and(e.permission, mode.group()),
                (AclKind::Mask, _) => and(e.permission, mode.group()),
                (AclKind::Other, _) => and(e.permission, mode.other()),
                _ => e.permission,
            };
            AclEntry { scope: AclScope::Access, permission, ..e.clone() }
        })
        .collect();
    if directory {
        entries.extend_from_slice(defaults);
    }
    match stored(&entries, mode) {
        Some((kept, mode)) if kept.is_empty() => NewAttributes { mode, acl: Vec::new() },
        Some((kept, mode)) => NewAttributes { mode, acl: logical(&kept, mode) },
        None => NewAttributes { mode, acl: Vec::new() },
    }
}

impl Turn<'_> {
    /// The next inode id that no inode has (an image may hold ids beyond its own counter).
    pub fn next_inode_id(&self) -> InodeId {
        let state = self.view().state;
        let mut id = InodeId(state.sequences.inode.0 + 1);
        while state.store.find_inode(id).is_some() {
            id.0 += 1;
        }
        id
    }

    /// Makes the missing ancestors of a path, one record each. Gives the parent of the last component.
    ///
    /// # Errors
    /// Limits and quotas; ancestors made before the one refused stay, as in Hadoop.
    pub fn make_ancestors(
        &mut self,
        resolved: &Resolved<'_>,
        modes: CreateModes,
        inherit: bool,
    ) -> Result<InodeHandle, Refusal> {
        let existing = resolved.inodes().len();
        // where the path itself exists (an overwrite), the deepest inode is not its parent
        let mut parent = resolved.parent().unwrap_or_else(|| resolved.deepest());
        if existing < resolved.depth() {
            let base = if inherit {
                CreateModes { masked: self.view().state.store.mode(parent), unmasked: None }
            } else {
                modes
            };
            let modes = base.with_owner_access();
            for depth in existing..resolved.depth() {
                parent = self.make_directory(parent, resolved, depth, modes)?;
            }
        }
        Ok(parent)
    }

    /// Makes the directory at `depth` of a path below `parent`: checks and one record.
    ///
    /// # Errors
    /// Limits and quotas.
    pub fn make_directory(
        &mut self,
        parent: InodeHandle,
        resolved: &Resolved<'_>,
        depth: usize,
        modes: CreateModes,
    ) -> Result<InodeHandle, Refusal> {
        let view = self.view();
        view.check_new_name(parent, resolved, depth)?;
        let one = Usage { namespace: 1, ..Usage::default() };
        view.state.tree.verify_quota(&view.state.store, parent, None, &one)?;
        let attributes = view.new_attributes(parent, modes, true);
        let (user, group) = (&*self.caller().user, view.new_group(parent));
        let time = view.now.wall;
        let record = Record::Mkdir {
            inode_id: self.next_inode_id(),
            path: resolved.plain_to(depth),
            mtime: time,
            atime: time,
            permission: Permission { user: user.into(), group: (&*group).into(), mode: attributes.mode.bits() },
            acl: attributes.acl,
            xattrs: Vec::new(),
        };
        let made = self.log_at(&record, &[Place { parent: Some(parent), last: None }]);
        let state = self.view().state;
        made.inode.and_then(|id| state.store.find_inode(id)).ok_or_else(|| Refusal::io("Failed to create directory"))
    }
}
