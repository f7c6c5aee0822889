//! Calls and answers between our own client and server.

mod support;

use rpc::client::{CallError, CallOptions, ClientSettings};
use rpc::{CallerContext, Client, ClientId, ErrorCode, Settings};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use support::{PROTOCOL, call, port, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_come_in_any_order() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let slow = async {
        assert_eq!(call(&client, "slow", &[150]).await.unwrap()[..], [150]);
        Instant::now()
    };
    let quick = async {
        for i in 0..200u8 {
            assert_eq!(call(&client, "echo", &[i]).await.unwrap()[..], [i]);
        }
        Instant::now()
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert!(quick < slow, "the quick calls waited for the slow one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_each_get_their_own_answer() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let calls = (0..3_000u32).map(|i| {
        let client = client.clone();
        tokio::spawn(async move {
            let method = if i % 3 == 0 { "slow" } else { "echo" };
            let body = [vec![(i % 5) as u8], i.to_be_bytes().to_vec(), vec![1; (i % 700) as usize]].concat();
            assert_eq!(call(&client, method, &body).await.unwrap(), body);
        })
    });
    for task in calls.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(port.server.counters().calls.load(Ordering::SeqCst), 3_000);
    until("nothing in flight", || port.server.counters().in_flight.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn large_requests_and_answers() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let body: Vec<u8> = (0..20_000_000u32).map(|i| i as u8).collect();
    assert_eq!(call(&client, "echo", &body).await.unwrap(), body);
    assert_eq!(call(&client, "big", &30_000_000u64.to_be_bytes()).await.unwrap().len(), 30_000_000);
}

#[tokio::test]
async fn errors_name_class_text_and_code() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let remote = |result: Result<_, CallError>| match result {
        Err(CallError::Remote(e)) => (e.class.into_owned(), e.message, e.code),
        other => panic!("{other:?}"),
    };
    let io = "java.io.IOException".to_owned();
    assert_eq!(remote(call(&client, "fail", b"no way").await), (io, "no way".to_owned(), ErrorCode::ErrorApplication));
    let unknown = remote(call(&client, "nope", b"").await);
    assert_eq!(unknown.0, "org.apache.hadoop.ipc.RpcNoSuchMethodException");
    assert_eq!(unknown.1, "Unknown method nope called on test.ToyProtocol protocol.");
    assert_eq!(unknown.2, ErrorCode::ErrorNoSuchMethod);
    // all that concerned these calls only
    assert_eq!(call(&client, "echo", b"x").await.unwrap()[..], *b"x");

    for (protocol, version, class) in [
        ("other", 1, "org.apache.hadoop.ipc.RpcNoSuchProtocolException"),
        (PROTOCOL, 3, "org.apache.hadoop.ipc.RPC$VersionMismatch"),
    ] {
        let client = Client::connect(port.address, ClientSettings::new(protocol, version, "alice")).await.unwrap();
        assert_eq!(remote(call(&client, "echo", b"").await).0, class);
    }
    assert_eq!(remote(call(&client, "fatal", b"the end").await).2, ErrorCode::FatalUnknown);
    until("the connection closes", || client.is_closed()).await;
}

#[tokio::test]
async fn the_caller_is_known() {
    let port = port(Settings { caller_context: true, ..Settings::default() });
    let who = |client: Client, options: CallOptions| async move {
        let answer = client.call_with(options, "who", b"").await?;
        Ok::<_, CallError>(String::from_utf8(answer.body.to_vec()).unwrap())
    };
    let alice = port.client("alice").await;
    assert_eq!(who(alice.clone(), CallOptions::default()).await.unwrap(), "alice||staff,dev||0|127.0.0.1|Simple");
    let context = Some(CallerContext { context: "spark_app_1".into(), signature: None });
    let options = CallOptions { retry: 3, caller_context: context, ..CallOptions::default() };
    assert_eq!(who(alice, options).await.unwrap(), "alice||staff,dev|spark_app_1|3|127.0.0.1|Simple");

    let settings = ClientSettings { real_user: Some("svc".into()), ..ClientSettings::new(PROTOCOL, 1, "alice") };
    let proxied = Client::connect(port.address, settings.clone()).await.unwrap();
    assert_eq!(who(proxied, CallOptions::default()).await.unwrap(), "alice|svc|staff,dev||0|127.0.0.1|Proxy");

    let bob = Client::connect(port.address, ClientSettings { user: "bob".into(), ..settings }).await.unwrap();
    let refused = who(bob, CallOptions::default()).await.unwrap_err();
    let refused = refused.remote().unwrap();
    assert_eq!(refused.class, "org.apache.hadoop.security.authorize.AuthorizationException");
    assert_eq!(refused.message, "User: svc is not allowed to impersonate bob");
    assert_eq!(refused.code, ErrorCode::FatalUnauthorized);

    let nobody = Client::connect(port.address, ClientSettings::new(PROTOCOL, 1, "")).await.unwrap();
    assert!(who(nobody, CallOptions::default()).await.unwrap_err().remote().unwrap().is_fatal());
}

