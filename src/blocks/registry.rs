//! DataNodes and their volumes by number and by name, and the rules of registration (Hadoop's `DatanodeManager`).

use crate::placement::{Apart, split_location};
use crate::topology::{DEFAULT_GROUP, DEFAULT_RACK, Topology};
use crate::{AdminState, Blocks, DatanodeId, Node, NodeNumber, NodeStats, Volume, VolumeId, VolumeState};
use hashbrown::HashMap;
use record::StorageNumber;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use vocab::Refusal;
use vocab::time::Now;

/// Which file system a server or a DataNode belongs to (Hadoop's `StorageInfo`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)] // the fields of VERSION
pub struct StorageInfo {
    pub layout_version: i32,
    pub namespace_id: i32,
    pub cluster_id: Arc<str>,
    pub c_time: i64,
}

impl StorageInfo {
    /// What must agree between NameNode and DataNode for every call (Hadoop's registration id): all but the layout version.
    pub fn agrees_with(&self, other: &StorageInfo) -> bool {
        self.namespace_id == other.namespace_id && self.cluster_id == other.cluster_id && self.c_time == other.c_time
    }
}

/// Who a DataNode says it is in every call (Hadoop's `DatanodeRegistration`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registration {
    /// Addresses and id.
    pub id: DatanodeId,
    /// Software version.
    pub software_version: Arc<str>,
    /// File system it belongs to.
    pub storage: StorageInfo,
}

impl fmt::Display for Registration {
    /// As Hadoop prints a `DatanodeRegistration` in messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, s) = (&self.id, &self.storage);
        write!(
            f,
            "DatanodeRegistration({id}, datanodeUuid={}, infoPort={}, infoSecurePort={}, ipcPort={}, \
             storageInfo=lv={};cid={};nsid={};c={})",
            id.uuid,
            id.info_port,
            id.info_secure_port,
            id.ipc_port,
            s.layout_version,
            s.cluster_id,
            s.namespace_id,
            s.c_time
        )
    }
}

/// What the rim found out about a registering DataNode: who called, and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resolved {
    /// Address the call came from, without brackets; `None` outside an RPC (tests).
    pub peer: Option<Arc<str>>,
    /// Name of that address; equal to the address if it has none.
    pub peer_name: Option<Arc<str>>,
    /// Whether the address is of this host's loopback: such count as resolved.
    pub loopback: bool,
    /// Rack by the topology script or table; `None` if that failed.
    pub location: Option<Arc<str>>,
}

/// Nodes and volumes.
#[derive(Debug, Default)]
pub struct Registry {
    nodes: Vec<Option<Box<Node>>>,
    /// By number less `floor`.
    volumes: Vec<Option<Box<Volume>>>,
    /// Smaller storage numbers are those of an earlier incarnation of the server.
    floor: u32,
    free: Vec<StorageNumber>,
    by_uuid: HashMap<Arc<str>, NodeNumber>,
    by_address: HashMap<(Arc<str>, u16), NodeNumber>,
    by_host: HashMap<Arc<str>, SmallVec<[NodeNumber; 1]>>,
    /// Racks of the nodes in service or leaving it; dead ones are not in.
    pub topology: Topology,
    /// Live nodes in service, and the transfer threads they use: what placement compares a node's load with.
    pub(crate) in_service: (u64, u64),
    /// Volumes whose replicas are to be forgotten, in slices.
    pub(crate) drains: std::collections::VecDeque<StorageNumber>,
}

