//! `ProtocolInfoService`: which versions and methods of a protocol the port has.

use super::table::{Meta, PortKind};
use super::{Answer, decode, message, signatures};
use bytes::Bytes;
use hadoop_proto::common::{
    GetProtocolSignatureRequestProto, GetProtocolSignatureResponseProto, GetProtocolVersionsRequestProto,
    GetProtocolVersionsResponseProto, ProtocolSignatureProto, ProtocolVersionProto,
};
use observe::RemoteException;
use observe::remote_exception::class;

/// Name of the RPC kind that all protocols have.
const KIND: &str = "RPC_PROTOCOL_BUFFER";
/// Names of the others.
const OTHER_KINDS: [&str; 2] = ["RPC_BUILTIN", "RPC_WRITABLE"];

pub(super) fn serve(port: PortKind, method: Meta, body: Bytes) -> Answer {
    match method {
        Meta::Versions => {
            let request: GetProtocolVersionsRequestProto = decode(body)?;
            let versions = signatures::service(port, &request.protocol)?
                .map(|found| ProtocolVersionProto { rpc_kind: KIND.to_owned(), versions: vec![found.version] });
            message(&GetProtocolVersionsResponseProto { protocol_versions: versions.into_iter().collect() })
        }
        Meta::Signatures => {
            let request: GetProtocolSignatureRequestProto = decode(body)?;
            let kind = &request.rpc_kind;
            if kind != KIND && !OTHER_KINDS.contains(&kind.as_str()) {
                let text = format!("No enum constant org.apache.hadoop.ipc.RPC.RpcKind.{kind}");
                return Err(RemoteException::application(class::ILLEGAL_ARGUMENT, text));
            }
            let signature = signatures::service(port, &request.protocol)?
                .filter(|_| kind == KIND)
                .map(|found| ProtocolSignatureProto { version: found.version, methods: signatures::of(found) });
            message(&GetProtocolSignatureResponseProto { protocol_signature: signature.into_iter().collect() })
        }
    }
}
