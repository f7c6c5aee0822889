//! `-importCheckpoint`: the newest checkpoint of the directories of a checkpointer becomes the content of empty name directories.

use super::load::{Load, Loaded, Read};
use super::{StartError, places};
use storage::{Directories, StorageError, image, select};

impl Load<'_> {
    /// Loads the checkpoint directories and saves what they hold into the name directories, which must not be formatted. The checkpoint directories
    /// stay as they are, but for an open segment of an earlier run.
    pub(super) fn import(&self) -> Result<Loaded, StartError> {
        let disk = &*self.os.disk;
        let directories = Directories::open(&places::locations(&self.settings.directories), self.os)?;
        if let Some(taken) = directories.list.iter().find(|directory| directory.formatted) {
            let root = taken.location.root.display();
            let text = format!("Cannot import image from a checkpoint.  NameNode already contains an image in {root}");
            return Err(StartError::Unsupported(text));
        }
        let from = places::checkpoint_locations(&self.settings.checkpoints);
        if from.is_empty() {
            let text = "Cannot import image from a checkpoint. \"dfs.namenode.checkpoint.dir\" is not set.";
            return Err(StartError::Unsupported(text.to_owned()));
        }
        let source = Directories::open(&from, self.os)?;
        let info = source.formatted_info()?.clone();
        select::check_layout(info.layout)?;
        let inspection = select::inspect(disk, &source)?;
        let images = image::all_of_both_kinds(disk, &inspection.image_folders)
            .map_err(|failed| StorageError::Io { path: failed.current, source: failed.error })?;
        let newest = images.first().ok_or_else(|| inspection.no_image())?;
        let Read { state, checkpoint, last, .. } = self.read_image(&source, &inspection, &info, newest)?;
        let mut loaded = Loaded {
            directories,
            info,
            state,
            last,
            upgrade_finalized: true,
            checkpoint,
            without_image: None,
            arena_missing: true,
        };
        self.save(&mut loaded)?;
        tracing::info!("Imported the checkpoint of {}", newest.copies[0].display());
        Ok(loaded)
    }
}
