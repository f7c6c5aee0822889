//! Quotas: limits and running use of the directories that have any. What a file uses is a function of durable fields alone, so that live, replayed
//! and reloaded state count the same: the last block of an open file counts in full, whatever its replicas.

use crate::Tree;
use crate::codec::{add_use, decode_quota, encode_quota, fits_names_alone};
use crate::resolve::text;
use crate::side::{inode_of, key};
use record::{Features, InodeHandle, KindTag, Store};
use vocab::erasure_coding::Stripe;
use vocab::quota::{Quota, Usage};
use vocab::refusal::QuotaExceeded;
use vocab::storage_policy::{UNSPECIFIED, by_id};
use vocab::{Block, Refusal, StorageKind};

/// Namespace quota of every root: no limit, but its use is kept.
pub const ROOT_NAMESPACE: u64 = i64::MAX as u64;

/// Limits and use of a directory. `usage` is derived: the sum over the subtree, the directory itself included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QuotaRecord {
    /// Limits.
    pub limits: Quota,
    /// Use.
    pub usage: Usage,
}

/// Adds one use to another. No real use comes near 64 bits; that of lengths in a damaged image stays at the end of them.
pub fn add(to: &mut Usage, more: &Usage) {
    to.namespace = to.namespace.saturating_add(more.namespace);
    to.space = to.space.saturating_add(more.space);
    for (to, more) in to.by_kind.iter_mut().zip(more.by_kind) {
        *to = to.saturating_add(more);
    }
}

/// The use turned round.
pub fn negated(usage: &Usage) -> Usage {
    Usage { namespace: -usage.namespace, space: -usage.space, by_kind: usage.by_kind.map(|n| -n) }
}

/// `after - before`.
pub fn difference(after: &Usage, before: &Usage) -> Usage {
    let mut usage = *after;
    add(&mut usage, &negated(before));
    usage
}

/// What one block of `bytes` counts with that replication under a storage policy (0: kinds are not counted).
pub fn block_usage(bytes: u64, replication: u16, storage_policy: u8) -> Usage {
    let mut usage = Usage { space: plain_space(bytes, replication), ..Usage::default() };
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    if let Some(policy) = by_id(storage_policy) {
        for kind in policy.counted_kinds(replication) {
            let used = &mut usage.by_kind[kind as usize];
            *used = used.saturating_add(bytes);
        }
    }
    usage
}

/// Bytes times replicas.
pub(crate) fn plain_space(bytes: u64, replication: u16) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(i64::from(replication))
}

/// What counts for usage of a file: replication, preferred block size, whether it is open.
#[derive(Clone, Copy, Debug)]
pub struct FileShape {
    /// Replicas.
    pub replication: u16,
    /// Preferred block size in bytes.
    pub block_size: u64,
    /// Whether it is being written.
    pub open: bool,
    /// Storage policy in effect, 0 for none.
    pub storage_policy: u8,
    /// Erasure coding policy, 0 for replication.
    pub erasure_coding_policy: u8,
    /// Layout of the block groups of an erasure coded file.
    pub stripe: Option<Stripe>,
}

impl FileShape {
    /// Whether nothing counts but bytes times replicas: a closed file, replicated, without a storage policy.
    pub(crate) fn is_plain(&self) -> bool {
        !self.open && self.stripe.is_none() && by_id(self.storage_policy).is_none()
    }
    /// Use of the block at the end of a file.
    pub fn last(&self, block: &Block) -> Usage {
        match self.stripe {
            _ if !self.open => self.full(block),
            Some(_) => self.fresh(),
            None => block_usage(self.block_size.max(block.length), self.replication, self.storage_policy),
        }
    }
    /// Use of any other block.
    pub fn full(&self, block: &Block) -> Usage {
        match self.stripe {
            // kinds are not counted, as in Hadoop
            Some(stripe) => Usage { space: stripe.space_used(block.length) as i64, ..Usage::default() },
            None => block_usage(block.length, self.replication, self.storage_policy),
        }
    }
    /// Use of a block that is about to be written.
    pub fn fresh(&self) -> Usage {
        match self.stripe {
            Some(stripe) => block_usage(self.block_size, stripe.units().into(), UNSPECIFIED),
            None => block_usage(self.block_size, self.replication, self.storage_policy),
        }
    }
}

impl Tree {
    /// The shape of a file; `None` for anything else.
    pub fn file_shape(&self, store: &Store, file: InodeHandle) -> Option<FileShape> {
        let shape = self.file_shape_below(store, file, UNSPECIFIED)?;
        Some(FileShape { storage_policy: self.storage_policy(store, file), ..shape })
    }

