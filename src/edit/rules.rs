//! The numbered rules of replay: records that change nothing although nothing is wrong. FORMAT.md has the table with what was seen.

/// Why a record is a "no-op by rule".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Rule {}
