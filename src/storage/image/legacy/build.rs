//! Inodes of an old image into a state.

use super::SECTION;
use super::nodes::{Kind, Node, Nodes};
use crate::image::summary::ImageError;
use namespace::build::Build;
use record::{BlockInfo, Features, Inode, InodeHandle, InodeKind, Store};
use state::State;
use vocab::path::compare_names;
use vocab::quota::Quota;
use vocab::{BlockState, Mode, TimeMs};

pub(super) fn build(nodes: Nodes<'_>, state: &mut State) -> Result<(), ImageError> {
    state.store = Store::new();
    state.store.set_legacy_limit(state.sequences.stamp_v1_limit);
    let store = &mut state.store;
    let mut build = Build::new(store);
    let mut handles = Vec::with_capacity(nodes.list.len());
    let mut children: Vec<Vec<InodeHandle>> = vec![Vec::new(); nodes.list.len()];
    for (index, node) in nodes.list.iter().enumerate() {
        let handle = add(store, &mut build, node)?;
        handles.push(handle);
        if index > 0 {
            children[node.parent].push(handle);
        }
    }
    let error = |error: namespace::build::BuildError| content(error.to_string());
    for (directory, mut children) in handles.into_iter().zip(children) {
        if !children.is_empty() {
            children.sort_by(|a, b| compare_names(store.name(*a), store.name(*b)));
            build.set_children(store, directory, &children).map_err(error)?;
        }
    }
    state.tree = build.finish(store).map_err(error)?;
    Ok(())
}

fn content(what: String) -> ImageError {
    ImageError::Content { section: SECTION, what }
}

fn add(store: &mut Store, build: &mut Build, node: &Node<'_>) -> Result<InodeHandle, ImageError> {
    let text = String::from_utf8_lossy;
    let (user, group) = (text(node.permission.user), text(node.permission.group));
    let kind = match &node.kind {
        Kind::Directory { .. } => InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 },
        Kind::File { replication, block_size, .. } => InodeKind::File {
            replication: *replication,
            block_size: (*block_size).max(1),
            storage_policy: 0,
            erasure_coding_policy: 0,
        },
        Kind::Symlink(_) => InodeKind::Symlink,
    };
    let inode = Inode {
        id: node.id,
        parent: None,
        user: store.intern_user(&user),
        group: store.intern_group(&group),
        mode: Mode::new(node.permission.mode),
        mtime: TimeMs(node.mtime),
        atime: TimeMs(node.atime),
        features: Features::NONE,
        kind,
    };
    let handle = build.add(store, &inode, node.name);
    match &node.kind {
        Kind::Directory { namespace_quota, space_quota, snapshottable } => {
            let limit = |value: i64| u64::try_from(value).ok();
            let quota = Quota { namespace: limit(*namespace_quota), space: limit(*space_quota), ..Quota::default() };
            build.set_quota(store, handle, quota);
            if *snapshottable {
                build.allow_snapshots(store, handle);
            }
        }
        Kind::File { replication, blocks, writer, .. } => {
            if let Some((client, machine)) = writer {
                build.open(store, handle, &text(client), &text(machine));
            }
            for (index, block) in blocks.iter().enumerate() {
                if store.find_block(block.id).is_some() {
                    return Err(content(format!("block {} is in two files", block.id)));
                }
                let under_construction = writer.is_some() && index + 1 == blocks.len();
                let state = if under_construction { BlockState::UnderConstruction } else { BlockState::Complete };
                let info = BlockInfo {
                    block: *block,
                    replication: *replication,
                    state,
                    open: writer.is_some(),
                    ..BlockInfo::default()
                };
                store.push_block(handle, &info);
            }
            store.settle(handle);
        }
        Kind::Symlink(target) => build.set_symlink_target(store, handle, target),
    }
    Ok(handle)
}