    /// The shape of a file below a directory whose storage policy is known.
    pub fn file_shape_below(&self, store: &Store, handle: InodeHandle, inherited: u8) -> Option<FileShape> {
        let file = store.file(handle)?;
        let has_past = file.features.contains(Features::SNAPSHOT_DIFFS);
        Some(FileShape {
            replication: if has_past { self.block_replication(store, handle) } else { file.replication },
            block_size: file.block_size,
            open: file.features.contains(Features::CONSTRUCTION),
            storage_policy: if file.storage_policy == UNSPECIFIED { inherited } else { file.storage_policy },
            erasure_coding_policy: file.erasure_coding_policy,
            stripe: self.erasure_coding.stripe(file.erasure_coding_policy),
        })
    }

    /// What a single inode counts (a directory without its children).
    pub fn inode_usage(&self, store: &Store, inode: InodeHandle) -> Usage {
        let mut usage = match self.file_shape(store, inode) {
            Some(shape) => self.blocks_usage(store, inode, &shape, 0),
            None => Usage::default(),
        };
        usage.namespace = 1;
        usage
    }

    /// What the blocks of a file from the `from`th on count.
    pub fn blocks_usage(&self, store: &Store, file: InodeHandle, shape: &FileShape, from: usize) -> Usage {
        let count = store.block_count_of(file);
        let block = |at| store.block_at(file, at).map(|b| store.block_core(b));
        let last = count.checked_sub(1).filter(|last| *last >= from).and_then(block);
        let mut usage = last.map_or(Usage::default(), |last| shape.last(&last));
        for block in (from + 1..count).map_while(|at| block(at - 1)) {
            add(&mut usage, &shape.full(&block));
        }
        if !self.snapshots.is_empty() {
            for b in self.past_blocks(store, file) {
                add(&mut usage, &shape.full(&store.block_core(b)));
            }
        }
        usage
    }

    /// What a subtree counts, by walking it.
    pub fn subtree_usage(&self, store: &Store, top: InodeHandle) -> Usage {
        let inherited = store.parent(top).map_or(UNSPECIFIED, |above| self.storage_policy(store, above));
        self.subtree_usage_below(store, top, inherited)
    }

    /// The same where the storage policy that the subtree inherits is known.
    pub(crate) fn subtree_usage_below(&self, store: &Store, top: InodeHandle, inherited: u8) -> Usage {
        let mut usage = Usage::default();
        let mut open = vec![(top, inherited)];
        while let Some((inode, inherited)) = open.pop() {
            usage.namespace += 1;
            if let Some(shape) = self.file_shape_below(store, inode, inherited) {
                add(&mut usage, &self.blocks_usage(store, inode, &shape, 0));
            }
            if store.kind(inode) == KindTag::Directory {
                let own = self.own_storage_policy(store, inode);
                let inherited = if own == UNSPECIFIED { inherited } else { own };
                add(&mut usage, &self.past_usage(store, inode, inherited));
                open.extend(self.children(store, inode).map(|child| (child, inherited)));
            }
        }
        usage
    }

    /// Limits and use of a directory that has a quota.
    pub fn quota(&self, store: &Store, directory: InodeHandle) -> Option<QuotaRecord> {
        if !store.features(directory).contains(Features::QUOTA) {
            return None;
        }
        self.quotas.get(key(directory)).map(decode_quota)
    }
    /// Every quota directory with its record.
    pub(crate) fn all_quotas(&self) -> impl Iterator<Item = (InodeHandle, QuotaRecord)> {
        self.quotas.iter().filter_map(|(key, value)| Some((inode_of(key)?, decode_quota(value))))
    }
    pub(crate) fn put_quota(&mut self, directory: InodeHandle, record: &QuotaRecord) {
        self.quotas.set(key(directory), &encode_quota(record));
    }
    /// Changes the record of a quota directory; `false` if it is none.
    pub(crate) fn edit_quota(&mut self, directory: InodeHandle, edit: impl FnOnce(&mut QuotaRecord)) -> bool {
        let change = |bytes: &mut [u8]| {
            let mut record = decode_quota(bytes);
            edit(&mut record);
            bytes.copy_from_slice(&encode_quota(&record));
        };
        self.quotas.edit(key(directory), change).is_some()
    }

    /// Sets the limits. A directory that had none gets its use counted now; one left without limits is no quota directory any more (but the root
    /// always is).
    pub fn set_quota_limits(&mut self, store: &mut Store, directory: InodeHandle, limits: Quota) {
        let features = store.features(directory);
        if limits == Quota::default() && directory != self.root {
            self.quotas.remove(key(directory));
            self.uncharge(store.inode_id(directory));
            store.set_features(directory, features.without(Features::QUOTA));
        } else if !self.edit_quota(directory, |record| record.limits = limits) {
            let usage = self.counted(directory).unwrap_or_else(|| {
                // what is being freed is not walked to
                self.uncharge(store.inode_id(directory));
                self.subtree_usage(store, directory)
            });
            self.put_quota(directory, &QuotaRecord { limits, usage });
            store.set_features(directory, features.with(Features::QUOTA));
        }
    }

