//! getDatanodeReport, getDatanodeStorageReport.

use crate::View;
use blocks::{Node, ReportKind, Volume};
use vocab::Refusal;

/// getDatanodeReport: DataNodes of a kind. Superusers only.
///
/// # Errors
/// `AccessControl`.
pub fn get_datanode_report<'a>(view: &View<'a>, kind: ReportKind) -> Result<Vec<&'a Node>, Refusal> {
    view.check_superuser()?;
    Ok(view.state.blocks.datanode_report(kind))
}

/// getDatanodeStorageReport: DataNodes of a kind with their volumes. Superusers only.
///
/// # Errors
/// `AccessControl`.
pub fn get_datanode_storage_report<'a>(
    view: &View<'a>,
    kind: ReportKind,
) -> Result<Vec<(&'a Node, Vec<&'a Volume>)>, Refusal> {
    let nodes = get_datanode_report(view, kind)?;
    Ok(nodes.into_iter().map(|node| (node, view.state.blocks.volumes_of(node).collect())).collect())
}
