//! The refresh protocols, and the groups of a user.

use super::table::Refresh;
use super::{Answer, EMPTY, Shared, decode, message};
use bytes::Bytes;
use hadoop_proto::common::{GenericRefreshRequestProto, GetGroupsForUserRequestProto, GetGroupsForUserResponseProto};
use observe::RemoteException;
use observe::remote_exception::class;
use vocab::Caller;

pub(super) async fn serve(shared: &Shared, method: Refresh, caller: &Caller, body: Bytes) -> Answer {
    match method {
        Refresh::UserToGroups => {
            tracing::info!(user = %caller.user, "groups of users are forgotten");
            shared.users.groups().refresh();
            Ok(EMPTY)
        }
        Refresh::SuperUserGroups => {
            let rules = shared.reload.proxy_rules().map_err(|e| RemoteException::application(class::IO, e))?;
            tracing::info!(user = %caller.user, "proxy rules are read again");
            shared.users.set_proxy_rules(rules);
            Ok(EMPTY)
        }
        Refresh::ServiceAcl => {
            if shared.users.service_acls().is_none() {
                let text = "Service Level Authorization not enabled!";
                return Err(RemoteException::application(class::AUTHORIZATION, text));
            }
            let acls = shared.reload.service_acls().map_err(|e| RemoteException::application(class::IO, e))?;
            tracing::info!(user = %caller.user, "lists for protocols are read again");
            shared.users.set_service_acls(acls);
            Ok(EMPTY)
        }
        // calls are served where they arrive; there is no queue to change
        Refresh::CallQueue => Ok(EMPTY),
        Refresh::Generic => {
            let request: GenericRefreshRequestProto = decode(body)?;
            let id = request.identifier.unwrap_or_default();
            let text = format!("Identifier '{id}' does not exist in RefreshRegistry. Valid options are: ");
            Err(RemoteException::application(class::ILLEGAL_ARGUMENT, text))
        }
        Refresh::GroupsOfUser => {
            let request: GetGroupsForUserRequestProto = decode(body)?;
            let groups = shared.users.groups().of(&request.user).await.groups;
            message(&GetGroupsForUserResponseProto { groups: groups.iter().map(|g| g.to_string()).collect() })
        }
    }
}
