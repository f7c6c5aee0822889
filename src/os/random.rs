//! Random numbers.

use std::fmt::Debug;

/// A source of random numbers: ids, choices, seeds.
pub trait Random: Send + Sync + Debug {
    /// Fills the buffer.
    fn fill(&self, bytes: &mut [u8]);

    /// A number of 64 random bits.
    fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A random (version 4) UUID in its usual text form.
    fn uuid(&self) -> String {
        let mut b = [0; 16];
        self.fill(&mut b);
        b[6] = b[6] & 0x0f | 0x40;
        b[8] = b[8] & 0x3f | 0x80;
        let hex: String = b.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}
