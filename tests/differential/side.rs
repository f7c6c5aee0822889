//! One NameNode with its DataNodes, which do as they are told.

use crate::support::namenode::Kind;
use crate::trials::client::{CLIENT_PROTOCOL, Client, Refusal};
use crate::trials::conversation::{RawBytes, encode, method};
use crate::trials::datanode::DataNode;
use crate::trials::fixture::Fixture;
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::{DatanodeCommandProto, block_command_proto, datanode_command_proto};
use hadoop_proto::hdfs::{
    AddBlockResponseProto, BlockEcReconstructionInfoProto, DatanodeIdProto, ErasureCodingPolicyProto,
    ExtendedBlockProto,
};
use prost_reflect::DynamicMessage;
use rpc::client::{CallOptions, ClientSettings};
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vocab::erasure_coding::{ErasureCodingPolicy, Stripe};

/// DataNodes of each.
pub const NODES: u32 = 3;
/// Saves the namespace.
pub const SAVE: [(&str, &str); 3] = [
    ("setSafeMode", "action: SAFEMODE_ENTER"),
    ("saveNamespace", "timeWindow: 0 txGap: 0"),
    ("setSafeMode", "action: SAFEMODE_LEAVE"),
];
/// Placeholder for bytes that are no UTF-8.
pub const RAW: RawBytes<'static> = RawBytes { placeholder: "~~raw~~", bytes: b"\xff\xc3(\xf0\x9f\x98\x80" };

pub type Answer = Result<DynamicMessage, Refusal>;
/// A body or a refusal, or why the connection broke.
pub type Exchange = Result<Result<Vec<u8>, Refusal>, String>;

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("in range")
}

/// The layout that a policy stands for: those that every file system has are told by number alone.
fn stripe_of(policy: &ErasureCodingPolicyProto) -> Option<Stripe> {
    let Some(schema) = &policy.schema else {
        return ErasureCodingPolicy::built_in()
            .find(|known| u32::from(known.id) == policy.id)
            .map(|known| known.stripe);
    };
    Some(Stripe {
        data_units: schema.data_units as u8,
        parity_units: schema.parity_units as u8,
        cell_size: policy.cell_size.unwrap_or(1 << 20),
    })
}

/// One of the two.
pub struct Side {
    pub(super) fixture: Fixture,
    clients: HashMap<String, Client>,
    is_java: bool,
    /// Whether calls are made with this one's numbers: it began as Java's.
    pub is_first: bool,
    /// How often it was started again: call ids begin anew, and must not be those of calls that it remembers.
    lives: u8,
    pub nodes: Vec<DataNode>,
}

impl Side {
    pub(super) fn start(kind: Kind, name: &str) -> Option<Side> {
        let settings = [
            ("dfs.replication", "3"),
            ("dfs.namenode.accesstime.precision", "0"),
            ("dfs.namenode.max.extra.edits.segments.retained", "1"),
            ("dfs.namenode.lease-recheck-interval-ms", "2000"),
            // what goes on in the background comes to its end soon
            ("dfs.namenode.redundancy.interval.seconds", "1"),
            ("dfs.namenode.invalidate.work.pct.per.iteration", "1.0"),
            ("dfs.namenode.delegation.token.always-use", "true"),
            ("dfs.namenode.path.based.cache.refresh.interval.ms", "500"),
        ];
        let mut fixture = Fixture::prepared_as(kind, &format!("{name}-{kind:?}"), &settings)?;
        crate::support::namenode::format(kind, &fixture.site);
        fixture.launch();
        let nodes = (1..=NODES).map(|n| DataNode::start(fixture.port(), n)).collect();
        Some(Side {
            fixture,
            clients: HashMap::new(),
            is_java: kind == Kind::Java,
            is_first: kind == Kind::Java,
            lives: 0,
            nodes,
        })
    }

    /// The connection of a user.
    pub(super) fn client(&mut self, user: &str) -> Client {
        let (port, lives) = (self.fixture.port(), self.lives);
        let client = self.clients.entry(user.to_owned()).or_insert_with(|| {
            let mut settings = ClientSettings::new(CLIENT_PROTOCOL, 1, user);
            let mut id = [0x2d; 16];
            id[..user.len()].copy_from_slice(user.as_bytes());
            id[15] = lives;
            settings.client_id = Some(id);
            Client::with_settings(port, settings)
        });
        client.clone()
    }

    pub(super) fn call(&mut self, user: &str, name: &str, body: &[u8]) -> Answer {
        let answer = self.client(user).exchange(CallOptions::default(), name, body);
        self.answered(user, name, answer)
    }

