//! What Hadoop keeps in key store files: keys of encryption zones (`JavaKeyStoreProvider`), read again whenever the file has changed, and passwords
//! (`JavaKeyStoreProvider` of credentials). Nothing is ever written.

use crate::keys::{EncryptedKey, KeyError, KeyProvider};
use crate::keystore::{self, Content, Input, sealed, serialized::Value};
use aes::{Aes128, Aes192, Aes256};
use ctr::cipher::{KeyIvInit, StreamCipher};
use parking_lot::Mutex;
use rand::RngExt;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

const IV_BYTES: usize = 16;
const CIPHER: &str = "AES/CTR/NoPadding";

/// What a key is, and how many versions it has.
#[derive(Clone, PartialEq, Debug)]
struct About {
    cipher: String,
    versions: u64,
}

/// What lies in the file.
#[derive(Debug, Default)]
struct Store {
    about: HashMap<String, About>,
    /// Material of versions, by their names.
    material: HashMap<String, Vec<u8>>,
}

/// A key store file.
#[derive(Debug)]
pub struct KeyStoreFile {
    path: PathBuf,
    password: String,
    read: Mutex<Option<(SystemTime, Arc<Store>)>>,
}

impl KeyStoreFile {
    /// From `jceks://file/path`. The file need not be there yet.
    ///
    /// # Errors
    /// What of the address is not supported.
    pub fn new(address: &str, password: String) -> Result<KeyStoreFile, String> {
        let path = local_path(address, &["jceks://"])?.into();
        Ok(KeyStoreFile { path, password, read: Mutex::default() })
    }

    fn store(&self) -> Result<Arc<Store>, KeyError> {
        let failed = |problem: String| KeyError(format!("{}: {problem}", self.path.display()));
        let changed = match std::fs::metadata(&self.path).and_then(|found| found.modified()) {
            Ok(changed) => changed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut read = self.read.lock();
        if let Some((_, store)) = read.as_ref().filter(|(at, _)| *at == changed) {
            return Ok(store.clone());
        }
        let store = Arc::new(load(&self.path, &self.password).map_err(failed)?);
        *read = Some((changed, store.clone()));
        Ok(store)
    }

    /// The key of a file, decrypted. A name node never needs it.
    ///
    /// # Errors
    /// There is no such version.
    pub fn decrypt(&self, key: &EncryptedKey) -> Result<Vec<u8>, KeyError> {
        let store = self.store()?;
        opened(&store, key)
    }

    fn current(&self, store: &Store, key: &str) -> Result<(String, Vec<u8>), KeyError> {
        let none = || KeyError(format!("No KeyVersion exists for key '{key}' "));
        let about = store.about.get(&key.to_lowercase()).ok_or_else(none)?;
        let name = format!("{key}@{}", about.versions.saturating_sub(1));
        let material = store.material.get(&name.to_lowercase()).ok_or_else(none)?;
        Ok((name, material.clone()))
    }
}

/// The path in an address whose file system is the local one: `jceks://file/path`, `jceks://file@/path`.
fn local_path<'a>(address: &'a str, schemes: &[&str]) -> Result<&'a str, String> {
    let rest = schemes.iter().find_map(|scheme| address.strip_prefix(scheme)).unwrap_or_default();
    let path = rest.strip_prefix("file@").or_else(|| rest.strip_prefix("file"));
    let path = path.filter(|path| path.starts_with('/'));
    path.ok_or_else(|| format!("{address}: only key stores in local files are supported"))
}

