//! What a person reads and what a program reads.

use super::generate::Figures;
use super::process::{Side, Started};
use super::{Sample, Series};
use std::fmt::Write;

/// A row: what it is called, its unit, its value.
pub type Row = (&'static str, &'static str, fn(&Started) -> f64);

pub const ROWS: [Row; 11] = [
    ("image loaded (as told)", "s", |s| s.load_s),
    ("start to serving", "s", |s| s.serving_s),
    ("CPU until serving, user", "s", |s| s.user_s),
    ("CPU until serving, system", "s", |s| s.system_s),
    ("start to all answers checked", "s", |s| s.checked_s),
    ("image saved", "s", |s| s.save_s),
    ("image saved, sync apart", "s", |s| s.written_s),
    ("CPU of the save", "s", |s| s.save_cpu_s),
    ("settled memory", "MB", |s| s.settled_mb),
    ("peak memory", "MB", |s| s.peak_mb),
    ("huge pages of it", "MB", |s| s.huge_mb),
];

/// Heap that Java needs for so many inodes and blocks, with room to collect garbage in.
pub fn heap_mb(figures: &Figures) -> u64 {
    let inodes = if figures.inodes > 0 { figures.inodes } else { figures.image_bytes / 100 };
    1024 + inodes * 600 / 1_000_000
}

/// The median of one side.
pub fn median(samples: &[Sample], side: Side, value: fn(&Started) -> f64) -> Option<f64> {
    let mut all: Vec<f64> = samples.iter().filter(|s| s.side == side).map(|s| value(&s.started)).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Medians side by side.
pub fn table(series: &Series) -> String {
    let Figures { inodes, blocks, image_bytes } = series.figures;
    let mut out = format!(
        "{}: {inodes} inodes, {blocks} blocks, image of {:.1} MB, md5sum {:.2} s\n",
        series.name,
        image_bytes as f64 / 1e6,
        series.md5sum_s
    );
    _ = writeln!(out, "{:<30} {:>10} {:>10} {:>8}", "", "ironroot", "java", "ratio");
    for (what, unit, value) in ROWS {
        let [own, rival] = [Side::Ironroot, Side::Java].map(|side| median(&series.samples, side, value));
        let text = |v: Option<f64>| v.map_or("-".to_owned(), |v| format!("{v:.2}"));
        let ratio = own.zip(rival).filter(|(own, _)| *own > 0.0).map(|(own, rival)| rival / own);
        _ = writeln!(out, "{:<30} {:>10} {:>10} {:>8}", format!("{what}, {unit}"), text(own), text(rival), text(ratio));
    }
    if let Some(own) = median(&series.samples, Side::Ironroot, |s| s.load_s) {
        _ = writeln!(
            out,
            "load: {:.2} times md5sum, {:.3} us an inode",
            own / series.md5sum_s,
            own * 1e6 / inodes as f64
        );
    }
    if let Some(restart) = &series.restart {
        _ = writeln!(
            out,
            "restart from the arena file: loaded in {:.3} s, {:.1} ms a million inodes; serving after {:.3} s, CPU {:.2} s, all checked after {:.2} s",
            restart.load_s,
            restart.load_s * 1e9 / inodes as f64,
            restart.serving_s,
            restart.user_s + restart.system_s,
            restart.checked_s
        );
    }
    out
}

/// Every sample.
pub fn json(all: &[Series]) -> String {
    let series = all.iter().map(|series| {
        let samples = series.samples.iter().map(|sample| {
            let mut row = serde_json::json!({ "side": sample.side.name() });
            for (what, unit, value) in ROWS {
                row[format!("{what}, {unit}")] = value(&sample.started).into();
            }
            row["phases"] =
                sample.started.phases.iter().map(|(n, ms)| serde_json::json!({"name": n, "ms": ms})).collect();
            row
        });
        let restart = series.restart.as_ref().map(|started| {
            let rows = ROWS.iter().map(|(what, unit, value)| (format!("{what}, {unit}"), value(started).into()));
            serde_json::Value::Object(rows.collect())
        });
        serde_json::json!({
            "restart_from_arena": restart,
            "profile": series.name,
            "inodes": series.figures.inodes,
            "blocks": series.figures.blocks,
            "image_bytes": series.figures.image_bytes,
            "md5sum_s": series.md5sum_s,
            "samples": samples.collect::<Vec<_>>(),
        })
    });
    format!("{:#}\n", serde_json::Value::Array(series.collect()))
}
