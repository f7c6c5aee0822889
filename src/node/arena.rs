//! The restart that parses nothing: from the newest arena file, if it is what image and edits lead to.

use super::StartMode;
use super::load::{Load, modified_ms};
use observe::progress::Phase;
use state::State;
use std::path::PathBuf;
use storage::arena::{self, ArenaFile, Unfit};
use storage::image::Newest;
use storage::select::Inspection;
use storage::{Directories, StorageInfo};
use vocab::Txid;

/// A state from an arena file.
pub(super) struct FromArena {
    pub state: State,
    pub txid: Txid,
    /// When the file was written (milliseconds since 1970).
    pub written_ms: i64,
    /// The file, if there is no image for its transaction.
    pub without_image: Option<PathBuf>,
}

impl Load<'_> {
    /// Loads the newest arena file. One that does not fit is named with the reason, and the image is loaded as ever.
    pub(super) fn load_arena(
        &self,
        directories: &Directories,
        inspection: &Inspection,
        info: &StorageInfo,
        newest: &Newest,
    ) -> Option<FromArena> {
        if *self.mode != StartMode::Regular || !self.settings.checkpoints.restart_from_arena {
            return None;
        }
        let path = arena::candidate(&*self.os.disk, &inspection.image_folders)?;
        if os::lost::began_anew() {
            tracing::warn!("Arena file {} is not used: the last start from one could not read it", path.display());
            return None;
        }
        let edits = directories.edits_folders();
        let chosen = arena::choose(&*self.os.disk, &path, info, newest, &edits);
        match chosen.and_then(|file| self.map_arena(&file, newest)) {
            Ok(loaded) => Some(loaded),
            Err(reason) => {
                tracing::info!("Arena file {} is not used: {reason}", path.display());
                None
            }
        }
    }

    fn map_arena(&self, file: &ArenaFile, newest: &Newest) -> Result<FromArena, Unfit> {
        if let Err(error) = os::lost::begin_anew_on_lost_memory() {
            tracing::warn!("A page of the arena file that the disk loses will end the process: {error}");
        }
        let (path, txid) = (file.path(), file.identity().txid);
        self.progress.begin(Phase::LoadingImage, Some((path.display().to_string(), file.length())));
        let step = self.progress.step(Phase::LoadingImage, None, None);
        step.set_total(file.length());
        let begun = self.os.clock.monotonic_ms();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let loaded = file.load(self.fresh(), cores, &|bytes| step.set_count(bytes));
        step.end();
        let state = loaded?.state;
        self.progress.end(Phase::LoadingImage);
        let milliseconds = self.os.clock.monotonic_ms() - begun;
        let (inodes, bytes) = (state.tree.inode_count(), file.length());
        tracing::info!(
            "Loaded arena file for txid {txid} from {}: {inodes} inodes, {bytes} bytes in {milliseconds} ms",
            path.display()
        );
        let without_image = (newest.txid < txid).then(|| path.to_owned());
        Ok(FromArena { state, txid, written_ms: modified_ms(&*self.os.disk, path), without_image })
    }
}
