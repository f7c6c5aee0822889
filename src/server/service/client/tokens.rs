//! Delegation tokens: asked for, renewed, cancelled.

use super::super::tokens::{fresh_secret, local_date};
use super::super::{Answer, EMPTY, Writing, decode, message};
use super::Request;
use bytes::Bytes;
use engine::Decided;
use hadoop_proto::common::{
    CancelDelegationTokenRequestProto, GetDelegationTokenRequestProto, GetDelegationTokenResponseProto,
    RenewDelegationTokenRequestProto, RenewDelegationTokenResponseProto, TokenProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use ops::write::tokens::{CancelDelegationToken, GetDelegationToken, Issued, RenewDelegationToken};
use security::token::{Identifier, KIND, Malformed};

/// None where tokens are not used, and clients go on without one.
pub(super) fn delegation_token(request: &Request<'_>) -> Writing {
    let asked: GetDelegationTokenRequestProto = decode(request.body.clone())?;
    // an empty name stays one: nobody may renew the token
    let short = |name| if str::is_empty(name) { Ok(name) } else { request.shared.users.short(name) };
    let renewer = short(asked.renewer.as_str());
    let renewer = renewer.map_err(|unknown| RemoteException::application(class::ILLEGAL_ARGUMENT, unknown.0))?;
    let operation = GetDelegationToken { renewer: renewer.to_owned(), secret: fresh_secret(request.shared) };
    request.write(operation, |issued| match issued {
        None => Ok(EMPTY),
        Some(Issued { bytes, password, .. }) => {
            let (identifier, password) = (bytes.into(), Bytes::copy_from_slice(&password));
            let token = TokenProto { identifier, password, kind: KIND.to_owned(), service: String::new() };
            message(&GetDelegationTokenResponseProto { token: Some(token) })
        }
    })
}

pub(super) fn renew(request: &Request<'_>) -> Writing {
    let asked: RenewDelegationTokenRequestProto = decode(request.body.clone())?;
    let (identifier, shown) = match identifier(request, "renew", &asked.token.identifier) {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    let operation = RenewDelegationToken {
        identifier: (identifier, asked.token.identifier.to_vec()),
        shown,
        password: asked.token.password.to_vec(),
        date: local_date,
    };
    request.write(operation, |expiry| {
        message(&RenewDelegationTokenResponseProto { new_expiry_time: expiry.0.max(0).unsigned_abs() })
    })
}

pub(super) fn cancel(request: &Request<'_>) -> Writing {
    let asked: CancelDelegationTokenRequestProto = decode(request.body.clone())?;
    let (identifier, shown) = match identifier(request, "cancel", &asked.token.identifier) {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    request.write(CancelDelegationToken { identifier, shown }, |()| Ok(EMPTY))
}

/// The identifier of a token, and how refusals show it; safe mode comes first.
fn identifier(request: &Request<'_>, verb: &str, bytes: &Bytes) -> Result<(Identifier, String), Decided<Answer>> {
    let refused = |exception| Decided { answer: Err(exception), rests_on: request.shared.engine.journal().last() };
    let served = request.read(|v| v.check_safe_mode(|| format!("Cannot {verb} delegation token")));
    served.map_err(refused)?;
    match Identifier::decode(bytes) {
        Ok(identifier) => {
            let short = request.shared.users.short(&identifier.owner);
            let shown = identifier.in_refusal(short.unwrap_or(&identifier.owner));
            Ok((identifier, shown))
        }
        Err(Malformed::Short) => Err(refused(RemoteException::application(class::EOF, class::EOF))),
        Err(Malformed::Version(version)) => {
            let text = format!("Unknown version of delegation token {}", version as i8);
            Err(refused(RemoteException::application(class::IO, text)))
        }
    }
}
