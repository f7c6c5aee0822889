use super::*;
use jiff::tz::TimeZone;
use vocab::{AuthenticationMethod, Caller, Mode};

fn caller() -> Caller {
    Caller {
        user: "bob".into(),
        real_user: Some("hdfs".into()),
        groups: Arc::default(),
        method: AuthenticationMethod::Simple,
        address: ([127, 0, 0, 1], 4711).into(),
        rpc_ids: None,
        retry: 0,
        context: Some("job\t1".into()),
    }
}

fn event(caller: &Caller) -> Event<'_> {
    Event {
        allowed: true,
        caller,
        command: "mkdirs",
        source: Some("/中\t\"x\u{7f}𝄞"),
        target: None,
        owner: None,
        protocol: Some("rpc"),
    }
}

#[track_caller]
fn check(options: &Options, expected: &str) {
    let mut out = Vec::new();
    line::write(&mut out, &event(&caller()), options);
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn fields_and_escapes() {
    let head = "allowed=true\tugi=bob (auth:PROXY) via hdfs (auth:SIMPLE)\tip=/127.0.0.1\tcmd=mkdirs\tsrc=/\\u4E2D\\t\\\"x\u{7f}\\uD834\\uDD1E";
    check(&Options::default(), &format!("{head}\tdst=null\tperm=null\tproto=rpc"));
    let options = Options { caller_context: true, context_chars_max: 128, ..Options::default() };
    check(&options, &format!("{head}\tdst=null\tperm=null\tproto=rpc\tcallerContext=job\\t1"));
    let options = Options { remote_port: true, context_separator: ",".into(), tracking_id: true, ..options };
    check(
        &options,
        &format!("{head}\tdst=null\tperm=null\ttrackingId=\tproto=rpc\tcallerContext=job\\t1,clientPort:4711"),
    );
    let mut log = AuditLog::off();
    log.options = Options { signature_bytes_max: 3, ..options };
    assert_eq!(log.context("job", None), "job");
    assert_eq!(log.context(&"中".repeat(200), Some(b"sig")), format!("{}:sig", "中".repeat(128)));
    assert_eq!(log.context("job", Some(b"longer")), "job");
}

#[test]
fn lines_reach_rolled_files_in_order() {
    let folder = std::env::temp_dir().join(format!("ironroot-audit-{}", std::process::id()));
    let path = folder.join("log/hdfs-audit.log");
    let layout = Layout::parse("%d{ISO8601} %-5p %c{2}: %m%n", "a.b.FSNamesystem.audit", TimeZone::UTC);
    let target =
        Target { place: Place::Rolling { path: path.clone(), bytes_max: 2_000, kept: 2 }, layout: Some(layout) };
    let options = Options { debug_commands: BTreeSet::from(["open".to_owned()]), ..Options::default() };
    let log = AuditLog::open(options, vec![target]).unwrap();
    let (caller, owner) = (caller(), Owner { user: "u".into(), group: "g".into(), mode: Mode::new(0o1750) });
    for n in 0..40 {
        let source = format!("/{n}");
        log.log(1_000 + n, &Event { source: Some(&source), owner: Some(&owner), ..event(&caller) });
        log.log(1_000, &Event { command: "open", ..event(&caller) });
    }
    drop(log);
    let text = |path: &str| std::fs::read_to_string(path).unwrap();
    let path = path.display();
    let all = text(&format!("{path}.2")) + &text(&format!("{path}.1")) + &text(&path.to_string());
    let sources: Vec<_> = all.lines().map(|l| l.split("src=/").nth(1).unwrap().split('\t').next().unwrap()).collect();
    let first: usize = sources[0].parse().unwrap();
    assert!(first > 0, "the oldest file is gone");
    assert_eq!(sources, (first..40).map(|n| n.to_string()).collect::<Vec<_>>());
    assert!(
        all.starts_with(&format!("1970-01-01 00:00:01,{first:03} INFO  FSNamesystem.audit: allowed=true")),
        "{all}"
    );
    assert!(all.lines().all(|line| line.ends_with("perm=u:g:rwxr-x--T\tproto=rpc")), "{all}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_log_that_is_off_takes_nothing() {
    let log = AuditLog::open(Options::default(), Vec::new()).unwrap();
    assert!(!log.is_on());
    log.log(0, &event(&caller()));
    assert_eq!(log.written(), 0);
}
