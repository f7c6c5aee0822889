//! Who may use which protocol at all (`hadoop-policy.xml`; Hadoop's `ServiceAuthorizationManager`).

use crate::Unauthorized;
use crate::proxy::Hosts;
use std::collections::{HashMap, HashSet};
use vocab::{AuthenticationMethod, Caller};

/// Protocols of a name node and the keys that say who may use them, without `.blocked`, `.hosts` and `.hosts.blocked`.
pub const SERVICES: [(&str, &str); 16] = [
    ("security.client.protocol.acl", "org.apache.hadoop.hdfs.protocol.ClientProtocol"),
    ("security.client.datanode.protocol.acl", "org.apache.hadoop.hdfs.protocol.ClientDatanodeProtocol"),
    ("security.datanode.protocol.acl", "org.apache.hadoop.hdfs.server.protocol.DatanodeProtocol"),
    ("security.inter.datanode.protocol.acl", "org.apache.hadoop.hdfs.server.protocol.InterDatanodeProtocol"),
    ("security.namenode.protocol.acl", "org.apache.hadoop.hdfs.server.protocol.NamenodeProtocol"),
    ("security.qjournal.service.protocol.acl", "org.apache.hadoop.hdfs.qjournal.protocol.QJournalProtocol"),
    ("security.interqjournal.service.protocol.acl", "org.apache.hadoop.hdfs.qjournal.protocol.InterQJournalProtocol"),
    ("security.ha.service.protocol.acl", "org.apache.hadoop.ha.HAServiceProtocol"),
    ("security.zkfc.protocol.acl", "org.apache.hadoop.ha.ZKFCProtocol"),
    ("security.refresh.policy.protocol.acl", "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol"),
    ("security.refresh.user.mappings.protocol.acl", "org.apache.hadoop.security.RefreshUserMappingsProtocol"),
    ("security.get.user.mappings.protocol.acl", "org.apache.hadoop.tools.GetUserMappingsProtocol"),
    ("security.refresh.callqueue.protocol.acl", "org.apache.hadoop.ipc.RefreshCallQueueProtocol"),
    ("security.refresh.generic.protocol.acl", "org.apache.hadoop.ipc.GenericRefreshProtocol"),
    ("security.datanode.lifeline.protocol.acl", "org.apache.hadoop.hdfs.server.protocol.DatanodeLifelineProtocol"),
    ("security.reconfiguration.protocol.acl", "org.apache.hadoop.hdfs.protocol.ReconfigurationProtocol"),
];

/// Users and groups (Hadoop's `AccessControlList`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessList {
    all: bool,
    users: HashSet<String>,
    groups: HashSet<String>,
}

impl AccessList {
    /// Reads `user,user group,group`; `*` means everybody. What begins with a blank names groups only.
    pub fn parse(text: &str) -> AccessList {
        if text.contains('*') && text.trim() == "*" {
            return AccessList { all: true, ..AccessList::default() };
        }
        let (users, groups) = text.split_once(' ').unwrap_or((text, ""));
        let words =
            |list: &str| list.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect();
        AccessList { all: false, users: words(users), groups: words(groups) }
    }

    /// Whether the caller is on it.
    pub fn has(&self, caller: &Caller) -> bool {
        self.all
            || self.users.contains(&*caller.user)
            || caller.groups.iter().any(|group| self.groups.contains(&**group))
    }
}

/// Who may use one protocol, and from where.
#[derive(Clone, Debug, Default)]
pub struct ServiceAcl {
    /// These may.
    pub allowed: AccessList,
    /// But not these.
    pub blocked: AccessList,
    /// From here.
    pub hosts: Hosts,
    /// But not from here.
    pub blocked_hosts: Hosts,
}

