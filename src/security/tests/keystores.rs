//! Key stores that Java wrote (`tests/golden/keystores`).

use security::jceks::{KeyStoreFile, password};
use security::keys::{EncryptedKey, KeyError, KeyProvider};
use security::keystore::{Content, entries, trusted};
use std::path::{Path, PathBuf};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/keystores").join(name)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

#[test]
fn trusted_certificates_of_both_forms() {
    let certificate = std::fs::read(golden("server.der")).unwrap();
    for name in ["trust.jks", "trust.p12"] {
        assert_eq!(trusted(&golden(name), Some("changeit")), Ok(vec![certificate.clone()]), "{name}");
        assert!(trusted(&golden(name), Some("wrong")).is_err(), "{name}");
    }
    assert_eq!(trusted(&golden("trust.jks"), None), Ok(vec![certificate]), "its integrity is not looked at");
}

#[test]
fn keys_of_files_that_hadoop_made_are_opened_and_made_anew() {
    let address = format!("jceks://file{}", std::fs::canonicalize(golden("keys.jceks")).unwrap().display());
    let store = KeyStoreFile::new(&address, "none".into()).unwrap();
    assert_eq!(store.cipher("key1"), Ok(Some("AES/CTR/NoPadding".into())));
    assert_eq!(store.cipher("key3"), Ok(None));
    assert_eq!(store.current_version("key1"), Ok("key1@1".into()));
    assert_eq!(store.current_version("key2"), Ok("key2@0".into()));
    assert_eq!(store.generate("key3", 1), Err(KeyError("No KeyVersion exists for key 'key3' ".into())));
    for (key, size) in [("key1", 16), ("key2", 32)] {
        let made = store.generate(key, 3).unwrap();
        assert!(made.iter().all(|made| made.material.len() == size && made.iv.len() == 16));
        assert_ne!(made[0], made[1]);
        assert_eq!(store.reencrypt(key, &made), Ok(made), "they are of the newest version");
    }
    // what Hadoop encrypted with a version is what it is when moved from that version to another and back
    let text = std::fs::read_to_string(golden("keys.tsv")).unwrap();
    let line = text.lines().find(|line| line.starts_with("key1@1") && line.split('\t').count() == 4).unwrap();
    let fields: Vec<&str> = line.split('\t').collect();
    let by_hadoop =
        EncryptedKey { version: "key1@1".into(), iv: bytes(fields[1]).into(), material: bytes(fields[2]).into() };
    let plain = store.decrypt(&by_hadoop).unwrap();
    assert_eq!(plain, bytes(fields[3]));
    let older = EncryptedKey { version: "key1@0".into(), ..by_hadoop };
    let meant = store.decrypt(&older).unwrap();
    let newer = store.reencrypt("key1", &[older]).unwrap();
    assert_eq!((&*newer[0].version, store.decrypt(&newer[0]).unwrap()), ("key1@1", meant));

    let wrong = KeyStoreFile::new(&address, "wrong".into()).unwrap();
    assert!(wrong.cipher("key1").unwrap_err().0.ends_with("Keystore was tampered with, or password was incorrect"));
    let missing = KeyStoreFile::new("jceks://file/nowhere/x.jceks", "none".into()).unwrap();
    assert_eq!(missing.cipher("key1"), Ok(None));
    for address in ["jceks://hdfs@nn/keys", "jceks://file", "localjceks://file/x", ""] {
        assert!(KeyStoreFile::new(address, "none".into()).is_err(), "{address}");
    }
}

#[test]
fn passwords_that_hadoop_stored() {
    let path = std::fs::canonicalize(golden("passwords.jceks")).unwrap();
    for scheme in ["jceks", "localjceks"] {
        let address = format!("{scheme}://file{}", path.display());
        assert_eq!(password(&address, "none", "ldap.password"), Ok(Some("secret-of-ldap".into())));
        assert_eq!(password(&address, "none", "other"), Ok(None));
        assert!(password(&address, "wrong", "ldap.password").is_err());
    }
    assert_eq!(password("jceks://file/nowhere", "none", "x"), Ok(None));
    assert!(password("jceks://hdfs@nn/x", "none", "x").is_err());
}

#[test]
fn damaged_stores_are_refused_and_never_harm() {
    for name in ["keys.jceks", "passwords.jceks", "trust.jks", "trust.p12"] {
        let whole = std::fs::read(golden(name)).unwrap();
        for at in 0..whole.len() {
            // without the digest, so that what is read is looked at
            _ = entries(&whole[..at], None);
            let mut damaged = whole.clone();
            damaged[at] ^= 0x81;
            let read = entries(&damaged, None);
            if let Ok(found) = read {
                for entry in found {
                    if let Content::Secret(secret) = entry.content {
                        // opening one takes 200,000 rounds
                        if at % 800 == 700 {
                            _ = security::keystore::sealed::open(&secret, "none");
                        }
                    }
                }
            }
            assert!(entries(&damaged, Some("none")).is_err(), "{name} {at}");
        }
    }
}