/// A password that a store of passwords holds under a name (Hadoop's `hadoop credential`; `jceks://file/path`, `localjceks://file/path`); nothing
/// where there is no such file or name.
///
/// # Errors
/// What of the address is not supported; a store that cannot be opened.
pub fn password(address: &str, of_store: &str, alias: &str) -> Result<Option<String>, String> {
    let path = local_path(address, &["jceks://", "localjceks://"])?;
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{address}: {error}")),
    };
    let named = |problem: String| format!("{address}: {problem}");
    let entries = keystore::entries(&bytes, Some(of_store)).map_err(named)?;
    let found = entries.into_iter().find(|entry| entry.alias == alias.to_lowercase());
    let Some(Content::Secret(secret)) = found.map(|entry| entry.content) else { return Ok(None) };
    let opened = sealed::open(&secret, of_store).map_err(named)?;
    Ok(opened.bytes("key").map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

fn load(path: &Path, password: &str) -> Result<Store, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut store = Store::default();
    for entry in keystore::entries(&bytes, Some(password))? {
        let Content::Secret(secret) = entry.content else { continue };
        let opened = sealed::open(&secret, password)?;
        match &opened {
            Value::Object { class, data, .. } if class.ends_with("$KeyMetadata") => {
                let about = about(data).ok_or_else(|| format!("{}: no metadata of a key", entry.alias))?;
                store.about.insert(entry.alias, about);
            }
            _ => {
                let material = opened.bytes("key").ok_or_else(|| format!("{}: no key", entry.alias))?;
                store.material.insert(entry.alias, material.to_vec());
            }
        }
    }
    Ok(store)
}

/// A length, and JSON.
fn about(data: &[u8]) -> Option<About> {
    let json: serde_json::Value = serde_json::from_slice(Input(data).block()?).ok()?;
    Some(About { cipher: json["cipher"].as_str()?.to_owned(), versions: json["versions"].as_u64()? })
}

/// Encrypts or decrypts, which is the same here. The vector of the key that protects is that of the protected one, inverted.
fn protected(key: &[u8], iv: &[u8], bytes: &[u8]) -> Result<Vec<u8>, KeyError> {
    let inverted: Vec<u8> = iv.iter().map(|byte| !byte).collect();
    let mut out = bytes.to_vec();
    let wrong = |_| KeyError(format!("Invalid AES key length: {} bytes", key.len()));
    match key.len() {
        16 => ctr::Ctr128BE::<Aes128>::new_from_slices(key, &inverted).map_err(wrong)?.apply_keystream(&mut out),
        24 => ctr::Ctr128BE::<Aes192>::new_from_slices(key, &inverted).map_err(wrong)?.apply_keystream(&mut out),
        _ => ctr::Ctr128BE::<Aes256>::new_from_slices(key, &inverted).map_err(wrong)?.apply_keystream(&mut out),
    }
    Ok(out)
}

fn opened(store: &Store, key: &EncryptedKey) -> Result<Vec<u8>, KeyError> {
    let version = store.material.get(&key.version.to_lowercase());
    let version = version.ok_or_else(|| KeyError(format!("KeyVersion name '{}' does not exist", key.version)))?;
    protected(version, &key.iv, &key.material)
}

impl KeyProvider for KeyStoreFile {
    fn cipher(&self, key: &str) -> Result<Option<String>, KeyError> {
        Ok(self.store()?.about.get(&key.to_lowercase()).map(|about| about.cipher.clone()))
    }

    fn current_version(&self, key: &str) -> Result<String, KeyError> {
        let store = self.store()?;
        self.current(&store, key).map(|(name, _)| name)
    }

    fn generate(&self, key: &str, count: usize) -> Result<Vec<EncryptedKey>, KeyError> {
        let store = self.store()?;
        let (version, zone_key) = self.current(&store, key)?;
        if store.about.get(&key.to_lowercase()).is_some_and(|about| about.cipher != CIPHER) {
            return Err(KeyError(format!("keys of other ciphers than {CIPHER} are not supported in key stores")));
        }
        let mut random = rand::rng();
        let mut one = || {
            let iv: [u8; IV_BYTES] = random.random();
            let mut plain = vec![0; zone_key.len()];
            random.fill(&mut plain[..]);
            let material = protected(&zone_key, &iv, &plain)?.into();
            Ok(EncryptedKey { version: version.as_str().into(), iv: iv[..].into(), material })
        };
        (0..count).map(|_| one()).collect()
    }

    fn reencrypt(&self, key: &str, old: &[EncryptedKey]) -> Result<Vec<EncryptedKey>, KeyError> {
        let store = self.store()?;
        let (version, zone_key) = self.current(&store, key)?;
        let one = |old: &EncryptedKey| {
            if *old.version == *version {
                return Ok(old.clone());
            }
            let plain = opened(&store, old)?;
            let material = protected(&zone_key, &old.iv, &plain)?.into();
            Ok(EncryptedKey { version: version.as_str().into(), iv: old.iv.clone(), material })
        };
        old.iter().map(one).collect()
    }
}