    /// What a user's call came to; after a broken connection the next call makes a new one.
    pub(super) fn answered(&mut self, user: &str, name: &str, answer: Exchange) -> Answer {
        match answer {
            Ok(answer) => answer.map(|body| {
                let output = method(name).output();
                DynamicMessage::decode(output, body.as_slice()).unwrap_or_else(|e| panic!("{name}: {e}"))
            }),
            Err(broken) => {
                self.clients.remove(user);
                Err(Refusal { class: "connection".to_owned(), message: broken, code: String::new() })
            }
        }
    }

    /// Blocks that DataNodes were to make or are to be told to make.
    pub(super) fn pending(&self) -> i64 {
        self.fixture.namenode().count("PendingReconstructionBlocks").unwrap_or(0)
    }

    /// What DataNodes are told is done at once.
    pub(super) fn obey(&mut self) -> usize {
        let mut done = 0;
        for at in 0..self.nodes.len() {
            if let Err(refusal) = self.nodes[at].heartbeat() {
                // Java's lease monitor lets a block of a file be recovered that was deleted while a snapshot holds it, and then finds it complete
                let known = refusal.message.contains("where it is not under construction");
                assert!(known && self.is_java, "sendHeartbeat: {refusal}");
            }
            let commands = std::mem::take(&mut self.nodes[at].commands);
            for command in commands {
                done += self.carry_out(at, &command);
            }
        }
        done
    }

    fn carry_out(&mut self, at: usize, command: &DatanodeCommandProto) -> usize {
        use datanode_command_proto::Type;
        let extended = |pool: &str, b: &hadoop_proto::hdfs::BlockProto| ExtendedBlockProto {
            pool_id: pool.to_owned(),
            block_id: b.block_id,
            generation_stamp: b.gen_stamp,
            num_bytes: b.num_bytes,
        };
        if let Some(block_command) = &command.blk_cmd {
            let pool = block_command.block_pool_id.clone();
            for (number, block) in block_command.blocks.iter().enumerate() {
                let block = extended(&pool, block);
                if block_command.action == block_command_proto::Action::Invalidate as i32 {
                    self.nodes[at].forget(block.block_id);
                    let _ = self.nodes[at].notify(&block, 0, BlockStatus::Deleted);
                } else if let Some(targets) = block_command.targets.get(number) {
                    for target in &targets.datanodes {
                        let uuid = target.id.datanode_uuid.clone();
                        if let Some(node) = self.nodes.iter_mut().find(|node| node.id() == uuid) {
                            node.receive(&block, block.num_bytes());
                        }
                    }
                }
            }
            return block_command.blocks.len();
        }
        let mut rebuilt = 0;
        for order in command.blk_ec_reconstruction_cmd.iter().flat_map(|c| &c.block_ec_reconstructioninfo) {
            self.rebuild(order);
            rebuilt += 1;
        }
        if rebuilt > 0 {
            return rebuilt;
        }
        if command.cmd_type == Type::BlockRecoveryCommand as i32
            && let Some(recovery) = &command.recovery_cmd
        {
            for block in &recovery.blocks {
                self.recover(at, block);
            }
            return recovery.blocks.len();
        }
        0
    }

