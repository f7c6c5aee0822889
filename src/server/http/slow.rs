//! Slow peers and disks as their attributes tell them: JSON in a text.

use super::beans::nobody;
use super::json::Json;
use crate::service::Shared;
use blocks::{DiskLatency, PeerLatency, SlowPeer};
use std::sync::Arc;

fn peer((name, reporters): &SlowPeer) -> Json {
    let reporter = |(name, l): &(Arc<str>, PeerLatency)| {
        Json::object([
            ("ReportingNode", (&**name).into()),
            ("ReportedLatency", l.latency.into()),
            ("MedianLatency", l.median.into()),
            ("MadLatency", l.deviation.into()),
            ("UpperLimitLatency", l.limit.into()),
        ])
    };
    let reporters = Json::List(reporters.iter().map(reporter).collect());
    Json::object([("SlowNode", (&**name).into()), ("SlowPeerLatencyWithReportingNodes", reporters)])
}

fn disk((name, l): &(Arc<str>, DiskLatency)) -> Json {
    let operations = [("METADATA", l.metadata), ("READ", l.read), ("WRITE", l.write)];
    let latencies = operations.into_iter().filter_map(|(name, latency)| Some((name.to_owned(), latency?.into())));
    Json::object([("SlowDiskID", (&**name).into()), ("Latencies", Json::Object(latencies.collect()))])
}

/// Texts about peers and disks; null where they are not measured, and where no disk is slow.
pub(super) fn slow(shared: &Shared) -> (Json, Json) {
    shared.engine.view("jmx", &nobody(), |view| {
        let blocks = &view.state.blocks;
        let peers = blocks.slow_peers(blocks.settings.slow_nodes_reported, view.now.monotonic);
        let text = |list: Vec<Json>| Json::Text(Json::List(list).compact());
        let peers = peers.map_or(Json::Null, |peers| text(peers.iter().map(peer).collect()));
        let disks = blocks.slow_disks().map_or(Json::Null, |disks| text(disks.iter().map(disk).collect()));
        (peers, disks)
    })
}
