//! Callers, and who may act for whom.

use super::reader::Reader;
use crate::config::ConfigError;
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

/// Who may use a protocol that has no list of its own, and who may not: read with the policy file.
pub const KEYS_OF_POLICY: [&str; 2] =
    ["security.service.authorization.default.acl", "security.service.authorization.default.acl.blocked"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Configuration, Environment};

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
}
