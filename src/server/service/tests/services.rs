//! Who may use which protocol.

use super::world::{CLIENT, start_for};
use crate::service::table::PortKind;
use hadoop_proto::common::{RefreshServiceAclRequestProto, RefreshServiceAclResponseProto};
use hadoop_proto::hdfs::{GetFileInfoRequestProto, GetFileInfoResponseProto};
use observe::remote_exception::class;
use security::service::{AccessList, ServiceAcl, ServiceAcls};

const POLICY: &str = "org.apache.hadoop.security.authorize.RefreshAuthorizationPolicyProtocol";

#[tokio::test]
async fn protocols_are_refused_call_by_call() {
    let acl = |allowed| ServiceAcl {
        allowed: AccessList::parse(allowed),
        hosts: security::proxy::Hosts::All,
        ..ServiceAcl::default()
    };
    let acls = ServiceAcls([(CLIENT, acl("alice")), (POLICY, acl("*"))].into());
    let world = start_for(PortKind::Client, |users| users.with_service_acls(acls));
    let asked = GetFileInfoRequestProto { src: "/".into() };
    let alice = world.connect(CLIENT, "alice").await;
    let root: GetFileInfoResponseProto = alice.call("getFileInfo", &asked).await;
    assert!(root.fs.is_some());
    let bob = world.connect(CLIENT, "bob").await;
    let refused = bob.refused("getFileInfo", &asked).await;
    assert_eq!(refused.class, class::AUTHORIZATION);
    assert_eq!(
        refused.message,
        format!("User bob (auth:SIMPLE) is not authorized for protocol interface {CLIENT}: denied by configured ACL")
    );
    // the lists are read again: this name node's reader knows none
    let admin = world.connect(POLICY, "hdfs").await;
    let _: RefreshServiceAclResponseProto =
        admin.call("refreshServiceAcl", &RefreshServiceAclRequestProto::default()).await;
    let refused = alice.refused("getFileInfo", &asked).await;
    assert_eq!(refused.message, format!("Protocol interface {CLIENT} is not known."));
}
