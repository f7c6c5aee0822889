//! Faults of request headers and of messages about the connection, in Hadoop's words.

use crate::call::{ErrorCode, RemoteException};
use bytes::Bytes;
use hadoop_proto::common::RpcKindProto;
use hadoop_proto::common::rpc_request_header_proto::OperationProto;
use hadoop_proto::frame::split_delimited;
use hadoop_proto::view;
use prost::Message;

/// Faults of a header that end the connection.
pub(crate) fn check(header: &view::rpc::RpcRequestHeader<'_>) -> Result<(), RemoteException> {
    match (header.rpc_op, header.rpc_kind) {
        (None, _) => Err(invalid_header(" IPC Server: No rpc op in rpcRequestHeader")),
        (Some(OperationProto::RpcFinalPacket), None) => {
            Err(invalid_header(" IPC Server: No rpc kind in rpcRequestHeader"))
        }
        (Some(OperationProto::RpcFinalPacket), Some(kind)) => match kind {
            RpcKindProto::RpcProtocolBuffer => Ok(()),
            _ if header.call_id.0 < 0 => Ok(()),
            other => Err(invalid_header(format!("Unknown rpc kind in rpc header{}", other.as_str_name()))),
        },
        (Some(other), _) => {
            let text = format!("IPC Server does not implement rpc header operation{}", other.as_str_name());
            Err(invalid_header(text))
        }
    }
}

pub(crate) fn invalid_header(text: impl Into<String>) -> RemoteException {
    RemoteException::fatal(ErrorCode::FatalInvalidRpcHeader, text)
}

/// A delimited message about the connection.
pub(crate) fn message<M: Message + Default>(name: &str, rest: &mut Bytes) -> Result<M, RemoteException> {
    let bytes = split_delimited(rest).map_err(|e| undecodable(name, e))?;
    M::decode(bytes).map_err(|e| undecodable(name, e))
}

pub(crate) fn undecodable(name: &str, error: impl std::fmt::Display) -> RemoteException {
    RemoteException::fatal(ErrorCode::FatalDeserializingRequest, format!("Error decoding {name}: {error}"))
}
