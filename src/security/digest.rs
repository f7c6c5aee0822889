//! DIGEST-MD5 (RFC 2831) as name nodes speak it to holders of tokens: the user name is the token's identifier, the password its password, and
//! only who calls is proved, not each message.

use crate::sasl::{Exchange, Failure, Step};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use md5::{Digest, Md5};
use std::collections::HashMap;
use vocab::AuthenticationMethod;

/// The name of the mechanism.
pub const MECHANISM: &str = "DIGEST-MD5";
/// Hadoop's realm and host of all servers.
pub const REALM: &str = "default";

/// Whom a token stands for, and its password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// User whose rights count.
    pub owner: String,
    /// User who acts for it.
    pub real: Option<String>,
    /// The token's password.
    pub password: Vec<u8>,
}

/// Finds a token by its identifier's bytes.
pub trait TokenSource: Send + Sync {
    /// Whom it stands for.
    ///
    /// # Errors
    /// It is none that is in force.
    fn holder(&self, identifier: &[u8]) -> Result<Holder, Failure>;
}

/// The exchange with one client: a challenge, its answer, and ours.
pub struct DigestExchange<S> {
    source: S,
    nonce: String,
}

impl<S: TokenSource> DigestExchange<S> {
    /// Begins one; `nonce` is random and never used again.
    pub fn new(source: S, nonce: &[u8]) -> DigestExchange<S> {
        DigestExchange { source, nonce: BASE64.encode(nonce) }
    }

    /// What the client must answer.
    pub fn challenge(&self) -> Vec<u8> {
        format!("realm=\"{REALM}\",nonce=\"{}\",qop=\"auth\",charset=utf-8,algorithm=md5-sess", self.nonce).into_bytes()
    }

    fn prove(&self, response: &[u8]) -> Result<Step, Failure> {
        let fields = directives(response).ok_or_else(|| violation("it is no list of directives"))?;
        let field = |name: &str| fields.get(name).map(String::as_str);
        let required = |name: &str| field(name).ok_or_else(|| violation(&format!("Missing {name}.")));
        let user = required("username")?;
        if required("nonce")? != self.nonce {
            return Err(violation("Mismatched nonce."));
        }
        let (realm, cnonce, nc) = (field("realm").unwrap_or_default(), required("cnonce")?, required("nc")?);
        if realm != REALM {
            return Err(violation(&format!("Nonexistent realm: {realm}")));
        }
        if u32::from_str_radix(nc, 16) != Ok(1) {
            return Err(violation("Nonce count is not that of a first answer."));
        }
        let (uri, qop) = (required("digest-uri")?, field("qop").unwrap_or("auth"));
        if uri != format!("/{REALM}") {
            return Err(violation(&format!("Mismatched URI: {uri}; expecting: /{REALM}")));
        }
        if qop != "auth" {
            return Err(Failure::Refused(format!("{MECHANISM}: invalid choice of qop: {qop}")));
        }
        let identifier = BASE64.decode(user).map_err(|_| violation("The user name is no identifier."))?;
        let holder = self.source.holder(&identifier)?;
        let authorized = field("authzid").filter(|id| !id.is_empty());
        if authorized.is_some_and(|id| id != user) {
            return Err(Failure::Refused(format!("{MECHANISM}: {user} is not authorized to act as another")));
        }
        let session = Session { user, realm, nonce: &self.nonce, cnonce, nc, qop, authorized };
        let secret = session.secret(&holder.password);
        if !equal(required("response")?.as_bytes(), session.response(&secret, "AUTHENTICATE", uri).as_bytes()) {
            return Err(violation("Mismatched response."));
        }
        let token = Some(format!("rspauth={}", session.response(&secret, "", uri)).into_bytes());
        let Holder { owner: principal, real, .. } = holder;
        Ok(Step::Proved { principal, real, method: AuthenticationMethod::Token, token })
    }
}

impl<S: TokenSource> Exchange for DigestExchange<S> {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        if token.is_empty() { Ok(Step::Challenge(self.challenge())) } else { self.prove(token) }
    }
}

fn violation(what: &str) -> Failure {
    Failure::Refused(format!("{MECHANISM}: digest response format violation. {what}"))
}

/// What both sides know of an exchange but for the password.
struct Session<'a> {
    user: &'a str,
    realm: &'a str,
    nonce: &'a str,
    cnonce: &'a str,
    nc: &'a str,
    qop: &'a str,
    authorized: Option<&'a str>,
}

