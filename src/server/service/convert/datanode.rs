//! DataNodes: what they send, and how clients and they themselves are told of them.

use super::kinds::{kind_from_wire, kind_to_wire};
use super::{located, nested};
use blocks::{
    Blocks, Command, DatanodeId, DiskLatency, Heartbeat, IncrementalKind, Node, PeerLatency, Rebuild, Registration,
    Reported, StorageInfo, Target, VolumeFailures, VolumeId, VolumeReport, VolumeState,
};
use bytes::BytesMut;
use hadoop_proto::datanode::{
    BalancerBandwidthCommandProto, BlockCommandProto, BlockEcReconstructionCommandProto, BlockIdCommandProto,
    BlockRecoveryCommandProto, DatanodeCommandProto, DatanodeRegistrationProto, FinalizeCommandProto,
    RegisterCommandProto, block_command_proto::Action, block_id_command_proto::Action as IdAction,
    datanode_command_proto::Type, received_deleted_block_info_proto::BlockStatus,
};
use hadoop_proto::hdfs::datanode_storage_proto::StorageState;
use hadoop_proto::hdfs::{
    BlockEcReconstructionInfoProto, BlockProto, DatanodeIdProto, DatanodeInfosProto, ErasureCodingPolicyProto,
    ExtendedBlockProto, RecoveringBlockProto, StorageInfoProto, StorageTypesProto, StorageUuidsProto,
};
use hadoop_proto::packed_blocks::{ReplicaState as WireState, ReportedReplica};
use hadoop_proto::view::client as client_view;
use hadoop_proto::view::{ViewError, datanode as view};
use hadoop_proto::wire::Sink;
use state::State;
use std::sync::Arc;
use vocab::{Block, BlockId, GenerationStamp, ReplicaState, TimeMs};

/// The id of a DataNode in a request.
pub fn id(id: &client_view::DatanodeId<'_>) -> DatanodeId {
    DatanodeId {
        ip: id.ip_addr.to_str().into(),
        host: id.host_name.to_str().into(),
        uuid: id.datanode_uuid.to_str().into(),
        transfer_port: id.xfer_port as u16,
        info_port: id.info_port as u16,
        info_secure_port: id.info_secure_port as u16,
        ipc_port: id.ipc_port as u16,
    }
}

/// A registration in a request.
pub fn registration(r: &view::DatanodeRegistration<'_>) -> Registration {
    Registration {
        id: id(&r.datanode_id),
        software_version: r.software_version.to_str().into(),
        storage: StorageInfo {
            layout_version: r.storage_info.layout_version as i32,
            namespace_id: r.storage_info.namespce_id as i32,
            cluster_id: r.storage_info.cluster_id.to_str().into(),
            c_time: r.storage_info.c_time as i64,
        },
    }
}

/// The same of a request that is decoded as a whole.
pub fn registration_from_wire(r: &DatanodeRegistrationProto) -> Registration {
    Registration {
        id: id_from_wire(&r.datanode_id),
        software_version: r.software_version.as_str().into(),
        storage: StorageInfo {
            layout_version: r.storage_info.layout_version as i32,
            namespace_id: r.storage_info.namespce_id as i32,
            cluster_id: r.storage_info.cluster_id.as_str().into(),
            c_time: r.storage_info.c_time as i64,
        },
    }
}

/// A DataNode's id in a request that is decoded as a whole.
pub fn id_from_wire(id: &DatanodeIdProto) -> DatanodeId {
    DatanodeId {
        ip: id.ip_addr.as_str().into(),
        host: id.host_name.as_str().into(),
        uuid: id.datanode_uuid.as_str().into(),
        transfer_port: id.xfer_port as u16,
        info_port: id.info_port as u16,
        info_secure_port: id.info_secure_port() as u16,
        ipc_port: id.ipc_port as u16,
    }
}

/// A file system's identity for the wire.
pub fn storage_info(info: &StorageInfo) -> StorageInfoProto {
    StorageInfoProto {
        layout_version: info.layout_version as u32,
        namespce_id: info.namespace_id as u32,
        cluster_id: info.cluster_id.to_string(),
        c_time: info.c_time as u64,
    }
}

