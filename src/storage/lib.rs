//! Purpose: what is on disk: storage directories and their states, the edit log, its replay, images, retention.
//! Called by: engine, server (identity, state of the journals), the binary's node assembly.
//! Calls: state, namespace and record (built by an image load, walked by a save), mem (pages of arena files), edit (codec), hadoop-proto (wire cursor), os (disk, clock, randomness).
//! Never: takes a lock of the state (it is handed one), knows a configuration key or an exit code, retries after a failed sync.
//! Invariants: a file gets its final name only when its content is durable; nothing is removed that a load still needs; what was acknowledged
//! as durable is found again, in order, after any crash.

pub mod arena;
pub mod dirs;
pub mod error;
pub mod format;
pub mod image;
pub mod journal;
pub mod names;
pub mod pretransactional;
pub mod purge;
pub mod replay;
pub mod rolling;
pub mod salvage;
pub mod seen;
pub mod select;
pub mod transfer;
pub mod upgrade;
pub mod version;

pub use dirs::{Directories, Location, Roles};
pub use error::StorageError;
pub use version::StorageInfo;
