//! The SASL exchange, message by message, with a mechanism of the test's own.

mod support;

use bytes::{Bytes, BytesMut};
use hadoop_proto::common::rpc_sasl_proto::{SaslAuth, SaslState};
use hadoop_proto::common::{
    IpcConnectionContextProto, RequestHeaderProto, RpcRequestHeaderProto, RpcResponseHeaderProto, RpcSaslProto,
    UserInformationProto,
};
use hadoop_proto::frame::{AUTH_NONE, AUTH_SASL, ConnectionHeader, put_message, put_packet};
use hadoop_proto::wire::Sink;
use prost::Message;
use rpc::Settings;
use security::sasl::{Exchange, Failure, Mechanisms, Offer, Offers, Step};
use std::sync::Arc;
use support::{Port, port, port_for, users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use vocab::AuthenticationMethod;

/// Kim proves itself by answering 2 with the double.
#[derive(Debug)]
struct Doubling;

struct DoublingExchange {
    asked: bool,
}

impl Mechanisms for Doubling {
    fn methods(&self) -> Vec<String> {
        vec!["KERBEROS".into()]
    }
    fn offers(&self) -> Offers {
        let offer = Offer {
            method: "KERBEROS".into(),
            mechanism: "DOUBLE".into(),
            protocol: "nn".into(),
            server_id: "h".into(),
            challenge: None,
        };
        Offers { all: vec![offer], begun: None }
    }
    fn begin(&self, method: &str, mechanism: &str) -> Option<Box<dyn Exchange>> {
        ((method, mechanism) == ("KERBEROS", "DOUBLE"))
            .then(|| Box::new(DoublingExchange { asked: false }) as Box<dyn Exchange>)
    }
}

impl Exchange for DoublingExchange {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        match (self.asked, token) {
            (false, b"hello") => {
                self.asked = true;
                Ok(Step::Challenge(vec![2]))
            }
            (true, [4]) => {
                let token = Some(b"welcome".to_vec());
                Ok(Step::Proved { principal: "kim".into(), real: None, method: AuthenticationMethod::Kerberos, token })
            }
            _ => Err(Failure::Refused("wrong double".into())),
        }
    }
}

/// A client that says exactly what it is told.
struct Wire(TcpStream);

impl Wire {
    async fn open(port: &Port, auth_protocol: u8) -> Wire {
        let mut stream = TcpStream::connect(port.address).await.unwrap();
        stream.write_all(&ConnectionHeader { service_class: 0, auth_protocol }.to_bytes()).await.unwrap();
        Wire(stream)
    }
    async fn send(&mut self, call_id: i32, fill: impl FnOnce(&mut BytesMut)) {
        let header = RpcRequestHeaderProto {
            rpc_kind: Some(2),
            rpc_op: Some(0),
            call_id,
            client_id: Bytes::from_static(&[0; 16]),
            ..Default::default()
        };
        let mut packet = BytesMut::new();
        put_packet(&mut packet, |out| {
            put_message(out, &header);
            fill(out);
        });
        self.0.write_all(&packet).await.unwrap();
    }
    async fn sasl(&mut self, state: SaslState, auth: Option<(&str, &str)>, token: Option<&'static [u8]>) {
        let auths = auth.map(|(method, mechanism)| SaslAuth {
            method: method.into(),
            mechanism: mechanism.into(),
            ..Default::default()
        });
        let message = RpcSaslProto {
            state: state as i32,
            token: token.map(Bytes::from_static),
            auths: auths.into_iter().collect(),
            ..Default::default()
        };
        self.send(-33, |out| put_message(out, &message)).await;
    }
    async fn receive(&mut self) -> (RpcResponseHeaderProto, Bytes) {
        let length = self.0.read_u32().await.unwrap();
        let mut packet = vec![0; length as usize];
        self.0.read_exact(&mut packet).await.unwrap();
        let mut packet = Bytes::from(packet);
        let header = RpcResponseHeaderProto::decode_length_delimited(&mut packet).unwrap();
        (header, packet)
    }
    async fn sasl_answer(&mut self) -> RpcSaslProto {
        let (header, body) = self.receive().await;
        assert_eq!((header.call_id as i32, header.status), (-33, 0), "{header:?}");
        RpcSaslProto::decode_length_delimited(body).unwrap()
    }
    /// Says who calls and asks the server who that is.
    async fn who(&mut self, user: &str) -> Result<String, String> {
        let user_info = UserInformationProto { effective_user: Some(user.into()), real_user: None };
        let context =
            IpcConnectionContextProto { user_info: Some(user_info), protocol: Some(support::PROTOCOL.into()) };
        self.send(-3, |out| put_message(out, &context)).await;
        let names = RequestHeaderProto {
            method_name: "who".into(),
            declaring_class_protocol_name: support::PROTOCOL.into(),
            client_protocol_version: 1,
        };
        self.send(0, |out| {
            put_message(out, &names);
            out.put_delimited(b"");
        })
        .await;
        self.outcome().await
    }
    async fn outcome(&mut self) -> Result<String, String> {
        let (header, body) = self.receive().await;
        match header.error_msg {
            Some(text) => Err(format!("{}: {text}", header.exception_class_name.unwrap())),
            None => Ok(String::from_utf8(body[1..].to_vec()).unwrap()),
        }
    }
}

