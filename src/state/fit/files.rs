//! Records that open, write and close files.

use super::{Mismatch, Paths, Plan, Planned, Unfit, text};
use crate::State;
use edit::record::AddClose;
use edit::rules::Rule;
use record::{InodeHandle, KindTag};
use std::borrow::Cow;
use vocab::Block;
use vocab::erasure_coding::REPLICATION;

impl State {
    pub(super) fn plan_add(&self, add: &AddClose<'_>, paths: &mut Paths<'_>) -> Planned {
        let striped = add.erasure_coding_policy != REPLICATION;
        if striped && self.tree.erasure_coding.by_id(add.erasure_coding_policy).is_none() {
            let (path, id) = (text(&add.path), add.erasure_coding_policy);
            return Err(
                Mismatch(format!("Cannot find erasure coding policy for new file {path}, ecPolicyID={id}")).into()
            );
        }
        let place = self.place(&add.path, paths)?;
        let old = place.last;
        if let Some(old) = old {
            if self.store.kind(old) != KindTag::File {
                return Err(Mismatch::new(format!("Path is not a file: {}", text(&add.path))).into());
            }
            if !add.overwrite {
                self.check_blocks(old, &add.blocks, &add.path)?;
                return Ok(Plan::Inode(old));
            }
        }
        let parent = self.parent_directory(&place, &add.path)?;
        self.fresh_inode(add.inode_id, &add.path)?;
        self.check_new_blocks(striped, &add.blocks, &add.path)?;
        Ok(Plan::Create { parent, replaces: old })
    }

    pub(super) fn plan_close(&self, close: &AddClose<'_>, paths: &mut Paths<'_>) -> Planned {
        let file = self.file(&close.path, paths)?;
        if !self.is_open(file) {
            return Err(Mismatch::new(format!("File is not under construction: {}", text(&close.path))).into());
        }
        self.check_blocks(file, &close.blocks, &close.path)?;
        Ok(Plan::Inode(file))
    }

    pub(super) fn plan_update_blocks(&self, path: &[u8], blocks: &[Block], paths: &mut Paths<'_>) -> Planned {
        let file = self.file(path, paths)?;
        self.check_blocks(file, blocks, path)?;
        Ok(Plan::Inode(file))
    }

    /// Hadoop's rules for replacing a block list: the same ids; the same stamps but for the last block where the count stays; at most one block less.
    fn check_blocks(&self, file: InodeHandle, new: &[Block], path: &[u8]) -> Result<(), Mismatch> {
        let old = self.store.block_count_of(file);
        let same_count = old == new.len();
        for (i, block) in new.iter().enumerate().take(old) {
            let Some(was) = self.store.block_at(file, i).map(|b| self.store.block_core(b)) else { break };
            let may_restamp = same_count && i + 1 == new.len();
            if was.id != block.id || (was.stamp != block.stamp && !may_restamp) {
                let show = |b: &Block| format!("blk_{}_{}", b.id, b.stamp);
                return Err(Mismatch(format!(
                    "Mismatched block IDs or generation stamps, attempting to replace block {} with {} as block # {i}/{} of {}",
                    show(&was),
                    show(block),
                    new.len(),
                    text(path)
                )));
            }
        }
        if new.len() < old {
            if !self.is_open(file) {
                return Err(Mismatch(format!(
                    "Trying to remove a block from file {} which is not under construction.",
                    text(path)
                )));
            }
            if new.len() + 1 != old {
                return Err(Mismatch(format!("Trying to remove more than one block from file {}", text(path))));
            }
        }
        self.check_new_blocks(self.is_striped(file), new.get(old..).unwrap_or_default(), path)
    }

    fn is_striped(&self, file: InodeHandle) -> bool {
        self.tree.file_shape(&self.store, file).is_some_and(|shape| shape.stripe.is_some())
    }

    fn check_new_blocks(&self, striped: bool, new: &[Block], path: &[u8]) -> Result<(), Mismatch> {
        for (i, block) in new.iter().enumerate() {
            if self.sequences.is_striped(block) != striped {
                let kind = if striped { "no striped group" } else { "a striped group" };
                return Err(Mismatch(format!("Block {} of {} is {kind}", block.id, text(path))));
            }
            if self.store.find_block(block.id).is_some() || new[..i].iter().any(|b| b.id == block.id) {
                return Err(Mismatch(format!("Block {} of {} is there already", block.id, text(path))));
            }
        }
        Ok(())
    }

