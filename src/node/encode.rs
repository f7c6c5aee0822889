//! The process that makes an image from an arena file: no lock, no port, low priority. It ends with its parent, and its failure harms nothing.

use super::{StartError, format, online};
use engine::Encoded;
use os::Os;
use rustix::process::{Signal, set_parent_process_death_signal};
use state::{RootAttributes, State};
use std::path::{Path, PathBuf};
use storage::arena::{ArenaFile, Unfit};
use storage::image::{self, Codec, SaveOptions, SubSections};
use vocab::LayoutVersion;

/// Steps down in the system's scheduling: servers come first.
const NICENESS: i32 = 10;

/// The form of images, as words for the process.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Form {
    /// Class of the codec that compresses each section.
    #[arg(long)]
    codec: Option<String>,
    /// From so many inodes on there are sub-sections.
    #[arg(long, requires = "sections")]
    sections_from: Option<u64>,
    /// About so many.
    #[arg(long, requires = "sections_from")]
    sections: Option<u64>,
}

impl Form {
    /// The words for the form that is set.
    pub(super) fn words(options: &SaveOptions) -> Vec<String> {
        let codec = options.codec.map(|codec| format!("--codec={}", codec.class()));
        let sections = options
            .parallel
            .iter()
            .flat_map(|subs| [format!("--sections-from={}", subs.threshold), format!("--sections={}", subs.target)]);
        codec.into_iter().chain(sections).collect()
    }

    fn options(&self) -> Result<SaveOptions, StartError> {
        let unknown = |class: &String| StartError::Save(format!("Not a supported codec: {class}"));
        let codec =
            self.codec.as_ref().map(|class| Codec::of_class(class).ok_or_else(|| unknown(class))).transpose()?;
        let parallel =
            self.sections_from.zip(self.sections).map(|(threshold, target)| SubSections { threshold, target });
        Ok(SaveOptions { codec, parallel, ..SaveOptions::default() })
    }
}

/// Writes the image into each `current` folder under its temporary name, durable. Gives what is to be said to the parent.
///
/// # Errors
/// The arena file is damaged or of another build; no folder took the image.
pub fn encode_image(arena: &Path, folders: &[PathBuf], form: &Form) -> Result<String, StartError> {
    // where the system refuses either, the image is made all the same
    _ = set_parent_process_death_signal(Some(Signal::KILL));
    _ = rustix::process::nice(NICENESS);
    // where memory is short, this process goes and not the server
    _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let (os, cores) = (Os::real(), std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let unfit = |reason: Unfit| StartError::Image(format!("{}: {reason}", arena.display()));
    let file = ArenaFile::open(&*os.disk, arena).map_err(unfit)?;
    let fresh = State::new(RootAttributes { user: "", group: "", mode: vocab::Mode::new(0o755) });
    let mut state = file.load(fresh, cores, &|_| {}).map_err(unfit)?.state;
    while state.reclaim(u64::MAX) {}
    let context = format::context(LayoutVersion::CURRENT, &file.identity().info, file.identity().txid);
    let saved = image::save_unnamed(&*os.disk, folders, &state, context, &form.options()?);
    let saved = saved.map_err(|error| StartError::Save(error.to_string()))?;
    let is_written = |folder: &&PathBuf| saved.failed.iter().all(|failed| failed.current != **folder);
    let written = folders.iter().filter(is_written).cloned().collect();
    Ok(online::report(&Encoded { digest: saved.digest, length: saved.length, written }, folders))
}
