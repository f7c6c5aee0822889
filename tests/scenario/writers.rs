//! Commands of those who write files, and of the DataNodes that they write to.

use super::Printed;
use super::line::Line;
use super::show;
use super::world::World;
use crate::support::scripted::Held;
use blocks::IncrementalKind;
use ops::admin::lease_check::check_leases;
use ops::datanode::CommitBlockSynchronization;
use ops::write::add_block::AddBlock;
use ops::write::append::{Append, RecoverLease};
use ops::write::complete::{AbandonBlock, Complete, Fsync};
use ops::write::pipeline::{GetAdditionalDatanode, UpdateBlockForPipeline, UpdatePipeline};
use ops::write::truncate::Truncate;
use std::sync::Arc;
use vocab::{Block, GenerationStamp, ReplicaState};

/// Numbers in `on=1,3`, or these.
pub fn numbers(line: &Line, key: &str, usual: &[u32]) -> Vec<u32> {
    let Some(text) = line.option(key) else { return usual.to_vec() };
    text.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().expect("a DataNode's number")).collect()
}

/// The block that a call is about: the file's last one, `block=1` the second, `stamp=` and `length=` another form of it.
fn block(world: &World, line: &Line, path: &[u8]) -> Option<Block> {
    let found = match line.option_number::<usize>("block") {
        Some(at) => world.state(|state| {
            let b = state.store.block_at(World::find(state, path)?, at)?;
            Some(state.store.block(b).block)
        }),
        None => world.last_block(path),
    };
    let mut block = world.as_written(found?);
    block.stamp = line.option_number("stamp").map_or(block.stamp, GenerationStamp);
    block.length = line.option_number("length").unwrap_or(block.length);
    Some(block)
}

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    Some(match line.name.as_str() {
        "add-block" => add_block(world, line),
        "complete" => {
            let (path, client) = (line.path(0), line.client());
            let last = if line.has("no-block") { None } else { block(world, line, &path) };
            let file = world.file(line, &path);
            world.ask_whether(line, &Complete { path, file, client, last, last_pool: None })
        }
        "abandon" => {
            let (path, client) = (line.path(0), line.client());
            let Some(block) = block(world, line, &path) else { return Some(Ok("no block".to_owned())) };
            let file = world.file(line, &path);
            world.ask(line, &AbandonBlock { path, file, client, block })
        }
        "fsync" => {
            let (path, client) = (line.path(0), line.client());
            let last_length = line.option_number("length").unwrap_or(-1);
            let file = world.file(line, &path);
            world.ask(line, &Fsync { path, file, client, last_length })
        }
        "append" => {
            let op = Append { path: line.path(0), client: line.client(), new_block: line.has("new-block") };
            world.write(line, &op).map(|appended| match appended.last {
                Some(last) => show::located(world, &last),
                None => "no block to go on with".to_owned(),
            })
        }
        "truncate" => {
            let (path, new_length, client) = (line.path(0), line.number(1), line.client());
            let op = Truncate { path, new_length, client, keeps_blocks: line.has("upgrade") };
            world.ask_whether(line, &op)
        }
        "recover-lease" => world.ask_whether(line, &RecoverLease { path: line.path(0), client: line.client() }),
        "renew-lease" => {
            let client = line.client();
            Ok(world.turn(line, |turn| turn.soft().tree.leases.renew(&client)).to_string())
        }
        "check-leases" => Ok(format!("{} files", world.turn(line, |turn| check_leases(turn, || "NameNode".into())))),
        _ => return pipeline(world, line).or_else(|| replicas(world, line)),
    })
}

fn add_block(world: &mut World, line: &Line) -> Printed {
    let path = line.path(0);
    let previous = if line.has("no-previous") { None } else { block(world, line, &path) };
    let nodes = |key: &str| {
        let numbers = numbers(line, key, &[]);
        world.state(|state| {
            let node = |n: &u32| state.blocks.node_by_uuid(&format!("uuid-{n}")).map(|node| node.number);
            numbers.iter().filter_map(node).collect::<Vec<_>>()
        })
    };
    let op = AddBlock {
        file: world.file(line, &path),
        path,
        client: line.client(),
        previous,
        previous_pool: line.option("pool").map(Into::into),
        excluded: nodes("excluded"),
        favored: nodes("favored"),
        no_local_write: false,
        no_local_rack: false,
        ignore_client_locality: false,
    };
    world.write(line, &op).map(|located| show::located(world, &located))
}

/// Storages `uuid-N`, `DS-N` of `on=`.
fn places(line: &Line) -> Vec<(Arc<str>, Arc<str>)> {
    numbers(line, "on", &[]).iter().map(|n| (format!("uuid-{n}").into(), format!("DS-{n}").into())).collect()
}

fn pipeline(world: &mut World, line: &Line) -> Option<Printed> {
    let path = || line.path(0);
    Some(match line.name.as_str() {
        "new-stamp" => {
            let Some(block) = block(world, line, &path()) else { return Some(Ok("no block".to_owned())) };
            world.write(line, &UpdateBlockForPipeline { block, client: line.client() }).map(|located| {
                world.stamps.insert(block.id, located.located.block.stamp);
                show::located(world, &located)
            })
        }
        "update-pipeline" => {
            let Some(old) = block(world, line, &path()) else { return Some(Ok("no block".to_owned())) };
            let stamp = world.stamps.get(&old.id).copied().unwrap_or(old.stamp);
            let new = Block { stamp, ..old };
            world.ask(line, &UpdatePipeline { client: line.client(), old, new, targets: places(line) })
        }
        "additional-datanode" => {
            let Some(block) = block(world, line, &path()) else { return Some(Ok("no block".to_owned())) };
            let op = GetAdditionalDatanode {
                path: path(),
                file: world.file(line, &path()),
                block,
                existing: places(line),
                excluded: Vec::new(),
                count: line.option_number("count").unwrap_or(1),
                client: line.client(),
            };
            world.view(line, |view| op.run(view)).map(|located| show::located(world, &located))
        }
        "recovered" => recovered(world, line),
        _ => return None,
    })
}

