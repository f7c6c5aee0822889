//! setQuota: limits of a directory.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::{Walk, quota::ROOT_NAMESPACE};
use record::{InodeHandle, KindTag};
use std::borrow::Cow;
use vocab::layout::Feature;
use vocab::quota::Quota;
use vocab::{InodeId, Refusal, StorageKind};

/// "Leave as it is" (`HdfsConstants.QUOTA_DONT_SET`).
pub const UNCHANGED: i64 = i64::MAX;
/// "No limit" (`HdfsConstants.QUOTA_RESET`).
pub const RESET: i64 = -1;

/// Sets quotas: names and space, or the space of one storage kind.
#[derive(Clone, Debug)]
pub struct SetQuota {
    /// Path.
    pub path: Vec<u8>,
    /// Names; [`UNCHANGED`] or [`RESET`] too.
    pub names: i64,
    /// Bytes; [`UNCHANGED`] or [`RESET`] too.
    pub space: i64,
    /// The kind that `space` is for.
    pub kind: Option<StorageKind>,
}

impl Write for SetQuota {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetQuota;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        if let Some(kind) = self.kind {
            view.check_feature(Feature::QuotaByStorageType)?;
            if kind == StorageKind::Nvdimm {
                view.check_feature(Feature::NvdimmSupport)?;
            }
        }
        if view.settings.owner_sets_quota { Ok(()) } else { view.check_superuser() }
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set quota on {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        if view.settings.permissions && !view.is_superuser() {
            let above = resolved.path_to(resolved.depth().saturating_sub(1));
            view.check_owner(&view.state.tree.resolve(&view.state.store, &above)?)?;
        }
        let legal = |n: i64| n >= 0 || n == RESET;
        if !legal(self.names) || !legal(self.space) {
            let text = format!("Illegal value for nsQuota or ssQuota : {} and {}", self.names, self.space);
            return Err(Refusal::IllegalArgument(text.into()));
        }
        if self.kind.is_some() && (!view.settings.quota_by_kind || self.names != UNCHANGED) {
            return Err(Refusal::UnsupportedAction(
                format!(
                    "Failed to set quota by storage type because eitherdfs.quota.by.storage.type.enabled is set to {} or nsQuota value is illegal {}",
                    view.settings.quota_by_kind, self.names
                )
                .into(),
            ));
        }
        let directory = match resolved.last() {
            None => return Err(Refusal::not_found(format!("Directory does not exist: {}", resolved.path_text()))),
            Some(inode) if view.state.store.kind(inode) != KindTag::Directory => {
                return Err(Refusal::PathIsNotDirectory(resolved.path_text()));
            }
            Some(inode) => inode,
        };
        if let Some(record) = self.record(&view, directory, resolved.path()) {
            turn.log(record);
        }
        Ok(())
    }
}

/// Inodes below a directory that are counted in the hold that sets its first quota.
const COUNTED_AT_ONCE: u64 = 1 << 12;

impl SetQuota {
    /// The directory whose use must be counted, and is better counted before: it is large and has no quota yet. What speaks against the call is said
    /// when it runs.
    pub fn counts(&self, view: &View<'_>) -> Option<InodeId> {
        self.prepare(view).ok()?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let directory = view.resolve(&self.path, Walk::Write).ok()?.last()?;
        let is_new = store.kind(directory) == KindTag::Directory && tree.quota(store, directory).is_none();
        (is_new && !tree.has_at_most(store, directory, COUNTED_AT_ONCE)).then(|| store.inode_id(directory))
    }

    /// The record with the resulting limits; `None` if nothing changes.
    fn record(&self, view: &View<'_>, directory: InodeHandle, path: Vec<u8>) -> Option<Record<'static>> {
        let limits = view.state.tree.quota(&view.state.store, directory).map_or(Quota::default(), |q| q.limits);
        let number = |limit: Option<u64>| limit.map_or(RESET, |n| n as i64);
        let pick = |new: i64, old: i64| if new == UNCHANGED { old } else { new };
        if let Some(kind) = self.kind {
            // "leave as it is" takes the limit of all space over, as in Hadoop, not the old one of the kind
            let quota = pick(self.space, number(limits.space));
            let changed = number(limits.by_kind[kind as usize]) != quota;
            return changed.then_some(Record::SetQuotaByKind { path: Cow::Owned(path), kind, quota });
        }
        let names = pick(self.names, number(limits.namespace));
        // The root always has a limit. The record says "reset" all the same: the number of that limit reads as "unchanged" in a record.
        let reset_root = directory == view.state.tree.root() && names == RESET;
        let resulting = if reset_root { ROOT_NAMESPACE as i64 } else { names };
        let space = pick(self.space, number(limits.space));
        let changed = resulting != number(limits.namespace) || space != number(limits.space);
        changed.then_some(Record::SetQuota { path: Cow::Owned(path), namespace: names, space })
    }
}
