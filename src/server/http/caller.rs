//! Who asks over HTTP, as far as it says so: parameters name the user where nobody has to prove anything.

use crate::service::Shared;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use vocab::{AuthenticationMethod, Caller};

/// The caller of a request: `user.name`, else the first word of `ugi`, else the static user of the pages.
pub(super) async fn caller_of(
    shared: &Arc<Shared>,
    parameters: &HashMap<String, String>,
    address: SocketAddr,
    static_user: &str,
) -> Caller {
    let ugi = || parameters.get("ugi").and_then(|ugi| ugi.split(',').next());
    let named = parameters.get("user.name").map(String::as_str).or_else(ugi).filter(|name| !name.is_empty());
    let user = named.unwrap_or(static_user);
    let groups = shared.users.groups().of(user).await.groups;
    Caller {
        user: user.into(),
        real_user: None,
        groups,
        method: AuthenticationMethod::Simple,
        address,
        rpc_ids: None,
        retry: -1,
        context: None,
    }
}
