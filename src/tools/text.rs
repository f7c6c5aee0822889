//! Small pieces of text as Java writes them.

use super::failure::Failure;

/// Milliseconds since 1970 as `yyyy-MM-ddTHH:mm:ss.SSS` in UTC.
pub(super) fn utc(milliseconds: i64) -> String {
    const DAY: i64 = 86_400_000;
    let (year, month, day) = civil(milliseconds.div_euclid(DAY));
    let rest = milliseconds.rem_euclid(DAY);
    let (hour, minute, second) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}", rest % 1000)
}

/// Year, month and day of a count of days since 1970-01-01 (proleptic Gregorian calendar).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Two lower-case hexadecimal digits a byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes of hexadecimal digits.
pub(super) fn unhex(text: &str) -> Result<Vec<u8>, Failure> {
    let bad = || Failure::Content(format!("{text} is no hexadecimal number"));
    let digits: Vec<u32> = text.chars().map(|c| c.to_digit(16)).collect::<Option<_>>().ok_or_else(bad)?;
    if digits.len() % 2 == 1 {
        return Err(bad());
    }
    Ok(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// The time that [`utc`] wrote.
pub(super) fn from_utc(text: &str) -> Result<i64, Failure> {
    let time = format!("{text}Z").parse::<jiff::Timestamp>();
    Ok(time.map_err(|error| Failure::Content(format!("Unparseable date: \"{text}\": {error}")))?.as_millisecond())
}

/// Bytes in the largest unit that leaves at least one, as `StringUtils.byteDesc`: `2 MB`, `1.50 KB`.
pub(super) fn byte_size(bytes: i64) -> String {
    const UNITS: [(&str, u32); 6] = [("EB", 60), ("PB", 50), ("TB", 40), ("GB", 30), ("MB", 20), ("KB", 10)];
    let magnitude = bytes.unsigned_abs();
    match UNITS.iter().find(|(_, shift)| magnitude >= 1 << shift) {
        None => format!("{bytes} B"),
        Some((unit, shift)) if magnitude.is_multiple_of(1 << shift) => format!("{} {unit}", bytes >> shift),
        Some((unit, shift)) => format!("{:.2} {unit}", bytes as f64 / (1u64 << shift) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_1970() {
        assert_eq!(utc(0), "1970-01-01T00:00:00.000");
        assert_eq!(utc(-1), "1969-12-31T23:59:59.999");
        assert_eq!(utc(1_796_728_863_887), "2026-12-08T11:21:03.887");
        assert_eq!(utc(951_782_400_000), "2000-02-29T00:00:00.000");
    }

    #[test]
    fn sizes_have_a_fraction_where_they_do_not_divide() {
        assert_eq!([0, 1023, 2 << 20, 1536].map(byte_size), ["0 B", "1023 B", "2 MB", "1.50 KB"]);
    }
}
