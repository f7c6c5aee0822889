//! The FileDistribution processor: how many files there are of each size.

use super::source::Image;
use crate::tools::failure::Failure;
use crate::tools::text::byte_size;
use hadoop_proto::fsimage::{INodeSection, i_node_section as wire};
use std::io::Write;
use storage::image::SectionName;

const MAX_SIZE_DEFAULT: i64 = 128 << 30;
const STEP_DEFAULT: i32 = 2 << 20;
/// Most intervals that are counted apart.
const INTERVALS_MAX: i64 = 128 << 20;
/// After so many inodes progress is told.
const PROGRESS_INODES: i64 = 1 << 20;

/// What is asked for; 0 stands for the default.
pub(super) struct Ranges {
    pub(super) max_size: i64,
    pub(super) step: i32,
    pub(super) readable: bool,
}

#[derive(Default)]
struct Counts {
    files: i32,
    directories: i32,
    blocks: i32,
    space: i64,
    largest: i64,
    /// Files of each interval: 0, then up to each multiple of the step, the last one all beyond.
    intervals: Vec<i32>,
}

/// Counts and writes the table.
pub(super) fn write(image: &Image, ranges: Ranges, out: &mut impl Write) -> Result<(), Failure> {
    let max_size = if ranges.max_size == 0 { MAX_SIZE_DEFAULT } else { ranges.max_size };
    let step = i64::from(if ranges.step == 0 { STEP_DEFAULT } else { ranges.step });
    let intervals = max_size / step;
    if intervals > INTERVALS_MAX {
        let limit = INTERVALS_MAX + 1;
        return Err(Failure::Content(format!(
            "Too many distribution intervals (maxSize/step): {intervals}, should be less than {limit}."
        )));
    }
    let length = usize::try_from(intervals + 1).map_err(|_| Failure::content(format!("{}", intervals + 1)))?;
    let mut counts = Counts { intervals: vec![0; length.max(1)], ..Counts::default() };
    if let Some(mut messages) = image.section(SectionName::Inode) {
        let section: INodeSection = messages.expect()?;
        for index in 0..section.num_inodes() as i64 {
            counts.add(&messages.expect()?, max_size, step);
            if index % PROGRESS_INODES == 0 {
                writeln!(out, "Processed {index} inodes.")?;
            }
        }
        counts.write(step, ranges.readable, out)?;
    }
    out.flush()?;
    Ok(())
}

impl Counts {
    fn add(&mut self, inode: &wire::INode, max_size: i64, step: i64) {
        match inode.r#type() {
            wire::i_node::Type::Directory => self.directories += 1,
            wire::i_node::Type::Symlink => {}
            wire::i_node::Type::File => {
                let file = inode.file.clone().unwrap_or_default();
                let size = file.blocks.iter().fold(0i64, |size, block| size.wrapping_add(block.num_bytes() as i64));
                self.files += 1;
                self.blocks += file.blocks.len() as i32;
                self.largest = self.largest.max(size);
                self.space = self.space.wrapping_add(size.wrapping_mul(i64::from(file.replication() as i32)));
                let last = self.intervals.len() - 1;
                let interval = (size as f64 / step as f64).ceil() as usize;
                self.intervals[if size > max_size { last } else { interval.min(last) }] += 1;
            }
        }
    }

    fn write(&self, step: i64, readable: bool, out: &mut impl Write) -> Result<(), Failure> {
        writeln!(out, "{}\tNumFiles", if readable { "Size Range" } else { "Size" })?;
        for (index, count) in self.intervals.iter().enumerate().filter(|(_, count)| **count != 0) {
            let end = index as i64 * step;
            if readable {
                let (bracket, start) = if index == 0 { ("[", 0) } else { ("(", end - step) };
                let end = if index == self.intervals.len() - 1 { self.largest } else { end };
                writeln!(out, "{bracket}{}, {}]\t{count}", byte_size(start), byte_size(end))?;
            } else {
                writeln!(out, "{end}\t{count}")?;
            }
        }
        writeln!(out, "totalFiles = {}", self.files)?;
        writeln!(out, "totalDirectories = {}", self.directories)?;
        writeln!(out, "totalBlocks = {}", self.blocks)?;
        writeln!(out, "totalSpace = {}", self.space)?;
        writeln!(out, "maxFileSize = {}", self.largest)?;
        Ok(())
    }
}
