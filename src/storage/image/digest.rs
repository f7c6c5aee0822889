//! The MD5 file beside an image.

use super::md5sum::Md5Sum;
use super::summary::ImageError;

/// MD5 of a whole image file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(pub [u8; 16]);

impl Digest {
    /// Of bytes in memory.
    pub fn of(bytes: &[u8]) -> Digest {
        let mut sum = Md5Sum::new();
        sum.update(bytes);
        sum.finish()
    }

    /// 32 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// The digest of 32 lower-case hexadecimal digits.
    pub fn from_hex(hex: &str) -> Option<Digest> {
        let mut digest = [0; 16];
        let lower = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let digits = Some(hex).filter(|hex| lower && hex.len() == 32)?;
        for (i, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
        }
        Some(Digest(digest))
    }

    /// Content of the digest file for an image of this name.
    pub fn file_text(&self, image_name: &str) -> String {
        format!("{} *{image_name}\n", self.hex())
    }
}

/// Reads the text of a digest file for the image named `image_name`.
///
/// Accepted as Hadoop accepts it: 32 lower-case digits, blank, blank or star, any folder, the name; a first line only.
///
/// # Errors
/// [`ImageError::Digest`] that says what is wrong.
pub fn read_digest_file(text: &[u8], digest_name: &str, image_name: &str) -> Result<Digest, ImageError> {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().next().unwrap_or("");
    let bad = |what: &str| ImageError::Digest(format!("Invalid MD5 file {digest_name}: {what}"));
    let (hex, rest) =
        line.split_at_checked(32).ok_or_else(|| bad("the content does not match the expected pattern."))?;
    let lower = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let name = rest.strip_prefix(" *").or_else(|| rest.strip_prefix("  "));
    let (true, Some(name)) = (lower, name.filter(|n| !n.is_empty())) else {
        return Err(bad("the content does not match the expected pattern."));
    };
    if name.rsplit('/').next() != Some(image_name) {
        return Err(ImageError::Digest(format!(
            "MD5 file at {digest_name} references file named {name} but we expected it to reference {image_name}"
        )));
    }
    let mut digest = [0; 16];
    for (i, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).map_err(|_| bad("not hexadecimal"))?;
    }
    Ok(Digest(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_and_refused_forms() {
        let d = Digest::of(b"x");
        let h = d.hex();
        let read = |t: String| read_digest_file(t.as_bytes(), "fsimage_0.md5", "fsimage_0");
        for ok in [
            d.file_text("fsimage_0"),
            format!("{h}  fsimage_0"),
            format!("{h} *fsimage_0\r\n"),
            format!("{h} */some/folder/fsimage_0\nsecond line"),
        ] {
            assert_eq!(read(ok.clone()), Ok(d), "{ok:?}");
        }
        for bad in [
            String::new(),
            h.clone(),
            format!("{h} fsimage_0"),
            format!("{} *fsimage_0", h.to_uppercase()),
            format!("{h} *fsimage_1"),
            format!("{} *fsimage_0", &h[1..]),
        ] {
            assert!(read(bad.clone()).is_err(), "{bad:?}");
        }
    }
}
