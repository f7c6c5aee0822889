//! Leases: who may write a file, and what becomes of one whose writer is gone (`FSNamesystem.checkLease`, `recoverLeaseInternal`,
//! `internalReleaseLease`).

use crate::{Turn, View};
use edit::Record;
use edit::record::{AddClose, Permission};
use namespace::{Place, Resolved};
use record::{BlockHandle, InodeHandle, InodeKind, KindTag};
use std::borrow::Cow;
use std::sync::Arc;
use vocab::{Block, BlockState, GenerationStamp, InodeId, Refusal};

/// A call that meets an open file, as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum LeaseTaker {
    CreateFile,
    AppendFile,
    TruncateFile,
    RecoverLease,
}

impl LeaseTaker {
    fn name(self) -> &'static str {
        match self {
            LeaseTaker::CreateFile => "CREATE_FILE",
            LeaseTaker::AppendFile => "APPEND_FILE",
            LeaseTaker::TruncateFile => "TRUNCATE_FILE",
            LeaseTaker::RecoverLease => "RECOVER_LEASE",
        }
    }

    fn text(self, path: &str, holder: &str, machine: &str, why: &str) -> Arc<str> {
        format!("Failed to {} {path} for {holder} on {machine} because {why}", self.name()).into()
    }
}

impl View<'_> {
    /// The open file of a path that `holder` writes. Without a holder the lease is not compared.
    ///
    /// # Errors
    /// `FileNotFound`, `LeaseExpired`.
    pub fn leased_file(
        &self,
        resolved: &Resolved<'_>,
        holder: Option<&str>,
        id: InodeId,
    ) -> Result<InodeHandle, Refusal> {
        let whose = || {
            let holder = holder.unwrap_or("null");
            let lease = match self.state.tree.leases.get(holder) {
                Some(lease) => format!("[Lease.  Holder: {holder}, pending creates: {}]", lease.files.len()),
                None => format!("Holder {holder} does not have any open files."),
            };
            format!("{} (inode {id}) {lease}", resolved.path_text())
        };
        let Some(inode) = resolved.last() else {
            return Err(Refusal::not_found(format!("File does not exist: {}", whose())));
        };
        if self.state.store.kind(inode) != KindTag::File {
            return Err(Refusal::LeaseExpired(format!("INode is not a regular file: {}", whose()).into()));
        }
        let Some(construction) = self.state.tree.construction(inode) else {
            return Err(Refusal::LeaseExpired(format!("File is not open for writing: {}", whose()).into()));
        };
        match holder {
            Some(holder) if *construction.client != *holder => Err(Refusal::LeaseExpired(
                format!("Client (={holder}) is not the lease owner (={}: {}", construction.client, whose()).into(),
            )),
            _ => Ok(inode),
        }
    }

    /// Whether all blocks before the last (`all`: the last one too) are complete, or, as far as the setting allows, committed.
    pub fn blocks_finished(&self, file: InodeHandle, all: bool) -> bool {
        let store = &self.state.store;
        let count = store.block_count_of(file);
        let allowed = self.settings.committed_blocks_allowed;
        let state = |at: usize| store.block_at(file, at).map(|b| store.block_state(b));
        if !all {
            let Some(at) = count.checked_sub(allowed + 2) else { return true };
            return state(at) == Some(BlockState::Complete);
        }
        (0..count).all(|at| match state(at) {
            Some(BlockState::Complete) => true,
            Some(BlockState::Committed) if at + allowed >= count => {
                let expected =
                    store.block_at(file, at).map_or(0, |b| self.state.blocks.expected(store.block_core(b).id).len());
                expected > usize::from(self.settings.replication_min)
            }
            _ => false,
        })
    }

    /// The record that closes a file of this path and owner as it stands.
    fn close_record<'r>(&self, file: InodeHandle, path: Cow<'r, [u8]>, owner: &'r (Arc<str>, Arc<str>)) -> Record<'r> {
        let store = &self.state.store;
        let inode = store.inode(file);
        let (replication, block_size) = match inode.kind {
            InodeKind::File { replication, block_size, .. } => (replication, block_size),
            _ => (0, 0),
        };
        Record::Close(Box::new(AddClose {
            inode_id: InodeId::GRANDFATHERED,
            path,
            replication,
            mtime: self.now.wall,
            atime: inode.atime,
            block_size,
            blocks: self.block_list(file),
            permission: Permission { user: (&*owner.0).into(), group: (&*owner.1).into(), mode: inode.mode.bits() },
            acl: Vec::new(),
            xattrs: Vec::new(),
            client_name: "".into(),
            client_machine: "".into(),
            overwrite: false,
            storage_policy: 0,
            erasure_coding_policy: 0,
            rpc: None,
        }))
    }

    /// The blocks of a file as records list them.
    pub fn block_list(&self, file: InodeHandle) -> Vec<Block> {
        self.state.store.blocks_of(file).iter().map(|b| self.state.store.block_core(*b)).collect()
    }
}

