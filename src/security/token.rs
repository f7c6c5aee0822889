//! Delegation tokens: their identifiers as bytes, and the passwords that prove who made them (Hadoop's `DelegationTokenIdentifier`, `SecretManager`).

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use std::fmt;

/// Bytes of a new master key (`hadoop.security.secret-manager.key-length` of 64 bits).
pub const KEY_BYTES: usize = 8;
/// The kind of the tokens of a name node, as clients file them.
pub const KIND: &str = "HDFS_DELEGATION_TOKEN";

/// What a token says about itself. Everybody can read it; the password that belongs to its bytes only the name node can make.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identifier {
    /// User whose rights the token carries.
    pub owner: String,
    /// Short name of the user who may renew and cancel it; may be empty.
    pub renewer: String,
    /// User who asked for it on the owner's behalf; empty if the owner did.
    pub real_user: String,
    /// When it was issued, milliseconds since 1970.
    pub issue_date: i64,
    /// Until when it can be renewed.
    pub max_date: i64,
    /// Its number.
    pub sequence_number: i32,
    /// The key that its password is made with.
    pub master_key_id: i32,
}

/// Why bytes are no identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// They end too early.
    Short,
    /// They are of another version.
    Version(u8),
}

impl Identifier {
    /// Reads the form in which tokens carry it. What follows it is left alone, as Hadoop does.
    ///
    /// # Errors
    /// The bytes are no identifier.
    pub fn decode(bytes: &[u8]) -> Result<Identifier, Malformed> {
        let mut reader = Reader(bytes);
        match reader.byte()? {
            0 => {}
            version => return Err(Malformed::Version(version)),
        }
        Ok(Identifier {
            owner: reader.text()?,
            renewer: reader.text()?,
            real_user: reader.text()?,
            issue_date: reader.number()?,
            max_date: reader.number()?,
            sequence_number: reader.number()? as i32,
            master_key_id: reader.number()? as i32,
        })
    }

    /// The form in which tokens carry it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0];
        for text in [&self.owner, &self.renewer, &self.real_user] {
            put_number(text.len() as i64, &mut out);
            out.extend_from_slice(text.as_bytes());
        }
        for number in [self.issue_date, self.max_date, self.sequence_number.into(), self.master_key_id.into()] {
            put_number(number, &mut out);
        }
        out
    }

    /// The identifier in refusals, in parentheses; `short` is the owner's short name.
    pub fn in_refusal(&self, short: &str) -> String {
        if self.owner.is_empty() {
            return format!("( SequenceNumber={} )", self.sequence_number);
        }
        format!("(token for {short}: {self})")
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{KIND} owner={}, renewer={}, realUser={}, issueDate={}, maxDate={}, sequenceNumber={}, masterKeyId={}",
            self.owner,
            self.renewer,
            self.real_user,
            self.issue_date,
            self.max_date,
            self.sequence_number,
            self.master_key_id
        )
    }
}

fn mac(identifier: &[u8], key: &[u8]) -> Hmac<Sha1> {
    // HMAC takes keys of any length
    let mut mac = Hmac::<Sha1>::new_from_slice(key).unwrap_or_else(|_| unreachable!("a key of any length"));
    mac.update(identifier);
    mac
}

/// The password that belongs to an identifier's bytes under a master key.
pub fn password(identifier: &[u8], key: &[u8]) -> [u8; 20] {
    mac(identifier, key).finalize().into_bytes().into()
}

/// Whether this is the password, compared in constant time.
pub fn is_password(identifier: &[u8], key: &[u8], password: &[u8]) -> bool {
    mac(identifier, key).verify_slice(password).is_ok()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::Short)?;
        self.0 = rest;
        Ok(taken)
    }
    fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }
    /// Hadoop's numbers of variable length (`WritableUtils.readVLong`).
    fn number(&mut self) -> Result<i64, Malformed> {
        let first = self.byte()? as i8;
        if first >= -112 {
            return Ok(first.into());
        }
        let (negative, length) = if first < -120 { (true, -120 - first) } else { (false, -112 - first) };
        let bytes = self.take(length.unsigned_abs().into())?;
        let value = bytes.iter().fold(0_i64, |value, byte| value << 8 | i64::from(*byte));
        Ok(if negative { !value } else { value })
    }
    fn text(&mut self) -> Result<String, Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed::Short)?;
        Ok(String::from_utf8_lossy(self.take(length)?).into_owned())
    }
}

fn put_number(value: i64, out: &mut Vec<u8>) {
    if (-112..=127).contains(&value) {
        out.push(value as u8);
        return;
    }
    let (base, value) = if value < 0 { (-120_i8, !value) } else { (-112, value) };
    let bytes = value.to_be_bytes();
    let zeros = (value.leading_zeros() / 8) as usize;
    out.push((base - (8 - zeros) as i8) as u8);
    out.extend_from_slice(&bytes[zeros..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    /// A token that a name node of Hadoop 3.5.0 issued, and its key from that server's log.
    #[test]
    fn a_token_of_hadoop() {
        let bytes = hex("0005616c696365026a74008a01a22f2f7c9b8a01a2533c009b0102");
        let identifier = Identifier::decode(&bytes).unwrap();
        assert_eq!(
            identifier.in_refusal("alice"),
            "(token for alice: HDFS_DELEGATION_TOKEN owner=alice, renewer=jt, realUser=, issueDate=1796087970971, \
             maxDate=1796692770971, sequenceNumber=1, masterKeyId=2)"
        );
        assert_eq!(identifier.encode(), bytes);
        let key = hex("7abd53f7f426a2c5");
        assert_eq!(password(&bytes, &key)[..], hex("1f60b91ad8db7d44cceaa6b4ced5458c61662145"));
        assert!(is_password(&bytes, &key, &password(&bytes, &key)));
        assert!(!is_password(&bytes, &key, &[0; 20]));
    }

    #[test]
    fn identifiers_come_back() {
        for number in [0, -1, 127, 128, -112, -113, -129, 65_536, i64::MAX, i64::MIN] {
            let identifier = Identifier {
                owner: "ö".repeat(100),
                issue_date: number,
                max_date: -number.max(-i64::MAX),
                sequence_number: number as i32,
                ..Identifier::default()
            };
            let bytes = identifier.encode();
            assert_eq!(Identifier::decode(&bytes), Ok(identifier));
            for end in 1..bytes.len() {
                assert_eq!(Identifier::decode(&bytes[..end]), Err(Malformed::Short), "{number} {end}");
            }
        }
        assert_eq!(Identifier::decode(&[7]), Err(Malformed::Version(7)));
        assert_eq!(Identifier::default().in_refusal(""), "( SequenceNumber=0 )");
    }
}
