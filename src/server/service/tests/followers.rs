//! Who follows the log, and who asks for tokens.

use super::world::{CLIENT, start};
use super::{create, mkdirs};
use crate::service::table::PortKind;
use hadoop_proto::Message;
use hadoop_proto::common::{
    CancelDelegationTokenRequestProto, CancelDelegationTokenResponseProto, GetDelegationTokenRequestProto,
    GetDelegationTokenResponseProto, RenewDelegationTokenRequestProto, RenewDelegationTokenResponseProto,
};
use hadoop_proto::hdfs::*;
use security::token::{Identifier, KEY_BYTES};

fn from(txid: i64) -> GetEditsFromTxidRequestProto {
    GetEditsFromTxidRequestProto { txid }
}

#[tokio::test]
async fn events_of_what_is_durable_in_pieces_of_the_size_allowed() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    for name in ["/a", "/b", "/c"] {
        let _: MkdirsResponseProto = peer.call("mkdirs", &mkdirs(name)).await;
    }
    let _: RollEditsResponseProto = peer.call("rollEdits", &RollEditsRequestProto {}).await;
    let _: CreateResponseProto = peer.call("create", &create("/a/f")).await;
    let current: GetCurrentEditLogTxidResponseProto =
        peer.call("getCurrentEditLogTxid", &GetCurrentEditLogTxidRequestProto {}).await;

    let all: GetEditsFromTxidResponseProto = peer.call("getEditsFromTxid", &from(1)).await;
    let list = all.events_list;
    assert_eq!((list.first_txid, list.last_txid, list.sync_txid), (1, current.txid, current.txid));
    let paths: Vec<(i64, String)> = list
        .batch
        .iter()
        .flat_map(|batch| batch.events.iter().map(|event| (batch.txid, event)))
        .map(|(txid, event)| (txid, CreateEventProto::decode(&*event.contents).unwrap().path))
        .collect();
    // 1 begins the segment, 5 ends it, 6 begins the next
    let expected = [(2, "/a"), (3, "/b"), (4, "/c"), (7, "/a/f")];
    assert_eq!(paths, expected.map(|(txid, path)| (txid, path.to_owned())));

    let settings = ops::Settings { events_per_call: 2, ..(**world.shared.engine.settings()).clone() };
    world.shared.engine.set_settings(settings);
    let some: GetEditsFromTxidResponseProto = peer.call("getEditsFromTxid", &from(2)).await;
    let list = some.events_list;
    assert_eq!((list.batch.len(), list.first_txid, list.last_txid), (2, 2, 3));
    let none: GetEditsFromTxidResponseProto = peer.call("getEditsFromTxid", &from(current.txid + 1)).await;
    let list = none.events_list;
    assert_eq!((list.batch.len(), list.first_txid, list.last_txid, list.sync_txid), (0, -1, -1, current.txid));

    for before in [0, -1, i64::MIN] {
        let refused = peer.refused("getEditsFromTxid", &from(before)).await;
        assert!(
            refused.message.ends_with(&format!("unable to find any edit logs containing txid {before}")),
            "{}",
            refused.message
        );
    }
    let bob = world.connect(CLIENT, "bob").await;
    let refused = bob.refused("getEditsFromTxid", &from(1)).await;
    let text = "Access denied for user bob. Superuser privilege is required for operation getEditsFromTxid";
    assert_eq!(refused.message, text);
}

