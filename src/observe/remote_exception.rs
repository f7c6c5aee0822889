//! Refusals as Java clients expect them: class name, text, code. The only home of Java exception class names.

use std::borrow::Cow;

/// `RpcErrorCodeProto`: what kind of failure; codes of 10 and above are fatal to the connection.
pub use hadoop_proto::common::rpc_response_header_proto::RpcErrorCodeProto as ErrorCode;

/// An error answer of a call. Clients rebuild the Java exception from the class name and the text, and match on both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteException {
    /// Full Java class name.
    pub class: Cow<'static, str>,
    /// What `getMessage()` of the rebuilt exception begins with.
    pub message: String,
    /// Kind of failure.
    pub code: ErrorCode,
}

impl RemoteException {
    /// An error of the application, the usual kind: the connection goes on.
    pub fn application(class: &'static str, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class), message: message.into(), code: ErrorCode::ErrorApplication }
    }
    /// Whether the connection ends with this answer.
    pub fn is_fatal(&self) -> bool {
        self.code as i32 >= ErrorCode::FatalUnknown as i32
    }
    /// The protocol has no method of this name (`RpcNoSuchMethodException`).
    pub fn no_such_method(method: &str, protocol: &str) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::NO_SUCH_METHOD),
            message: format!("Unknown method {method} called on {protocol} protocol."),
            code: ErrorCode::ErrorNoSuchMethod,
        }
    }
    /// The port does not serve this protocol (`RpcNoSuchProtocolException`).
    pub fn no_such_protocol(protocol: &str) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::NO_SUCH_PROTOCOL),
            message: format!("Unknown protocol: {protocol}"),
            code: ErrorCode::ErrorNoSuchProtocol,
        }
    }
    /// The port serves this protocol in another version (`RPC$VersionMismatch`).
    pub fn protocol_version(protocol: &str, client: u64, server: u64) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::VERSION_MISMATCH),
            message: format!("Protocol {protocol} version mismatch. (client = {client}, server = {server})"),
            code: ErrorCode::ErrorRpcVersionMismatch,
        }
    }
    /// A call that Hadoop knows and this server does not do (`UnsupportedOperationException`).
    pub fn unsupported(message: impl Into<String>) -> RemoteException {
        RemoteException::application(class::UNSUPPORTED_OPERATION, message)
    }
    /// The request body is no message of its type (`InvalidProtocolBufferException`).
    pub fn bad_request(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::INVALID_PROTOCOL_BUFFER),
            message: message.into(),
            code: ErrorCode::ErrorApplication,
        }
    }
    /// An offence against the protocol of the connection, which closes with this answer (`RpcServerException`).
    pub fn fatal(code: ErrorCode, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class::RPC_SERVER), message: message.into(), code }
    }
    /// The client speaks another version of the RPC protocol (`RPC$VersionMismatch`).
    pub fn ipc_version(server: u8, client: i8) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::VERSION_MISMATCH),
            message: format!("Server IPC version {server} cannot communicate with client version {client}"),
            code: ErrorCode::FatalVersionMismatch,
        }
    }
    /// The connection header asks for an authentication protocol that does not exist (`IpcException`).
    pub fn auth_protocol(number: i8) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::IPC),
            message: format!("Unknown auth protocol:{number}"),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// A real user may not act for this user (`AuthorizationException`).
    pub fn unauthorized(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::AUTHORIZATION),
            message: message.into(),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// The SASL exchange broke its own rules (`AccessControlException`).
    pub fn negotiation_refused(message: impl Into<String>) -> RemoteException {
        RemoteException {
            class: Cow::Borrowed(class::ACCESS_CONTROL),
            message: message.into(),
            code: ErrorCode::FatalUnauthorized,
        }
    }
    /// A SASL message that has no place in the exchange (`SaslException`).
    pub fn sasl(code: ErrorCode, message: impl Into<String>) -> RemoteException {
        RemoteException { class: Cow::Borrowed(class::SASL), message: message.into(), code }
    }
}

/// Java class names.
pub mod class {
    #![allow(missing_docs)] // the values say it all
    pub const RPC_SERVER: &str = "org.apache.hadoop.ipc.RpcServerException";
    pub const NO_SUCH_METHOD: &str = "org.apache.hadoop.ipc.RpcNoSuchMethodException";
    pub const NO_SUCH_PROTOCOL: &str = "org.apache.hadoop.ipc.RpcNoSuchProtocolException";
    pub const VERSION_MISMATCH: &str = "org.apache.hadoop.ipc.RPC$VersionMismatch";
    pub const IPC: &str = "org.apache.hadoop.ipc.IpcException";
    pub const AUTHORIZATION: &str = "org.apache.hadoop.security.authorize.AuthorizationException";
    pub const ACCESS_CONTROL: &str = "org.apache.hadoop.security.AccessControlException";
    pub const SASL: &str = "javax.security.sasl.SaslException";
    pub const INVALID_PROTOCOL_BUFFER: &str = "org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException";
    pub const UNSUPPORTED_OPERATION: &str = "java.lang.UnsupportedOperationException";
}
