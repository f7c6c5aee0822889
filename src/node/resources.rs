//! Watches the free space of the storage directories: a NameNode that runs out of it stops accepting writes before its log fails
//! (Hadoop's `NameNodeResourceChecker`).

use crate::config::settings::{Location, StorageDirectories};
use engine::Engine;
use os::Os;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use storage::Directories;

/// A directory that is looked at, and whether it alone may lack space.
struct Volume {
    path: PathBuf,
    required: bool,
}

/// What is looked at and what must be there.
pub struct Resources {
    volumes: Vec<Volume>,
    reserved: u64,
    minimum: u32,
    interval: Duration,
}

impl Resources {
    /// The edits directories, and those that are to be looked at besides; all of the latter are required.
    pub fn new(settings: &StorageDirectories, directories: &Directories) -> Resources {
        let edits = directories.list.iter().filter(|directory| directory.location.roles.edits);
        let mut volumes: Vec<Volume> = edits
            .map(|directory| Volume {
                path: directory.location.root.clone(),
                required: directory.location.roles.required,
            })
            .collect();
        volumes.extend(settings.checked_volumes.iter().filter_map(|location| match location {
            Location::Directory { path, .. } => Some(Volume { path: path.clone(), required: true }),
            Location::Remote { .. } => None,
        }));
        Resources {
            volumes,
            reserved: settings.reserved_bytes,
            minimum: settings.checked_volumes_minimum,
            interval: settings.resource_check_interval.max(Duration::from_millis(1)),
        }
    }

    /// Whether there is space enough, given which volumes have it.
    fn suffice(&self, has_space: impl Fn(&Volume) -> bool) -> bool {
        let (required, others): (Vec<&Volume>, Vec<&Volume>) = self.volumes.iter().partition(|volume| volume.required);
        let working = others.iter().filter(|volume| has_space(volume)).count();
        required.iter().all(|volume| has_space(volume)) && (others.is_empty() || working >= self.minimum as usize)
    }

    fn look(&self, os: &Os) -> bool {
        self.suffice(|volume| match os.disk.space(&volume.path) {
            Ok(space) if space.available < self.reserved => {
                let (path, available, reserved) = (volume.path.display(), space.available, self.reserved);
                tracing::warn!(
                    "Space available on volume '{path}' is {available}, which is below the configured reserved amount {reserved}"
                );
                false
            }
            Ok(_) => true,
            Err(error) => {
                tracing::warn!("Free space of {} is not known: {error}", volume.path.display());
                false
            }
        })
    }

    /// Looks from time to time; switches safe mode on and, when there is space again, off.
    pub async fn watch(self, engine: Arc<Engine>, os: Os) {
        let mut pause = tokio::time::interval(self.interval);
        let mut low = false;
        let resources = Arc::new(self);
        loop {
            pause.tick().await;
            // a mount that hangs must not stop a thread that serves connections
            let (looking, os) = (resources.clone(), os.clone());
            let Ok(enough) = tokio::task::spawn_blocking(move || looking.look(&os)).await else { return };
            if enough == low {
                low = !enough;
                tracing::warn!(
                    "{}",
                    if low {
                        "NameNode low on available disk space. Entering safe mode."
                    } else {
                        "Namenode has sufficient available resources, exiting safe mode."
                    }
                );
                engine.lock().write("resources", |state| state.blocks.safe_mode.set_resources_low(low));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_volumes_must_have_space() {
        let suffice = |volumes: &[(&str, bool)], minimum, full: &[&str]| {
            let volume = |(path, required): &(&str, bool)| Volume { path: path.into(), required: *required };
            let volumes = volumes.iter().map(volume).collect();
            let resources = Resources { volumes, reserved: 1, minimum, interval: Duration::from_secs(1) };
            resources.suffice(|volume| !full.iter().any(|path| volume.path.ends_with(path)))
        };
        assert!(suffice(&[("a", false), ("b", false)], 1, &["a"]));
        assert!(!suffice(&[("a", false), ("b", false)], 2, &["a"]));
        assert!(!suffice(&[("a", false), ("b", true)], 1, &["b"]));
        assert!(suffice(&[("b", true)], 1, &[]));
        assert!(!suffice(&[("a", false)], 1, &["a"]));
        assert!(suffice(&[], 1, &[]));
    }
}
