//! Which replicas to delete when there are too many.

use super::{Apart, Target};
use crate::{Blocks, NodeNumber};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;
use vocab::StorageKind;
use vocab::time::MonotonicMs;

struct Candidate {
    target: Target,
    rack: Arc<str>,
    /// What else should be apart.
    share: Option<Arc<str>>,
    remaining: u64,
    heard: MonotonicMs,
}

/// Chooses which of `candidates` (good replicas) go, until `wanted` are left: of media the policy has too many of, never the last one of
/// a rack while another rack has two (where there are two racks), the delete hint if it helps, then a node not heard from for long, else the fullest node.
pub fn choose_excess(
    blocks: &Blocks,
    candidates: &[Target],
    wanted: usize,
    mut excess_kinds: SmallVec<[StorageKind; 4]>,
    added: Option<NodeNumber>,
    mut hint: Option<NodeNumber>,
    now: MonotonicMs,
) -> Vec<Target> {
    let mut left = candidates_of(blocks, candidates);
    let mut out = Vec::new();
    let mut first = true;
    while left.len() > wanted {
        let racks = rack_sizes(&left);
        let at = hint
            .take()
            .filter(|_| first)
            .and_then(|h| left.iter().position(|c| c.target.node == h))
            .filter(|i| excess_kinds.contains(&left[*i].target.kind))
            .filter(|i| hint_is_harmless(blocks, &left, *i, added, &racks));
        first = false;
        let Some(at) = at.or_else(|| pick(blocks, &left, &racks, &excess_kinds, now)) else { break };
        let gone = left.swap_remove(at);
        if let Some(k) = excess_kinds.iter().position(|k| *k == gone.target.kind) {
            excess_kinds.remove(k);
        }
        out.push(gone.target);
    }
    out
}

/// Chooses which of `candidates` (places of one internal block of a striped group) go, until one is left: of excess media, from a rack that has
/// more of the group (`available` are all good places of it) before one that has not, then as for replicas.
pub fn choose_duplicates(
    blocks: &Blocks,
    available: &[Target],
    candidates: &[Target],
    excess_kinds: &mut SmallVec<[StorageKind; 4]>,
    now: MonotonicMs,
) -> Vec<Target> {
    let racks = rack_sizes(&candidates_of(blocks, available));
    let crowded = |c: &Candidate| racks.get(&c.rack).copied().unwrap_or(0) > 1;
    let mut left = candidates_of(blocks, candidates);
    let mut out = Vec::new();
    while left.len() > 1 {
        let spread = left.iter().any(crowded);
        let best = best_of(blocks, &left, now, &|c| excess_kinds.contains(&c.target.kind) && (!spread || crowded(c)));
        let Some(at) = best else { break };
        let gone = left.swap_remove(at);
        if let Some(k) = excess_kinds.iter().position(|k| *k == gone.target.kind) {
            excess_kinds.remove(k);
        }
        out.push(gone.target);
    }
    out
}

fn candidates_of(blocks: &Blocks, targets: &[Target]) -> Vec<Candidate> {
    let candidate = |t: &Target| {
        let node = blocks.registry.node(t.node)?;
        Some(Candidate {
            target: *t,
            rack: node.rack.clone(),
            share: blocks.share(node),
            remaining: blocks.registry.volume(t.storage)?.remaining,
            heard: node.last_update,
        })
    };
    targets.iter().filter_map(candidate).collect()
}

fn rack_sizes(left: &[Candidate]) -> HashMap<Arc<str>, usize> {
    let mut racks = HashMap::new();
    for c in left {
        *racks.entry(c.rack.clone()).or_insert(0) += 1;
    }
    racks
}

/// How many of these candidates are in each domain or group.
fn share_sizes<'a>(of: impl Iterator<Item = &'a Candidate>) -> HashMap<&'a str, usize> {
    let mut sizes = HashMap::new();
    for share in of.filter_map(|c| c.share.as_deref()) {
        *sizes.entry(share).or_insert(0) += 1;
    }
    sizes
}

/// Whether taking the hinted replica keeps the racks, and upgrade domains where they count: its rack (domain) has more, or the new replica is on a
/// rack (in a domain) of its own.
fn hint_is_harmless(
    blocks: &Blocks,
    left: &[Candidate],
    i: usize,
    added: Option<NodeNumber>,
    racks: &HashMap<Arc<str>, usize>,
) -> bool {
    let new = added.and_then(|a| left.iter().find(|c| c.target.node == a));
    let keeps = |crowded: &dyn Fn(&Candidate) -> bool| crowded(&left[i]) || new.is_some_and(|new| !crowded(new));
    if !keeps(&|c| racks.get(&c.rack).copied().unwrap_or(0) > 1) {
        return false;
    }
    let Apart::UpgradeDomains(factor) = blocks.settings.apart else { return true };
    let domains = share_sizes(left.iter());
    domains.len() > factor || keeps(&|c| c.share.as_deref().is_some_and(|share| domains[share] > 1))
}

/// One replica, of excess media: where there are just two racks, from one that has several; of those that share an upgrade domain or a node group
/// first; among these one on a node silent for long, else the one with least space left.
fn pick(
    blocks: &Blocks,
    left: &[Candidate],
    racks: &HashMap<Arc<str>, usize>,
    excess_kinds: &[StorageKind],
    now: MonotonicMs,
) -> Option<usize> {
    let crowded = |c: &Candidate| racks.get(&c.rack).copied().unwrap_or(0) > 1;
    // node groups count within crowded racks only
    let groups = blocks.settings.apart == Apart::NodeGroups;
    let shares = share_sizes(left.iter().filter(|c| !groups || crowded(c)));
    let shared = |c: &Candidate| c.share.as_deref().and_then(|share| shares.get(share)).is_some_and(|n| *n > 1);
    let any = |filter: &dyn Fn(&Candidate) -> bool| left.iter().any(filter);
    let two_racks = racks.len() == 2 && any(&crowded);
    let goes = |c: &Candidate| match blocks.settings.apart {
        Apart::UpgradeDomains(_) if any(&shared) => shared(c) && (crowded(c) || !any(&|c| shared(c) && crowded(c))),
        Apart::NodeGroups if any(&crowded) => crowded(c) && (shared(c) || !any(&|c| shared(c) && crowded(c))),
        Apart::NodeGroups => true,
        _ => !two_racks || crowded(c),
    };
    best_of(blocks, left, now, &|c| excess_kinds.contains(&c.target.kind) && goes(c))
}

/// Of those that `filter` takes, one on a node silent for long, else the one with least space left.
fn best_of(
    blocks: &Blocks,
    left: &[Candidate],
    now: MonotonicMs,
    filter: &dyn Fn(&Candidate) -> bool,
) -> Option<usize> {
    let silent_ms = blocks.settings.heartbeat_interval_ms * blocks.settings.tolerated_heartbeats;
    let fitting = || left.iter().enumerate().filter(|(_, c)| filter(c));
    let silent = fitting().filter(|(_, c)| now.since(c.heard) > silent_ms).min_by_key(|(_, c)| c.heard);
    silent.or_else(|| fitting().min_by_key(|(_, c)| c.remaining)).map(|(i, _)| i)
}
