//! Cache pools and directives: messages to values and back, and as audit lines tell them.

use hadoop_proto::hdfs::{
    CacheDirectiveEntryProto, CacheDirectiveInfoExpirationProto, CacheDirectiveInfoProto, CacheDirectiveStatsProto,
    CachePoolEntryProto, CachePoolInfoProto, CachePoolStatsProto,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ops::read::caches::{DirectiveFilter, ListedDirective, ListedPool};
use ops::write::caches::{DirectiveAsked, Expiry, PoolAsked};
use state::caches::{CacheDirective, LONGEST_LIFE_MS};
use std::fmt::Display;
use std::fmt::Write;
use vocab::{Mode, Refusal};

fn illegal(text: impl Into<String>) -> Refusal {
    Refusal::IllegalArgument(text.into().into())
}

/// The path part of what Java's `Path` makes of a text: doubled and trailing slashes go, and so do scheme, authority and dots.
fn path(text: &str) -> Result<String, Refusal> {
    if text.is_empty() {
        return Err(illegal("Can not create a Path from an empty string"));
    }
    let scheme = text.find(':').filter(|colon| text.find('/').is_none_or(|slash| *colon < slash));
    let mut rest = scheme.map_or(text, |colon| &text[colon + 1..]);
    let mut has_authority = false;
    if rest.len() > 2
        && let Some(authority) = rest.strip_prefix("//")
    {
        rest = authority.find('/').map_or("", |slash| &authority[slash..]);
        has_authority = true;
    }
    let mut path = rest.to_owned();
    while path.contains("//") {
        path = path.replace("//", "/");
    }
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    if (scheme.is_some() || has_authority) && !path.starts_with('/') && !path.is_empty() {
        return Err(illegal(format!("java.net.URISyntaxException: Relative path in absolute URI: {text}")));
    }
    // a last dot leaves a slash, which goes when the path is read again, as at each listing and start
    let path = without_dots(&path);
    Ok(path.strip_suffix('/').filter(|path| !path.is_empty()).map(str::to_owned).unwrap_or(path))
}

/// A path without `.` and without `..` after a name.
fn without_dots(path: &str) -> String {
    if !path.split('/').any(|name| name == "." || name == "..") {
        return path.to_owned();
    }
    let (start, names) = path.strip_prefix('/').map_or(("", path), |names| ("/", names));
    let mut kept: Vec<&str> = Vec::new();
    for name in names.split('/') {
        match name {
            "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => drop(kept.pop()),
            name => kept.push(name),
        }
    }
    let ended_by_dots = path.ends_with("/.") || path.ends_with("/..");
    let end = if ended_by_dots && kept.last().is_some_and(|last| *last != "..") { "/" } else { "" };
    format!("{start}{}{end}", kept.join("/"))
}

/// A 16-bit number that came in 32 bits.
fn short(number: u32) -> Result<i16, Refusal> {
    let number = number.cast_signed();
    i16::try_from(number).map_err(|_| illegal(format!("Out of range: {number}")))
}

/// A time as `2026-12-01T01:02:03+0000`, in the local zone. Directives that never end have years that calendars do not go to.
pub fn date(millis: i64) -> String {
    let known = Timestamp::from_millisecond(millis);
    let known = known.unwrap_or(if millis < 0 { Timestamp::MIN } else { Timestamp::MAX });
    let offset = i64::from(TimeZone::system().to_offset(known).seconds());
    let seconds = millis.div_euclid(1_000).saturating_add(offset);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let (sign, shift) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}{sign}{:02}{:02}",
        second % 60,
        shift / 60,
        shift % 60
    )
}

/// Year, month and day of a number of days since 1970: eras of 400 years, years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_month)
}

/// A length of time as `days:hours:minutes:seconds.milliseconds`.
fn duration(millis: i64) -> String {
    let (sign, all) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
    let seconds = all / 1_000;
    let (minutes, hours, days) = (seconds / 60 % 60, seconds / 3_600 % 24, seconds / 86_400);
    format!("{sign}{days:03}:{hours:02}:{minutes:02}:{:02}.{:03}", seconds % 60, all % 1_000)
}

fn expiry(of: &CacheDirectiveInfoExpirationProto) -> Result<Expiry, Refusal> {
    let CacheDirectiveInfoExpirationProto { millis, is_relative: relative } = *of;
    if relative && millis > LONGEST_LIFE_MS {
        return Err(illegal("Expiration time is too far in the future!"));
    }
    let text = if relative { duration(millis) } else { date(millis) };
    Ok(Expiry { millis, relative, text: text.into() })
}

/// What is asked of a directive.
///
/// # Errors
/// What Java's conversion refuses.
pub fn directive_asked(info: &CacheDirectiveInfoProto) -> Result<DirectiveAsked, Refusal> {
    Ok(DirectiveAsked {
        id: info.id,
        path: info.path.as_deref().map(path).transpose()?.map(String::into_bytes),
        replication: info.replication.map(short).transpose()?,
        pool: info.pool.as_deref().map(Into::into),
        expiry: info.expiration.as_ref().map(expiry).transpose()?,
    })
}

/// A filter of directives.
///
/// # Errors
/// What Java's conversion refuses.
pub fn filter(info: &CacheDirectiveInfoProto) -> Result<DirectiveFilter, Refusal> {
    let DirectiveAsked { id, path, replication, pool, .. } = directive_asked(info)?;
    Ok(DirectiveFilter { id, path, pool, by_replication: replication.is_some() })
}