/// Who may use which protocol, by its name.
#[derive(Clone, Debug, Default)]
pub struct ServiceAcls(pub HashMap<&'static str, ServiceAcl>);

impl ServiceAcls {
    /// Whether the caller may use the protocol.
    ///
    /// # Errors
    /// A protocol that has no list, a caller who is not allowed or blocked, the same of the place it calls from; in this order.
    pub fn authorize(&self, protocol: &str, caller: &Caller) -> Result<(), Unauthorized> {
        let interface = format!("interface {protocol}");
        let Some(acl) = self.0.get(protocol) else {
            return Err(Unauthorized(format!("Protocol {interface} is not known.")));
        };
        if !acl.allowed.has(caller) || acl.blocked.has(caller) {
            let who = shown(caller);
            let text = format!("User {who} is not authorized for protocol {interface}: denied by configured ACL");
            return Err(Unauthorized(text));
        }
        let from = caller.address.ip().to_canonical();
        if !acl.hosts.has(from) || acl.blocked_hosts.has(from) {
            return Err(Unauthorized(format!("Host {from} is not authorized for protocol {interface}")));
        }
        Ok(())
    }
}

/// The caller as Java prints it.
fn shown(caller: &Caller) -> String {
    let method = match caller.method {
        AuthenticationMethod::Simple => "SIMPLE",
        AuthenticationMethod::Kerberos => "KERBEROS",
        AuthenticationMethod::Token => "TOKEN",
        AuthenticationMethod::Proxy => "PROXY",
    };
    match &caller.real_user {
        Some(real) => format!("{} (auth:PROXY) via {real} (auth:{method})", caller.user),
        None => format!("{} (auth:{method})", caller.user),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Network;

    fn caller(user: &str, groups: &[&str]) -> Caller {
        Caller {
            user: user.into(),
            real_user: None,
            groups: groups.iter().map(|group| (*group).into()).collect(),
            method: AuthenticationMethod::Simple,
            address: ([10, 0, 0, 1], 5).into(),
            rpc_ids: None,
            retry: -1,
            context: None,
        }
    }

    #[test]
    fn lists_of_users_and_groups() {
        for (list, alice, bob) in [
            ("*", true, true),
            (" * ", true, true),
            ("", false, false),
            (" ", false, false),
            ("alice", true, false),
            ("alice,bob", true, true),
            (" staff", true, false),
            ("bob staff,ops", true, true),
            ("bob  staff", true, true),
        ] {
            let parsed = AccessList::parse(list);
            let has = |user, groups: &[&str]| parsed.has(&caller(user, groups));
            assert_eq!((has("alice", &["staff"]), has("bob", &[])), (alice, bob), "{list:?}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_told_as_hadoop_tells_it() {
        let protocol = SERVICES[0].1;
        let network = |text| Hosts::Networks(Network::parse(text).into_iter().collect());
        let acl = |allowed, blocked, hosts, blocked_hosts| ServiceAcl {
            allowed: AccessList::parse(allowed),
            blocked: AccessList::parse(blocked),
            hosts,
            blocked_hosts,
        };
        let denied = "User alice (auth:SIMPLE) is not authorized for protocol interface \
                      org.apache.hadoop.hdfs.protocol.ClientProtocol: denied by configured ACL";
        let host =
            "Host 10.0.0.1 is not authorized for protocol interface org.apache.hadoop.hdfs.protocol.ClientProtocol";
        for (acl, refusal) in [
            (acl("*", "", Hosts::All, Hosts::None), None),
            (acl("bob", "", Hosts::All, Hosts::None), Some(denied)),
            (acl("*", "alice", Hosts::All, Hosts::None), Some(denied)),
            (acl("*", "", network("10.0.0.0/24"), Hosts::None), None),
            (acl("*", "", network("10.1.0.0/24"), Hosts::None), Some(host)),
            (acl("*", "", Hosts::All, network("10.0.0.1")), Some(host)),
        ] {
            let acls = ServiceAcls([(protocol, acl)].into());
            let refused = acls.authorize(protocol, &caller("alice", &[])).err().map(|Unauthorized(text)| text);
            assert_eq!(refused.as_deref(), refusal);
        }
        let Unauthorized(text) = ServiceAcls::default().authorize("x.Y", &caller("alice", &[])).expect_err("unknown");
        assert_eq!(text, "Protocol interface x.Y is not known.");
    }
}
