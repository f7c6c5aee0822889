//! Striped groups through the same mishaps on both name nodes: scripted DataNodes, whose orders, figures and fsck lines must be equal. DataNodes are
//! named by what they have, since which one gets what is a matter of chance.

use crate::support::http;
use crate::support::namenode::Kind;
use crate::trials::client::Client;
use crate::trials::datanode::DataNode;
use crate::trials::fixture::Fixture;
use hadoop_proto::datanode::error_report_request_proto::ErrorCode;
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::*;
use hadoop_proto::hdfs::*;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Bytes of the group: four, three and three cells.
const LENGTH: u64 = 10 * MIB;
const POLICY: &str = "RS-3-2-1024k";
/// Nothing more came for so long: all orders are out.
const QUIET: Duration = Duration::from_millis(3_500);
/// Silence at the beginning that means that nothing comes at all.
const NOTHING: Duration = Duration::from_millis(6_000);

/// What a dead DataNode had is forgotten by now.
const FORGOTTEN: Duration = Duration::from_millis(2_500);

/// One name node with its DataNodes, and what was seen.
struct Cluster {
    fixture: Fixture,
    client: Client,
    nodes: BTreeMap<u32, DataNode>,
    /// Name of each DataNode, by number.
    names: BTreeMap<u32, String>,
    group: ExtendedBlockProto,
    lines: Vec<String>,
}

fn number_of(uuid: &str) -> u32 {
    uuid.trim_start_matches("dn-").parse().expect("dn-<number>")
}

/// Bytes of an internal block of the group.
fn unit_length(index: u64) -> u64 {
    if index == 1 || index == 2 { 3 * MIB } else { 4 * MIB }
}

/// The places in an fsck line in order: Java's depends on which slots of the group were free when they came.
fn with_sorted_places(line: &str) -> String {
    let Some((head, places)) = line.split_once("  [").filter(|_| line.ends_with(']')) else { return line.to_owned() };
    let mut places: Vec<&str> = places.trim_end_matches(']').split("], ").collect();
    places.sort_unstable();
    format!("{head}  [{}]", places.join(", "))
}

impl Cluster {
    fn start(kind: Kind) -> Option<Cluster> {
        let name = format!("striped-{kind:?}");
        let settings = [
            ("dfs.namenode.redundancy.interval.seconds", "1"),
            ("dfs.namenode.decommission.interval", "1"),
            ("dfs.namenode.lease-recheck-interval-ms", "2000"),
            ("dfs.namenode.reconstruction.pending.timeout-sec", "300"),
        ];
        let mut fixture = Fixture::prepared_as(kind, &name, &settings)?;
        let exclude = fixture.work.join("exclude");
        std::fs::write(&exclude, "").expect("own file");
        fixture.site.set("dfs.hosts.exclude", exclude.display().to_string());
        crate::support::namenode::format(kind, &fixture.site);
        fixture.launch();
        let client = fixture.superuser();
        let mut cluster = Cluster {
            fixture,
            client,
            nodes: BTreeMap::new(),
            names: BTreeMap::new(),
            group: ExtendedBlockProto::default(),
            lines: Vec::new(),
        };
        (1..=6).for_each(|n| cluster.add(n));
        cluster.client.mkdirs("/s").expect("mkdirs");
        let enable = EnableErasureCodingPolicyRequestProto { ec_policy_name: POLICY.into() };
        cluster
            .client
            .call::<EnableErasureCodingPolicyResponseProto>("enableErasureCodingPolicy", &enable)
            .expect("on");
        let set = SetErasureCodingPolicyRequestProto { src: "/s".into(), ec_policy_name: Some(POLICY.into()) };
        cluster.client.call::<SetErasureCodingPolicyResponseProto>("setErasureCodingPolicy", &set).expect("set");
        Some(cluster)
    }

    fn add(&mut self, number: u32) {
        self.nodes.insert(number, DataNode::start(self.fixture.port(), number));
        self.names.insert(number, "spare".to_owned());
    }

