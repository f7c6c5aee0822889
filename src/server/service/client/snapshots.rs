//! Snapshots.

use super::super::convert::nested;
use super::super::convert::status::put_status;
use super::super::{Answer, EMPTY, Writing, decode, message};
use super::Request;
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    AllowSnapshotRequestProto, CreateSnapshotRequestProto, CreateSnapshotResponseProto, DeleteSnapshotRequestProto,
    DisallowSnapshotRequestProto, GetSnapshotDiffReportListingRequestProto, GetSnapshotDiffReportListingResponseProto,
    GetSnapshotDiffReportRequestProto, GetSnapshotDiffReportResponseProto, GetSnapshotListingRequestProto,
    RenameSnapshotRequestProto, SnapshotDiffReportCursorProto, SnapshotDiffReportEntryProto,
    SnapshotDiffReportListingEntryProto, SnapshotDiffReportListingProto, SnapshotDiffReportProto,
};
use hadoop_proto::wire::Sink;
use namespace::snapshot::report::{Cursor, Item};
use ops::View;
use ops::read::snapshots::{get_snapshot_diff, get_snapshot_diff_listing, get_snapshot_listing, get_snapshottable};
use ops::write::snapshots::{AllowSnapshot, CreateSnapshot, DeleteSnapshot, DisallowSnapshot, RenameSnapshot};

pub(super) fn allow(request: &Request<'_>) -> Writing {
    let asked: AllowSnapshotRequestProto = decode(request.body.clone())?;
    request.write(AllowSnapshot { path: asked.snapshot_root.into_bytes() }, |()| Ok(EMPTY))
}

pub(super) fn disallow(request: &Request<'_>) -> Writing {
    let asked: DisallowSnapshotRequestProto = decode(request.body.clone())?;
    request.write(DisallowSnapshot { path: asked.snapshot_root.into_bytes() }, |()| Ok(EMPTY))
}

pub(super) fn create(request: &Request<'_>) -> Writing {
    let asked: CreateSnapshotRequestProto = decode(request.body.clone())?;
    let name = asked.snapshot_name.unwrap_or_default().into_bytes();
    request.write(CreateSnapshot { path: asked.snapshot_root.into_bytes(), name }, |path| {
        message(&CreateSnapshotResponseProto { snapshot_path: path.to_string() })
    })
}

pub(super) fn rename(request: &Request<'_>) -> Writing {
    let asked: RenameSnapshotRequestProto = decode(request.body.clone())?;
    let operation = RenameSnapshot {
        path: asked.snapshot_root.into_bytes(),
        old: asked.snapshot_old_name.into_bytes(),
        new: asked.snapshot_new_name.into_bytes(),
    };
    request.write(operation, |()| Ok(EMPTY))
}

pub(super) async fn delete(request: &Request<'_>) -> Answer {
    let asked: DeleteSnapshotRequestProto = decode(request.body.clone())?;
    let (path, name) = (asked.snapshot_root.into_bytes(), asked.snapshot_name.into_bytes());
    let decided = request.write(DeleteSnapshot { path, name }, |()| Ok(EMPTY))?;
    // who waits for the answer finds the room that the snapshot took
    request.shared.engine.end_cleanup().await;
    request.shared.engine.fence(decided).await
}

pub(super) fn snapshottable(request: &Request<'_>) -> Answer {
    let mut out = BytesMut::new();
    request.read(|view| {
        // where no directory allows snapshots at all there is no list
        if view.state.tree.snapshots.root_count() == 0 {
            return Ok(());
        }
        nested(&mut out, 1, |list| {
            for directory in get_snapshottable(view) {
                nested(list, 1, |one| {
                    nested(one, 1, |status| put_status(status, &directory.status, None));
                    one.put_varint_field(2, directory.quota.into());
                    one.put_varint_field(3, directory.count.into());
                    one.put_bytes_field(4, &directory.parent);
                });
            }
        });
        Ok(())
    })?;
    Ok(out.freeze())
}

pub(super) fn listing(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotListingRequestProto = decode(request.body.clone())?;
    let mut out = BytesMut::new();
    request.read(|view| {
        let all = get_snapshot_listing(view, asked.snapshot_root.as_bytes())?;
        nested(&mut out, 1, |list| {
            for snapshot in all {
                nested(list, 1, |one| {
                    nested(one, 1, |status| put_status(status, &snapshot.status, None));
                    one.put_varint_field(2, u64::from(snapshot.id.0 as u32));
                    one.put_bytes_field(3, &snapshot.parent);
                    one.put_varint_field(4, snapshot.is_deleted.into());
                });
            }
        });
        Ok(())
    })?;
    Ok(out.freeze())
}

pub(super) async fn diff(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotDiffReportRequestProto = decode(request.body.clone())?;
    let (path, from, to) = (asked.snapshot_root, asked.from_snapshot.clone(), asked.to_snapshot.clone());
    let (root, changes) = request.read_aside(move |v| get_snapshot_diff(v, path.as_bytes(), &from, &to)).await?;
    let entries = changes.into_iter().map(|change| SnapshotDiffReportEntryProto {
        fullpath: change.path.into(),
        modification_label: change.label.to_string(),
        target_path: change.target.map(Into::into),
    });
    let diff_report = SnapshotDiffReportProto {
        diff_report_entries: entries.collect(),
        snapshot_root: String::from_utf8_lossy(&root).into_owned(),
        from_snapshot: asked.from_snapshot,
        to_snapshot: asked.to_snapshot,
    };
    message(&GetSnapshotDiffReportResponseProto { diff_report })
}

fn items(items: Vec<Item>) -> Vec<SnapshotDiffReportListingEntryProto> {
    let one = |item: Item| SnapshotDiffReportListingEntryProto {
        fullpath: item.path.into(),
        dir_id: item.directory.0 as u64,
        is_reference: item.is_reference,
        // always there, if only empty
        target_path: Some(item.target.unwrap_or_default().into()),
        file_id: Some(item.id.0 as u64),
    };
    items.into_iter().map(one).collect()
}

pub(super) async fn diff_page(request: &Request<'_>) -> Answer {
    let asked: GetSnapshotDiffReportListingRequestProto = decode(request.body.clone())?;
    let path = asked.snapshot_root;
    let start = asked
        .cursor
        .map_or_else(Cursor::default, |c| Cursor { path: c.start_path.to_vec(), told: usize::try_from(c.index).ok() });
    let (from, to) = (asked.from_snapshot, asked.to_snapshot);
    let page = move |v: &View<'_>| get_snapshot_diff_listing(v, path.as_bytes(), &from, &to, &start);
    let found = request.read_aside(page).await?;
    let next = found.next.unwrap_or_default();
    let index = next.told.map_or(-1, |told| i32::try_from(told).unwrap_or(i32::MAX));
    let end = SnapshotDiffReportCursorProto { start_path: next.path.into(), index };
    let diff_report = SnapshotDiffReportListingProto {
        modified_entries: items(found.modified),
        created_entries: items(found.created),
        deleted_entries: items(found.deleted),
        is_from_earlier: found.from_earlier,
        cursor: Some(end),
    };
    message(&GetSnapshotDiffReportListingResponseProto { diff_report })
}
