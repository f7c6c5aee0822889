//! Commands that ask for lists, figures and reports: what `show` leaves.

use super::Printed;
use super::line::Line;
use super::show::{block_text, refusal, status, targets, text};
use super::world::World;
use blocks::{ReportKind, VolumeState};
use namespace::snapshot::report::{Change, Cursor, Item};
use ops::View;
use ops::admin::datanode_report::get_datanode_report;
use ops::read::batched_listing::{BatchedStart, BatchedVisitor, get_batched_listing};
use ops::read::block_locations::get_block_locations;
use ops::read::defaults::get_server_defaults;
use ops::read::erasure_coding::{get_erasure_coding_policies, get_erasure_coding_policy};
use ops::read::file_info::{get_file_info, get_located_file_info, get_preferred_block_size};
use ops::read::listing::ListingVisitor;
use ops::read::meta_save::MetaSave;
use ops::read::snapshots::{get_snapshot_diff, get_snapshot_diff_listing, get_snapshot_listing, get_snapshottable};
use ops::read::statistics::{get_block_group_stats, get_fs_stats, get_replicated_block_stats};
use ops::status::{FileStatus, LocatedBlocks};
use ops::write::access_time::TouchAccessTime;
use ops::write::storage_policy::get_storage_policies;
use std::fmt::Write;
use vocab::Refusal;

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    Some(match line.name.as_str() {
        "open" => open(world, line),
        "access-times" => {
            world.setup.settings.access_time_precision_ms = line.number(0);
            Ok("from the next start on".to_owned())
        }
        "pages" => {
            let settings = &mut world.setup.settings;
            (settings.listing_limit, settings.batched_listing_limit) = (line.number(0), line.number(0));
            settings.snapshot_changes_listed = line.number(0);
            Ok("from the next start on".to_owned())
        }
        "bandwidth" => {
            world.soft(|state, _| state.blocks.set_balancer_bandwidth(line.number(0)));
            Ok(String::new())
        }
        "restores" => {
            let engine = world.engine();
            let wanted = line.paths(0).first().map(|word| word == b"true");
            wanted.into_iter().for_each(|on| engine.journal().set_restore(on));
            Ok(engine.journal().restores().to_string())
        }
        "txid" => Ok(world.engine().journal().last_assigned().to_string()),
        "ha-state" => Ok(format!("{:?}", world.engine().gate().state())),
        _ => return files(world, line).or_else(|| snapshots(world, line)).or_else(|| figures(world, line)),
    })
}

/// A reader asks where the blocks are, which may leave an access time.
fn open(world: &mut World, line: &Line) -> Printed {
    let found = world.view(line, |view| get_block_locations(view, &line.path(0), 0, i64::MAX))?;
    if let Some(file) = found.touch {
        world.write(line, &TouchAccessTime { file })?;
    }
    let atime = world.state(|s| World::find(s, &line.path(0)).map_or(0, |file| s.store.inode(file).atime.0));
    Ok(format!("{} bytes, read at {atime}", found.blocks.file_length))
}

fn located(view: &View<'_>, blocks: Option<&LocatedBlocks>) -> String {
    let blocks = blocks.map_or(&[][..], |found| &found.blocks);
    let one = |b: &ops::status::LocatedBlock| {
        format!("  {} on {}\n", block_text(&b.located.block), targets(view.state, &b.located.locations))
    };
    blocks.iter().map(one).collect()
}

fn files(world: &mut World, line: &Line) -> Option<Printed> {
    let path = line.paths(0).first().cloned().unwrap_or_else(|| b"/".to_vec());
    let path = path.as_slice();
    world.view(line, |view| match line.name.as_str() {
        "info" => Some(get_file_info(view, path).map(|found| found.map_or("nothing".to_owned(), |s| status(&s)))),
        "located" => Some(get_located_file_info(view, path).map(|found| {
            found.map_or("nothing".to_owned(), |(s, blocks)| {
                format!("{}\n{}", status(&s), located(view, blocks.as_ref()))
            })
        })),
        "block-size" => Some(get_preferred_block_size(view, path).map(|bytes| bytes.to_string())),
        "ls-many" => Some(listings(view, &line.paths(0), line.option("blocks").is_some())),
        "ec-of" => Some(
            get_erasure_coding_policy(view, path)
                .map(|policy| policy.map_or("none".to_owned(), |policy| policy.name.to_string())),
        ),
        _ => None,
    })
}

