//! Names of methods that a connection has asked for lately, as they came: most clients call a few methods over and over, and equal bytes need no
//! second look at protocol, version and method.

/// Methods that are remembered.
const REMEMBERED: usize = 4;
/// Longer names are not remembered.
const BYTES_MAX: usize = 256;

/// What the encoded `RequestHeaderProto`s of the last calls led to.
#[derive(Debug)]
pub(crate) struct Names<M> {
    /// The one used last is first.
    known: Vec<Known<M>>,
}

#[derive(Debug)]
struct Known<M> {
    bytes: Box<[u8]>,
    method: M,
    version: u64,
}

impl<M> Default for Names<M> {
    fn default() -> Names<M> {
        Names { known: Vec::new() }
    }
}

impl<M: Copy> Names<M> {
    /// Method and client's version of the protocol, if these bytes came lately; else what `find` makes of them.
    pub(crate) fn get<E>(&mut self, bytes: &[u8], find: impl FnOnce() -> Result<(M, u64), E>) -> Result<(M, u64), E> {
        if let Some(at) = self.known.iter().position(|known| *known.bytes == *bytes) {
            self.known[..=at].rotate_right(1);
            let Known { method, version, .. } = &self.known[0];
            return Ok((*method, *version));
        }
        let (method, version) = find()?;
        if bytes.len() <= BYTES_MAX {
            self.known.truncate(REMEMBERED - 1);
            self.known.insert(0, Known { bytes: bytes.into(), method, version });
        }
        Ok((method, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_are_known_and_refusals_are_not() {
        let mut names = Names::default();
        let mut asked = Vec::new();
        let mut get = |name: u8, good: bool| {
            let mut found = false;
            let got = names.get(&[name], || {
                found = true;
                if good { Ok((name, u64::from(name) + 1)) } else { Err(()) }
            });
            assert_eq!(got, if good { Ok((name, u64::from(name) + 1)) } else { Err(()) });
            asked.push((name, found));
        };
        for (name, good) in [
            (1, true),
            (2, true),
            (3, true),
            (4, true),
            (1, true),
            (9, false),
            (5, true),
            (1, true),
            (2, true),
            (9, false),
        ] {
            get(name, good);
        }
        let looked: Vec<u8> = asked.iter().filter(|(_, found)| *found).map(|(name, _)| *name).collect();
        assert_eq!(looked, [1, 2, 3, 4, 9, 5, 2, 9], "2 had gone for 5");
    }
}