#[tokio::test]
async fn ids_are_repeated_and_the_state_id_is_told() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let id = ClientId::new(b"0123456789abcdef").unwrap();
    let options = CallOptions { call_id: Some(77), retry: 2, client_id: Some(id), ..CallOptions::default() };
    let header = client.call_with(options.clone(), "echo", b"").await.unwrap().header;
    assert_eq!((header.call_id, header.retry_count, header.state_id), (77, Some(2), None));
    assert_eq!(header.client_id.as_deref(), Some(&b"0123456789abcdef"[..]));
    port.toy.state_id.store(42, Ordering::SeqCst);
    assert_eq!(client.call_with(options, "echo", b"").await.unwrap().header.state_id, Some(42));
}

#[tokio::test]
async fn a_call_that_takes_too_long_leaves_the_others_alone() {
    let port = port(Settings::default());
    let settings =
        ClientSettings { call_timeout: Some(Duration::from_millis(200)), ..ClientSettings::new(PROTOCOL, 1, "alice") };
    let client = Client::connect(port.address, settings).await.unwrap();
    assert!(matches!(call(&client, "slow", &[100]).await, Err(CallError::Timeout { .. })));
    assert_eq!(call(&client, "echo", b"x").await.unwrap()[..], *b"x");
}

#[tokio::test]
async fn pings_keep_a_waiting_client_company() {
    let port = port(Settings::default());
    let settings = ClientSettings { ping: Duration::from_millis(50), ..ClientSettings::new(PROTOCOL, 1, "alice") };
    let client = Client::connect(port.address, settings).await.unwrap();
    call(&client, "echo", b"").await.unwrap();
    let before = port.server.counters().received_bytes.load(Ordering::SeqCst);
    call(&client, "slow", &[40]).await.unwrap();
    let sent = port.server.counters().received_bytes.load(Ordering::SeqCst) - before;
    assert!(sent > 150 + 4 * 30, "{sent} bytes hold no pings");
    assert_eq!(call(&client, "echo", b"x").await.unwrap()[..], *b"x");
}

/// A call is never left half done: it runs to its end when its caller has gone.
#[tokio::test]
async fn calls_outlive_their_connection() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "slow", &[30]).await }
    });
    until("the call runs", || port.toy.running.load(Ordering::SeqCst) == 1).await;
    waiting.abort();
    drop(client);
    until("the call ends", || port.toy.finished.load(Ordering::SeqCst) == 1).await;
    until("the connection ends", || port.server.counters().open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn stopping_closes_connections_and_port() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    call(&client, "echo", b"").await.unwrap();
    port.server.stop();
    until("the connection closes", || client.is_closed()).await;
    assert!(matches!(call(&client, "echo", b"").await, Err(CallError::Connection { .. })));
    assert!(Client::connect(port.address, ClientSettings::new(PROTOCOL, 1, "alice")).await.is_err());
}

/// Answers that rest on something leave when that is reached, not before, in their order; nothing else waits for them.
#[tokio::test]
async fn held_answers_wait_for_their_mark() {
    let port = port(Settings { in_flight_max: 50, ..Settings::default() });
    let client = port.client("alice").await;
    let held = |mark: u8| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "held", &[mark]).await.map(|body| (body[0], Instant::now())) })
    };
    let in_flight = || port.server.counters().in_flight.load(Ordering::SeqCst);
    let mut early: Vec<_> = (0..20).map(|_| held(3)).collect();
    until("these are held", || in_flight() == 20).await;
    let late = held(9);
    until("and this", || in_flight() == 21).await;
    assert_eq!(call(&client, "echo", b"x").await.unwrap()[..], *b"x");
    port.toy.reached.send_replace(2);
    assert_eq!(call(&client, "slow", &[3]).await.unwrap()[..], [3]);
    assert_eq!(in_flight(), 21, "mark 2 frees nothing");
    port.toy.reached.send_replace(3);
    for answer in early.drain(..) {
        assert_eq!(answer.await.unwrap().unwrap().0, 3);
    }
    assert!(!late.is_finished());
    // as many as may be in flight are held; the next call is not read before one has left
    let more: Vec<_> = (0..60).map(|_| held(10)).collect();
    until("the port is full", || in_flight() == 50).await;
    port.toy.reached.send_replace(10);
    let late = late.await.unwrap().unwrap().1;
    for answer in more {
        assert!(answer.await.unwrap().unwrap().1 >= late, "overtaken");
    }
    until("nothing in flight", || in_flight() == 0).await;
    let noted = port.toy.noted.lock().unwrap();
    assert_eq!((noted.len(), noted.is_sorted()), (81, true), "each leaves a note, in order");
}

#[tokio::test]
async fn held_answers_of_a_closed_connection_are_dropped() {
    let port = port(Settings::default());
    let client = port.client("alice").await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { call(&client, "held", &[5]).await }
    });
    until("it is held", || port.server.counters().in_flight.load(Ordering::SeqCst) == 1).await;
    waiting.abort();
    drop(client);
    until("the connection ends", || port.server.counters().open.load(Ordering::SeqCst) == 0).await;
    assert_eq!(port.server.counters().in_flight.load(Ordering::SeqCst), 0);
    assert!(port.toy.noted.lock().unwrap().is_empty());
    port.toy.reached.send_replace(5);
    until("its note", || *port.toy.noted.lock().unwrap() == [5]).await;
}
