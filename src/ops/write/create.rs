//! create: a new open file, over an existing one if asked.

use super::lease::LeaseTaker;
use super::new_node::CreateModes;
use crate::checks::invalid_path;
use crate::status::FileStatus;
use crate::{Operation, Turn, View, Write};
use edit::Record;
use edit::record::{AddClose, Permission};
use namespace::resolve::is_exactly_reserved;
use namespace::{Place, Resolved, Walk};
use record::{InodeHandle, KindTag};
use state::RetryPayload;
use std::sync::Arc;
use vocab::encryption::DataKey;
use vocab::erasure_coding::{ErasureCodingPolicy, REPLICATION};
use vocab::limits::BLOCK_SIZE_MAX;
use vocab::quota::Usage;
use vocab::storage_policy::{self, LAZY_PERSIST};
use vocab::xattr::Xattr;
use vocab::{Action, InodeId, Refusal};

/// Creates a file and gives the client its lease. Answers the file's status.
#[derive(Clone, Debug)]
pub struct Create {
    /// Path.
    pub path: Vec<u8>,
    /// Mode.
    pub modes: CreateModes,
    /// Lease holder.
    pub client: Arc<str>,
    /// Whether a file may be made (`CreateFlag.CREATE`).
    pub create: bool,
    /// Whether an existing file is replaced.
    pub overwrite: bool,
    /// Whether missing ancestors are made.
    pub create_parents: bool,
    /// Replicas.
    pub replication: u16,
    /// Preferred block size in bytes.
    pub block_size: u64,
    /// `CreateFlag.LAZY_PERSIST`.
    pub lazy_persist: bool,
    /// `CreateFlag.SHOULD_REPLICATE`: not erasure coded, whatever the directory says.
    pub should_replicate: bool,
    /// Erasure coding policy by name.
    pub erasure_coding_policy: Option<Arc<str>>,
    /// Storage policy by name.
    pub storage_policy: Option<Arc<str>>,
    /// Versions of the encryption protocol that the client knows, by number.
    pub versions: Vec<i32>,
    /// Key for the file, in case that it lies in the zone of the key of that name.
    pub data_key: Option<(Arc<str>, DataKey)>,
}

impl Write for Create {
    type Prepared = ();
    type Reply = FileStatus<'static>;
    const OPERATION: Operation = Operation::Create;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_path_length("create", &self.path)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Self::Reply, Refusal> {
        if let Some(RetryPayload::File(id)) = turn.cached().map(|e| e.payload.clone()) {
            return turn.view().status_of_id(id);
        }
        let resolved = self.check(&turn.view())?;
        let key = self.key(&turn.view(), &resolved)?;
        let mut replaces = None;
        if let Some(old) = resolved.last() {
            let machine = turn.view().client_machine();
            if !self.overwrite {
                let path = resolved.path_text();
                turn.take_lease(LeaseTaker::CreateFile, old, &path, &self.client, &machine, false)?;
                return Err(Refusal::FileAlreadyExists(format!("{path} for client {machine} already exists").into()));
            }
            replaces = Some(old);
        }
        turn.view().check_object_count()?;
        let parent = turn.make_ancestors(&resolved, self.modes, true)?;
        let made = self.make(turn, &resolved, parent, replaces, key)?;
        turn.view().status_of_id(made)
    }
}