/// What is asked of a pool.
///
/// # Errors
/// What Java's conversion refuses.
pub fn pool_asked(info: &CachePoolInfoProto) -> Result<PoolAsked, Refusal> {
    Ok(PoolAsked {
        name: info.pool_name().into(),
        owner: info.owner_name.as_deref().map(Into::into),
        group: info.group_name.as_deref().map(Into::into),
        mode: info.mode.map(|mode| Mode::new(mode as u16)),
        limit: info.limit,
        longest_life_ms: info.max_relative_expiry,
        default_replication: info.default_replication.map(short).transpose()?,
    })
}

/// A listed directive.
pub fn directive_entry(listed: &ListedDirective) -> CacheDirectiveEntryProto {
    let ListedDirective { id, directive, used, expired } = listed;
    CacheDirectiveEntryProto {
        info: CacheDirectiveInfoProto {
            id: Some(*id),
            path: Some(String::from_utf8_lossy(&directive.path).into_owned()),
            replication: Some(i32::from(directive.replication).cast_unsigned()),
            pool: Some(directive.pool.to_string()),
            expiration: Some(CacheDirectiveInfoExpirationProto { millis: directive.expiry.0, is_relative: false }),
        },
        stats: CacheDirectiveStatsProto {
            bytes_needed: used.bytes_needed,
            bytes_cached: used.bytes_cached,
            files_needed: used.files_needed,
            files_cached: used.files_cached,
            has_expired: *expired,
        },
    }
}

/// A listed pool.
pub fn pool_entry(listed: &ListedPool) -> CachePoolEntryProto {
    let mut entry = CachePoolEntryProto::default();
    entry.info.pool_name = Some(listed.name.to_string());
    if let Some((pool, used)) = &listed.seen {
        entry.info.owner_name = Some(pool.owner.to_string());
        entry.info.group_name = Some(pool.group.to_string());
        entry.info.mode = Some(pool.mode.bits().into());
        entry.info.limit = Some(pool.limit);
        entry.info.max_relative_expiry = Some(pool.longest_life_ms);
        entry.info.default_replication = Some(i32::from(pool.default_replication).cast_unsigned());
        entry.stats = CachePoolStatsProto {
            bytes_needed: used.bytes_needed,
            bytes_cached: used.bytes_cached,
            bytes_overlimit: used.bytes_needed.wrapping_sub(pool.limit).max(0),
            files_needed: used.files_needed,
            files_cached: used.files_cached,
        };
    }
    entry
}

/// A new directive in an audit line.
pub fn made_directive_text(id: i64, directive: &CacheDirective) -> String {
    format!(
        "{{id: {id}, path: {}, replication: {}, pool: {}, expiration: {}}}",
        String::from_utf8_lossy(&directive.path),
        directive.replication,
        directive.pool,
        date(directive.expiry.0)
    )
}

/// What is asked of a directive, in an audit line.
pub fn directive_text(info: &CacheDirectiveInfoProto) -> String {
    let asked = directive_asked(info).unwrap_or_default();
    let mut out = "{".to_owned();
    let mut field = |name: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            let before = if out.len() > 1 { ", " } else { "" };
            let _ = write!(out, "{before}{name}: {value}");
        }
    };
    field("id", asked.id.as_ref().map(|id| id as &dyn Display));
    let path = asked.path.as_deref().map(String::from_utf8_lossy);
    field("path", path.as_ref().map(|path| path as &dyn Display));
    field("replication", asked.replication.as_ref().map(|replication| replication as &dyn Display));
    field("pool", asked.pool.as_ref().map(|pool| pool as &dyn Display));
    field("expiration", asked.expiry.as_ref().map(|expiry| &expiry.text as &dyn Display));
    out.push('}');
    out
}

/// A pool in an audit line.
pub fn pool_text(pool: &PoolAsked) -> String {
    fn or_null(value: Option<impl Display>) -> String {
        value.map_or_else(|| "null".to_owned(), |value| value.to_string())
    }
    format!(
        "{{poolName:{}, ownerName:{}, groupName:{}, mode:{}, limit:{}, defaultReplication:{}, maxRelativeExpiryMs:{}}}",
        pool.name,
        or_null(pool.owner.as_ref()),
        or_null(pool.group.as_ref()),
        or_null(pool.mode.map(|mode| format!("0{:03o}", mode.bits()))),
        or_null(pool.limit),
        or_null(pool.default_replication),
        or_null(pool.longest_life_ms),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `new Path(text).toUri().getPath()` says.
    #[test]
    fn paths_are_those_of_java() {
        let cases = [
            ("/a//b/", "/a/b"),
            ("/", "/"),
            ("a/b", "a/b"),
            ("hdfs://host:8020/x/y", "/x/y"),
            ("hdfs:/x", "/x"),
            ("//h/x", "/x"),
            ("/a/./b/../c", "/a/c"),
            ("/a/.", "/a"),
            ("/../a", "/../a"),
        ];
        for (text, expected) in cases {
            assert_eq!(path(text).unwrap(), expected, "{text}");
        }
        let refused = |text: &str| match path(text) {
            Err(Refusal::IllegalArgument(text)) => text.to_string(),
            other => format!("{other:?}"),
        };
        assert_eq!(refused(""), "Can not create a Path from an empty string");
        assert_eq!(refused("a:b"), "java.net.URISyntaxException: Relative path in absolute URI: a:b");
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_788, (2026, 12, 1)),
            // as Java tells the end of a directive without one
            (26_688_018_579, (73_071_283, 1, 26)),
        ] {
            assert_eq!(civil(days), expected, "{days}");
        }
    }

    #[test]
    fn lengths_of_time_count_days() {
        assert_eq!(duration(0), "000:00:00:00.000");
        assert_eq!(duration(90_061_007), "001:01:01:01.007");
    }
}
