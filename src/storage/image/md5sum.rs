//! MD5 of images, taken piece by piece as they are read and written. The crate does the sum.

use super::digest::Digest;
use md5::{Digest as _, Md5};

/// A sum on its way.
#[derive(Clone)]
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
        Digest(self.0.finalize().into())
    }
}
