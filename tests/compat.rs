//! `COMPAT.md`: what of a Hadoop 3.5 NameNode is done here and what is missing, made from the tables that the product itself goes by, and
//! kept fresh by this test (`COMPAT_WRITE=1 cargo test --test main compat` writes it anew).

use edit::Opcode;
use edit::frame;
use hadoop_proto::services;
use server::service::table::{Ha, Handler, PortKind};
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use vocab::{Mode as Permission, Policy};

const KEYS: &str = include_str!("../src/config/keys.tsv");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Methods of every protocol that the client port serves.
fn methods(out: &mut String) {
    let _ = writeln!(out, "## RPC methods\n\n| service | done | missing |\n|---|---|---|");
    for service in PortKind::Client.services() {
        let (mut done, mut missing) = (0, Vec::new());
        for method in service.methods {
            let found =
                PortKind::Client.find(service.protocol, service.version, method.name).expect("a method of the schema");
            let there = match found.handler {
                Handler::Client(operation) => operation.row().implemented,
                // served where they refuse, never where they would act
                Handler::Ha(Ha::ToActive | Ha::ToStandby | Ha::ToObserver) | Handler::Missing => false,
                _ => true,
            };
            if there { done += 1 } else { missing.push(method.name) }
        }
        let missing = if missing.is_empty() { "-".into() } else { missing.join(" ") };
        let _ = writeln!(out, "| {} | {done} of {} | {missing} |", service.name, service.methods.len());
    }
    let lifeline = services::by_name("DatanodeLifelineProtocolService").expect("a service of the schema");
    let _ = writeln!(out, "| {} (lifeline port) | {1} of {1} | - |", lifeline.name, lifeline.methods.len());
}

/// What replay makes of each opcode: a log with all of them, written by Hadoop, is applied as far as it goes.
fn opcodes() -> BTreeMap<u8, &'static str> {
    let folder = root().join("tests/golden/edits/3.5.0/allops");
    let name = std::fs::read_dir(&folder).expect("golden log").map(|e| e.expect("entry").path());
    let log = name
        .into_iter()
        .find(|p| p.extension().is_none() && p.to_string_lossy().contains("edits_0"))
        .expect("a segment");
    let bytes = std::fs::read(log).expect("segment");
    let policy = Policy::default();
    let mut state = State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Permission::new(0o755) });
    let mut effects = Effects::new(Mode::Restart);
    let (layout, mut at) = frame::header(&bytes).expect("header");
    let mut seen = BTreeMap::new();
    while let edit::Decoded::Frame(found) = edit::decode(&bytes[at..], layout, frame::RECORD_MAX).expect("record") {
        let number = found.record.opcode() as u8;
        let what = match state.fit(&found.record, &policy) {
            Fit::Fits(fitted) => {
                state.apply(&found.record, fitted, &policy, Mode::Restart, &mut effects);
                "done"
            }
            Fit::NoOp(_) => "done",
            // it follows on a record that was refused, so its own meaning was not tried
            Fit::Mismatch(_) => "not tried",
        };
        let entry = seen.entry(number).or_insert(what);
        if *entry == "not tried" {
            *entry = what;
        }
        at += found.length;
    }
    seen
}

fn records(out: &mut String) {
    let seen = opcodes();
    let _ = writeln!(
        out,
        "\n## Edit records\n\nAll opcodes are decoded at every layout from -16 to -67. Applied:\n\n| outcome | opcodes |\n|---|---|"
    );
    for outcome in ["done", "refused by name", "not tried"] {
        let names: Vec<&str> = seen
            .iter()
            .filter(|(_, what)| **what == outcome)
            .filter_map(|(number, _)| Opcode::from_number(*number))
            .map(Opcode::name)
            .collect();
        if !names.is_empty() {
            let _ = writeln!(out, "| {outcome} | {} |", names.join(" "));
        }
    }
    let unseen: Vec<&str> = Opcode::ALL.iter().filter(|o| !seen.contains_key(&(**o as u8))).map(|o| o.name()).collect();
    let _ = writeln!(out, "| in no log of 3.5.0 (read only, or of old layouts) | {} |", unseen.join(" "));
}

fn keys(out: &mut String) {
    let rows: Vec<Vec<&str>> = KEYS.lines().filter(|l| !l.starts_with('#')).map(|l| l.split('\t').collect()).collect();
    let of_namenode: Vec<_> = rows.iter().filter(|r| r.get(3) != Some(&"-")).collect();
    let (honoured, missing): (Vec<_>, Vec<_>) = of_namenode.into_iter().partition(|r| r.get(4) != Some(&"-"));
    assert!(honoured.len() > 100, "the table of keys was read");
    let _ = writeln!(
        out,
        "\n## Configuration keys\n\n{} keys that a NameNode reads are honoured. Not yet (named at start when set):\n",
        honoured.len()
    );
    for row in missing {
        let _ = writeln!(out, "- `{}`", row[0]);
    }
}

#[test]
fn compat_page_is_fresh() {
    let mut text = String::from(
        "# Compatibility with the Hadoop 3.5.0 NameNode\n\nMade by `tests/compat.rs` from the product's own tables (`COMPAT_WRITE=1` writes it anew). A method that is \
         missing answers as an unsupported call does in Hadoop; a record, an image section or a write that needs a missing feature is refused \
         by the feature's name before anything is written.\n\n",
    );
    methods(&mut text);
    records(&mut text);
    let _ = writeln!(text, "\n## JMX beans\n");
    for bean in server::http::BEANS {
        let _ = writeln!(text, "- `{bean}`");
    }
    keys(&mut text);
    let page = root().join("COMPAT.md");
    if std::env::var_os("COMPAT_WRITE").is_some() {
        std::fs::write(&page, &text).expect("written");
    }
    let old = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(old == text, "COMPAT.md is stale: run with COMPAT_WRITE=1");
}
