//! `NamenodeProtocol`: what balancers, checkpointers and other name nodes ask.

use super::convert::datanode::storage_info;
use super::table::Namenode;
use super::{Answer, EMPTY, Shared, decode, message, superuser};
use bytes::Bytes;
use engine::HaState;
use hadoop_proto::hdfs::nnha_status_heartbeat_proto::State;
use hadoop_proto::hdfs::{
    BlockKeyProto, CheckpointSignatureProto, ExportedBlockKeysProto, NamespaceInfoProto, RemoteEditLogManifestProto,
    RemoteEditLogProto, VersionResponseProto,
};
use hadoop_proto::namenode::{
    GetBlockKeysResponseProto, GetEditLogManifestRequestProto, GetEditLogManifestResponseProto,
    GetMostRecentCheckpointTxIdResponseProto, GetMostRecentNameNodeFileTxIdRequestProto,
    GetMostRecentNameNodeFileTxIdResponseProto, GetTransactionIdResponseProto, IsRollingUpgradeResponseProto,
    IsUpgradeFinalizedResponseProto, RollEditLogResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use os::disk::Disk;
use std::path::PathBuf;
use std::sync::Arc;
use storage::{StorageError, transfer};
use vocab::{Caller, Txid};

pub(super) async fn serve(shared: &Shared, method: Namenode, caller: &Caller, body: Bytes) -> Answer {
    match method {
        Namenode::Version => message(&VersionResponseProto { info: namespace_info(shared) }),
        Namenode::ErrorReport => Ok(EMPTY),
        Namenode::GetBlockKeys => message(&GetBlockKeysResponseProto { keys: Some(no_keys()) }),
        Namenode::GetTransactionId => {
            superuser(shared, caller, "getTransactionID")?;
            message(&GetTransactionIdResponseProto { tx_id: shared.engine.journal().last().0 })
        }
        Namenode::GetMostRecentCheckpointTxId => {
            superuser(shared, caller, "getMostRecentCheckpointTxId")?;
            message(&GetMostRecentCheckpointTxIdResponseProto { tx_id: shared.newest_checkpoint().0 })
        }
        Namenode::RollEditLog => {
            let segment = super::client::admin::roll(shared, caller).await?;
            let signature = CheckpointSignatureProto {
                block_pool_id: shared.identity.block_pool.to_string(),
                most_recent_checkpoint_tx_id: shared.newest_checkpoint().0,
                cur_segment_tx_id: segment.0,
                storage_info: storage_info(&shared.identity.storage),
            };
            message(&RollEditLogResponseProto { signature })
        }
        Namenode::EditLogManifest => {
            let asked: GetEditLogManifestRequestProto = decode(body)?;
            superuser(shared, caller, "getEditLogManifest")?;
            manifest(shared, Txid(asked.since_tx_id)).await
        }
        Namenode::MostRecentFileTxId => {
            let asked: GetMostRecentNameNodeFileTxIdRequestProto = decode(body)?;
            superuser(shared, caller, "getMostRecentNameNodeFileTxId")?;
            most_recent_file(shared, &asked.name_node_file).await
        }
        Namenode::IsUpgradeFinalized => {
            superuser(shared, caller, "isUpgradeFinalized")?;
            message(&IsUpgradeFinalizedResponseProto { is_upgrade_finalized: shared.identity.upgrade_finalized() })
        }
        Namenode::IsRollingUpgrade => {
            superuser(shared, caller, "isRollingUpgrade")?;
            let running =
                shared.engine.view("isRollingUpgrade", caller, |v| v.state.sequences.rolling_upgrade_start.is_some());
            message(&IsRollingUpgradeResponseProto { is_rolling_upgrade: running })
        }
    }
}

/// The finished segments that a checkpointer fetches.
async fn manifest(shared: &Shared, since: Txid) -> Answer {
    let (disk, folders) = folders(shared, |checkpoints| checkpoints.edits_folders.clone());
    let (segments, committed) = on_disk(move || transfer::manifest(&*disk, &folders, since)).await?;
    let log = |(first, last): (Txid, Txid)| RemoteEditLogProto {
        start_tx_id: first.0,
        end_tx_id: last.0,
        is_in_progress: Some(false),
    };
    let manifest = RemoteEditLogManifestProto {
        logs: segments.into_iter().map(log).collect(),
        committed_txn_id: Some(committed.0),
    };
    message(&GetEditLogManifestResponseProto { manifest })
}

/// Transaction of the newest file of a kind, by Java's name for it.
async fn most_recent_file(shared: &Shared, kind: &str) -> Answer {
    let rollback = match kind {
        "IMAGE" => false,
        "IMAGE_ROLLBACK" => true,
        other => {
            let text =
                format!("No enum constant org.apache.hadoop.hdfs.server.namenode.NNStorage.NameNodeFile.{other}");
            return Err(RemoteException::application(class::ILLEGAL_ARGUMENT, text));
        }
    };
    let (disk, folders) = folders(shared, |checkpoints| checkpoints.image_folders.lock().clone());
    let found = on_disk(move || transfer::newest_image(&*disk, &folders, rollback)).await?;
    message(&GetMostRecentNameNodeFileTxIdResponseProto { tx_id: found.map_or(u64::MAX, |txid| txid.0) })
}

fn folders(shared: &Shared, of: impl FnOnce(&engine::Checkpoints) -> Vec<PathBuf>) -> (Arc<dyn Disk>, Vec<PathBuf>) {
    let checkpoints = shared.engine.checkpoints();
    (checkpoints.os.disk.clone(), of(checkpoints))
}

/// Looks at the disk on a thread that may wait.
async fn on_disk<R: Send + 'static>(
    look: impl FnOnce() -> Result<R, StorageError> + Send + 'static,
) -> Result<R, RemoteException> {
    let found = tokio::task::spawn_blocking(look).await;
    let found = found.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
    found.map_err(|error| RemoteException::application(class::IO, error.to_string()))
}

/// Answer to `versionRequest` of both server protocols.
pub(super) fn namespace_info(shared: &Shared) -> NamespaceInfoProto {
    let identity = &shared.identity;
    NamespaceInfoProto {
        build_version: identity.revision.to_string(),
        unused: 0,
        block_pool_id: identity.block_pool.to_string(),
        storage_info: storage_info(&identity.storage),
        software_version: identity.software_version.to_string(),
        // block reports may come as packed buffers
        capabilities: Some(1),
        state: Some(state(shared) as i32),
    }
}

/// The role as DataNodes are told.
pub(super) fn state(shared: &Shared) -> State {
    match shared.engine.gate().state() {
        HaState::Active => State::Active,
        _ => State::Standby,
    }
}

/// The keys of a name node without block tokens.
pub(super) fn no_keys() -> ExportedBlockKeysProto {
    ExportedBlockKeysProto {
        is_block_token_enabled: false,
        key_update_interval: 0,
        token_life_time: 0,
        current_key: BlockKeyProto { key_id: 0, expiry_date: 0, key_bytes: Some(Bytes::new()) },
        all_keys: Vec::new(),
    }
}