/// Entries of several directories as they come.
struct Listings<'v, 's> {
    view: &'v View<'s>,
    paths: &'v [Vec<u8>],
    out: String,
}

impl ListingVisitor for Listings<'_, '_> {
    fn entry(&mut self, entry: &FileStatus<'_>, blocks: Option<&LocatedBlocks>) {
        let _ = write!(self.out, "  {} {}\n{}", text(&entry.name), status(entry), located(self.view, blocks));
    }
}

impl BatchedVisitor for Listings<'_, '_> {
    fn begin(&mut self, index: usize) {
        let _ = writeln!(self.out, "{}:", text(&self.paths[index]));
    }
    fn end(&mut self, remaining: usize) {
        if remaining > 0 {
            let _ = writeln!(self.out, "  {remaining} more");
        }
    }
    fn refused(&mut self, index: usize, why: Refusal) {
        let _ = write!(self.out, "{}: {}", text(&self.paths[index]), refusal(&why));
    }
}

/// All pages of `ls-many PATH PATH... [blocks=yes]`.
fn listings(view: &View<'_>, paths: &[Vec<u8>], with_blocks: bool) -> Printed {
    let mut seen = Listings { view, paths, out: String::new() };
    let mut start = BatchedStart::default();
    while let Some(next) = get_batched_listing(view, paths, &start, with_blocks, &mut seen)? {
        seen.out.push_str("next page\n");
        start = next;
    }
    Ok(seen.out)
}

fn change(change: Change) -> String {
    let target = change.target.map(|target| format!(" -> {}", text(&target))).unwrap_or_default();
    format!("{} {}{target}\n", change.label, text(&change.path))
}

fn item(label: &str, item: &Item) -> String {
    let target = item.target.as_ref().map(|target| format!(" -> {}", text(target))).unwrap_or_default();
    let renamed = if item.is_reference { " (renamed)" } else { "" };
    format!("{label} {} in {}: {}{target}{renamed}\n", item.id, item.directory, text(&item.path))
}

fn snapshots(world: &mut World, line: &Line) -> Option<Printed> {
    let word = |at: usize| String::from_utf8_lossy(line.paths(at).first().map_or(b"", |w| w)).into_owned();
    world.view(line, |view| match line.name.as_str() {
        "snapshottable" => Some(Ok(get_snapshottable(view)
            .iter()
            .map(|s| format!("{} {} of {} snapshots\n", text(&s.path()), s.count, s.quota))
            .collect())),
        "snapshots" => Some(get_snapshot_listing(view, &line.path(0)).map(|all| {
            let one = |s: &ops::read::snapshots::SnapshotStatus<'_>| {
                let deleted = if s.is_deleted { ", deleted" } else { "" };
                format!(
                    "{} of {}: {} mtime {}{deleted}\n",
                    text(&s.status.name),
                    text(&s.parent),
                    s.id.0,
                    s.status.mtime.0
                )
            };
            all.iter().map(one).collect()
        })),
        "diff" => Some(get_snapshot_diff(view, &line.path(0), &word(1), &word(2)).map(|(root, changes)| {
            format!("{}\n{}", text(&root), changes.into_iter().map(change).collect::<String>())
        })),
        "diff-pages" => Some(diff_pages(view, line, &word(1), &word(2))),
        _ => None,
    })
}

fn diff_pages(view: &View<'_>, line: &Line, from: &str, to: &str) -> Printed {
    let (mut start, mut out) = (Cursor::default(), String::new());
    loop {
        let page = get_snapshot_diff_listing(view, &line.path(0), from, to, &start)?;
        if out.is_empty() && !page.from_earlier {
            out.push_str("from the later one back\n");
        }
        for (label, items) in [("M", &page.modified), ("+", &page.created), ("-", &page.deleted)] {
            items.iter().for_each(|i| out += &item(label, i));
        }
        let Some(next) = page.next else { return Ok(out) };
        out.push_str("next page\n");
        start = next;
    }
}