    /// The recovery ends with what the DataNodes have of the block, the longest of them; of a group the first cell has all that there is. All that
    /// have it take part: copies that come later would be a matter of chance.
    fn recover(&mut self, at: usize, block: &hadoop_proto::hdfs::RecoveringBlockProto) {
        let (b, cut) = (block.block.b.clone(), block.truncate_block.as_ref());
        let striped = (b.block_id as i64) < 0;
        let mut held: Vec<(usize, u64, u64)> = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            for replica in &node.replicas[0] {
                let index = (replica.block_id as u64).wrapping_sub(b.block_id);
                if index == 0 || striped && index < 16 {
                    held.push((number, index, replica.length));
                }
            }
        }
        if held.is_empty() {
            held.push((at, 0, 0));
        }
        let longest = held.iter().filter(|(_, index, _)| *index == 0).map(|(.., length)| *length).max();
        let length = cut.map_or(longest.unwrap_or(0), |cut| cut.num_bytes());
        let places = if striped {
            let none = || "null".to_owned();
            let nowhere =
                DatanodeIdProto { ip_addr: none(), host_name: none(), datanode_uuid: none(), ..Default::default() };
            let units = block.ec_policy.as_ref().and_then(stripe_of).map_or(3, |stripe| stripe.units());
            let mut places = vec![(nowhere, String::new()); units as usize];
            for (number, index, _) in &held {
                places[*index as usize] = self.nodes[*number].place();
            }
            places
        } else {
            held.iter().map(|(number, ..)| self.nodes[*number].place()).collect()
        };
        let _ = self.nodes[at].commit_synchronization_of(&b, block.new_gen_stamp, length, places);
        let id = cut.map_or(b.block_id, |cut| cut.block_id);
        for (number, index, _) in held {
            let (generation_stamp, num_bytes) = (block.new_gen_stamp, Some(length));
            let new = ExtendedBlockProto { block_id: id + index, generation_stamp, num_bytes, ..b.clone() };
            self.nodes[number].receive(&new, length);
        }
    }

    /// Internal blocks of a group that are not there come to the targets in their order.
    fn rebuild(&mut self, order: &BlockEcReconstructionInfoProto) {
        let Some(stripe) = stripe_of(&order.ec_policy) else { return };
        let (group, left_out) = (&order.block, order.exclude_reconstructed_indices.clone().unwrap_or_default());
        let length = |index| stripe.unit_length(group.num_bytes(), index);
        let missing = (0..stripe.units()).filter(|index| {
            !order.live_block_indices.contains(index) && !left_out.contains(index) && length(*index) > 0
        });
        for (index, target) in missing.zip(&order.target_dn_infos.datanodes) {
            let id = group.block_id + u64::from(index);
            let part = ExtendedBlockProto { block_id: id, num_bytes: Some(length(index)), ..group.clone() };
            if let Some(node) = self.nodes.iter_mut().find(|node| node.id() == target.id.datanode_uuid) {
                node.receive(&part, length(index));
            }
        }
    }

    /// A block has a newer stamp wherever it is written to: everywhere, but of a group each place has its own part.
    pub(super) fn receive_everywhere(&mut self, block: &ExtendedBlockProto, length: u64) {
        let striped = (block.block_id as i64) < 0;
        for node in &mut self.nodes {
            let parts: Vec<u64> = if striped {
                let ids = node.replicas[0].iter().map(|replica| replica.block_id as u64);
                ids.filter(|id| id.wrapping_sub(block.block_id) < 16).collect()
            } else {
                vec![block.block_id]
            };
            for block_id in parts {
                node.receive(&ExtendedBlockProto { block_id, ..block.clone() }, length);
            }
        }
    }

    /// A block goes to the places of the answer. Of a striped group cell 0 has all the bytes, parity cells as many.
    pub(super) fn receive_placed(&mut self, answer: &DynamicMessage, length: u64) {
        let bytes = prost::Message::encode_to_vec(answer);
        let answer: AddBlockResponseProto = prost::Message::decode(bytes.as_slice()).expect("the same bytes");
        let block = answer.block;
        let indices = block.block_indices().to_vec();
        for (at, location) in block.locs.iter().enumerate() {
            let index = indices.get(at).copied().unwrap_or(0);
            // 2 and 3 data units are the smallest here: what is beyond is parity or empty
            if index != 0 && index < 3 {
                continue;
            }
            let internal = ExtendedBlockProto { block_id: block.b.block_id + u64::from(index), ..block.b.clone() };
            if let Some(node) = self.nodes.iter_mut().find(|node| node.id() == location.id.datanode_uuid) {
                node.receive(&internal, length);
            }
        }
    }

    /// The other program goes on with the directory.
    pub(super) fn hand_over(&mut self, kind: Kind) {
        self.fixture.stop();
        (self.fixture.kind, self.is_java) = (kind, kind == Kind::Java);
        self.fixture.launch();
        self.join_again();
    }

    pub(super) fn save(&mut self) {
        for (name, request) in SAVE {
            let body = encode(name, request, None).1;
            self.call("hdfs", name, &body).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }

    pub(super) fn join_again(&mut self) {
        self.clients.clear();
        self.lives = self.lives.wrapping_add(1);
        let port = self.fixture.port();
        for node in &mut self.nodes {
            node.reconnect(port);
            node.join();
        }
        // blocks that nobody has any more keep it in safe mode
        for _ in 0..30 {
            let safe_mode = self.fixture.namenode().jmx("NameNodeInfo", "Safemode");
            if safe_mode.is_some_and(|text| text == "") {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let body = encode("setSafeMode", "action: SAFEMODE_FORCE_EXIT", None).1;
        self.call("hdfs", "setSafeMode", &body).unwrap_or_else(|e| panic!("setSafeMode: {e}"));
    }
}