impl Turn<'_> {
    /// Takes a file from its writer for another client. Closed files pass. True if the file is closed (now).
    ///
    /// # Errors
    /// `AlreadyBeingCreated` while the writer's lease is good, `RecoveryInProgress` while its last block is recovered.
    pub fn take_lease(
        &mut self,
        taker: LeaseTaker,
        file: InodeHandle,
        path: &str,
        holder: &str,
        machine: &str,
        force: bool,
    ) -> Result<bool, Refusal> {
        let view = self.view();
        let tree = &view.state.tree;
        let Some(owner) = tree.construction(file) else { return Ok(true) };
        let text = |why: &str| taker.text(path, holder, machine, why);
        if !force && *owner.client == *holder && tree.leases.get(holder).is_some() {
            return Err(Refusal::AlreadyBeingCreated(text(&format!("{holder} is already the current lease holder."))));
        }
        if force {
            return self.release_lease(file, Some(holder));
        }
        if tree.leases.soft_expired(owner.client) {
            if self.release_lease(file, None)? {
                return Ok(true);
            }
            return Err(Refusal::RecoveryInProgress(text("lease recovery is in progress. Try again later.")));
        }
        let last = view.state.store.last_block(file).map(|b| view.state.store.block_state(b));
        let whose = format!("{} on {}", owner.client, owner.machine);
        if last == Some(BlockState::UnderRecovery) {
            return Err(Refusal::RecoveryInProgress(text(&format!("another recovery is in progress by {whose}"))));
        }
        Err(Refusal::AlreadyBeingCreated(text(&format!("this file lease is currently owned by {whose}"))))
    }

    /// Closes an open file whose writer is gone, or begins the recovery of its last block; `new_holder` gets the lease then. True if it is closed.
    ///
    /// # Errors
    /// `AlreadyBeingCreated`, `Io` in states that only time can change.
    pub fn release_lease(&mut self, file: InodeHandle, new_holder: Option<&str>) -> Result<bool, Refusal> {
        let view = self.view();
        let store = &view.state.store;
        let path = view.path_text(&view.state.tree.path_of(store, file));
        let states: Vec<BlockState> = store.blocks_of(file).iter().map(|b| store.block_state(*b)).collect();
        let Some(first) = states.iter().position(|s| *s != BlockState::Complete) else {
            self.close_file(file);
            return Ok(true);
        };
        let count = states.len();
        if first + 2 < count || first + 2 == count && states[first] != BlockState::Committed {
            return Err(Refusal::io(format!(
                "DIR* NameSystem.internalReleaseLease: attempt to release a create lock on {path} but file is already closed."
            )));
        }
        let Some(last) = store.last_block(file) else { return Ok(false) };
        let has_minimum = |b: Option<BlockHandle>| b.is_none_or(|b| view.state.blocks.has_minimum(store, b));
        let before = count.checked_sub(2).and_then(|at| store.block_at(file, at));
        if states[count - 1] == BlockState::Committed {
            if has_minimum(before) && has_minimum(Some(last)) {
                self.close_file(file);
                return Ok(true);
            }
            if !has_minimum(before) {
                return Err(Refusal::AlreadyBeingCreated(
                    format!("DIR* NameSystem.internalReleaseLease: Failed to release lease for file {path}. Committed blocks are waiting to be minimally replicated.").into(),
                ));
            }
        }
        let block = store.block_core(last);
        if view.state.blocks.expected(block.id).is_empty() && store.replica_count(last) == 0 && block.length == 0 {
            // Nothing was ever written there: the writer died before its first packet.
            self.drop_last_block(file);
            self.close_file(file);
            return Ok(true);
        }
        self.recover_block(last, block)?;
        if let Some(new_holder) = new_holder {
            self.reassign_lease(file, new_holder);
        }
        self.renew_lease_of(file);
        Ok(false)
    }

    fn recover_block(&mut self, b: BlockHandle, block: Block) -> Result<(), Refusal> {
        if self.soft().begin_recovery_attempt(block.id) {
            let stamp = self.next_stamp_of(&block)?;
            let state = self.soft();
            state.blocks.begin_recovery(&mut state.store, b, stamp);
        }
        Ok(())
    }

    fn reassign_lease(&mut self, file: InodeHandle, new_holder: &str) {
        let view = self.view();
        let Some(holder) = view.state.tree.construction(file).map(|c| c.client.to_owned()) else { return };
        let path = view.state.tree.path_of(&view.state.store, file);
        self.log(Record::ReassignLease {
            holder: holder.into(),
            path: Cow::Owned(path),
            new_holder: new_holder.to_owned().into(),
        });
    }

    fn renew_lease_of(&mut self, file: InodeHandle) {
        let holder = self.view().state.tree.construction(file).map(|c| c.client.to_owned());
        if let Some(holder) = holder {
            self.soft().tree.leases.renew(&holder);
        }
    }

    /// Logs the close of a file as it stands.
    pub fn close_file(&mut self, file: InodeHandle) {
        let view = self.view();
        let path = view.state.tree.path_of(&view.state.store, file);
        self.close_file_at(file, path.into());
    }

    /// As [`Turn::close_file`], for a file whose plain path is known.
    pub fn close_file_at(&mut self, file: InodeHandle, path: Cow<'_, [u8]>) {
        let view = self.view();
        let store = &view.state.store;
        let (user, group) = store.owner(file);
        let owner = (store.user_name(user).clone(), store.group_name(group).clone());
        let record = view.close_record(file, path, &owner);
        let place = Place::of(store, file);
        self.log_at(&record, &[place]);
    }

    /// Logs a file's block list without its last block.
    pub fn drop_last_block(&mut self, file: InodeHandle) {
        let view = self.view();
        let mut blocks = view.block_list(file);
        blocks.pop();
        let path = view.state.tree.path_of(&view.state.store, file);
        self.log(Record::UpdateBlocks { path: Cow::Owned(path), blocks, rpc: None });
    }

    /// Logs the next generation stamp of a block that there is: one with a random id keeps to the stamps by which such blocks are told.
    ///
    /// # Errors
    /// There is none left.
    pub fn next_stamp_of(&mut self, block: &Block) -> Result<GenerationStamp, Refusal> {
        let sequences = &self.view().state.sequences;
        if !sequences.is_legacy(block) {
            return Ok(self.next_stamp());
        }
        let stamp = GenerationStamp(sequences.stamp_v1.0 + 1);
        if stamp >= sequences.stamp_v1_limit {
            return Err(Refusal::OutOfLegacyStamps);
        }
        self.log(Record::SetGenstampV1 { stamp });
        Ok(stamp)
    }

    /// Logs the next generation stamp of a new block.
    pub fn next_stamp(&mut self) -> GenerationStamp {
        let stamp = GenerationStamp(self.view().state.sequences.stamp.0 + 1);
        self.log(Record::SetGenstampV2 { stamp });
        stamp
    }
}
