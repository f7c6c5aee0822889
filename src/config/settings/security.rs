//! Callers and their groups.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use security::keys::Advance;
use std::collections::BTreeMap;
use std::time::Duration;

/// How callers prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// They say it (`hadoop.security.authentication` = `simple`).
    Simple,
    /// Kerberos.
    Kerberos,
}

impl Authentication {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Authentication, ConfigError> {
        const KEY: &str = "hadoop.security.authentication";
        let text = reader.text(KEY)?;
        match text.to_ascii_lowercase().as_str() {
            "simple" => Ok(Authentication::Simple),
            "kerberos" => Ok(Authentication::Kerberos),
            _ => Err(ConfigError::Contradiction(format!("Invalid attribute value for {KEY} of {text}"))),
        }
    }
}

/// Delegation tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Whether they are issued where security is off (`dfs.namenode.delegation.token.always-use`).
    pub always_use: bool,
    /// How long a master key is used for new ones (`dfs.namenode.delegation.key.update-interval`).
    pub key_interval: Duration,
    /// How long one can be renewed (`dfs.namenode.delegation.token.max-lifetime`).
    pub lifetime: Duration,
    /// How long one is in force without (`dfs.namenode.delegation.token.renew-interval`).
    pub renewal: Duration,
}

impl Tokens {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Tokens, ConfigError> {
        let milliseconds = |key| reader.amount(key, 0).map(Duration::from_millis);
        Ok(Tokens {
            always_use: reader.boolean("dfs.namenode.delegation.token.always-use")?,
            key_interval: milliseconds("dfs.namenode.delegation.key.update-interval")?,
            lifetime: milliseconds("dfs.namenode.delegation.token.max-lifetime")?,
            renewal: milliseconds("dfs.namenode.delegation.token.renew-interval")?,
        })
    }
}

/// Who keeps the keys of encryption zones is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keys {
    /// How long an answer may take (`hadoop.security.kms.client.timeout`).
    pub timeout: Duration,
    /// Keys for files that are fetched in advance (`hadoop.security.kms.client.encrypted.key.cache.*`).
    pub advance: Advance,
}

impl Keys {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Keys, ConfigError> {
        Ok(Keys {
            timeout: Duration::from_secs(reader.amount("hadoop.security.kms.client.timeout", 1)?),
            advance: Advance {
                size: reader.count("hadoop.security.kms.client.encrypted.key.cache.size", 1)? as usize,
                low: reader.float("hadoop.security.kms.client.encrypted.key.cache.low-watermark")?,
                expiry: Duration::from_millis(
                    reader.amount("hadoop.security.kms.client.encrypted.key.cache.expiry", 0)?,
                ),
            },
        })
    }
}

/// Re-encryption of zones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reencryption {
    /// How often it is looked whether a zone waits (`dfs.namenode.reencrypt.sleep.interval`).
    pub interval: Duration,
    /// Files of one batch (`dfs.namenode.reencrypt.batch.size`).
    pub batch: u32,
    /// Part of the time in which the lock may be held to look for files (`dfs.namenode.reencrypt.throttle.limit.handler.ratio`).
    pub looking: f64,
    /// The same to change them (`dfs.namenode.reencrypt.throttle.limit.updater.ratio`).
    pub changing: f64,
}

impl Reencryption {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Reencryption, ConfigError> {
        let positive = |key: &'static str, holds: bool| {
            if holds { Ok(()) } else { Err(ConfigError::Contradiction(format!("{key} is not positive."))) }
        };
        let ratio = |key| {
            let ratio = reader.double(key)?;
            positive(key, ratio > 0.0).map(|()| ratio)
        };
        let interval = reader.duration("dfs.namenode.reencrypt.sleep.interval", Unit::Milliseconds)?;
        positive("dfs.namenode.reencrypt.sleep.interval", !interval.is_zero())?;
        let batch = reader.int("dfs.namenode.reencrypt.batch.size")?;
        positive("dfs.namenode.reencrypt.batch.size", batch > 0)?;
        Ok(Reencryption {
            interval,
            batch: batch.unsigned_abs(),
            looking: ratio("dfs.namenode.reencrypt.throttle.limit.handler.ratio")?,
            changing: ratio("dfs.namenode.reencrypt.throttle.limit.updater.ratio")?,
        })
    }
}

/// Whom a proxy rule names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// Nobody: the key is not set.
    #[default]
    Nobody,
    /// `*`
    Everybody,
    /// These.
    These(Vec<String>),
}

/// For whom and from where a user may act (`hadoop.proxyuser.NAME.users`, `.groups`, `.hosts`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyUser {
    /// Users it may act for.
    pub users: Named,
    /// Groups whose members it may act for.
    pub groups: Named,
    /// Hosts, addresses or networks it may do so from.
    pub hosts: Named,
}