impl Create {
    /// All that can be refused before anything is made, in Hadoop's order.
    fn check<'p>(&'p self, view: &View<'_>) -> Result<Resolved<'p>, Refusal> {
        let text = || view.path_text(&self.path);
        let reserved = self.path.starts_with(b"/.reserved/");
        let usable =
            reserved && (self.path.starts_with(b"/.reserved/raw") || self.path.starts_with(b"/.reserved/.inodes"));
        if !vocab::path::is_valid_name(&self.path) || is_exactly_reserved(&self.path) || reserved && !usable {
            return Err(invalid_path(&text()));
        }
        if self.should_replicate && self.erasure_coding_policy.as_deref().is_some_and(|p| !p.is_empty()) {
            return Err(Refusal::HadoopIllegalArgument(
                "SHOULD_REPLICATE flag and ecPolicyName are exclusive parameters. Set both is not allowed!".into(),
            ));
        }
        view.check_safe_mode(|| format!("Cannot create file{}", text()))?;
        let resolved = view.resolve_valid(&self.path, Walk::Create, view.settings.permissions)?;
        view.check_ancestor(&resolved, Action::WRITE)?;
        match resolved.last() {
            Some(inode) if view.state.store.kind(inode) == KindTag::Directory => {
                let path = resolved.path_text();
                return Err(Refusal::FileAlreadyExists(format!("{path} already exists as a directory").into()));
            }
            Some(_) if self.overwrite => view.check_inode(&resolved, Action::WRITE)?,
            Some(_) => {}
            None => {
                if !self.create_parents {
                    view.check_parent_directory(&resolved)?;
                }
                if !self.create {
                    return Err(Refusal::not_found(format!("Can't overwrite non-existent {}", text())));
                }
            }
        }
        self.check_block_size(view)?;
        // of a file to be replaced its own policy is looked at here; the new one gets the directory's, as in Hadoop
        match self.policy(view, resolved.inodes().last().copied())? {
            Some(policy) => self.check_striped(view, &policy)?,
            None => view.check_replication(&self.path, self.replication, true)?,
        }
        Ok(resolved)
    }

    /// In a zone, the attribute with the file's key. The zone may have come, or got another key, after the client's key was fetched: then the
    /// client is to ask again.
    fn key(&self, view: &View<'_>, resolved: &Resolved<'_>) -> Result<Vec<Xattr>, Refusal> {
        let zone = if resolved.raw { None } else { view.zone_of_path(resolved) };
        match (zone, &self.data_key) {
            (None, _) => Ok(Vec::new()),
            (Some((_, zone)), Some((zone_key, key))) if zone.key == *zone_key => {
                if !self.versions.contains(&(zone.version as i32)) {
                    return Err(Refusal::UnknownCryptoVersion(self.versions.clone().into()));
                }
                Ok(vec![key.to_xattr()])
            }
            _ => Err(Refusal::RetryStartFile),
        }
    }

    /// The size is signed in Hadoop, and its file records have 48 bits for it: more could not be replayed there.
    fn check_block_size(&self, view: &View<'_>) -> Result<(), Refusal> {
        const MAX: i64 = BLOCK_SIZE_MAX as i64;
        let (size, least) = (self.block_size as i64, view.settings.block_size_min);
        if i128::from(size) < i128::from(least) {
            return Err(Refusal::io(format!(
                "Specified block size {size} is less than configured minimum value dfs.namenode.fs-limits.min-block-size={least}"
            )));
        }
        if !(1..=MAX).contains(&size) {
            let (beyond, limit) = if size < 1 { ("< MIN", 1) } else { ("> MAX", MAX) };
            return Err(Refusal::IllegalArgument(
                format!("Illagal value: PREFERRED_BLOCK_SIZE = {size} {beyond} = {limit}").into(),
            ));
        }
        Ok(())
    }

    /// The erasure coding policy that the file gets: the one asked for, or that of the nearest directory with one.
    fn policy(&self, view: &View<'_>, nearest: Option<InodeHandle>) -> Result<Option<ErasureCodingPolicy>, Refusal> {
        if self.should_replicate {
            return Ok(None);
        }
        if let Some(name) = self.erasure_coding_policy.as_deref().filter(|p| !p.is_empty()) {
            return Ok(view.enabled_policy(name)?.cloned());
        }
        Ok(nearest.and_then(|inode| view.state.tree.erasure_coding_policy(&view.state.store, inode)).cloned())
    }

