//! The JSON list of DataNodes: one object for each, in an array or (the older form) one after another.

use super::reload::resolved;
use blocks::{HostEntry, Hosts};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vocab::TimeMs;

/// What the list says of one DataNode (Hadoop's `DatanodeAdminProperties`).
#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Properties {
    host_name: String,
    #[serde(default)]
    port: u16,
    #[serde(default)]
    upgrade_domain: Option<String>,
    #[serde(default)]
    admin_state: AdminState,
    /// When maintenance ends; never unless given.
    #[serde(default, rename = "maintenanceExpireTimeInMS")]
    maintenance_expiry_ms: Option<i64>,
}

#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum AdminState {
    #[default]
    Normal,
    Decommissioned,
    InMaintenance,
}

/// Reads the list, within this time if there is a limit.
///
/// # Errors
/// The file and what is wrong with it.
pub fn read(file: &Path, limit: Option<Duration>) -> Result<Hosts, String> {
    let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = match limit {
        None => std::fs::read_to_string(file).map_err(|e| named(&e))?,
        Some(limit) => read_in_time(file.to_owned(), limit).map_err(|e| named(&e))?,
    };
    parse(&text).map_err(|e| named(&e))
}

/// A file on a disk that may hang; who reads it is left behind then.
fn read_in_time(file: PathBuf, limit: Duration) -> io::Result<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(file)));
    receiver.recv_timeout(limit).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn parse(text: &str) -> Result<Hosts, String> {
    let array = text.trim_start().starts_with('[');
    let listed: Vec<Properties> = if array {
        serde_json::from_str(text).map_err(|e| e.to_string())?
    } else {
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(|e| e.to_string())?
    };
    let mut hosts = Hosts::default();
    let mut in_service = Vec::new();
    for properties in listed {
        let entry = resolved(HostEntry { host: properties.host_name.as_str().into(), port: properties.port });
        match properties.admin_state {
            AdminState::Normal => in_service.push(entry.clone()),
            AdminState::Decommissioned => drop(hosts.excluded.insert(entry.clone())),
            AdminState::InMaintenance => {
                let expires = TimeMs(properties.maintenance_expiry_ms.unwrap_or(i64::MAX));
                hosts.maintenance.push((entry.clone(), expires));
            }
        }
        if let Some(domain) = properties.upgrade_domain {
            hosts.domains.push((entry.clone(), domain.into()));
        }
        hosts.included.push(entry);
    }
    if in_service.is_empty() {
        // a list that names nobody in service keeps nobody out
        hosts.included.clear();
    }
    Ok(hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_nobody_delivers_is_given_up() {
        let folder = std::env::temp_dir().join(format!("ironroot-hosts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (pipe, list) = (folder.join("pipe"), folder.join("list"));
        // who opens a pipe for reading waits for a writer
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let error = read(&pipe, Some(Duration::from_millis(50))).expect_err("nobody writes");
        assert!(error.ends_with("pipe: timed out"), "{error}");
        std::fs::write(&list, "[]").expect("a list");
        assert!(read(&list, Some(Duration::from_secs(10))).is_ok());
        std::fs::remove_dir_all(&folder).expect("own folder");
    }

    #[test]
    fn both_forms_of_the_list() {
        let array = r#"[{"hostName":"127.0.0.1","port":9866,"upgradeDomain":"ud1","adminState":"NORMAL","maintenanceExpireTimeInMS":9223372036854775807},
            {"hostName":"127.0.0.2","port":0,"upgradeDomain":null,"adminState":"DECOMMISSIONED"}]"#;
        let hosts = parse(array).expect("parses");
        assert_eq!(hosts.included.len(), 2);
        assert_eq!(hosts.excluded.iter().map(|e| &*e.host).collect::<Vec<_>>(), ["127.0.0.2"]);
        assert_eq!(hosts.domains.iter().map(|(e, d)| (e.port, &**d)).collect::<Vec<_>>(), [(9866, "ud1")]);
        let lines = parse("{\"hostName\":\"127.0.0.1\"}\n{\"hostName\":\"127.0.0.3\"}\n").expect("parses");
        assert_eq!(lines.included.len(), 2);
        let nobody = parse(r#"[{"hostName":"127.0.0.2","adminState":"DECOMMISSIONED"}]"#).expect("parses");
        assert!(nobody.included.is_empty() && nobody.excluded.len() == 1);
        let resting = r#"[{"hostName":"127.0.0.2","adminState":"IN_MAINTENANCE","maintenanceExpireTimeInMS":5},
            {"hostName":"127.0.0.3","adminState":"IN_MAINTENANCE"},{"hostName":"127.0.0.4"}]"#;
        let resting = parse(resting).expect("parses");
        let expiries: Vec<_> = resting.maintenance.iter().map(|(entry, expires)| (&*entry.host, expires.0)).collect();
        assert_eq!(expiries, [("127.0.0.2", 5), ("127.0.0.3", i64::MAX)]);
        assert!(resting.included.len() == 3 && resting.excluded.is_empty());
        for bad in ["{bad", "[{\"hostName\":\"a\",\"foo\":1}]", "[{\"port\":1}]"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
