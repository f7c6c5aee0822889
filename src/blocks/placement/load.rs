//! Which nodes are too busy for a new replica: those with more transfer threads than a multiple of the mean (Hadoop's `considerLoad` and the keys
//! beside it).

use crate::{Blocks, Node};
use vocab::StorageKind;

/// Nodes and their transfer threads.
#[derive(Clone, Copy, Default)]
struct Sum {
    nodes: u64,
    threads: u64,
}

/// Means over the nodes in service.
pub(super) struct Loads {
    factor: f64,
    of_all: f64,
    /// By medium, where nodes are compared with those that have the media they have.
    by_kind: Option<[Sum; StorageKind::ALL.len()]>,
    /// Of a volume, where that counts.
    of_volume: Option<f64>,
}

fn mean(threads: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { threads as f64 / of as f64 }
}

/// A bit for each medium that a node has.
fn kinds(blocks: &Blocks, node: &Node) -> u32 {
    blocks.volumes_of(node).fold(0, |kinds, volume| kinds | 1 << volume.kind as u32)
}

fn volumes(blocks: &Blocks, node: &Node) -> u64 {
    blocks.volumes_of(node).filter(|volume| volume.state != crate::VolumeState::Failed).count() as u64
}

impl Loads {
    pub(super) fn new(blocks: &Blocks) -> Loads {
        let settings = &blocks.settings;
        let mut loads = Loads {
            factor: settings.consider_load_factor,
            of_all: blocks.average_load(),
            by_kind: None,
            of_volume: None,
        };
        if settings.consider_load && (settings.consider_load_by_kind || settings.consider_load_by_volume) {
            let (mut by_kind, mut all_volumes, mut threads) = ([Sum::default(); StorageKind::ALL.len()], 0, 0);
            for node in blocks.registry.nodes().filter(|node| node.alive && node.in_service()) {
                let (of_node, kinds) = (u64::from(node.stats.xceivers), kinds(blocks, node));
                for (kind, sum) in by_kind.iter_mut().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1) {
                    debug_assert!(kind < u32::BITS as usize, "a bit each");
                    *sum = Sum { nodes: sum.nodes + 1, threads: sum.threads + of_node };
                }
                all_volumes += volumes(blocks, node);
                threads += of_node;
            }
            loads.by_kind = settings.consider_load_by_kind.then_some(by_kind);
            loads.of_volume = settings.consider_load_by_volume.then(|| mean(threads, all_volumes));
        }
        loads
    }

    /// Whether a node is passed over.
    pub(super) fn is_busy(&self, blocks: &Blocks, node: &Node) -> bool {
        let of_all = match &self.by_kind {
            Some(sums) => {
                let kinds = kinds(blocks, node);
                let of_node = sums.iter().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1).map(|(_, sum)| sum);
                let (nodes, threads) = of_node.fold((0, 0), |(n, t), sum| (n + sum.nodes, t + sum.threads));
                mean(threads, nodes)
            }
            None => self.of_all,
        };
        let above = |most: f64| most > 0.0 && f64::from(node.stats.xceivers) > most;
        above(self.factor * of_all)
            || self.of_volume.is_some_and(|mean| above(self.factor * volumes(blocks, node) as f64 * mean))
    }
}