/// A DataNode's id for the wire.
pub fn id_to_wire(id: &DatanodeId) -> DatanodeIdProto {
    DatanodeIdProto {
        ip_addr: id.ip.to_string(),
        host_name: id.host.to_string(),
        datanode_uuid: id.uuid.to_string(),
        xfer_port: id.transfer_port.into(),
        info_port: id.info_port.into(),
        ipc_port: id.ipc_port.into(),
        info_secure_port: Some(id.info_secure_port.into()),
    }
}

/// A volume in a request.
pub fn volume(storage: &view::DatanodeStorage<'_>) -> VolumeId {
    let state = match storage.state {
        Some(StorageState::ReadOnlyShared) => VolumeState::ReadOnlyShared,
        Some(StorageState::Normal) | None => VolumeState::Normal,
    };
    let kind = storage.storage_type.map_or(vocab::StorageKind::Disk, kind_from_wire);
    VolumeId { id: storage.storage_uuid.to_str().into(), state, kind }
}

/// The figures in a heartbeat or lifeline.
///
/// # Errors
/// A nested message that cannot be read.
pub fn heartbeat(request: &view::HeartbeatRequest<'_>) -> Result<Heartbeat, ViewError> {
    let failures = request.volume_failure_summary.as_ref().map(|summary| {
        let locations = summary.failed_storage_locations.iter().map(|l| Ok(Arc::from(l?.to_str())));
        Ok::<_, ViewError>(VolumeFailures {
            locations: locations.collect::<Result<_, ViewError>>()?,
            last_failure: TimeMs(summary.last_volume_failure_date as i64),
            capacity_lost: summary.estimated_capacity_lost_total,
        })
    });
    Ok(Heartbeat {
        volumes: request.reports.iter().map(|r| Ok(volume_report(&r?))).collect::<Result<_, ViewError>>()?,
        cache_capacity: request.cache_capacity,
        cache_used: request.cache_used,
        xceivers: request.xceiver_count,
        transfers: request.xmits_in_progress,
        failed_volumes: request.failed_volumes,
        failures: failures.transpose()?,
        wants_lease: request.request_full_block_report_lease,
        slow_peers: request.slow_peers.iter().map(|p| Ok(slow_peer(&p?))).collect::<Result<_, ViewError>>()?,
        slow_disks: request.slow_disks.iter().map(|d| Ok(slow_disk(&d?))).collect::<Result<_, ViewError>>()?,
    })
}

fn slow_peer(peer: &view::SlowPeerReport<'_>) -> (Arc<str>, PeerLatency) {
    let latency = PeerLatency {
        latency: peer.aggregate_latency.unwrap_or(0.0),
        median: peer.median.unwrap_or(0.0),
        deviation: peer.mad.unwrap_or(0.0),
        limit: peer.upper_limit_latency.unwrap_or(0.0),
    };
    (peer.data_node_id.map(|id| id.to_str().into()).unwrap_or_default(), latency)
}

fn slow_disk(disk: &view::SlowDiskReport<'_>) -> (Arc<str>, DiskLatency) {
    let latency = DiskLatency {
        metadata: disk.mean_metadata_op_latency,
        read: disk.mean_read_io_latency,
        write: disk.mean_write_io_latency,
    };
    (disk.base_path.map(|path| path.to_str().into()).unwrap_or_default(), latency)
}

fn volume_report(r: &view::StorageReport<'_>) -> VolumeReport {
    // an old DataNode sends the id alone
    let bare = || VolumeId { id: r.storage_uuid.to_str().into(), state: VolumeState::Normal, kind: Default::default() };
    let rest = r.capacity.saturating_sub(r.dfs_used).saturating_sub(r.remaining);
    VolumeReport {
        volume: r.storage.as_ref().map_or_else(bare, volume),
        failed: r.failed,
        capacity: r.capacity,
        dfs_used: r.dfs_used,
        remaining: r.remaining,
        block_pool_used: r.block_pool_used,
        non_dfs_used: r.non_dfs_used.unwrap_or(rest),
        mount: r.mount.map(|m| m.to_str().into()),
    }
}

