//! The fuzz: calls to the twin and to the file system, answers compared.

use super::generate::{Call, Dice, Generator, users};
use super::twin::{Answer, Kind, Out, Twin, Who};
use super::world::{OWNER, World, kind, shown};
use ops::write::add_block::AddBlock;
use ops::write::attributes::{SetOwner, SetPermission, SetReplication, SetTimes};
use ops::write::complete::{AbandonBlock, Complete, Fsync, RenewLease};
use ops::write::create::Create;
use ops::write::delete::Delete;
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use ops::write::quota::SetQuota;
use ops::write::rename::{Rename, Rename2};
use std::collections::BTreeMap;
use std::time::Instant;
use vocab::{Block, BlockId, GenerationStamp, InodeId, Mode, Refusal, TimeMs};

/// Calls in all: `IRONROOT_FUZZ_CALLS`, or a hundred thousand where changes are judged (`CI=true`) and fewer at a desk.
pub fn calls() -> usize {
    let judged = std::env::var("CI").as_deref() == Ok("true");
    let wanted = std::env::var("IRONROOT_FUZZ_CALLS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(if judged { 100_000 } else { 20_000 })
}

fn block((id, stamp, length): (i64, i64, u64)) -> Block {
    Block { id: BlockId(id), length, stamp: GenerationStamp(stamp) }
}

fn modes(bits: u16) -> CreateModes {
    CreateModes { masked: Mode::new(bits), unmasked: None }
}

fn nothing(result: Result<(), Refusal>) -> Out {
    result.map(|()| Answer::Nothing).map_err(|refusal| kind(&refusal))
}

fn yes(result: Result<bool, Refusal>) -> Out {
    result.map(Answer::Yes).map_err(|refusal| kind(&refusal))
}

/// Asks the twin.
fn ask_twin(twin: &mut Twin, who: &Who, call: &Call) -> Out {
    match call.clone() {
        Call::Mkdirs { path, mode, parents } => twin.mkdirs(who, &path, mode, parents),
        Call::Create { path, mode, client, flags, shape } => twin.create(who, &path, mode, client, flags, shape),
        Call::AddBlock { path, id, client, previous } => twin.add_block(who, &path, id, client, previous),
        Call::Received { block } => {
            twin.received(block.0);
            Ok(Answer::Nothing)
        }
        Call::Fsync { path, id, client, length } => twin.fsync(who, &path, id, client, length),
        Call::Abandon { path, id, client, block } => twin.abandon(who, &path, id, client, block.0),
        Call::Complete { path, id, client, last } => twin.complete(who, &path, id, client, last),
        Call::Delete { path, recursive } => twin.delete(who, &path, recursive),
        Call::Rename { from, to } => twin.rename(who, &from, &to),
        Call::Rename2 { from, to, overwrite } => twin.rename2(who, &from, &to, overwrite),
        Call::SetPermission { path, mode } => twin.set_permission(who, &path, mode),
        Call::SetOwner { path, user, group } => twin.set_owner(who, &path, user, group),
        Call::SetTimes { path, mtime, atime } => twin.set_times(who, &path, mtime, atime),
        Call::SetReplication { path, replication } => twin.set_replication(who, &path, replication),
        Call::SetQuota { path, names } => twin.set_quota(who, &path, names),
        Call::Info { path } => twin.info(who, &path),
        Call::List { path } => twin.list(who, &path),
    }
}

/// Asks the file system for what concerns files being written.
fn ask_file(world: &mut World, who: &Who, call: Call) -> Out {
    match call {
        Call::Create { path, mode, client, flags: (create, overwrite, create_parents), shape } => {
            let op = Create {
                path: path.into(),
                modes: modes(mode),
                client: client.into(),
                create,
                overwrite,
                create_parents,
                replication: shape.0,
                block_size: shape.1,
                lazy_persist: false,
                should_replicate: false,
                erasure_coding_policy: None,
                storage_policy: None,
                versions: Vec::new(),
                data_key: None,
            };
            let made = world.write(who, &op);
            made.map(|status| Answer::Status(Some(shown(&status)))).map_err(|refusal| kind(&refusal))
        }
        Call::AddBlock { path, id, client, previous } => {
            let op = AddBlock {
                path: path.into(),
                file: InodeId(id),
                client: client.into(),
                previous: previous.map(block),
                previous_pool: None,
                excluded: vec![],
                favored: vec![],
                no_local_write: false,
                no_local_rack: false,
                ignore_client_locality: false,
            };
            let added = world.write(who, &op).map(|added| added.located.block);
            added.map(|block| Answer::Block(block.id.0, block.stamp.0)).map_err(|refusal| kind(&refusal))
        }
        Call::Fsync { path, id, client, length } => {
            let op = Fsync { path: path.into(), file: InodeId(id), client: client.into(), last_length: length as i64 };
            nothing(world.write(who, &op))
        }
        Call::Abandon { path, id, client, block: (block_id, stamp) } => {
            let block = block((block_id, stamp, 0));
            nothing(
                world.write(who, &AbandonBlock { path: path.into(), file: InodeId(id), client: client.into(), block }),
            )
        }
        Call::Complete { path, id, client, last } => {
            let op = Complete {
                path: path.into(),
                file: InodeId(id),
                client: client.into(),
                last: last.map(block),
                last_pool: None,
            };
            yes(world.write(who, &op))
        }
        other => ask(world, who, other),
    }
}

/// Asks the file system.
fn ask(world: &mut World, who: &Who, call: Call) -> Out {
    match call {
        Call::Mkdirs { path, mode, parents } => {
            yes(world.write(who, &Mkdirs { path: path.into(), modes: modes(mode), create_parents: parents }))
        }
        Call::Received { block: received } => {
            world.received(block(received));
            Ok(Answer::Nothing)
        }
        Call::Delete { path, recursive } => yes(world.write(who, &Delete { path: path.into(), recursive })),
        Call::Rename { from, to } => yes(world.write(who, &Rename { source: from.into(), target: to.into() })),
        Call::Rename2 { from, to, overwrite } => {
            let op = Rename2 { source: from.into(), target: to.into(), overwrite, to_trash: false };
            nothing(world.write(who, &op))
        }
        Call::SetPermission { path, mode } => {
            nothing(world.write(who, &SetPermission { path: path.into(), mode: Mode::new(mode) }))
        }
        Call::SetOwner { path, user, group } => {
            let op = SetOwner { path: path.into(), user: user.map(Into::into), group: group.map(Into::into) };
            nothing(world.write(who, &op))
        }
        Call::SetTimes { path, mtime, atime } => {
            let op = SetTimes { path: path.into(), mtime: TimeMs(mtime), atime: TimeMs(atime) };
            nothing(world.write(who, &op))
        }
        Call::SetReplication { path, replication } => {
            yes(world.write(who, &SetReplication { path: path.into(), replication }))
        }
        Call::SetQuota { path, names } => {
            let op = SetQuota { path: path.into(), names, space: i64::MAX, kind: None };
            nothing(world.write(who, &op))
        }
        Call::Info { path } => world.info(who, &path),
        Call::List { path } => world.list(who, &path),
        file => ask_file(world, who, file),
    }
}

/// How often each outcome was seen, by kind of call.
#[derive(Default)]
struct Tally(BTreeMap<(String, Kind), u64>);

impl Tally {
    fn add(&mut self, call: &Call, out: &Out) {
        let name = format!("{call:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
        let kind = match out {
            Ok(Answer::Yes(false)) => "false",
            Ok(_) => "done",
            Err(kind) => kind,
        };
        *self.0.entry((name, kind)).or_default() += 1;
    }
}

/// Every path of the twin is there, looks the same, and nothing else is.
fn compare_all(world: &World, twin: &Twin, root: &Who, what: &str) {
    assert_eq!(world.state.tree.inode_count(), twin.nodes.len() as u64, "{what}: number of inodes");
    for path in twin.nodes.keys() {
        assert_eq!(world.info(root, path), twin.info(root, path), "{what}: {path}");
        assert_eq!(world.list(root, path), twin.list(root, path), "{what}: {path}");
    }
}

fn run(seed: u64, calls: usize) {
    let began = Instant::now();
    let users = users();
    let mut dice = Dice(seed);
    let mut world = World::new();
    let mut twin = Twin::new(OWNER, world.now.wall.0);
    let mut tally = Tally::default();
    let mut restarts = 0;
    for number in 0..calls {
        world.now.monotonic.0 += 1;
        world.now.wall.0 += 1;
        twin.now = world.now.wall.0;
        let who = if dice.one_in(2) { &users[0] } else { &users[1 + dice.below(3)] };
        let call = Generator { dice: &mut dice, twin: &twin }.call();
        let what = format!("seed {seed}, call {number}, {} asks {call:?}", who.user);
        let expected = ask_twin(&mut twin, who, &call);
        let got = ask(&mut world, who, call.clone());
        assert_eq!(got, expected, "{what}");
        tally.add(&call, &got);
        if number % 500 == 499 {
            world.check_replayed(&what);
            for client in ["client-a", "client-b", "client-c"] {
                world.write(&users[0], &RenewLease { client: client.into() }).expect("renews");
            }
        }
        if number % 5_000 == 4_999 {
            compare_all(&world, &twin, &users[0], &what);
            world.check_reloaded(&what);
        }
        if number % 20_000 == 12_345 {
            world.restart();
            twin.restart();
            restarts += 1;
            compare_all(&world, &twin, &users[0], &format!("{what}, restarted"));
        }
    }
    let what = format!("seed {seed}, end");
    compare_all(&world, &twin, &users[0], &what);
    world.check_replayed(&what);
    world.check_reloaded(&what);
    world.check_prefixes(211, &what);
    println!(
        "{calls} calls, {} records of {} bytes, {} inodes at the end, {restarts} restarts, {:?}",
        world.journal.records(),
        world.journal.length(),
        twin.nodes.len(),
        began.elapsed()
    );
    for ((call, kind), count) in &tally.0 {
        println!("  {call} {kind}: {count}");
    }
    let seen = |kind: Kind| tally.0.keys().any(|(_, seen)| *seen == kind);
    if calls >= 20_000 {
        for kind in
            ["NamespaceQuota", "NotReplicatedYet", "ComponentTooLong", "LeaseExpired", "AlreadyBeingCreated", "Io"]
        {
            assert!(seen(kind), "no call was refused with {kind}: the generator is too tame");
        }
    }
}

#[test]
fn calls_answer_as_the_twin_says() {
    run(1, calls());
}

/// Every prefix of a log, one by one.
#[test]
fn every_prefix_of_a_log_is_legal() {
    let users = users();
    let mut dice = Dice(2);
    let mut world = World::new();
    let mut twin = Twin::new(OWNER, world.now.wall.0);
    for _ in 0..1_500 {
        world.now.monotonic.0 += 1;
        world.now.wall.0 += 1;
        twin.now = world.now.wall.0;
        let call = Generator { dice: &mut dice, twin: &twin }.call();
        let expected = ask_twin(&mut twin, &users[0], &call);
        assert_eq!(ask(&mut world, &users[0], call.clone()), expected, "{call:?}");
    }
    world.check_prefixes(1, "every record");
}
