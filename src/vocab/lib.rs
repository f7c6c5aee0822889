//! Purpose: the words of the file system: ids, paths, permissions, callers, limits, refusals. Plain values, no behaviour of their own.
//! Called by: every layer above.
//! Calls: nothing.
//! Never: allocates per inode, reads a clock, a file or a setting, knows protobuf or Java class names.
//! Invariants: every value that a client or a file can bring in is checked where it is made, so that a value of a type here is a legal one.

pub mod acl;
pub mod block;
pub mod caller;
pub mod encryption;
pub mod erasure_coding;
pub mod hash_order;
pub mod ids;
pub mod layout;
pub mod limits;
pub mod path;
pub mod permission;
pub mod policy;
pub mod quota;
pub mod refusal;
pub mod storage_kind;
pub mod storage_policy;
pub mod time;
pub mod xattr;

pub use block::{Block, BlockState, ReplicaState};
pub use caller::{AuthenticationMethod, Caller, RpcIds};
pub use ids::{BlockId, GenerationStamp, InodeId, SnapshotId, Txid};
pub use layout::LayoutVersion;
pub use permission::{Action, Mode, PermissionStatus};
pub use policy::Policy;
pub use refusal::Refusal;
pub use storage_kind::StorageKind;
pub use time::TimeMs;
