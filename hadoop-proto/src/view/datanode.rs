//! Views of what DataNodes send at their rhythm: heartbeats and block reports.

use super::client::DatanodeId;
use super::{Elements, Encoded, Text, ViewError, numeric, view};
use crate::packed_blocks::{BlockListError, BufferReplicas, LongReplicas, ReportedReplica};
use crate::wire::WireError;
use crate::{datanode, hdfs};
use datanode::received_deleted_block_info_proto::BlockStatus;
use hdfs::datanode_storage_proto::StorageState;

numeric! {
    hdfs::StorageTypeProto: v => hdfs::StorageTypeProto::try_from(v as i32).ok();
    StorageState: v => StorageState::try_from(v as i32).ok();
    BlockStatus: v => BlockStatus::try_from(v as i32).ok();
}

view! {
    /// `StorageInfoProto`; the spelling of the namespace id is Hadoop's.
    StorageInfo<'a> of hdfs::StorageInfoProto {
        required layout_version: u32 = 1;
        required namespce_id: u32 = 2;
        required cluster_id: Text<'a> = 3;
        required c_time: u64 = 4;
    }

    /// `DatanodeRegistrationProto`; the block keys stay encoded, the NameNode knows its own.
    DatanodeRegistration<'a> of datanode::DatanodeRegistrationProto {
        required datanode_id: DatanodeId<'a> = 1;
        required storage_info: StorageInfo<'a> = 2;
        required keys: Encoded<'a, hdfs::ExportedBlockKeysProto> = 3;
        required software_version: Text<'a> = 4;
    }

    /// `DatanodeStorageProto`.
    DatanodeStorage<'a> of hdfs::DatanodeStorageProto {
        required storage_uuid: Text<'a> = 1;
        optional state: StorageState = 2;
        optional storage_type: hdfs::StorageTypeProto = 3;
    }

    /// `StorageReportProto`: sizes in bytes.
    StorageReport<'a> of hdfs::StorageReportProto {
        required storage_uuid: Text<'a> = 1;
        default(false) failed: bool = 2;
        default(0) capacity: u64 = 3;
        default(0) dfs_used: u64 = 4;
        default(0) remaining: u64 = 5;
        default(0) block_pool_used: u64 = 6;
        optional storage: DatanodeStorage<'a> = 7;
        optional non_dfs_used: u64 = 8;
        optional mount: Text<'a> = 9;
    }

    /// `VolumeFailureSummaryProto`.
    VolumeFailureSummary<'a> of datanode::VolumeFailureSummaryProto {
        repeated failed_storage_locations: Text<'a> = 1;
        required last_volume_failure_date: u64 = 2;
        required estimated_capacity_lost_total: u64 = 3;
    }

    /// `SlowPeerReportProto`: latencies in milliseconds.
    SlowPeerReport<'a> of datanode::SlowPeerReportProto {
        optional data_node_id: Text<'a> = 1;
        optional aggregate_latency: f64 = 2;
        optional median: f64 = 3;
        optional mad: f64 = 4;
        optional upper_limit_latency: f64 = 5;
    }

    /// `SlowDiskReportProto`: latencies in milliseconds.
    SlowDiskReport<'a> of datanode::SlowDiskReportProto {
        optional base_path: Text<'a> = 1;
        optional mean_metadata_op_latency: f64 = 2;
        optional mean_read_io_latency: f64 = 3;
        optional mean_write_io_latency: f64 = 4;
    }

    /// `HeartbeatRequestProto`, of heartbeats and lifelines.
    HeartbeatRequest<'a> of datanode::HeartbeatRequestProto {
        required registration: DatanodeRegistration<'a> = 1;
        repeated reports: StorageReport<'a> = 2;
        default(0) xmits_in_progress: u32 = 3;
        default(0) xceiver_count: u32 = 4;
        default(0) failed_volumes: u32 = 5;
        default(0) cache_capacity: u64 = 6;
        default(0) cache_used: u64 = 7;
        optional volume_failure_summary: VolumeFailureSummary<'a> = 8;
        default(false) request_full_block_report_lease: bool = 9;
        repeated slow_peers: SlowPeerReport<'a> = 10;
        repeated slow_disks: SlowDiskReport<'a> = 11;
    }

    /// `StorageBlockReportProto`; see [`StorageBlockReport::replicas`].
    StorageBlockReport<'a> of datanode::StorageBlockReportProto {
        required storage: DatanodeStorage<'a> = 1;
        repeated blocks: u64 = 2;
        optional number_of_blocks: u64 = 3;
        repeated blocks_buffers: &'a [u8] = 4;
    }

    /// `BlockReportContextProto`: which part of which report this is.
    BlockReportContext<'a> of datanode::BlockReportContextProto {
        required total_rpcs: i32 = 1;
        required cur_rpc: i32 = 2;
        required id: i64 = 3;
        default(0) lease_id: u64 = 4;
    }

    /// `BlockReportRequestProto`.
    BlockReportRequest<'a> of datanode::BlockReportRequestProto {
        required registration: DatanodeRegistration<'a> = 1;
        required block_pool_id: Text<'a> = 2;
        repeated reports: StorageBlockReport<'a> = 3;
        optional context: BlockReportContext<'a> = 4;
    }

    /// `BlockProto`; the numbers are signed in Java.
    Block<'a> of hdfs::BlockProto {
        required block_id: u64 = 1;
        required gen_stamp: u64 = 2;
        default(0) num_bytes: u64 = 3;
    }

    /// `ReceivedDeletedBlockInfoProto`.
    ReceivedDeletedBlockInfo<'a> of datanode::ReceivedDeletedBlockInfoProto {
        required block: Block<'a> = 1;
        optional delete_hint: Text<'a> = 2;
        required status: BlockStatus = 3;
    }

    /// `StorageReceivedDeletedBlocksProto`.
    StorageReceivedDeletedBlocks<'a> of datanode::StorageReceivedDeletedBlocksProto {
        required storage_uuid: Text<'a> = 1;
        repeated blocks: ReceivedDeletedBlockInfo<'a> = 2;
        optional storage: DatanodeStorage<'a> = 3;
    }

    /// `BlockReceivedAndDeletedRequestProto`.
    BlockReceivedAndDeletedRequest<'a> of datanode::BlockReceivedAndDeletedRequestProto {
        required registration: DatanodeRegistration<'a> = 1;
        required block_pool_id: Text<'a> = 2;
        repeated blocks: StorageReceivedDeletedBlocks<'a> = 3;
    }
}

