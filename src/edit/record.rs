//! The edit records. Strings are borrowed from the buffer they were decoded from where possible; paths are bytes in ordinary UTF-8 (the
//! codec converts Java's form of supplementary characters).

use std::borrow::Cow;
use vocab::acl::AclEntry;
use vocab::time::TimeMs;
use vocab::xattr::Xattr;
use vocab::{Block, GenerationStamp, InodeId, Mode, RpcIds, StorageKind};

/// A path or name as bytes.
pub type Bytes<'a> = Cow<'a, [u8]>;
/// A Java string that is no path: user, client name, key name.
pub type Text<'a> = Cow<'a, str>;

/// Owner, group and mode as stored in a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permission<'a> {
    /// Owning user.
    pub user: Text<'a>,
    /// Owning group.
    pub group: Text<'a>,
    /// Mode as written: 16 bits, unmasked.
    pub mode: u16,
}

/// OP_ADD and OP_CLOSE share their form: a file with all its attributes. A close leaves out what comes after `permission`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddClose<'a> {
    /// Id of the file; 0 in a close.
    pub inode_id: InodeId,
    /// Full path.
    pub path: Bytes<'a>,
    /// Replication (0 for a striped file).
    pub replication: u16,
    /// Modification time.
    pub mtime: TimeMs,
    /// Access time.
    pub atime: TimeMs,
    /// Preferred block size in bytes.
    pub block_size: u64,
    /// All blocks (empty for a create).
    pub blocks: Vec<Block>,
    /// Owner, group, mode.
    pub permission: Permission<'a>,
    /// ACL entries of a create.
    pub acl: Vec<AclEntry>,
    /// Attributes of a create.
    pub xattrs: Vec<Xattr>,
    /// Lease holder.
    pub client_name: Text<'a>,
    /// Host of the client.
    pub client_machine: Text<'a>,
    /// Whether an existing file is deleted first.
    pub overwrite: bool,
    /// Storage policy id, 0 when unset.
    pub storage_policy: u8,
    /// Erasure coding policy id, 0 for replication.
    pub erasure_coding_policy: u8,
    /// Ids of the call.
    pub rpc: Option<RpcIds>,
}

/// A delegation token's identifier, as stored.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the fields of Hadoop's AbstractDelegationTokenIdentifier
pub struct Token<'a> {
    pub owner: Text<'a>,
    pub renewer: Text<'a>,
    pub real_user: Text<'a>,
    pub issue_date: TimeMs,
    pub max_date: TimeMs,
    pub sequence_number: i32,
    pub master_key_id: i32,
}

/// A cache directive; absent fields are unchanged in a modify.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the fields of Hadoop's CacheDirectiveInfo
pub struct CacheDirective<'a> {
    pub id: i64,
    pub path: Option<Bytes<'a>>,
    pub replication: Option<i16>,
    pub pool: Option<Text<'a>>,
    /// Absolute expiry.
    pub expiration: Option<TimeMs>,
}

/// A cache pool; absent fields are unchanged in a modify.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the fields of Hadoop's CachePoolInfo
pub struct CachePool<'a> {
    pub name: Text<'a>,
    pub owner: Option<Text<'a>>,
    pub group: Option<Text<'a>>,
    pub mode: Option<Mode>,
    pub limit: Option<i64>,
    pub max_relative_expiry: Option<i64>,
    pub default_replication: Option<i16>,
}

/// Options of OP_RENAME, in the order written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum RenameOption {
    /// Nothing.
    None = 0,
    /// Replace the target.
    Overwrite = 1,
    /// A move to trash.
    ToTrash = 2,
}

