//! Names of files under `current`, with their transaction ids.

use vocab::Txid;

/// `edits_inprogress_A`.
pub fn in_progress(first: Txid) -> String {
    format!("edits_inprogress_{:019}", first.0)
}
/// `edits_A-B`.
pub fn finalized(first: Txid, last: Txid) -> String {
    format!("edits_{:019}-{:019}", first.0, last.0)
}
/// `fsimage_N`.
pub fn image(txid: Txid) -> String {
    format!("fsimage_{:019}", txid.0)
}
/// `fsimage_rollback_N`.
pub fn rollback_image(txid: Txid) -> String {
    format!("fsimage_rollback_{:019}", txid.0)
}
/// `fsimage.ckpt_N`: an image on its way.
pub fn image_checkpoint(txid: Txid) -> String {
    format!("fsimage.ckpt_{:019}", txid.0)
}
/// `arena_N`: the state at N as it lies in memory.
pub fn arena(txid: Txid) -> String {
    format!("arena_{:019}", txid.0)
}
/// `arena.ckpt_N`: one on its way.
pub fn arena_checkpoint(txid: Txid) -> String {
    format!("arena.ckpt_{:019}", txid.0)
}
/// The digest file of an image.
pub fn digest(image: &str) -> String {
    format!("{image}.md5")
}
/// The file of properties.
pub const VERSION: &str = "VERSION";
/// The lower bound of transactions that must be found.
pub const SEEN_TXID: &str = "seen_txid";
/// The lock file, beside `current`.
pub const LOCK: &str = "in_use.lock";

/// What a file of a storage directory is, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `edits_A-B`
    Finalized(Txid, Txid),
    /// `edits_inprogress_A`
    InProgress(Txid),
    /// `edits_inprogress_A` with something behind it: moved aside, or never begun.
    InProgressAside(Txid),
    /// `fsimage_N`
    Image(Txid),
    /// `fsimage_rollback_N`
    RollbackImage(Txid),
    /// `fsimage.ckpt_N`
    ImageCheckpoint(Txid),
    /// `arena_N`
    Arena(Txid),
    /// `arena.ckpt_N`
    ArenaCheckpoint(Txid),
    /// Anything else.
    Other,
}

/// Tells what a file name means.
pub fn kind(name: &str) -> Kind {
    // As in Java a transaction id has 63 bits, so that the one after it exists too.
    let txid = |digits: &str| {
        let number = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok()).flatten()?;
        Some(Txid(number as u64))
    };
    if let Some(rest) = name.strip_prefix("edits_inprogress_") {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        return match txid(&rest[..digits]) {
            Some(first) if digits == rest.len() => Kind::InProgress(first),
            Some(first) => Kind::InProgressAside(first),
            None => Kind::Other,
        };
    }
    let finalized = name.strip_prefix("edits_").and_then(|rest| rest.split_once('-'));
    if let Some((Some(first), Some(last))) = finalized.map(|(first, last)| (txid(first), txid(last))) {
        return Kind::Finalized(first, last);
    }
    let prefixes: [(&str, fn(Txid) -> Kind); 5] = [
        ("arena_", Kind::Arena),
        ("arena.ckpt_", Kind::ArenaCheckpoint),
        ("fsimage_rollback_", Kind::RollbackImage),
        ("fsimage.ckpt_", Kind::ImageCheckpoint),
        ("fsimage_", Kind::Image),
    ];
    let of = |(prefix, kind): (&str, fn(Txid) -> Kind)| name.strip_prefix(prefix).and_then(txid).map(kind);
    prefixes.into_iter().find_map(of).unwrap_or(Kind::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(kind(&finalized(Txid(3), Txid(17))), Kind::Finalized(Txid(3), Txid(17)));
        assert_eq!(in_progress(Txid(1)), "edits_inprogress_0000000000000000001");
        assert_eq!(kind(&in_progress(Txid(8))), Kind::InProgress(Txid(8)));
        assert_eq!(kind("edits_inprogress_0000000000000000008.empty"), Kind::InProgressAside(Txid(8)));
        assert_eq!(kind(&image(Txid(0))), Kind::Image(Txid(0)));
        assert_eq!(kind(&rollback_image(Txid(5))), Kind::RollbackImage(Txid(5)));
        assert_eq!(kind(&image_checkpoint(Txid(5))), Kind::ImageCheckpoint(Txid(5)));
        assert_eq!(kind(&arena(Txid(5))), Kind::Arena(Txid(5)));
        assert_eq!(kind(&arena_checkpoint(Txid(5))), Kind::ArenaCheckpoint(Txid(5)));
        for other in [
            "edits_",
            "edits_1",
            "edits_x-2",
            "edits_1-2.trash",
            "fsimage_0.md5",
            "fsimage_",
            "VERSION",
            "edits_tmp_1-2_3",
        ] {
            assert_eq!(kind(other), Kind::Other, "{other}");
        }
        assert_eq!(kind("edits_99999999999999999999-1"), Kind::Other);
        assert_eq!(kind("edits_1-9223372036854775808"), Kind::Other);
    }
}