impl<'a> StorageBlockReport<'a> {
    /// The reported replicas, decoded as they are consumed. Buffers if the report counts them, longs otherwise.
    pub fn replicas(&self) -> Replicas<'a> {
        match self.number_of_blocks {
            Some(count) => Replicas::Buffers(BufferReplicas::new(count, Pieces(self.blocks_buffers.iter()))),
            None => Replicas::Longs(LongReplicas::new(Longs(self.blocks.iter()))),
        }
    }
}

/// Iterator of [`StorageBlockReport::replicas`].
#[derive(Clone, Debug)]
pub enum Replicas<'a> {
    /// Since 2.7.
    Buffers(BufferReplicas<'a, Pieces<'a>>),
    /// Before.
    Longs(LongReplicas<Longs<'a>>),
}

impl Iterator for Replicas<'_> {
    type Item = Result<ReportedReplica, BlockListError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Replicas::Buffers(replicas) => replicas.next(),
            Replicas::Longs(replicas) => replicas.next(),
        }
    }
}

/// The buffers of a report. They lie in a message that was parsed, so that an error cannot come; it would end the list.
#[derive(Clone, Debug)]
pub struct Pieces<'a>(Elements<'a, &'a [u8]>);

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next()?.ok()
    }
}

/// The longs of a report.
#[derive(Clone, Debug)]
pub struct Longs<'a>(Elements<'a, u64>);

impl Iterator for Longs<'_> {
    type Item = Result<u64, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|long| {
            long.map_err(|e| match e {
                ViewError::Wire(e) => e,
                ViewError::MissingRequired(_) | ViewError::SplitMessage(_) => WireError::Truncated,
            })
        })
    }
}