/// The proxy users by name. A name may have dots in it.
pub(super) fn proxy_users(reader: &Reader<'_>) -> Result<BTreeMap<String, ProxyUser>, ConfigError> {
    let mut known: BTreeMap<String, ProxyUser> = BTreeMap::new();
    for (rest, value) in reader.with_prefix("hadoop.proxyuser.")? {
        let Some((user, kind)) = rest.rsplit_once('.') else { continue };
        let named = match value.as_str() {
            "*" => Named::Everybody,
            list => Named::These(crate::config::values::trimmed_strings(list)),
        };
        match kind {
            "users" => known.entry(user.to_string()).or_default().users = named,
            "groups" => known.entry(user.to_string()).or_default().groups = named,
            "hosts" => known.entry(user.to_string()).or_default().hosts = named,
            _ => {}
        }
    }
    Ok(known)
}

/// Where groups come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupMapping {
    /// The operating system, asked in one of several ways that give the same answer.
    System,
    /// Nobody has groups.
    Nobody,
    /// A class that is not known here.
    Other(String),
}

impl GroupMapping {
    fn of_class(name: String) -> GroupMapping {
        match name.strip_prefix("org.apache.hadoop.security.") {
            Some(
                "JniBasedUnixGroupsMappingWithFallback" | "JniBasedUnixGroupsMapping" | "ShellBasedUnixGroupsMapping",
            ) => GroupMapping::System,
            Some("NullGroupsMapping") => GroupMapping::Nobody,
            _ => GroupMapping::Other(name),
        }
    }
}

/// Group mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Where they come from (`hadoop.security.group.mapping`).
    pub mapping: GroupMapping,
    /// Users whose groups are given here (`hadoop.user.group.static.mapping.overrides`).
    pub overrides: BTreeMap<String, Vec<String>>,
    /// How long groups are remembered (`hadoop.security.groups.cache.secs`).
    pub cache: Duration,
    /// How long it is remembered that a user has none (`hadoop.security.groups.negative-cache.secs`).
    pub negative_cache: Duration,
    /// A command of the operating system may take this long, 0 for ever
    /// (`hadoop.security.groups.shell.command.timeout`).
    pub command_timeout: Duration,
}

const OVERRIDES: &str = "hadoop.user.group.static.mapping.overrides";

impl Groups {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Groups, ConfigError> {
        let overrides = overrides(&reader.text(OVERRIDES)?);
        Ok(Groups {
            mapping: GroupMapping::of_class(reader.text("hadoop.security.group.mapping")?),
            overrides: overrides.map_err(|()| {
                ConfigError::Contradiction("Configuration hadoop.user.group.static.mapping.overrides is invalid".into())
            })?,
            cache: reader.plain_duration("hadoop.security.groups.cache.secs", Unit::Seconds)?,
            negative_cache: reader.plain_duration("hadoop.security.groups.negative-cache.secs", Unit::Seconds)?,
            command_timeout: reader.duration("hadoop.security.groups.shell.command.timeout", Unit::Milliseconds)?,
        })
    }
}

/// `user=group,group;user=;...`: the groups of a user, who may have none.
fn overrides(text: &str) -> Result<BTreeMap<String, Vec<String>>, ()> {
    let mut known = BTreeMap::new();
    for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
        let parts: Vec<&str> = entry.split('=').map(str::trim).filter(|part| !part.is_empty()).collect();
        let (user, groups) = match parts[..] {
            [user] => (user, ""),
            [user, groups] => (user, groups),
            _ => return Err(()),
        };
        let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_string).collect();
        known.insert(user.to_string(), groups);
    }
    Ok(known)
}

/// Who may use a protocol that has no list of its own, and who may not: read with the policy file.
pub const KEYS_OF_POLICY: [&str; 2] =
    ["security.service.authorization.default.acl", "security.service.authorization.default.acl.blocked"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, Environment};

    fn shown(text: &str) -> String {
        match overrides(text) {
            Ok(known) => {
                known.iter().map(|(user, groups)| format!("{user}:{}", groups.join("+"))).collect::<Vec<_>>().join(" ")
            }
            Err(()) => "invalid".into(),
        }
    }

    #[test]
    fn proxy_users_by_name() {
        let mut conf = Configuration::empty(Environment::default());
        for (key, value) in [
            ("hadoop.proxyuser.hue.hosts", "*"),
            ("hadoop.proxyuser.hue.groups", " staff , ops"),
            ("hadoop.proxyuser.a.b.users", "x"),
            ("hadoop.proxyuser.odd", "y"),
        ] {
            conf.set(key, value, "core-site.xml");
        }
        let known = proxy_users(&Reader::new(&conf)).unwrap();
        let hue = ProxyUser {
            users: Named::Nobody,
            groups: Named::These(vec!["staff".into(), "ops".into()]),
            hosts: Named::Everybody,
        };
        let dotted = ProxyUser { users: Named::These(vec!["x".into()]), ..ProxyUser::default() };
        assert_eq!(known, BTreeMap::from([("hue".into(), hue), ("a.b".into(), dotted)]));
    }

    #[test]
    fn static_overrides() {
        for (text, expected) in [
            ("dr.who=;", "dr.who:"),
            ("", ""),
            ("a=x,y;b=z", "a:x+y b:z"),
            (" a = x , y ; b ", "a:x+y b:"),
            ("a=x=y", "invalid"),
            ("=x", "x:"),
            ("a=x;;b=y", "a:x b:y"),
            ("a=x;a=y", "a:y"),
        ] {
            assert_eq!(shown(text), expected, "for {text:?}");
        }
    }
}
