//! Commands of DataNodes and administrators, and what happens to the process.

use super::Printed;
use super::line::Line;
use super::show;
use super::world::World;
use super::writers::numbers;
use crate::sim::node;
use crate::support::scripted::{DataNode, Held};
use blocks::{Command, HostEntry};
use edit::Record;
use edit::frame::HEADER_LENGTH;
use ops::admin::lazy_persist::LazyPersistScrub;
use ops::admin::safe_mode::{SafeModeAction, SetSafeMode};
use ops::datanode::{BadBlock, BadPlace, report_bad_blocks};
use os::disk::Open;
use std::borrow::Cow;
use std::path::Path;
use vocab::time::TimeMs;
use vocab::{Block, BlockId, GenerationStamp, LayoutVersion, ReplicaState, StorageKind, Txid};

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    match line.name.as_str() {
        "datanode" | "down" | "up" | "report" | "beat" | "corrupt" | "exclude" | "include" | "maintenance"
        | "plant" => data_nodes(world, line),
        "restart" | "crash" | "stop" | "start" | "checkpoint" | "save" | "roll" | "safe-mode" => process(world, line),
        "rolling-upgrade" => Some(rolling_upgrade(world, line)),
        "scrub" => {
            let mut scrub = LazyPersistScrub::default();
            while world.turn(line, |turn| scrub.step(turn, 1)) {}
            Some(Ok(String::new()))
        }
        "wait" => Some(wait(world, line.number(0))),
        "work" => Some(Ok(work(world))),
        "older-log" => Some(older_log(world, line)),
        "permissions" => {
            world.setup.settings.permissions = line.text(0) == "on";
            Some(Ok("from the next start on".to_owned()))
        }
        "protected" => {
            world.setup.settings.protected_directories = line.paths(0);
            Some(Ok("from the next start on".to_owned()))
        }
        _ => None,
    }
}

fn data_nodes(world: &mut World, line: &Line) -> Option<Printed> {
    let n: u32 = line.paths(0).first().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok()).unwrap_or(0);
    let result = match line.name.as_str() {
        // datanode 4 rack=/r2 volumes=DISK,SSD
        "datanode" => {
            let mut node = DataNode::new(n);
            if let Some(rack) = line.option("rack") {
                node.rack = rack.into();
            }
            if let Some(volumes) = line.option("volumes") {
                let kind = |name: &str| *StorageKind::ALL.iter().find(|k| k.name() == name).expect("a kind");
                node.volumes = volumes.split(',').map(kind).collect();
            }
            world.down.remove(&n);
            world.nodes.insert(n, node.clone());
            world.soft(|state, now| node.register(&mut state.blocks, now)).and_then(|()| {
                let beat = |state: &mut state::State, now| node.beat(&mut state.blocks, &mut state.store, now);
                world.soft(beat)?;
                world.soft(|state, now| node.report(&mut state.blocks, &mut state.store, now))
            })
        }
        "down" => {
            world.down.insert(n);
            Ok(())
        }
        "up" => {
            world.down.remove(&n);
            let node = world.nodes[&n].clone();
            world.soft(|state, now| node.join(&mut state.blocks, &mut state.store, now));
            Ok(())
        }
        "report" => {
            let node = world.nodes[&n].clone();
            world.soft(|state, now| node.report(&mut state.blocks, &mut state.store, now))
        }
        "beat" => return Some(beat(world)),
        "corrupt" => return Some(corrupt(world, line)),
        // plant NODE ID STAMP LENGTH: a replica that the name node knows nothing of
        "plant" => {
            let block =
                Block { id: BlockId(line.number(1)), stamp: GenerationStamp(line.number(2)), length: line.number(3) };
            world.plant(n, block);
            Ok(())
        }
        _ => {
            let entries = numbers(line, "nodes", &[]).into_iter();
            let entries = entries.map(|n| HostEntry { host: format!("10.0.0.{n}").into(), port: 0 });
            match line.name.as_str() {
                "exclude" => world.hosts.excluded = entries.collect(),
                // maintenance nodes=1 seconds=60
                "maintenance" => {
                    let seconds: i64 = line.option_number("seconds").unwrap_or(3_600);
                    let ends = TimeMs(world.now().wall.0 + seconds * 1_000);
                    world.hosts.maintenance = entries.map(|entry| (entry, ends)).collect();
                }
                _ => world.hosts.included = entries.collect(),
            }
            let hosts = world.hosts.clone();
            world.soft(|state, now| state.blocks.refresh_hosts(hosts, now));
            Ok(())
        }
    };
    Some(result.map(|()| String::new()))
}

