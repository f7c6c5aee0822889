//! Racks and the live nodes in them. Locations come resolved from outside.

use crate::NodeNumber;
use hashbrown::HashMap;
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rack of nodes whose location nobody knows.
pub const DEFAULT_RACK: &str = "/default-rack";

/// The same where there are node groups.
pub(crate) const DEFAULT_GROUP: &str = "/default-rack/default-nodegroup";

/// Where a target may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope<'a> {
    /// Anywhere.
    Any,
    /// In this rack.
    In(&'a str),
    /// In any rack but this.
    NotIn(&'a str),
}

/// The nodes that may be targets and sources, by rack (Hadoop's `NetworkTopology`).
#[derive(Debug, Default)]
pub struct Topology {
    racks: BTreeMap<Arc<str>, Vec<NodeNumber>>,
    /// All nodes, in no order that matters.
    all: Vec<NodeNumber>,
    location: HashMap<NodeNumber, Arc<str>>,
    /// Whether there ever was more than one rack (Hadoop's `hasClusterEverBeenMultiRack`): only then are blocks spread over racks.
    ever_multi_rack: bool,
}

impl Topology {
    /// Adds a node or moves it to another rack.
    pub fn add(&mut self, node: NodeNumber, location: &Arc<str>) {
        self.remove(node);
        self.racks.entry(location.clone()).or_default().push(node);
        self.all.push(node);
        self.location.insert(node, location.clone());
        self.ever_multi_rack |= self.racks.len() > 1;
    }

    /// Takes a node out; nothing happens when it is not there.
    pub fn remove(&mut self, node: NodeNumber) {
        let Some(location) = self.location.remove(&node) else { return };
        self.all.retain(|n| *n != node);
        if let Some(members) = self.racks.get_mut(&location) {
            members.retain(|n| *n != node);
            if members.is_empty() {
                self.racks.remove(&location);
            }
        }
    }

    /// Whether a node is in.
    pub fn contains(&self, node: NodeNumber) -> bool {
        self.location.contains_key(&node)
    }
    /// Nodes in.
    pub fn node_count(&self) -> usize {
        self.all.len()
    }
    /// Racks with nodes.
    pub fn rack_count(&self) -> usize {
        self.racks.len()
    }
    /// Whether blocks are spread over racks.
    pub fn ever_multi_rack(&self) -> bool {
        self.ever_multi_rack
    }
    /// Nodes of a rack.
    pub fn members(&self, rack: &str) -> &[NodeNumber] {
        self.racks.get(rack).map_or(&[], |members| members.as_slice())
    }
    /// Racks in name order with their nodes.
    pub fn racks(&self) -> impl Iterator<Item = (&Arc<str>, &[NodeNumber])> {
        self.racks.iter().map(|(rack, nodes)| (rack, nodes.as_slice()))
    }

    /// All nodes of the scope that `accept` takes, in random order.
    pub fn shuffled(
        &self,
        scope: Scope<'_>,
        random: &mut impl Rng,
        mut accept: impl FnMut(NodeNumber) -> bool,
    ) -> Vec<NodeNumber> {
        let members: &[NodeNumber] = match scope {
            Scope::In(rack) => self.members(rack),
            Scope::Any | Scope::NotIn(_) => &self.all,
        };
        let outside = |n: &NodeNumber| match scope {
            Scope::NotIn(rack) => self.location.get(n).is_some_and(|location| **location != *rack),
            _ => true,
        };
        let mut list: Vec<NodeNumber> = members.iter().copied().filter(outside).filter(|n| accept(*n)).collect();
        list.shuffle(random);
        list
    }

    /// A random node of the scope that `accept` takes; every such node is equally likely. `None` if there is none.
    pub fn choose(
        &self,
        scope: Scope<'_>,
        random: &mut impl Rng,
        mut accept: impl FnMut(NodeNumber) -> bool,
    ) -> Option<NodeNumber> {
        let members: &[NodeNumber] = match scope {
            Scope::In(rack) => self.racks.get(rack)?,
            Scope::Any | Scope::NotIn(_) => &self.all,
        };
        if members.is_empty() {
            return None;
        }
        let mut fits = |n: NodeNumber| match scope {
            Scope::NotIn(rack) => &**self.location.get(&n).expect("every member has a location") != rack && accept(n),
            _ => accept(n),
        };
        // a few blind tries first: on a large cluster nearly every node fits
        for _ in 0..8 {
            let node = members[random.random_range(0..members.len())];
            if fits(node) {
                return Some(node);
            }
        }
        let fitting: Vec<NodeNumber> = members.iter().copied().filter(|n| fits(*n)).collect();
        (!fitting.is_empty()).then(|| fitting[random.random_range(0..fitting.len())])
    }
}

/// Steps between two places in the tree of racks: 0 for one node, 2 for one rack, 4 and more beyond (`NetworkTopology.getDistance`).
pub fn distance(a: (&str, &str), b: (&str, &str)) -> u32 {
    if a.0 == b.0 {
        return if a.1 == b.1 { 0 } else { 2 };
    }
    fn parts<'a>((location, name): (&'a str, &'a str)) -> impl Iterator<Item = &'a str> + Clone {
        location.split('/').filter(|p| !p.is_empty()).chain([name])
    }
    let (a, b) = (parts(a), parts(b));
    let shared = a.clone().zip(b.clone()).take_while(|(x, y)| x == y).count();
    (a.count() + b.count() - 2 * shared) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    #[test]
    fn choosing_respects_the_scope() {
        let mut t = Topology::default();
        let mut random = SmallRng::seed_from_u64(7);
        let (a, b): (Arc<str>, Arc<str>) = ("/a".into(), "/b".into());
        for n in 0..4 {
            t.add(NodeNumber(n), if n < 3 { &a } else { &b });
        }
        for _ in 0..50 {
            assert_eq!(t.choose(Scope::NotIn("/a"), &mut random, |_| true), Some(NodeNumber(3)));
            assert!(t.choose(Scope::In("/a"), &mut random, |_| true).unwrap().0 < 3);
            assert_eq!(t.choose(Scope::Any, &mut random, |n| n.0 == 1), Some(NodeNumber(1)));
        }
        assert_eq!(t.choose(Scope::In("/c"), &mut random, |_| true), None);
        t.remove(NodeNumber(3));
        assert_eq!(t.rack_count(), 1);
        assert!(t.ever_multi_rack());
    }

    #[test]
    fn distances() {
        assert_eq!(distance(("/r1", "a"), ("/r1", "a")), 0);
        assert_eq!(distance(("/r1", "a"), ("/r1", "b")), 2);
        assert_eq!(distance(("/r1", "a"), ("/r2", "b")), 4);
        assert_eq!(distance(("/d1/r1", "a"), ("/d2/r1", "b")), 6);
    }
}
