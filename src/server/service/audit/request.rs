//! What a line of the audit log says of a request: the name of the command, the source and the target.

use super::super::convert::caches;
use super::super::{Answer, client};
use hadoop_proto::Message;
use hadoop_proto::common::{GetDelegationTokenResponseProto, RenewDelegationTokenRequestProto, TokenProto};
use hadoop_proto::hdfs::{
    AddCachePoolRequestProto, AddErasureCodingPoliciesRequestProto, ConcatRequestProto, CreateSnapshotResponseProto,
    ListCacheDirectivesRequestProto, ModifyCacheDirectiveRequestProto, ReencryptActionProto, RollingUpgradeActionProto,
    SafeModeActionProto,
};
use hadoop_proto::wire::{Cursor, Value};
use ops::Operation;
use ops::write::caches::PoolAsked;
use security::token::{Identifier, KIND};
use std::borrow::Cow;

/// How Java names the folder of snapshots in paths.
const SNAPSHOTS: &str = ".snapshot";

/// Texts of a line.
#[derive(Default)]
pub(super) struct Named {
    pub(super) source: Option<String>,
    pub(super) target: Option<String>,
}

/// The text in a field of a request, as Java decodes it.
pub(super) fn text(body: &[u8], number: u32) -> Option<Cow<'_, str>> {
    let mut found = None;
    for field in Cursor::new(body).fields() {
        if let Ok((n, Value::Bytes(bytes))) = field
            && n == number
        {
            found = Some(bytes);
        }
    }
    found.map(String::from_utf8_lossy)
}

pub(super) fn number(body: &[u8], number: u32) -> u64 {
    let of = |field: Result<(u32, Value<'_>), _>| match field {
        Ok((n, Value::Varint(value))) if n == number => Some(value),
        _ => None,
    };
    Cursor::new(body).fields().filter_map(of).last().unwrap_or(0)
}

/// `cmd=`: the column of the table, but for commands that are named by what is asked.
pub(super) fn command(operation: Operation, body: &[u8]) -> Cow<'static, str> {
    match operation {
        Operation::SetSafeMode => SafeModeActionProto::try_from(number(body, 1) as i32)
            .map_or("safemode".into(), |action| action.as_str_name().to_lowercase().into()),
        Operation::SetQuota => client::quota_title(number(body, 2) as i64, number(body, 3) as i64).into(),
        Operation::Rename2 => {
            let options = [(number(body, 3) != 0, "OVERWRITE"), (number(body, 4) != 0, "TO_TRASH")];
            let mut set: Vec<&str> = options.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
            if set.is_empty() {
                set.push("NONE");
            }
            format!("rename (options=[{}])", set.join(", ")).into()
        }
        // with tokens to read the blocks with it is as good as opened
        Operation::GetLocatedFileInfo if number(body, 2) != 0 => "open".into(),
        Operation::RestoreFailedStorage => match text(body, 1).as_deref() {
            Some("check") => "checkRestoreFailedStorage".into(),
            Some("true") => "enableRestoreFailedStorage".into(),
            _ => "disableRestoreFailedStorage".into(),
        },
        Operation::RollingUpgrade => match RollingUpgradeActionProto::try_from(number(body, 1) as i32) {
            Ok(RollingUpgradeActionProto::Start) => "startRollingUpgrade".into(),
            Ok(RollingUpgradeActionProto::Finalize) => "finalizeRollingUpgrade".into(),
            _ => "queryRollingUpgrade".into(),
        },
        Operation::ReencryptEncryptionZone => {
            let start = number(body, 1) == ReencryptActionProto::StartReencrypt as u64;
            if start { "STARTreencryption".into() } else { "CANCELreencryption".into() }
        }
        _ => operation.row().title().into(),
    }
}

/// Whether a line names no path.
fn pathless(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::GetDatanodeReport
            | Operation::GetDatanodeStorageReport
            | Operation::GetSlowDatanodeReport
            | Operation::SetSafeMode
            | Operation::SaveNamespace
            | Operation::RollEdits
            | Operation::RestoreFailedStorage
            | Operation::RefreshNodes
            | Operation::FinalizeUpgrade
            | Operation::RollingUpgrade
            | Operation::MetaSave
            | Operation::SetBalancerBandwidth
            | Operation::ListCachePools
            | Operation::GetSnapshottableDirListing
            | Operation::ListReencryptionStatus
            | Operation::GetErasureCodingPolicies
            | Operation::GetErasureCodingCodecs
            | Operation::GetEcTopologyResultForPolicies
            | Operation::ReportBadBlocks
            | Operation::GetCurrentEditLogTxid
            | Operation::GetEditsFromTxid
    )
}

/// A snapshot as lines name it.
fn snapshot(root: &str, name: &str) -> String {
    if root.ends_with('/') { format!("{root}{SNAPSHOTS}/{name}") } else { format!("{root}/{SNAPSHOTS}/{name}") }
}

