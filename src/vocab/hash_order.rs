//! The order in which Java's hash maps and sets of strings tell what they hold, for answers that show it.

/// Capacity of a Java map that was made without a number.
pub const USUAL: u32 = 16;

/// Sorts items that were inserted in this order as a Java map tells them whose capacity was `least` (a power of two) at first.
pub fn sort<T>(items: &mut [T], least: u32, text: impl Fn(&T) -> &str) {
    let mut capacity = least;
    while items.len() as u64 * 4 > u64::from(capacity) * 3 {
        capacity *= 2;
    }
    items.sort_by_key(|item| {
        let units = text(item).encode_utf16();
        let hash = units.fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
        (hash ^ hash >> 16) & (capacity - 1)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Java 17 tells `new HashMap<>(2)` and `new HashMap<>()` into which these are put.
    #[test]
    fn the_capacity_decides() {
        for (least, expected) in [(1, ["zkey", "note"]), (USUAL, ["note", "zkey"])] {
            let mut keys = ["note", "zkey"];
            sort(&mut keys, least, |key| key);
            assert_eq!(keys, expected);
        }
    }
}
