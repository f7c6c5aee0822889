//! Purpose: `ClientNamenodeProtocol`: one function per method, by theme.
//! Called by: the port's service.
//! Calls: engine, ops, the conversions of this service.
//! Never: decides an operation.
//! Invariants: every method of the protocol ends in a function here or answers as unsupported.

pub(super) mod admin;
mod attributes;
mod blocks;
mod caches;
mod erasure_coding;
mod events;
mod extended;
mod facts;
mod missing;
mod namespace;
mod pipeline;
mod policy;
mod read;
mod snapshots;
mod tokens;
mod upkeep;
mod zones;

pub(super) use policy::quota_title;

use super::{Answer, Shared, Writing, audit};
use bytes::Bytes;
use observe::RemoteException;
use observe::audit::Line;
use ops::{Operation, View, Write};
use vocab::{Caller, Refusal};

/// A call on its way to a handler.
pub(super) struct Request<'a> {
    pub shared: &'a Shared,
    pub operation: Operation,
    pub caller: &'a Caller,
    pub body: &'a Bytes,
    /// What the operation leaves for the audit log.
    pub seen: audit::Slot,
}

impl<'a> Request<'a> {
    pub(super) fn new(shared: &'a Shared, operation: Operation, caller: &'a Caller, body: &'a Bytes) -> Request<'a> {
        Request { shared, operation, caller, body, seen: audit::Slot::default() }
    }

    /// Hands the answer on, and its line to the audit log.
    pub(super) fn audited(&self, answer: Answer) -> Answer {
        audit::client(self.shared, self.operation, self.caller, self.body, &answer, &self.seen);
        answer
    }

    /// The line of the answer, if there is one, for the time when the answer leaves.
    pub(super) fn line(&self, answer: &Answer) -> Option<Line> {
        audit::line(self.shared, self.operation, self.caller, self.body, answer, &self.seen)
    }
}

/// Methods that are answered without waiting; `None` for all others.
pub(super) fn at_once(request: &Request<'_>) -> Option<Answer> {
    Some(match request.operation {
        Operation::GetFileInfo => read::file_info(request),
        Operation::GetFileLinkInfo => read::file_link_info(request),
        Operation::GetLocatedFileInfo => read::located_file_info(request),
        Operation::GetListing => read::listing(request),
        Operation::GetBatchedListing => read::batched_listing(request),
        Operation::GetBlockLocations => read::block_locations(request),
        Operation::ListOpenFiles => read::open_files(request),
        Operation::GetAclStatus => extended::acl_status(request),
        Operation::GetXattrs => extended::xattrs(request),
        Operation::ListXattrs => extended::xattr_names(request),
        Operation::IsFileClosed => read::is_file_closed(request),
        Operation::GetPreferredBlockSize => read::preferred_block_size(request),
        Operation::CheckAccess => read::check_access(request),
        Operation::GetLinkTarget => read::link_target(request),
        Operation::GetAdditionalDatanode => pipeline::additional_datanode(request),
        Operation::GetStoragePolicy => policy::storage_policy(request),
        Operation::RefreshNodes => admin::refresh_nodes(request),
        Operation::ReportBadBlocks => blocks::report_bad_blocks(request),
        Operation::GetServerDefaults => facts::server_defaults(request),
        Operation::GetStoragePolicies => facts::storage_policies(request),
        Operation::GetFsStats => facts::fs_stats(request),
        Operation::GetFsReplicatedBlockStats => facts::replicated_stats(request),
        Operation::GetFsEcBlockGroupStats => facts::striped_stats(request),
        Operation::GetHaServiceState => facts::ha_state(request),
        Operation::GetDataEncryptionKey => facts::data_encryption_key(request),
        Operation::GetSnapshottableDirListing => snapshots::snapshottable(request),
        Operation::GetSnapshotListing => snapshots::listing(request),
        Operation::ListEncryptionZones => zones::encryption_zones(request),
        Operation::ListReencryptionStatus => zones::reencryption(request),
        Operation::GetEzForPath => zones::zone_of_path(request),
        Operation::GetEnclosingRoot => zones::enclosing_root(request),
        Operation::GetErasureCodingPolicy => erasure_coding::policy_of_path(request),
        Operation::GetErasureCodingPolicies => erasure_coding::policies(request),
        Operation::GetErasureCodingCodecs => erasure_coding::codecs(request),
        Operation::GetEcTopologyResultForPolicies => erasure_coding::topology_result(request),
        Operation::RestoreFailedStorage => upkeep::restore_failed_storage(request),
        Operation::GetCurrentEditLogTxid => facts::current_txid(request),
        Operation::GetDatanodeReport => admin::datanode_report(request),
        Operation::GetDatanodeStorageReport => admin::datanode_storage_report(request),
        Operation::Msync => facts::msync(request),
        Operation::SetBalancerBandwidth => admin::balancer_bandwidth(request),
        Operation::UpgradeStatus => admin::upgrade_status(request),
        Operation::GetSlowDatanodeReport => admin::slow_datanodes(request),
        _ => return None,
    })
}

/// Methods that are decided without waiting, and answered when that is durable; `None` for all others.
pub(super) fn decided(request: &Request<'_>) -> Option<Writing> {
    if request.waits_for_cleanup() { None } else { written(request) }
}

fn written(request: &Request<'_>) -> Option<Writing> {
    Some(match request.operation {
        Operation::ModifyAclEntries => extended::modify_acl(request),
        Operation::RemoveAclEntries => extended::remove_acl_entries(request),
        Operation::RemoveDefaultAcl => extended::remove_default_acl(request),
        Operation::RemoveAcl => extended::remove_acl(request),
        Operation::SetAcl => extended::set_acl(request),
        Operation::AllowSnapshot => snapshots::allow(request),
        Operation::DisallowSnapshot => snapshots::disallow(request),
        Operation::CreateSnapshot => snapshots::create(request),
        Operation::RenameSnapshot => snapshots::rename(request),
        Operation::SetXattr => extended::set_xattr(request),
        Operation::RemoveXattr => extended::remove_xattr(request),
        Operation::Mkdirs => namespace::mkdirs(request),
        Operation::Create => match zones::key_of_file(request) {
            zones::KeyOfFile::None => namespace::create(request, None),
            zones::KeyOfFile::Ready(key) => namespace::create(request, Some(key)),
            zones::KeyOfFile::Awaited(_) => return None,
        },
        Operation::Delete => return namespace::delete(request),
        Operation::Rename => namespace::rename(request),
        Operation::Rename2 => namespace::rename2(request),
        Operation::SetPermission => attributes::set_permission(request),
        Operation::SetOwner => attributes::set_owner(request),
        Operation::SetTimes => attributes::set_times(request),
        Operation::SetReplication => attributes::set_replication(request),
        Operation::Append => pipeline::append(request),
        Operation::RecoverLease => pipeline::recover_lease(request),
        Operation::UpdateBlockForPipeline => pipeline::update_block_for_pipeline(request),
        Operation::UpdatePipeline => pipeline::update_pipeline(request),
        Operation::Concat => namespace::concat(request),
        Operation::CreateSymlink => namespace::create_symlink(request),
        Operation::Truncate => pipeline::truncate(request),
        Operation::SetStoragePolicy => policy::set_storage_policy(request),
        Operation::UnsetStoragePolicy => policy::unset_storage_policy(request),
        Operation::SatisfyStoragePolicy => policy::satisfy_storage_policy(request),
        Operation::AddBlock => blocks::add_block(request),
        Operation::Complete => blocks::complete(request),
        Operation::AbandonBlock => blocks::abandon_block(request),
        Operation::Fsync => blocks::fsync(request),
        Operation::RenewLease => blocks::renew_lease(request),
        Operation::GetDelegationToken => tokens::delegation_token(request),
        Operation::RenewDelegationToken => tokens::renew(request),
        Operation::CancelDelegationToken => tokens::cancel(request),
        Operation::SetSafeMode => admin::safe_mode(request),
        Operation::AddErasureCodingPolicies => erasure_coding::add(request),
        Operation::RemoveErasureCodingPolicy => erasure_coding::remove(request),
        Operation::EnableErasureCodingPolicy => erasure_coding::enable(request),
        Operation::DisableErasureCodingPolicy => erasure_coding::disable(request),
        Operation::SetErasureCodingPolicy => erasure_coding::set(request),
        Operation::UnsetErasureCodingPolicy => erasure_coding::unset(request),
        Operation::RemoveCacheDirective => caches::remove_directive(request),
        Operation::AddCachePool => caches::add_pool(request),
        Operation::ModifyCachePool => caches::modify_pool(request),
        Operation::RemoveCachePool => caches::remove_pool(request),
        _ => return None,
    })
}

/// Methods that wait in between: between slices of long work, or for the disk.
pub(super) async fn in_time(request: &Request<'_>) -> Answer {
    if request.waits_for_cleanup() {
        while request.waits_for_cleanup() {
            request.shared.engine.cleanup_ended().await;
        }
        if let Some(answer) = at_once(request) {
            return answer;
        }
        if let Some(writing) = written(request) {
            return request.shared.engine.fence(writing?).await;
        }
    }
    match request.operation {
        Operation::GetContentSummary => read::content_summary(request).await,
        Operation::GetQuotaUsage => read::quota_usage(request).await,
        Operation::SetQuota => policy::set_quota(request).await,
        Operation::Delete => namespace::delete_when_checked(request).await,
        Operation::DeleteSnapshot => snapshots::delete(request).await,
        Operation::GetSnapshotDiffReport => snapshots::diff(request).await,
        Operation::GetSnapshotDiffReportListing => snapshots::diff_page(request).await,
        Operation::ListCachePools => caches::pools(request).await,
        Operation::ListCacheDirectives => caches::directives(request).await,
        Operation::AddCacheDirective => caches::add_directive(request).await,
        Operation::ModifyCacheDirective => caches::modify_directive(request).await,
        Operation::RollEdits => admin::roll_edits(request).await,
        Operation::SaveNamespace => admin::save_namespace(request).await,
        Operation::Create => zones::create_when_there_is_a_key(request).await,
        Operation::CreateEncryptionZone => zones::create_zone(request).await,
        Operation::ReencryptEncryptionZone => zones::reencrypt(request).await,
        Operation::MetaSave => upkeep::meta_save(request).await,
        Operation::GetEditsFromTxid => events::edits_from(request).await,
        Operation::ListCorruptFileBlocks => upkeep::corrupt_files(request).await,
        Operation::FinalizeUpgrade => upkeep::finalize_upgrade(request).await,
        Operation::RollingUpgrade => admin::rolling_upgrade(request).await,
        _ => missing::answer(request),
    }
}

impl Request<'_> {
    /// Whether the call is about something of which a snapshot is being deleted. The paths of calls are their first fields.
    fn waits_for_cleanup(&self) -> bool {
        let engine = &self.shared.engine;
        engine.has_cleanup()
            && [1, 2].into_iter().any(|field| {
                let path = audit::path(self.body, field);
                path.is_some_and(|path| engine.waits_for_cleanup(path.as_bytes()))
            })
    }

