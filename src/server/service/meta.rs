//! `ProtocolInfoService`: which versions of a protocol the port has.

use super::table::{Meta, PortKind};
use super::{Answer, decode, message};
use bytes::Bytes;
use hadoop_proto::common::{GetProtocolVersionsRequestProto, GetProtocolVersionsResponseProto, ProtocolVersionProto};
use observe::RemoteException;

/// Name of the RPC kind that all protocols have.
const KIND: &str = "RPC_PROTOCOL_BUFFER";

pub(super) fn serve(port: PortKind, method: Meta, body: Bytes) -> Answer {
    let service = |protocol: &str| {
        port.services().find(|s| s.protocol == protocol).ok_or_else(|| RemoteException::no_such_protocol(protocol))
    };
    match method {
        Meta::Versions => {
            let request: GetProtocolVersionsRequestProto = decode(body)?;
            let version =
                ProtocolVersionProto { rpc_kind: KIND.to_owned(), versions: vec![service(&request.protocol)?.version] };
            message(&GetProtocolVersionsResponseProto { protocol_versions: vec![version] })
        }
        // fingerprints of Java methods; clients fall back to trying the method
        Meta::Signatures => Err(super::unsupported("getProtocolSignature")),
    }
}
