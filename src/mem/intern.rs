//! Strings that recur: users, groups, attribute names. Each gets a serial number of 24 bits for good.

use crate::persist::{Malformed, RestReader, RestWriter, expect};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Strings by serial number and back. Numbers start at 0 and are never taken back: there are few such strings, and records refer to them.
#[derive(Default)]
pub struct Interner {
    strings: Vec<Arc<str>>,
    /// Serial numbers by hash of their string; the strings themselves are kept once.
    serials: HashTable<u32>,
    hash: foldhash::fast::FixedState,
}

/// Serial numbers stay below this: 24 bits.
pub const SERIAL_LIMIT: u32 = 1 << 24;

impl Interner {
    /// No string.
    pub fn new() -> Interner {
        Interner::default()
    }
    /// The serial number of a string, new if need be; `None` when all 2^24 are given out.
    pub fn intern(&mut self, string: &str) -> Option<u32> {
        if let Some(serial) = self.find(string) {
            return Some(serial);
        }
        let serial = self.strings.len() as u32;
        if serial >= SERIAL_LIMIT {
            return None;
        }
        self.strings.push(string.into());
        let (strings, hash) = (&self.strings, &self.hash);
        let hash_of = |serial: &u32| hash.hash_one(&*strings[*serial as usize]);
        self.serials.insert_unique(hash.hash_one(string), serial, hash_of);
        Some(serial)
    }
    /// The serial number of a string that has one.
    pub fn find(&self, string: &str) -> Option<u32> {
        self.serials.find(self.hash.hash_one(string), |s| &*self.strings[*s as usize] == string).copied()
    }
    /// The string of a serial number.
    pub fn get(&self, serial: u32) -> Option<&Arc<str>> {
        self.strings.get(serial as usize)
    }
    /// All strings, in order of their serial numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.strings.iter()
    }
    /// Writes all strings down.
    pub fn write_rest(&self, rest: &mut RestWriter) {
        rest.length(self.strings.len());
        self.strings.iter().for_each(|string| rest.text(string));
    }
    /// The interner that was written down.
    ///
    /// # Errors
    /// A string twice, too many, or no strings at all.
    pub fn restore(rest: &mut RestReader<'_>) -> Result<Interner, Malformed> {
        let mut interner = Interner::new();
        for serial in 0..rest.length(8)? as u32 {
            expect(interner.intern(rest.text()?) == Some(serial), "distinct strings")?;
        }
        Ok(interner)
    }
    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        let mut interner = Interner::new();
        for i in 0..1000u32 {
            assert_eq!(interner.intern(&format!("user{i}")), Some(i));
        }
        for i in 0..1000u32 {
            assert_eq!(interner.intern(&format!("user{i}")), Some(i));
            assert_eq!(interner.find(&format!("user{i}")), Some(i));
            assert_eq!(&**interner.get(i).unwrap(), format!("user{i}"));
        }
        assert_eq!((interner.find("nobody"), interner.get(1000), interner.len()), (None, None, 1000));
    }
}
