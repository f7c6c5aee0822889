//! Groups of a directory server, compared with what Hadoop's own mapping finds there.
use security::groups::ldap::{Case, LdapSettings};
use security::groups::{GroupSettings, Groups, Provider};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use crate::support::hadoop::hadoop;
use crate::support::work::WorkDir;

const POM: &str = include_str!("../support/directory-pom.xml");
const SERVER: &str = include_str!("../support/java/Directory.java");
const PREFIX: &str = "hadoop.security.group.mapping.ldap.";

fn usual(url: &str) -> LdapSettings {
    LdapSettings {
        urls: vec![url.to_owned()],
        tls: false,
        truststore: None,
        bind: vec![("cn=admin".into(), "secret".into())],
        user_base: "dc=example,dc=com".into(),
        group_base: "dc=example,dc=com".into(),
        user_filter: "(&(objectClass=user)(sAMAccountName={0}))".into(),
        group_filter: "(objectClass=group)".into(),
        group_pattern: Vec::new(),
        member_of: String::new(),
        member: "member".into(),
        group_name: "cn".into(),
        levels: 0,
        uid: "uidNumber".into(),
        gid: "gidNumber".into(),
        search: Duration::from_secs(10),
        connect: Duration::from_secs(60),
        read: Duration::from_secs(60),
        attempts: 3,
        attempts_before_failover: 3,
        case: Case::Kept,
    }
}

/// Keys of Hadoop's as the settings have them, with the same meaning for ours.
fn set(settings: &mut LdapSettings, key: &str, value: &str) {
    match key {
        "url" => settings.urls = value.split(',').map(str::to_owned).collect(),
        "bind.password" => settings.bind = vec![("cn=admin".into(), value.into())],
        "userbase" => settings.user_base = value.into(),
        "search.filter.user" => settings.user_filter = value.into(),
        "search.filter.group" => settings.group_filter = value.into(),
        "search.attr.memberof" => settings.member_of = value.into(),
        "search.attr.member" => settings.member = value.into(),
        "search.group.hierarchy.levels" => settings.levels = value.parse().expect("a number"),
        "group.search.filter.pattern" => settings.group_pattern = value.split(',').map(str::to_owned).collect(),
        "num.attempts.before.failover" => settings.attempts_before_failover = value.parse().expect("a number"),
        "conversion.rule" => settings.case = if value == "to_upper" { Case::Upper } else { Case::Lower },
        other => panic!("{other}"),
    }
}

const CASES: [&[(&str, &str)]; 14] = [
    &[],
    &[("search.group.hierarchy.levels", "1")],
    &[("search.group.hierarchy.levels", "2")],
    &[("search.group.hierarchy.levels", "9")],
    &[("search.attr.memberof", "memberOf")],
    &[("search.attr.memberof", "memberOf"), ("search.group.hierarchy.levels", "1")],
    &[
        ("search.filter.user", "(&(objectClass=posixAccount)(uid={0}))"),
        ("search.filter.group", "(objectClass=posixGroup)"),
        ("search.attr.member", "memberUid"),
    ],
    &[("group.search.filter.pattern", "userDN"), ("search.filter.group", "(&(objectClass=group)(member={0}))")],
    &[("group.search.filter.pattern", "uid"), ("search.filter.group", "(&(objectClass=group)(memberUid={0}))")],
    &[("conversion.rule", "to_upper")],
    &[("conversion.rule", "to_lower"), ("search.group.hierarchy.levels", "1")],
    &[("bind.password", "wrong")],
    &[("url", "ldap://127.0.0.1:1,ldap://127.0.0.1:PORT"), ("num.attempts.before.failover", "1")],
    &[("userbase", "ou=groups,dc=example,dc=com")],
];

#[test]
fn groups_of_a_directory_server_are_those_that_hadoop_finds() {
    let Some(hadoop) = hadoop() else { return };
    let jars = match hadoop.fetch_beside("directory", POM) {
        Ok(jars) => jars,
        Err(reason) => return crate::support::skip(&reason),
    };
    let work = WorkDir::new("directory");
    let source = work.join("Directory.java");
    std::fs::write(&source, SERVER).expect("own folder");
    let mut java = hadoop.bare_java(&format!("{}/*", jars.display()), "256m", "ERROR");
    let log = std::fs::File::create(work.join("log")).expect("own folder");
    let mut server = java.arg(source).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().expect("java");
    let mut asked = server.stdin.take().expect("piped");
    let mut answers = BufReader::new(server.stdout.take().expect("piped")).lines();
    let mut answer = || answers.next().expect("the server lives").expect("text");
    let port = answer();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut known = 0;
    for case in CASES {
        let mut settings = usual(&format!("ldap://127.0.0.1:{port}"));
        let class = if case.iter().any(|(key, _)| *key == "conversion.rule") { "RuleBasedLdap" } else { "Ldap" };
        let mut line = format!("\thadoop.security.group.mapping=org.apache.hadoop.security.{class}GroupsMapping");
        let first = [("url", "ldap://127.0.0.1:PORT"), ("base", "dc=example,dc=com"), ("bind.user", "cn=admin")];
        for (key, value) in first.iter().chain(&[("bind.password", "secret")]).chain(case) {
            line.push_str(&format!("\t{PREFIX}{key}={value}"));
        }
        for (key, value) in case {
            set(&mut settings, key, &value.replace("PORT", &port));
        }
        let groups = |settings: &LdapSettings, user: &str| {
            let provider = Provider::Ldap(Box::new(settings.clone()));
            let groups = Groups::new(GroupSettings { provider, ..GroupSettings::default() });
            runtime.block_on(async { groups.of(user).await.groups.join(",") })
        };
        for user in ["alice", "bob", "carl", "nobody", "*", "a)(b"] {
            writeln!(asked, "{user}{line}").expect("the server lives");
            let expected = answer();
            assert_eq!(groups(&settings, user), expected, "{user} {case:?}");
            known += usize::from(!expected.is_empty());
        }
    }
    assert!(known >= 20, "{known}: the server knows its users");
    drop(asked);
    server.wait().expect("it ends with its input");
}