#[tokio::test]
async fn a_port_without_mechanisms_says_success() {
    let port = port(Settings::default());
    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Negotiate, None, None).await;
    assert_eq!(wire.sasl_answer().await.state, SaslState::Success as i32);
    assert_eq!(wire.who("alice").await.unwrap(), "alice||staff,dev||-1|127.0.0.1|Simple");

    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Initiate, Some(("KERBEROS", "GSSAPI")), None).await;
    let refused = wire.outcome().await.unwrap_err();
    assert!(
        refused.ends_with("AccessControlException: KERBEROS authentication is not enabled.  Available:[SIMPLE]"),
        "{refused}"
    );
}

#[tokio::test]
async fn mechanisms_prove_who_calls() {
    let port = port_for(Settings::default(), users().with_mechanisms(Arc::new(Doubling), false));
    // a bare claim does not count
    let mut wire = Wire::open(&port, AUTH_NONE).await;
    let refused = wire.outcome().await.unwrap_err();
    assert!(refused.ends_with("SIMPLE authentication is not enabled.  Available:[KERBEROS]"), "{refused}");

    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Negotiate, None, None).await;
    let offer = wire.sasl_answer().await;
    assert_eq!(offer.state, SaslState::Negotiate as i32);
    assert_eq!(offer.auths.iter().map(|a| &*a.method).collect::<Vec<_>>(), ["KERBEROS"]);
    wire.sasl(SaslState::Initiate, Some(("KERBEROS", "DOUBLE")), Some(b"hello")).await;
    let challenge = wire.sasl_answer().await;
    assert_eq!((challenge.state, challenge.token.as_deref()), (SaslState::Challenge as i32, Some(&[2][..])));
    wire.sasl(SaslState::Response, None, Some(&[4])).await;
    let success = wire.sasl_answer().await;
    assert_eq!((success.state, success.token.as_deref()), (SaslState::Success as i32, Some(&b"welcome"[..])));
    assert_eq!(wire.who("kim").await.unwrap(), "kim||||-1|127.0.0.1|Kerberos");

    // who proved to be kim cannot pass as alice without a rule for it
    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Initiate, Some(("KERBEROS", "DOUBLE")), Some(b"hello")).await;
    wire.sasl_answer().await;
    wire.sasl(SaslState::Response, None, Some(&[4])).await;
    wire.sasl_answer().await;
    let refused = wire.who("alice").await.unwrap_err();
    assert!(refused.ends_with("User: kim is not allowed to impersonate alice"), "{refused}");
}

#[tokio::test]
async fn wrong_answers_and_steps_out_of_order_are_refused() {
    let port = port_for(Settings::default(), users().with_mechanisms(Arc::new(Doubling), true));
    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Initiate, Some(("KERBEROS", "DOUBLE")), Some(b"hello")).await;
    wire.sasl_answer().await;
    wire.sasl(SaslState::Response, None, Some(&[5])).await;
    assert_eq!(wire.outcome().await.unwrap_err(), "javax.security.sasl.SaslException: wrong double");

    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Response, None, Some(&[4])).await;
    assert!(wire.outcome().await.is_err());

    // the context must wait for the end of the exchange
    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Initiate, Some(("KERBEROS", "DOUBLE")), Some(b"hello")).await;
    wire.sasl_answer().await;
    assert!(wire.who("kim").await.unwrap_err().contains("Connection header sent during SASL negotiation"));

    // SIMPLE is on offer too, and takes no answer
    let mut wire = Wire::open(&port, AUTH_SASL).await;
    wire.sasl(SaslState::Negotiate, None, None).await;
    let offer = wire.sasl_answer().await;
    assert_eq!(offer.auths.iter().map(|a| &*a.method).collect::<Vec<_>>(), ["KERBEROS", "SIMPLE"]);
    wire.sasl(SaslState::Initiate, Some(("SIMPLE", "")), None).await;
    assert_eq!(wire.who("alice").await.unwrap(), "alice||staff,dev||-1|127.0.0.1|Simple");
}