/// Seconds go by; DataNodes that are up do not fall silent meanwhile.
fn wait(world: &mut World, seconds: u64) -> Printed {
    let mut out = String::new();
    let mut left = seconds;
    while left >= 300 {
        world.pass(297_000);
        out += &beat(world)?;
        left -= 300;
    }
    world.pass(left * 1_000);
    Ok(out)
}

/// A heartbeat of every DataNode that is up; orders are obeyed at once and printed.
fn beat(world: &mut World) -> Printed {
    world.pass(3_000);
    let mut out = String::new();
    let up: Vec<u32> = world.nodes.keys().filter(|n| !world.down.contains(n)).copied().collect();
    for n in up {
        let node = world.nodes[&n].clone();
        let answer = world.soft(|state, now| node.beat(&mut state.blocks, &mut state.store, now))?;
        world.settle();
        for command in answer.commands {
            out += &format!("dn{n}: {}\n", show::command(world, &command));
            obey(world, n, &command);
        }
    }
    Ok(out)
}

fn obey(world: &mut World, n: u32, command: &Command) {
    match command {
        Command::Register => {
            let node = world.nodes[&n].clone();
            world.soft(|state, now| node.join(&mut state.blocks, &mut state.store, now));
        }
        Command::Invalidate(list) => {
            for block in list {
                let held = world.nodes.get_mut(&n).and_then(|node| node.held.remove(&block.id));
                let node = world.nodes[&n].clone();
                if let Some(held) = held {
                    let told = (held.block, blocks::IncrementalKind::Deleted, held.volume);
                    world.soft(|state, now| {
                        node.notify(&mut state.blocks, &mut state.store, told, now).expect("report");
                    });
                }
            }
        }
        Command::Transfer(list) => {
            for transfer in list {
                let targets = world.state(|state| {
                    let number = |t: &blocks::Target| state.blocks.node(t.node).map(|n| show::node_number(&n.id.uuid));
                    transfer.targets.iter().filter_map(number).collect::<Vec<_>>()
                });
                for to in targets {
                    let mut node = world.nodes[&to].clone();
                    world.soft(|state, now| {
                        node.receive(&mut state.blocks, &mut state.store, (transfer.block, 0), now);
                    });
                    world.nodes.insert(to, node);
                }
            }
        }
        Command::Rebuild(list) => list.iter().for_each(|rebuild| obey_rebuild(world, rebuild)),
        Command::Recover(_) | Command::BalancerBandwidth(_) | Command::Finalize => {}
        Command::Cache(ids) => {
            world.nodes.get_mut(&n).expect("beats").cached.extend(ids);
            report_cached(world, n);
        }
        Command::Uncache(ids) => {
            world.nodes.get_mut(&n).expect("beats").cached.retain(|id| !ids.contains(id));
            report_cached(world, n);
        }
    }
}

/// The internal blocks of a group that nobody has arrive at the targets, in their order.
fn report_cached(world: &World, n: u32) {
    let node = world.nodes[&n].clone();
    world.soft(|state, _| {
        let number = state.blocks.identify(&node.registration()).expect("allowed").expect("registered");
        state.blocks.cache_report(number, node.cached.iter().copied());
    });
}

