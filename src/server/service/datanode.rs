//! `DatanodeProtocol` and its lifeline: registrations, heartbeats with their commands, and reports.

use super::convert::datanode as convert;
use super::convert::kinds::kind_from_wire;
use super::namenode::{namespace_info, no_keys, state};
use super::table::Datanode;
use super::{Answer, EMPTY, Identity, Shared, bad_view, decode, message, topology};
use blocks::{IncrementalEntry, Registration, ReportContext, ReportStart, Resolved, VolumeId};
use bytes::Bytes;
use engine::{Engine, HaState, Slice};
use hadoop_proto::datanode as proto;
use hadoop_proto::datanode::error_report_request_proto::ErrorCode;
use hadoop_proto::hdfs::{
    DatanodeInfoProto, LocatedBlockProto, NnhaStatusHeartbeatProto, RollingUpgradeStatusProto, StorageTypeProto,
    VersionResponseProto,
};
use hadoop_proto::view::ViewError;
use hadoop_proto::view::datanode as view;
use observe::RemoteException;
use observe::remote_exception::class;
use ops::datanode::{BadBlock, BadPlace, CommitBlockSynchronization, report_bad_blocks};
use state::State;
use std::sync::Arc;
use vocab::time::Now;
use vocab::{BlockId, Caller, GenerationStamp, Refusal};

/// Replicas of a full report that are decoded at a time, outside the lock.
const DECODED: usize = 1_000;
/// Replicas taken between two looks at the clock: what one costs varies a hundredfold with what is to be decided about its block.
const TAKEN: usize = 32;
/// The same of those that a report should have named.
const MISSED: usize = 128;

pub(super) async fn serve(shared: &Shared, method: Datanode, caller: &Caller, body: Bytes) -> Answer {
    match method {
        Datanode::Version => message(&VersionResponseProto { info: namespace_info(shared) }),
        Datanode::Register => register(shared, caller, body).await,
        Datanode::Heartbeat => heartbeat(shared, caller, body).await,
        Datanode::BlockReport => block_report(shared, caller, body).await,
        Datanode::BlockReceivedAndDeleted => incremental_report(shared, caller, body),
        Datanode::CacheReport => {
            let request: proto::CacheReportRequestProto = decode(body)?;
            cache_report(shared, caller, &request)
        }
        Datanode::ErrorReport => error_report(shared, caller, decode(body)?),
        Datanode::ReportBadBlocks => {
            let request: proto::ReportBadBlocksRequestProto = decode(body)?;
            bad_blocks(shared, caller, &request.blocks)
        }
        Datanode::CommitBlockSynchronization => commit_block_synchronization(shared, caller, decode(body)?).await,
    }
}

/// What a DataNode keeps in memory.
fn cache_report(shared: &Shared, caller: &Caller, request: &proto::CacheReportRequestProto) -> Answer {
    let registration = convert::registration_from_wire(&request.registration);
    verify(shared, &registration)?;
    let taken = shared.engine.turn("cacheReport", caller, |turn| {
        let blocks = &mut turn.soft().blocks;
        let node = blocks.identify(&registration)?;
        if let Some(node) = node {
            blocks.cache_report(node, request.blocks.iter().map(|id| BlockId(*id as i64)));
        }
        Ok::<_, Refusal>(node)
    });
    if taken.answer?.is_none() {
        return Err(Refusal::io("processCacheReport from dead or unregistered datanode: null").into());
    }
    message(&proto::CacheReportResponseProto::default())
}

/// Start-up safe mode may end with what a DataNode has just told, not only when it is looked at next.
fn look_at_safe_mode(state: &mut State, now: Now) {
    if state.blocks.safe_mode.is_startup() {
        state.blocks.safe_mode_check(now);
    }
}

/// Refuses a DataNode of another file system.
fn verify(shared: &Shared, registration: &Registration) -> Result<(), Refusal> {
    if registration.storage.agrees_with(&shared.identity.storage) {
        return Ok(());
    }
    Err(Refusal::UnregisteredNode(format!("Unregistered server: {registration}").into()))
}

