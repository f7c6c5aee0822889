//! Totals of subtrees with their quotas.

use super::kinds::kind_to_wire;
use hadoop_proto::hdfs::{ContentSummaryProto, QuotaUsageProto, StorageTypeQuotaInfoProto, StorageTypeQuotaInfosProto};
use ops::read::summary::{ContentSummary, QuotaUsage};
use vocab::StorageKind;
use vocab::quota::{Quota, Usage};

/// A limit for the wire; none is -1.
fn limit(limit: Option<u64>) -> u64 {
    limit.unwrap_or(u64::MAX)
}

/// Limits and use by kind of storage, where there are any.
fn by_kind(quota: &Quota, usage: &Usage) -> Option<StorageTypeQuotaInfosProto> {
    let kinds = || StorageKind::ALL.into_iter().filter(|k| k.supports_quota());
    if !kinds().any(|k| quota.by_kind[k as usize].is_some() || usage.by_kind[k as usize] > 0) {
        return None;
    }
    let info = |k: StorageKind| StorageTypeQuotaInfoProto {
        r#type: Some(kind_to_wire(k) as i32),
        quota: limit(quota.by_kind[k as usize]),
        consumed: usage.by_kind[k as usize] as u64,
    };
    Some(StorageTypeQuotaInfosProto { type_quota_info: kinds().map(info).collect() })
}

/// `ContentSummaryProto`.
pub fn content_summary(summary: &ContentSummary) -> ContentSummaryProto {
    let (totals, quota) = (&summary.totals, &summary.quota);
    ContentSummaryProto {
        length: totals.length,
        file_count: totals.files,
        directory_count: totals.directories,
        quota: limit(quota.namespace),
        space_consumed: totals.usage.space as u64,
        space_quota: limit(quota.space),
        type_quota_infos: by_kind(quota, &totals.usage),
        snapshot_length: Some(summary.past.length),
        snapshot_file_count: Some(summary.past.files),
        snapshot_directory_count: Some(summary.past.directories),
        snapshot_space_consumed: Some(summary.past.usage.space as u64),
        erasure_coding_policy: Some(summary.erasure_coding_policy.to_string()),
    }
}

/// `QuotaUsageProto`.
pub fn quota_usage(usage: &QuotaUsage) -> QuotaUsageProto {
    QuotaUsageProto {
        file_and_directory_count: usage.usage.namespace as u64,
        quota: limit(usage.quota.namespace),
        space_consumed: usage.usage.space as u64,
        space_quota: limit(usage.quota.space),
        type_quota_infos: by_kind(&usage.quota, &usage.usage),
    }
}
