//! JSON with the numbers and the indentation of Java's writers, so that tools that compare text see no difference.

use std::fmt::Write as _;

/// A JSON value. Numbers keep their Java type, since `float` and `double` print differently.
#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// An `int` or a `long`.
    Int(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, members in the order they print.
    Object(Vec<(String, Json)>),
}

macro_rules! from {
    ($($type:ty: $value:ident => $json:expr;)*) => {$(
        impl From<$type> for Json {
            fn from($value: $type) -> Json {
                $json
            }
        }
    )*};
}
from! {
    bool: v => Json::Bool(v);
    i64: v => Json::Int(v);
    i32: v => Json::Int(v.into());
    u32: v => Json::Int(v.into());
    u64: v => Json::Int(v as i64);
    usize: v => Json::Int(v as i64);
    f32: v => Json::Float(v);
    f64: v => Json::Double(v);
    &str: v => Json::Text(v.to_owned());
    String: v => Json::Text(v);
}

impl Json {
    /// An object of these members.
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// On one line without blanks.
    pub fn compact(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, None);
        out
    }

    /// As Jackson's default pretty printer indents it: members on lines of their own, lists in line.
    pub fn pretty(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Some(0));
        out
    }

    fn write(&self, out: &mut String, level: Option<usize>) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Json::Int(n) => drop(write!(out, "{n}")),
            Json::Float(x) => out.push_str(&java_number(&format!("{x:e}"))),
            Json::Double(x) => out.push_str(&java_number(&format!("{x:e}"))),
            Json::Text(s) => quote(s, out),
            Json::List(list) => write_list(list, out, level),
            Json::Object(members) => write_object(members, out, level),
        }
    }
}

fn write_list(list: &[Json], out: &mut String, level: Option<usize>) {
    let (open, between, close) = if level.is_some() { ("[ ", ", ", " ]") } else { ("[", ",", "]") };
    out.push_str(open);
    for (i, item) in list.iter().enumerate() {
        if i > 0 {
            out.push_str(between);
        }
        item.write(out, level);
    }
    out.push_str(if list.is_empty() { close.trim_start() } else { close });
}

fn write_object(members: &[(String, Json)], out: &mut String, level: Option<usize>) {
    let Some(level) = level else {
        out.push('{');
        for (i, (name, value)) in members.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            quote(name, out);
            out.push(':');
            value.write(out, None);
        }
        out.push('}');
        return;
    };
    if members.is_empty() {
        out.push_str("{ }");
        return;
    }
    out.push('{');
    for (i, (name, value)) in members.iter().enumerate() {
        out.push_str(if i > 0 { ",\n" } else { "\n" });
        (0..=level).for_each(|_| out.push_str("  "));
        quote(name, out);
        out.push_str(" : ");
        value.write(out, Some(level + 1));
    }
    out.push('\n');
    (0..level).for_each(|_| out.push_str("  "));
    out.push('}');
}

/// `Float.toString` and `Double.toString`, from the shortest digits that read back in exponential form. What is not a number becomes `0.0`
/// (HADOOP-18954), since JSON has no word for it.
fn java_number(exponential: &str) -> String {
    let Some((mantissa, exponent)) = exponential.split_once('e') else { return "0.0".to_owned() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let tail = |rest: &str| if rest.is_empty() { "0".to_owned() } else { rest.to_owned() };
    if digits.bytes().all(|b| b == b'0') {
        return format!("{sign}0.0");
    }
    match exponent {
        -3..=-1 => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..=6 => {
            let whole = exponent as usize + 1;
            let padded = format!("{digits:0<whole$}");
            format!("{sign}{}.{}", &padded[..whole], tail(&padded[whole..]))
        }
        _ => format!("{sign}{}.{}E{exponent}", &digits[..1], tail(&digits[1..])),
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => drop(write!(out, "\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_as_in_java() {
        let float = |x: f32| Json::Float(x).compact();
        for (x, text) in [
            (0.0013318104, "0.0013318104"),
            (28.02688, "28.02688"),
            (0.0, "0.0"),
            (1.0, "1.0"),
            (100.0, "100.0"),
            (1.5e-5, "1.5E-5"),
            (1.0e10, "1.0E10"),
            (9_999_999.0, "9999999.0"),
            (-2.5, "-2.5"),
            (f32::NAN, "0.0"),
            (f32::INFINITY, "0.0"),
        ] {
            assert_eq!(float(x), text);
        }
        assert_eq!(Json::Double(0.1 + 0.2).compact(), "0.30000000000000004");
    }

    #[test]
    fn pretty_as_jackson() {
        let value = Json::object([
            ("beans", Json::List(vec![Json::object([("a", 1.into()), ("b", Json::Null)]), Json::object([])])),
            ("none", Json::List(vec![])),
            ("text", "q\"\\\n\u{1}é".into()),
        ]);
        let expected = "{\n  \"beans\" : [ {\n    \"a\" : 1,\n    \"b\" : null\n  }, { } ],\n  \"none\" : [ ],\n  \"text\" : \"q\\\"\\\\\\n\\u0001é\"\n}";
        assert_eq!(value.pretty(), expected);
        assert!(serde_json::from_str::<serde_json::Value>(&value.pretty()).is_ok());
        assert_eq!(Json::object([("a", Json::List(vec![1.into(), 2.into()]))]).compact(), r#"{"a":[1,2]}"#);
    }
}