async fn register(shared: &Shared, caller: &Caller, body: Bytes) -> Answer {
    let mut request: proto::RegisterDatanodeRequestProto = decode(body)?;
    let registration = convert::registration_from_wire(&request.registration);
    let address = caller.address.ip().to_canonical();
    let peer: Arc<str> = address.to_string().into();
    let check_name = shared.engine.view("registerDatanode", caller, |v| v.state.blocks.settings.check_host_name);
    let resolved = Resolved {
        peer_name: if check_name { Some(topology::name_of(address).await.into()) } else { None },
        loopback: topology::is_local(address),
        location: shared.topology.rack(&peer).await,
        peer: Some(peer),
    };
    let identity = &shared.identity;
    let decided = shared.engine.turn("registerDatanode", caller, |turn| {
        let now = turn.view().now;
        let state = turn.soft();
        let stored =
            state.blocks.register(registration, &resolved, &identity.storage, &identity.software_version, now)?;
        look_at_safe_mode(state, now);
        Ok::<_, Refusal>(stored)
    });
    let stored = decided.answer?;
    tracing::info!(datanode = %stored, "registered");
    request.registration.datanode_id = convert::id_to_wire(&stored.id);
    request.registration.keys = no_keys();
    message(&proto::RegisterDatanodeResponseProto { registration: request.registration })
}

async fn heartbeat(shared: &Shared, caller: &Caller, body: Bytes) -> Answer {
    let bad = |e: ViewError| bad_view::<proto::HeartbeatRequestProto>(&body, e);
    let request = view::HeartbeatRequest::parse(&body).map_err(bad)?;
    let registration = convert::registration(&request.registration);
    verify(shared, &registration)?;
    let beat = convert::heartbeat(&request).map_err(bad)?;
    let pool = &shared.identity.block_pool;
    let decided = shared.engine.turn("sendHeartbeat", caller, |turn| {
        let now = turn.view().now;
        let state = turn.soft();
        let answer = state.blocks.heartbeat(&mut state.store, &registration, &beat, now)?;
        let commands: Vec<_> = answer.commands.iter().map(|c| convert::command(c, state, pool)).collect();
        let rolling = state.sequences.rolling_upgrade_start.is_some();
        let rolling = (rolling || state.rolling_upgrade_finalized).then_some(!rolling);
        Ok::<_, Refusal>((commands, answer.lease_id, rolling, answer.slow))
    });
    // only commands say what was decided; a heartbeat without any need not wait for the journal
    let silent = decided.answer.as_ref().map_or(true, |(commands, ..)| commands.is_empty());
    let (cmds, lease_id, rolling, slow) = if silent { decided.answer? } else { shared.engine.fence(decided).await? };
    // DataNodes keep what they delete while a rolling upgrade runs, so that it can be rolled back; older ones know no finalized one
    let status = rolling
        .map(|finalized| RollingUpgradeStatusProto { block_pool_id: pool.to_string(), finalized: Some(finalized) });
    message(&proto::HeartbeatResponseProto {
        cmds,
        ha_status: NnhaStatusHeartbeatProto { state: state(shared) as i32, txid: shared.engine.journal().last().0 },
        rolling_upgrade_status: status.clone().filter(|_| rolling == Some(false)),
        rolling_upgrade_status_v2: status,
        full_block_report_lease_id: Some(lease_id),
        is_slownode: Some(slow),
    })
}

pub(super) fn lifeline(shared: &Shared, caller: &Caller, body: &Bytes) -> Answer {
    let bad = |e: ViewError| bad_view::<proto::HeartbeatRequestProto>(body, e);
    let request = view::HeartbeatRequest::parse(body).map_err(bad)?;
    let registration = convert::registration(&request.registration);
    verify(shared, &registration)?;
    let beat = convert::heartbeat(&request).map_err(bad)?;
    let decided = shared.engine.turn("sendLifeline", caller, |turn| {
        let now = turn.view().now;
        turn.soft().blocks.lifeline(&registration, &beat, now)
    });
    decided.answer?;
    Ok(EMPTY)
}

async fn block_report(shared: &Shared, caller: &Caller, body: Bytes) -> Answer {
    let (engine, identity, caller) = (shared.engine.clone(), shared.identity.clone(), caller.clone());
    let take = move || full_reports(&engine, &identity, &caller, &body);
    // many slices: not on a thread that serves connections
    let taken = tokio::task::spawn_blocking(take).await;
    let command = taken.map_err(|e| RemoteException::application(class::IO, e.to_string()))??;
    message(&proto::BlockReportResponseProto { cmd: command })
}

