//! Configuration folders: core-site.xml and hdfs-site.xml.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The settings of one configuration folder, written as both site files (every key goes into the file of its prefix).
#[derive(Clone, Debug)]
pub struct Site {
    folder: PathBuf,
    keys: BTreeMap<String, String>,
}

impl Site {
    /// An empty configuration that will live in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, keys: BTreeMap::new() }
    }

    /// The same keys for another folder.
    pub fn copy_to(&self, folder: PathBuf) -> Self {
        Self { folder, keys: self.keys.clone() }
    }

    pub fn set(&mut self, key: &str, value: impl ToString) -> &mut Self {
        self.keys.insert(key.to_owned(), value.to_string());
        self
    }

    /// The value of a key that the test itself has set.
    pub fn get(&self, key: &str) -> &str {
        self.keys.get(key).unwrap_or_else(|| panic!("{key} is not set"))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes both files; answers the folder.
    pub fn write(&self) -> &Path {
        std::fs::create_dir_all(&self.folder).expect("configuration folder");
        for (file, of_hdfs) in [("core-site.xml", false), ("hdfs-site.xml", true)] {
            let mut text = String::from("<?xml version=\"1.0\"?>\n<configuration>\n");
            for (key, value) in self.keys.iter().filter(|(key, _)| key.starts_with("dfs.") == of_hdfs) {
                let (key, value) = (escape(key), escape(value));
                text += &format!("<property><name>{key}</name><value>{value}</value></property>\n");
            }
            text += "</configuration>\n";
            std::fs::write(self.folder.join(file), text).expect("site file");
        }
        &self.folder
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