    /// Reads under a short hold, if the role lets the operation pass.
    fn read<R>(&self, f: impl FnOnce(&View<'_>) -> Result<R, Refusal>) -> Result<R, RemoteException> {
        self.shared.engine.pass(self.operation)?;
        let answer = self.shared.engine.view(self.operation.row().method, self.caller, f);
        answer.map_err(|refusal| refused(refusal, self.operation.row().title()))
    }

    /// Reads what takes long, on a thread that serves no connections.
    async fn read_aside<R: Send + 'static>(
        &self,
        f: impl FnOnce(&View<'_>) -> Result<R, Refusal> + Send + 'static,
    ) -> Result<R, RemoteException> {
        self.shared.engine.pass(self.operation)?;
        let (engine, caller, row) = (self.shared.engine.clone(), self.caller.clone(), self.operation.row());
        let read = move || engine.view_slice(row.method, &caller, |view, _| f(view));
        let answer = tokio::task::spawn_blocking(read).await;
        let answer = answer.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()));
        answer.map_err(|refusal| refused(refusal, row.title()))
    }

    /// Runs an operation that may write; `answer` makes the response.
    fn write<W: Write>(&self, operation: W, answer: impl FnOnce(W::Reply) -> Answer) -> Writing {
        self.write_as(self.operation.row().title(), operation, answer)
    }

    /// The same for an operation that goes by another name in refusals.
    fn write_as<W: Write>(&self, title: &str, operation: W, answer: impl FnOnce(W::Reply) -> Answer) -> Writing {
        let engine = &self.shared.engine;
        let written = if self.shared.audit.is_on() {
            let mut watch = audit::Watch::new(self.operation, self.body);
            let written = engine.write_witnessed(&operation, self.caller, &mut watch);
            *self.seen.lock() = watch.seen();
            written
        } else {
            engine.write(&operation, self.caller)
        };
        Ok(written.map(|written| written.map_err(|refusal| refused(refusal, title)).and_then(answer)))
    }
}

/// The exception of a refusal. Where only superusers may, it says what.
pub(super) fn refused(refusal: Refusal, title: &str) -> RemoteException {
    let superusers_only = matches!(refusal, Refusal::SuperuserRequired(_));
    let mut exception = RemoteException::from(refusal);
    if superusers_only {
        exception.message.push_str(" for operation ");
        exception.message.push_str(title);
    }
    exception
}

/// A response whose field 1 is a boolean.
fn boolean(value: bool) -> Answer {
    Ok(Bytes::from_static(if value { &[8, 1] } else { &[8, 0] }))
}

#[cfg(test)]
mod tests {
    /// The matches above are kept by hand: an operation that the table calls done must not fall through to the missing ones.
    #[test]
    fn what_the_table_calls_done_has_a_handler() {
        let source = include_str!("mod.rs");
        let done = ops::table::TABLE.iter().filter(|row| row.implemented);
        let without = done.filter(|row| !source.contains(&format!("Operation::{:?} =>", row.operation)));
        assert_eq!(without.map(|row| row.method).collect::<Vec<_>>(), [""; 0]);
    }
}
