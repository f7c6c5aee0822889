//! Keys that a store of the form JCEKS holds, sealed with a password (`SealedObject`, algorithm `PBEWithMD5AndTripleDES`).

use super::Input;
use super::serialized::{self, Value};
use cbc::cipher::block_padding::Pkcs7;
use cbc::cipher::{BlockModeDecrypt, KeyIvInit};
use md5::{Digest, Md5};

const SALT_BYTES: usize = 8;
/// Rounds that are still tried: Java makes 20 (and, set so, up to 5 million).
const ROUNDS_MAX: u32 = 5_000_000;

/// The object that was sealed.
///
/// # Errors
/// The password is wrong, or it is sealed in another way.
pub fn open(sealed: &Value, password: &str) -> Result<Value, String> {
    let broken = || "the key store holds something that is no sealed key".to_owned();
    match sealed.field("sealAlg") {
        Some(Value::Text(name)) if name == "PBEWithMD5AndTripleDES" => {}
        Some(Value::Text(name)) => return Err(format!("keys sealed with {name} cannot be opened")),
        _ => return Err(broken()),
    }
    let parameters = sealed.bytes("encodedParams").ok_or_else(broken)?;
    let content = sealed.bytes("encryptedContent").ok_or_else(broken)?;
    let (salt, rounds) = salt_and_rounds(parameters).ok_or_else(broken)?;
    let (key, iv) = derived(salt, rounds, password.as_bytes());
    let cipher = cbc::Decryptor::<des::TdesEde3>::new((&key).into(), (&iv).into());
    let plain = cipher.decrypt_padded_vec::<Pkcs7>(content);
    let plain = plain.map_err(|_| "Given final block not properly padded: the password is wrong".to_owned())?;
    serialized::object(&mut Input(&plain)).ok_or_else(broken)
}

/// From `SEQUENCE { OCTET STRING, INTEGER }`.
fn salt_and_rounds(der: &[u8]) -> Option<([u8; SALT_BYTES], u32)> {
    let mut outer = Input(der);
    let mut inner = Input(element(&mut outer, 0x30)?);
    let salt = element(&mut inner, 0x04)?.try_into().ok()?;
    let rounds = element(&mut inner, 0x02)?;
    let number = rounds.iter().try_fold(0_u32, |sum, byte| Some(sum.checked_mul(256)? + u32::from(*byte)))?;
    Some((salt, number)).filter(|_| (1..=ROUNDS_MAX).contains(&number))
}

fn element<'a>(input: &mut Input<'a>, tag: u8) -> Option<&'a [u8]> {
    let found = input.u8()?;
    // all lengths here are below 128
    let length = input.u8().filter(|length| *length < 0x80)?;
    input.bytes(length.into()).filter(|_| found == tag)
}

/// Each half of the salt is digested with the password so and so often; the first gives the first 16 bytes, the second the others.
fn derived(mut salt: [u8; SALT_BYTES], rounds: u32, password: &[u8]) -> ([u8; 24], [u8; 8]) {
    if salt[..4] == salt[4..] {
        // as Java does it, slip included
        for at in 0..2 {
            let saved = salt[at];
            salt[at] = salt[3 - at];
            salt[2] = saved;
        }
    }
    let mut bytes = [0; 32];
    for half in 0..2 {
        let mut digest = salt[half * 4..half * 4 + 4].to_vec();
        for _ in 0..rounds {
            let mut md5 = Md5::new();
            md5.update(&digest);
            md5.update(password);
            digest = md5.finalize().to_vec();
        }
        bytes[half * 16..half * 16 + 16].copy_from_slice(&digest);
    }
    let (mut key, mut iv) = ([0; 24], [0; 8]);
    key.copy_from_slice(&bytes[..24]);
    iv.copy_from_slice(&bytes[24..]);
    (key, iv)
}
