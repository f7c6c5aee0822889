//! `/jmx` as scrapers ask it.
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::fixture::{Fixture, shared};
use crate::support::http::get;

fn beans(port: u16, query: &str) -> (u16, Value) {
    let (status, body) = get(port, &format!("/jmx?{query}")).expect("an answer");
    (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{query}: {e}\n{body}")))
}

/// Status line and headers of a request with any method.
fn head(port: u16, method: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    write!(stream, "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).split("\r\n\r\n").next().unwrap_or_default().to_owned()
}

/// DataDog/dd-agent#2235.
#[test]
fn t80_query_forms_of_jmx() {
    let Some(node) = shared() else { return };
    let port = node.http_port();
    let info = "Hadoop:service=NameNode,name=NameNodeInfo";
    let (status, one) = beans(port, &format!("qry={info}"));
    assert_eq!((status, one["beans"].as_array().map(Vec::len)), (200, Some(1)));
    let first: Vec<&String> = one["beans"][0].as_object().expect("a bean").keys().take(2).collect();
    assert_eq!(first, ["name", "modelerType"]);
    let (status, all) = beans(port, "qry=Hadoop:*");
    let all = all["beans"].as_array().expect("beans");
    assert!(status == 200 && all.len() > 3);
    assert!(all.iter().all(|bean| bean["name"].as_str().expect("a name").starts_with("Hadoop:")));
    assert_eq!(beans(port, "qry=Hadoop:service=Nobody"), (200, serde_json::json!({ "beans": [] })));
    let (status, one) = beans(port, &format!("get={info}::ClusterId"));
    let bean = one["beans"][0].as_object().expect("a bean");
    assert_eq!(
        (status, bean.keys().map(String::as_str).collect::<Vec<_>>()),
        (200, vec!["name", "modelerType", "ClusterId"])
    );
    let (_, missing) = beans(port, &format!("get={info}::Nothing"));
    assert_eq!(missing["beans"][0]["result"], "ERROR");
    let (_, malformed) = beans(port, &format!("get={info}"));
    assert_eq!(
        (&malformed["result"], &malformed["message"]),
        (&"ERROR".into(), &"query format is not as expected.".into())
    );
    let headers = head(port, "GET", "/jmx").to_lowercase();
    assert!(headers.contains("content-type: application/json"), "{headers}");
    assert!(headers.contains("access-control-allow-origin: *"), "{headers}");
    assert!(head(port, "TRACE", "/jmx").starts_with("HTTP/1.1 405"));
    assert!(head(port, "HEAD", "/jmx").starts_with("HTTP/1.1 200"));
}

/// apache/hadoop#6229 (HADOOP-18954): ratios of 0 to 0 on a NameNode without DataNodes.
#[test]
fn t79_not_a_number_values_are_strict_json() {
    let Some(fixture) = Fixture::start("t79", &[("hadoop.http.jmx.nan-filter.enabled", "true")]) else { return };
    let (status, all) = beans(fixture.http_port(), "");
    assert_eq!(status, 200);
    let info = all["beans"]
        .as_array()
        .expect("beans")
        .iter()
        .find(|bean| bean["name"] == "Hadoop:service=NameNode,name=NameNodeInfo");
    assert!(info.expect("NameNodeInfo")["PercentUsed"].is_number());
}

/// Of each command the users who asked most, over three windows (nntop); Hadoop's name node answers the same.
#[test]
fn who_asks_for_what_most_is_counted() {
    let Some(fixture) = Fixture::start("top", &[("dfs.namenode.top.num.users", "2")]) else { return };
    for (user, times) in [("alice", 3), ("bob", 2), ("carol", 1)] {
        let client = fixture.client(user);
        (0..times).for_each(|_| assert!(!client.exists("/x")));
    }
    let text = fixture.namenode().jmx("FSNamesystemState", "TopUserOpCounts").expect("a text");
    let counts: serde_json::Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    let windows = counts["windows"].as_array().expect("windows");
    let lengths: Vec<_> = windows.iter().filter_map(|window| window["windowLenMs"].as_u64()).collect();
    assert_eq!(lengths, [60_000, 300_000, 1_500_000]);
    for window in windows {
        let of = |name: &str| {
            let operations = window["ops"].as_array().expect("operations").iter();
            operations
                .clone()
                .find(|operation| operation["opType"] == name)
                .unwrap_or_else(|| panic!("{name}: {window}"))
        };
        let users = |operation: &serde_json::Value, key: &str| -> Vec<String> {
            let users = operation[key].as_array().expect("users").iter();
            users.map(|one| format!("{}={}", one["user"].as_str().expect("a name"), one["count"])).collect()
        };
        let asked = of("getfileinfo");
        assert_eq!(asked["totalCount"], 6);
        assert_eq!(users(asked, "topUsers"), ["alice=3", "bob=2"]);
        assert_eq!(users(asked, "allUsers"), ["alice=3", "bob=2", "carol=1"]);
        assert_eq!((&of("*")["totalCount"], users(of("*"), "topUsers")), (&6.into(), users(asked, "topUsers")));
    }
}
