//! MD5 of images, taken piece by piece as they are read and written. The crate does the sum.

use super::digest::Digest;
use fast_md5::Md5;

/// A sum on its way.
pub(super) struct Md5Sum(Md5);

impl Md5Sum {
    /// Of nothing.
    pub(super) fn new() -> Md5Sum {
        Md5Sum(Md5::new())
    }

    /// Goes on by these bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Of all bytes so far.
    pub(super) fn finish(self) -> Digest {
        Digest(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::Digest as _;
    use proptest::prelude::*;

    proptest! {
        /// The crate is young: whatever the pieces, the sum is that of the one that everybody uses.
        #[test]
        fn sums_are_those_of_another_crate(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12)) {
            let (mut sum, mut other) = (Md5Sum::new(), md5::Md5::new());
            for piece in &pieces {
                sum.update(piece);
                other.update(piece);
            }
            prop_assert_eq!(sum.finish().0, <[u8; 16]>::from(other.finalize()));
        }
    }

    /// The answers of RFC 1321.
    #[test]
    fn the_standard_s_examples() {
        let known = [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("message digest", "f96b697d7cb7938d525a2f31aaf161d0"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ];
        known.iter().for_each(|(text, digest)| assert_eq!(Digest::of(text.as_bytes()).hex(), *digest));
    }
}
