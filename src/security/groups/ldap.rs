//! Groups of a directory server (Hadoop's `LdapGroupsMapping` and `RuleBasedLdapGroupsMapping`).

use super::GroupList;
use crate::keystore;
use crate::kms::Truststore;
use ldap3::{Ldap, LdapConnAsync, LdapConnSettings, LdapError, Scope, SearchEntry, SearchOptions, ldap_escape};
use rustls::pki_types::CertificateDer;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// What becomes of the case of names (`...ldap.conversion.rule` of the rule-based mapping).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Case {
    /// Nothing.
    #[default]
    Kept,
    /// They are written in capitals.
    Upper,
    /// They are written in small letters.
    Lower,
}

/// Where and how groups are looked for: the keys below `hadoop.security.group.mapping.ldap`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LdapSettings {
    /// Servers, of which one is asked until it fails (`url`).
    pub urls: Vec<String>,
    /// Whether they are asked over TLS although their addresses say `ldap` (`ssl`).
    pub tls: bool,
    /// Whom to trust then (`ssl.truststore`).
    pub truststore: Option<Truststore>,
    /// As whom to ask, with the password; the next one where one is not let in (`bind.user`, `bind.users`).
    pub bind: Vec<(String, String)>,
    /// Below what users are looked for (`userbase`, `base`).
    pub user_base: String,
    /// Below what groups are (`groupbase`, `base`).
    pub group_base: String,
    /// What a user is; `{0}` is its name (`search.filter.user`).
    pub user_filter: String,
    /// What a group is (`search.filter.group`).
    pub group_filter: String,
    /// Attributes of the user that stand for `{0}`, `{1}` ... in it, `userDN` for its name (`group.search.filter.pattern`).
    pub group_pattern: Vec<String>,
    /// Attribute of a user that names its groups; empty for none (`search.attr.memberof`).
    pub member_of: String,
    /// Attribute of a group that names its members (`search.attr.member`).
    pub member: String,
    /// Attribute of a group that is its name (`search.attr.group.name`).
    pub group_name: String,
    /// How many levels of groups of groups count (`search.group.hierarchy.levels`).
    pub levels: i32,
    /// Attribute with the number of a user (`posix.attr.uid.name`).
    pub uid: String,
    /// Attribute with the number of a user's group (`posix.attr.gid.name`).
    pub gid: String,
    /// How long a server may search (`directory.search.timeout`).
    pub search: Duration,
    /// How long it may take to connect (`connection.timeout.ms`).
    pub connect: Duration,
    /// How long an answer may take (`read.timeout.ms`).
    pub read: Duration,
    /// How often it is tried (`num.attempts`).
    pub attempts: u32,
    /// How often with the same server (`num.attempts.before.failover`).
    pub attempts_before_failover: u32,
    /// What becomes of names.
    pub case: Case,
}

/// The connection, and which server and which user are being used.
#[derive(Default)]
struct Link {
    ldap: Option<Ldap>,
    url: usize,
    bind: usize,
}

/// A directory server.
pub struct Directory {
    settings: LdapSettings,
    link: Mutex<Link>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("urls", &self.settings.urls).finish_non_exhaustive()
    }
}

/// Why a search has failed.
enum Failure {
    /// We are not let in.
    NotLetIn(String),
    /// Anything else.
    Other(String),
}

impl From<LdapError> for Failure {
    fn from(error: LdapError) -> Failure {
        const INVALID_CREDENTIALS: u32 = 49;
        match &error {
            LdapError::LdapResult { result } if result.rc == INVALID_CREDENTIALS => {
                Failure::NotLetIn(error.to_string())
            }
            _ => Failure::Other(error.to_string()),
        }
    }
}

fn other<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Other(text.into()))
}

impl Directory {
    /// Not yet connected.
    pub fn new(settings: LdapSettings) -> Directory {
        Directory { settings, link: Mutex::default() }
    }

    /// Groups of a user; none where it is not known or no server answers.
    pub(super) async fn look_up(&self, user: &str) -> GroupList {
        let LdapSettings { urls, bind, attempts, attempts_before_failover, .. } = &self.settings;
        let mut link = self.link.lock().await;
        let mut with_this_server = 1;
        for attempt in 1..=*attempts {
            match self.try_look_up(user, &mut link).await {
                Ok(groups) => return groups,
                Err(Failure::NotLetIn(error)) => {
                    tracing::warn!("directory server does not let {} in: {error}", bind[link.bind].0);
                    link.bind = (link.bind + 1) % bind.len();
                }
                Err(Failure::Other(error)) => {
                    let url = &urls[link.url];
                    tracing::warn!(
                        "Failed to get groups for user {user} (attempt={attempt}/{attempts}) using {url}. Exception: {error}"
                    );
                    if with_this_server >= *attempts_before_failover {
                        link.url = (link.url + 1) % urls.len();
                        with_this_server = 0;
                    }
                }
            }
            with_this_server += 1;
            link.ldap = None;
        }
        Arc::default()
    }

