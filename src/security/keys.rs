//! Keys of encryption zones: whoever keeps them makes encrypted keys for files in advance, so that a file is seldom made to wait for one.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a key is not to be had; the text is for the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyError(pub String);

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A key for a file, encrypted with a version of a zone's key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncryptedKey {
    /// Which version.
    pub version: Arc<str>,
    /// Initialisation vector.
    pub iv: Arc<[u8]>,
    /// The key, encrypted.
    pub material: Arc<[u8]>,
}

/// Who keeps keys. All calls wait for a disk or a network.
pub trait KeyProvider: Send + Sync + fmt::Debug {
    /// The cipher of a key by Java's name; `None` if there is no such key.
    ///
    /// # Errors
    /// The provider cannot tell.
    fn cipher(&self, key: &str) -> Result<Option<String>, KeyError>;
    /// Name of the newest version of a key.
    ///
    /// # Errors
    /// There is no such key, or the provider cannot tell.
    fn current_version(&self, key: &str) -> Result<String, KeyError>;
    /// New keys for files.
    ///
    /// # Errors
    /// There is no such key, or the provider cannot make any.
    fn generate(&self, key: &str, count: usize) -> Result<Vec<EncryptedKey>, KeyError>;
    /// The same keys, encrypted with the newest version, in the same order.
    ///
    /// # Errors
    /// The provider cannot do it.
    fn reencrypt(&self, key: &str, old: &[EncryptedKey]) -> Result<Vec<EncryptedKey>, KeyError>;
    /// Forgets what is remembered of a key.
    fn forget(&self, _key: &str) {}
}

/// How many keys are made in advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// Keys kept for each zone's key (`hadoop.security.kms.client.encrypted.key.cache.size`).
    pub size: usize,
    /// With less than this part of them left, more are fetched (`...cache.low-watermark`).
    pub low: f32,
    /// How long they are kept (`...cache.expiry`).
    pub expiry: Duration,
}

impl Default for Advance {
    fn default() -> Advance {
        Advance { size: 500, low: 0.3, expiry: Duration::from_secs(43_200) }
    }
}

/// The keys of a name node: a provider, and keys that it has made in advance.
#[derive(Debug)]
pub struct Keys {
    provider: Box<dyn KeyProvider>,
    advance: Advance,
    ready: Mutex<HashMap<Arc<str>, VecDeque<(Instant, EncryptedKey)>>>,
    filling: Mutex<HashSet<Arc<str>>>,
}

impl Keys {
    /// Of a provider.
    pub fn new(provider: Box<dyn KeyProvider>, advance: Advance) -> Keys {
        Keys { provider, advance, ready: Mutex::default(), filling: Mutex::default() }
    }
    /// Who keeps them.
    pub fn provider(&self) -> &dyn KeyProvider {
        &*self.provider
    }
    fn low(&self) -> usize {
        (self.advance.size as f32 * self.advance.low) as usize
    }

    /// A key that was made in advance, without waiting; and whether more should be fetched.
    pub fn take_ready(&self, key: &str) -> (Option<EncryptedKey>, bool) {
        let mut ready = self.ready.lock();
        let Some(queue) = ready.get_mut(key) else { return (None, true) };
        let is_old = |made: &Instant| made.elapsed() >= self.advance.expiry;
        while queue.front().is_some_and(|(made, _)| is_old(made)) {
            queue.pop_front();
        }
        let taken = queue.pop_front().map(|(_, key)| key);
        (taken, queue.len() < self.low())
    }

    /// A key, fetched if there is none ready.
    ///
    /// # Errors
    /// The provider's.
    pub fn take(&self, key: &str) -> Result<EncryptedKey, KeyError> {
        if let (Some(ready), _) = self.take_ready(key) {
            return Ok(ready);
        }
        self.add(key, self.low().max(1))?;
        let (taken, _) = self.take_ready(key);
        taken.ok_or_else(|| KeyError(format!("No key was made for {key}")))
    }

