//! From the text of a value to its type, with Hadoop's rules and Java's messages. Pure: no key, no configuration.

use std::time::Duration;

/// Java's `String.trim`: everything up to the blank goes, control characters too.
pub fn trim(text: &str) -> &str {
    text.trim_matches(|c| c <= ' ')
}

/// Units that a duration may carry; also what a bare number means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
}

impl Unit {
    const fn nanoseconds(self) -> i128 {
        match self {
            Unit::Milliseconds => 1_000_000,
            Unit::Seconds => 1_000_000_000,
        }
    }

    /// `count` of these units; nothing if negative.
    pub fn duration(self, count: i64) -> Option<Duration> {
        let count = u64::try_from(count).ok()?;
        Some(match self {
            Unit::Milliseconds => Duration::from_millis(count),
            Unit::Seconds => Duration::from_secs(count),
        })
    }
}

fn not_a_number(text: &str) -> String {
    format!("For input string: \"{text}\"")
}

/// The digits of a hexadecimal number with its sign, if it starts with `0x` or `0X`.
fn hexadecimal(text: &str) -> Option<String> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    Some(format!("{sign}{digits}"))
}

/// `getInt`: decimal or `0x` hexadecimal, 32 bits with sign.
pub fn int(text: &str) -> Result<i32, String> {
    let text = trim(text);
    match hexadecimal(text) {
        Some(digits) => i32::from_str_radix(&digits, 16).map_err(|_| not_a_number(&digits) + " under radix 16"),
        None => text.parse().map_err(|_| not_a_number(text)),
    }
}

/// `getLong`: decimal or `0x` hexadecimal, 64 bits with sign.
pub fn long(text: &str) -> Result<i64, String> {
    let text = trim(text);
    match hexadecimal(text) {
        Some(digits) => i64::from_str_radix(&digits, 16).map_err(|_| not_a_number(&digits) + " under radix 16"),
        None => text.parse().map_err(|_| not_a_number(text)),
    }
}

/// `getLongBytes`: a number with one of the binary prefixes k, m, g, t, p, e behind it.
pub fn long_bytes(text: &str) -> Result<i64, String> {
    let text = trim(text);
    let Some(last) = text.chars().next_back() else {
        return Err("String index out of range: -1".into());
    };
    if last.is_ascii_digit() {
        return text.parse().map_err(|_| not_a_number(text));
    }
    let Some(power) = "kmgtpe".find(last.to_ascii_lowercase()) else {
        return Err(format!(
            "Invalid size prefix '{last}' in '{text}'. Allowed prefixes are k, m, g, t, p, e(case insensitive)"
        ));
    };
    let number = &text[..text.len() - last.len_utf8()];
    let number: i64 = number.parse().map_err(|_| not_a_number(number))?;
    number.checked_mul(1 << (10 * (power + 1))).ok_or_else(|| format!("{text} does not fit in a Long"))
}

/// `getTimeDuration`: a number with ns, us, ms, s, m, h or d behind it, or in `unit`; cut to whole `unit`s, saturating.
pub fn time_duration(text: &str, unit: Unit) -> Result<i64, String> {
    const SUFFIXES: [(&str, i128); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
    ];
    let text = trim(text).to_lowercase();
    let (number, scale) = SUFFIXES
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)))
        .unwrap_or((&text, unit.nanoseconds()));
    let number: i64 = number.parse().map_err(|_| not_a_number(number))?;
    let count = i128::from(number) * scale / unit.nanoseconds();
    Ok(i64::try_from(count).unwrap_or(if count < 0 { i64::MIN } else { i64::MAX }))
}

/// `getDouble`: Java's decimal notation, an `f` or `d` may follow.
pub fn double(text: &str) -> Result<f64, String> {
    real(text)
}

/// `getFloat`: the same in single precision.
pub fn float(text: &str) -> Result<f32, String> {
    real(text)
}

fn real<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    let text = trim(text);
    if text.is_empty() {
        return Err("empty String".into());
    }
    if matches!(text.strip_prefix(['+', '-']).unwrap_or(text), "NaN" | "Infinity") {
        return text.parse().map_err(|_| not_a_number(text));
    }
    let digits = text.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text);
    if digits.chars().any(|c| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E')) {
        return Err(not_a_number(text)); // Rust would take `inf` and `nan`
    }
    digits.parse().map_err(|_| not_a_number(text))
}

/// `getBoolean`: `true` or `false` in any case; nothing for anything else (the default then counts).
pub fn boolean(text: &str) -> Option<bool> {
    let text = trim(text);
    if text.eq_ignore_ascii_case("true") {
        return Some(true);
    }
    text.eq_ignore_ascii_case("false").then_some(false)
}

/// `getTrimmedStringCollection`: separated by commas or line ends, without blanks, empty ones and repetitions.
pub fn trimmed_strings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split([',', '\n']).map(trim) {
        if !word.is_empty() && !found.iter().any(|known| known == word) {
            found.push(word.to_string());
        }
    }
    found
}

/// `getTrimmedStrings`: the same with empty ones, but for those at the end, and repetitions.
pub fn trimmed_items(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for item in text.split(',').map(trim) {
        // a line end separates too, and is a blank beside a comma
        let words = item.split('\n').map(trim).filter(|word| item.is_empty() || !word.is_empty());
        found.extend(words.map(str::to_owned));
    }
    found.truncate(found.iter().rposition(|item| !item.is_empty()).map_or(0, |last| last + 1));
    found
}

#[cfg(test)]
mod tests;
