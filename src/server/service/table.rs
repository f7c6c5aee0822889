//! The table of methods: which protocols a port serves, and what serves each method. Names, versions and requests are the schema's.

use hadoop_proto::services::{self, Service};
use hadoop_proto::shape::{self, Shape};
use observe::RemoteException;
use ops::Operation;
use std::sync::LazyLock;

/// A port of the NameNode, by what it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// `dfs.namenode.rpc-address`.
    Client,
    /// `dfs.namenode.servicerpc-address`: the same protocols for DataNodes and controllers.
    Service,
    /// `dfs.namenode.lifeline.rpc-address`: signs of life only.
    Lifeline,
}

/// Declares an enum of the methods of a small protocol.
macro_rules! protocol {
    ($(#[$m:meta])* $name:ident { $($variant:ident $method:literal),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)] // the names are the protocol's
        pub enum $name { $($variant),* }
        impl $name {
            fn of(method: &str) -> Option<$name> {
                match method { $($method => Some($name::$variant),)* _ => None }
            }
        }
    };
}

protocol!(
    /// `DatanodeProtocolService`.
    Datanode {
        Register "registerDatanode", Heartbeat "sendHeartbeat", BlockReport "blockReport", CacheReport "cacheReport",
        BlockReceivedAndDeleted "blockReceivedAndDeleted", ErrorReport "errorReport", Version "versionRequest",
        ReportBadBlocks "reportBadBlocks", CommitBlockSynchronization "commitBlockSynchronization",
    }
);
protocol!(
    /// `NamenodeProtocolService`, as far as it is served.
    Namenode {
        GetBlocks "getBlocks", Register "registerSubordinateNamenode", StartCheckpoint "startCheckpoint",
        EndCheckpoint "endCheckpoint", GetBlockKeys "getBlockKeys", GetTransactionId "getTransactionId", GetMostRecentCheckpointTxId "getMostRecentCheckpointTxId",
        RollEditLog "rollEditLog", Version "versionRequest", ErrorReport "errorReport",
        IsUpgradeFinalized "isUpgradeFinalized", IsRollingUpgrade "isRollingUpgrade",
        NextToSatisfy "getNextSPSPath", EditLogManifest "getEditLogManifest", MostRecentFileTxId "getMostRecentNameNodeFileTxId",
    }
);
protocol!(
    /// `HAServiceProtocolService`.
    Ha {
        MonitorHealth "monitorHealth", ToActive "transitionToActive", ToStandby "transitionToStandby",
        ToObserver "transitionToObserver", Status "getServiceStatus",
    }
);
protocol!(
    /// The refresh protocols and the group lookup.
    Refresh {
        UserToGroups "refreshUserToGroupsMappings", SuperUserGroups "refreshSuperUserGroupsConfiguration",
        ServiceAcl "refreshServiceAcl", CallQueue "refreshCallQueue", Generic "refresh", GroupsOfUser "getGroupsForUser",
    }
);
protocol!(
    /// `ReconfigurationProtocolService`.
    Reconfiguration {
        Status "getReconfigurationStatus", Start "startReconfiguration", List "listReconfigurableProperties",
    }
);
protocol!(
    /// `ProtocolInfoService`, which every port has.
    Meta { Versions "getProtocolVersions", Signatures "getProtocolSignature" }
);

/// What serves a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Handler {
    /// An operation of the client protocol.
    Client(Operation),
    /// DataNode protocol.
    Datanode(Datanode),
    /// The one method of the lifeline protocol.
    Lifeline,
    /// NameNode protocol.
    Namenode(Namenode),
    /// Failover protocol.
    Ha(Ha),
    /// Refresh protocols.
    Refresh(Refresh),
    /// Live reconfiguration.
    Reconfiguration(Reconfiguration),
    /// Protocol versions.
    Meta(Meta),
    /// Known to Hadoop, not served here.
    Missing,
}

impl Handler {
    /// Whether the request is decoded by what serves the method.
    fn reads_request(self) -> bool {
        match self {
            Handler::Client(operation) => operation.row().implemented,
            Handler::Namenode(method) => matches!(
                method,
                Namenode::GetBlocks
                    | Namenode::Register
                    | Namenode::StartCheckpoint
                    | Namenode::EndCheckpoint
                    | Namenode::EditLogManifest
                    | Namenode::MostRecentFileTxId
            ),
            Handler::Ha(_) | Handler::Reconfiguration(_) | Handler::Missing => false,
            Handler::Datanode(_) | Handler::Lifeline | Handler::Refresh(_) | Handler::Meta(_) => true,
        }
    }
}

/// A method found: cheap to copy, handed back with the call.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// What serves it.
    pub handler: Handler,
    /// Name of its protocol.
    pub protocol: &'static str,
    /// Its name in the request header.
    pub name: &'static str,
    /// Its number among those of the port's table.
    pub number: u16,
    /// Shape of its request where no handler reads that: Hadoop refuses a damaged request before anything else, so this server does too.
    pub unread: Option<&'static Shape>,
}

/// A served protocol with its methods.
struct Protocol {
    service: &'static Service,
    methods: Vec<Method>,
}

