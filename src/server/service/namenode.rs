//! `NamenodeProtocol`: what balancers, checkpointers and other name nodes ask.

use super::convert::datanode::storage_info;
use super::convert::kinds::{kind_from_wire, kind_to_wire};
use super::table::Namenode;
use super::{Answer, EMPTY, Shared, checkpoint, convert, decode, message, superuser};
use blocks::Blocks;
use bytes::Bytes;
use engine::HaState;
use hadoop_proto::hdfs::nnha_status_heartbeat_proto::State;
use hadoop_proto::hdfs::{
    BlockKeyProto, BlockProto, BlockWithLocationsProto, BlocksWithLocationsProto, ExportedBlockKeysProto,
    NamespaceInfoProto, RemoteEditLogManifestProto, RemoteEditLogProto, StorageTypeProto, VersionResponseProto,
};
use hadoop_proto::namenode::{
    GetBlockKeysResponseProto, GetBlocksRequestProto, GetBlocksResponseProto, GetEditLogManifestRequestProto,
    GetEditLogManifestResponseProto, GetMostRecentCheckpointTxIdResponseProto,
    GetMostRecentNameNodeFileTxIdRequestProto, GetMostRecentNameNodeFileTxIdResponseProto, GetNextSpsPathResponseProto,
    GetTransactionIdResponseProto, IsRollingUpgradeResponseProto, IsUpgradeFinalizedResponseProto,
    RollEditLogResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use ops::admin::get_blocks::{BlocksWalk, GetBlocks, MovableBlock};
use ops::table::Category;
use os::disk::Disk;
use std::path::PathBuf;
use std::sync::Arc;
use storage::{StorageError, transfer};
use vocab::{Caller, Refusal, Txid};

/// Blocks looked at under one hold of the lock, for a balancer.
const BLOCKS_SLICE: usize = 1_000;

pub(super) async fn serve(shared: &Shared, method: Namenode, caller: &Caller, body: Bytes) -> Answer {
    match method {
        Namenode::GetBlocks => get_blocks(shared, caller, &decode(body)?).await,
        Namenode::Register => checkpoint::register(shared, caller, decode(body)?),
        Namenode::StartCheckpoint => checkpoint::start(shared, caller, decode(body)?).await,
        Namenode::EndCheckpoint => checkpoint::end(shared, caller, &decode(body)?),
        Namenode::Version => message(&VersionResponseProto { info: namespace_info(shared) }),
        Namenode::ErrorReport => Ok(EMPTY),
        Namenode::GetBlockKeys => message(&GetBlockKeysResponseProto { keys: Some(no_keys()) }),
        Namenode::NextToSatisfy => next_to_satisfy(shared, caller),
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
            message(&RollEditLogResponseProto { signature: checkpoint::signature(shared, segment) })
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

/// The next file or directory that is to satisfy its storage policy, for the service that sees to it.
fn next_to_satisfy(shared: &Shared, caller: &Caller) -> Answer {
    superuser(shared, caller, "getNextSPSPath")?;
    if shared.engine.gate().state() != HaState::Active {
        return Err(Refusal::Standby("Not supported by Standby Namenode.".into()).into());
    }
    if !shared.engine.settings().storage_policy_satisfier {
        let text = "SPS service mode is NONE, so external SPS service is not allowed to fetch the path Ids";
        return Err(Refusal::io(text).into());
    }
    let next = shared.engine.turn("getNextSPSPath", caller, |turn| turn.soft().satisfier.pop_front());
    message(&GetNextSpsPathResponseProto { sps_path: next.answer.map(|id| id.0 as u64) })
}

/// Blocks of a DataNode that a balancer may move.
async fn get_blocks(shared: &Shared, caller: &Caller, asked: &GetBlocksRequestProto) -> Answer {
    let operation = GetBlocks {
        node: convert::datanode::id_from_wire(&asked.datanode),
        size: asked.size as i64,
        block_size_min: asked.min_block_size() as i64,
        hot_ms: asked.time_interval() as i64,
        kind: asked.storage_type.and_then(|kind| StorageTypeProto::try_from(kind).ok()).map(kind_from_wire),
    };
    let refused = |refusal| super::client::refused(refusal, "getBlocks");
    let begun = shared.engine.view("getBlocks", caller, |view| BlocksWalk::begin(view, operation));
    let mut walk = begun.map_err(refused)?;
    if shared.engine.settings().get_blocks_is_a_read {
        shared.engine.gate().pass(Category::Read)?;
    }
    while !shared.engine.view("getBlocks", caller, |view| walk.step(view, BLOCKS_SLICE)) {
        tokio::task::yield_now().await;
    }
    let blocks = shared
        .engine
        .view("getBlocks", caller, |view| walk.found.iter().map(|block| located(&view.state.blocks, block)).collect());
    message(&GetBlocksResponseProto { blocks: BlocksWithLocationsProto { blocks } })
}

fn located(blocks: &Blocks, found: &MovableBlock) -> BlockWithLocationsProto {
    let volumes =
        || found.places.iter().filter_map(|(place, index)| Some((blocks.volume_info(place.storage)?, *index)));
    let nodes = volumes().filter_map(|(volume, _)| blocks.node(volume.node));
    BlockWithLocationsProto {
        block: BlockProto {
            block_id: found.block.id.0 as u64,
            gen_stamp: found.block.stamp.0 as u64,
            num_bytes: Some(found.block.length),
        },
        datanode_uuids: nodes.map(|node| node.id.uuid.to_string()).collect(),
        storage_uuids: volumes().map(|(volume, _)| volume.id.to_string()).collect(),
        storage_types: volumes().map(|(volume, _)| kind_to_wire(volume.kind) as i32).collect(),
        indices: found.stripe.map(|_| volumes().map(|(_, index)| index).collect()),
        data_block_num: found.stripe.map(|stripe| stripe.data_units.into()),
        cell_size: found.stripe.map(|stripe| stripe.cell_size),
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
