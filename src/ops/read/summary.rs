//! getContentSummary, getQuotaUsage.

use crate::View;
use namespace::Walk;
use namespace::summary::{Summary, SummaryWalk};
use record::{Features, InodeHandle, KindTag};
use std::sync::Arc;
use vocab::quota::{Quota, Usage};
use vocab::storage_policy::UNSPECIFIED;
use vocab::{Action, InodeId, Refusal, SnapshotId};

/// Totals of a subtree with the quota of its top.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContentSummary {
    /// Totals; `files` includes symlinks, as Hadoop's `fileCount` does.
    pub totals: Summary,
    /// What of them only snapshots hold; counted like `totals`.
    pub past: Summary,
    /// Limits of the top.
    pub quota: Quota,
    /// Name of the erasure coding policy of the top: `Replicated` for a file without one, empty for a directory without one.
    pub erasure_coding_policy: Arc<str>,
}

/// A content summary under way: `step` it under one read hold after another until it is done.
#[derive(Clone, Debug)]
pub struct ContentSummaryWalk {
    top: InodeId,
    /// Whether every directory is checked as it is entered (or all were at the start).
    check: bool,
    walk: SummaryWalk,
    /// The snapshot that the top is looked at in, and the top itself if it is in one.
    past: Option<PastTop>,
}

#[derive(Clone, Debug)]
struct PastTop {
    quota: Quota,
    erasure_coding_policy: Option<Arc<str>>,
}

impl ContentSummaryWalk {
    /// Begins.
    ///
    /// # Errors
    /// `FileNotFound`, access along the path and READ_EXECUTE of the directories.
    pub fn begin(view: &View<'_>, path: &[u8]) -> Result<ContentSummaryWalk, Refusal> {
        let resolved = view.resolve(path, Walk::ReadLink)?;
        let mut check = view.settings.permissions && !view.is_superuser();
        if view.settings.summary_checks_subtree && check {
            let wanted = namespace::Wanted { subtree: Some(Action::READ_EXECUTE), ..Default::default() };
            view.check(&resolved, wanted)?;
            check = false;
        }
        let Some(top) = resolved.last() else {
            return Err(Refusal::not_found(format!("File does not exist: {}", resolved.path_text())));
        };
        let (tree, store, snapshot) = (&view.state.tree, &view.state.store, resolved.snapshot());
        if resolved.is_past() {
            let checker = view.checker();
            let enter = |d| if check { checker.enter_then(d, snapshot, Action::READ_EXECUTE) } else { Ok(()) };
            let walk = SummaryWalk::of_past(tree, store, top, snapshot, &enter)?;
            // as in Hadoop quotas and attributes are those of now, but for the directory that the snapshot was taken of
            let is_root = tree.snapshot_root(store, top).is_some_and(|root| root.by_id(snapshot).is_some());
            let xattrs = tree.xattrs_at(top, snapshot);
            let hides = !xattrs.is_empty() || tree.storage_policy_at(store, top, snapshot) != UNSPECIFIED;
            let erasure_coding_policy = match is_root && hides {
                true => namespace::erasure_coding::policy_named_by(&xattrs),
                false => policy_name(view, top, resolved.parent()),
            };
            let at = if is_root { snapshot } else { SnapshotId::CURRENT };
            let past = Some(PastTop { quota: tree.quota_at(store, top, at), erasure_coding_policy });
            return Ok(ContentSummaryWalk { top: store.inode_id(top), check, walk, past });
        }
        let walk = SummaryWalk::new(tree, store, top, &|d| enter(view, check, d))?;
        Ok(ContentSummaryWalk { top: store.inode_id(top), check, walk, past: None })
    }

    /// Counts up to `budget` more inodes. `None`: to be continued.
    ///
    /// # Errors
    /// Access.
    pub fn step(&mut self, view: &View<'_>, budget: usize) -> Result<Option<ContentSummary>, Refusal> {
        let check = self.check;
        self.walk.step(&view.state.tree, &view.state.store, budget, &|d| enter(view, check, d))?;
        if !self.walk.is_done() {
            return Ok(None);
        }
        let top = view.state.tree.find(&view.state.store, self.top);
        let (mut totals, past) = (self.walk.totals, self.walk.past);
        totals.files += totals.symlinks; // clients see links as files here
        let (quota, policy) = match &self.past {
            Some(top) => (top.quota, top.erasure_coding_policy.clone()),
            None => (
                top.map_or(Quota::default(), |top| limits(view, top)),
                top.and_then(|top| policy_name(view, top, view.state.store.parent(top))),
            ),
        };
        Ok(Some(ContentSummary { totals, past, quota, erasure_coding_policy: policy.unwrap_or_default() }))
    }
}

