//! Audit lines of calls: which calls have one, what it names, and when a refusal is told (Hadoop's `FSNamesystem.logAuditEvent` and its callers).

mod request;

use super::table::{Handler, Namenode, Reconfiguration, Refresh};
use super::{Answer, Shared};
use engine::Witness;
use hadoop_proto::Message;
use hadoop_proto::hdfs::{BatchedDirectoryListingProto, GetBatchedListingRequestProto, GetBatchedListingResponseProto};
use observe::RemoteException;
use observe::audit::{Event, Line, Owner};
use observe::remote_exception::class;
use ops::read::owner::{id_of_path, owner_of, owner_of_path};
use ops::{Operation, View};
use parking_lot::Mutex;
use request::{Named, command, named, number, text};
use std::borrow::Cow;
use vocab::{Caller, InodeId};

/// Protocol of the line.
const RPC: &str = "rpc";

/// What an operation left behind for its line.
#[derive(Clone, Debug, Default)]
pub(super) enum Seen {
    /// Nothing.
    #[default]
    Nothing,
    /// The call was answered from the retry cache: it has its line already.
    Repeated,
    /// Whose the inode is now.
    Owner(Option<Owner>),
    /// What was made, in words.
    Made(Box<str>),
}

/// Where a call leaves it.
pub(super) type Slot = Mutex<Seen>;

/// The path in a field of a request, if it is one.
pub(super) fn path(body: &[u8], field: u32) -> Option<Cow<'_, str>> {
    text(body, field).filter(|text| text.starts_with('/'))
}

/// Which inode's owner the line tells, if it does: the field of its path.
fn owned(operation: Operation) -> Option<u32> {
    match operation {
        Operation::Mkdirs
        | Operation::Create
        | Operation::SetPermission
        | Operation::SetOwner
        | Operation::SetTimes
        | Operation::Truncate
        | Operation::ModifyAclEntries
        | Operation::RemoveAclEntries
        | Operation::RemoveDefaultAcl
        | Operation::RemoveAcl
        | Operation::SetAcl
        | Operation::SetXattr
        | Operation::RemoveXattr
        | Operation::SetStoragePolicy
        | Operation::UnsetStoragePolicy
        | Operation::SatisfyStoragePolicy
        | Operation::SetErasureCodingPolicy
        | Operation::UnsetErasureCodingPolicy
        | Operation::CreateEncryptionZone
        | Operation::GetEzForPath
        | Operation::GetEnclosingRoot
        | Operation::Concat => Some(1),
        Operation::Rename | Operation::Rename2 | Operation::CreateSymlink => Some(2),
        _ => None,
    }
}

/// Looks, under the hold of a write, at whose the inode is that the operation is about.
pub(super) struct Watch<'a> {
    operation: Operation,
    body: &'a [u8],
    /// What is renamed is the same before and after, whatever its path is.
    renamed: Option<InodeId>,
    seen: Seen,
}

impl<'a> Watch<'a> {
    /// For one call.
    pub(super) fn new(operation: Operation, body: &'a [u8]) -> Watch<'a> {
        Watch { operation, body, renamed: None, seen: Seen::Nothing }
    }
    /// What there was to see.
    pub(super) fn seen(self) -> Seen {
        self.seen
    }
}

impl Witness for Watch<'_> {
    fn before(&mut self, view: &View<'_>) {
        if matches!(self.operation, Operation::Rename | Operation::Rename2) {
            self.renamed = text(self.body, 1).and_then(|path| id_of_path(view, path.as_bytes()));
        }
    }
    fn after(&mut self, view: &View<'_>, repeated: bool) {
        self.seen = match self.renamed {
            _ if repeated => Seen::Repeated,
            Some(id) => Seen::Owner(owner_by_id(view, id)),
            None => Seen::Owner(owner(view, self.operation, self.body)),
        };
    }
}

fn owner_by_id(view: &View<'_>, id: InodeId) -> Option<Owner> {
    owner_of(view, id).map(|(user, group, mode)| Owner { user, group, mode })
}

/// The owner of what an operation was about.
fn owner(view: &View<'_>, operation: Operation, body: &[u8]) -> Option<Owner> {
    let path = text(body, owned(operation)?)?;
    owner_of_path(view, path.as_bytes()).map(|(user, group, mode)| Owner { user, group, mode })
}

/// The field of a boolean answer that was false.
fn is_false(answer: &Answer) -> bool {
    answer.as_ref().is_ok_and(|body| number(body, 1) == 0)
}

/// Whether the exception says that the caller may not.
fn denied(exception: &RemoteException) -> bool {
    // and its subclasses, for snapshots and for the way to a path
    exception.class.ends_with("AccessControlException")
}