/// A snapshot or, for an empty name, the directory as it is now.
fn snapshot_or_now(root: &str, name: &str) -> String {
    if name.is_empty() { root.to_owned() } else { snapshot(root, name) }
}

/// Source and target of the line of a call.
pub(super) fn named(operation: Operation, body: &[u8], answer: &Answer) -> Named {
    let one = |field| text(body, field).map(Cow::into_owned);
    let root = || text(body, 1).unwrap_or_default().into_owned();
    let granted = answer.is_ok();
    let source = |source| Named { source, target: None };
    let both = |source, target| Named { source, target };
    match operation {
        Operation::Rename | Operation::Rename2 => both(one(1), one(2)),
        Operation::CreateSymlink => both(one(2), one(1)),
        Operation::Concat => {
            let asked = ConcatRequestProto::decode(body).unwrap_or_default();
            both(Some(format!("[{}]", asked.srcs.join(", "))), Some(asked.trg))
        }
        Operation::CreateSnapshot => {
            let made = answer.as_ref().ok().and_then(|bytes| CreateSnapshotResponseProto::decode(&**bytes).ok());
            both(one(1), made.map(|made| made.snapshot_path))
        }
        Operation::RenameSnapshot => {
            let name = |field| Some(snapshot(&root(), &text(body, field).unwrap_or_default()));
            both(name(2), name(3))
        }
        Operation::DeleteSnapshot => source(Some(snapshot(&root(), &text(body, 2).unwrap_or_default()))),
        Operation::GetSnapshotDiffReport | Operation::GetSnapshotDiffReportListing => {
            let name = |field| Some(snapshot_or_now(&root(), &text(body, field).unwrap_or_default()));
            both(name(2), name(3))
        }
        Operation::ListOpenFiles if granted => source(None),
        Operation::ListOpenFiles => source(one(3)),
        Operation::ListEncryptionZones => source((!granted).then(|| "/".to_owned())),
        // what was made is told by who made it
        Operation::AddCacheDirective => source(None),
        Operation::AddCachePool => source(pool(body).filter(|_| !granted).map(|pool| pool.name.to_string())),
        Operation::ModifyCacheDirective => {
            let info = ModifyCacheDirectiveRequestProto::decode(body).unwrap_or_default().info;
            let id = info.id.map_or_else(|| "null".to_owned(), |id| id.to_string());
            both(Some(format!("{{id: {id}}}")), Some(caches::directive_text(&info)))
        }
        Operation::RemoveCacheDirective => source(Some(format!("{{id: {}}}", number(body, 1) as i64))),
        Operation::ModifyCachePool => {
            let asked = pool(body).unwrap_or_default();
            both(Some(format!("{{poolName: {}}}", asked.name)), granted.then(|| caches::pool_text(&asked)))
        }
        Operation::RemoveCachePool => source(Some(format!("{{poolName: {}}}", root()))),
        Operation::ListCacheDirectives => {
            let filter = ListCacheDirectivesRequestProto::decode(body).unwrap_or_default().filter;
            source(Some(caches::directive_text(&filter)))
        }
        Operation::GetDelegationToken => {
            let issued = answer.as_ref().ok().and_then(|body| GetDelegationTokenResponseProto::decode(&**body).ok());
            source(issued.and_then(|issued| issued.token).and_then(|token| token_named(&token)))
        }
        Operation::RenewDelegationToken | Operation::CancelDelegationToken => {
            let asked = RenewDelegationTokenRequestProto::decode(body).unwrap_or_default();
            source(token_named(&asked.token))
        }
        Operation::ReencryptEncryptionZone => source(one(2)),
        Operation::AddErasureCodingPolicies => {
            let asked = AddErasureCodingPoliciesRequestProto::decode(body).unwrap_or_default();
            let names = asked.ec_policies.into_iter().filter_map(|policy| policy.name).collect::<Vec<_>>();
            source(granted.then(|| format!("[{}]", names.join(", "))))
        }
        Operation::EnableErasureCodingPolicy
        | Operation::DisableErasureCodingPolicy
        | Operation::RemoveErasureCodingPolicy => source(one(1).filter(|_| granted)),
        _ if pathless(operation) => source(None),
        _ => source(one(1)),
    }
}

/// A token as lines name it.
fn token_named(token: &TokenProto) -> Option<String> {
    let Identifier { sequence_number, owner, renewer, .. } = Identifier::decode(&token.identifier).ok()?;
    Some(format!("{KIND} token {sequence_number} for {owner} with renewer {renewer}"))
}

/// The pool that a request to add or change one is about.
fn pool(body: &[u8]) -> Option<PoolAsked> {
    let asked = AddCachePoolRequestProto::decode(body).ok()?;
    caches::pool_asked(&asked.info).ok()
}
