//! The part of `NamenodeProtocol` that a checkpoint node speaks: it registers, and asks for a checkpoint with all that it needs for one
//! (Hadoop's `Checkpointer`). Backup nodes, which want the log as it is written, are refused.

use super::convert::datanode::storage_info;
use super::{Answer, EMPTY, Shared, message, superuser, unsupported};
use blocks::StorageInfo;
use hadoop_proto::hdfs::namenode_command_proto::Type;
use hadoop_proto::hdfs::namenode_registration_proto::NamenodeRoleProto;
use hadoop_proto::hdfs::{
    CheckpointCommandProto, CheckpointSignatureProto, NamenodeCommandProto, NamenodeRegistrationProto, StorageInfoProto,
};
use hadoop_proto::namenode::{
    EndCheckpointRequestProto, RegisterRequestProto, RegisterResponseProto, StartCheckpointRequestProto,
    StartCheckpointResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use vocab::{Caller, Txid};

/// What a node is told that is not to make checkpoints (`NamenodeProtocol.ACT_SHUTDOWN`).
const SHUT_DOWN: u32 = 50;
/// What a node is told that is to make one (`NamenodeProtocol.ACT_CHECKPOINT`).
const CHECKPOINT: u32 = 51;

/// What a checkpoint begins from. `segment` is the first transaction that is not in it.
pub(super) fn signature(shared: &Shared, segment: Txid) -> CheckpointSignatureProto {
    CheckpointSignatureProto {
        block_pool_id: shared.identity.block_pool.to_string(),
        most_recent_checkpoint_tx_id: shared.newest_checkpoint().0,
        cur_segment_tx_id: segment.0,
        storage_info: storage_info(&shared.identity.storage),
    }
}

fn io(text: String) -> RemoteException {
    RemoteException::application(class::IO, text)
}

/// Answers a node with who we are.
pub(super) fn register(shared: &Shared, caller: &Caller, asked: RegisterRequestProto) -> Answer {
    superuser(shared, caller, "registerSubordinateNamenode")?;
    let (node, own) = (asked.registration, &shared.identity.storage);
    let layout = node.storage_info.layout_version as i32;
    if layout != own.layout_version {
        let text = format!("Unexpected version of data node. Reported: {layout}. Expecting = {}.", own.layout_version);
        return Err(RemoteException::application(class::INCORRECT_VERSION, text));
    }
    let theirs = node.storage_info.namespce_id as i32;
    if theirs != own.namespace_id {
        let role = role_name(node.role());
        return Err(io(format!(
            "Incompatible namespaceIDs:  Namenode namespaceID = {}; {role} node namespaceID = {theirs}",
            own.namespace_id
        )));
    }
    if node.role() == NamenodeRoleProto::Backup {
        return Err(unsupported("registerSubordinateNamenode of a Backup Node"));
    }
    let registration = NamenodeRegistrationProto {
        rpc_address: shared.identity.rpc_address.to_string(),
        http_address: shared.identity.http_address.to_string(),
        storage_info: storage_info(own),
        role: Some(NamenodeRoleProto::Namenode as i32),
    };
    message(&RegisterResponseProto { registration })
}

/// Ends the present segment and tells the node what to make its checkpoint from, or to shut down.
pub(super) async fn start(shared: &Shared, caller: &Caller, asked: StartCheckpointRequestProto) -> Answer {
    superuser(shared, caller, "startCheckpoint")?;
    let (node, own) = (asked.registration, &shared.identity.storage);
    let command = |action, kind, checkpoint_cmd| NamenodeCommandProto { action, r#type: kind as i32, checkpoint_cmd };
    if registration_id(&node.storage_info) != own_id(own) {
        let role = role_name(node.role());
        let text = format!("Unregistered server: NamenodeRegistration({}, role={role})", node.rpc_address);
        return Err(RemoteException::application(class::UNREGISTERED_NODE, text));
    }
    shared.engine.gate().pass(ops::table::Category::Checkpoint)?;
    shared.engine.view("startCheckpoint", caller, |v| v.check_safe_mode(|| "Checkpoint not started".to_owned()))?;
    let command = if node.role() == NamenodeRoleProto::Namenode {
        tracing::error!("Name-node {} role NameNode: remote node does not make checkpoints", node.rpc_address);
        command(SHUT_DOWN, Type::NamenodeCommand, None)
    } else {
        let segment = shared.engine.roll().await?;
        let checkpoint = CheckpointCommandProto { signature: signature(shared, segment), need_to_return_image: true };
        command(CHECKPOINT, Type::CheckPointCommand, Some(checkpoint))
    };
    message(&StartCheckpointResponseProto { command })
}

/// The node has brought its image; all that is left is to look whether it was one of ours.
pub(super) fn end(shared: &Shared, caller: &Caller, asked: &EndCheckpointRequestProto) -> Answer {
    superuser(shared, caller, "endCheckpoint")?;
    shared.engine.gate().pass(ops::table::Category::Checkpoint)?;
    shared.engine.view("endCheckpoint", caller, |v| v.check_safe_mode(|| "Checkpoint not ended".to_owned()))?;
    let (theirs, own, pool) = (&asked.signature, &shared.identity.storage, &shared.identity.block_pool);
    let info = &theirs.storage_info;
    let same = info.layout_version as i32 == own.layout_version
        && registration_id(info) == own_id(own)
        && *theirs.block_pool_id == **pool;
    if same {
        return Ok(EMPTY);
    }
    Err(io(format!(
        "Inconsistent checkpoint fields.\nLV = {} namespaceID = {} cTime = {} ; clusterId = {} ; blockpoolId = {}.\nExpecting respectively: {}; {}; {}; {}; {pool}.",
        info.layout_version as i32,
        info.namespce_id as i32,
        info.c_time,
        info.cluster_id,
        theirs.block_pool_id,
        own.layout_version,
        own.namespace_id,
        own.c_time,
        own.cluster_id,
    )))
}

fn registration_id(info: &StorageInfoProto) -> (i32, &str, i64) {
    (info.namespce_id as i32, &info.cluster_id, info.c_time as i64)
}

fn own_id(info: &StorageInfo) -> (i32, &str, i64) {
    (info.namespace_id, &info.cluster_id, info.c_time)
}

fn role_name(role: NamenodeRoleProto) -> &'static str {
    match role {
        NamenodeRoleProto::Namenode => "NameNode",
        NamenodeRoleProto::Backup => "Backup Node",
        NamenodeRoleProto::Checkpoint => "Checkpoint Node",
    }
}
