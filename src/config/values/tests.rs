//! The answers of Hadoop 3.5.0's `Configuration` to the same texts.
use super::*;

fn shown<T: std::fmt::Debug>(result: Result<T, String>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(problem) => problem,
    }
}

#[track_caller]
fn check<T: std::fmt::Debug>(parse: impl Fn(&str) -> Result<T, String>, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(shown(parse(text)), *expected, "for {text:?}");
    }
}

#[test]
fn get_int() {
    check(
        int,
        &[
            ("", "For input string: \"\""),
            ("  ", "For input string: \"\""),
            (" 5 ", "5"),
            ("-5", "-5"),
            ("+5", "5"),
            ("0x1F", "31"),
            ("-0x1f", "-31"),
            ("0X1F", "31"),
            ("0xFFFFFFFF", "For input string: \"FFFFFFFF\" under radix 16"),
            ("2147483648", "For input string: \"2147483648\""),
            ("x", "For input string: \"x\""),
            ("5.0", "For input string: \"5.0\""),
            ("5k", "For input string: \"5k\""),
            ("0x", "For input string: \"\" under radix 16"),
            ("-0x", "For input string: \"-\" under radix 16"),
            ("1_000", "For input string: \"1_000\""),
            ("- 5", "For input string: \"- 5\""),
        ],
    );
}

#[test]
fn get_long() {
    check(
        long,
        &[
            ("5", "5"),
            ("0x7fffffffffffffff", "9223372036854775807"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "For input string: \"9223372036854775808\""),
            ("5L", "For input string: \"5L\""),
            ("0xg", "For input string: \"g\" under radix 16"),
        ],
    );
}

#[test]
fn get_long_bytes() {
    const KNOWN: &str = "Allowed prefixes are k, m, g, t, p, e(case insensitive)";
    check(
        long_bytes,
        &[
            ("", "String index out of range: -1"),
            ("5", "5"),
            ("5k", "5120"),
            ("5K", "5120"),
            ("5 k", "For input string: \"5 \""),
            ("64m", "67108864"),
            ("1g", "1073741824"),
            ("1t", "1099511627776"),
            ("1p", "1125899906842624"),
            ("1e", "1152921504606846976"),
            ("8e", "8e does not fit in a Long"),
            ("-5k", "-5120"),
            ("+5k", "5120"),
            ("1.5k", "For input string: \"1.5\""),
            ("1b", &format!("Invalid size prefix 'b' in '1b'. {KNOWN}")),
            ("64mb", &format!("Invalid size prefix 'b' in '64mb'. {KNOWN}")),
            ("k", "For input string: \"\""),
            ("0x10", "For input string: \"0x10\""),
            ("9223372036854775807k", "9223372036854775807k does not fit in a Long"),
        ],
    );
}

#[test]
fn get_time_duration() {
    check(
        |text| time_duration(text, Unit::Seconds),
        &[
            ("", "For input string: \"\""),
            ("5", "5"),
            ("5s", "5"),
            ("5S", "5"),
            ("5 s", "For input string: \"5 \""),
            ("5ms", "0"),
            ("1500ms", "1"),
            ("1m", "60"),
            ("1h", "3600"),
            ("2D", "172800"),
            ("1us", "0"),
            ("5000000000ns", "5"),
            ("-5s", "-5"),
            ("x", "For input string: \"x\""),
            ("5x", "For input string: \"5x\""),
            ("s", "For input string: \"\""),
            ("1.5s", "For input string: \"1.5\""),
            ("5ss", "For input string: \"5s\""),
            ("99999999999999999d", "9223372036854775807"),
        ],
    );
    check(
        |text| time_duration(text, Unit::Milliseconds),
        &[("5", "5"), ("5s", "5000"), ("1500us", "1"), ("-1", "-1"), ("99999999999d", "8639999999913600000")],
    );
    assert_eq!(Unit::Seconds.duration(-1), None);
}

#[test]
fn get_double() {
    check(
        double,
        &[
            ("", "empty String"),
            ("0.999f", "0.999"),
            ("1e3", "1000.0"),
            (" 2 ", "2.0"),
            ("x", "For input string: \"x\""),
            ("inf", "For input string: \"inf\""),
            ("NaN", "NaN"),
            ("Infinity", "inf"),
            ("0.5d", "0.5"),
            ("1.", "1.0"),
            (".5", "0.5"),
            ("1,5", "For input string: \"1,5\""),
        ],
    );
}

#[test]
fn get_boolean() {
    for (text, expected) in [
        ("true", Some(true)),
        (" tRue ", Some(true)),
        (" False ", Some(false)),
        ("", None),
        ("no", None),
        ("0", None),
        ("yes", None),
    ] {
        assert_eq!(boolean(text), expected, "for {text:?}");
    }
}

#[test]
fn get_trimmed_string_collection() {
    for (text, expected) in [
        ("", vec![]),
        (" ", vec![]),
        (",", vec![]),
        (" a , b ,, c ", vec!["a", "b", "c"]),
        ("a,\n b", vec!["a", "b"]),
        ("a,a", vec!["a"]),
    ] {
        assert_eq!(trimmed_strings(text), expected, "for {text:?}");
    }
}

#[test]
fn items_may_be_empty_but_at_the_end() {
    for (text, expected) in [
        ("", vec![]),
        (" ", vec![]),
        (" , ", vec![]),
        ("a,,b", vec!["a", "", "b"]),
        (",,a", vec!["", "", "a"]),
        (" a , ,b,,c,, ", vec!["a", "", "b", "", "c"]),
        ("a,a", vec!["a", "a"]),
        ("a\n\nb", vec!["a", "b"]),
        (",\na", vec!["", "a"]),
    ] {
        assert_eq!(trimmed_items(text), expected, "for {text:?}");
    }
}