/// Names of the protobuf services of the client and service ports.
const MAIN: [&str; 11] = [
    "ClientNamenodeProtocol",
    "DatanodeProtocolService",
    "NamenodeProtocolService",
    "HAServiceProtocolService",
    "ReconfigurationProtocolService",
    "RefreshAuthorizationPolicyProtocolService",
    "RefreshUserMappingsProtocolService",
    "RefreshCallQueueProtocolService",
    "GenericRefreshProtocolService",
    "GetUserMappingsProtocolService",
    "ProtocolInfoService",
];
const LIFELINE: [&str; 3] = ["DatanodeLifelineProtocolService", "HAServiceProtocolService", "ProtocolInfoService"];

static MAIN_TABLE: LazyLock<Vec<Protocol>> = LazyLock::new(|| table(&MAIN));
static LIFELINE_TABLE: LazyLock<Vec<Protocol>> = LazyLock::new(|| table(&LIFELINE));

fn table(names: &[&str]) -> Vec<Protocol> {
    let mut number = 0;
    names
        .iter()
        .map(|name| {
            let service = services::by_name(name).expect("a service of the schema");
            let method = |m: &services::Method| {
                number += 1;
                let handler = handler(service.name, m.name);
                let request = shape::by_name(m.input).expect("a message of the schema");
                let unread = (request.fields.is_empty() || !handler.reads_request()).then_some(request);
                Method { handler, protocol: service.protocol, name: m.name, number: number - 1, unread }
            };
            Protocol { service, methods: service.methods.iter().map(method).collect() }
        })
        .collect()
}

fn handler(service: &str, method: &str) -> Handler {
    let found = match service {
        "ClientNamenodeProtocol" => Operation::of_method(method).map(Handler::Client),
        "DatanodeProtocolService" => Datanode::of(method).map(Handler::Datanode),
        "DatanodeLifelineProtocolService" => Some(Handler::Lifeline),
        "NamenodeProtocolService" => Namenode::of(method).map(Handler::Namenode),
        "HAServiceProtocolService" => Ha::of(method).map(Handler::Ha),
        "ReconfigurationProtocolService" => Reconfiguration::of(method).map(Handler::Reconfiguration),
        "ProtocolInfoService" => Meta::of(method).map(Handler::Meta),
        _ => Refresh::of(method).map(Handler::Refresh),
    };
    found.unwrap_or(Handler::Missing)
}

impl PortKind {
    fn table(self) -> &'static [Protocol] {
        match self {
            PortKind::Client | PortKind::Service => &MAIN_TABLE,
            PortKind::Lifeline => &LIFELINE_TABLE,
        }
    }

    /// All methods of the port, by number.
    pub fn methods(self) -> impl Iterator<Item = &'static Method> {
        self.table().iter().flat_map(|protocol| &protocol.methods)
    }

    /// The services of the port, in the order they are looked up.
    pub fn services(self) -> impl Iterator<Item = &'static Service> {
        self.table().iter().map(|p| p.service)
    }

    /// Finds a method by the names and the version in a request header.
    ///
    /// # Errors
    /// As Hadoop's `ProtobufRpcEngine2`: unknown protocol, version mismatch, unknown method, in this order.
    pub fn find(self, protocol: &str, version: u64, method: &str) -> Result<Method, RemoteException> {
        let found = self.table().iter().find(|p| p.service.protocol == protocol);
        let found = found.ok_or_else(|| RemoteException::no_such_protocol(protocol))?;
        if found.service.version != version {
            return Err(RemoteException::protocol_version(protocol, version, found.service.version));
        }
        let at = found.service.method_index(method);
        at.map(|i| found.methods[i]).ok_or_else(|| RemoteException::no_such_method(method, protocol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";

    #[test]
    fn every_client_method_is_an_operation() {
        let service = services::by_name("ClientNamenodeProtocol").unwrap();
        for method in service.methods {
            let found = PortKind::Client.find(CLIENT, 1, method.name).unwrap();
            let Handler::Client(operation) = found.handler else { panic!("{}", method.name) };
            assert_eq!(operation.row().method, method.name);
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error =
            |port: PortKind, protocol, version, method| port.find(protocol, version, method).unwrap_err().message;
        assert_eq!(error(PortKind::Client, "x.Y", 1, "m"), "Unknown protocol: x.Y");
        assert_eq!(
            error(PortKind::Client, CLIENT, 2, "m"),
            format!("Protocol {CLIENT} version mismatch. (client = 2, server = 1)")
        );
        assert_eq!(error(PortKind::Client, CLIENT, 1, "m"), format!("Unknown method m called on {CLIENT} protocol."));
        assert_eq!(error(PortKind::Lifeline, CLIENT, 1, "mkdirs"), format!("Unknown protocol: {CLIENT}"));
    }

    #[test]
    fn no_method_is_missing() {
        let missing: Vec<_> = MAIN_TABLE
            .iter()
            .chain(LIFELINE_TABLE.iter())
            .flat_map(|p| &p.methods)
            .filter(|m| m.handler == Handler::Missing)
            .map(|m| m.name)
            .collect();
        assert_eq!(missing, [""; 0]);
    }
}
