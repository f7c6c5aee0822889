//! setPermission, setOwner, setTimes, setReplication: attributes of one inode (`FSDirAttrOp`).

use crate::checks::invalid_path;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use namespace::resolve::is_exactly_reserved;
use record::KindTag;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{Action, Mode, Refusal, TimeMs};

/// Sets the mode. Owners and superusers may; a sticky bit is kept by superusers only where the inode is a file.
#[derive(Clone, Debug)]
pub struct SetPermission {
    /// Path.
    pub path: Vec<u8>,
    /// Mode bits.
    pub mode: Mode,
}

impl Write for SetPermission {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetPermission;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set permission for {}", view.path_text(&self.path)))?;
        if is_exactly_reserved(&self.path) {
            return Err(invalid_path(&view.path_text(&self.path)));
        }
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_owner(&resolved)?;
        let inode = view.inode_of(&resolved)?;
        if view.state.store.mode(inode) == self.mode {
            return Ok(());
        }
        turn.log_at(&Record::SetPermissions { path: resolved.plain(), mode: self.mode.bits() }, &[resolved.place()]);
        Ok(())
    }
}

/// Sets owner and group; an absent one stays. Only superusers change owners; owners may give a group they belong to.
#[derive(Clone, Debug)]
pub struct SetOwner {
    /// Path.
    pub path: Vec<u8>,
    /// New owner.
    pub user: Option<Arc<str>>,
    /// New group.
    pub group: Option<Arc<str>>,
}

impl Write for SetOwner {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetOwner;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set owner for {}", view.path_text(&self.path)))?;
        if is_exactly_reserved(&self.path) {
            return Err(invalid_path(&view.path_text(&self.path)));
        }
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_owner(&resolved)?;
        if view.settings.permissions && !view.is_superuser() {
            let caller = view.caller;
            if self.user.as_ref().is_some_and(|u| **u != *caller.user) {
                let text = format!("User {} is not a super user (non-super user cannot change owner).", caller.user);
                return Err(Refusal::AccessControl(text.into()));
            }
            if let Some(group) = self.group.as_ref().filter(|g| !caller.groups.contains(g)) {
                let text = format!("User {} does not belong to {group}", caller.user);
                return Err(Refusal::AccessControl(text.into()));
            }
        }
        let store = &view.state.store;
        let (user, group) = store.owner(view.inode_of(&resolved)?);
        // Quirk: an_empty_name_changes_no_owner: Hadoop sets it, but its log takes it for none, so that it is forgotten at the next start
        let given = |name: &Option<Arc<str>>| name.as_deref().filter(|n| !n.is_empty()).map(str::to_owned);
        let (new_user, new_group) = (given(&self.user), given(&self.group));
        let stays = |new: &Option<String>, old: &str| new.as_ref().is_none_or(|new| new == old);
        if stays(&new_user, store.user_name(user)) && stays(&new_group, store.group_name(group)) {
            return Ok(());
        }
        turn.log(Record::SetOwner {
            path: Cow::Owned(resolved.path()),
            user: new_user.map(Into::into),
            group: new_group.map(Into::into),
        });
        Ok(())
    }
}

/// Sets times; a negative one stays as it is.
#[derive(Clone, Debug)]
pub struct SetTimes {
    /// Path.
    pub path: Vec<u8>,
    /// Modification time.
    pub mtime: TimeMs,
    /// Access time.
    pub atime: TimeMs,
}

impl Write for SetTimes {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetTimes;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set times {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        if resolved.last().is_none() {
            return Err(Refusal::not_found(format!("File/Directory {} does not exist.", resolved.path_text())));
        }
        if self.mtime.0 < 0 && self.atime.0 < 0 {
            return Ok(());
        }
        turn.log_at(
            &Record::Times { path: resolved.plain(), mtime: self.mtime, atime: self.atime },
            &[resolved.place()],
        );
        Ok(())
    }
}

/// Sets the replication of a file. Answers false for what is no file.
#[derive(Clone, Debug)]
pub struct SetReplication {
    /// Path.
    pub path: Vec<u8>,
    /// Replicas.
    pub replication: u16,
}

impl Write for SetReplication {
    type Prepared = ();
    type Reply = bool;
    const OPERATION: Operation = Operation::SetReplication;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<bool, Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set replication for {}", view.path_text(&self.path)))?;
        view.check_replication(&self.path, self.replication, false)?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let Some(file) = resolved.last().filter(|f| store.kind(*f) == KindTag::File) else { return Ok(false) };
        let Some(before) = tree.file_shape(store, file).filter(|s| s.erasure_coding_policy == 0) else {
            return Ok(false);
        };
        if before.replication < self.replication {
            let after = namespace::quota::FileShape { replication: self.replication, ..before };
            let used = |shape| tree.blocks_usage(store, file, shape, 0);
            let delta = namespace::quota::difference(&used(&after), &used(&before));
            if let Some(parent) = store.parent(file) {
                tree.verify_quota(store, parent, None, &delta)?;
            }
        }
        turn.log_at(
            &Record::SetReplication { path: resolved.plain(), replication: self.replication },
            &[resolved.place()],
        );
        Ok(true)
    }
}
