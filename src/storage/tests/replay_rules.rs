//! Short logs with one record out of place (tests/golden/replay): replay through `State::fit` and `State::apply` gives the tree, leases and counter that
//! Hadoop 3.5.0 has after the same log, or a refusal. These are the tests of the rules in src/edit/FORMAT.md.

use edit::Rule;
use os::Os;
use os::disk::Open;
use record::{InodeHandle, InodeKind};
use state::{Effects, Fit, Mode, RootAttributes, State};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use storage::journal::local;
use storage::replay::{self, ReplayError};
use vocab::{BlockState, Policy, Txid};

/// One line of the table.
struct Case {
    name: String,
    loaded: bool,
    last_inode_id: String,
    leases: String,
    tree: String,
    log: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/replay/results.tsv");
    let case = |line: &str| {
        let column: Vec<&str> = line.split('\t').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        Case {
            name: column[0].to_owned(),
            loaded: column[1] == "LOADED",
            last_inode_id: column[4].to_owned(),
            leases: column[5].to_owned(),
            tree: column[6].to_owned(),
            log: column[7].as_bytes().chunks(2).map(byte).collect(),
        }
    };
    std::fs::read_to_string(path).unwrap().lines().skip(1).map(case).collect()
}

/// How a replay ended early.
#[derive(Debug)]
enum Refused {
    Mismatch(String),
}

struct Outcome {
    state: State,
    rules: BTreeSet<u8>,
}

fn run(case: &Case) -> Result<Outcome, Refused> {
    let (os, _, _) = Os::simulated(1);
    let folder = PathBuf::from("/a/current");
    os.disk.create_directories(&folder, 0o700).unwrap();
    let name = |last: u64| storage::names::finalized(Txid(1), Txid(last));
    // The name promises what the last record says: the one before the checksum of an end record.
    let last = u64::from_be_bytes(case.log[case.log.len() - 12..case.log.len() - 4].try_into().unwrap());
    os.disk.open(&folder.join(name(last)), Open::CreateNew).unwrap().write_all_at(&case.log, 0).unwrap();
    let segments = local::select(&*os.disk, &[&folder], Txid(1), Txid(1)).unwrap();
    let mut state = State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: vocab::Mode::new(0o755) });
    let (policy, mut rules) = (Policy::default(), BTreeSet::new());
    let mut apply = |_: Txid, record: edit::Record<'_>| match state.fit(&record, &policy) {
        Fit::Fits(fitted) => {
            state.apply(&record, fitted, &policy, Mode::Restart, &mut Effects::new(Mode::Restart));
            while state.reclaim(u64::MAX) {}
            Ok(())
        }
        Fit::NoOp(rule) => {
            rules.insert(rule.number());
            Ok(())
        }
        Fit::Mismatch(mismatch) => Err(Refused::Mismatch(mismatch.0)),
    };
    match replay::replay(&*os.disk, &segments, Txid(1), 1 << 20, &mut |_| {}, &mut apply) {
        Ok(reached) => assert_eq!(reached.0, last, "{}", case.name),
        Err(ReplayError::Apply { error, .. }) => return Err(error),
        Err(ReplayError::Storage(error)) => return Err(Refused::Mismatch(error.to_string())),
    }
    Ok(Outcome { state, rules })
}

/// The tree in the form of the table.
fn tree(state: &State) -> String {
    let mut entries = Vec::new();
    walk(state, state.tree.root(), "", &mut entries);
    entries.join(" | ")
}

