//! Snapshots, of which there are none yet.

use super::super::{Answer, EMPTY, decode, message};
use super::Request;
use bytes::Bytes;
use hadoop_proto::hdfs::{
    GetSnapshotDiffReportListingRequestProto, GetSnapshotDiffReportListingResponseProto,
    GetSnapshotDiffReportRequestProto, GetSnapshotDiffReportResponseProto, GetSnapshotListingRequestProto,
    GetSnapshotListingResponseProto, SnapshotDiffReportCursorProto, SnapshotDiffReportListingProto,
    SnapshotDiffReportProto, SnapshotListingProto,
};
use ops::read::snapshots::{get_snapshot_diff, get_snapshot_listing};

/// No directory but the root, which is not listed, allows snapshots.
pub(super) fn snapshottable(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    Ok(EMPTY)
}

pub(super) fn listing(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotListingRequestProto = decode(request.body.clone())?;
    request.read(|v| get_snapshot_listing(v, asked.snapshot_root.as_bytes()))?;
    message(&GetSnapshotListingResponseProto { snapshot_list: Some(SnapshotListingProto::default()) })
}

pub(super) fn diff(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotDiffReportRequestProto = decode(request.body.clone())?;
    let path = asked.snapshot_root.as_bytes();
    request.read(|v| get_snapshot_diff(v, path, &asked.from_snapshot, &asked.to_snapshot))?;
    let diff_report = SnapshotDiffReportProto {
        snapshot_root: asked.snapshot_root,
        from_snapshot: asked.from_snapshot,
        to_snapshot: asked.to_snapshot,
        diff_report_entries: Vec::new(),
    };
    message(&GetSnapshotDiffReportResponseProto { diff_report })
}

pub(super) fn diff_page(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotDiffReportListingRequestProto = decode(request.body.clone())?;
    let path = asked.snapshot_root.as_bytes();
    request.read(|v| get_snapshot_diff(v, path, &asked.from_snapshot, &asked.to_snapshot))?;
    let end = SnapshotDiffReportCursorProto { start_path: Bytes::new(), index: -1 };
    let diff_report =
        SnapshotDiffReportListingProto { is_from_earlier: false, cursor: Some(end), ..Default::default() };
    message(&GetSnapshotDiffReportListingResponseProto { diff_report })
}