/// Quirk: striped_files_and_policies: a directory with attributes hides the policy of those above it, whatever the attributes are; Hadoop's
/// storage policies of directories are attributes. From the top Hadoop goes on where a snapshot has it, then to where all else is now.
fn summarised_policy_name(view: &View<'_>, top: InodeHandle, parent: Option<InodeHandle>) -> Option<Arc<str>> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let hides = |inode| {
        store.features(inode).contains(Features::XATTRS) || tree.own_storage_policy(store, inode) != UNSPECIFIED
    };
    let mut current = parent;
    let mut inode = top;
    while !hides(inode) {
        inode = current?;
        current = store.parent(inode);
    }
    tree.own_erasure_coding_name(inode)
}

fn policy_name(view: &View<'_>, top: InodeHandle, parent: Option<InodeHandle>) -> Option<Arc<str>> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    match store.kind(top) {
        KindTag::File => {
            Some(tree.erasure_coding_policy(store, top).map_or_else(|| "Replicated".into(), |p| p.name.clone()))
        }
        KindTag::Directory => summarised_policy_name(view, top, parent),
        _ => None,
    }
}

fn enter(view: &View<'_>, check: bool, directory: InodeHandle) -> Result<(), Refusal> {
    if !check {
        return Ok(());
    }
    let resolved = view.state.tree.resolve_inode(&view.state.store, directory);
    view.check_inode(&resolved, Action::READ_EXECUTE)
}

fn limits(view: &View<'_>, inode: InodeHandle) -> Quota {
    view.state.tree.quota(&view.state.store, inode).map_or(Quota::default(), |q| q.limits)
}

/// The whole content summary in one hold; for tests and small trees.
///
/// # Errors
/// As [`ContentSummaryWalk::begin`].
pub fn get_content_summary(view: &View<'_>, path: &[u8]) -> Result<ContentSummary, Refusal> {
    let mut walk = ContentSummaryWalk::begin(view, path)?;
    loop {
        if let Some(summary) = walk.step(view, 10_000)? {
            return Ok(summary);
        }
    }
}

/// Quota and use of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaUsage {
    /// Use: names and bytes.
    pub usage: Usage,
    /// Limits.
    pub quota: Quota,
}

/// getQuotaUsage: kept numbers of a quota directory; of others the caller must count ([`ContentSummaryWalk`] with [`needs_count`]).
///
/// # Errors
/// `FileNotFound`, access along the path.
pub fn get_quota_usage(view: &View<'_>, path: &[u8]) -> Result<QuotaUsage, Refusal> {
    match quota_record(view, path)? {
        Some(usage) => Ok(usage),
        None => {
            let summary = get_content_summary(view, path)?;
            Ok(QuotaUsage { usage: summary.totals.usage, quota: summary.quota })
        }
    }
}

/// Whether the use of a path is not kept and must be counted, which may take many slices.
///
/// # Errors
/// As [`get_quota_usage`].
pub fn needs_count(view: &View<'_>, path: &[u8]) -> Result<bool, Refusal> {
    Ok(quota_record(view, path)?.is_none())
}

/// Quota and kept use of a directory in a snapshot.
///
/// Quirk: a_quota_in_a_snapshot_has_no_use: that of the snapshot's root, or of a directory that only snapshots hold, says one name and no byte, as
/// Hadoop does after a start
fn past_quota(view: &View<'_>, inode: InodeHandle, snapshot: SnapshotId) -> Option<QuotaUsage> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let is_root = tree.snapshot_root(store, inode).is_some_and(|root| root.by_id(snapshot).is_some());
    let nothing = Usage { namespace: 1, ..Usage::default() };
    if is_root {
        let quota = tree.quota_at(store, inode, snapshot);
        return (quota != Quota::default()).then_some(QuotaUsage { usage: nothing, quota });
    }
    let record = tree.quota(store, inode).filter(|q| q.limits != Quota::default())?;
    let usage = if tree.is_attached(store, inode) { record.usage } else { nothing };
    Some(QuotaUsage { usage, quota: record.limits })
}

fn quota_record(view: &View<'_>, path: &[u8]) -> Result<Option<QuotaUsage>, Refusal> {
    let resolved = view.resolve(path, Walk::ReadLink)?;
    view.check(&resolved, namespace::Wanted { subtree: Some(Action::READ_EXECUTE), ..Default::default() })?;
    let Some(inode) = resolved.last() else {
        return Err(Refusal::not_found(format!("File/Directory does not exist: {}", resolved.path_text())));
    };
    if view.state.store.kind(inode) != KindTag::Directory {
        return Ok(None);
    }
    if resolved.is_past() {
        return Ok(past_quota(view, inode, resolved.snapshot()));
    }
    let record = view.state.tree.quota(&view.state.store, inode).filter(|q| q.limits != Quota::default());
    Ok(record.map(|q| QuotaUsage { usage: q.usage, quota: q.limits }))
}