/// Takes the reports of all volumes in a request, slice by slice, each under a hold of its own.
fn full_reports(
    engine: &Engine,
    identity: &Identity,
    caller: &Caller,
    body: &Bytes,
) -> Result<Option<proto::DatanodeCommandProto>, RemoteException> {
    let bad = |e: ViewError| bad_view::<proto::BlockReportRequestProto>(body, e);
    let request = view::BlockReportRequest::parse(body).map_err(bad)?;
    let registration = convert::registration(&request.registration);
    if !registration.storage.agrees_with(&identity.storage) {
        return Err(Refusal::UnregisteredNode(format!("Unregistered server: {registration}").into()).into());
    }
    let context = request.context.map(|c| ReportContext {
        total_rpcs: c.total_rpcs as u32,
        rpc: c.cur_rpc as u32,
        report_id: c.id as u64,
        lease_id: c.lease_id,
    });
    if let Some(context) = &context {
        let checked = engine.turn("blockReport", caller, |turn| {
            let now = turn.view().now;
            turn.soft().blocks.check_lease(&registration, context, now)
        });
        match checked.answer {
            // it registers and reports again
            Err(Refusal::UnregisteredNode(_)) => return Ok(Some(convert::register_command())),
            other => other?,
        }
    }
    for report in request.reports.iter() {
        let report = report.map_err(bad)?;
        let volume = convert::volume(&report.storage);
        one_report(engine, caller, &registration, &volume, report.replicas())?;
    }
    let fresh = engine.turn("blockReport", caller, |turn| {
        let now = turn.view().now;
        let state = turn.soft();
        look_at_safe_mode(state, now);
        state.blocks.end_report(&registration, context.as_ref()) && state.sequences.rolling_upgrade_start.is_none()
    });
    // nothing stale is left: data of before an upgrade may go
    let finalized = identity.upgrade_finalized();
    Ok((fresh.answer && finalized && engine.gate().state() == HaState::Active)
        .then(|| convert::finalize_command(&request.block_pool_id.to_str())))
}

/// Takes the report of one volume.
fn one_report(
    engine: &Engine,
    caller: &Caller,
    registration: &Registration,
    volume: &VolumeId,
    mut replicas: view::Replicas<'_>,
) -> Result<(), RemoteException> {
    let begun = engine.turn("blockReport", caller, |turn| {
        let now = turn.view().now;
        turn.soft().blocks.begin_report(registration, volume, now)
    });
    let ReportStart::Go(mut report) = begun.answer? else { return Ok(()) };
    let mut decoded = Vec::with_capacity(DECODED);
    loop {
        for replica in replicas.by_ref().take(DECODED) {
            decoded.push(convert::reported(&replica.map_err(|e| RemoteException::bad_request(e.to_string()))?));
        }
        if decoded.is_empty() {
            break;
        }
        let mut left = decoded.drain(..);
        while left.len() > 0 {
            engine.turn_slice("blockReport", caller, |turn, slice| {
                let state = turn.soft();
                while state.blocks.report_slice(&mut state.store, &mut report, &mut left, TAKEN) {
                    if slice.is_over() {
                        return;
                    }
                }
                // of a report that another one has overtaken none is taken
                left.by_ref().for_each(drop);
            });
        }
    }
    let mut finish = |turn: &mut ops::Turn<'_>, slice: Slice| {
        let now = turn.view().now;
        let state = turn.soft();
        while state.blocks.finish_report(&mut state.store, &mut report, MISSED, now) {
            if slice.is_over() {
                return true;
            }
        }
        false
    };
    while engine.turn_slice("blockReport", caller, &mut finish).answer {}
    tracing::debug!(datanode = %registration.id, volume = %volume.id, unknown = report.unknown, missing = report.missing, "full report taken");
    Ok(())
}