/// Whether there is a line, and what it says was allowed.
fn verdict(operation: Operation, answer: &Answer) -> Option<bool> {
    let silent = operation.row().audit.is_empty();
    match answer {
        Ok(_) if silent => None,
        Ok(_) => match operation {
            Operation::Delete => Some(!is_false(answer)),
            // no token, no line
            Operation::GetDelegationToken => answer.as_ref().is_ok_and(|body| !body.is_empty()).then_some(true),
            Operation::Rename
            | Operation::SetReplication
            | Operation::IsFileClosed
            | Operation::EnableErasureCodingPolicy
            | Operation::DisableErasureCodingPolicy => (!is_false(answer)).then_some(true),
            _ => Some(true),
        },
        Err(exception) => match operation {
            // these are told of in the way out, whatever it is
            Operation::GetSnapshotListing
            | Operation::ListEncryptionZones
            | Operation::ListReencryptionStatus
            | Operation::ReencryptEncryptionZone
            | Operation::GetErasureCodingPolicy
            | Operation::GetErasureCodingPolicies
            | Operation::GetErasureCodingCodecs => (exception.class != class::STANDBY).then_some(false),
            Operation::UnsetErasureCodingPolicy => None,
            // the status is told before it turns out to be that of no link
            Operation::GetLinkTarget => (exception.class != class::STANDBY).then_some(!denied(exception)),
            // otherwise silent: what only superusers may is told to have been tried
            Operation::ListCorruptFileBlocks | Operation::GetCurrentEditLogTxid | Operation::GetEditsFromTxid => {
                denied(exception).then_some(false)
            }
            _ => (!silent && denied(exception)).then_some(false),
        },
    }
}

/// Which of several listings the caller may not see: they have a line of their own before those of all.
fn refused_listings(answer: &Answer) -> Vec<usize> {
    let listings = answer.as_ref().ok().and_then(|body| GetBatchedListingResponseProto::decode(&**body).ok());
    let refused = |listing: &BatchedDirectoryListingProto| {
        let exception = listing.exception.as_ref();
        exception.is_some_and(|exception| exception.class_name.ends_with("AccessControlException"))
    };
    let listings = listings.map(|found| found.listings).unwrap_or_default();
    listings.iter().filter(|listing| refused(listing)).map(|listing| listing.parent_idx as usize).collect()
}

/// Hands over the line of a call of the client protocol, if it has one.
pub(super) fn client(
    shared: &Shared,
    operation: Operation,
    caller: &Caller,
    body: &[u8],
    answer: &Answer,
    slot: &Slot,
) {
    each_event(shared, operation, caller, body, answer, slot, |event| {
        shared.audit.log(shared.engine.now().wall.0, event);
    });
}

/// The line of a write, if it has one, to be handed over when the write is durable.
pub(super) fn line(
    shared: &Shared,
    operation: Operation,
    caller: &Caller,
    body: &[u8],
    answer: &Answer,
    slot: &Slot,
) -> Option<Line> {
    let mut line = None;
    each_event(shared, operation, caller, body, answer, slot, |event| line = shared.audit.line(event));
    line
}

/// Counts the events of a call for its user.
fn count(shared: &Shared, operation: Operation, caller: &Caller, body: &[u8]) {
    let events = match operation {
        Operation::GetBatchedListing => {
            GetBatchedListingRequestProto::decode(body).map_or(0, |asked| asked.paths.len())
        }
        _ => 1,
    };
    count_events(shared, caller, &command(operation, body), events as u64);
}

fn count_events(shared: &Shared, caller: &Caller, command: &str, events: u64) {
    if let Some(top) = &shared.top {
        let now = shared.engine.now().wall.0;
        top.count(u64::try_from(now).unwrap_or(0), command, &caller.user, events);
    }
}