/// One edit record. The names follow the opcodes; docs give opcode numbers. Bodies: FORMAT.md.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // field names are the documentation; FORMAT.md has the table
pub enum Record<'a> {
    /// 0
    Add(Box<AddClose<'a>>),
    /// 9
    Close(Box<AddClose<'a>>),
    /// 1
    RenameOld { src: Bytes<'a>, dst: Bytes<'a>, time: TimeMs, rpc: Option<RpcIds> },
    /// 2
    Delete { path: Bytes<'a>, time: TimeMs, rpc: Option<RpcIds> },
    /// 3
    Mkdir {
        inode_id: InodeId,
        path: Bytes<'a>,
        mtime: TimeMs,
        atime: TimeMs,
        permission: Permission<'a>,
        acl: Vec<AclEntry>,
        xattrs: Vec<Xattr>,
    },
    /// 4
    SetReplication { path: Bytes<'a>, replication: u16 },
    /// 7
    SetPermissions { path: Bytes<'a>, mode: u16 },
    /// 8: an absent user or group is unchanged.
    SetOwner { path: Bytes<'a>, user: Option<Text<'a>>, group: Option<Text<'a>> },
    /// 10
    SetGenstampV1 { stamp: GenerationStamp },
    /// 11, read only
    SetNamespaceQuota { path: Bytes<'a>, quota: i64 },
    /// 12, read only
    ClearNamespaceQuota { path: Bytes<'a> },
    /// 13: -1 is unchanged.
    Times { path: Bytes<'a>, mtime: TimeMs, atime: TimeMs },
    /// 14
    SetQuota { path: Bytes<'a>, namespace: i64, space: i64 },
    /// 15
    Rename { src: Bytes<'a>, dst: Bytes<'a>, time: TimeMs, options: Vec<RenameOption>, rpc: Option<RpcIds> },
    /// 16
    Concat { target: Bytes<'a>, sources: Vec<Bytes<'a>>, time: TimeMs, rpc: Option<RpcIds> },
    /// 17
    Symlink {
        inode_id: InodeId,
        path: Bytes<'a>,
        target: Bytes<'a>,
        mtime: TimeMs,
        atime: TimeMs,
        permission: Permission<'a>,
        rpc: Option<RpcIds>,
    },
    /// 18
    GetDelegationToken { token: Token<'a>, expiry: TimeMs },
    /// 19
    RenewDelegationToken { token: Token<'a>, expiry: TimeMs },
    /// 20
    CancelDelegationToken { token: Token<'a> },
    /// 21
    UpdateMasterKey { id: i32, expiry: TimeMs, key: Option<Bytes<'a>> },
    /// 22
    ReassignLease { holder: Text<'a>, path: Bytes<'a>, new_holder: Text<'a> },
    /// 23
    EndLogSegment,
    /// 24
    StartLogSegment,
    /// 25
    UpdateBlocks { path: Bytes<'a>, blocks: Vec<Block>, rpc: Option<RpcIds> },
    /// 26: `mtime` since -66.
    CreateSnapshot { root: Bytes<'a>, name: Bytes<'a>, mtime: Option<TimeMs>, rpc: Option<RpcIds> },
    /// 27
    DeleteSnapshot { root: Bytes<'a>, name: Bytes<'a>, mtime: Option<TimeMs>, rpc: Option<RpcIds> },
    /// 28
    RenameSnapshot { root: Bytes<'a>, old: Bytes<'a>, new: Bytes<'a>, mtime: Option<TimeMs>, rpc: Option<RpcIds> },
    /// 29
    AllowSnapshot { root: Bytes<'a> },
    /// 30
    DisallowSnapshot { root: Bytes<'a> },
    /// 31
    SetGenstampV2 { stamp: GenerationStamp },
    /// 32
    AllocateBlockId { id: i64 },
    /// 33: one or two blocks: the penultimate with its final length, then the new last one.
    AddBlock { path: Bytes<'a>, penultimate: Option<Block>, last: Block, rpc: Option<RpcIds> },
    /// 34
    AddCacheDirective { directive: CacheDirective<'a>, rpc: Option<RpcIds> },
    /// 35
    RemoveCacheDirective { id: i64, rpc: Option<RpcIds> },
    /// 36
    AddCachePool { pool: CachePool<'a>, rpc: Option<RpcIds> },
    /// 37
    ModifyCachePool { pool: CachePool<'a>, rpc: Option<RpcIds> },
    /// 38
    RemoveCachePool { name: Text<'a>, rpc: Option<RpcIds> },
    /// 39
    ModifyCacheDirective { directive: CacheDirective<'a>, rpc: Option<RpcIds> },
    /// 40: the whole resulting list.
    SetAcl { path: Bytes<'a>, entries: Vec<AclEntry> },
    /// 41
    RollingUpgradeStart { time: TimeMs },
    /// 42
    RollingUpgradeFinalize { time: TimeMs },
    /// 43. `given`: whether a value that is empty was given, or none; only the log tells them apart
    SetXattr { path: Bytes<'a>, xattrs: Vec<Xattr>, given: bool, rpc: Option<RpcIds> },
    /// 44
    RemoveXattr { path: Bytes<'a>, xattrs: Vec<Xattr>, rpc: Option<RpcIds> },
    /// 45: 0 = unset
    SetStoragePolicy { path: Bytes<'a>, policy: u8 },
    /// 46
    Truncate {
        path: Bytes<'a>,
        client_name: Text<'a>,
        client_machine: Text<'a>,
        new_length: u64,
        time: TimeMs,
        block: Option<Block>,
    },
    /// 47
    Append { path: Bytes<'a>, client_name: Text<'a>, client_machine: Text<'a>, new_block: bool, rpc: Option<RpcIds> },
    /// 48
    SetQuotaByKind { path: Bytes<'a>, kind: StorageKind, quota: i64 },
    /// 49
    AddErasureCodingPolicy {
        codec: Text<'a>,
        data_units: i32,
        parity_units: i32,
        cell_size: u32,
        options: Vec<(Text<'a>, Text<'a>)>,
        rpc: Option<RpcIds>,
    },
    /// 50
    EnableErasureCodingPolicy { name: Text<'a>, rpc: Option<RpcIds> },
    /// 51
    DisableErasureCodingPolicy { name: Text<'a>, rpc: Option<RpcIds> },
    /// 52
    RemoveErasureCodingPolicy { name: Text<'a>, rpc: Option<RpcIds> },
}
