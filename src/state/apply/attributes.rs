//! Attributes of one inode, and the records of tables and counters.

use super::Context;
use crate::fit::attributes::added_policy;
use crate::tokens::{MasterKey, Token};
use crate::{Applied, Effect, RetryPayload, State};
use edit::Record;
use record::{Features, InodeHandle, InodeKind, KindTag};
use vocab::encryption::{self, DataKey};
use vocab::erasure_coding::{ErasureCodingPolicy, PolicyState};
use vocab::quota::Quota;
use vocab::storage_policy::UNSPECIFIED;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{BlockId, Mode, SnapshotId, TimeMs};

/// Attribute under which Hadoop keeps the storage policy of a directory; here it is a field of the record.
pub const STORAGE_POLICY_XATTR: &str = "hsm.block.storage.policy.id";

/// "Do not change this quota" in records (`HdfsConstants.QUOTA_DONT_SET`).
const QUOTA_UNCHANGED: i64 = i64::MAX;

impl State {
    pub(super) fn apply_attributes(
        &mut self,
        cx: &mut Context<'_>,
        record: &Record<'_>,
        inode: InodeHandle,
    ) -> Applied {
        let only_access_time = matches!(record, Record::Times { mtime, .. } if mtime.0 < 0);
        let features = self.store.features(inode);
        let changes_nothing = match record {
            Record::SetAcl { entries, .. } => entries.is_empty() && !features.contains(Features::ACL),
            // the policy of a directory is an attribute of Hadoop's, which rewrites them all if there are any
            Record::SetStoragePolicy { policy: UNSPECIFIED, .. } => {
                self.store.kind(inode) == KindTag::Directory
                    && !features.contains(Features::XATTRS)
                    && self.store.own_storage_policy(inode) == UNSPECIFIED
            }
            // Quirk: snapshots_share_the_new_key_of_a_file: as in Hadoop while it serves; when it replays its log, they keep the old one
            Record::SetXattr { xattrs, rpc: None, .. } => self.renews_key(inode, xattrs),
            _ => false,
        };
        if !(changes_nothing || only_access_time && cx.policy.snapshot_skips_access_time) {
            self.capture(inode);
        }
        let State { store, tree, .. } = self;
        match record {
            Record::SetReplication { replication, .. } => {
                let replication = (*replication).clamp(cx.policy.replication_min, cx.policy.replication_max);
                return self.apply_replication(inode, replication);
            }
            Record::SetPermissions { mode, .. } => store.set_mode(inode, Mode::new(*mode)),
            Record::SetOwner { user, group, .. } => tree.set_owner(store, inode, user.as_deref(), group.as_deref()),
            Record::Times { mtime, atime, .. } => {
                let pick = |new: TimeMs, old: TimeMs| if new.0 < 0 { old } else { new };
                let (old_mtime, old_atime) = store.times(inode);
                store.set_times(inode, pick(*mtime, old_mtime), pick(*atime, old_atime));
            }
            Record::SetAcl { entries, .. } => tree.apply_logical_acl(store, inode, entries),
            Record::SetStoragePolicy { policy, .. } => tree.set_storage_policy(store, inode, *policy),
            Record::SetXattr { xattrs, rpc, .. } => {
                // Quirk: attributes_set_last_come_first: images and listings keep that order
                let mut all = xattrs.clone();
                let stays = |old: &Xattr| !xattrs.iter().any(|new| same_name(old, new));
                all.extend(tree.xattrs(inode).into_iter().filter(stays));
                self.set_xattrs(inode, all);
                self.remember(cx, *rpc, RetryPayload::Done);
            }
            Record::RemoveXattr { xattrs, rpc, .. } => {
                let mut all = tree.xattrs(inode);
                all.retain(|old| !xattrs.iter().any(|gone| same_name(old, gone)));
                self.set_xattrs(inode, all);
                self.remember(cx, *rpc, RetryPayload::Done);
            }
            Record::SetNamespaceQuota { quota, .. } => self.apply_quota(inode, *quota, QUOTA_UNCHANGED),
            Record::ClearNamespaceQuota { .. } => self.apply_quota(inode, -1, QUOTA_UNCHANGED),
            Record::SetQuota { namespace, space, .. } => self.apply_quota(inode, *namespace, *space),
            Record::SetQuotaByKind { kind, quota, .. } => {
                let mut limits = self.tree.quota(&self.store, inode).map_or(Quota::default(), |q| q.limits);
                // of a kind "do not change" is the limit of all space, as in Hadoop
                limits.by_kind[*kind as usize] = limit(*quota, limits.space);
                self.tree.set_quota_limits(&mut self.store, inode, limits);
            }
            other => unreachable!("a plan of another record: {other:?}"),
        }
        self.applied(inode)
    }

    /// Whether attributes are nothing but another wrapping of the key that a file is encrypted with.
    fn renews_key(&self, file: InodeHandle, xattrs: &[Xattr]) -> bool {
        let [one] = xattrs else { return false };
        let new = (one.namespace == XattrNamespace::Raw && &*one.name == encryption::FILE)
            .then(|| DataKey::parse(&one.value))
            .flatten();
        new.zip(self.tree.data_key(file, SnapshotId::CURRENT)).is_some_and(|(new, old)| new.iv == old.iv)
    }

    fn apply_quota(&mut self, directory: InodeHandle, names: i64, space: i64) {
        let mut limits = self.tree.quota(&self.store, directory).map_or(Quota::default(), |q| q.limits);
        limits.namespace = limit(names, limits.namespace);
        if directory == self.tree.root() && limits.namespace.is_none() {
            limits.namespace = Some(namespace::quota::ROOT_NAMESPACE);
        }
        limits.space = limit(space, limits.space);
        self.tree.set_quota_limits(&mut self.store, directory, limits);
    }