/// Classes and texts are those of a name node of Hadoop 3.5.0 that was asked the same.
#[tokio::test]
async fn tokens_are_issued_renewed_and_cancelled() {
    let world = start(PortKind::Client);
    let (alice, renewer) = (world.connect(CLIENT, "alice").await, world.connect(CLIENT, "jt").await);
    let ask = |renewer: &str| GetDelegationTokenRequestProto { renewer: renewer.to_owned() };
    let none: GetDelegationTokenResponseProto = alice.call("getDelegationToken", &ask("jt")).await;
    assert_eq!(none.token, None, "tokens are not in use");
    let settings = ops::Settings { tokens: true, ..(**world.shared.engine.settings()).clone() };
    world.shared.engine.set_settings(settings);

    let issued: GetDelegationTokenResponseProto = alice.call("getDelegationToken", &ask("jt/host@REALM")).await;
    let token = issued.token.unwrap();
    assert_eq!((token.kind.as_str(), token.service.as_str(), token.password.len()), ("HDFS_DELEGATION_TOKEN", "", 20));
    let said = Identifier::decode(&token.identifier).unwrap();
    assert_eq!((said.owner.as_str(), said.renewer.as_str(), said.sequence_number), ("alice", "jt", 1));
    assert_eq!(said.max_date - said.issue_date, 7 * 86_400_000);

    let renew = |token: &hadoop_proto::common::TokenProto| RenewDelegationTokenRequestProto { token: token.clone() };
    let renewed: RenewDelegationTokenResponseProto = renewer.call("renewDelegationToken", &renew(&token)).await;
    assert_eq!(renewed.new_expiry_time as i64 - said.issue_date, 86_400_000);
    let shown = format!("(token for alice: {said})");
    let refused = alice.refused("renewDelegationToken", &renew(&token)).await;
    assert_eq!(&*refused.class, "org.apache.hadoop.security.AccessControlException");
    assert_eq!(refused.message, format!("alice tries to renew a token {shown} with non-matching renewer jt"));
    let mut wrong = token.clone();
    wrong.password = vec![0; 20].into();
    let refused = renewer.refused("renewDelegationToken", &renew(&wrong)).await;
    assert_eq!(refused.message, format!("jt is trying to renew a token {shown} with wrong password"));

    let cancel = |token: &hadoop_proto::common::TokenProto| CancelDelegationTokenRequestProto { token: token.clone() };
    let hdfs = world.connect(CLIENT, "hdfs").await;
    let refused = hdfs.refused("cancelDelegationToken", &cancel(&token)).await;
    assert_eq!(refused.message, format!("hdfs is not authorized to cancel the token {shown}"));
    let _: CancelDelegationTokenResponseProto = alice.call("cancelDelegationToken", &cancel(&token)).await;
    let refused = alice.refused("cancelDelegationToken", &cancel(&token)).await;
    assert_eq!(&*refused.class, "org.apache.hadoop.security.token.SecretManager$InvalidToken");
    assert_eq!(refused.message, format!("Token not found {shown}"));
    let refused = renewer.refused("renewDelegationToken", &renew(&token)).await;
    assert_eq!(refused.message, format!("Renewal request for unknown token {shown}"));
}

#[tokio::test]
async fn expired_master_keys_stay() {
    let world = start(PortKind::Client);
    let engine = world.shared.engine.clone();
    engine.set_settings(ops::Settings { tokens: true, ..(**engine.settings()).clone() });
    let alice = world.connect(CLIENT, "alice").await;
    let ask = GetDelegationTokenRequestProto { renewer: "jt".to_owned() };
    let _: GetDelegationTokenResponseProto = alice.call("getDelegationToken", &ask).await;
    let caller = super::super::own_caller(&engine);
    let tend = |secret: [u8; KEY_BYTES]| {
        engine.turn("tend", &caller, |turn| ops::write::tokens::tend_tokens(turn, secret)).answer
    };
    let known = || {
        engine.view("known", &caller, |view| {
            (view.state.tokens.current_key, view.state.tokens.keys.len(), view.state.tokens.tokens.len())
        })
    };
    assert!(!tend([1; KEY_BYTES]));
    assert_eq!(known(), (1, 1, 1));
    // a day later the key is replaced, and the token gone that nobody has renewed; ten days later the first key has expired
    for (days, key) in [(1, 2), (10, 3)] {
        world.clock.advance(days * 86_400_000 + 1);
        world.clock.set_wall(engine.now().wall.0 + days as i64 * 86_400_000 + 1);
        for secret in [2, 3] {
            assert!(!tend([secret; KEY_BYTES]));
            assert_eq!(known(), (key, key as usize, 0));
        }
    }
}
