//! Delegation tokens without security: none is issued.

use super::super::{Answer, EMPTY, decode, unsupported};
use super::Request;
use bytes::Bytes;
use hadoop_proto::common::{
    CancelDelegationTokenRequestProto, GetDelegationTokenRequestProto, RenewDelegationTokenRequestProto,
};
use observe::RemoteException;
use observe::remote_exception::class;

/// None where security is off, and clients go on without one.
pub(super) fn delegation_token(request: &Request<'_>) -> Answer {
    let _: GetDelegationTokenRequestProto = decode(request.body.clone())?;
    request.read(|v| v.check_safe_mode(|| "Cannot issue delegation token".to_owned()))?;
    Ok(EMPTY)
}

pub(super) fn renew(request: &Request<'_>) -> Answer {
    let asked: RenewDelegationTokenRequestProto = decode(request.body.clone())?;
    unknown(request, "renew", &asked.token.identifier)
}

pub(super) fn cancel(request: &Request<'_>) -> Answer {
    let asked: CancelDelegationTokenRequestProto = decode(request.body.clone())?;
    unknown(request, "cancel", &asked.token.identifier)
}

/// Refuses a token: identifiers that are none are told so, all others are left to a name node with security.
fn unknown(request: &Request<'_>, verb: &str, identifier: &Bytes) -> Answer {
    request.read(|v| v.check_safe_mode(|| format!("Cannot {verb} delegation token")))?;
    Err(match identifier.first() {
        None => RemoteException::application(class::EOF, class::EOF),
        Some(0) => unsupported(request.operation.row().method),
        Some(other) => {
            let text = format!("Unknown version of delegation token {}", *other as i8);
            RemoteException::application(class::IO, text)
        }
    })
}
