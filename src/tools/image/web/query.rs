//! The target of a request, taken apart as Netty's `QueryStringDecoder` does.

use super::answer::Refusal;

const PREFIX: &str = "/webhdfs/v1";

/// A path and parameters.
#[derive(Debug)]
pub(super) struct Query {
    /// Whole, with what WebHDFS puts before paths.
    target: String,
    parameters: Vec<(String, String)>,
}

impl Query {
    /// Decodes a target.
    pub(super) fn parse(target: &str) -> Result<Query, Refusal> {
        let target = target.split('#').next().unwrap_or_default();
        let question = target.find('?').unwrap_or(target.len());
        let (mut parameters, mut at) = (Vec::new(), question + 1);
        while at < target.len() {
            let end = target[at..].find(['&', ';']).map_or(target.len(), |length| at + length);
            let equals = target[at..end].find('=').map_or(end, |length| at + length);
            if equals > at {
                let value = if equals < end { decoded(target, equals + 1, end, false)? } else { String::new() };
                parameters.push((decoded(target, at, equals, false)?, value));
            }
            at = end + 1;
        }
        Ok(Query { target: decoded(target, 0, question, true)?, parameters })
    }

    /// The path behind WebHDFS's own.
    pub(super) fn path(&self) -> Result<&str, Refusal> {
        self.target
            .strip_prefix(PREFIX)
            .ok_or_else(|| Refusal::not_found(&format!("Path: {} should start with {PREFIX}", self.target)))
    }

    /// The first value of a parameter.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).next()
    }

    /// All values of a parameter.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.parameters.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Part of a target, decoded; `+` is a blank except in a path.
fn decoded(target: &str, from: usize, to: usize, is_path: bool) -> Result<String, Refusal> {
    let (mut bytes, mut at) = (Vec::with_capacity(to - from), from);
    while at < to {
        let byte = target.as_bytes()[at];
        at += 1;
        match byte {
            b'%' => {
                let digits = target.as_bytes().get(at..(at + 2).min(to)).filter(|digits| digits.len() == 2);
                let unterminated = || format!("unterminated escape sequence at index {} of: {target}", at - 1);
                let digits = digits.ok_or_else(|| Refusal::illegal(Some(&unterminated())))?;
                let digits = String::from_utf8_lossy(digits);
                let wrong = || format!("invalid hex byte '{digits}' at index {at} of '{target}'");
                let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let number = is_hex.then(|| u8::from_str_radix(&digits, 16).ok()).flatten();
                bytes.push(number.ok_or_else(|| Refusal::illegal(Some(&wrong())))?);
                at += 2;
            }
            b'+' if !is_path => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_taken_apart() {
        let query = Query::parse("/webhdfs/v1/a+%62?op=X+Y&op=Z;c&=d&e=%3D#f").expect("parses");
        assert_eq!(query.path().expect("a path"), "/a+b");
        assert_eq!(query.values("op").collect::<Vec<_>>(), ["X Y", "Z"]);
        assert_eq!((query.value("c"), query.value("e"), query.value("f")), (Some(""), Some("="), None));
        for (target, expected) in [
            ("/%4?x", "unterminated escape sequence at index 1 of: /%4?x"),
            ("/?a=%zz", "invalid hex byte 'zz' at index 5 of '/?a=%zz'"),
        ] {
            assert_eq!(Query::parse(target).expect_err("refused").message.as_deref(), Some(expected));
        }
    }
}
