//! A scripted DataNode: registers, lives, reports what it is told to have.

use super::{DATANODE_PROTOCOL, connect};
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::*;
use hadoop_proto::hdfs::*;
use hadoop_proto::packed_blocks::pieces;
use rpc::client::{CallError, Client};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Layout version of 3.x DataNodes.
const LAYOUT: i32 = -57;
const CAPACITY_BYTES: u64 = 1 << 50;

/// What is to be reported of a volume: packed replicas, and how many.
pub struct Replicas {
    pub packed: Vec<u8>,
    pub count: u64,
}

/// One DataNode of 127.0.0.1.
#[derive(Clone)]
pub struct DataNode {
    client: Client,
    registration: DatanodeRegistrationProto,
    storages: Vec<DatanodeStorageProto>,
    pool: String,
}

impl DataNode {
    /// Registers node `number` with so many volumes, and gives its first sign of life.
    pub async fn join(address: SocketAddr, number: u32, volumes: usize) -> Result<DataNode, CallError> {
        let client = connect(address, DATANODE_PROTOCOL).await?;
        let version: VersionResponseProto = client.call("versionRequest", &VersionRequestProto {}).await?;
        let storage = |at: usize| DatanodeStorageProto {
            storage_uuid: format!("DS-{number}-{at}"),
            state: None,
            storage_type: Some(StorageTypeProto::Disk.into()),
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
            storage_info: StorageInfoProto { layout_version: LAYOUT as u32, ..version.info.storage_info },
            keys: ExportedBlockKeysProto::default(),
            software_version: "3.5.0".into(),
        };
        let pool = version.info.block_pool_id;
        let mut node = DataNode { client, registration, storages: (0..volumes).map(storage).collect(), pool };
        let request = RegisterDatanodeRequestProto { registration: node.registration.clone() };
        let answer: RegisterDatanodeResponseProto = node.client.call("registerDatanode", &request).await?;
        node.registration = answer.registration;
        node.beat(false).await?;
        Ok(node)
    }

    /// A sign of life each second until the answer is aborted.
    pub fn live(&self) -> JoinHandle<()> {
        let node = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Err(error) = node.beat(false).await {
                    eprintln!("heartbeat: {error}");
                    return;
                }
            }
        })
    }

    /// The message of a sign of life.
    pub fn heartbeat(&self, lease: bool) -> HeartbeatRequestProto {
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
        HeartbeatRequestProto {
            registration: self.registration.clone(),
            reports: self.storages.iter().map(report).collect(),
            xmits_in_progress: Some(0),
            xceiver_count: Some(1),
            failed_volumes: Some(0),
            cache_capacity: Some(0),
            cache_used: Some(0),
            request_full_block_report_lease: Some(lease),
            ..Default::default()
        }
    }

    async fn beat(&self, lease: bool) -> Result<HeartbeatResponseProto, CallError> {
        self.client.call("sendHeartbeat", &self.heartbeat(lease)).await
    }

    /// The message of a full report of volume `at`, one of a call for each volume.
    pub fn full_report(&self, at: usize, replicas: &Replicas, lease: u64, id: i64) -> BlockReportRequestProto {
        let report = StorageBlockReportProto {
            storage: self.storages[at].clone(),
            blocks: Vec::new(),
            number_of_blocks: Some(replicas.count),
            blocks_buffers: pieces(&replicas.packed).map(|piece| piece.to_vec().into()).collect(),
        };
        BlockReportRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            reports: vec![report],
            context: Some(BlockReportContextProto {
                total_rpcs: self.storages.len() as i32,
                cur_rpc: at as i32,
                id,
                lease_id: Some(lease),
            }),
        }
    }

    /// Full reports of all volumes, one after the other.
    pub async fn report(&self, volumes: &[Replicas], id: i64) -> Result<(), CallError> {
        // a lease may be refused for a while
        let lease = loop {
            let lease = self.beat(true).await?.full_block_report_lease_id();
            if lease != 0 {
                break lease;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        for (at, replicas) in volumes.iter().enumerate() {
            let request = self.full_report(at, replicas, lease, id);
            let _: BlockReportResponseProto = self.client.call("blockReport", &request).await?;
        }
        Ok(())
    }

    pub async fn call<R: hadoop_proto::Message + Default>(
        &self,
        method: &str,
        request: &impl hadoop_proto::Message,
    ) -> Result<R, CallError> {
        self.client.call(method, request).await
    }

    /// The message that a replica has come to the first volume.
    pub fn received(&self, block: BlockProto) -> BlockReceivedAndDeletedRequestProto {
        BlockReceivedAndDeletedRequestProto {
            registration: self.registration.clone(),
            block_pool_id: self.pool.clone(),
            blocks: vec![StorageReceivedDeletedBlocksProto {
                storage_uuid: self.storages[0].storage_uuid.clone(),
                blocks: vec![ReceivedDeletedBlockInfoProto {
                    block,
                    status: BlockStatus::Received.into(),
                    delete_hint: None,
                }],
                storage: Some(self.storages[0].clone()),
            }],
        }
    }
}