fn obey_rebuild(world: &mut World, rebuild: &blocks::Rebuild) {
    let stripe =
        world.state(|state| state.tree.erasure_coding.stripe(rebuild.policy)).expect("a policy of the file system");
    let there = |index: &u8| rebuild.live.contains(index) || rebuild.excluded.contains(index);
    let missing: Vec<u8> = (0..stripe.units()).filter(|index| !there(index)).collect();
    for (index, target) in missing.into_iter().zip(&rebuild.targets) {
        let number = world.state(|state| state.blocks.node(target.node).map(|n| show::node_number(&n.id.uuid)));
        let id = vocab::BlockId(rebuild.group.id.0 + i64::from(index));
        let block = Block { id, length: stripe.unit_length(rebuild.group.length, index), ..rebuild.group };
        let mut node = world.nodes[&number.expect("a target")].clone();
        world.soft(|state, now| node.receive(&mut state.blocks, &mut state.store, (block, 0), now));
        world.nodes.insert(node.number, node);
    }
}

/// A reader has found bad replicas: `corrupt PATH on=1,2`.
fn corrupt(world: &mut World, line: &Line) -> Printed {
    let Some(block) = world.last_block(&line.path(0)) else { return Ok("no block".to_owned()) };
    let place = |n: &u32| BadPlace { node: world.nodes[n].id(), storage: Some(format!("DS-{n}")), kind: None };
    let places = numbers(line, "on", &[1]).iter().map(place).collect();
    let bad = [BadBlock { pool: "BP-1".into(), block, places }];
    world.turn(line, |turn| report_bad_blocks(turn, &bad)).map(|()| String::new())
}

/// The periodic work of the block half, until nothing is left to do now.
fn work(world: &mut World) -> String {
    world.pass(3_000);
    let mut work = std::mem::take(&mut world.work);
    let mut died = Vec::new();
    loop {
        let more = world.soft(|state, now| work.step(state, now));
        let name = |n: &blocks::NodeNumber| world.state(|s| s.blocks.node(*n).map(|n| n.id.host.to_string()));
        died.extend(work.died.iter().filter_map(name));
        if !more {
            break;
        }
    }
    world.work = work;
    died.iter().map(|name| format!("{name} is dead\n")).collect()
}

fn process(world: &mut World, line: &Line) -> Option<Printed> {
    let started = |world: &mut World| match world.start() {
        Ok(()) => {
            if !line.has("alone") && !line.paths(0).contains(&b"alone".to_vec()) {
                world.join_all();
            }
            Ok(String::new())
        }
        Err(refused) => Ok(refused),
    };
    Some(match line.name.as_str() {
        "restart" => {
            world.stop();
            started(world)
        }
        "crash" => {
            world.settle();
            world.crash();
            started(world)
        }
        "stop" => {
            world.stop();
            Ok(String::new())
        }
        "start" => started(world),
        // an image is made, as an administrator asks for it
        "checkpoint" => {
            let engine = world.engine();
            world.soft(|state, _| state.blocks.safe_mode.enter_manual());
            let saved = world.runtime.block_on(engine.save_namespace(&world.caller(line), 0, 0));
            world.soft(|state, _| state.blocks.leave_safe_mode(true));
            saved.map(|saved| if saved { String::new() } else { "not saved".to_owned() })
        }
        "save" => {
            let engine = world.engine();
            world.runtime.block_on(engine.save_namespace(&world.caller(line), 0, 0)).map(|saved| saved.to_string())
        }
        "roll" => {
            let engine = world.engine();
            world.runtime.block_on(engine.roll()).map(|first| format!("segment {first}"))
        }
        "safe-mode" => {
            let action = match line.paths(0).first().map(Vec::as_slice) {
                Some(b"enter") => SafeModeAction::Enter,
                Some(b"leave") => SafeModeAction::Leave,
                Some(b"at-start") => {
                    world.setup.serves_at_once = false;
                    return Some(Ok("from the next start on".to_owned()));
                }
                _ => SafeModeAction::Get,
            };
            let on = world.write(line, &SetSafeMode { action });
            on.map(|on| match on {
                true => format!("on\n{}", world.state(|s| s.blocks.safe_mode.status(world.now().monotonic))),
                false => "off".to_owned(),
            })
        }
        _ => return None,
    })
}