/// A block in a request.
pub fn block(b: &view::Block<'_>) -> Block {
    Block { id: BlockId(b.block_id as i64), length: b.num_bytes, stamp: GenerationStamp(b.gen_stamp as i64) }
}

/// A replica of a full report.
pub fn reported(r: &ReportedReplica) -> Reported {
    let state = match r.state {
        WireState::Finalized => ReplicaState::Finalized,
        WireState::Rbw => ReplicaState::BeingWritten,
        WireState::Rwr => ReplicaState::WaitingToBeRecovered,
        WireState::Rur => ReplicaState::UnderRecovery,
        WireState::Temporary => ReplicaState::Temporary,
    };
    let block = Block { id: BlockId(r.block_id), length: r.length, stamp: GenerationStamp(r.generation_stamp) };
    Reported { block, state }
}

/// An entry of an incremental report: block, what happened, uuid of the node whose replica may go.
pub fn incremental<'a>(
    info: &view::ReceivedDeletedBlockInfo<'a>,
) -> (Block, IncrementalKind, Option<std::borrow::Cow<'a, str>>) {
    let kind = match info.status {
        BlockStatus::Receiving => IncrementalKind::Receiving,
        BlockStatus::Received => IncrementalKind::Received,
        BlockStatus::Deleted => IncrementalKind::Deleted,
    };
    (block(&info.block), kind, info.delete_hint.map(|h| h.to_str()).filter(|h| !h.is_empty()))
}

/// The volume of an incremental report; an old DataNode sends the id alone.
pub fn volume_of_report(r: &view::StorageReceivedDeletedBlocks<'_>) -> VolumeId {
    let bare = || VolumeId { id: r.storage_uuid.to_str().into(), state: VolumeState::Normal, kind: Default::default() };
    r.storage.as_ref().map_or_else(bare, volume)
}

/// A block with its pool in a request; the pool is that of the server.
pub fn extended(b: &client_view::ExtendedBlock<'_>) -> Block {
    Block { id: BlockId(b.block_id as i64), length: b.num_bytes, stamp: GenerationStamp(b.generation_stamp as i64) }
}

/// The same in a request that is decoded as a whole.
pub fn extended_from_wire(b: &ExtendedBlockProto) -> Block {
    Block { id: BlockId(b.block_id as i64), length: b.num_bytes(), stamp: GenerationStamp(b.generation_stamp as i64) }
}

/// A block for the wire.
pub fn block_to_wire(b: &Block) -> BlockProto {
    BlockProto { block_id: b.id.0 as u64, gen_stamp: b.stamp.0 as u64, num_bytes: Some(b.length) }
}

/// Writes the content of a `DatanodeInfoProto` with all the fields that a Java name node sets. `block_count` is told in reports only: locations say 0.
pub fn put_info(out: &mut BytesMut, block_count: u64, node: &Node) {
    nested(out, 1, |out| put_id(out, &node.id));
    let stats = &node.stats;
    out.put_varint_field(2, stats.capacity);
    out.put_varint_field(3, stats.dfs_used);
    out.put_varint_field(4, stats.remaining);
    out.put_varint_field(5, stats.block_pool_used);
    out.put_varint_field(6, node.last_update_wall.0 as u64);
    out.put_varint_field(7, stats.xceivers.into());
    out.put_bytes_field(8, node.location.as_bytes());
    out.put_varint_field(9, stats.non_dfs_used);
    out.put_varint_field(10, node.admin as u64);
    out.put_varint_field(11, stats.cache_capacity);
    out.put_varint_field(12, stats.cache_used);
    out.put_varint_field(13, node.last_update.0);
    if let Some(domain) = &node.upgrade_domain {
        out.put_bytes_field(14, domain.as_bytes());
    }
    out.put_varint_field(15, node.last_report_wall.0 as u64);
    out.put_varint_field(16, node.last_report.0);
    out.put_varint_field(17, block_count);
    // of a node that never registered it is not known
    if !node.software_version.is_empty() {
        out.put_bytes_field(18, node.software_version.as_bytes());
    }
}

