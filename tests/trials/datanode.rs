//! A scripted DataNode: it says what the test tells it to, holds no data, and keeps the orders it was given.
use std::net::SocketAddr;

use hadoop_proto::Message;
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::*;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::{ReplicaState, ReportedReplica, pieces, put_replica};

use super::client::{Answer, Client};

/// The protocol of DataNodes, as the request header names it.
pub const DATANODE_PROTOCOL: &str = "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol";
/// Layout version of 3.x DataNodes.
const DATANODE_LAYOUT: i32 = -57;
const CAPACITY_BYTES: u64 = 100 << 30;

/// One simulated DataNode.
pub struct DataNode {
    client: Client,
    pub registration: DatanodeRegistrationProto,
    pub storages: Vec<DatanodeStorageProto>,
    pub pool: String,
    /// Orders of all heartbeats, in the order they came; tests take them out.
    pub commands: Vec<DatanodeCommandProto>,
    /// What a full report says, per storage.
    pub replicas: Vec<Vec<ReportedReplica>>,
    lease: u64,
    reports: i64,
}

impl DataNode {
    /// Node `number` (1 to 99) with one DISK, not yet registered.
    pub fn new(port: u16, number: u32) -> Self {
        Self::with_storages(port, number, &[StorageTypeProto::Disk])
    }

    pub fn with_storages(port: u16, number: u32, types: &[StorageTypeProto]) -> Self {
        Self::over(Client::speak(port, DATANODE_PROTOCOL, "hdfs"), number, types)
    }

    /// As `new`, for a NameNode at an address of this machine, which is the DataNode's own then.
    pub fn at(namenode: SocketAddr, number: u32) -> Self {
        let client = Client::speak_to(namenode, DATANODE_PROTOCOL, "hdfs");
        let mut node = Self::over(client, number, &[StorageTypeProto::Disk]);
        let id = &mut node.registration.datanode_id;
        (id.ip_addr, id.host_name) = (namenode.ip().to_string(), namenode.ip().to_string());
        node
    }

    fn over(client: Client, number: u32, types: &[StorageTypeProto]) -> Self {
        let info = namespace_info(&client);
        let storage = |(i, kind): (usize, &StorageTypeProto)| DatanodeStorageProto {
            storage_uuid: format!("DS-{number}-{i}"),
            state: None,
            storage_type: Some((*kind).into()),
        };
        let registration = DatanodeRegistrationProto {
            datanode_id: DatanodeIdProto {
                ip_addr: "127.0.0.1".into(),
                host_name: "localhost".into(),
                datanode_uuid: format!("dn-{number}"),
                xfer_port: 20_000 + number,
                info_port: 21_000 + number,
                ipc_port: 22_000 + number,
                info_secure_port: None,
            },
            storage_info: StorageInfoProto { layout_version: DATANODE_LAYOUT as u32, ..info.storage_info },
            keys: ExportedBlockKeysProto::default(),
            software_version: "3.5.0".into(),
        };
        Self {
            client,
            registration,
            storages: types.iter().enumerate().map(storage).collect(),
            pool: info.block_pool_id,
            commands: Vec::new(),
            replicas: vec![Vec::new(); types.len()],
            lease: 0,
            reports: 0,
        }
    }

    /// Registered, seen by a heartbeat, and with an empty report: ready to be chosen.
    pub fn start(port: u16, number: u32) -> Self {
        let mut node = Self::new(port, number);
        node.join();
        node
    }

    /// Registers, sends a heartbeat and a full report.
    pub fn join(&mut self) {
        self.register().unwrap_or_else(|e| panic!("registerDatanode: {e}"));
        self.heartbeat().unwrap_or_else(|e| panic!("sendHeartbeat: {e}"));
        self.report().unwrap_or_else(|e| panic!("blockReport: {e}"));
    }

    /// A new connection after the NameNode was started again; what it registered as stays.
    pub fn reconnect(&mut self, port: u16) {
        self.client = Client::speak(port, DATANODE_PROTOCOL, "hdfs");
    }

    pub fn id(&self) -> &str {
        &self.registration.datanode_id.datanode_uuid
    }

    pub fn version(&self) -> NamespaceInfoProto {
        namespace_info(&self.client)
    }

    pub fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> Answer<R> {
        self.client.call(method, request)
    }

    pub fn register(&mut self) -> Answer<DatanodeRegistrationProto> {
        let request = RegisterDatanodeRequestProto { registration: self.registration.clone() };
        Ok(self.call::<RegisterDatanodeResponseProto>("registerDatanode", &request)?.registration)
    }

    /// Answers the reply and keeps its orders.
    pub fn heartbeat(&mut self) -> Answer<HeartbeatResponseProto> {
        let report = |storage: &DatanodeStorageProto| StorageReportProto {
            storage_uuid: storage.storage_uuid.clone(),
            failed: Some(false),
            capacity: Some(CAPACITY_BYTES),
            dfs_used: Some(0),
            remaining: Some(CAPACITY_BYTES),
            block_pool_used: Some(0),
            storage: Some(storage.clone()),
            non_dfs_used: Some(0),
            mount: None,
        };
        let request = HeartbeatRequestProto {
            registration: self.registration.clone(),
            reports: self.storages.iter().map(report).collect(),
            xmits_in_progress: Some(0),
            xceiver_count: Some(1),
            failed_volumes: Some(0),
            cache_capacity: Some(0),
            cache_used: Some(0),
            request_full_block_report_lease: Some(true),
            ..Default::default()
        };
        let answer: HeartbeatResponseProto = self.call("sendHeartbeat", &request)?;
        self.lease = answer.full_block_report_lease_id();
        self.commands.extend(answer.cmds.iter().cloned());
        Ok(answer)
    }

