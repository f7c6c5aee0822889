//! Where the groups of callers come from.

use super::passwords;
use super::reader::Reader;
use crate::config::ConfigError;
#[cfg(test)]
use crate::config::Configuration;
use crate::config::values::Unit;
use security::groups::Provider;
use security::groups::ldap::{Case, LdapSettings};
use security::kms::Truststore;
use std::collections::BTreeMap;
use std::time::Duration;

/// Group mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Where they come from (`hadoop.security.group.mapping`); the name of a class that is not known here.
    pub mapping: Result<Provider, String>,
    /// Users whose groups are given here (`hadoop.user.group.static.mapping.overrides`).
    pub overrides: BTreeMap<String, Vec<String>>,
    /// How long groups are remembered (`hadoop.security.groups.cache.secs`).
    pub cache: Duration,
    /// How long it is remembered that a user has none (`hadoop.security.groups.negative-cache.secs`).
    pub negative_cache: Duration,
    /// How many look-ups may refresh groups in the background; 0: none does (`hadoop.security.groups.cache.background.reload`, `...threads`).
    pub background: u32,
    /// A look-up that takes longer is warned about (`hadoop.security.groups.cache.warn.after.ms`).
    pub warn_after: Duration,
}

const OVERRIDES: &str = "hadoop.user.group.static.mapping.overrides";

impl Groups {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Groups, ConfigError> {
        let overrides = overrides(&reader.text(OVERRIDES)?);
        let background = reader.boolean("hadoop.security.groups.cache.background.reload")?;
        let threads = reader.count("hadoop.security.groups.cache.background.reload.threads", 1)?;
        let class = reader.text("hadoop.security.group.mapping")?;
        Ok(Groups {
            mapping: provider(reader, &class)?,
            overrides: overrides.map_err(|()| {
                ConfigError::Contradiction("Configuration hadoop.user.group.static.mapping.overrides is invalid".into())
            })?,
            cache: reader.plain_duration("hadoop.security.groups.cache.secs", Unit::Seconds)?,
            negative_cache: reader.plain_duration("hadoop.security.groups.negative-cache.secs", Unit::Seconds)?,
            background: if background { threads } else { 0 },
            warn_after: Duration::from_millis(reader.amount("hadoop.security.groups.cache.warn.after.ms", 0)?),
        })
    }
}

const PACKAGE: &str = "org.apache.hadoop.security.";

/// A class of Hadoop's by its name. All keys are read, whichever is wanted.
fn provider(reader: &Reader<'_>, class: &str) -> Result<Result<Provider, String>, ConfigError> {
    let combined = reader.boolean("hadoop.security.group.mapping.providers.combined")?;
    let names = reader.strings("hadoop.security.group.mapping.providers")?;
    let one = single(reader, class)?;
    if class.strip_prefix(PACKAGE) != Some("CompositeGroupsMapping") {
        return Ok(one);
    }
    let mut providers = Vec::new();
    for name in names {
        match part(reader, &name)? {
            Some(Ok(provider)) => providers.push(provider),
            Some(Err(class)) => return Ok(Err(class)),
            None => reader.warn(format!("The mapping provider, {name} does not have a valid class")),
        }
    }
    Ok(Ok(Provider::Composite { providers, combined }))
}

/// One of several providers: keys of its own count before the usual ones. `None` if it has no class.
fn part(reader: &Reader<'_>, name: &str) -> Result<Option<Result<Provider, String>>, ConfigError> {
    let prefix = format!("hadoop.security.group.mapping.provider.{name}");
    let mut configuration = reader.configuration().clone();
    let mut class = None;
    for (rest, value) in reader.with_prefix(&prefix)? {
        match rest.strip_prefix('.') {
            None if rest.is_empty() => class = Some(value),
            Some(rest) => configuration.set(&format!("hadoop.security.group.mapping.{rest}"), &value, &prefix),
            None => {}
        }
    }
    class.map(|class| single(&Reader::new(&configuration), &class)).transpose()
}

fn single(reader: &Reader<'_>, class: &str) -> Result<Result<Provider, String>, ConfigError> {
    let timeout = reader.duration("hadoop.security.groups.shell.command.timeout", Unit::Milliseconds)?;
    let timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
    let ldap = ldap(reader);
    Ok(match class.strip_prefix(PACKAGE) {
        Some("JniBasedUnixGroupsMappingWithFallback" | "JniBasedUnixGroupsMapping" | "ShellBasedUnixGroupsMapping") => {
            Ok(Provider::Shell { timeout })
        }
        Some("NullGroupsMapping") => Ok(Provider::Nobody),
        Some("LdapGroupsMapping") => Ok(Provider::Ldap(Box::new(LdapSettings { case: Case::Kept, ..ldap? }))),
        Some("RuleBasedLdapGroupsMapping") => Ok(Provider::Ldap(Box::new(ldap?))),
        _ => Err(class.to_owned()),
    })
}

