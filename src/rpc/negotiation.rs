//! The SASL exchange of a connection that asked for one (`RpcSaslProto`). A port without secrets answers that the plain way is enough.

use crate::call::{ErrorCode, RemoteException};
use hadoop_proto::common::RpcSaslProto;
use hadoop_proto::common::rpc_sasl_proto::SaslState;

/// How far the exchange is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Negotiation {
    /// The connection header did not ask for SASL.
    NotAsked,
    /// It did; nothing came yet.
    Asked,
    /// Over: the connection context decides who calls.
    Simple,
}

impl Negotiation {
    /// One message of the client; the answer, if it gets one.
    pub(crate) fn step(&mut self, message: &RpcSaslProto) -> Result<Option<RpcSaslProto>, RemoteException> {
        if *self == Negotiation::NotAsked {
            return Err(RemoteException::fatal(
                ErrorCode::FatalInvalidRpcHeader,
                "SASL protocol not requested by client",
            ));
        }
        match (SaslState::try_from(message.state), *self) {
            (Ok(SaslState::Negotiate), Negotiation::Asked) => {
                // a server that takes SIMPLE alone says success, which tells the client to go on without SASL
                *self = Negotiation::Simple;
                Ok(Some(RpcSaslProto { state: SaslState::Success as i32, ..Default::default() }))
            }
            (Ok(SaslState::Negotiate), _) => {
                Err(RemoteException::negotiation_refused("Client already attempted negotiation"))
            }
            (Ok(SaslState::Initiate), _) => match message.auths.as_slice() {
                [auth] if auth.method == "SIMPLE" => {
                    *self = Negotiation::Simple;
                    Ok(None)
                }
                [auth] => Err(RemoteException::negotiation_refused(format!(
                    "{} authentication is not enabled.  Available:[SIMPLE]",
                    auth.method
                ))),
                _ => Err(RemoteException::sasl(ErrorCode::FatalUnauthorized, "Client mechanism is malformed")),
            },
            (Ok(SaslState::Response), _) => {
                Err(RemoteException::sasl(ErrorCode::FatalUnauthorized, "Client did not send a token"))
            }
            (Ok(SaslState::Wrap), _) => {
                Err(RemoteException::sasl(ErrorCode::FatalInvalidRpcHeader, "Server is not wrapping data"))
            }
            _ => Err(RemoteException::sasl(
                ErrorCode::FatalUnauthorized,
                format!("Client sent unsupported state {}", message.state),
            )),
        }
    }
}