/// Makes the events of a call: one at most, but for batched listings.
fn each_event(
    shared: &Shared,
    operation: Operation,
    caller: &Caller,
    body: &[u8],
    answer: &Answer,
    slot: &Slot,
    mut each: impl FnMut(&Event<'_>),
) {
    if !shared.audit.is_on() && shared.top.is_none() {
        return;
    }
    let Some(allowed) = verdict(operation, answer) else { return };
    count(shared, operation, caller, body);
    if !shared.audit.is_on() {
        return;
    }
    let owner = match std::mem::take(&mut *slot.lock()) {
        Seen::Repeated => return,
        Seen::Owner(owner) => owner,
        Seen::Nothing if matches!(operation, Operation::GetEzForPath | Operation::GetEnclosingRoot) => {
            let name = operation.row().method;
            shared.engine.view(name, caller, |view| owner(view, operation, body))
        }
        Seen::Made(text) => {
            write(shared, caller, allowed, &command(operation, body), Some(&text), Some(RPC));
            return;
        }
        Seen::Nothing => None,
    };
    let command = match answer {
        // refused before it was looked at what is asked
        Err(refused) if refused.message.ends_with("operation reencryptEncryptionZone") => operation.row().method.into(),
        _ => command(operation, body),
    };
    let protocol = Some(RPC);
    if operation == Operation::GetBatchedListing {
        let asked = GetBatchedListingRequestProto::decode(body).unwrap_or_default();
        let mut tell = |allowed, source: Option<&str>| {
            each(&Event { allowed, caller, command: &command, source, target: None, owner: None, protocol });
        };
        for at in refused_listings(answer) {
            tell(false, asked.paths.get(at).map(String::as_str));
        }
        asked.paths.iter().for_each(|path| tell(allowed, Some(path)));
        return;
    }
    let Named { source, target } = named(operation, body, answer);
    each(&Event {
        allowed,
        caller,
        command: &command,
        source: source.as_deref(),
        target: target.as_deref(),
        owner: owner.as_ref(),
        protocol,
    });
}

/// Hands over a line with at most one path.
pub(crate) fn log(
    shared: &Shared,
    caller: &Caller,
    allowed: bool,
    command: &str,
    source: Option<&str>,
    protocol: &str,
) {
    count_events(shared, caller, command, 1);
    write(shared, caller, allowed, command, source, Some(protocol).filter(|protocol| !protocol.is_empty()));
}

fn write(shared: &Shared, caller: &Caller, allowed: bool, command: &str, source: Option<&str>, protocol: Option<&str>) {
    let event = Event { allowed, caller, command, source, target: None, owner: None, protocol };
    shared.audit.log(shared.engine.now().wall.0, &event);
}

/// Hands over the line of a rename that the name node itself made.
pub(crate) fn rename(shared: &Shared, caller: &Caller, source: &str, target: &str) {
    count_events(shared, caller, "rename (options=[NONE])", 1);
    if !shared.audit.is_on() {
        return;
    }
    let owner = shared.engine.view("audit", caller, |view| owner_by_id(view, id_of_path(view, target.as_bytes())?));
    let event = Event {
        allowed: true,
        caller,
        command: "rename (options=[NONE])",
        source: Some(source),
        target: Some(target),
        owner: owner.as_ref(),
        protocol: Some(RPC),
    };
    shared.audit.log(shared.engine.now().wall.0, &event);
}

/// Hands over the line of a call of another protocol, if it has one.
pub(super) fn other(shared: &Shared, handler: Handler, caller: &Caller, answer: &Answer) {
    if !shared.audit.is_on() && shared.top.is_none() {
        return;
    }
    // what succeeds has a line only where Hadoop's server writes one
    let (command, told) = match handler {
        Handler::Refresh(method) => match method {
            Refresh::UserToGroups => ("refreshUserToGroupsMappings", true),
            Refresh::SuperUserGroups => ("refreshSuperUserGroupsConfiguration", true),
            Refresh::ServiceAcl => ("refreshServiceAcl", true),
            Refresh::CallQueue => ("refreshCallQueue", true),
            Refresh::Generic | Refresh::GroupsOfUser => return,
        },
        Handler::Reconfiguration(method) => match method {
            Reconfiguration::Status => ("getNamenodeReconfigurationStatus", true),
            Reconfiguration::Start => ("startNamenodeReconfiguration", true),
            Reconfiguration::List => ("listNamenodeReconfigurableProperties", true),
        },
        Handler::Namenode(method) => match method {
            Namenode::RollEditLog => ("rollEditLog", true),
            Namenode::GetBlocks => ("getBlocks", false),
            Namenode::Register => ("registerSubordinateNamenode", false),
            Namenode::StartCheckpoint => ("startCheckpoint", false),
            Namenode::EndCheckpoint => ("endCheckpoint", false),
            Namenode::GetBlockKeys => ("getBlockKeys", false),
            Namenode::NextToSatisfy => ("getNextSPSPath", false),
            Namenode::GetTransactionId => ("getTransactionID", false),
            Namenode::GetMostRecentCheckpointTxId => ("getMostRecentCheckpointTxId", false),
            Namenode::ErrorReport => ("errorReport", false),
            Namenode::IsUpgradeFinalized => ("isUpgradeFinalized", false),
            Namenode::IsRollingUpgrade => ("isRollingUpgrade", false),
            Namenode::EditLogManifest => ("getEditLogManifest", false),
            Namenode::MostRecentFileTxId => ("getMostRecentNameNodeFileTxId", false),
            Namenode::Version => return,
        },
        _ => return,
    };
    match answer {
        Ok(_) if told => log(shared, caller, true, command, None, RPC),
        Err(exception) if denied(exception) => log(shared, caller, false, command, None, RPC),
        _ => {}
    }
}
