//! setStoragePolicy, unsetStoragePolicy, getStoragePolicy, getStoragePolicies.

use crate::write::xattr::check_new_xattr;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use record::KindTag;
use state::SATISFY_XATTR;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::layout::Feature;
use vocab::storage_policy::{self, POLICIES, StoragePolicy, UNSPECIFIED};
use vocab::xattr::Xattr;
use vocab::{Action, Refusal, SnapshotId};

/// Sets the storage policy of a path by name, or unsets it.
#[derive(Clone, Debug)]
pub struct SetStoragePolicy {
    /// Path.
    pub path: Vec<u8>,
    /// Name; `None` to unset.
    pub policy: Option<Arc<str>>,
}

impl Write for SetStoragePolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetStoragePolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        if self.policy.as_ref().is_some_and(|name| name.eq_ignore_ascii_case("ALL_NVDIMM")) {
            view.check_feature(Feature::NvdimmSupport)?;
        }
        let what = if self.policy.is_some() { "set storage policy" } else { "unset storage policy" };
        if !view.settings.storage_policies {
            return Err(Refusal::io(format!("Failed to {what} since dfs.storage.policy.enabled is set to false.")));
        }
        if view.settings.storage_policies_of_superusers {
            view.check_superuser()?;
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        let verb = if self.policy.is_some() { "set" } else { "unset" };
        view.check_safe_mode(|| format!("Cannot {verb} storage policy for {}", view.path_text(&self.path)))?;
        let policy = match &self.policy {
            None => UNSPECIFIED,
            Some(name) => match storage_policy::by_name(name) {
                Some(policy) => policy.id,
                None => {
                    let text = format!("Cannot find a block policy with the name {name}");
                    return Err(Refusal::HadoopIllegalArgument(text.into()));
                }
            },
        };
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let Some(inode) = resolved.last() else {
            return Err(Refusal::not_found(format!("File/Directory does not exist: {}", resolved.path_text())));
        };
        let copied = |id: u8| storage_policy::by_id(id).filter(|p| p.copy_on_create);
        match store.kind(inode) {
            KindTag::File => {
                if let Some(new) = copied(policy) {
                    let text = format!("Policy {} cannot be set after file creation.", show(new));
                    return Err(Refusal::HadoopIllegalArgument(text.into()));
                }
                if let Some(old) = copied(tree.own_storage_policy(store, inode)) {
                    let text = format!("Existing policy {} cannot be changed after file creation.", old.name);
                    return Err(Refusal::HadoopIllegalArgument(text.into()));
                }
            }
            KindTag::Directory => {}
            _ => return Err(Refusal::not_found(format!("{} is not a file or directory", resolved.path_text()))),
        }
        turn.log(Record::SetStoragePolicy { path: Cow::Owned(resolved.path()), policy });
        Ok(())
    }
}

/// Asks that the blocks of a file, or of the files of a directory, be moved to where their storage policies want them: whoever asks for the
/// queue does that (Hadoop's external `StoragePolicySatisfier`), and takes the mark away.
#[derive(Clone, Debug)]
pub struct SatisfyStoragePolicy {
    /// Path.
    pub path: Vec<u8>,
}

impl Write for SatisfyStoragePolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SatisfyStoragePolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        if !view.settings.storage_policies {
            let text = "Failed to satisfy storage policy since dfs.storage.policy.enabled is set to false.";
            return Err(Refusal::io(text));
        }
        if !view.settings.storage_policy_satisfier {
            return Err(Refusal::UnsupportedAction(
                "Cannot request to satisfy storage policy when storage policy satisfier feature has been disabled by admin. \
                 Seek for an admin help to enable it or use Mover tool."
                    .into(),
            ));
        }
        let most = view.settings.satisfier_queue;
        if view.state.satisfier.len() >= most {
            return Err(Refusal::io(format!("Outstanding satisfier queue limit: {most} exceeded, try later!")));
        }
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot satisfy storage policy for {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_inode(&resolved, Action::WRITE)?;
        let inode = view.inode_of(&resolved)?;
        let (namespace, name) = SATISFY_XATTR;
        let is_file = view.state.store.kind(inode) == KindTag::File;
        let marked = is_file && view.state.tree.xattr(inode, namespace, name).is_some();
        if marked || !view.state.has_something_to_satisfy(inode) {
            return Ok(());
        }
        let mark = Xattr { namespace, name: name.into(), value: [].into() };
        check_new_xattr(&view, inode, (&mark, true, false))?;
        let (id, rpc) = (view.state.store.inode_id(inode), view.caller.rpc_ids);
        turn.log(Record::SetXattr { path: Cow::Owned(resolved.path()), xattrs: vec![mark], given: false, rpc });
        turn.soft().satisfier.push_back(id);
        Ok(())
    }
}

/// A policy as Java prints it.
fn show(policy: &StoragePolicy) -> String {
    let list = |kinds: &[vocab::StorageKind]| kinds.iter().map(|k| k.name()).collect::<Vec<_>>().join(", ");
    format!(
        "BlockStoragePolicy{{{}:{}, storageTypes=[{}], creationFallbacks=[{}], replicationFallbacks=[{}]}}",
        policy.name,
        policy.id,
        list(policy.kinds),
        list(policy.creation_fallbacks),
        list(policy.replication_fallbacks)
    )
}

/// getStoragePolicy: the policy in effect.
///
/// # Errors
/// `FileNotFound`, access.
pub fn get_storage_policy(view: &View<'_>, path: &[u8]) -> Result<&'static StoragePolicy, Refusal> {
    let resolved = view.resolve(path, Walk::ReadLink)?;
    view.check_inode(&resolved, Action::READ)?;
    let Some(inode) = resolved.last() else {
        return Err(Refusal::not_found(format!("File/Directory does not exist: {}", resolved.path_text())));
    };
    let id = match resolved.snapshot() {
        SnapshotId::CURRENT => view.state.tree.storage_policy(&view.state.store, inode),
        snapshot => view.past_policy(inode, snapshot),
    };
    let found = storage_policy::by_id(if id == UNSPECIFIED { view.settings.default_policy } else { id });
    found.ok_or_else(|| Refusal::HadoopIllegalArgument(format!("There is no storage policy with id {id}").into()))
}

/// getStoragePolicies: all of them.
pub fn get_storage_policies() -> &'static [StoragePolicy] {
    &POLICIES
}