    pub(super) fn plan_add_block(
        &self,
        path: &[u8],
        penultimate: Option<&Block>,
        last: &Block,
        paths: &mut Paths<'_>,
    ) -> Planned {
        let file = self.file(path, paths)?;
        let old = self.store.last_block(file).map(|b| self.store.block_core(b));
        match (old, penultimate) {
            (None, None) => {}
            (Some(old), Some(block)) if old.id == block.id && old.stamp == block.stamp => {}
            (old, block) => {
                let show =
                    |b: Option<&Block>| b.map_or_else(|| "none".to_owned(), |b| format!("blk_{}_{}", b.id, b.stamp));
                return Err(Mismatch::new(format!(
                    "Mismatched block IDs or generation stamps for the old last block of file {}, the old last block is {}, and the block read from editlog is {}",
                    text(path),
                    show(old.as_ref()),
                    show(block)
                ))
                .into());
            }
        }
        self.check_new_blocks(self.is_striped(file), std::slice::from_ref(last), path)?;
        Ok(Plan::Inode(file))
    }

    pub(super) fn plan_append(&self, path: &[u8], paths: &mut Paths<'_>) -> Planned {
        let file = self.file(path, paths)?;
        if self.is_open(file) {
            return Err(Unfit::NoOp(Rule::AppendOpen));
        }
        Ok(Plan::Inode(file))
    }

    pub(super) fn plan_truncate(
        &self,
        path: &[u8],
        new_length: u64,
        block: Option<&Block>,
        paths: &mut Paths<'_>,
    ) -> Planned {
        let file = self.file(path, paths)?;
        let mut end = 0u64;
        let mut cut = None;
        for b in self.store.blocks_of(file) {
            let length = self.store.block_core(b).length;
            if end < new_length && new_length < end + length {
                cut = Some(self.store.block_core(b));
            }
            end += length;
        }
        let refuse =
            |why: &str| Err(Mismatch::new(format!("{why}: truncate of {} to {new_length}", text(path))).into());
        if new_length > end {
            return refuse("The length is beyond the end");
        }
        match (cut, block) {
            (Some(_), None) => refuse("The length is within a block and the record has none"),
            (None, Some(_)) => refuse("The length is at a block's end and the record has a block"),
            (Some(old), Some(block)) if old.id != block.id && self.store.find_block(block.id).is_some() => {
                refuse("The block is there already")
            }
            _ => Ok(Plan::Inode(file)),
        }
    }

    pub(super) fn plan_concat(&self, target: &[u8], sources: &[Cow<'_, [u8]>], paths: &mut Paths<'_>) -> Planned {
        let to = self.file(target, paths)?;
        let mut from = smallvec::SmallVec::new();
        for source in sources {
            let file = self.file(source, paths)?;
            if file == to || from.contains(&file) {
                return Err(Mismatch::new(format!("Concat of {} names {} twice", text(target), text(source))).into());
            }
            // its record goes for good, and with it what the past would show
            let named = self.tree.snapshots.references(file).is_some_and(|references| !references.names.is_empty());
            if named || self.tree.is_kept_by_snapshot(&self.store, file) {
                return Err(Mismatch::new(format!("Concat: the source file {} is in snapshot", text(source))).into());
            }
            let policy = |file| self.tree.file_shape(&self.store, file).map(|shape| shape.erasure_coding_policy);
            if policy(file) != policy(to) {
                let text = format!("Concat of {} and {} with another policy", text(target), text(source));
                return Err(Mismatch(text).into());
            }
            from.push(file);
        }
        Ok(Plan::Concat { target: to, sources: from })
    }

    pub(super) fn plan_reassign(&self, path: &[u8], paths: &mut Paths<'_>) -> Planned {
        let file = self.file(path, paths)?;
        if !self.is_open(file) {
            return Err(Mismatch::new(format!("File is not under construction: {}", text(path))).into());
        }
        Ok(Plan::Inode(file))
    }
}