/// What happened on the volumes of a DataNode. As in Java a node that is not registered gets no error here: its next heartbeat tells it.
fn incremental_report(shared: &Shared, caller: &Caller, body: Bytes) -> Answer {
    let bad = |e: ViewError| bad_view::<proto::BlockReceivedAndDeletedRequestProto>(&body, e);
    let request = view::BlockReceivedAndDeletedRequest::parse(&body).map_err(bad)?;
    let registration = convert::registration(&request.registration);
    verify(shared, &registration)?;
    let mut volumes = Vec::new();
    for storage in request.blocks.iter() {
        let storage = storage.map_err(bad)?;
        let entries: Result<Vec<_>, ViewError> = storage.blocks.iter().map(|b| Ok(convert::incremental(&b?))).collect();
        volumes.push((convert::volume_of_report(&storage), entries.map_err(bad)?));
    }
    let decided = shared.engine.turn("blockReceivedAndDeleted", caller, |turn| {
        let now = turn.view().now;
        let state = turn.soft();
        let Some(node) = state.blocks.identify(&registration)? else {
            return Err(Refusal::io("Got incremental block report from unregistered or dead node"));
        };
        for (volume, entries) in &volumes {
            let entries = entries.iter().map(|(block, kind, hint)| IncrementalEntry {
                block: *block,
                kind: *kind,
                delete_hint: hint.as_deref(),
            });
            state.blocks.incremental_report(&mut state.store, node, volume, entries, now)?;
        }
        look_at_safe_mode(state, now);
        Ok(())
    });
    if let Err(refusal) = decided.answer {
        tracing::warn!(datanode = %registration, ?refusal, "an incremental block report was not taken");
    }
    Ok(EMPTY)
}

fn error_report(shared: &Shared, caller: &Caller, request: proto::ErrorReportRequestProto) -> Answer {
    let registration = convert::registration_from_wire(&request.registartion);
    let text = &request.msg;
    let code = ErrorCode::try_from(request.error_code as i32).unwrap_or(ErrorCode::Notify);
    tracing::warn!(datanode = %registration, ?code, text, "error report");
    if code == ErrorCode::Notify {
        return Ok(EMPTY);
    }
    verify(shared, &registration)?;
    if code == ErrorCode::FatalDiskError {
        let fatal = |turn: &mut ops::Turn<'_>| turn.soft().blocks.fatal_disk_error(&registration);
        shared.engine.turn("errorReport", caller, fatal).answer?;
    }
    Ok(EMPTY)
}

/// Replicas that a reader or a DataNode found to be bad.
pub(super) fn bad_blocks(shared: &Shared, caller: &Caller, list: &[LocatedBlockProto]) -> Answer {
    let bad: Vec<BadBlock> = list
        .iter()
        .map(|b| {
            let storage = |i: usize| b.storage_i_ds.get(i).filter(|s| !s.is_empty()).cloned();
            let kind = |i: usize| b.storage_types.get(i).and_then(|k| StorageTypeProto::try_from(*k).ok());
            let place = |(i, node): (usize, &DatanodeInfoProto)| BadPlace {
                node: convert::id_from_wire(&node.id),
                storage: storage(i),
                kind: kind(i).map(kind_from_wire),
            };
            let places = b.locs.iter().enumerate().map(place).collect();
            BadBlock { pool: b.b.pool_id.as_str().into(), block: convert::extended_from_wire(&b.b), places }
        })
        .collect();
    shared.engine.turn("reportBadBlocks", caller, |turn| report_bad_blocks(turn, &bad)).answer?;
    Ok(EMPTY)
}

async fn commit_block_synchronization(
    shared: &Shared,
    caller: &Caller,
    request: proto::CommitBlockSynchronizationRequestProto,
) -> Answer {
    let targets = request.new_taragets.iter().map(convert::id_from_wire).zip(request.new_target_storages);
    let operation = CommitBlockSynchronization {
        pool: request.block.pool_id.as_str().into(),
        block: convert::extended_from_wire(&request.block),
        new_stamp: GenerationStamp(request.new_gen_stamp as i64),
        new_length: request.new_length,
        close_file: request.close_file,
        delete_block: request.delete_block,
        targets: targets.collect(),
    };
    let decided = shared.engine.turn("commitBlockSynchronization", caller, |turn| operation.run(turn));
    shared.engine.fence(decided).await?;
    Ok(EMPTY)
}