impl Registry {
    /// A node by number.
    pub fn node(&self, n: NodeNumber) -> Option<&Node> {
        self.nodes.get(n.0 as usize)?.as_deref()
    }
    /// The same, to change.
    pub fn node_mut(&mut self, n: NodeNumber) -> Option<&mut Node> {
        self.nodes.get_mut(n.0 as usize)?.as_deref_mut()
    }
    /// A volume by number.
    pub fn volume(&self, s: StorageNumber) -> Option<&Volume> {
        self.volumes.get(s.0.checked_sub(self.floor)? as usize)?.as_deref()
    }
    /// The same, to change.
    pub fn volume_mut(&mut self, s: StorageNumber) -> Option<&mut Volume> {
        self.volumes.get_mut(s.0.checked_sub(self.floor)? as usize)?.as_deref_mut()
    }
    /// No number from this one on was ever given out.
    fn ceiling(&self) -> StorageNumber {
        StorageNumber(self.floor + self.volumes.len() as u32)
    }
    /// The node of a uuid.
    pub fn by_uuid(&self, uuid: &str) -> Option<NodeNumber> {
        self.by_uuid.get(uuid).copied()
    }
    /// The node at a data transfer address.
    pub fn by_address(&self, ip: &str, port: u16) -> Option<NodeNumber> {
        self.by_address.get(&(Arc::from(ip), port)).copied()
    }
    /// The nodes on a host, by address or name.
    pub fn by_host(&self, host: &str) -> &[NodeNumber] {
        self.by_host.get(host).map_or(&[], |list| list.as_slice())
    }
    /// All nodes that are known by uuid, in order of first registration.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().flatten().map(|n| &**n).filter(|n| self.by_uuid.get(&n.id.uuid) == Some(&n.number))
    }
    /// Numbers of the same.
    pub fn numbers(&self) -> Vec<NodeNumber> {
        self.nodes().map(|n| n.number).collect()
    }
    /// All volumes.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.volumes.iter().flatten().map(|v| &**v)
    }
    /// The volumes of a node.
    pub fn volumes_of<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Volume> + Clone {
        node.volumes.iter().filter_map(|s| self.volume(*s))
    }
    /// The volume of a node with this id.
    pub fn find_volume(&self, node: NodeNumber, id: &str) -> Option<StorageNumber> {
        let node = self.node(node)?;
        self.volumes_of(node).find(|v| &*v.id == id).map(|v| v.number)
    }

    /// Counts the nodes in service anew, after one came, went or changed its administrative state.
    pub(crate) fn recount(&mut self) {
        let serving = || self.nodes().filter(|n| n.alive && n.in_service());
        self.in_service = (serving().count() as u64, serving().map(|n| u64::from(n.stats.xceivers)).sum());
    }

    fn link(&mut self, n: NodeNumber) {
        let id = self.node(n).expect("a node").id.clone();
        self.by_uuid.insert(id.uuid.clone(), n);
        self.by_address.insert((id.ip.clone(), id.transfer_port), n);
        for host in [&id.ip, &id.host] {
            let list = self.by_host.entry(host.clone()).or_default();
            if !list.contains(&n) {
                list.push(n);
            }
        }
    }

    fn unlink(&mut self, n: NodeNumber) {
        let id = self.node(n).expect("a node").id.clone();
        if self.by_uuid.get(&id.uuid) == Some(&n) {
            self.by_uuid.remove(&id.uuid);
        }
        let address = (id.ip.clone(), id.transfer_port);
        if self.by_address.get(&address) == Some(&n) {
            self.by_address.remove(&address);
        }
        for host in [&id.ip, &id.host] {
            if let Some(list) = self.by_host.get_mut(host) {
                list.retain(|m| *m != n);
                if list.is_empty() {
                    self.by_host.remove(host);
                }
            }
        }
    }

    fn add_node(&mut self, id: DatanodeId, now: Now) -> NodeNumber {
        let number = NodeNumber(self.nodes.len() as u32);
        self.nodes.push(Some(Box::new(Node::new(number, id, now))));
        number
    }

    /// The volume that a message speaks of, made if it is new. Its kind and state follow the message. `None` when storage numbers ran out.
    pub(crate) fn ensure_volume(&mut self, node: NodeNumber, id: &VolumeId) -> Option<StorageNumber> {
        if let Some(s) = self.find_volume(node, &id.id) {
            let v = self.volume_mut(s).expect("found");
            v.kind = id.kind;
            v.state = id.state;
            return Some(s);
        }
        let number = match self.free.pop() {
            Some(s) => s,
            None if self.ceiling() > StorageNumber::MAX => return None,
            None => {
                self.volumes.push(None);
                StorageNumber(self.ceiling().0 - 1)
            }
        };
        self.volumes[(number.0 - self.floor) as usize] = Some(Box::new(Volume {
            number,
            node,
            id: id.id.clone(),
            kind: id.kind,
            state: id.state,
            capacity: 0,
            dfs_used: 0,
            remaining: 0,
            block_pool_used: 0,
            non_dfs_used: 0,
            mount: None,
            reports: 0,
            contents_stale: true,
            heartbeat_since_failover: false,
            report_epoch: 0,
            came_during_report: None,
            blocks: mem::runs::Run::default(),
        }));
        self.node_mut(node).expect("volumes belong to nodes").volumes.push(number);
        Some(number)
    }

    /// Removes a volume without blocks and frees its number.
    pub(crate) fn remove_volume(&mut self, s: StorageNumber) {
        let Some(volume) = s.0.checked_sub(self.floor).and_then(|at| self.volumes.get_mut(at as usize)?.take()) else {
            return;
        };
        assert!(volume.blocks.is_empty(), "a volume is removed only when it holds no blocks");
        if let Some(node) = self.node_mut(volume.node) {
            node.volumes.retain(|v| *v != s);
        }
        self.free.push(s);
    }

    /// Removes a node that nothing names any more and that has no volumes.
    pub(crate) fn remove_if_empty(&mut self, n: NodeNumber) {
        let gone = self.node(n).is_some_and(|node| node.volumes.is_empty() && self.by_uuid(&node.id.uuid) != Some(n));
        if gone {
            self.nodes[n.0 as usize] = None;
        }
    }
}

