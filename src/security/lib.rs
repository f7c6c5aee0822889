//! Purpose: who somebody is: short names, groups, who may act for whom, and the byte steps of authentication.
//! Called by: rpc, server (service), the binary (names in settings).
//! Calls: vocab; the `id` command; key servers, key stores and directory servers.
//! Never: knows a protocol, a method or a file of the name space; runs a command or waits while it holds a lock.
//! Invariants: a lookup under way is shared by all who ask for the same user; a failed one is remembered as such.

pub mod digest;
pub mod groups;
pub mod jceks;
pub mod keys;
pub mod keystore;
pub mod kms;
pub mod names;
pub mod proxy;
pub mod sasl;
pub mod service;
pub mod token;

use groups::Groups;
use names::NameRules;
use parking_lot::RwLock;
use proxy::ProxyRules;
use sasl::Mechanisms;
use service::ServiceAcls;
use std::net::IpAddr;
use std::sync::Arc;

/// Why somebody is not let in; the text is what the client gets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unauthorized(pub String);

/// A user as a connection claims or proved it, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Short name of the user whose rights count.
    pub name: Arc<str>,
    /// Short name of the user who acts for it.
    pub real: Option<Arc<str>>,
}

/// All that is known about users: one value for the process, shared by its ports.
#[derive(Debug)]
pub struct Users {
    names: NameRules,
    groups: Groups,
    proxy: RwLock<Arc<ProxyRules>>,
    /// Who may use which protocol, if that is looked at.
    services: Option<RwLock<Arc<ServiceAcls>>>,
    mechanisms: Option<Arc<dyn Mechanisms>>,
    simple: bool,
}

impl Users {
    /// From the parts that the configuration describes; claims are believed (SIMPLE).
    pub fn new(names: NameRules, groups: Groups, proxy: ProxyRules) -> Users {
        Users { names, groups, proxy: RwLock::new(Arc::new(proxy)), services: None, mechanisms: None, simple: true }
    }
    /// Offers mechanisms of authentication, and says whether a bare claim still counts.
    pub fn with_mechanisms(self, mechanisms: Arc<dyn Mechanisms>, simple: bool) -> Users {
        Users { mechanisms: Some(mechanisms), simple, ..self }
    }
    /// Looks who may use which protocol (`hadoop.security.authorization`).
    pub fn with_service_acls(self, acls: ServiceAcls) -> Users {
        Users { services: Some(RwLock::new(Arc::new(acls))), ..self }
    }
    /// Puts new lists for protocols in force; false if nobody looks at any.
    pub fn set_service_acls(&self, acls: ServiceAcls) -> bool {
        self.services.as_ref().map(|services| *services.write() = Arc::new(acls)).is_some()
    }
    /// Lists for protocols, if they are looked at.
    pub fn service_acls(&self) -> Option<Arc<ServiceAcls>> {
        self.services.as_ref().map(|services| services.read().clone())
    }
    /// Mechanisms besides SIMPLE, if there are any.
    pub fn mechanisms(&self) -> Option<&dyn Mechanisms> {
        self.mechanisms.as_deref()
    }
    /// Whether a bare claim counts.
    pub fn accepts_simple(&self) -> bool {
        self.simple
    }
    /// Group lookups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }
    /// Puts new proxy rules in force (`refreshSuperUserGroupsConfiguration`); they count for connections made from now on.
    pub fn set_proxy_rules(&self, rules: ProxyRules) {
        *self.proxy.write() = Arc::new(rules);
    }
    /// Shortens the names of who has proved to be `effective`, and of `real`, for whom a token vouches.
    ///
    /// # Errors
    /// A name that has no short one.
    pub fn proved(&self, effective: &str, real: Option<&str>) -> Result<User, Unauthorized> {
        let real = real.map(|real| self.names.short(real)).transpose()?;
        Ok(User { name: self.names.short(effective)?.into(), real: real.map(Into::into) })
    }
    /// The short name of a user.
    ///
    /// # Errors
    /// It has none.
    pub fn short<'a>(&self, name: &'a str) -> Result<&'a str, Unauthorized> {
        self.names.short(name)
    }
    /// Shortens the names and checks that `real` may act for `effective` from `address`.
    pub async fn authorize(&self, effective: &str, real: Option<&str>, address: IpAddr) -> Result<User, Unauthorized> {
        let name = self.names.short(effective)?;
        let Some(real) = real.filter(|r| !r.is_empty()) else {
            return Ok(User { name: name.into(), real: None });
        };
        let real = self.names.short(real)?;
        let rules = self.proxy.read().clone();
        let groups = if rules.needs_groups(real) { self.groups.of(name).await.groups } else { Arc::default() };
        rules.authorize(real, name, &groups, address)?;
        Ok(User { name: name.into(), real: Some(real.into()) })
    }
}
