//! getDatanodeReport, getDatanodeStorageReport.

use crate::View;
use blocks::{Node, ReportKind};
use vocab::Refusal;

/// DataNodes of a kind.
#[derive(Debug)]
pub struct DatanodeReport<'a> {
    /// Those that are known.
    pub known: Vec<&'a Node>,
    /// Hosts of the include list that were never heard from: they count as dead.
    pub unheard: Vec<Node>,
}

impl DatanodeReport<'_> {
    /// All, known ones first.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.known.iter().copied().chain(&self.unheard)
    }
}

/// getDatanodeReport, getDatanodeStorageReport: DataNodes of a kind. Superusers only.
///
/// # Errors
/// `AccessControl`.
pub fn get_datanode_report<'a>(view: &View<'a>, kind: ReportKind) -> Result<DatanodeReport<'a>, Refusal> {
    view.check_superuser()?;
    let blocks = &view.state.blocks;
    let unheard = match kind {
        ReportKind::All | ReportKind::Dead => blocks.never_registered(),
        _ => Vec::new(),
    };
    Ok(DatanodeReport { known: blocks.datanode_report(kind), unheard })
}