impl Blocks {
    /// No storage number from this one on was ever given out, by this process or by those whose state it goes on from.
    pub fn storage_ceiling(&self) -> StorageNumber {
        self.registry.ceiling()
    }
    /// Gives out storage numbers from this one on: smaller ones in replica entries are from earlier processes. Before any DataNode registers.
    pub fn set_storage_floor(&mut self, floor: StorageNumber) {
        debug_assert!(self.registry.volumes.is_empty(), "storage numbers are out");
        self.registry.floor = floor.0;
    }

    /// Checks that a call comes from a DataNode of this file system (`NameNodeRpcServer.verifyRequest`).
    ///
    /// # Errors
    /// `UnregisteredNode` when namespace, cluster or creation time differ.
    pub fn verify(&self, registration: &Registration, own: &StorageInfo) -> Result<(), Refusal> {
        if registration.storage.agrees_with(own) {
            return Ok(());
        }
        Err(Refusal::UnregisteredNode(format!("Unregistered server: {registration}").into()))
    }

    /// The node that a call comes from: known by its uuid and at the address it registered with. `None` if it never registered.
    ///
    /// # Errors
    /// `UnregisteredNode` when another address serves this uuid.
    pub fn identify(&self, registration: &Registration) -> Result<Option<NodeNumber>, Refusal> {
        self.identify_as(&registration.id, registration)
    }

    /// The same for an id in another message; `shown` is how the refusal prints it.
    pub(crate) fn identify_as(&self, id: &DatanodeId, shown: &dyn fmt::Display) -> Result<Option<NodeNumber>, Refusal> {
        let Some(n) = self.registry.by_uuid(&id.uuid) else { return Ok(None) };
        let node = self.registry.node(n).expect("linked");
        if node.id.ip == id.ip && node.id.transfer_port == id.transfer_port {
            return Ok(Some(n));
        }
        Err(Refusal::UnregisteredNode(
            format!(
                "Data node {shown} is attempting to report storage ID {}. Node {} is expected to serve this storage.",
                id.uuid, node.id
            )
            .into(),
        ))
    }

    /// Whether the DataNode of an id in a message is known.
    ///
    /// # Errors
    /// `UnregisteredNode` when another address serves its uuid.
    pub fn is_known(&self, id: &DatanodeId) -> Result<bool, Refusal> {
        Ok(self.identify_as(id, id)?.is_some())
    }

    /// Registers a DataNode (again): it is alive afterwards, and its volumes wait for first reports. Gives back the registration as
    /// stored, with the address the call came from.
    ///
    /// # Errors
    /// Version floor, unresolvable address, include list; nothing changes then.
    pub fn register(
        &mut self,
        mut registration: Registration,
        resolved: &Resolved,
        own: &StorageInfo,
        own_version: &str,
        now: Now,
    ) -> Result<Registration, Refusal> {
        self.tick_clock(now);
        self.check_version(&registration, own, own_version)?;
        if let Some(peer) = &resolved.peer {
            let name = resolved.peer_name.as_ref().unwrap_or(peer);
            if self.settings.check_host_name && !resolved.loopback && name == peer {
                return Err(denied(
                    &format!("hostname cannot be resolved (ip={peer}, hostname={name})"),
                    &registration,
                ));
            }
            registration.id.ip = peer.clone();
        }
        if !self.hosts.is_included(&registration.id) {
            return Err(denied("the host is not in the include-list", &registration));
        }
        let location = match &resolved.location {
            Some(location) => location.clone(),
            None if self.settings.reject_unresolved_topology => {
                return Err(Refusal::io(format!("Unresolved topology mapping for host {}", registration.id.host)));
            }
            None => DEFAULT_RACK.into(),
        };
        let in_groups = self.settings.apart == Apart::NodeGroups;
        let location = if in_groups && *location == *DEFAULT_RACK { DEFAULT_GROUP.into() } else { location };
        let n = self.place_registration(&registration.id, now);
        self.renew_registration(n, &registration, location, now);
        Ok(registration)
    }