    fn apply_replication(&mut self, file: InodeHandle, replication: u16) -> Applied {
        self.with_usage(file, 0, |s| {
            s.store.edit_inode(file, |i| {
                if let InodeKind::File { replication: r, .. } = &mut i.kind {
                    *r = replication;
                }
            });
        });
        let replication = match self.tree.snapshots.is_empty() {
            true => replication,
            false => self.tree.block_replication(&self.store, file),
        };
        for b in self.store.blocks_of(file) {
            self.set_block_replication(b, replication);
        }
        self.applied(file)
    }

    /// Sets the attributes of an inode; the storage policy of a directory is one of them in Hadoop.
    pub(super) fn set_xattrs(&mut self, inode: InodeHandle, mut all: Vec<Xattr>) {
        let policy = all.iter().position(|x| x.namespace == XattrNamespace::System && &*x.name == STORAGE_POLICY_XATTR);
        if let Some(at) = policy {
            let policy = all.remove(at).value.first().copied().unwrap_or(0);
            self.tree.set_storage_policy(&mut self.store, inode, policy);
        }
        self.tree.set_xattrs(&mut self.store, inode, &all);
    }

    pub(super) fn apply_tables(&mut self, cx: &mut Context<'_>, record: &Record<'_>) -> Applied {
        let sequences = &mut self.sequences;
        match record {
            Record::SetGenstampV1 { stamp } => sequences.stamp_v1 = *stamp,
            Record::SetGenstampV2 { stamp } => {
                sequences.stamp = *stamp;
                self.stamp_changed();
            }
            Record::AllocateBlockId { id } if BlockId(*id).is_striped() => sequences.block_group = BlockId(*id),
            Record::AllocateBlockId { id } => sequences.block = BlockId(*id),
            Record::RollingUpgradeStart { time } => {
                sequences.rolling_upgrade_start = Some(*time);
                self.rolling_upgrade_finalized = false;
                cx.effects.push(Effect::RollingUpgrade { start: true });
            }
            Record::RollingUpgradeFinalize { .. } => {
                sequences.rolling_upgrade_start = None;
                self.rolling_upgrade_finalized = true;
                cx.effects.push(Effect::RollingUpgrade { start: false });
            }
            Record::AddErasureCodingPolicy { rpc, .. }
            | Record::EnableErasureCodingPolicy { rpc, .. }
            | Record::DisableErasureCodingPolicy { rpc, .. }
            | Record::RemoveErasureCodingPolicy { rpc, .. } => {
                self.apply_erasure_coding(record);
                self.remember(cx, *rpc, RetryPayload::Done);
            }
            Record::AddCachePool { .. }
            | Record::ModifyCachePool { .. }
            | Record::RemoveCachePool { .. }
            | Record::AddCacheDirective { .. }
            | Record::ModifyCacheDirective { .. }
            | Record::RemoveCacheDirective { .. } => self.apply_caches(cx, record),
            other => {
                self.apply_tokens(other);
                cx.effects.push(Effect::Tokens);
            }
        }
        Applied::default()
    }

    fn apply_erasure_coding(&mut self, record: &Record<'_>) {
        let policies = &mut self.tree.erasure_coding;
        match record {
            Record::EnableErasureCodingPolicy { name, .. } => policies.set_state(name, PolicyState::Enabled),
            Record::DisableErasureCodingPolicy { name, .. } => policies.set_state(name, PolicyState::Disabled),
            Record::RemoveErasureCodingPolicy { name, .. } => policies.set_state(name, PolicyState::Removed),
            added => {
                let Some((policy, id)) = added_policy(added).zip(policies.next_id()) else {
                    unreachable!("fit saw a policy and a number: {added:?}")
                };
                self.blocks.set_stripe(id, policy.stripe);
                policies.insert(ErasureCodingPolicy { id, ..policy });
            }
        }
    }

    fn apply_tokens(&mut self, record: &Record<'_>) {
        let tokens = &mut self.tokens;
        match record {
            Record::GetDelegationToken { token, expiry } => {
                tokens.sequence = tokens.sequence.max(token.sequence_number);
                let kept = Token {
                    owner: (&*token.owner).into(),
                    renewer: (&*token.renewer).into(),
                    real_user: (&*token.real_user).into(),
                    issue_date: token.issue_date,
                    max_date: token.max_date,
                    sequence_number: token.sequence_number,
                    master_key_id: token.master_key_id,
                    expiry: *expiry,
                };
                tokens.tokens.insert(token.sequence_number, kept);
            }
            Record::RenewDelegationToken { token, expiry } => {
                if let Some(kept) = tokens.tokens.get_mut(&token.sequence_number) {
                    kept.expiry = *expiry;
                }
            }
            Record::CancelDelegationToken { token } => {
                tokens.tokens.remove(&token.sequence_number);
            }
            Record::UpdateMasterKey { id, expiry, key } => {
                tokens.current_key = tokens.current_key.max(*id);
                tokens.keys.insert(*id, MasterKey { expiry: *expiry, secret: key.as_ref().map(|k| (&**k).into()) });
            }
            other => unreachable!("no record of tables: {other:?}"),
        }
    }
}

fn same_name(a: &Xattr, b: &Xattr) -> bool {
    a.namespace == b.namespace && a.name == b.name
}

/// A limit as records have it: -1 is none, the highest number "as it was".
fn limit(number: i64, was: Option<u64>) -> Option<u64> {
    match number {
        QUOTA_UNCHANGED => was,
        n => u64::try_from(n).ok(),
    }
}
