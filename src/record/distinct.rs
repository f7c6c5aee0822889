//! Few distinct values that many records share, by code.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

/// What a table can hold.
pub(crate) trait Value: Copy + Eq + Hash + Default {
    /// Whether the table is to remember that it was ever given such a value.
    fn is_noted(&self) -> bool {
        false
    }
}
impl Value for (u32, u32) {}

/// Codes for values of `T`, from 0 up to a limit, given out once and for good. Code 0 is the default value.
pub(crate) struct Distinct<T> {
    values: Vec<T>,
    codes: HashTable<u32>,
    /// The value asked for last: neighbours in an image mostly agree.
    last: (T, u32),
    limit: usize,
    noted: bool,
}

impl<T: Value> Distinct<T> {
    pub(crate) fn new(bits: u32) -> Distinct<T> {
        let (values, codes) = (Vec::new(), HashTable::new());
        let mut distinct = Distinct { values, codes, last: (T::default(), 0), limit: 1 << bits, noted: false };
        distinct.add(T::default());
        distinct
    }
    fn add(&mut self, value: T) -> u32 {
        let code = self.values.len() as u32;
        self.values.push(value);
        self.noted |= value.is_noted();
        let values = &self.values;
        let hash = |value: &T| FixedState::default().hash_one(value);
        self.codes.insert_unique(hash(&value), code, |code| hash(&values[*code as usize]));
        code
    }
    /// The code of a value, new if need be; `None` when all codes are given out.
    pub(crate) fn code(&mut self, value: T) -> Option<u64> {
        if self.last.0 != value {
            let known =
                self.codes.find(FixedState::default().hash_one(value), |code| self.values[*code as usize] == value);
            let code = match known {
                Some(code) => *code,
                None if self.values.len() >= self.limit => {
                    self.noted |= value.is_noted();
                    return None;
                }
                None => self.add(value),
            };
            self.last = (value, code);
        }
        Some(u64::from(self.last.1))
    }
    /// Whether a value of the kind that is noted was ever asked for.
    pub(crate) fn has_noted(&self) -> bool {
        self.noted
    }
    /// All values, in order of their codes.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }
    /// The codes of these values, in this order. `None` if one is there twice, the first is not the default, or there are too many.
    pub(crate) fn from_values(bits: u32, values: &[T]) -> Option<Distinct<T>> {
        let mut distinct = Distinct::new(bits);
        (0u64..).zip(values).all(|(code, value)| distinct.code(*value) == Some(code)).then_some(distinct)
    }
    /// The value of a code.
    #[inline]
    pub(crate) fn value(&self, code: u64) -> T {
        self.values[code as usize]
    }
    pub(crate) fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.codes.capacity() * 5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Value for u64 {
        fn is_noted(&self) -> bool {
            *self > 100
        }
    }

    #[test]
    fn codes_stay_and_run_out() {
        let mut distinct = Distinct::<u64>::new(4);
        assert_eq!((distinct.code(7), distinct.has_noted()), (Some(1), false));
        for round in 0..2 {
            for value in 0..16 {
                assert_eq!(distinct.code(value * 7), Some(value), "round {round}");
                assert_eq!(distinct.value(value), value * 7);
            }
            assert_eq!(distinct.code(1), None);
            assert!(distinct.has_noted());
        }
    }
}