    async fn try_look_up(&self, user: &str, link: &mut Link) -> Result<GroupList, Failure> {
        let settings = &self.settings;
        if link.ldap.is_none() {
            link.ldap = Some(self.connect(link).await?);
        }
        let Some(ldap) = &mut link.ldap else { return Ok(GroupList::default()) };
        let users = settings.search(ldap, &settings.user_base, &filled(&settings.user_filter, &[user])?).await?;
        let Some(user) = users.into_iter().next() else {
            tracing::debug!(user, "no groups: the user is not found");
            return Ok(GroupList::default());
        };
        let mut groups = settings.groups_of_user(&user);
        if groups.is_empty() || settings.levels > 0 {
            groups = settings.search_groups(ldap, &user).await?;
        }
        Ok(groups.iter().map(|name| Arc::from(settings.cased(name))).collect())
    }

    async fn connect(&self, link: &Link) -> Result<Ldap, Failure> {
        let LdapSettings { urls, tls, connect, bind, read, .. } = &self.settings;
        let mut url = urls[link.url].clone();
        if *tls && let Some(rest) = url.strip_prefix("ldap://") {
            // a port of its own for TLS, where none is named
            let port = if rest.contains(':') { "" } else { ":636" };
            url = format!("ldaps://{}{port}", rest.trim_end_matches('/'));
        }
        let mut settings = LdapConnSettings::new().set_conn_timeout(*connect);
        if url.starts_with("ldaps://") {
            settings = settings.set_config(Arc::new(self.trust().map_err(Failure::Other)?));
        }
        let (connection, mut ldap) = LdapConnAsync::with_settings(settings, &url).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.drive().await {
                tracing::debug!("the connection to the directory server has ended: {error}");
            }
        });
        let (user, password) = &bind[link.bind];
        ldap.with_timeout(*read).simple_bind(user, password).await?.success()?;
        Ok(ldap)
    }

    fn trust(&self) -> Result<rustls::ClientConfig, String> {
        let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(Truststore { path, password }) = &self.settings.truststore {
            roots = rustls::RootCertStore::empty();
            roots.add_parsable_certificates(
                keystore::trusted(path, password.as_deref())?.into_iter().map(CertificateDer::from),
            );
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Ok(config.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth())
    }
}

impl LdapSettings {
    fn is_posix(&self) -> bool {
        self.group_filter.contains("posixGroup") && self.user_filter.contains("posixAccount")
    }

    async fn search(&self, ldap: &mut Ldap, base: &str, filter: &str) -> Result<Vec<SearchEntry>, Failure> {
        let mut wanted: Vec<&str> = self.group_pattern.iter().map(String::as_str).collect();
        wanted.extend([&*self.group_name, &*self.uid, &*self.gid]);
        wanted.extend(Some(&*self.member_of).filter(|name| !name.is_empty()));
        let limit = i32::try_from(self.search.as_secs()).unwrap_or(i32::MAX);
        let ldap = ldap.with_search_options(SearchOptions::new().timelimit(limit)).with_timeout(self.read);
        let (found, _) = ldap.search(base, Scope::Subtree, filter, wanted).await?.success()?;
        Ok(found.into_iter().filter(|entry| !entry.is_ref()).map(SearchEntry::construct).collect())
    }

    /// What the user's own entry says; nothing where that cannot be used.
    fn groups_of_user(&self, user: &SearchEntry) -> Vec<String> {
        if self.member_of.is_empty() {
            return Vec::new();
        }
        let named = attribute(user, &self.member_of).map(|names| {
            let groups: Option<Vec<String>> = names.iter().map(|name| relative_name(name, &self.group_name)).collect();
            groups
        });
        let Some(Some(groups)) = named else {
            tracing::info!("groups of {} are not named by {}: they are looked for", user.dn, self.member_of);
            return Vec::new();
        };
        distinct(groups)
    }

