//! Who may act for whom (`hadoop.proxyuser.NAME.hosts`, `.groups`, `.users`).

use crate::Unauthorized;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A list that may be `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed<T: Eq + std::hash::Hash> {
    /// Nobody: the key is absent.
    #[default]
    None,
    /// Everybody: the key is `*`.
    All,
    /// These.
    Some(HashSet<T>),
}

/// What one real user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyRule {
    /// Where it may call from: addresses, resolved host names and CIDR ranges.
    pub hosts: Hosts,
    /// Members of these groups it may act for.
    pub groups: Allowed<String>,
    /// These users it may act for.
    pub users: Allowed<String>,
}

/// Host part of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hosts {
    /// From nowhere.
    #[default]
    None,
    /// From anywhere.
    All,
    /// From these networks; a single address is a network of full length.
    Networks(Vec<Network>),
}

impl Hosts {
    /// Whether an address is among them.
    pub fn has(&self, address: IpAddr) -> bool {
        match self {
            Hosts::None => false,
            Hosts::All => true,
            Hosts::Networks(networks) => networks.iter().any(|n| n.contains(address)),
        }
    }
}

/// An address range in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// `10.0.0.0/8` or a plain address; `None` for anything else (host names are resolved before).
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |b| b.parse().ok())?;
        (bits <= most).then_some(Network { address, bits })
    }
    fn contains(&self, other: IpAddr) -> bool {
        let prefix = |value: u128, width: u32| value.checked_shr(width - u32::from(self.bits)).unwrap_or(0);
        match (self.address, other.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => prefix(a.to_bits().into(), 32) == prefix(b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => prefix(a.to_bits(), 128) == prefix(b.to_bits(), 128),
            _ => false,
        }
    }
}

/// The rules of all real users.
#[derive(Clone, Debug, Default)]
pub struct ProxyRules {
    rules: HashMap<String, ProxyRule>,
}

impl ProxyRules {
    /// From rules by short name of the real user.
    pub fn new(rules: HashMap<String, ProxyRule>) -> ProxyRules {
        ProxyRules { rules }
    }
    /// Whether a decision about this real user needs the groups of the effective one.
    pub fn needs_groups(&self, real: &str) -> bool {
        self.rules.get(real).is_some_and(|r| matches!(r.groups, Allowed::Some(_)))
    }
    /// Whether `real` may act for `effective`, a member of `groups`, from `address`.
    pub fn authorize(
        &self,
        real: &str,
        effective: &str,
        groups: &[Arc<str>],
        address: IpAddr,
    ) -> Result<(), Unauthorized> {
        let refused = || Err(Unauthorized(format!("User: {real} is not allowed to impersonate {effective}")));
        let Some(rule) = self.rules.get(real) else { return refused() };
        let user_fits = match &rule.users {
            Allowed::All => true,
            Allowed::Some(users) => users.contains(effective),
            Allowed::None => false,
        };
        let fits = user_fits
            || match &rule.groups {
                Allowed::All => true,
                Allowed::Some(allowed) => groups.iter().any(|g| allowed.contains(&**g)),
                Allowed::None => false,
            };
        if !fits {
            return refused();
        }
        if rule.hosts.has(address) {
            return Ok(());
        }
        Err(Unauthorized(format!("Unauthorized connection for super-user: {real} from IP /{address}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(names: &[&str]) -> Allowed<String> {
        Allowed::Some(names.iter().map(|n| (*n).to_owned()).collect())
    }

    fn networks(texts: &[&str]) -> Hosts {
        Hosts::Networks(texts.iter().map(|t| Network::parse(t).unwrap()).collect())
    }

    /// Rules and outcomes as Hadoop 3.5.0's `ProxyUsers.authorize` gave them; alice is in the group staff.
    #[test]
    fn rules_of_hadoop() {
        let impersonate = Some("User: svc is not allowed to impersonate alice");
        let host = Some("Unauthorized connection for super-user: svc from IP /10.1.1.1");
        let all = || Allowed::All;
        let none = || Allowed::None;
        for (hosts, groups, users, refusal) in [
            (Hosts::None, none(), none(), impersonate),
            (Hosts::All, none(), none(), impersonate),
            (Hosts::None, none(), all(), host),
            (networks(&["10.1.1.1"]), none(), some(&["alice"]), None),
            (networks(&["10.1.1.2"]), none(), some(&["alice"]), host),
            (networks(&["1.2.3.4", "10.1.0.0/16"]), none(), some(&["alice"]), None),
            (networks(&["10.1.0.0/24"]), none(), some(&["alice"]), host),
            (networks(&["0.0.0.0/0"]), none(), some(&["alice"]), None),
            (networks(&["::/0"]), none(), some(&["alice"]), host),
            (Hosts::All, some(&["staff"]), none(), None),
            (Hosts::All, some(&["other"]), none(), impersonate),
            (Hosts::All, some(&["other"]), some(&["alice"]), None),
            (Hosts::All, all(), none(), None),
        ] {
            let rule = ProxyRule { hosts, groups, users };
            let rules = ProxyRules::new(HashMap::from([("svc".to_owned(), rule.clone())]));
            let outcome = rules.authorize("svc", "alice", &["staff".into()], "10.1.1.1".parse().unwrap());
            assert_eq!(outcome.err().map(|e| e.0).as_deref(), refusal, "{rule:?}");
        }
        let nobody = ProxyRules::default().authorize("alice", "alice", &[], "10.1.1.1".parse().unwrap());
        assert_eq!(nobody.unwrap_err().0, "User: alice is not allowed to impersonate alice");
    }

    #[test]
    fn networks_are_parsed_or_not() {
        for bad in ["", "host", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "::1/129", "1.2.3"] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
        let mapped: IpAddr = "::ffff:10.1.1.1".parse().unwrap();
        assert!(Network::parse("10.0.0.0/8").unwrap().contains(mapped));
    }
}