/// The primary of a block recovery tells how it ended: `recovered PATH length=500 on=1 [open] [delete]`.
fn recovered(world: &mut World, line: &Line) -> Printed {
    let Some(block) = world.last_block(&line.path(0)) else { return Ok("no block".to_owned()) };
    let recovery = world.state(|state| state.blocks.recovery_id(block.id)).unwrap_or(block.stamp);
    let new_length = line.option_number("length").unwrap_or(block.length);
    let on = numbers(line, "on", &[1]);
    // where a truncate makes it of another block, that one is named
    let cut = world.state(|state| state.blocks.construction(block.id).and_then(|c| c.truncate));
    let source = cut.filter(|old| old.id != block.id).unwrap_or(block);
    let op = CommitBlockSynchronization {
        pool: "BP-1".into(),
        block: source,
        new_stamp: line.option_number("stamp").map_or(recovery, GenerationStamp),
        new_length,
        close_file: !line.has("open"),
        delete_block: line.has("delete"),
        targets: on.iter().map(|n| (world.nodes[n].id(), format!("DS-{n}"))).collect(),
    };
    let new = Block { length: new_length, stamp: op.new_stamp, ..block };
    world.turn(line, |turn| op.run(turn)).map(|()| {
        world.written.insert(block.id, new_length);
        for n in on.iter().filter(|_| !op.delete_block) {
            let node = world.nodes.get_mut(n).expect("a DataNode");
            if let Some(held) = node.held.get(&source.id).copied() {
                node.held.insert(block.id, Held { block: new, ..held });
            }
        }
        String::new()
    })
}

/// What a DataNode has of a block: of a striped group the internal block that is expected or known there, with its own length.
fn unit_of(world: &World, n: u32, group: Block) -> Block {
    world.state(|state| {
        let info = state.store.find_block(group.id).map(|b| (b, state.store.block(b)));
        let Some((b, stripe)) =
            info.and_then(|(b, info)| Some((b, state.tree.erasure_coding.stripe(info.erasure_coding_policy)?)))
        else {
            return group;
        };
        let here = |s: record::StorageNumber| {
            let node = state.blocks.volume_info(s).and_then(|v| state.blocks.node(v.node));
            node.is_some_and(|node| show::node_number(&node.id.uuid) == n)
        };
        let expected = state.blocks.construction(group.id).into_iter().flat_map(|c| c.expected.iter());
        let known = state.store.replicas(b);
        let mut places = expected.map(|e| (e.storage, e.index)).chain(known.iter().map(|r| (r.storage, r.index)));
        let index = places.find(|(s, _)| here(*s)).map_or(0, |(_, index)| index);
        let length = stripe.unit_length(group.length, index);
        Block { id: vocab::BlockId(group.id.0 + i64::from(index)), length, ..group }
    })
}

/// What becomes of replicas: `write PATH BYTES [on=1,2]` by the pipeline, `writing`, `deleted PATH on=2`, `received PATH on=3`.
fn replicas(world: &mut World, line: &Line) -> Option<Printed> {
    let kind = match line.name.as_str() {
        "write" | "received" => IncrementalKind::Received,
        "writing" => IncrementalKind::Receiving,
        "deleted" => IncrementalKind::Deleted,
        _ => return None,
    };
    let Some(mut block) = block(world, line, &line.path(0)) else { return Some(Ok("no block".to_owned())) };
    if matches!(line.name.as_str(), "write" | "writing") {
        block.length = line.number(1);
        world.written.insert(block.id, block.length);
        block.stamp = world.stamps.get(&block.id).copied().unwrap_or(block.stamp);
    }
    let expected = world.state(|state| {
        let storages = state.blocks.expected(block.id);
        let node = |s: &record::StorageNumber| {
            let volume = state.blocks.volume_info(*s)?;
            Some(show::node_number(&state.blocks.node(volume.node)?.id.uuid))
        };
        storages.iter().filter_map(node).collect::<Vec<u32>>()
    });
    for n in numbers(line, "on", &expected) {
        let block = unit_of(world, n, block);
        let at = volume_of(world, n, &block);
        let mut node = world.nodes[&n].clone();
        let told = world.soft(|state, now| match kind {
            IncrementalKind::Received => {
                node.receive(&mut state.blocks, &mut state.store, (block, at), now);
                Ok(())
            }
            kind => node.notify(&mut state.blocks, &mut state.store, (block, kind, at), now),
        });
        match kind {
            IncrementalKind::Deleted => _ = node.held.remove(&block.id),
            IncrementalKind::Receiving => {
                let state = ReplicaState::BeingWritten;
                node.held.insert(block.id, Held { block, state, volume: at });
            }
            IncrementalKind::Received => {}
        }
        world.nodes.insert(n, node);
        if let Err(refusal) = told {
            return Some(Err(refusal));
        }
    }
    Some(Ok(String::new()))
}

/// The volume of a node that a block was placed on, else its first.
fn volume_of(world: &World, n: u32, block: &Block) -> usize {
    let node = &world.nodes[&n];
    world.state(|state| {
        let storages = state.blocks.expected(block.id);
        let ids = storages.iter().filter_map(|s| state.blocks.volume_info(*s).map(|volume| volume.id.clone()));
        let ids: Vec<_> = ids.collect();
        (0..node.volumes.len()).find(|at| ids.contains(&node.volume(*at).id)).unwrap_or(0)
    })
}
