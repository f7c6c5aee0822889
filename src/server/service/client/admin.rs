//! What administrators ask: log and images, safe mode, DataNodes.

use super::super::audit;
use super::super::convert::datanode::{put_info, put_storage_report};
use super::super::convert::nested;
use super::super::{Answer, EMPTY, Shared, Writing, decode, message, superuser};
use super::{Request, boolean};
use ::blocks::ReportKind;
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    DatanodeReportTypeProto, GetDatanodeReportRequestProto, GetDatanodeStorageReportRequestProto,
    RollEditsResponseProto, RollingUpgradeActionProto, RollingUpgradeInfoProto, RollingUpgradeRequestProto,
    RollingUpgradeResponseProto, RollingUpgradeStatusProto, SafeModeActionProto, SaveNamespaceRequestProto,
    SaveNamespaceResponseProto, SetBalancerBandwidthRequestProto, SetSafeModeRequestProto, UpgradeStatusResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use ops::admin::datanode_report::get_datanode_report;
use ops::admin::safe_mode::{SafeModeAction, SetSafeMode};
use ops::table::Category;
use state::RetryPayload;
use vocab::{Caller, Refusal, Txid};

/// What a balancer may use at most, in bytes a second.
const BANDWIDTH_MAX: i64 = 1 << 40;

/// Ends the present log segment; the first transaction of the new one.
pub(in super::super) async fn roll(shared: &Shared, caller: &Caller) -> Result<Txid, RemoteException> {
    superuser(shared, caller, "rollEditLog")?;
    shared.engine.view("rollEdits", caller, |view| view.check_safe_mode(|| "Log not rolled".to_owned()))?;
    Ok(shared.engine.roll().await?)
}

pub(super) async fn roll_edits(request: &Request<'_>) -> Answer {
    let new_segment_tx_id = roll(request.shared, request.caller).await?.0;
    message(&RollEditsResponseProto { new_segment_tx_id })
}

pub(super) async fn save_namespace(request: &Request<'_>) -> Answer {
    let asked: SaveNamespaceRequestProto = decode(request.body.clone())?;
    let (engine, name) = (&request.shared.engine, request.operation.row().method);
    let saved = message(&SaveNamespaceResponseProto { saved: Some(true) });
    let ids = request.caller.rpc_ids;
    if engine.view(name, request.caller, |v| ids.is_some_and(|ids| v.state.retry.get(&ids).is_some())) {
        *request.seen.lock() = audit::Seen::Repeated;
        return saved;
    }
    superuser(request.shared, request.caller, "saveNamespace")?;
    engine.pass(request.operation)?;
    let (window, gap) = (asked.time_window(), asked.tx_gap());
    let made = engine.save_namespace(request.caller, window, gap).await?;
    tracing::info!(made, "saveNamespace");
    let remembered = engine.turn(name, request.caller, |turn| {
        ids.into_iter().for_each(|ids| turn.soft().retry.insert(ids, RetryPayload::Done));
    });
    let () = remembered.answer;
    // Quirk: an_image_that_is_not_due_counts_as_saved: callers learn only of failures
    saved
}

pub(super) fn balancer_bandwidth(request: &Request<'_>) -> Answer {
    let asked: SetBalancerBandwidthRequestProto = decode(request.body.clone())?;
    if asked.bandwidth > BANDWIDTH_MAX {
        let text = format!("Bandwidth should not exceed maximum limit {BANDWIDTH_MAX} bytes per second");
        return Err(Refusal::IllegalArgument(text.into()).into());
    }
    superuser(request.shared, request.caller, "setBalancerBandwidth")?;
    let name = request.operation.row().method;
    let decided = request.shared.engine.turn(name, request.caller, |turn| {
        turn.soft().blocks.set_balancer_bandwidth(asked.bandwidth as u64);
    });
    let () = decided.answer;
    Ok(EMPTY)
}

pub(super) fn safe_mode(request: &Request<'_>) -> Writing {
    let asked: SetSafeModeRequestProto = decode(request.body.clone())?;
    let action = match asked.action() {
        SafeModeActionProto::SafemodeGet => SafeModeAction::Get,
        SafeModeActionProto::SafemodeEnter => SafeModeAction::Enter,
        SafeModeActionProto::SafemodeLeave => SafeModeAction::Leave,
        SafeModeActionProto::SafemodeForceExit => SafeModeAction::ForceExit,
    };
    if action != SafeModeAction::Get {
        let name = asked.action().as_str_name().to_lowercase();
        superuser(request.shared, request.caller, &name)?;
        tracing::info!(user = %request.caller.user, action = name, "safe mode");
    }
    request.write(SetSafeMode { action }, boolean)
}