fn figures(world: &mut World, line: &Line) -> Option<Printed> {
    world.view(line, |view| match line.name.as_str() {
        "defaults" => {
            let d = get_server_defaults(view);
            Some(Ok(format!(
                "blocks of {}, x{}, {} bytes per checksum of kind {}, packets of {}, buffers of {}, trash kept {} min, policy {}",
                d.block_size,
                d.replication,
                d.bytes_per_checksum,
                d.checksum_type,
                d.write_packet_size,
                d.file_buffer_size,
                d.trash_interval,
                d.storage_policy
            )))
        }
        "storage-policies" => Some(Ok(get_storage_policies()
            .iter()
            .map(|p| {
                format!(
                    "{} {} {:?}, else {:?}, later {:?}\n",
                    p.id, p.name, p.kinds, p.creation_fallbacks, p.replication_fallbacks
                )
            })
            .collect())),
        "ec-policies" => Some(get_erasure_coding_policies(view).map(|all| {
            all.iter().map(|p| format!("{} {} {:?}\n", p.id, p.name, p.state).to_lowercase()).collect()
        })),
        "figures" => Some(Ok(sums(view))),
        "datanodes" => Some(data_nodes(view, line)),
        "meta-save" => Some(MetaSave::begin(view).map(|mut account| {
            // a block at a time: what is told does not depend on the steps
            while !account.step(view, &|time| time.0.to_string(), 1) {}
            account.text().lines().map(|line| format!("{}\n", line.trim_end())).collect()
        })),
        _ => None,
    })
}

fn sums(view: &View<'_>) -> String {
    let (all, blocks, groups) = (get_fs_stats(view), get_replicated_block_stats(view), get_block_group_stats(view));
    format!(
        "all: {} of {} bytes, low {} corrupt {} missing {} (of one replica {}) future {} deletions {}\n\
         blocks: low {} corrupt {} missing {} (of one replica {}) future {} deletions {} urgent {} badly placed {}\n\
         groups: low {} corrupt {} missing {} future {} deletions {} urgent {} badly placed {}\n",
        all.used,
        all.capacity,
        all.low_redundancy,
        all.corrupt_blocks,
        all.missing_blocks,
        all.missing_single,
        all.blocks_in_future,
        all.pending_deletions,
        blocks.low_redundancy,
        blocks.corrupt,
        blocks.missing,
        blocks.missing_single,
        blocks.bytes_in_future,
        blocks.pending_deletions,
        blocks.highest_priority,
        blocks.badly_distributed,
        groups.low_redundancy,
        groups.corrupt,
        groups.missing,
        groups.bytes_in_future,
        groups.pending_deletions,
        groups.highest_priority,
        groups.badly_distributed
    )
}

/// `datanodes all|live|dead|decommissioning|entering|maintenance [storages]`.
fn data_nodes(view: &View<'_>, line: &Line) -> Printed {
    let kind = match line.text(0).as_str() {
        "live" => ReportKind::Live,
        "dead" => ReportKind::Dead,
        "decommissioning" => ReportKind::Decommissioning,
        "entering" => ReportKind::EnteringMaintenance,
        "maintenance" => ReportKind::InMaintenance,
        _ => ReportKind::All,
    };
    let mut out = String::new();
    for node in get_datanode_report(view, kind)?.nodes() {
        let _ = writeln!(out, "{} {} {:?}", node.id.host, if node.alive { "live" } else { "dead" }, node.admin);
        if !line.has("storages") {
            continue;
        }
        for storage in &node.volumes {
            let Some(v) = view.state.blocks.volume_info(*storage) else { continue };
            let failed = if v.state == VolumeState::Failed { " failed" } else { "" };
            let _ = writeln!(out, "  {} {} {} of {} free{failed}", v.id, v.kind.name(), v.remaining, v.capacity);
        }
    }
    Ok(out)
}
