//! LEB128 numbers inside delta-coded runs.

/// Appends `value`, seven bits a byte, low bits first.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads the number at `*at` and moves `*at` behind it. The bytes must come from [`put`].
pub(crate) fn take(bytes: &[u8], at: &mut usize) -> u64 {
    let (mut value, mut shift) = (0u64, 0);
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn round_trip() {
        for value in [0, 1, 127, 128, 300, 1 << 20, u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            super::put(&mut bytes, value);
            let mut at = 0;
            assert_eq!(super::take(&bytes, &mut at), value);
            assert_eq!(at, bytes.len());
        }
    }
}
