//! `SnapshotInfo`: directories that allow snapshots, and all their snapshots.

use super::beans::nobody;
use super::json::Json;
use crate::service::Shared;

/// What the bean tells: the snapshots, then the directories.
pub(super) fn info(shared: &Shared) -> [(&'static str, Json); 2] {
    let (mut snapshots, mut directories) = (Vec::new(), Vec::new());
    shared.engine.view("jmx", &nobody(), |view| {
        let (tree, store) = (&view.state.tree, &view.state.store);
        for (_, root) in tree.snapshots.roots() {
            let (status, path) = (view.own_status(root.directory), tree.path_of(store, root.directory));
            let path = String::from_utf8_lossy(&path);
            let below = if path == "/" { "" } else { &*path };
            snapshots.extend(root.snapshots.iter().map(|snapshot| {
                let name = String::from_utf8_lossy(&snapshot.name);
                Json::object([
                    ("modificationTime", Json::Int(snapshot.root.inode.mtime.0)),
                    ("snapshotDirectory", format!("{below}/.snapshot/{name}").as_str().into()),
                    ("snapshotID", Json::Int(snapshot.id.0.into())),
                    ("status", if snapshot.is_deleted() { "DELETED" } else { "ACTIVE" }.into()),
                ])
            }));
            directories.push(Json::object([
                ("group", (&*status.group).into()),
                ("modificationTime", Json::Int(status.mtime.0)),
                ("owner", (&*status.owner).into()),
                ("path", (&*path).into()),
                // octal digits, read as a decimal number
                ("permission", Json::Int(format!("{:o}", status.mode.bits()).parse().unwrap_or(0))),
                ("snapshotNumber", (root.snapshots.len() as u64).into()),
                ("snapshotQuota", u64::from(root.quota).into()),
            ]));
        }
    });
    [("Snapshots", Json::List(snapshots)), ("SnapshottableDirectories", Json::List(directories))]
}