    fn add(&self, key: &str, count: usize) -> Result<(), KeyError> {
        let made = self.provider.generate(key, count)?;
        let now = Instant::now();
        let mut ready = self.ready.lock();
        ready.entry(key.into()).or_default().extend(made.into_iter().map(|key| (now, key)));
        Ok(())
    }

    /// Fetches keys until there are as many as are to be kept. One caller at a time does it for a key; others return at once.
    ///
    /// # Errors
    /// The provider's; what it has made so far is kept.
    pub fn fill(&self, key: &str) -> Result<(), KeyError> {
        let name: Arc<str> = key.into();
        if !self.filling.lock().insert(name.clone()) {
            return Ok(());
        }
        let filled = self.fill_alone(key);
        self.filling.lock().remove(&name);
        filled
    }

    /// Fetches the first keys for a zone's key, if there are none yet.
    ///
    /// # Errors
    /// The provider's.
    pub fn warm_up(&self, key: &str) -> Result<(), KeyError> {
        let is_empty = self.ready.lock().get(key).is_none_or(VecDeque::is_empty);
        if is_empty { self.add(key, self.low().max(1)) } else { Ok(()) }
    }

    fn fill_alone(&self, key: &str) -> Result<(), KeyError> {
        loop {
            let there = self.ready.lock().get(key).map_or(0, VecDeque::len);
            if there >= self.advance.size {
                return Ok(());
            }
            self.add(key, (self.advance.size - there).min(self.low().max(1)))?;
        }
    }

    /// Forgets keys that were made in advance: the zone's key has another version now.
    pub fn forget(&self, key: &str) {
        self.ready.lock().remove(key);
        self.provider.forget(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Counting(AtomicUsize);

    impl KeyProvider for Arc<Counting> {
        fn cipher(&self, _: &str) -> Result<Option<String>, KeyError> {
            Ok(None)
        }
        fn current_version(&self, key: &str) -> Result<String, KeyError> {
            Ok(format!("{key}@0"))
        }
        fn generate(&self, key: &str, count: usize) -> Result<Vec<EncryptedKey>, KeyError> {
            if key == "none" {
                return Err(KeyError("no such key".into()));
            }
            let made = |n: usize| EncryptedKey {
                version: key.into(),
                iv: [n as u8][..].into(),
                material: [self.0.fetch_add(1, Ordering::Relaxed) as u8][..].into(),
            };
            Ok((0..count).map(made).collect())
        }
        fn reencrypt(&self, _: &str, old: &[EncryptedKey]) -> Result<Vec<EncryptedKey>, KeyError> {
            Ok(old.to_vec())
        }
    }

    #[test]
    fn keys_are_made_in_advance_and_given_once() {
        let made = Arc::new(Counting::default());
        let advance = Advance { size: 10, low: 0.3, ..Advance::default() };
        let keys = Keys::new(Box::new(made.clone()), advance);
        assert_eq!(keys.take_ready("k"), (None, true));
        assert_eq!(keys.take("k").unwrap().material[0], 0);
        assert_eq!(made.0.load(Ordering::Relaxed), 3);
        keys.warm_up("k").unwrap();
        assert_eq!(made.0.load(Ordering::Relaxed), 3, "there are some");
        assert_eq!(keys.warm_up("none"), Err(KeyError("no such key".into())));
        keys.fill("k").unwrap();
        assert_eq!(made.0.load(Ordering::Relaxed), 11, "ten are ready");
        let mut seen: Vec<u8> = (0..7).map(|_| keys.take("k").unwrap().material[0]).collect();
        assert!(!keys.take_ready("none").1 || keys.take_ready("k").1, "less than three are left");
        seen.dedup();
        assert_eq!(seen.len(), 7);
        keys.forget("k");
        assert_eq!(keys.take_ready("k"), (None, true));
        assert_eq!(keys.take("none"), Err(KeyError("no such key".into())));
    }

    #[test]
    fn old_keys_are_not_given() {
        let made = Arc::new(Counting::default());
        let keys = Keys::new(Box::new(made), Advance { size: 4, low: 0.5, expiry: Duration::ZERO });
        keys.fill("k").unwrap();
        assert_eq!(keys.take_ready("k").0, None);
    }
}
