//! Quotas and storage policies.

use super::super::convert::kinds;
use super::super::{Answer, EMPTY, Writing, decode, message};
use super::Request;
use hadoop_proto::hdfs::{
    GetStoragePolicyRequestProto, GetStoragePolicyResponseProto, SatisfyStoragePolicyRequestProto,
    SetQuotaRequestProto, SetStoragePolicyRequestProto, UnsetStoragePolicyRequestProto,
};
use ops::write::quota::{RESET, SetQuota, UNCHANGED};
use ops::write::storage_policy::{SatisfyStoragePolicy, SetStoragePolicy, get_storage_policy};

/// What a large directory uses is counted in slices before.
pub(super) async fn set_quota(request: &Request<'_>) -> Answer {
    let asked: SetQuotaRequestProto = decode(request.body.clone())?;
    let kind = asked.storage_type.is_some().then(|| kinds::kind_from_wire(asked.storage_type()));
    let operation = SetQuota {
        path: asked.path.into_bytes(),
        names: asked.namespace_quota as i64,
        space: asked.storagespace_quota as i64,
        kind,
    };
    let engine = &request.shared.engine;
    engine.pass(request.operation)?;
    let top = engine.view("setQuota", request.caller, |view| operation.counts(view));
    let counted = match top {
        Some(top) => Some(engine.count_use(top).await),
        None => None,
    };
    let decided = set_counted_quota(request, operation)?;
    drop(counted);
    engine.fence(decided).await
}

fn set_counted_quota(request: &Request<'_>, operation: SetQuota) -> Writing {
    request.write_as(quota_title(operation.names, operation.space), operation, |_| Ok(EMPTY))
}

/// What Hadoop calls this setting of a quota (`FSNamesystem.getQuotaCommand`).
pub(in super::super) fn quota_title(names: i64, space: i64) -> &'static str {
    match (names, space) {
        (RESET, UNCHANGED) => "clearQuota",
        (UNCHANGED, RESET) => "clearSpaceQuota",
        (_, UNCHANGED) => "setQuota",
        _ => "setSpaceQuota",
    }
}

pub(super) fn set_storage_policy(request: &Request<'_>) -> Writing {
    let asked: SetStoragePolicyRequestProto = decode(request.body.clone())?;
    let operation = SetStoragePolicy { path: asked.src.into_bytes(), policy: Some(asked.policy_name.into()) };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn unset_storage_policy(request: &Request<'_>) -> Writing {
    let asked: UnsetStoragePolicyRequestProto = decode(request.body.clone())?;
    request.write(SetStoragePolicy { path: asked.src.into_bytes(), policy: None }, |_| Ok(EMPTY))
}

pub(super) fn satisfy_storage_policy(request: &Request<'_>) -> Writing {
    let asked: SatisfyStoragePolicyRequestProto = decode(request.body.clone())?;
    request.write(SatisfyStoragePolicy { path: asked.src.into_bytes() }, |()| Ok(EMPTY))
}

pub(super) fn storage_policy(request: &Request<'_>) -> Answer {
    let asked: GetStoragePolicyRequestProto = decode(request.body.clone())?;
    let policy = request.read(|v| get_storage_policy(v, asked.path.as_bytes()))?;
    message(&GetStoragePolicyResponseProto { storage_policy: kinds::policy(policy) })
}