fn put_id(out: &mut BytesMut, id: &DatanodeId) {
    out.put_bytes_field(1, id.ip.as_bytes());
    out.put_bytes_field(2, id.host.as_bytes());
    out.put_bytes_field(3, id.uuid.as_bytes());
    out.put_varint_field(4, id.transfer_port.into());
    out.put_varint_field(5, id.info_port.into());
    out.put_varint_field(6, id.ipc_port.into());
    out.put_varint_field(7, id.info_secure_port.into());
}

/// Writes the content of a `DatanodeStorageReportProto`: the node and the figures of its volumes.
pub fn put_storage_report(out: &mut BytesMut, blocks: &Blocks, node: &Node) {
    nested(out, 1, |out| put_info(out, blocks.block_count_of(node), node));
    for v in blocks.volumes_of(node) {
        nested(out, 2, |out| {
            out.put_bytes_field(1, v.id.as_bytes());
            out.put_varint_field(3, v.capacity);
            out.put_varint_field(4, v.dfs_used);
            out.put_varint_field(5, v.remaining);
            out.put_varint_field(6, v.block_pool_used);
            nested(out, 7, |out| {
                out.put_bytes_field(1, v.id.as_bytes());
                out.put_varint_field(2, u64::from(v.state == VolumeState::ReadOnlyShared));
                out.put_varint_field(3, kind_to_wire(v.kind) as u64);
            });
            out.put_varint_field(8, v.non_dfs_used);
            out.put_bytes_field(9, v.mount.as_deref().unwrap_or("").as_bytes());
        });
    }
}

fn of(cmd_type: Type) -> DatanodeCommandProto {
    DatanodeCommandProto { cmd_type: cmd_type as i32, ..Default::default() }
}

/// The order to register (again).
pub fn register_command() -> DatanodeCommandProto {
    DatanodeCommandProto { register_cmd: Some(RegisterCommandProto {}), ..of(Type::RegisterCommand) }
}

/// The word that data of before an upgrade may go.
pub fn finalize_command(pool: &str) -> DatanodeCommandProto {
    let finalize = FinalizeCommandProto { block_pool_id: pool.to_owned() };
    DatanodeCommandProto { finalize_cmd: Some(finalize), ..of(Type::FinalizeCommand) }
}

/// A command in the answer to a heartbeat. Targets that are gone by now are left out.
pub fn command(command: &Command, state: &State, pool: &str) -> DatanodeCommandProto {
    let blocks = &state.blocks;
    match command {
        Command::Register => register_command(),
        Command::Finalize => finalize_command(pool),
        Command::BalancerBandwidth(bandwidth) => {
            let bandwidth = BalancerBandwidthCommandProto { bandwidth: *bandwidth };
            DatanodeCommandProto { balancer_cmd: Some(bandwidth), ..of(Type::BalancerBandwidthCommand) }
        }
        Command::Invalidate(list) => {
            let invalidate = BlockCommandProto {
                action: Action::Invalidate as i32,
                block_pool_id: pool.to_owned(),
                blocks: list.iter().map(block_to_wire).collect(),
                ..Default::default()
            };
            DatanodeCommandProto { blk_cmd: Some(invalidate), ..of(Type::BlockCommand) }
        }
        Command::Transfer(list) => {
            let mut transfer = BlockCommandProto {
                action: Action::Transfer as i32,
                block_pool_id: pool.to_owned(),
                blocks: list.iter().map(|t| block_to_wire(&t.block)).collect(),
                ..Default::default()
            };
            for t in list {
                let targets: Vec<_> = t.targets.iter().filter_map(|t| found(blocks, t)).collect();
                transfer.targets.push(DatanodeInfosProto {
                    datanodes: targets.iter().map(|(node, _, _)| located::info(node)).collect(),
                });
                let uuids = targets.iter().map(|(_, id, _)| id.to_string()).collect();
                transfer.target_storage_uuids.push(StorageUuidsProto { storage_uuids: uuids });
                let kinds = targets.iter().map(|(_, _, t)| kind_to_wire(t.kind) as i32).collect();
                transfer.target_storage_types.push(StorageTypesProto { storage_types: kinds });
            }
            DatanodeCommandProto { blk_cmd: Some(transfer), ..of(Type::BlockCommand) }
        }
        Command::Rebuild(list) => {
            let list = list.iter().filter_map(|r| rebuild(r, state, pool));
            let rebuild = BlockEcReconstructionCommandProto { block_ec_reconstructioninfo: list.collect() };
            DatanodeCommandProto { blk_ec_reconstruction_cmd: Some(rebuild), ..of(Type::BlockEcReconstructionCommand) }
        }
        Command::Cache(list) => by_id(IdAction::Cache, list, pool),
        Command::Uncache(list) => by_id(IdAction::Uncache, list, pool),
        Command::Recover(list) => {
            let blocks = list.iter().map(|r| RecoveringBlockProto {
                new_gen_stamp: r.recovery_id as u64,
                block: located::recovering(blocks, &r.block, &r.locations, pool),
                truncate_block: r.truncate.as_ref().map(block_to_wire),
                ec_policy: r.units.as_ref().and_then(|(policy, _)| policy_of(state, *policy)),
                block_indices: r.units.as_ref().map(|(_, indices)| indices.clone().into()),
            });
            let recover = BlockRecoveryCommandProto { blocks: blocks.collect() };
            DatanodeCommandProto { recovery_cmd: Some(recover), ..of(Type::BlockRecoveryCommand) }
        }
    }
}

