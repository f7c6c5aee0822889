//! `HAServiceProtocol`: whether the name node is healthy and which role it has. Roles change only where there are several name nodes.

use super::table::Ha;
use super::{Answer, EMPTY, Shared, message, superuser};
use engine::HaState;
use hadoop_proto::common::{GetServiceStatusResponseProto, HaServiceStateProto};
use observe::RemoteException;
use observe::remote_exception::class;
use vocab::Caller;

pub(super) fn serve(shared: &Shared, method: Ha, caller: &Caller) -> Answer {
    let name = match method {
        Ha::MonitorHealth => {
            superuser(shared, caller, "monitorHealth")?;
            return Ok(EMPTY);
        }
        Ha::Status => return message(&status(shared)?),
        Ha::ToActive => "transitionToActive",
        Ha::ToStandby => "transitionToStandby",
        Ha::ToObserver => "transitionToObserver",
    };
    superuser(shared, caller, name)?;
    enabled(shared)?;
    Err(super::unsupported(name))
}

/// Role for `getServiceStatus` and the client protocol's `getHAServiceState`.
pub(super) fn state(shared: &Shared) -> Result<HaServiceStateProto, RemoteException> {
    enabled(shared)?;
    Ok(match shared.engine.gate().state() {
        HaState::Active => HaServiceStateProto::Active,
        HaState::Standby => HaServiceStateProto::Standby,
        HaState::Initializing | HaState::Stopping => HaServiceStateProto::Initializing,
    })
}

fn status(shared: &Shared) -> Result<GetServiceStatusResponseProto, RemoteException> {
    let state = state(shared)?;
    let (ready, reason) = match state {
        HaServiceStateProto::Active => (true, None),
        HaServiceStateProto::Standby => (false, Some("this name node does not change its role")),
        _ => (false, Some("State is INITIALIZING")),
    };
    Ok(GetServiceStatusResponseProto {
        state: state as i32,
        ready_to_become_active: Some(ready),
        not_ready_reason: reason.map(str::to_owned),
    })
}

fn enabled(shared: &Shared) -> Result<(), RemoteException> {
    if shared.identity.high_availability {
        return Ok(());
    }
    Err(RemoteException::application(class::SERVICE_FAILED, "HA for namenode is not enabled"))
}