fn report_kind(kind: DatanodeReportTypeProto) -> ReportKind {
    match kind {
        DatanodeReportTypeProto::All => ReportKind::All,
        DatanodeReportTypeProto::Live => ReportKind::Live,
        DatanodeReportTypeProto::Dead => ReportKind::Dead,
        DatanodeReportTypeProto::Decommissioning => ReportKind::Decommissioning,
        DatanodeReportTypeProto::EnteringMaintenance => ReportKind::EnteringMaintenance,
        DatanodeReportTypeProto::InMaintenance => ReportKind::InMaintenance,
    }
}

pub(super) fn datanode_report(request: &Request<'_>) -> Answer {
    let asked: GetDatanodeReportRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "datanodeReport")?;
    let mut out = BytesMut::new();
    request.read(|v| {
        for node in get_datanode_report(v, report_kind(asked.r#type()))?.nodes() {
            nested(&mut out, 1, |out| put_info(out, v.state.blocks.block_count_of(node), node));
        }
        Ok(())
    })?;
    Ok(out.freeze())
}

pub(super) fn datanode_storage_report(request: &Request<'_>) -> Answer {
    let asked: GetDatanodeStorageReportRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "getDatanodeStorageReport")?;
    let mut out = BytesMut::new();
    request.read(|v| {
        for node in get_datanode_report(v, report_kind(asked.r#type()))?.nodes() {
            nested(&mut out, 1, |out| put_storage_report(out, &v.state.blocks, node));
        }
        Ok(())
    })?;
    Ok(out.freeze())
}

/// Reads the lists of hosts again, outside the lock, and acts on them.
pub(super) fn refresh_nodes(request: &Request<'_>) -> Answer {
    superuser(request.shared, request.caller, "refreshNodes")?;
    let hosts = request.shared.reload.hosts().map_err(|e| RemoteException::application(class::IO, e))?;
    let decided = request.shared.engine.turn(request.operation.row().method, request.caller, |turn| {
        let now = turn.view().now;
        turn.soft().blocks.refresh_hosts(hosts, now);
    });
    let () = decided.answer;
    request.shared.topology.forget();
    Ok(EMPTY)
}

pub(super) fn upgrade_status(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    message(&UpgradeStatusResponseProto { upgrade_finalized: request.shared.identity.upgrade_finalized() })
}

/// Tells of a rolling upgrade, begins or finalizes one.
pub(super) async fn rolling_upgrade(request: &Request<'_>) -> Answer {
    let asked: RollingUpgradeRequestProto = decode(request.body.clone())?;
    let (shared, caller) = (request.shared, request.caller);
    let verb = match asked.action() {
        RollingUpgradeActionProto::Query => "query",
        RollingUpgradeActionProto::Start => "start",
        RollingUpgradeActionProto::Finalize => "finalize",
    };
    superuser(shared, caller, &format!("{verb}RollingUpgrade"))?;
    let engine = &shared.engine;
    let told = match asked.action() {
        RollingUpgradeActionProto::Query => {
            request.read(|_| Ok(()))?;
            engine.rolling_upgrade(caller)?
        }
        RollingUpgradeActionProto::Start => {
            engine.gate().pass(Category::Write)?;
            Some(engine.start_rolling_upgrade(caller).await?)
        }
        RollingUpgradeActionProto::Finalize => {
            engine.gate().pass(Category::Write)?;
            engine.finalize_rolling_upgrade(caller).await?
        }
    };
    let rolling_upgrade_info = told.map(|told| RollingUpgradeInfoProto {
        status: RollingUpgradeStatusProto {
            block_pool_id: shared.identity.block_pool.to_string(),
            finalized: Some(told.finalized.is_some()),
        },
        start_time: told.start.0 as u64,
        finalize_time: told.finalized.unwrap_or_default().0 as u64,
        created_rollback_images: told.rollback_image,
    });
    message(&RollingUpgradeResponseProto { rolling_upgrade_info })
}

/// Nodes that others find slow; none if peers are not measured.
pub(super) fn slow_datanodes(request: &Request<'_>) -> Answer {
    let mut out = BytesMut::new();
    request.read(|v| {
        for node in v.state.blocks.slow_nodes(v.now.monotonic) {
            nested(&mut out, 1, |out| put_info(out, v.state.blocks.block_count_of(node), node));
        }
        Ok(())
    })?;
    Ok(out.freeze())
}
