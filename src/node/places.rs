//! Configured places as storage directories.

use crate::config::settings::{self, Checkpoints, StorageDirectories};
use std::path::Path;
use storage::{Location, Roles};

/// All directories, those for images first; one that is listed for both images and edits appears once. Remote places were refused before.
pub fn locations(directories: &StorageDirectories) -> Vec<Location> {
    merged(&directories.name, &directories.edits, &directories.required_edits)
}

/// The directories of a checkpointer.
pub fn checkpoint_locations(checkpoints: &Checkpoints) -> Vec<Location> {
    merged(&checkpoints.directories, &checkpoints.edits_directories, &[])
}

fn merged(
    images: &[settings::Location],
    edits: &[settings::Location],
    required: &[settings::Location],
) -> Vec<Location> {
    let mut places: Vec<Location> = Vec::new();
    let mut add = |location: &settings::Location, roles: Roles| {
        let settings::Location::Directory { path, .. } = location else { return };
        match places.iter_mut().find(|place| place.root == *path) {
            Some(place) => {
                place.roles.image |= roles.image;
                place.roles.edits |= roles.edits;
                place.roles.required |= roles.required;
            }
            None => places.push(Location { root: path.clone(), roles }),
        }
    };
    for location in images {
        add(location, Roles { image: true, edits: false, required: false });
    }
    for location in edits {
        let required = required.contains(location);
        add(location, Roles { image: false, edits: true, required });
    }
    places
}

/// A directory as Hadoop names it in questions.
pub fn shown(root: &Path) -> String {
    format!("Storage Directory root= {}; location= null", root.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::{OfflineSettings, identify};
    use crate::config::{Configuration, Environment};

    #[test]
    fn one_directory_may_have_two_roles() {
        let mut configuration = Configuration::with_defaults(Environment::default());
        configuration.set("dfs.namenode.name.dir", "/a,/b", "hdfs-site.xml");
        configuration.set("dfs.namenode.edits.dir", "/b,/c", "hdfs-site.xml");
        configuration.set("dfs.namenode.edits.dir.required", "/c", "hdfs-site.xml");
        identify(&mut configuration, |_| true).unwrap();
        let settings = OfflineSettings::read(&configuration).unwrap();
        let shown: Vec<_> = locations(&settings.directories)
            .iter()
            .map(|l| (l.root.display().to_string(), l.roles.image, l.roles.edits, l.roles.required))
            .collect();
        assert_eq!(
            shown,
            [("/a".into(), true, false, false), ("/b".into(), true, true, false), ("/c".into(), false, true, true)]
        );
    }
}