    /// A full report of all storages in one call, as packed buffers.
    pub fn report(&mut self) -> Answer<BlockReportResponseProto> {
        self.reports += 1;
        let storage_report = |(storage, replicas): (&DatanodeStorageProto, &Vec<ReportedReplica>)| {
            let mut buffer = Vec::new();
            replicas.iter().for_each(|replica| put_replica(&mut buffer, replica));
            StorageBlockReportProto {
                storage: storage.clone(),
                blocks: Vec::new(),
                number_of_blocks: Some(replicas.len() as u64),
                blocks_buffers: pieces(&buffer).map(|piece| piece.to_vec().into()).collect(),
            }
        };
        let request = BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            reports: self.storages.iter().zip(&self.replicas).map(storage_report).collect(),
            context: Some(BlockReportContextProto {
                total_rpcs: 1,
                cur_rpc: 0,
                id: self.reports,
                lease_id: Some(self.lease),
            }),
        };
        self.call("blockReport", &request)
    }

    /// An incremental report of one replica on the first storage.
    pub fn notify(&self, block: &ExtendedBlockProto, bytes: u64, status: BlockStatus) -> Answer<()> {
        let block = BlockProto { block_id: block.block_id, gen_stamp: block.generation_stamp, num_bytes: Some(bytes) };
        let request = BlockReceivedAndDeletedRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            blocks: vec![StorageReceivedDeletedBlocksProto {
                storage_uuid: self.storages[0].storage_uuid.clone(),
                blocks: vec![ReceivedDeletedBlockInfoProto { block, status: status.into(), delete_hint: None }],
                storage: Some(self.storages[0].clone()),
            }],
        };
        self.call::<BlockReceivedAndDeletedResponseProto>("blockReceivedAndDeleted", &request).map(drop)
    }

    /// The writer has finished a block here: told at once, and kept for full reports.
    pub fn receive(&mut self, block: &ExtendedBlockProto, bytes: u64) {
        self.forget(block.block_id);
        self.replicas[0].push(ReportedReplica {
            block_id: block.block_id as i64,
            length: bytes,
            generation_stamp: block.generation_stamp as i64,
            state: ReplicaState::Finalized,
        });
        self.notify(block, bytes, BlockStatus::Received).unwrap_or_else(|e| panic!("blockReceivedAndDeleted: {e}"));
    }

    /// Full reports say no more of it.
    pub fn forget(&mut self, block: u64) {
        self.replicas.iter_mut().for_each(|replicas| replicas.retain(|r| r.block_id as u64 != block));
    }

    /// The end of a block recovery, as its primary DataNode reports it.
    pub fn commit_synchronization(&self, block: &ExtendedBlockProto, stamp: u64, bytes: u64) -> Answer<()> {
        self.commit_synchronization_of(block, stamp, bytes, vec![self.place()])
    }

    /// Id and volume, as the end of a recovery names them.
    pub fn place(&self) -> (DatanodeIdProto, String) {
        (self.registration.datanode_id.clone(), self.storages[0].storage_uuid.clone())
    }

    /// The same with the places of the new replicas: of a group one for each internal block.
    pub fn commit_synchronization_of(
        &self,
        block: &ExtendedBlockProto,
        stamp: u64,
        bytes: u64,
        places: Vec<(DatanodeIdProto, String)>,
    ) -> Answer<()> {
        let (new_taragets, new_target_storages) = places.into_iter().unzip();
        let request = CommitBlockSynchronizationRequestProto {
            block: block.clone(),
            new_gen_stamp: stamp,
            new_length: bytes,
            close_file: true,
            delete_block: false,
            new_taragets,
            new_target_storages,
        };
        self.call::<CommitBlockSynchronizationResponseProto>("commitBlockSynchronization", &request).map(drop)
    }

    /// Sends heartbeats until an order that `wanted` picks has come, at most 20 s; takes it out.
    pub fn wait_for<T>(&mut self, what: &str, wanted: impl Fn(&DatanodeCommandProto) -> Option<T>) -> T {
        for _ in 0..200 {
            if let Some(at) = self.commands.iter().position(|command| wanted(command).is_some()) {
                return wanted(&self.commands.remove(at)).expect("just seen");
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            self.heartbeat().unwrap_or_else(|e| panic!("sendHeartbeat: {e}"));
        }
        panic!("{}: no order to {what} within 20 s; these came: {:?}", self.id(), self.commands);
    }

    /// The next order to delete block `id`.
    pub fn wait_for_invalidation(&mut self, id: u64) {
        let action = block_command_proto::Action::Invalidate as i32;
        self.wait_for("delete a block", |command| {
            let command = command.blk_cmd.as_ref()?;
            (command.action == action && command.blocks.iter().any(|b| b.block_id == id)).then_some(())
        });
    }
}

fn namespace_info(client: &Client) -> NamespaceInfoProto {
    let answer: Answer<VersionResponseProto> = client.call("versionRequest", &VersionRequestProto {});
    answer.unwrap_or_else(|e| panic!("versionRequest: {e}")).info
}