/// The keys below `hadoop.security.group.mapping.ldap`.
fn ldap(reader: &Reader<'_>) -> Result<LdapSettings, ConfigError> {
    let base = reader.text_or_empty("hadoop.security.group.mapping.ldap.base")?;
    let below = |key| Ok::<_, ConfigError>(reader.optional(key)?.unwrap_or_else(|| base.clone()));
    let milliseconds = |key| reader.amount(key, 0).map(Duration::from_millis);
    let rule = reader.text("hadoop.security.group.mapping.ldap.conversion.rule")?;
    Ok(LdapSettings {
        user_base: below("hadoop.security.group.mapping.ldap.userbase")?,
        group_base: below("hadoop.security.group.mapping.ldap.groupbase")?,
        user_filter: reader.text("hadoop.security.group.mapping.ldap.search.filter.user")?,
        group_filter: reader.text("hadoop.security.group.mapping.ldap.search.filter.group")?,
        group_pattern: reader.strings("hadoop.security.group.mapping.ldap.group.search.filter.pattern")?,
        member_of: reader.text_or_empty("hadoop.security.group.mapping.ldap.search.attr.memberof")?,
        member: reader.text("hadoop.security.group.mapping.ldap.search.attr.member")?,
        group_name: reader.text("hadoop.security.group.mapping.ldap.search.attr.group.name")?,
        levels: reader.int("hadoop.security.group.mapping.ldap.search.group.hierarchy.levels")?,
        uid: reader.text("hadoop.security.group.mapping.ldap.posix.attr.uid.name")?,
        gid: reader.text("hadoop.security.group.mapping.ldap.posix.attr.gid.name")?,
        search: milliseconds("hadoop.security.group.mapping.ldap.directory.search.timeout")?,
        connect: milliseconds("hadoop.security.group.mapping.ldap.connection.timeout.ms")?,
        read: milliseconds("hadoop.security.group.mapping.ldap.read.timeout.ms")?,
        attempts: reader.count("hadoop.security.group.mapping.ldap.num.attempts", 0)?,
        attempts_before_failover: reader.count("hadoop.security.group.mapping.ldap.num.attempts.before.failover", 0)?,
        tls: reader.boolean("hadoop.security.group.mapping.ldap.ssl")?,
        truststore: truststore(reader)?,
        bind: bind(reader)?,
        case: match rule.to_ascii_lowercase().as_str() {
            "to_upper" => Case::Upper,
            "to_lower" => Case::Lower,
            _ => Case::Kept,
        },
        urls: {
            let urls = reader.strings("hadoop.security.group.mapping.ldap.url")?;
            if urls.is_empty() {
                return Err(ConfigError::Contradiction("LDAP URL(s) are not configured".into()));
            }
            urls
        },
    })
}

fn truststore(reader: &Reader<'_>) -> Result<Option<Truststore>, ConfigError> {
    let path = reader.non_empty("hadoop.security.group.mapping.ldap.ssl.truststore")?;
    let file = reader.non_empty("hadoop.security.group.mapping.ldap.ssl.truststore.password.file")?;
    let Some(path) = path else { return Ok(None) };
    let password = match passwords::credential(reader, "hadoop.security.group.mapping.ldap.ssl.truststore.password")? {
        Some(password) => Some(password),
        None => file.map(|file| passwords::of_file(&file)).transpose()?,
    };
    Ok(Some(Truststore { path: path.into(), password }))
}

