//! Purpose: `ClientNamenodeProtocol`: one function per method, by theme.
//! Called by: the port's service.
//! Calls: engine, ops, the conversions of this service.
//! Never: decides an operation.
//! Invariants: every method of the protocol ends in a function here or answers as unsupported.

pub(super) mod admin;
mod blocks;
mod facts;
mod namespace;
mod read;

use super::{Answer, Shared};
use bytes::Bytes;
use observe::RemoteException;
use ops::{Operation, View, Write};
use vocab::{Caller, Refusal};

/// A call on its way to a handler.
struct Request<'a> {
    shared: &'a Shared,
    operation: Operation,
    caller: &'a Caller,
    body: Bytes,
}

/// Serves one call of the client protocol.
pub(super) async fn serve(shared: &Shared, operation: Operation, caller: &Caller, body: Bytes) -> Answer {
    let request = Request { shared, operation, caller, body };
    match operation {
        Operation::GetFileInfo => read::file_info(&request),
        Operation::GetFileLinkInfo => read::file_link_info(&request),
        Operation::GetLocatedFileInfo => read::located_file_info(&request),
        Operation::GetListing => read::listing(&request),
        Operation::IsFileClosed => read::is_file_closed(&request),
        Operation::GetPreferredBlockSize => read::preferred_block_size(&request),
        Operation::CheckAccess => read::check_access(&request),
        Operation::GetLinkTarget => read::link_target(&request),
        Operation::Mkdirs => namespace::mkdirs(&request).await,
        Operation::Create => namespace::create(&request).await,
        Operation::Delete => namespace::delete(&request).await,
        Operation::Rename => namespace::rename(&request).await,
        Operation::Rename2 => namespace::rename2(&request).await,
        Operation::AddBlock => blocks::add_block(&request).await,
        Operation::Complete => blocks::complete(&request).await,
        Operation::AbandonBlock => blocks::abandon_block(&request).await,
        Operation::Fsync => blocks::fsync(&request).await,
        Operation::RenewLease => blocks::renew_lease(&request).await,
        Operation::ReportBadBlocks => blocks::report_bad_blocks(&request),
        Operation::GetServerDefaults => facts::server_defaults(&request),
        Operation::GetStoragePolicies => facts::storage_policies(&request),
        Operation::GetFsStats => facts::fs_stats(&request),
        Operation::GetFsReplicatedBlockStats => facts::replicated_stats(&request),
        Operation::GetFsEcBlockGroupStats => facts::striped_stats(&request),
        Operation::GetHaServiceState => facts::ha_state(&request),
        Operation::GetDataEncryptionKey => facts::data_encryption_key(&request),
        Operation::GetDelegationToken => facts::delegation_token(&request),
        Operation::GetCurrentEditLogTxid => facts::current_txid(&request),
        Operation::RollEdits => admin::roll_edits(&request).await,
        Operation::SaveNamespace => admin::save_namespace(&request).await,
        Operation::SetBalancerBandwidth => admin::balancer_bandwidth(&request),
        Operation::UpgradeStatus => admin::upgrade_status(&request),
        Operation::RollingUpgrade => admin::rolling_upgrade(&request),
        Operation::GetSlowDatanodeReport => admin::slow_datanodes(&request),
        _ => Err(super::unsupported(operation.row().method)),
    }
}

impl Request<'_> {
    /// Reads under a short hold, if the role lets the operation pass.
    fn read<R>(&self, f: impl FnOnce(&View<'_>) -> Result<R, Refusal>) -> Result<R, RemoteException> {
        self.shared.engine.pass(self.operation)?;
        Ok(self.shared.engine.view(self.operation.row().method, self.caller, f)?)
    }

    /// Runs an operation that may write, and waits at the fence.
    async fn write<W: Write>(&self, operation: W) -> Result<W::Reply, RemoteException> {
        debug_assert_eq!(W::OPERATION, self.operation);
        Ok(self.shared.engine.write(&operation, self.caller).await?)
    }
}

/// A response whose field 1 is a boolean.
fn boolean(value: bool) -> Answer {
    Ok(Bytes::from_static(if value { &[8, 1] } else { &[8, 0] }))
}