fn walk(state: &State, handle: InodeHandle, parent: &str, entries: &mut Vec<String>) {
    let (store, tree) = (&state.store, &state.tree);
    let inode = store.inode(handle);
    let name = String::from_utf8_lossy(store.name(handle)).into_owned();
    let path = if name.is_empty() { "/".to_owned() } else { format!("{parent}/{name}") };
    let (user, group) = (store.user_name(inode.user), store.group_name(inode.group));
    let mut entry = format!("{path} {} {user}:{group}:{} {} {}", inode.id, inode.mode, inode.mtime.0, inode.atime.0);
    if let InodeKind::File { replication, .. } = inode.kind {
        let block = |handle| {
            let info = store.block(handle);
            let state = if info.state == BlockState::Complete { "c" } else { "u" };
            format!("{}_{}:{}:{state}", info.block.id, info.block.stamp, info.block.length)
        };
        let blocks: Vec<String> = store.blocks_of(handle).iter().map(|handle| block(*handle)).collect();
        let open = if tree.construction(handle).is_some() { "open" } else { "closed" };
        entry += &format!(" {open} {replication} {}", blocks.join(","));
    }
    entries.push(entry.trim_end().to_owned());
    if matches!(inode.kind, InodeKind::Directory { .. }) {
        let below = if name.is_empty() { "" } else { &path };
        let children: Vec<InodeHandle> = tree.children(store, handle).collect();
        children.into_iter().for_each(|child| walk(state, child, below, entries));
    }
}

/// Where we differ from Hadoop, and why that is no loss.
const DIFFERS: [(&str, &str); 9] = [
    ("mkdir-id-repeated", "two inodes with one id cannot be trusted; refused"),
    ("addblock-same", "a block twice in a file cannot be trusted; refused"),
    ("rename-old-under-itself", "no operation logs it; refused"),
    ("symlink", "symlinks are off in Hadoop; images with them load, so logs do here"),
    ("reassign-wrong-holder", "Hadoop keeps a lease of the former holder that nobody can renew"),
    ("mkdir-root", "the path exists, so nothing changes; Hadoop refuses"),
    ("disallow-missing", "nothing to change; Hadoop refuses"),
    ("mkdir-dotsnapshot", "no operation logs such a name; Hadoop refuses"),
    ("mkdir-reserved", "no operation logs such a name; Hadoop refuses"),
];

#[test]
fn every_log_leaves_the_state_of_hadoop_or_is_refused() {
    let mut problems = Vec::new();
    let (mut same, mut refused) = (0, 0);
    for case in cases() {
        let differs = DIFFERS.iter().any(|(name, _)| *name == case.name);
        match (run(&case), case.loaded) {
            (Ok(outcome), true) => {
                let holders: Vec<String> = outcome.state.tree.leases.iter().map(|l| l.holder.to_string()).collect();
                let found = [tree(&outcome.state), holders.join(" "), outcome.state.sequences.inode.to_string()];
                let expected = [case.tree, case.leases, case.last_inode_id];
                same += 1;
                if found != expected && !differs {
                    problems.push(format!("{}:\n   ours   {found:?}\n   Hadoop {expected:?}", case.name));
                }
            }
            (Ok(_), false) if differs => same += 1,
            (Ok(_), false) => problems.push(format!("{}: loaded, but Hadoop refuses", case.name)),
            (Err(Refused::Mismatch(_)), false) => refused += 1,
            (Err(Refused::Mismatch(_)), true) if differs => refused += 1,
            (Err(Refused::Mismatch(text)), true) => problems.push(format!("{}: refused ({text})", case.name)),
        }
    }
    assert!(same > 100 && refused > 50, "{same} {refused}");
    println!("{same} loaded, {refused} refused");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn each_rule_has_a_log_that_it_is_the_reason_for() {
    let expected = [
        ("delete-missing", Rule::DeleteMissing),
        ("delete-missing-parent", Rule::DeleteMissing),
        ("delete-root", Rule::DeleteRoot),
        ("rename-old-missing", Rule::RenameOldSourceMissing),
        ("rename-old-dst-exists", Rule::RenameOldTargetExists),
        ("rename-old-dst-parent-missing", Rule::RenameOldTargetParentMissing),
        ("setrep-missing", Rule::SetReplicationMissing),
        ("setrep-dir", Rule::SetReplicationDirectory),
        ("append-open", Rule::AppendOpen),
        ("start-in-middle", Rule::SegmentBoundary),
        ("times-minus", Rule::TimesUnchanged),
        ("setown-empty", Rule::SetOwnerUnchanged),
    ];
    let cases = cases();
    for (name, rule) in expected {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let rules = run(case).unwrap_or_else(|refused| panic!("{name}: {refused:?}")).rules;
        assert!(rules.contains(&rule.number()), "{name}: {rule:?} is not among {rules:?}");
    }
}