/// As whom to ask: one after the other of several users, or the one.
fn bind(reader: &Reader<'_>) -> Result<Vec<(String, String)>, ConfigError> {
    let alias = reader.text_or_empty("hadoop.security.group.mapping.ldap.bind.password.alias")?;
    let password = reader.text_or_empty("hadoop.security.group.mapping.ldap.bind.password")?;
    let file = reader.text_or_empty("hadoop.security.group.mapping.ldap.bind.password.file")?;
    let user = reader.text_or_empty("hadoop.security.group.mapping.ldap.bind.user")?;
    let names = reader.strings("hadoop.security.group.mapping.ldap.bind.users")?;
    if names.is_empty() {
        let key = "hadoop.security.group.mapping.ldap.bind.password";
        return Ok(vec![(user, passwords::found(reader, key, &alias, &password, &file)?)]);
    }
    let mut users = Vec::new();
    for name in names {
        let prefix = format!("hadoop.security.group.mapping.ldap.bind.users.{name}.bind.");
        let own: BTreeMap<String, String> = reader.with_prefix(&prefix)?.into_iter().collect();
        let of = |key: &str| own.get(key).map_or("", String::as_str);
        let Some(user) = own.get("user") else {
            let text = format!("Bind username or password not configured for user: {name}");
            return Err(ConfigError::Contradiction(text));
        };
        let (alias, given, file) = (of("password.alias"), of("password"), of("password.file"));
        users.push((user.clone(), passwords::found(reader, &format!("{prefix}password"), alias, given, file)?));
    }
    Ok(users)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Environment;

    fn read(keys: &[(&str, &str)]) -> Result<Groups, ConfigError> {
        let mut configuration = Configuration::with_defaults(Environment::default());
        keys.iter().for_each(|(key, value)| configuration.set(key, value, "core-site.xml"));
        Groups::read(&Reader::new(&configuration))
    }

    const LDAP: &str = "org.apache.hadoop.security.LdapGroupsMapping";

    #[test]
    fn directory_servers() {
        let mapping = ("hadoop.security.group.mapping", LDAP);
        assert!(read(&[mapping]).unwrap_err().to_string().contains("LDAP URL(s) are not configured"));
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/keystores/passwords.jceks");
        let store = format!("jceks://file{golden}");
        let keys = [
            mapping,
            ("hadoop.security.group.mapping.ldap.url", "ldap://a , ldaps://b:1636"),
            ("hadoop.security.group.mapping.ldap.base", "dc=x"),
            ("hadoop.security.group.mapping.ldap.groupbase", "ou=groups,dc=x"),
            ("hadoop.security.group.mapping.ldap.bind.user", "cn=admin"),
            ("hadoop.security.group.mapping.ldap.bind.password.alias", "ldap.password"),
            ("hadoop.security.credential.provider.path", &store),
        ];
        let Ok(Provider::Ldap(settings)) = read(&keys).unwrap().mapping else { panic!("no directory server") };
        assert_eq!(settings.urls, ["ldap://a", "ldaps://b:1636"]);
        assert_eq!((&*settings.user_base, &*settings.group_base), ("dc=x", "ou=groups,dc=x"));
        assert_eq!(settings.bind, [("cn=admin".to_owned(), "secret-of-ldap".to_owned())]);
        let keys = [
            mapping,
            ("hadoop.security.group.mapping.ldap.url", "ldap://a"),
            ("hadoop.security.group.mapping.ldap.bind.users", "one,two"),
            ("hadoop.security.group.mapping.ldap.bind.users.one.bind.user", "cn=one"),
            ("hadoop.security.group.mapping.ldap.bind.users.one.bind.password", "p1"),
            ("hadoop.security.group.mapping.ldap.bind.users.two.bind.user", "cn=two"),
        ];
        let Ok(Provider::Ldap(settings)) = read(&keys).unwrap().mapping else { panic!("no directory server") };
        assert_eq!(settings.bind, [("cn=one".into(), "p1".into()), ("cn=two".into(), String::new())]);
        let missing = read(&keys[..5]).unwrap_err().to_string();
        assert!(missing.contains("Bind username or password not configured for user: two"), "{missing}");
    }

    #[test]
    fn several_providers_with_keys_of_their_own() {
        let keys = [
            ("hadoop.security.group.mapping", "org.apache.hadoop.security.CompositeGroupsMapping"),
            ("hadoop.security.group.mapping.providers", "shell,dir,none"),
            ("hadoop.security.group.mapping.providers.combined", "false"),
            ("hadoop.security.group.mapping.provider.shell", "org.apache.hadoop.security.ShellBasedUnixGroupsMapping"),
            ("hadoop.security.group.mapping.provider.dir", LDAP),
            ("hadoop.security.group.mapping.provider.dir.ldap.url", "ldap://dir"),
            ("hadoop.security.group.mapping.ldap.base", "dc=x"),
        ];
        let Ok(Provider::Composite { providers, combined }) = read(&keys).unwrap().mapping else {
            panic!("not several")
        };
        assert!(!combined);
        let [Provider::Shell { timeout: None }, Provider::Ldap(dir)] = &providers[..] else { panic!("{providers:?}") };
        assert_eq!((&dir.urls[..], &*dir.user_base), (&["ldap://dir".to_owned()][..], "dc=x"));
        let other = read(&[("hadoop.security.group.mapping", "com.example.Groups")]).unwrap();
        assert_eq!(other.mapping, Err("com.example.Groups".into()));
    }

    fn shown(text: &str) -> String {
        match overrides(text) {
            Ok(known) => {
                known.iter().map(|(user, groups)| format!("{user}:{}", groups.join("+"))).collect::<Vec<_>>().join(" ")
            }
            Err(()) => "invalid".into(),
        }
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
