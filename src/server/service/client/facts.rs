//! Facts about the server that need no path: defaults, totals, policies, role.

use super::super::convert::kinds;
use super::super::{Answer, EMPTY, ha, message, superuser, unsupported};
use super::Request;
use hadoop_proto::hdfs::{
    FsServerDefaultsProto, GetCurrentEditLogTxidResponseProto, GetFsEcBlockGroupStatsResponseProto,
    GetFsReplicatedBlockStatsResponseProto, GetFsStatsResponseProto, GetServerDefaultsResponseProto,
    GetStoragePoliciesResponseProto, HaServiceStateResponseProto,
};
use ops::read::defaults::get_server_defaults;
use ops::read::statistics::{ReplicatedBlockStats, get_block_group_stats, get_fs_stats, get_replicated_block_stats};
use ops::write::storage_policy::get_storage_policies;

pub(super) fn server_defaults(request: &Request<'_>) -> Answer {
    let s = request.read(|view| Ok(get_server_defaults(view)))?;
    let server_defaults = FsServerDefaultsProto {
        block_size: s.block_size,
        bytes_per_checksum: s.bytes_per_checksum,
        write_packet_size: s.write_packet_size,
        replication: s.replication.into(),
        file_buffer_size: s.file_buffer_size,
        encrypt_data_transfer: Some(s.encrypt_data_transfer),
        trash_interval: Some(s.trash_interval),
        checksum_type: Some(s.checksum_type.into()),
        key_provider_uri: Some(s.key_provider.as_deref().unwrap_or("").to_owned()),
        policy_id: Some(s.storage_policy.into()),
        snapshot_trash_root_enabled: Some(s.snapshot_trash_root),
    };
    message(&GetServerDefaultsResponseProto { server_defaults })
}

pub(super) fn storage_policies(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    message(&GetStoragePoliciesResponseProto { policies: get_storage_policies().iter().map(kinds::policy).collect() })
}

pub(super) fn fs_stats(request: &Request<'_>) -> Answer {
    let stats = request.read(|view| Ok(get_fs_stats(view)))?;
    message(&GetFsStatsResponseProto {
        capacity: stats.capacity,
        used: stats.used,
        remaining: stats.remaining,
        under_replicated: stats.low_redundancy,
        corrupt_blocks: stats.corrupt_blocks,
        missing_blocks: stats.missing_blocks,
        missing_repl_one_blocks: Some(stats.missing_single),
        blocks_in_future: Some(stats.blocks_in_future),
        pending_deletion_blocks: Some(stats.pending_deletions),
    })
}

pub(super) fn replicated_stats(request: &Request<'_>) -> Answer {
    message(&replicated(&request.read(|view| Ok(get_replicated_block_stats(view)))?))
}

fn replicated(stats: &ReplicatedBlockStats) -> GetFsReplicatedBlockStatsResponseProto {
    GetFsReplicatedBlockStatsResponseProto {
        low_redundancy: stats.low_redundancy.saturating_sub(stats.missing),
        corrupt_blocks: stats.corrupt,
        missing_blocks: stats.missing,
        missing_repl_one_blocks: stats.missing_single,
        blocks_in_future: stats.bytes_in_future,
        pending_deletion_blocks: stats.pending_deletions,
        // Quirk: two_figures_of_replicated_blocks_are_exchanged: on the wire each stands where the other belongs
        highest_prio_low_redundancy_blocks: Some(stats.badly_distributed),
        badly_distributed_blocks: Some(stats.highest_priority),
    }
}

pub(super) fn striped_stats(request: &Request<'_>) -> Answer {
    let stats = request.read(|view| Ok(get_block_group_stats(view)))?;
    message(&GetFsEcBlockGroupStatsResponseProto {
        low_redundancy: stats.low_redundancy,
        corrupt_blocks: stats.corrupt,
        missing_blocks: stats.missing,
        blocks_in_future: stats.bytes_in_future,
        pending_deletion_blocks: stats.pending_deletions,
        highest_prio_low_redundancy_blocks: Some(stats.highest_priority),
        badly_distributed_blocks: Some(stats.badly_distributed),
    })
}

pub(super) fn ha_state(request: &Request<'_>) -> Answer {
    message(&HaServiceStateResponseProto { state: ha::state(request.shared)? as i32 })
}

/// No key where data transfer is not encrypted.
pub(super) fn data_encryption_key(request: &Request<'_>) -> Answer {
    if request.read(|view| Ok(view.settings.encrypt_data_transfer))? {
        return Err(unsupported("getDataEncryptionKey"));
    }
    Ok(EMPTY)
}

pub(super) fn current_txid(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    superuser(request.shared, request.caller, "getCurrentEditLogTxid")?;
    message(&GetCurrentEditLogTxidResponseProto { txid: request.shared.engine.journal().last_assigned().0 as i64 })
}

/// Answered by the active alone: its answer carries the last transaction where replies do.
pub(super) fn msync(request: &Request<'_>) -> Answer {
    request.read(|_| Ok(()))?;
    Ok(EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_figures_of_replicated_blocks_are_exchanged() {
        let stats = ReplicatedBlockStats {
            low_redundancy: 3,
            missing: 1,
            highest_priority: 7,
            badly_distributed: 9,
            ..ReplicatedBlockStats::default()
        };
        let message = replicated(&stats);
        assert_eq!((message.low_redundancy, message.missing_blocks), (2, 1), "missing ones are told apart");
        assert_eq!(message.highest_prio_low_redundancy_blocks(), 9);
        assert_eq!(message.badly_distributed_blocks(), 7);
    }
}