    async fn search_groups(&self, ldap: &mut Ldap, user: &SearchEntry) -> Result<Vec<String>, Failure> {
        let LdapSettings { group_filter, member, gid, group_base, .. } = self;
        let filter = if !self.group_pattern.is_empty() {
            let mut values = Vec::new();
            for name in &self.group_pattern {
                match name.eq_ignore_ascii_case("userDN") {
                    true => values.push(&*user.dn),
                    false => values.push(self.first(user, name)?),
                }
            }
            filled(group_filter, &values)?
        } else if self.is_posix() {
            let numbers = [self.first(user, gid)?, self.first(user, &self.uid)?];
            filled(&format!("(&{group_filter}(|({gid}={{0}})({member}={{1}})))"), &numbers)?
        } else {
            filled(&format!("(&{group_filter}({member}={{0}}))"), &[&user.dn])?
        };
        let mut found = self.search(ldap, group_base, &filter).await?;
        let mut groups = self.names(&found)?;
        let levels = if self.is_posix() && self.group_pattern.is_empty() { 0 } else { self.levels };
        for _ in 0..levels {
            if found.is_empty() {
                break;
            }
            let members: String =
                found.iter().map(|group| format!("({member}={})", ldap_escape(group.dn.as_str()))).collect();
            found = self.search(ldap, group_base, &format!("(&{group_filter}(|{members}))")).await?;
            groups.extend(self.names(&found)?);
        }
        Ok(distinct(groups))
    }

    fn names(&self, groups: &[SearchEntry]) -> Result<Vec<String>, Failure> {
        groups.iter().map(|group| self.first(group, &self.group_name).map(str::to_owned)).collect()
    }

    fn first<'a>(&self, entry: &'a SearchEntry, name: &str) -> Result<&'a str, Failure> {
        match attribute(entry, name).and_then(|values| values.first()) {
            Some(value) => Ok(value),
            None => other(format!("{} does not have attribute '{name}'.", entry.dn)),
        }
    }

    fn cased(&self, name: &str) -> String {
        match self.case {
            Case::Kept => name.to_owned(),
            Case::Upper => name.to_uppercase(),
            Case::Lower => name.to_lowercase(),
        }
    }
}

/// An attribute; its name in whatever case the server has it.
fn attribute<'a>(entry: &'a SearchEntry, name: &str) -> Option<&'a Vec<String>> {
    let attributes: &HashMap<String, Vec<String>> = &entry.attrs;
    attributes.get(name).or_else(|| attributes.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v))
}

fn distinct(names: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        if !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

/// A filter with values in place of `{0}`, `{1}` ..., escaped.
fn filled(filter: &str, values: &[&str]) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = filter;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((number, after)) = after.split_once('}') else { break };
        let Some(value) = number.parse().ok().and_then(|number: usize| values.get(number)) else {
            return other(format!("{filter}: there is no value for {{{number}}}"));
        };
        out.push_str(before);
        out.push_str(&ldap_escape(*value));
        rest = after;
    }
    Ok(out + rest)
}

/// The value of a name's first part, `cn=a group,ou=...`, if that is of the attribute (RFC 4514).
fn relative_name(name: &str, attribute: &str) -> Option<String> {
    let (kind, rest) = name.split_once('=')?;
    if !kind.trim().eq_ignore_ascii_case(attribute) {
        return None;
    }
    let mut value = Vec::new();
    let mut bytes = rest.trim_start().bytes().peekable();
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    while let Some(byte) = bytes.next() {
        match byte {
            b',' | b';' | b'+' => break,
            b'\\' => {
                let escaped = bytes.next()?;
                match (hex(escaped), bytes.peek().copied().and_then(hex)) {
                    (Some(high), Some(low)) => {
                        bytes.next();
                        value.push(high << 4 | low);
                    }
                    _ => value.push(escaped),
                }
            }
            other => value.push(other),
        }
    }
    Some(String::from_utf8_lossy(&value).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_and_names() {
        let filled = |filter, values: &[&str]| filled(filter, values).ok();
        assert_eq!(filled("(&(a=b)(uid={0}))", &["x*(y)"]).as_deref(), Some(r"(&(a=b)(uid=x\2a\28y\29))"));
        assert_eq!(filled("(|(a={1})(b={0}))", &["x", "y"]).as_deref(), Some("(|(a=y)(b=x))"));
        assert_eq!(filled("(a={1})", &["x"]), None);
        for (name, value) in [
            ("cn=staff,ou=groups", Some("staff")),
            (r"CN = a\, b\2Bc ,dc=x", Some("a, b+c")),
            ("ou=staff,cn=x", None),
            ("staff", None),
            ("cn=", Some("")),
        ] {
            assert_eq!(relative_name(name, "cn").as_deref(), value, "{name}");
        }
    }
}