    /// The number that a registration gets: that of its uuid; a node of another uuid at its address is forgotten.
    fn place_registration(&mut self, id: &DatanodeId, now: Now) -> NodeNumber {
        let same_uuid = self.registry.by_uuid(&id.uuid);
        if let Some(other) = self.registry.by_address(&id.ip, id.transfer_port)
            && same_uuid != Some(other)
        {
            self.declare_dead(other);
            self.registry.unlink(other);
            self.registry.remove_if_empty(other);
            self.registry.recount();
        }
        match same_uuid {
            Some(n) => {
                self.registry.topology.remove(n);
                self.registry.unlink(n);
                n
            }
            None => self.registry.add_node(id.clone(), now),
        }
    }

    fn renew_registration(&mut self, n: NodeNumber, r: &Registration, location: Arc<str>, now: Now) {
        let domain = self.hosts.upgrade_domain(&r.id);
        let rack: Arc<str> = match self.settings.apart {
            Apart::NodeGroups => split_location(&location).0.into(),
            _ => location.clone(),
        };
        let node = self.registry.node_mut(n).expect("placed");
        node.id = r.id.clone();
        node.software_version = r.software_version.clone();
        node.location = location;
        node.rack = rack.clone();
        node.upgrade_domain = domain;
        node.alive = true;
        node.registered = true;
        node.disallowed = false;
        node.draining = false;
        node.heartbeat_since_registration = false;
        node.last_update = now.monotonic;
        node.last_update_wall = now.wall;
        let volumes = node.volumes.clone();
        for s in volumes {
            let v = self.registry.volume_mut(s).expect("listed");
            v.reports = 0;
            v.report_epoch += 1;
            v.came_during_report = None;
            v.contents_stale = true;
            v.heartbeat_since_failover = false;
        }
        self.registry.link(n);
        self.registry.topology.add(n, &rack);
        self.registry.recount();
        self.leases.unregister(n);
        self.leases.register(n);
        self.begin_by_lists(n, now);
    }

    fn check_version(&self, r: &Registration, own: &StorageInfo, own_version: &str) -> Result<(), Refusal> {
        let reported = &*r.software_version;
        let minimum = &*self.settings.minimum_datanode_version;
        if crate::compare_versions(reported, minimum).is_lt() {
            return Err(Refusal::IncorrectVersion(
                format!(
                    "The reported DataNode version is too low to communicate with this NameNode. \
                     DataNode version: '{reported}' Minimum DataNode version: '{minimum}'"
                )
                .into(),
            ));
        }
        if reported != own_version && r.storage.c_time != own.c_time {
            return Err(Refusal::IncorrectVersion(
                format!(
                    "Reported DataNode version '{reported}' of DN {r} does not match NameNode version \
                     '{own_version}' and CTime of DN ('{}') does not match CTime of NN ('{}')",
                    r.storage.c_time, own.c_time
                )
                .into(),
            ));
        }
        Ok(())
    }

    /// Takes a node for dead: out of the topology, its orders forgotten, its replicas uncounted at once and forgotten in slices.
    pub(crate) fn declare_dead(&mut self, n: NodeNumber) {
        self.registry.topology.remove(n);
        self.leases.unregister(n);
        self.invalidation.remove_node(n);
        self.caching.forget(n);
        let keeps = self.registry.node(n).is_some_and(|node| node.admin == AdminState::InMaintenance);
        let Some(node) = self.registry.node_mut(n) else { return };
        node.alive = false;
        node.registered = false;
        node.mailbox.clear();
        node.scheduled = [[0; 6]; 2];
        node.stats = NodeStats { xceivers: 0, cache_capacity: 0, cache_used: 0, volume_failures: 0, ..node.stats };
        node.volume_failures = None;
        if !keeps {
            node.draining = true;
            let volumes = node.volumes.clone();
            self.registry.drains.extend(volumes);
        }
        self.registry.recount();
    }

    /// Stops treating volumes as failed or dead ones whose content is known again, and forgets those that the heartbeats dropped.
    pub(crate) fn prune_volumes(&mut self, n: NodeNumber, listed: &[StorageNumber]) {
        let Some(node) = self.registry.node(n) else { return };
        for s in node.volumes.clone() {
            if listed.contains(&s) {
                continue;
            }
            let volume = self.registry.volume_mut(s).expect("listed");
            if volume.blocks.is_empty() {
                self.registry.remove_volume(s);
            } else if volume.state != VolumeState::Failed {
                volume.state = VolumeState::Failed;
                self.registry.drains.push_back(s);
            }
        }
    }
}

fn denied(reason: &str, registration: &Registration) -> Refusal {
    Refusal::DisallowedDatanode(
        format!("Datanode denied communication with namenode because {reason}: {registration}").into(),
    )
}
