//! The SASL exchange of a connection that asked for one (`RpcSaslProto`). The steps are those of `security::sasl`; here is their order.
//!
//! ```text
//!  NotAsked
//!  Asked --negotiate, SIMPLE alone--> Simple
//!  Asked --negotiate--> Offered --initiate SIMPLE--> Simple
//!  Asked or Offered --initiate--> Exchanging --response--> Exchanging or Proved
//! ```

use crate::call::{ErrorCode, RemoteException};
use bytes::Bytes;
use hadoop_proto::common::RpcSaslProto;
use hadoop_proto::common::rpc_sasl_proto::{SaslAuth, SaslState};
use security::Users;
use security::sasl::{Exchange, Failure, Offer, Step};
use vocab::AuthenticationMethod;

/// How far the exchange is.
pub(crate) enum Negotiation {
    /// The connection header did not ask for SASL.
    NotAsked,
    /// It did; nothing came yet.
    Asked,
    /// The client knows what there is.
    /// An exchange whose challenge it has may be begun.
    Offered(Option<Box<dyn Exchange>>),
    /// Steps go back and forth.
    Exchanging(Box<dyn Exchange>),
    /// Over: what the connection context claims counts.
    Simple,
    /// Over: who calls is known.
    Proved { principal: String, real: Option<String>, method: AuthenticationMethod },
}

impl Negotiation {
    /// Whether the connection context may come.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, Negotiation::NotAsked | Negotiation::Simple | Negotiation::Proved { .. })
    }

    /// One message of the client; the answer, if it gets one.
    pub(crate) fn step(
        &mut self,
        users: &Users,
        message: &RpcSaslProto,
    ) -> Result<Option<RpcSaslProto>, RemoteException> {
        if matches!(self, Negotiation::NotAsked) {
            let text = "SASL protocol not requested by client";
            return Err(RemoteException::fatal(ErrorCode::FatalInvalidRpcHeader, text));
        }
        let unauthorized = |text: String| RemoteException::sasl(ErrorCode::FatalUnauthorized, text);
        match SaslState::try_from(message.state) {
            Ok(SaslState::Negotiate) if matches!(self, Negotiation::Asked) => Ok(Some(self.offer(users))),
            Ok(SaslState::Negotiate) => {
                Err(RemoteException::negotiation_refused("Client already attempted negotiation"))
            }
            Ok(SaslState::Initiate) => match message.auths.as_slice() {
                [auth] => self.initiate(users, auth, message.token.as_deref()),
                _ => Err(unauthorized("Client mechanism is malformed".into())),
            },
            Ok(SaslState::Response) => match message.token.as_deref() {
                Some(token) => self.exchange(token).map(Some),
                None => Err(unauthorized("Client did not send a token".into())),
            },
            Ok(SaslState::Wrap) => {
                Err(RemoteException::sasl(ErrorCode::FatalInvalidRpcHeader, "Server is not wrapping data"))
            }
            Ok(SaslState::Success | SaslState::Challenge) | Err(_) => {
                Err(unauthorized(format!("Client sent unsupported state {}", message.state)))
            }
        }
    }

    fn offer(&mut self, users: &Users) -> RpcSaslProto {
        let Some(mechanisms) = users.mechanisms() else {
            // a server that takes SIMPLE alone says success, which tells the client to go on without SASL
            *self = Negotiation::Simple;
            return RpcSaslProto { state: SaslState::Success as i32, ..Default::default() };
        };
        let offers = mechanisms.offers();
        *self = Negotiation::Offered(offers.begun);
        let simple = users.accepts_simple().then(|| Offer { method: "SIMPLE".into(), ..Offer::default() });
        let auths = offers.all.into_iter().chain(simple).map(|offer| SaslAuth {
            protocol: (offer.method != "SIMPLE").then_some(offer.protocol),
            server_id: (offer.method != "SIMPLE").then_some(offer.server_id),
            challenge: offer.challenge.map(Bytes::from),
            method: offer.method,
            mechanism: offer.mechanism,
        });
        RpcSaslProto { state: SaslState::Negotiate as i32, auths: auths.collect(), ..Default::default() }
    }

    fn initiate(
        &mut self,
        users: &Users,
        auth: &SaslAuth,
        token: Option<&[u8]>,
    ) -> Result<Option<RpcSaslProto>, RemoteException> {
        if !matches!(self, Negotiation::Asked | Negotiation::Offered(_)) {
            return Err(RemoteException::negotiation_refused("Client already attempted negotiation"));
        }
        if auth.method == "SIMPLE" && users.accepts_simple() {
            *self = Negotiation::Simple;
            return Ok(None);
        }
        let begin = || users.mechanisms().and_then(|m| m.begin(&auth.method, &auth.mechanism));
        let exchange = match std::mem::replace(self, Negotiation::Asked) {
            // the challenge of the first offer went out with it
            Negotiation::Offered(Some(begun)) if is_first_offer(users, &auth.method) => Some(begun),
            _ => begin(),
        };
        *self = Negotiation::Exchanging(exchange.ok_or_else(|| not_enabled(users, &auth.method))?);
        self.exchange(token.unwrap_or_default()).map(Some)
    }

    fn exchange(&mut self, token: &[u8]) -> Result<RpcSaslProto, RemoteException> {
        let Negotiation::Exchanging(exchange) = self else {
            let text = "Client sent a token outside of an exchange";
            return Err(RemoteException::sasl(ErrorCode::FatalUnauthorized, text));
        };
        let (state, token) = match exchange.step(token) {
            Ok(Step::Challenge(bytes)) => (SaslState::Challenge, Some(bytes)),
            Ok(Step::Proved { principal, real, method, token }) => {
                *self = Negotiation::Proved { principal, real, method };
                (SaslState::Success, token)
            }
            Err(Failure::Refused(text)) => return Err(RemoteException::sasl(ErrorCode::FatalUnauthorized, text)),
            Err(Failure::BadToken(text)) => return Err(RemoteException::token_refused(text)),
            Err(Failure::Standby(text)) => return Err(RemoteException::token_on_standby(text)),
        };
        Ok(RpcSaslProto { state: state as i32, token: token.map(Bytes::from), ..Default::default() })
    }
}

fn is_first_offer(users: &Users, method: &str) -> bool {
    users.mechanisms().is_some_and(|m| m.methods().first().is_some_and(|first| first == method))
}

/// The method is not among those in force.
pub(crate) fn not_enabled(users: &Users, method: &str) -> RemoteException {
    let mut available: Vec<_> = users.mechanisms().into_iter().flat_map(|m| m.methods()).collect();
    if users.accepts_simple() {
        available.push("SIMPLE".into());
    }
    let available = available.join(", ");
    RemoteException::negotiation_refused(format!("{method} authentication is not enabled.  Available:[{available}]"))
}