    fn note(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Internal block as its DataNode has it.
    fn unit(&self, index: u64) -> ExtendedBlockProto {
        let group = &self.group;
        ExtendedBlockProto { block_id: group.block_id + index, num_bytes: Some(unit_length(index)), ..group.clone() }
    }

    fn named(&self, name: &str) -> u32 {
        let found = self.names.iter().find(|(_, n)| *n == name);
        *found.unwrap_or_else(|| panic!("no DataNode {name}: {:?}", self.names)).0
    }

    fn name(&self, uuid: &str) -> String {
        self.names.get(&number_of(uuid)).cloned().unwrap_or_else(|| uuid.to_owned())
    }

    fn open(&mut self, path: &str) -> (u64, LocatedBlockProto) {
        let request = CreateRequestProto { block_size: 128 * MIB, ..self.client.create_request(path) };
        let file = self.client.create_with(request).expect("create").fs.expect("status").file_id();
        let block = self.client.add_block(path, file, None).expect("addBlock");
        self.group = ExtendedBlockProto { num_bytes: Some(LENGTH), ..block.b.clone() };
        self.names.values_mut().for_each(|name| *name = "spare".to_owned());
        for (at, index) in block.block_indices().iter().enumerate() {
            self.names.insert(number_of(&block.locs[at].id.datanode_uuid), format!("u{index}"));
        }
        (file, block)
    }

    /// A closed file of one group, its internal blocks on u0 to u4.
    fn write(&mut self, path: &str) {
        let (file, _) = self.open(path);
        for index in 0..5 {
            let (unit, n) = (self.unit(index), self.named(&format!("u{index}")));
            self.nodes.get_mut(&n).expect("there").receive(&unit, unit_length(index));
        }
        assert!(self.client.complete(path, file, Some(self.group.clone())).expect("complete"), "{path} is closed");
    }

    /// A DataNode says that its disks failed: it is dead at once.
    fn kill(&mut self, name: &str) {
        let node = self.nodes.remove(&self.named(name)).expect("there");
        self.names.remove(&number_of(node.id()));
        let request = ErrorReportRequestProto {
            registartion: node.registration.clone(),
            error_code: ErrorCode::FatalDiskError as u32,
            msg: "gone".into(),
        };
        node.call::<ErrorReportResponseProto>("errorReport", &request).expect("errorReport");
        self.note(format!("-- {name} dies"));
        // ours forgets what it had in the background
        std::thread::sleep(FORGOTTEN);
    }

    /// Heartbeats of all until no more orders come. Each order is obeyed and noted.
    fn settle(&mut self) {
        let mut seen = Vec::new();
        let (mut last, mut limit) = (Instant::now(), NOTHING);
        while last.elapsed() < limit {
            let numbers: Vec<u32> = self.nodes.keys().copied().collect();
            for n in numbers {
                let node = self.nodes.get_mut(&n).expect("there");
                node.heartbeat().unwrap_or_else(|e| panic!("sendHeartbeat: {e}"));
                for command in std::mem::take(&mut node.commands) {
                    let lines = self.obey(n, &command);
                    if !lines.is_empty() {
                        (last, limit) = (Instant::now(), QUIET);
                    }
                    seen.extend(lines);
                }
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        seen.sort();
        self.lines.extend(seen);
    }

    fn block_name(&self, id: u64) -> String {
        format!("group+{}", id.wrapping_sub(self.group.block_id))
    }

    fn list(&self, nodes: &DatanodeInfosProto) -> String {
        let names: Vec<String> = nodes.datanodes.iter().map(|d| self.name(&d.id.datanode_uuid)).collect();
        names.join(" ")
    }

    fn obey(&mut self, n: u32, command: &DatanodeCommandProto) -> Vec<String> {
        let who = self.names[&n].clone();
        let mut lines = Vec::new();
        if let Some(order) = &command.blk_cmd {
            let deletes = order.action == block_command_proto::Action::Invalidate as i32;
            for (at, block) in order.blocks.iter().enumerate() {
                let name = self.block_name(block.block_id);
                let length =
                    if block.num_bytes() == i64::MAX as u64 { "none".into() } else { block.num_bytes().to_string() };
                let whole = ExtendedBlockProto {
                    block_id: block.block_id,
                    generation_stamp: block.gen_stamp,
                    num_bytes: block.num_bytes,
                    pool_id: order.block_pool_id.clone(),
                };
                if deletes {
                    lines.push(format!("{who}: delete {name}, length {length}"));
                    let node = self.nodes.get_mut(&n).expect("there");
                    node.forget(block.block_id);
                    node.notify(&whole, 0, BlockStatus::Deleted).expect("blockReceivedAndDeleted");
                    self.names.insert(n, "spare".to_owned());
                } else {
                    let targets = order.targets[at].clone();
                    let kinds = &order.target_storage_types[at].storage_types;
                    lines.push(format!("{who}: copy {name}, length {length}, to {} {kinds:?}", self.list(&targets)));
                    for target in targets.datanodes {
                        self.arrives(number_of(&target.id.datanode_uuid), block.block_id - self.group.block_id);
                    }
                }
            }
        }
        for order in command.blk_ec_reconstruction_cmd.iter().flat_map(|c| &c.block_ec_reconstructioninfo) {
            let (block, policy) = (&order.block, &order.ec_policy);
            lines.push(format!(
                "{who}: rebuild {} of length {} from {} which have {:?} on {} {:?} {} storages, but {:?}, policy {} {:?}",
                self.block_name(block.block_id),
                block.num_bytes(),
                self.list(&order.source_dn_infos),
                &order.live_block_indices[..],
                self.list(&order.target_dn_infos),
                order.target_storage_types.storage_types,
                order.target_storage_uuids.storage_uuids.len(),
                order.exclude_reconstructed_indices.as_deref(),
                policy.id,
                policy.name,
            ));
            let missing = (0..5).filter(|i| !order.live_block_indices.contains(&(*i as u8)));
            for (index, target) in missing.zip(&order.target_dn_infos.datanodes).collect::<Vec<_>>() {
                self.arrives(number_of(&target.id.datanode_uuid), index);
            }
        }
        for order in command.recovery_cmd.iter().flat_map(|c| &c.blocks) {
            let located = &order.block;
            let names: Vec<String> = located.locs.iter().map(|d| self.name(&d.id.datanode_uuid)).collect();
            lines.push(format!(
                "someone: recover {} of length {} on {names:?} with {:?}, stamp {}, policy {:?}, indices {:?}, offset {}",
                self.block_name(located.b.block_id),
                located.b.num_bytes(),
                located.block_indices,
                order.new_gen_stamp - located.b.generation_stamp,
                order.ec_policy.as_ref().map(|p| p.id),
                order.block_indices.as_deref(),
                located.offset,
            ));
            self.recovered(n, located.b.clone(), order.new_gen_stamp);
        }
        lines
    }

    /// Rebuilt or copied.
    fn arrives(&mut self, n: u32, index: u64) {
        let unit = self.unit(index);
        self.nodes.get_mut(&n).expect("a live target").receive(&unit, unit_length(index));
        self.names.insert(n, format!("u{index}"));
    }

    /// The recovery of a group ends: internal blocks 0, 2, 3 and 4 are there.
    fn recovered(&mut self, primary: u32, block: ExtendedBlockProto, stamp: u64) {
        // as Java names no DataNode
        let null = || "null".to_owned();
        let nowhere =
            DatanodeIdProto { ip_addr: null(), host_name: null(), datanode_uuid: null(), ..Default::default() };
        let (mut ids, mut storages) = (Vec::new(), Vec::new());
        for index in 0..5 {
            let node = &self.nodes[&self.named(&format!("u{index}"))];
            let there = index != 1;
            ids.push(if there { node.registration.datanode_id.clone() } else { nowhere.clone() });
            storages.push(if there { node.storages[0].storage_uuid.clone() } else { String::new() });
        }
        let request = CommitBlockSynchronizationRequestProto {
            block,
            new_gen_stamp: stamp,
            new_length: LENGTH,
            close_file: true,
            delete_block: false,
            new_taragets: ids,
            new_target_storages: storages,
        };
        self.group.generation_stamp = stamp;
        let answer = self.nodes[&primary]
            .call::<CommitBlockSynchronizationResponseProto>("commitBlockSynchronization", &request);
        answer.unwrap_or_else(|e| panic!("commitBlockSynchronization: {e}"));
    }

    fn figures(&mut self, when: &str) {
        let groups: GetFsEcBlockGroupStatsResponseProto =
            self.client.call("getFsECBlockGroupStats", &GetFsEcBlockGroupStatsRequestProto {}).expect("stats");
        self.note(format!("{when}: {groups:?}"));
        let blocks: GetFsReplicatedBlockStatsResponseProto =
            self.client.call("getFsReplicatedBlockStats", &GetFsReplicatedBlockStatsRequestProto {}).expect("stats");
        self.note(format!("{when}: {blocks:?}"));
        for (bean, attributes) in [
            // those of FSNamesystem are some seconds old in Java
            ("FSNamesystemState", &["UnderReplicatedBlocks", "PendingReconstructionBlocks", "BlocksTotal"][..]),
            (
                "ECBlockGroupsState",
                &["LowRedundancyECBlockGroups", "CorruptECBlockGroups", "MissingECBlockGroups", "TotalECBlockGroups"][..],
            ),
            ("NameNodeInfo", &["HighestPriorityLowRedundancyECBlocks", "NumberOfMissingBlocks"][..]),
        ] {
            for attribute in attributes {
                let value = self.fixture.namenode().jmx(bean, attribute);
                self.note(format!("{when}: {bean} {attribute} {value:?}"));
            }
        }
    }

    fn fsck(&mut self, when: &str, options: &str) {
        let target = format!("/fsck?ugi=hdfs&path=%2Fs{options}");
        let (_, body) = http::get(self.fixture.http_port(), &target).expect("fsck");
        let mut lines = Vec::new();
        for line in body.lines() {
            let mut line = line.to_owned();
            for n in 1..100 {
                let name = self.names.get(&n).map_or("gone", String::as_str);
                line = line.replace(&format!("127.0.0.1:{},", 20_000 + n), &format!("{name},"));
                line = line.replace(&format!("127.0.0.1:{}", 20_000 + n), name);
                line = line.replace(&format!("DS-{n}-0"), "DS");
            }
            let id = self.group.block_id as i64;
            for index in 0..5 {
                line = line.replace(&format!("blk_{}", id + index), &format!("blk_group+{index}"));
            }
            line = line.replace(&self.group.pool_id, "BP").replace(&self.group.generation_stamp.to_string(), "STAMP");
            if let Some(at) = line.find(" at ").or_else(|| line.find(" in ").filter(|_| line.contains("milliseconds")))
            {
                line.truncate(at);
            }
            // Java counts DataNodes by their last heartbeat here, whatever else it knows of them
            if !line.contains("Number of data-nodes") {
                lines.push(format!("{when}: {}", with_sorted_places(&line)));
            }
        }
        self.lines.extend(lines);
    }

    fn locations(&mut self, path: &str) {
        let located = self.client.block_locations(path).expect("located").expect("there");
        for block in located.blocks {
            let mut places: Vec<String> = (block.locs.iter().zip(block.block_indices()))
                .map(|(d, index)| format!("{}={index}", self.name(&d.id.datanode_uuid)))
                .collect();
            places.sort();
            self.note(format!("{path}: {} bytes, corrupt {}, {places:?}", block.b.num_bytes(), block.corrupt));
        }
    }

    fn bad(&mut self, name: &str, index: u64) {
        let node = &self.nodes[&self.named(name)];
        let info = DatanodeInfoProto { id: node.registration.datanode_id.clone(), ..Default::default() };
        let block = LocatedBlockProto {
            b: self.unit(index),
            locs: vec![info],
            storage_i_ds: vec![node.storages[0].storage_uuid.clone()],
            storage_types: vec![StorageTypeProto::Disk.into()],
            is_cached: vec![false],
            ..Default::default()
        };
        let request = hadoop_proto::hdfs::ReportBadBlocksRequestProto { blocks: vec![block] };
        self.client
            .call::<hadoop_proto::hdfs::ReportBadBlocksResponseProto>("reportBadBlocks", &request)
            .expect("reportBadBlocks");
        self.note(format!("-- {name} is bad"));
    }

    fn decommission(&mut self, name: &str) {
        let line = format!("127.0.0.1:{}\n", 20_000 + self.named(name));
        std::fs::write(self.fixture.work.join("exclude"), line).expect("own file");
        self.client.call::<RefreshNodesResponseProto>("refreshNodes", &RefreshNodesRequestProto {}).expect("refresh");
        self.note(format!("-- {name} leaves"));
    }

    /// All of it.
    fn run(&mut self) {
        self.write("/s/f");
        self.figures("whole");
        self.fsck("whole", "&files=1&blocks=1&locations=1&racks=1");
        self.locations("/s/f");
        self.kill("u1");
        self.figures("one lost");
        self.fsck("one lost", "&files=1&blocks=1&locations=1");
        self.settle();
        self.figures("rebuilt");
        self.fsck("rebuilt", "");
        self.add(7);
        self.bad("u0", 0);
        self.settle();
        self.figures("bad one replaced");
        // the DataNode that had the bad one has nothing now: it gets a duplicate
        let (spare, two) = (self.named("spare"), self.unit(2));
        self.names.insert(spare, "u2".to_owned());
        self.nodes.get_mut(&spare).expect("there").receive(&two, unit_length(2));
        self.note("-- u2 twice");
        self.settle();
        self.figures("duplicate deleted");
        self.locations("/s/f");
        self.decommission("u3");
        let leaving = self.named("u3");
        self.settle();
        self.names.insert(leaving, "left".to_owned());
        let since = Instant::now();
        while self.fixture.namenode().count("NumDecomLiveDataNodes") != Some(1) && since.elapsed().as_secs() < 20 {
            self.nodes.get_mut(&leaving).expect("there").heartbeat().expect("heartbeat");
            std::thread::sleep(Duration::from_millis(200));
        }
        let left = self.fixture.namenode().count("NumDecomLiveDataNodes");
        self.note(format!("decommissioned: {left:?}"));
        self.fsck("decommissioned", "&files=1&blocks=1&locations=1");
        for name in ["u0", "u1"] {
            self.kill(name);
            self.settle();
            self.figures(name);
        }
        self.fsck("two lost", "&files=1&blocks=1&locations=1&replicaDetails=1");
        self.kill("u2");
        self.figures("three lost");
        self.fsck("three lost", "&files=1&blocks=1&locations=1");
        self.kill("left");
        self.figures("missing");
        self.fsck("missing", "&files=1&blocks=1&locations=1");
        self.fsck("missing", "&listcorruptfileblocks=1");
        self.locations("/s/f");
        assert!(self.client.delete("/s/f", false).expect("delete"));
        self.settle();
        self.figures("deleted");
        (10..=12).for_each(|n| self.add(n));
        let _ = self.open("/s/open");
        let request = RecoverLeaseRequestProto { src: "/s/open".into(), client_name: "other".into() };
        let closed = self.client.call::<RecoverLeaseResponseProto>("recoverLease", &request).expect("recoverLease");
        self.note(format!("recoverLease: {}", closed.result));
        self.settle();
        self.locations("/s/open");
        self.figures("recovered");
    }
}

#[test]
fn striped_groups_are_kept_as_the_java_name_node_keeps_them() {
    let _turn = crate::support::cluster_turn();
    let run = |kind: Kind| {
        let mut cluster = Cluster::start(kind)?;
        cluster.run();
        Some(cluster.lines)
    };
    let (java, ours) = std::thread::scope(|scope| {
        let java = scope.spawn(|| run(Kind::Java));
        let ours = run(Kind::Ironroot);
        (java.join().expect("Java's run"), ours)
    });
    let (Some(java), Some(ours)) = (java, ours) else { return };
    if let Some(folder) = std::env::var_os("IRONROOT_STRIPED_OUTPUT") {
        let folder = std::path::PathBuf::from(folder);
        std::fs::write(folder.join("java.txt"), java.join("\n")).expect("written");
        std::fs::write(folder.join("ours.txt"), ours.join("\n")).expect("written");
    }
    for (at, (theirs, own)) in java.iter().zip(&ours).enumerate() {
        assert_eq!(own, theirs, "line {at}, after {:?}", &java[at.saturating_sub(3)..at]);
    }
    assert_eq!(ours.len(), java.len());
}
