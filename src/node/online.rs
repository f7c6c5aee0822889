//! Checkpoints of a running NameNode: the settings they go by, and the process that makes images.

use super::encode::Form;
use super::load::Loaded;
use crate::config::settings::Settings;
use engine::{Encoded, ImageEncoder, Online, OnlineSettings};
use os::Os;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use storage::image::{Digest, SaveOptions};

/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What checkpoints of this NameNode go by.
pub fn online(loaded: &Loaded, settings: &Settings, os: &Os) -> Online {
    let checkpoints = &settings.checkpoints;
    let online = OnlineSettings {
        arena: checkpoints.online,
        image: checkpoints.image,
        period: checkpoints.period,
        transactions: checkpoints.transactions,
        check: checkpoints.check,
        pool_bytes: checkpoints.pool_bytes,
        unasked_from: checkpoints.unasked_from,
    };
    let (txid, made_ms) = loaded.checkpoint;
    let age = u64::try_from(os.clock.wall_ms().saturating_sub(made_ms)).unwrap_or(0);
    let last = (txid, os.clock.monotonic_ms().saturating_sub(age));
    let without_image = loaded.without_image.clone().filter(|_| checkpoints.image).map(|path| (path, txid));
    let encoder = EncoderProcess { options: checkpoints.image_options };
    Online::new(online, loaded.info.clone(), Arc::new(encoder), last, without_image, loaded.arena_missing)
}

/// This program once more, as the hidden command that makes an image from an arena file.
#[derive(Debug)]
struct EncoderProcess {
    /// The form of images.
    options: SaveOptions,
}

/// A child that does not outlive whoever waits for it.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // one that has ended already is only waited for
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl ImageEncoder for EncoderProcess {
    fn encode(&self, arena: &Path, folders: &[PathBuf], stopped: &dyn Fn() -> bool) -> Result<Encoded, String> {
        let text = |error: std::io::Error| error.to_string();
        let mut command = Command::new(std::env::current_exe().map_err(text)?);
        command.arg("encode-image").args(Form::words(&self.options)).arg(arena).args(folders);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)?;
        let mut child = Guarded(child);
        let status = loop {
            if let Some(status) = child.0.try_wait().map_err(text)? {
                break status;
            }
            if stopped() {
                return Err("it was stopped".to_owned());
            }
            std::thread::sleep(LOOK);
        };
        let (mut said, mut complaint) = (String::new(), String::new());
        child.0.stdout.take().map_or(Ok(0), |mut out| out.read_to_string(&mut said)).map_err(text)?;
        child.0.stderr.take().map_or(Ok(0), |mut out| out.read_to_string(&mut complaint)).map_err(text)?;
        if !status.success() {
            return Err(format!("the process that makes images ended with {status}: {}", complaint.trim()));
        }
        parse(&said, folders).ok_or_else(|| format!("not understood: {said:?}"))
    }
}

/// What the process says in the end: digest, length, and the numbers of the folders that have the image.
pub(super) fn report(encoded: &Encoded, folders: &[PathBuf]) -> String {
    let mut text = format!("{} {}", encoded.digest.hex(), encoded.length);
    for (at, _) in folders.iter().enumerate().filter(|(_, folder)| encoded.written.contains(folder)) {
        // writing to a string cannot fail
        _ = write!(text, " {at}");
    }
    text.push('\n');
    text
}
fn parse(said: &str, folders: &[PathBuf]) -> Option<Encoded> {
    let mut words = said.split_ascii_whitespace();
    let digest = Digest::from_hex(words.next()?)?;
    let length = words.next()?.parse().ok()?;
    let written = words.map(|word| folders.get(word.parse::<usize>().ok()?).cloned()).collect::<Option<Vec<_>>>()?;
    Some(Encoded { digest, length, written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_says_is_understood() {
        let folders: Vec<PathBuf> = ["/a b", "/c", "/d"].map(PathBuf::from).into();
        let written = vec![folders[0].clone(), folders[2].clone()];
        let encoded = Encoded { digest: Digest([0xa5; 16]), length: 77, written };
        let said = report(&encoded, &folders);
        let parsed = parse(&said, &folders).unwrap();
        assert_eq!((parsed.digest, parsed.length, parsed.written), (encoded.digest, 77, encoded.written));
        for wrong in ["", "xyz 1 0", &said.replace(" 77", " length"), &format!("{} 7 3", Digest([1; 16]).hex())] {
            assert!(parse(wrong, &folders).is_none(), "{wrong:?}");
        }
    }
}
