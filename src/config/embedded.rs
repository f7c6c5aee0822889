//! Site files for a file system of one folder on this machine: the NameNode, its clients, and DataNodes beside it.

use quick_xml::escape::escape;
use std::io;
use std::path::Path;

/// Writes the site files of a NameNode whose data is in `data`, and of its clients, into `conf`. Files that are there stay as they are: they are
/// the user's.
///
/// # Errors
/// A file cannot be written.
pub fn write_namenode_sites(conf: &Path, data: &Path) -> io::Result<()> {
    let core = [("fs.defaultFS", "hdfs://127.0.0.1:8020".to_owned())];
    let hdfs = [
        ("dfs.namenode.http-address", "127.0.0.1:9870".to_owned()),
        ("dfs.namenode.name.dir", uri(&data.join("name"))),
        // one DataNode is enough to store files
        ("dfs.replication", "1".to_owned()),
        // safe mode ends as soon as the blocks are there
        ("dfs.namenode.safemode.extension", "0".to_owned()),
    ];
    std::fs::create_dir_all(conf)?;
    for (name, keys) in [("core-site.xml", &core[..]), ("hdfs-site.xml", &hdfs[..])] {
        let file = conf.join(name);
        if !file.exists() {
            std::fs::write(file, site(keys))?;
        }
    }
    Ok(())
}

/// Writes the site files of a DataNode into `conf`: it stores below `folder`, listens on ports that are free, and serves `file_system`.
///
/// # Errors
/// A file cannot be written.
pub fn write_datanode_sites(conf: &Path, folder: &Path, file_system: &str) -> io::Result<()> {
    std::fs::create_dir_all(conf)?;
    let hdfs = [
        ("dfs.datanode.data.dir", uri(&folder.join("data"))),
        ("dfs.datanode.hostname", "127.0.0.1".to_owned()),
        ("dfs.datanode.address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.http.address", "127.0.0.1:0".to_owned()),
        ("dfs.datanode.ipc.address", "127.0.0.1:0".to_owned()),
    ];
    std::fs::write(conf.join("core-site.xml"), site(&[("fs.defaultFS", file_system.to_owned())]))?;
    std::fs::write(conf.join("hdfs-site.xml"), site(&hdfs))
}

fn uri(path: &Path) -> String {
    let escaped: String = path
        .display()
        .to_string()
        .chars()
        .map(|c| if " %?#[]{}^`|<>\"\\".contains(c) { format!("%{:02X}", u32::from(c)) } else { c.to_string() })
        .collect();
    format!("file://{escaped}")
}

fn site(keys: &[(&str, String)]) -> String {
    let property = |(key, value): &(&str, String)| {
        format!("  <property>\n    <name>{key}</name>\n    <value>{}</value>\n  </property>\n", escape(value))
    };
    let properties: String = keys.iter().map(property).collect();
    format!("<?xml version=\"1.0\"?>\n<configuration>\n{properties}</configuration>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::{Settings, identify};
    use crate::config::{Environment, load, not_honoured};

    #[test]
    fn sites_are_understood_and_kept() {
        let data = std::env::temp_dir().join(format!("ironroot embedded {}", std::process::id()));
        let conf = data.join("conf");
        write_namenode_sites(&conf, &data).unwrap();
        let mut configuration = load(Environment::default(), Some(&conf), &Default::default()).unwrap();
        let identity = identify(&mut configuration, |_| true).unwrap();
        let settings = Settings::read(&configuration, identity).unwrap();
        assert_eq!(settings.addresses.rpc.bind().to_string(), "127.0.0.1:8020");
        let crate::config::settings::Location::Directory { path, .. } = &settings.directories.name[0] else { panic!() };
        assert_eq!(*path, data.join("name"));
        assert_eq!((settings.unsupported(), not_honoured(&configuration).len()), (None, 0));
        std::fs::write(conf.join("core-site.xml"), "mine").unwrap();
        write_namenode_sites(&conf, &data).unwrap();
        assert_eq!(std::fs::read_to_string(conf.join("core-site.xml")).unwrap(), "mine");
        std::fs::remove_dir_all(&data).unwrap();
    }
}
