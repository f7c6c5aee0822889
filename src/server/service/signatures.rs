//! What Java's `ProtocolSignature` tells of the methods of a protocol: clients look there whether a server has a method.

use super::table::PortKind;
use hadoop_proto::services::Service;
use observe::RemoteException;
use observe::remote_exception::class;

/// Java interfaces of protocols: service, interface, and the class that has most of its messages.
const INTERFACES: [(&str, &str, &str); 12] = [
    (
        "ClientNamenodeProtocol",
        "org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolPB",
        "org.apache.hadoop.hdfs.protocol.proto.ClientNamenodeProtocolProtos",
    ),
    (
        "DatanodeProtocolService",
        "org.apache.hadoop.hdfs.protocolPB.DatanodeProtocolPB",
        "org.apache.hadoop.hdfs.protocol.proto.DatanodeProtocolProtos",
    ),
    (
        "DatanodeLifelineProtocolService",
        "org.apache.hadoop.hdfs.protocolPB.DatanodeLifelineProtocolPB",
        "org.apache.hadoop.hdfs.protocol.proto.DatanodeLifelineProtocolProtos",
    ),
    (
        "NamenodeProtocolService",
        "org.apache.hadoop.hdfs.protocolPB.NamenodeProtocolPB",
        "org.apache.hadoop.hdfs.protocol.proto.NamenodeProtocolProtos",
    ),
    (
        "HAServiceProtocolService",
        "org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB",
        "org.apache.hadoop.ha.proto.HAServiceProtocolProtos",
    ),
    (
        "ReconfigurationProtocolService",
        "org.apache.hadoop.hdfs.protocolPB.ReconfigurationProtocolPB",
        "org.apache.hadoop.hdfs.protocol.proto.ReconfigurationProtocolProtos",
    ),
    (
        "RefreshAuthorizationPolicyProtocolService",
        "org.apache.hadoop.security.protocolPB.RefreshAuthorizationPolicyProtocolPB",
        "org.apache.hadoop.security.proto.RefreshAuthorizationPolicyProtocolProtos",
    ),
    (
        "RefreshUserMappingsProtocolService",
        "org.apache.hadoop.security.protocolPB.RefreshUserMappingsProtocolPB",
        "org.apache.hadoop.security.proto.RefreshUserMappingsProtocolProtos",
    ),
    (
        "RefreshCallQueueProtocolService",
        "org.apache.hadoop.ipc.protocolPB.RefreshCallQueueProtocolPB",
        "org.apache.hadoop.ipc.proto.RefreshCallQueueProtocolProtos",
    ),
    (
        "GenericRefreshProtocolService",
        "org.apache.hadoop.ipc.protocolPB.GenericRefreshProtocolPB",
        "org.apache.hadoop.ipc.proto.GenericRefreshProtocolProtos",
    ),
    (
        "GetUserMappingsProtocolService",
        "org.apache.hadoop.tools.protocolPB.GetUserMappingsProtocolPB",
        "org.apache.hadoop.tools.proto.GetUserMappingsProtocolProtos",
    ),
    (
        "ProtocolInfoService",
        "org.apache.hadoop.ipc.ProtocolMetaInfoPB",
        "org.apache.hadoop.ipc.protobuf.ProtocolInfoProtos",
    ),
];

/// Interfaces that Hadoop has and a name node does not serve.
const OTHERS: [&str; 7] = [
    "org.apache.hadoop.ha.protocolPB.ZKFCProtocolPB",
    "org.apache.hadoop.hdfs.protocolPB.AliasMapProtocolPB",
    "org.apache.hadoop.hdfs.protocolPB.ClientDatanodeProtocolPB",
    "org.apache.hadoop.hdfs.protocolPB.InterDatanodeProtocolPB",
    "org.apache.hadoop.hdfs.protocolPB.JournalProtocolPB",
    "org.apache.hadoop.hdfs.qjournal.protocolPB.InterQJournalProtocolPB",
    "org.apache.hadoop.hdfs.qjournal.protocolPB.QJournalProtocolPB",
];

/// The service that a Java class names, its interface or the name in request headers; `None` if the port has none of it.
///
/// Quirk: both_names_of_a_protocol_have_the_same_methods: Hadoop keeps one answer for both, that of the name which was asked first, and clients ask for
/// the interface.
///
/// # Errors
/// A name that is no class.
pub(super) fn service(port: PortKind, name: &str) -> Result<Option<&'static Service>, RemoteException> {
    let interface = INTERFACES.iter().find(|(_, interface, _)| *interface == name).map(|(service, ..)| *service);
    let found = port.services().find(|s| s.protocol == name || Some(s.name) == interface);
    if found.is_none() && interface.is_none() && !OTHERS.contains(&name) {
        return Err(RemoteException::application(class::CLASS_NOT_FOUND, name));
    }
    Ok(found)
}