/// `rolling-upgrade query`, `start` or `finalize`.
fn rolling_upgrade(world: &mut World, line: &Line) -> Printed {
    let (engine, caller) = (world.engine(), world.caller(line));
    let told = match line.text(0).as_str() {
        "start" => world.runtime.block_on(engine.start_rolling_upgrade(&caller)).map(Some),
        "finalize" => world.runtime.block_on(engine.finalize_rolling_upgrade(&caller)),
        _ => engine.rolling_upgrade(&caller),
    };
    let shown = |told: engine::RollingUpgrade| {
        let state = if told.finalized.is_some() { "finalized" } else { "runs" };
        format!("{state}, {} image to go back to", if told.rollback_image { "an" } else { "no" })
    };
    told.map(|told| told.map_or_else(|| "none".to_owned(), shown))
}

/// Records that only other releases write, put behind the log while nobody serves: `older-log OP_SET_NS_QUOTA /d 5`.
fn older_log(world: &mut World, line: &Line) -> Printed {
    world.stop();
    let path = || Cow::Owned(line.path(1));
    let time = TimeMs(world.os.clock.wall_ms());
    let record = match line.text(0).as_str() {
        "OP_SET_GENSTAMP_V1" => Record::SetGenstampV1 { stamp: GenerationStamp(line.number(1)) },
        "OP_SET_NS_QUOTA" => Record::SetNamespaceQuota { path: path(), quota: line.number(2) },
        "OP_CLEAR_NS_QUOTA" => Record::ClearNamespaceQuota { path: path() },
        "OP_DELETE" => Record::Delete { path: path(), time, rpc: None },
        "OP_RENAME_OLD" => Record::RenameOld { src: path(), dst: Cow::Owned(line.path(2)), time, rpc: None },
        "OP_ALLOW_SNAPSHOT" => Record::AllowSnapshot { root: path() },
        "OP_CREATE_SNAPSHOT" => {
            Record::CreateSnapshot { root: path(), name: Cow::Owned(line.path(2)), mtime: None, rpc: None }
        }
        "OP_ROLLING_UPGRADE_START" => Record::RollingUpgradeStart { time },
        "OP_UPDATE_MASTER_KEY" => {
            Record::UpdateMasterKey { id: line.number(1), expiry: TimeMs(time.0 + 86_400_000), key: None }
        }
        "OP_UPDATE_BLOCKS" => Record::UpdateBlocks { path: path(), blocks: Vec::new(), rpc: None },
        other => panic!("older-log {other}"),
    };
    let last = last_txid(world);
    let header = (LayoutVersion::CURRENT.0.to_be_bytes(), [0u8; HEADER_LENGTH - 4]);
    let mut bytes = [header.0.as_slice(), header.1.as_slice()].concat();
    let first = last.next();
    let records = [Record::StartLogSegment, record, Record::EndLogSegment];
    for (at, record) in (0..).zip(&records) {
        edit::encode(record, Txid(first.0 + at), LayoutVersion::CURRENT, &mut bytes).expect("encodes");
    }
    let name = storage::names::finalized(first, Txid(first.0 + 2));
    for root in node::roots() {
        let path = root.join("current").join(&name);
        let file = world.os.disk.open(&path, Open::CreateNew).expect("creates");
        file.write_at(&bytes, 0).expect("writes");
        file.sync_all().expect("syncs");
        world.os.disk.sync_directory(&root.join("current")).expect("syncs");
    }
    match world.start() {
        Ok(()) => {
            world.join_all();
            Ok(String::new())
        }
        Err(refused) => {
            for root in node::roots() {
                world.os.disk.remove_file(&root.join("current").join(&name)).expect("removes");
            }
            world.start().expect("starts without it");
            world.join_all();
            Ok(refused)
        }
    }
}

fn last_txid(world: &World) -> Txid {
    let mut last = Txid(0);
    super::laws::records(&world.os, Path::new("/a/current"), &mut |txid, _| last = txid);
    last
}

impl World {
    /// Somebody has put a replica on a DataNode that the name node does not know of.
    pub fn plant(&mut self, n: u32, block: Block) {
        let held = Held { block, state: ReplicaState::Finalized, volume: 0 };
        self.nodes.get_mut(&n).expect("a DataNode").held.insert(block.id, held);
    }
}
