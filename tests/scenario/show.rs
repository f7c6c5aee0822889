//! Commands that print, and how things are printed.

use super::Printed;
use super::attributes::xattr;
use super::laws;
use super::line::Line;
use super::world::{BEGIN, World};
use blocks::{AdminState, Command, ReportKind, Target};
use observe::remote_exception::RemoteException;
use ops::read::acl_status::get_acl_status;
use ops::read::block_locations::get_block_locations;
use ops::read::corrupt_files::CorruptFilesWalk;
use ops::read::file_info::{check_access, get_file_link_info, get_link_target, is_file_closed};
use ops::read::listing::get_listing;
use ops::read::open_files::{Which, list_open_files};
use ops::read::summary::{get_content_summary, get_quota_usage};
use ops::status::{FileStatus, LocatedBlock};
use ops::write::storage_policy::get_storage_policy;
use ops::write::xattr::{get_xattrs, list_xattrs};
use record::{InodeHandle, InodeKind, KindTag};
use state::State;
use std::fmt::Write;
use std::path::Path;
use vocab::acl::{AclEntry, AclScope};
use vocab::quota::{Quota, Usage};
use vocab::{Action, Block, BlockState, InodeId, Refusal, StorageKind, Txid};

/// Class and text as clients get them.
pub fn refusal(refusal: &Refusal) -> String {
    let RemoteException { class, message, .. } = RemoteException::from(refusal);
    let class = class.rsplit('.').next().unwrap_or_default();
    format!("{class}: {}\n", message.trim_end())
}

/// Times count from the beginning.
pub fn tidy(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for c in text.trim_end().chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        match digits.parse::<i64>() {
            Ok(time) if digits.len() == 13 && (BEGIN..BEGIN + 10_000_000_000).contains(&time) => {
                let _ = write!(out, "+{}", time - BEGIN);
            }
            _ => out += &digits,
        }
        digits.clear();
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out
}

/// Bytes of a path as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

/// The number in `uuid-3`.
pub fn node_number(uuid: &str) -> u32 {
    uuid.trim_start_matches("uuid-").parse().expect("a scripted DataNode")
}

fn target(state: &State, target: &Target) -> String {
    let node = state.blocks.node(target.node).map_or("?", |node| &*node.id.host);
    match target.kind {
        StorageKind::Disk => node.to_owned(),
        kind => format!("{node}:{}", kind.name()),
    }
}

pub fn targets(state: &State, all: &[Target]) -> String {
    let mut names: Vec<String> = all.iter().map(|t| target(state, t)).collect();
    names.sort();
    if names.is_empty() { "nowhere".to_owned() } else { names.join(" ") }
}

pub fn block_text(block: &Block) -> String {
    format!("blk_{}_{} {} bytes", block.id.0, block.stamp.0, block.length)
}

/// A block that a writer was given.
pub fn located(world: &World, block: &LocatedBlock) -> String {
    world.state(|state| format!("{} on {}", block_text(&block.located.block), targets(state, &block.located.locations)))
}

