//! Every bound in one place. Those that a Hadoop key changes are settings; these are fixed by the formats.

/// Longest path in UTF-16 units that a create, mkdir, rename or symlink may make (`HdfsConstants.MAX_PATH_LENGTH`).
pub const PATH_LENGTH_MAX: usize = 8_000;
/// Most components of such a path (`HdfsConstants.MAX_PATH_DEPTH`).
pub const PATH_DEPTH_MAX: usize = 1_000;
/// Largest preferred block size, in bytes: Hadoop's file records have 48 bits for it.
pub const BLOCK_SIZE_MAX: u64 = (1 << 48) - 1;
/// Largest serial number in string tables: packed permissions have 24 bits for it.
pub const STRING_SERIAL_MAX: u32 = (1 << 24) - 1;
/// Most sources of one concat record.
pub const CONCAT_SOURCES_MAX: usize = 1_048_576;
/// The longest run of work under the state lock that a slice aims at, in microseconds.
pub const SLICE_MICROS: u64 = 1_000;
/// A hold of the state lock beyond this many microseconds is counted and logged.
pub const HOLD_WARN_MICROS: u64 = 5_000;