    /// Whether the root is the only directory with a quota, so that no walk upwards has to look for others.
    pub fn only_root_has_quota(&self, store: &Store) -> bool {
        self.quotas.len() == 1 && store.features(self.root).contains(Features::QUOTA)
    }
    /// Whether every inode is below the root: nothing waits to be freed, nothing is kept for a snapshot.
    fn all_attached(&self) -> bool {
        self.detached.is_empty() && self.snapshots.is_empty()
    }

    /// Adds to the use of every quota directory from `directory` up to the root.
    pub fn add_usage(&mut self, store: &Store, directory: InodeHandle, delta: &Usage) {
        if *delta == Usage::default() {
            return;
        }
        self.count_change(store, directory, delta);
        if self.only_root_has_quota(store) && self.all_attached() {
            self.quotas.edit(key(self.root), |bytes| add_use(bytes, delta));
            return;
        }
        let mut current = Some(directory);
        while let Some(inode) = current {
            let (features, parent) = store.features_and_parent(inode);
            if features.contains(Features::QUOTA) {
                self.quotas.edit(key(inode), |bytes| add_use(bytes, delta));
            }
            current = parent;
        }
    }

    /// Whether `delta` more fits every quota from `directory` up to, but not with, `stop` (`None`: up to the root).
    ///
    /// # Errors
    /// `NamespaceQuota`, `SpaceQuota`, `KindQuota` of the nearest directory whose limit would be exceeded.
    pub fn verify_quota(
        &self,
        store: &Store,
        directory: InodeHandle,
        stop: Option<InodeHandle>,
        delta: &Usage,
    ) -> Result<(), Refusal> {
        if delta.namespace <= 0 && delta.space <= 0 && delta.by_kind.iter().all(|n| *n <= 0) {
            return Ok(());
        }
        let mut current = Some(directory);
        if self.only_root_has_quota(store) && self.all_attached() {
            if stop.is_some() {
                return Ok(()); // it is at or below the root
            }
            current = Some(self.root);
        }
        while let Some(inode) = current.filter(|i| Some(*i) != stop) {
            let (features, parent) = store.features_and_parent(inode);
            if features.contains(Features::QUOTA)
                && let Some(bytes) = self.quotas.get(key(inode))
                && !fits_names_alone(bytes, delta)
            {
                decode_quota(bytes).verify(delta, || text(&self.path_of(store, inode)))?;
            }
            current = parent;
        }
        Ok(())
    }

    /// Whether something new fits in a directory once something in it is gone. Where more is used than a quota allows already, nothing new fits,
    /// however much goes.
    ///
    /// # Errors
    /// The quota exceeded.
    pub fn verify_quota_after(
        &self,
        store: &Store,
        directory: InodeHandle,
        gone: &Usage,
        new: &Usage,
    ) -> Result<(), Refusal> {
        let mut current = Some(directory);
        while let Some(inode) = current {
            if let Some(record) = self.quota(store, inode) {
                let usage = difference(&record.usage, gone);
                QuotaRecord { usage, ..record }.verify(new, || text(&self.path_of(store, inode)))?;
            }
            current = store.parent(inode);
        }
        Ok(())
    }
}

impl QuotaRecord {
    fn verify(&self, delta: &Usage, path: impl Fn() -> std::sync::Arc<str>) -> Result<(), Refusal> {
        let exceeded = |limit: Option<u64>, used: i64, more: i64| {
            let quota = i64::try_from(limit?).ok()?;
            let over = more > 0 && used > quota.saturating_sub(more);
            over.then(|| Box::new(QuotaExceeded { path: path(), quota, count: used + more }))
        };
        if let Some(e) = exceeded(self.limits.namespace, self.usage.namespace, delta.namespace) {
            return Err(Refusal::NamespaceQuota(e));
        }
        if let Some(e) = exceeded(self.limits.space, self.usage.space, delta.space) {
            return Err(Refusal::SpaceQuota(e));
        }
        for kind in StorageKind::ALL.into_iter().filter(|k| k.supports_quota()) {
            let i = kind as usize;
            if let Some(e) = exceeded(self.limits.by_kind[i], self.usage.by_kind[i], delta.by_kind[i]) {
                return Err(Refusal::KindQuota(e, kind));
            }
        }
        Ok(())
    }
}