/// The order to rebuild internal blocks of a group.
fn rebuild(r: &Rebuild, state: &State, pool: &str) -> Option<BlockEcReconstructionInfoProto> {
    let blocks = &state.blocks;
    let targets: Vec<_> = r.targets.iter().filter_map(|t| found(blocks, t)).collect();
    // each source goes with its index: one that is gone leaves with it
    let known = r.sources.iter().zip(&r.live).filter_map(|(n, index)| Some((blocks.node(*n)?, *index)));
    let (sources, live): (Vec<_>, Vec<u8>) = known.map(|(node, index)| (located::info(node), index)).unzip();
    Some(BlockEcReconstructionInfoProto {
        block: ExtendedBlockProto {
            pool_id: pool.to_owned(),
            block_id: r.group.id.0 as u64,
            generation_stamp: r.group.stamp.0 as u64,
            num_bytes: Some(r.group.length),
        },
        source_dn_infos: DatanodeInfosProto { datanodes: sources },
        target_dn_infos: DatanodeInfosProto {
            datanodes: targets.iter().map(|(node, _, _)| located::info(node)).collect(),
        },
        target_storage_uuids: StorageUuidsProto {
            storage_uuids: targets.iter().map(|(_, id, _)| id.to_string()).collect(),
        },
        target_storage_types: StorageTypesProto {
            storage_types: targets.iter().map(|(_, _, t)| kind_to_wire(t.kind) as i32).collect(),
        },
        live_block_indices: live.into(),
        ec_policy: policy_of(state, r.policy)?,
        exclude_reconstructed_indices: Some(r.excluded.clone().into()),
    })
}

fn policy_of(state: &State, id: u8) -> Option<ErasureCodingPolicyProto> {
    state.tree.erasure_coding.by_id(id).map(super::erasure_coding::policy)
}

/// An order about blocks of which the id alone counts.
fn by_id(action: IdAction, list: &[BlockId], pool: &str) -> DatanodeCommandProto {
    let blk_id_cmd = BlockIdCommandProto {
        action: action as i32,
        block_pool_id: pool.to_owned(),
        block_ids: list.iter().map(|id| id.0 as u64).collect(),
    };
    DatanodeCommandProto { blk_id_cmd: Some(blk_id_cmd), ..of(Type::BlockIdCommand) }
}

/// A target's node and the id of its volume, if both are still there.
pub fn found<'a>(blocks: &'a Blocks, target: &Target) -> Option<(&'a Node, &'a Arc<str>, Target)> {
    let node = blocks.node(target.node)?;
    let volume = blocks.volume_info(target.storage)?;
    Some((node, &volume.id, *target))
}
