//! `NamenodeProtocol`: what balancers, checkpointers and other name nodes ask.

use super::convert::datanode::storage_info;
use super::table::Namenode;
use super::{Answer, EMPTY, Shared, message, superuser};
use bytes::Bytes;
use engine::HaState;
use hadoop_proto::hdfs::nnha_status_heartbeat_proto::State;
use hadoop_proto::hdfs::{
    BlockKeyProto, CheckpointSignatureProto, ExportedBlockKeysProto, NamespaceInfoProto, VersionResponseProto,
};
use hadoop_proto::namenode::{
    GetBlockKeysResponseProto, GetMostRecentCheckpointTxIdResponseProto, GetTransactionIdResponseProto,
    IsRollingUpgradeResponseProto, IsUpgradeFinalizedResponseProto, RollEditLogResponseProto,
};
use vocab::Caller;

pub(super) async fn serve(shared: &Shared, method: Namenode, caller: &Caller) -> Answer {
    match method {
        Namenode::Version => message(&VersionResponseProto { info: namespace_info(shared) }),
        Namenode::ErrorReport => Ok(EMPTY),
        Namenode::GetBlockKeys => message(&GetBlockKeysResponseProto { keys: Some(no_keys()) }),
        Namenode::GetTransactionId => {
            superuser(shared, caller, "getTransactionID")?;
            message(&GetTransactionIdResponseProto { tx_id: shared.engine.journal().last().0 })
        }
        Namenode::GetMostRecentCheckpointTxId => {
            superuser(shared, caller, "getMostRecentCheckpointTxId")?;
            message(&GetMostRecentCheckpointTxIdResponseProto { tx_id: shared.newest_checkpoint().0 })
        }
        Namenode::RollEditLog => {
            let segment = super::client::admin::roll(shared, caller).await?;
            let signature = CheckpointSignatureProto {
                block_pool_id: shared.identity.block_pool.to_string(),
                most_recent_checkpoint_tx_id: shared.newest_checkpoint().0,
                cur_segment_tx_id: segment.0,
                storage_info: storage_info(&shared.identity.storage),
            };
            message(&RollEditLogResponseProto { signature })
        }
        Namenode::IsUpgradeFinalized => {
            superuser(shared, caller, "isUpgradeFinalized")?;
            message(&IsUpgradeFinalizedResponseProto { is_upgrade_finalized: shared.identity.upgrade_finalized() })
        }
        Namenode::IsRollingUpgrade => {
            superuser(shared, caller, "isRollingUpgrade")?;
            let running =
                shared.engine.view("isRollingUpgrade", caller, |v| v.state.sequences.rolling_upgrade_start.is_some());
            message(&IsRollingUpgradeResponseProto { is_rolling_upgrade: running })
        }
    }
}

/// Answer to `versionRequest` of both server protocols.
pub(super) fn namespace_info(shared: &Shared) -> NamespaceInfoProto {
    let identity = &shared.identity;
    NamespaceInfoProto {
        build_version: identity.revision.to_string(),
        unused: 0,
        block_pool_id: identity.block_pool.to_string(),
        storage_info: storage_info(&identity.storage),
        software_version: identity.software_version.to_string(),
        // block reports may come as packed buffers
        capabilities: Some(1),
        state: Some(state(shared) as i32),
    }
}

/// The role as DataNodes are told.
pub(super) fn state(shared: &Shared) -> State {
    match shared.engine.gate().state() {
        HaState::Active => State::Active,
        _ => State::Standby,
    }
}

/// The keys of a name node without block tokens.
pub(super) fn no_keys() -> ExportedBlockKeysProto {
    ExportedBlockKeysProto {
        is_block_token_enabled: false,
        key_update_interval: 0,
        token_life_time: 0,
        current_key: BlockKeyProto { key_id: 0, expiry_date: 0, key_bytes: Some(Bytes::new()) },
        all_keys: Vec::new(),
    }
}
