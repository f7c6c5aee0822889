//! Forms of records before layout -39: their strings came as a counted array, numbers as decimal text. Numbers are read by
//! `Fields::number` and its kin; here is the count in front.

use crate::error::Reason;
use crate::fields::{Fields, Result};
use vocab::layout::Feature;

/// Reads the count of array elements in front of old records and checks it. `with_atime` says that the record has one element more
/// since access times exist (-17).
pub(crate) fn counted(fields: &mut Fields<'_>, elements: i32, with_atime: bool) -> Result<()> {
    if fields.has(Feature::EditlogOpOptimization) {
        return Ok(());
    }
    let expected = elements + i32::from(with_atime && fields.has(Feature::FileAccessTime));
    let count = fields.i32()?;
    if count == expected { Ok(()) } else { fields.fail(Reason::Count(i64::from(count))) }
}

/// The number of sources of a concat: a number of its own since -39, before that what the array holds beside target and time.
pub(crate) fn concat_sources(fields: &mut Fields<'_>, array: Option<i32>) -> Result<usize> {
    let count = match array {
        Some(count) => i64::from(count) - 2,
        None => i64::from(fields.i32()?),
    };
    if count > vocab::limits::CONCAT_SOURCES_MAX as i64 {
        return fields.fail(Reason::Count(count));
    }
    fields.count(count, 2)
}