pub fn command(world: &World, command: &Command) -> String {
    let blocks = |list: &[Block]| list.iter().map(|b| format!("blk_{}_{}", b.id.0, b.stamp.0)).collect::<Vec<_>>();
    world.state(|state| match command {
        Command::Register => "register".to_owned(),
        Command::Invalidate(list) => format!("delete {}", blocks(list).join(" ")),
        Command::Transfer(list) => {
            let one = |t: &blocks::Transfer| format!("blk_{} to {}", t.block.id.0, targets(state, &t.targets));
            format!("copy {}", list.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Command::Recover(list) => {
            let one = |r: &blocks::Recovery| {
                let cut = r.truncate.map(|b| format!(" cut to {}", block_text(&b))).unwrap_or_default();
                format!("{} as {} on {}{cut}", block_text(&r.block), r.recovery_id, targets(state, &r.locations))
            };
            format!("recover {}", list.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Command::Rebuild(list) => {
            let one = |r: &blocks::Rebuild| {
                let from: Vec<_> = (r.sources.iter().filter_map(|n| state.blocks.node(*n)).zip(&r.live))
                    .map(|(node, index)| format!("dn{}={index}", node_number(&node.id.uuid)))
                    .collect();
                format!("blk_{} from {} on {}", r.group.id.0, from.join(","), targets(state, &r.targets))
            };
            format!("rebuild {}", list.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Command::Cache(ids) => {
            format!("cache {}", ids.iter().map(|id| format!("blk_{id}")).collect::<Vec<_>>().join(" "))
        }
        Command::Uncache(ids) => {
            format!("uncache {}", ids.iter().map(|id| format!("blk_{id}")).collect::<Vec<_>>().join(" "))
        }
        Command::BalancerBandwidth(bytes) => format!("bandwidth {bytes}"),
        Command::Finalize => "finalize".to_owned(),
    })
}

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    let path = || line.paths(0).first().cloned().unwrap_or_else(|| b"/".to_vec());
    Some(match line.name.as_str() {
        "tree" => Ok(world.state(|state| tree(state, &path()))),
        "blocks" => Ok(world.state(|state| blocks_of(state, &path()))),
        "edits" => Ok(edits(world)),
        "leases" => Ok(world.state(leases)),
        "nodes" => Ok(nodes(world)),
        "stats" => Ok(world.state(|state| stats(state, world.now().monotonic))),
        "files" => Ok(files(world)),
        _ => return reads(world, line),
    })
}

/// How many of a block's DataNodes have it in memory, if any.
fn in_memory(state: &State, located: &blocks::Located) -> String {
    let caching = &state.blocks.caching;
    let cached = located.locations.iter().filter(|t| caching.is_cached(located.block.id, t.node)).count();
    if cached > 0 { format!(", {cached} in memory") } else { String::new() }
}

/// What clients may ask.
fn reads(world: &World, line: &Line) -> Option<Printed> {
    let path = line.paths(0).first().cloned().unwrap_or_else(|| b"/".to_vec());
    let path = path.as_slice();
    let range = |key: &str, usual: i64| line.option_number(key).unwrap_or(usual);
    world.view(line, |view| match line.name.as_str() {
        "stat" => Some(get_file_link_info(view, path).map(|found| found.map_or("nothing".to_owned(), |s| status(&s)))),
        "ls" => {
            let mut entries: Vec<(FileStatus<'static>, _)> = Vec::new();
            Some(get_listing(view, path, b"", false, &mut entries).map(|page| match page {
                Some(_) => entries.iter().map(|(s, _)| format!("{} {}\n", text(&s.name), status(s))).collect(),
                None => "nothing".to_owned(),
            }))
        }
        "read" => Some(get_block_locations(view, path, range("offset", 0), range("length", i64::MAX)).map(|found| {
            let blocks = found.blocks;
            let mut out =
                format!("{} bytes{}\n", blocks.file_length, if blocks.under_construction { ", open" } else { "" });
            for block in &blocks.blocks {
                let corrupt = if block.located.corrupt { " corrupt" } else { "" };
                let places = targets(view.state, &block.located.locations);
                let cached = in_memory(view.state, &block.located);
                let _ = writeln!(out, "{}{corrupt} on {places}{cached}", block_text(&block.located.block));
            }
            out
        })),
        "closed" => Some(is_file_closed(view, path).map(|closed| closed.to_string())),
        "access" => {
            let letters = line.text(1);
            let bits = letters.bytes().map(|b| match b {
                b'r' => 4,
                b'w' => 2,
                _ => 1,
            });
            Some(check_access(view, path, Action(bits.sum())).map(|()| "allowed".to_owned()))
        }
        "target" => Some(get_link_target(view, path).map(text)),
        "summary" => Some(get_content_summary(view, path).map(|s| {
            let t = s.totals;
            let names = format!("{} files {} directories {} symlinks", t.files, t.directories, t.symlinks);
            let coding = if s.erasure_coding_policy.is_empty() { "" } else { " " };
            format!("{names} {} bytes; {}{coding}{}", t.length, usage(&t.usage, &s.quota), s.erasure_coding_policy)
        })),
        "usage" => Some(get_quota_usage(view, path).map(|u| usage(&u.usage, &u.quota))),
        "get-policy" => Some(get_storage_policy(view, path).map(|policy| policy.name.to_string())),
        "get-acl" => Some(get_acl_status(view, path).map(|acl| {
            let entries: String = acl.entries.iter().map(|entry| format!(" {}", acl_entry(entry))).collect();
            format!(
                "{} {} {}{entries}",
                acl.owner,
                acl.group,
                acl.mode.map_or_else(String::new, |mode| mode.to_string())
            )
        })),
        "get-xattrs" => {
            let wanted: Vec<_> = line.paths(1).iter().map(|name| xattr(&String::from_utf8_lossy(name), b"")).collect();
            Some(get_xattrs(view, path, &wanted).map(|all| all.iter().map(attribute).collect()))
        }
        "list-xattrs" => Some(list_xattrs(view, path).map(|all| all.iter().map(attribute).collect())),
        "open-files" => Some(list_open_files(view, InodeId(0), path, Which::All).map(|open| {
            open.entries.iter().map(|f| format!("{} {} by {}\n", f.id, text(&f.path), f.client)).collect()
        })),
        "corrupt-files" => Some(CorruptFilesWalk::begin(view, path, 0).map(|walk| {
            let Some(mut walk) = walk else { return String::new() };
            while !walk.step(view, 100) {}
            walk.files.iter().map(|path| format!("{}\n", text(path))).collect()
        })),
        _ => None,
    })
}

fn attribute(xattr: &vocab::xattr::Xattr) -> String {
    let namespace = format!("{:?}", xattr.namespace).to_lowercase();
    format!("{namespace}.{} = {}\n", xattr.name, text(&xattr.value))
}

fn acl_entry(entry: &AclEntry) -> String {
    let scope = if entry.scope == AclScope::Default { "default:" } else { "" };
    let kind = format!("{:?}", entry.kind).to_lowercase();
    format!("{scope}{kind}:{}:{}", entry.name.as_deref().unwrap_or(""), entry.permission.symbol())
}

fn usage(usage: &Usage, quota: &Quota) -> String {
    let limit = |limit: Option<u64>| limit.map_or(String::new(), |limit| format!("/{limit}"));
    let mut out = format!(
        "{}{} names {}{} bytes of space",
        usage.namespace,
        limit(quota.namespace),
        usage.space,
        limit(quota.space)
    );
    for kind in StorageKind::ALL {
        let (used, most) = (usage.by_kind[kind as usize], quota.by_kind[kind as usize]);
        if used != 0 || most.is_some() {
            let _ = write!(out, ", {used}{} of {}", limit(most), kind.name());
        }
    }
    out
}

pub fn status(s: &FileStatus<'_>) -> String {
    let kind = match s.kind {
        KindTag::Directory => "directory",
        KindTag::Symlink => "symlink",
        _ => "file",
    };
    let mut out = format!("{kind} {} {} {} {}", s.id, s.mode, s.owner, s.group);
    let _ = match s.kind {
        KindTag::Directory => write!(out, " {} children", s.children),
        KindTag::Symlink => write!(out, " -> {}", text(s.symlink.as_deref().unwrap_or_default())),
        _ => write!(out, " {} bytes x{} of {}", s.length, s.replication, s.block_size),
    };
    let _ = write!(out, " mtime {}", s.mtime.0);
    if s.storage_policy != 0 {
        let _ = write!(out, " policy {}", s.storage_policy);
    }
    if let Some(policy) = &s.erasure_coding {
        let _ = write!(out, " {}", policy.name);
    }
    if s.flags.0 & ops::status::StatusFlags::ACL != 0 {
        out.push_str(" +");
    }
    out
}

/// Everything below a path, one line each.
fn tree(state: &State, path: &[u8]) -> String {
    let Some(top) = World::find(state, path) else { return "nothing".to_owned() };
    let mut out = String::new();
    let mut open = vec![top];
    while let Some(handle) = open.pop() {
        out += &inode_line(state, handle);
        if state.store.kind(handle) == KindTag::Directory {
            let children: Vec<InodeHandle> = state.tree.children(&state.store, handle).collect();
            open.extend(children.into_iter().rev());
        }
    }
    out
}

fn inode_line(state: &State, handle: InodeHandle) -> String {
    let (tree, store) = (&state.tree, &state.store);
    let inode = store.inode(handle);
    let (user, group) = (store.user_name(inode.user), store.group_name(inode.group));
    let path = text(&tree.path_of(store, handle));
    let (letter, more) = match inode.kind {
        InodeKind::Directory { .. } => ('d', String::new()),
        InodeKind::File { replication, .. } => {
            let bytes: u64 = store.blocks_of(handle).iter().map(|b| store.block(*b).block.length).sum();
            let blocks = store.block_count_of(handle);
            let writer = tree.construction(handle).map(|c| format!(" written by {}", c.client)).unwrap_or_default();
            ('-', format!(" x{replication} {bytes} bytes in {blocks} blocks{writer}"))
        }
        _ => ('l', format!(" -> {}", text(tree.symlink_target(handle)))),
    };
    let mut out = format!("{letter}{} {user} {group} {path}{more}", inode.mode);
    // the root counts against the largest number from the beginning
    let untouched = Quota { namespace: Some(i64::MAX as u64), ..Quota::default() };
    let limited = |quota: &Quota| *quota != Quota::default() && *quota != untouched;
    if let Some(quota) = tree.quota(store, handle).filter(|quota| limited(&quota.limits)) {
        let _ = write!(out, " [{}]", usage(&quota.usage, &quota.limits));
    }
    let acl: Vec<String> = tree.acl(handle).iter().map(acl_entry).collect();
    let xattrs: Vec<String> = tree.xattrs(handle).iter().map(|x| attribute(x).trim_end().to_owned()).collect();
    if !acl.is_empty() || !xattrs.is_empty() {
        let _ = write!(out, " {{{}}}", [acl, xattrs].concat().join(", "));
    }
    out.push('\n');
    out
}

/// The blocks of a file as the name node has them.
fn blocks_of(state: &State, path: &[u8]) -> String {
    let Some(file) = World::find(state, path) else { return "nothing".to_owned() };
    let mut out = String::new();
    for b in state.store.blocks_of(file).iter() {
        let info = state.store.block(*b);
        let located = state.blocks.locate(&state.store, *b);
        let what = match info.state {
            BlockState::Complete => "complete",
            BlockState::Committed => "committed",
            BlockState::UnderConstruction => "being written",
            BlockState::UnderRecovery => "being recovered",
        };
        let corrupt = if located.corrupt { ", corrupt" } else { "" };
        let places = targets(state, &located.locations);
        let _ = writeln!(out, "{} {what} x{}{corrupt} on {places}", block_text(&info.block), info.replication);
    }
    out
}

fn leases(state: &State) -> String {
    let mut out = String::new();
    for lease in state.tree.leases.iter() {
        let files: Vec<String> = lease.files.iter().map(|id| id.to_string()).collect();
        let _ = writeln!(out, "{}: {}", lease.holder, files.join(" "));
    }
    out
}

fn nodes(world: &World) -> String {
    world.state(|state| {
        let node = |node: &&blocks::Node| {
            let state_text = match (node.alive, node.admin) {
                (false, _) => "dead".to_owned(),
                (true, AdminState::Normal) => "in service".to_owned(),
                (true, admin) => format!("{admin:?}").to_lowercase(),
            };
            format!("{} {} {state_text} {} blocks\n", node.id.host, node.location, state.blocks.block_count_of(node))
        };
        state.blocks.datanode_report(ReportKind::All).iter().map(node).collect()
    })
}

fn stats(state: &State, now: vocab::time::MonotonicMs) -> String {
    let s = state.blocks.stats(&state.store, now);
    let inodes = state.tree.inode_count();
    let (blocks, open) = (state.store.block_count(), state.tree.open_count());
    format!(
        "{inodes} inodes {blocks} blocks {open} open files; low redundancy {} missing {} corrupt {} pending deletions {}",
        s.low_redundancy, s.missing, s.corrupt, s.pending_deletions
    )
}

/// Names in the first directory.
fn files(world: &World) -> String {
    let mut names = world.os.disk.list(Path::new("/a/current")).expect("lists");
    names.sort();
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// Records since the last time they were printed, without those that begin and end segments.
fn edits(world: &mut World) -> String {
    world.settle();
    let (mut out, mut last) = (String::new(), world.printed);
    laws::records(&world.os, Path::new("/a/current"), &mut |txid, record| {
        if txid > world.printed && !matches!(record, edit::Record::StartLogSegment | edit::Record::EndLogSegment) {
            let mut xml = String::new();
            edit::xml::record(txid, record, &mut xml);
            out += &one_line(txid, &xml);
        }
        last = txid.max(last);
    });
    world.printed = last;
    out
}

/// `7 OP_MKDIR INODEID=16386 PATH=/a PERMISSION_STATUS{USERNAME=hdfs ..}` of the viewer's XML.
fn one_line(txid: Txid, xml: &str) -> String {
    let mut out = txid.to_string();
    for line in xml.lines().map(str::trim) {
        let Some((tag, rest)) = line.strip_prefix('<').and_then(|line| line.split_once('>')) else { continue };
        match (tag, rest.rsplit_once("</")) {
            ("RECORD" | "DATA" | "/RECORD" | "/DATA" | "TXID" | "LENGTH" | "ATIME" | "CLIENT_MACHINE", _) => {}
            // what is nearly always so
            ("OVERWRITE", Some(("false", _))) | ("ERASURE_CODING_POLICY_ID" | "INODEID", Some(("0", _))) => {}
            ("OPCODE", Some((value, _))) => _ = write!(out, " {value}"),
            ("RPC_CLIENTID", Some(("", _))) => {}
            ("RPC_CALLID", Some(("-2", _))) => {}
            (tag, Some((value, _))) => _ = write!(out, " {tag}={value}"),
            (tag, None) if tag.ends_with('/') => {}
            (tag, None) if tag.starts_with('/') => out.push_str(" }"),
            (tag, None) => _ = write!(out, " {tag}{{"),
        }
    }
    out.push('\n');
    out
}