/// Fingerprints of a service's methods.
pub(super) fn of(service: &Service) -> Vec<u32> {
    let Some((.., home)) = INTERFACES.iter().find(|(name, ..)| *name == service.name) else { return Vec::new() };
    let class = |message: &str| {
        let name = message.rsplit('.').next().unwrap_or(message);
        format!("{}${name}", home_of(name, home))
    };
    let controller = "org.apache.hadoop.thirdparty.protobuf.RpcController";
    let mut all: Vec<u32> =
        service.methods.iter().map(|m| fingerprint(m.name, &class(m.output), &[controller, &class(m.input)])).collect();
    if service.name == "HAServiceProtocolService" {
        // this one still extends the interface of old protocols
        all.push(fingerprint("getProtocolVersion", "long", &["java.lang.String", "long"]));
        let signature = "org.apache.hadoop.ipc.ProtocolSignature";
        all.push(fingerprint("getProtocolSignature", signature, &["java.lang.String", "long", "int"]));
    }
    all
}

/// The class that has a message: that of the service, but for what services share and for features with messages of their own.
fn home_of<'a>(message: &str, usual: &'a str) -> &'a str {
    let of_method = message.trim_end_matches("RequestProto").trim_end_matches("ResponseProto");
    match of_method {
        "Version" => "org.apache.hadoop.hdfs.protocol.proto.HdfsServerProtos",
        "Heartbeat" => "org.apache.hadoop.hdfs.protocol.proto.DatanodeProtocolProtos",
        _ if !usual.ends_with("ClientNamenodeProtocolProtos") => usual,
        "GetDataEncryptionKey" => usual,
        name if name.contains("DelegationToken") => "org.apache.hadoop.security.proto.SecurityProtos",
        name if name.contains("Acl") => "org.apache.hadoop.hdfs.protocol.proto.AclProtos",
        name if name.contains("XAttr") => "org.apache.hadoop.hdfs.protocol.proto.XAttrProtos",
        name if name.contains("ncryption") || name == "GetEZForPath" => {
            "org.apache.hadoop.hdfs.protocol.proto.EncryptionZonesProtos"
        }
        name if name.contains("ErasureCoding") || name.contains("ECTopology") => {
            "org.apache.hadoop.hdfs.protocol.proto.ErasureCodingProtos"
        }
        _ => usual,
    }
}

fn fingerprint(method: &str, result: &str, parameters: &[&str]) -> u32 {
    let first = hash(method).wrapping_add(hash(result).wrapping_mul(31));
    parameters.iter().fold(first, |hashed, name| hashed.wrapping_mul(31) ^ hash(name))
}

/// `String.hashCode` of a text of Latin letters.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(byte.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::services;

    #[test]
    fn both_names_of_a_protocol_have_the_same_methods() {
        let plain = service(PortKind::Client, "org.apache.hadoop.hdfs.protocol.ClientProtocol").expect("a class");
        let interface = service(PortKind::Client, INTERFACES[0].1).expect("a class");
        assert_eq!(plain.map(of), interface.map(of));
        assert_eq!(plain.map(|found| of(found).len()), Some(111));
    }

    /// Number and sum of the fingerprints, as Java 3.5.0 computes them.
    #[test]
    fn fingerprints_are_javas() {
        for (interface, count, sum) in [
            ("org.apache.hadoop.ha.protocolPB.HAServiceProtocolPB", 7, -1378070014),
            ("org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolPB", 111, 1101350931),
            ("org.apache.hadoop.hdfs.protocolPB.DatanodeLifelineProtocolPB", 1, -1731890424),
            ("org.apache.hadoop.hdfs.protocolPB.DatanodeProtocolPB", 9, -1706260526),
            ("org.apache.hadoop.hdfs.protocolPB.NamenodeProtocolPB", 15, 1602739960),
            ("org.apache.hadoop.hdfs.protocolPB.ReconfigurationProtocolPB", 3, -416612257),
            ("org.apache.hadoop.ipc.ProtocolMetaInfoPB", 2, 49215105),
            ("org.apache.hadoop.ipc.protocolPB.GenericRefreshProtocolPB", 1, 744829649),
            ("org.apache.hadoop.ipc.protocolPB.RefreshCallQueueProtocolPB", 1, 1149622002),
            ("org.apache.hadoop.security.protocolPB.RefreshAuthorizationPolicyProtocolPB", 1, -1881352054),
            ("org.apache.hadoop.security.protocolPB.RefreshUserMappingsProtocolPB", 2, -718674949),
            ("org.apache.hadoop.tools.protocolPB.GetUserMappingsProtocolPB", 1, 1592211296),
        ] {
            let (name, ..) = INTERFACES.iter().find(|(_, known, _)| *known == interface).expect("served");
            let all = of(services::by_name(name).expect("in the schema"));
            let added = all.iter().fold(0, |sum: i32, n| sum.wrapping_add(*n as i32));
            assert_eq!((all.len(), added), (count, sum), "{interface}");
        }
    }
}