impl Session<'_> {
    /// The digest of A1. The password is that of the token in Base64.
    fn secret(&self, password: &[u8]) -> String {
        let password = BASE64.encode(password);
        let mut a1 = Md5::digest(format!("{}:{}:{password}", self.user, self.realm)).to_vec();
        a1.extend_from_slice(format!(":{}:{}", self.nonce, self.cnonce).as_bytes());
        if let Some(authorized) = self.authorized {
            a1.extend_from_slice(format!(":{authorized}").as_bytes());
        }
        hex(&Md5::digest(a1))
    }
    fn response(&self, secret: &str, verb: &str, uri: &str) -> String {
        let a2 = hex(&Md5::digest(format!("{verb}:{uri}")));
        hex(&Md5::digest(format!("{secret}:{}:{}:{}:{}:{a2}", self.nonce, self.nc, self.cnonce, self.qop)))
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Comparison whose time does not tell where the first difference is.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |seen, (a, b)| seen | (a ^ b)) == 0
}

/// `name=value` or `name="value"`, separated by commas; a backslash in quotes takes the next character as it is.
fn directives(bytes: &[u8]) -> Option<HashMap<String, String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut found = HashMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = if after.starts_with('"') {
            chars.next();
            loop {
                match chars.next()? {
                    (_, '\\') => value.push(chars.next()?.1),
                    (at, '"') => break at + 1,
                    (_, other) => value.push(other),
                }
            }
        } else {
            let end = after.find(',').unwrap_or(after.len());
            value.push_str(after[..end].trim());
            end
        };
        found.insert(name.trim().to_ascii_lowercase(), value);
        rest = after[end..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One;

    impl TokenSource for One {
        fn holder(&self, identifier: &[u8]) -> Result<Holder, Failure> {
            match identifier {
                b"chris" => Ok(Holder { owner: "c".into(), real: None, password: b"secret".to_vec() }),
                _ => Err(Failure::BadToken("not found".into())),
            }
        }
    }

    fn answer(exchange: &DigestExchange<One>, user: &[u8], password: &[u8]) -> Vec<u8> {
        let user = BASE64.encode(user);
        let session = Session {
            user: &user,
            realm: REALM,
            nonce: &exchange.nonce,
            cnonce: "c,\\n",
            nc: "00000001",
            qop: "auth",
            authorized: None,
        };
        let response = session.response(&session.secret(password), "AUTHENTICATE", "/default");
        format!(
            "charset=utf-8,username=\"{user}\",realm=\"default\",nonce=\"{}\",nc=00000001,cnonce=\"c,\\\\n\",\
             digest-uri=\"/default\",maxbuf=65536,response={response},qop=auth",
            exchange.nonce
        )
        .into_bytes()
    }

    #[test]
    fn a_token_s_password_proves_its_owner() {
        let mut exchange = DigestExchange::new(One, &[1, 2, 3]);
        let Ok(Step::Challenge(challenge)) = exchange.step(b"") else { panic!() };
        assert_eq!(challenge, b"realm=\"default\",nonce=\"AQID\",qop=\"auth\",charset=utf-8,algorithm=md5-sess");
        let good = answer(&exchange, b"chris", b"secret");
        let Ok(Step::Proved { principal, real, token, .. }) = exchange.step(&good) else { panic!() };
        assert_eq!((principal.as_str(), real), ("c", None));
        assert!(token.unwrap().starts_with(b"rspauth="));
        let wrong = answer(&exchange, b"chris", b"guess");
        let text = "DIGEST-MD5: digest response format violation. Mismatched response.";
        assert_eq!(exchange.step(&wrong), Err(Failure::Refused(text.into())));
        let other = answer(&exchange, b"kim", b"secret");
        assert_eq!(exchange.step(&other), Err(Failure::BadToken("not found".into())));
        let replayed = answer(&DigestExchange::new(One, &[9]), b"chris", b"secret");
        let text = "DIGEST-MD5: digest response format violation. Mismatched nonce.";
        assert_eq!(exchange.step(&replayed), Err(Failure::Refused(text.into())));
        for garbage in [&b"x"[..], b"a=\"", b"a=\"\\", b"a=\"b\"c", b"\xff", b"=,=,", b"username=\"\""] {
            assert!(exchange.step(garbage).is_err());
        }
    }

    /// The example of RFC 2831, section 4, with its realm, host and service.
    #[test]
    fn the_example_of_the_rfc() {
        let session = Session {
            user: "chris",
            realm: "elwood.innosoft.com",
            nonce: "OA6MG9tEQGm2hh",
            cnonce: "OA6MHXh6VqTrRk",
            nc: "00000001",
            qop: "auth",
            authorized: None,
        };
        let mut a1 = Md5::digest("chris:elwood.innosoft.com:secret").to_vec();
        a1.extend_from_slice(b":OA6MG9tEQGm2hh:OA6MHXh6VqTrRk");
        let secret = hex(&Md5::digest(a1));
        let uri = "imap/elwood.innosoft.com";
        assert_eq!(session.response(&secret, "AUTHENTICATE", uri), "d388dad90d4bbd760a152321f2143af7");
        assert_eq!(session.response(&secret, "", uri), "ea40f60335c427b5527b84dbabcdfffd");
    }
}