    fn check_striped(&self, view: &View<'_>, policy: &ErasureCodingPolicy) -> Result<(), Refusal> {
        view.check_erasure_coding("createWithEC")?;
        let cell = policy.stripe.cell_size;
        if self.block_size < u64::from(cell) {
            return Err(Refusal::io(format!(
                "Specified block size ({}) is less than the cell size ({cell}) of the erasure coding policy ({}).",
                self.block_size,
                policy.describe()
            )));
        }
        Ok(())
    }

    /// A striped file takes no policy over from its directory.
    fn storage_policy(&self, view: &View<'_>, parent: InodeHandle, striped: bool) -> Result<u8, Refusal> {
        let mut own = 0;
        if let Some(name) = self.storage_policy.as_deref().filter(|n| !n.is_empty()) {
            own = storage_policy::by_name(name)
                .ok_or_else(|| {
                    Refusal::HadoopIllegalArgument(format!("Cannot find a block policy with the name {name}").into())
                })?
                .id;
        }
        if self.lazy_persist {
            return Ok(LAZY_PERSIST);
        }
        if striped {
            return Ok(own);
        }
        let effective = if own == 0 { view.state.tree.storage_policy(&view.state.store, parent) } else { own };
        match storage_policy::by_id(effective) {
            Some(policy) if policy.copy_on_create => Ok(policy.id),
            _ => Ok(own),
        }
    }

    /// Quirk: `a_refused_overwrite_keeps_the_old_file`: limits and quotas are checked before the old file goes; Hadoop deletes it first.
    fn make(
        &self,
        turn: &mut Turn<'_>,
        resolved: &Resolved<'_>,
        parent: InodeHandle,
        replaces: Option<InodeHandle>,
        xattrs: Vec<Xattr>,
    ) -> Result<InodeId, Refusal> {
        let view = turn.view();
        let state = view.state;
        if replaces.is_none() {
            view.check_new_name(parent, resolved, resolved.depth())?;
        }
        replaces.map_or(Ok(()), |old| view.check_stripes_of_snapshots(old))?;
        let new = Usage { namespace: 1, ..Usage::default() };
        match replaces {
            // what a snapshot keeps counts on
            Some(old) if !state.tree.is_kept_by_snapshot(&state.store, old) => {
                let old = state.tree.inode_usage(&state.store, old);
                state.tree.verify_quota_after(&state.store, parent, &old, &new)?;
            }
            _ => state.tree.verify_quota(&state.store, parent, None, &new)?,
        }
        let attributes = view.new_attributes(parent, self.modes, false);
        let (time, inode_id) = (view.now.wall, turn.next_inode_id());
        let policy = self.policy(&view, Some(parent))?.map_or(REPLICATION, |policy| policy.id);
        if policy == REPLICATION {
            // Quirk: `a_striped_file_gives_way_to_one_of_no_replica`: over a striped file outside its directory Hadoop takes any factor, even none
            view.check_replication(&self.path, self.replication, true)?;
        }
        let (user, group, machine) = (&*turn.caller().user, view.new_group(parent), view.client_machine());
        let record = Record::Add(Box::new(AddClose {
            inode_id,
            path: resolved.plain(),
            replication: if policy == REPLICATION { self.replication } else { 1 },
            mtime: time,
            atime: time,
            block_size: self.block_size,
            blocks: Vec::new(),
            permission: Permission { user: user.into(), group: (&*group).into(), mode: attributes.mode.bits() },
            acl: attributes.acl,
            xattrs,
            client_name: (&*self.client).into(),
            client_machine: machine.into(),
            overwrite: self.overwrite,
            storage_policy: self.storage_policy(&view, parent, policy != REPLICATION)?,
            erasure_coding_policy: policy,
            rpc: view.caller.rpc_ids,
        }));
        turn.log_at(&record, &[Place { parent: Some(parent), last: replaces }]);
        Ok(inode_id)
    }
}
