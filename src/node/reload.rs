//! Files that are read again while the NameNode runs: lists of hosts, and the site files for proxy rules.

use super::{convert, hosts_json};
use crate::config::settings::{DatanodeHosts, HostsForm, Settings, identify, is_local_host};
use crate::config::{Changed, Configuration, Effect, Source, changed, reconfigurable};
use blocks::{HostEntry, Hosts};
use engine::Engine;
use parking_lot::Mutex;
use security::proxy::ProxyRules;
use security::service::ServiceAcls;
use server::service::Reconfigured;
use std::fs::File;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use vocab::time::TimeMs;

/// What is read again, and the storage directories.
pub struct Files {
    /// The configuration.
    pub source: Source,
    /// Storage directories, which stay locked as long as this process serves.
    pub roots: Vec<PathBuf>,
    /// Where logs are written.
    pub logs: PathBuf,
    /// What counts at present.
    pub configuration: Mutex<Configuration>,
    /// What follows from it.
    pub engine: Arc<Engine>,
    /// The user this process runs as.
    pub user: String,
    /// Port of the clients: a key is named after it.
    pub port: u16,
}

impl Files {
    fn settings(&self) -> Result<Settings, String> {
        let read = || {
            let (configuration, identity) = self.source.read()?;
            Settings::read(&configuration, identity)
        };
        read().map_err(|error| error.to_string())
    }

    /// Puts one changed key in force.
    fn apply(&self, change: &Changed, current: &mut Configuration) -> Result<(), String> {
        let mut next = current.clone();
        match &change.new {
            Some(value) => next.set(&change.name, value, "programmatically"),
            None => next.unset(&change.name),
        }
        if change.effect == Effect::None {
            return Err(format!("{} has no effect in this NameNode", change.name));
        }
        let identity = identify(&mut next, is_local_host).map_err(|error| error.to_string())?;
        let settings = Settings::read(&next, identity).map_err(|error| error.to_string())?;
        if change.effect == Effect::Live {
            let old = self.engine.settings();
            let (block_pool, created) = (old.block_pool.clone(), old.created);
            let operations = ops::Settings { block_pool, created, ..convert::operations(&settings, &self.user) };
            self.engine.set_settings(operations);
            let blocks = convert::blocks(&settings);
            self.engine.lock().write("reconfigure", |state| state.blocks.settings = blocks);
        }
        *current = next;
        Ok(())
    }
}

impl server::service::Reload for Files {
    fn proxy_rules(&self) -> Result<ProxyRules, String> {
        Ok(convert::proxy_rules(&self.settings()?))
    }

    fn service_acls(&self) -> Result<ServiceAcls, String> {
        super::policy::read(&self.source).map_err(|error| error.to_string())
    }

    fn hosts(&self) -> Result<Hosts, String> {
        hosts(&self.settings()?.datanode_hosts)
    }

    fn finalize_upgrade(&self) -> Result<(), String> {
        let os = os::Os::real();
        for root in &self.roots {
            match storage::upgrade::finalize(&*os.disk, root) {
                Ok(true) => tracing::info!("Finalize upgrade for {} is complete.", root.display()),
                Ok(false) => tracing::info!("Finalize upgrade for {} is not required.", root.display()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn reconfigurable(&self) -> Vec<String> {
        reconfigurable(self.port)
    }

    fn reconfigure(&self) -> Result<Vec<Reconfigured>, String> {
        let (new, _) = self.source.read().map_err(|error| error.to_string())?;
        let mut current = self.configuration.lock();
        let mut done = Vec::new();
        for change in changed(&current, &new, self.port) {
            let error = self.apply(&change, &mut current).err();
            let Changed { name, old, new, .. } = change;
            tracing::info!("Change property: {name} from {old:?} to {new:?}: {}", error.as_deref().unwrap_or("done"));
            done.push(Reconfigured { name, old: old.unwrap_or_default(), new, error });
        }
        Ok(done)
    }

    /// As in Hadoop, the working directory stands in for a directory of logs that is not set.
    /// Nor does a name that begins at the root lead out of it.
    fn create_log(&self, name: &str) -> Result<(PathBuf, Box<dyn io::Write + Send>), (PathBuf, io::Error)> {
        let path = match name.trim_matches('/') {
            "" => self.logs.clone(),
            name => self.logs.join(name),
        };
        match File::create(&path) {
            Ok(file) => Ok((path, Box::new(file))),
            Err(error) => Err((path, error)),
        }
    }

    fn date(&self, time: TimeMs) -> String {
        let time = jiff::Timestamp::from_millisecond(time.0).unwrap_or_default();
        time.to_zoned(jiff::tz::TimeZone::system()).strftime("%a %b %d %H:%M:%S %Z %Y").to_string()
    }
}

/// Reads the lists of hosts; no list allows all and excludes nobody.
///
/// # Errors
/// A list that is configured and cannot be read.
pub fn hosts(settings: &DatanodeHosts) -> Result<Hosts, String> {
    if settings.form == HostsForm::Json {
        return match &settings.include_file {
            Some(file) => hosts_json::read(file, settings.read_limit),
            None => Ok(Hosts::default()),
        };
    }
    let entries = |file: &Option<PathBuf>| match file {
        Some(file) => std::fs::read_to_string(file)
            .map(|text| parse(&text))
            .map_err(|error| format!("{}: {error}", file.display())),
        None => Ok(Vec::new()),
    };
    Ok(Hosts {
        included: entries(&settings.include_file)?,
        excluded: entries(&settings.exclude_file)?.into_iter().collect(),
        ..Hosts::default()
    })
}

/// Words of all lines, without what follows a `#`; names are resolved where that is possible.
fn parse(text: &str) -> Vec<HostEntry> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or(""));
    lines.flat_map(str::split_whitespace).map(|word| resolved(HostEntry::parse(word))).collect()
}

pub(super) fn resolved(entry: HostEntry) -> HostEntry {
    let address = (&*entry.host, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    match address {
        Some(address) => HostEntry { host: address.ip().to_string().into(), ..entry },
        None => {
            tracing::warn!(
                "Failed to resolve address `{}` of a list of hosts; its name is compared as it is",
                entry.host
            );
            entry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_hosts() {
        let entries = parse("# all\n127.0.0.1 127.0.0.2:9866 # two\n\n  [::1]:7\n");
        let shown: Vec<_> = entries.iter().map(|e| format!("{} {}", e.host, e.port)).collect();
        assert_eq!(shown, ["127.0.0.1 0", "127.0.0.2 9866", "::1 7"]);
    }
}
