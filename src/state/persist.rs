//! The whole state written down for a checkpoint, and rebuilt from that. What comes back is what image and log would give: blocks are as the journal
//! knows them, and nothing soft is left but where replicas were, which nobody sees ([`record::Store::set_storage_floor`]).

use crate::State;
use crate::caches::{CacheDirective, CachePool, Caches};
use crate::sequences::Sequences;
use crate::tokens::{MasterKey, Token, Tokens};
use mem::page::{Page, Pages, ShadowPool};
use mem::persist::{Malformed, PageSets, Persist, RestReader, RestWriter};
use namespace::Tree;
use namespace::snapshot::{PastCopy, PastTables};
use record::{StorageNumber, Store};
use std::sync::Arc;
use vocab::{Block, BlockId, BlockState, GenerationStamp, InodeId, Mode, TimeMs};

impl State {
    /// All page sets, always the same in the same order.
    pub fn page_sets(&self) -> Vec<&Pages> {
        let mut sets = Vec::new();
        self.store.page_sets(&mut sets);
        self.tree.page_sets(&mut sets);
        sets
    }
    /// The same, to change them.
    pub fn page_sets_mut(&mut self) -> Vec<&mut Pages> {
        let mut sets = Vec::new();
        self.store.page_sets_mut(&mut sets);
        self.tree.page_sets_mut(&mut sets);
        sets
    }

    /// Begins a checkpoint: freezes all pages and gives what lies beside them. To be ended by [`State::thaw`].
    pub fn freeze(&mut self, pool: &Arc<ShadowPool>) -> Vec<u8> {
        self.freeze_after(pool, PastCopy::default())
    }
    /// The same where what is kept for snapshots was written down before, but for what has changed since.
    pub fn freeze_after(&mut self, pool: &Arc<ShadowPool>, past: PastCopy) -> Vec<u8> {
        self.page_sets_mut().into_iter().for_each(|pages| pages.freeze(pool));
        let mut rest = self.tree.end_past_copy(past);
        self.write_rest(&mut rest);
        rest.finish()
    }
    /// Ends a checkpoint, whatever came of it. Gives what was kept for it, so that freeing that takes no part of a hold.
    pub fn thaw(&mut self) -> Vec<Box<Page>> {
        self.page_sets_mut().into_iter().flat_map(Pages::thaw).collect()
    }

    fn write_rest(&self, rest: &mut RestWriter) {
        // the retry cache and the times of recoveries are soft; a new field has to be decided on here
        let State {
            store,
            tree,
            blocks,
            sequences,
            retry: _,
            tokens,
            caches,
            satisfier: _,
            uncommitted,
            rolling_upgrade_finalized: _,
            freed_at_once: _,
            recoveries: _,
        } = self;
        store.write_rest(rest);
        tree.write_rest(rest);
        write_sequences(sequences, rest);
        write_tokens(tokens, rest);
        write_caches(caches, rest);
        rest.length(uncommitted.len());
        uncommitted.values().for_each(|block| write_block(block, rest));
        let open: Vec<i64> = blocks.open_block_ids().map(|id| id.0).collect();
        rest.plain(&open);
        let truncates: Vec<(BlockId, Block)> = blocks.truncates().collect();
        rest.length(truncates.len());
        for (id, block) in &truncates {
            rest.i64(id.0);
            write_block(block, rest);
        }
        rest.u32(blocks.storage_ceiling().0);
        blocks.write_hints(rest);
    }

    /// Rebuilds a state from its pages and its rest. `fresh` gives what is soft: the block half with its settings.
    ///
    /// # Errors
    /// [`Malformed`]; the state is gone then.
    pub fn restore(fresh: State, mut pages: PageSets, rest: &[u8]) -> Result<State, Malformed> {
        let (rest, pages) = (&mut RestReader::new(rest), &mut pages);
        let past = PastTables::restore(rest)?;
        let store = Store::restore(pages, rest)?;
        let tree = Tree::restore(&store, pages, rest, past)?;
        let mut state = State { store, tree, ..fresh };
        state.sequences = read_sequences(rest)?;
        state.tokens = read_tokens(rest)?;
        state.caches = read_caches(rest)?;
        let mut not_settled = Vec::new();
        for _ in 0..rest.length(24)? {
            let block = read_block(rest)?;
            if let Some(b) = state.store.find_block(block.id) {
                state.store.edit_block(b, |info| info.block = block);
                not_settled.push(block.id);
            }
        }
        not_settled.extend(rest.plain::<i64>()?.into_iter().map(BlockId));
        let mut truncates = Vec::new();
        for _ in 0..rest.length(32)? {
            truncates.push((BlockId(rest.i64()?), read_block(rest)?));
        }
        let floor = StorageNumber(rest.u32()?);
        state.blocks.restore_hints(rest)?;
        rest.end()?;
        if pages.left() > 0 {
            return Err(Malformed("no more pages"));
        }
        state.settle_blocks(&not_settled);
        let State { blocks, store, .. } = &mut state;
        truncates.into_iter().for_each(|(id, truncate)| blocks.resume_truncate(store, id, truncate));
        state.store.set_storage_floor(floor);
        state.blocks.set_storage_floor(floor);
        Ok(state)
    }

    /// Gives blocks that were open the state that image and log would give them: complete, but for the last one of an open file.
    fn settle_blocks(&mut self, not_settled: &[BlockId]) {
        let leases = self.tree.leases.iter();
        let files: Vec<InodeId> = leases.flat_map(|lease| lease.files.iter().copied()).collect();
        let files = files.into_iter().filter_map(|id| self.store.find_inode(id));
        let mut blocks: Vec<_> = files.flat_map(|file| self.store.blocks_of(file)).collect();
        blocks.extend(not_settled.iter().filter_map(|id| self.store.find_block(*id)));
        for b in blocks {
            let info = self.store.block(b);
            let file = self.store.block_file(b);
            let is_open = file.is_some_and(|file| self.tree.construction(file).is_some());
            let last = file.and_then(|file| self.store.last_block(file)).map(|last| self.store.block(last).block.id);
            let state = match info.state {
                BlockState::Complete => continue,
                _ if is_open && last == Some(info.block.id) => BlockState::UnderConstruction,
                _ => BlockState::Complete,
            };
            self.store.edit_block(b, |info| info.state = state);
        }
    }
}

fn write_block(block: &Block, rest: &mut RestWriter) {
    let Block { id, length, stamp } = *block;
    rest.i64(id.0);
    rest.u64(length);
    rest.i64(stamp.0);
}
fn read_block(rest: &mut RestReader<'_>) -> Result<Block, Malformed> {
    Ok(Block { id: BlockId(rest.i64()?), length: rest.u64()?, stamp: GenerationStamp(rest.i64()?) })
}

fn write_sequences(sequences: &Sequences, rest: &mut RestWriter) {
    let Sequences { inode, block, block_group, stamp_v1, stamp, stamp_v1_limit, rolling_upgrade_start } = *sequences;
    for number in [inode.0, block.0, block_group.0, stamp_v1.0, stamp.0, stamp_v1_limit.0] {
        rest.i64(number);
    }
    rest.bool(rolling_upgrade_start.is_some());
    rest.i64(rolling_upgrade_start.unwrap_or_default().0);
}
fn read_sequences(rest: &mut RestReader<'_>) -> Result<Sequences, Malformed> {
    let mut sequences = Sequences {
        inode: InodeId(rest.i64()?),
        block: BlockId(rest.i64()?),
        block_group: BlockId(rest.i64()?),
        stamp_v1: GenerationStamp(rest.i64()?),
        stamp: GenerationStamp(rest.i64()?),
        stamp_v1_limit: GenerationStamp(rest.i64()?),
        rolling_upgrade_start: None,
    };
    let (upgrade, start) = (rest.bool()?, TimeMs(rest.i64()?));
    sequences.rolling_upgrade_start = upgrade.then_some(start);
    Ok(sequences)
}

fn write_tokens(tokens: &Tokens, rest: &mut RestWriter) {
    let Tokens { current_key, sequence, keys, tokens, issuing: _ } = tokens;
    rest.u32(current_key.cast_unsigned());
    rest.u32(sequence.cast_unsigned());
    rest.length(keys.len());
    for (id, MasterKey { expiry, secret }) in keys {
        rest.u32(id.cast_unsigned());
        rest.i64(expiry.0);
        rest.bool(secret.is_some());
        rest.bytes(secret.as_deref().unwrap_or_default());
    }
    rest.length(tokens.len());
    for (id, token) in tokens {
        let Token { owner, renewer, real_user, issue_date, max_date, .. } = token;
        let Token { sequence_number, master_key_id, expiry, .. } = token;
        rest.u32(id.cast_unsigned());
        [owner, renewer, real_user].into_iter().for_each(|name| rest.text(name));
        [issue_date, max_date, expiry].into_iter().for_each(|time| rest.i64(time.0));
        [sequence_number, master_key_id].into_iter().for_each(|number| rest.u32(number.cast_unsigned()));
    }
}
fn read_tokens(rest: &mut RestReader<'_>) -> Result<Tokens, Malformed> {
    let number = |rest: &mut RestReader<'_>| rest.u32().map(u32::cast_signed);
    let mut tokens = Tokens { current_key: number(rest)?, sequence: number(rest)?, ..Tokens::default() };
    for _ in 0..rest.length(21)? {
        let (id, expiry, has_secret) = (number(rest)?, TimeMs(rest.i64()?), rest.bool()?);
        let secret = rest.bytes()?;
        tokens.keys.insert(id, MasterKey { expiry, secret: has_secret.then(|| secret.into()) });
    }
    for _ in 0..rest.length(60)? {
        let id = number(rest)?;
        let (owner, renewer, real_user) = (rest.text()?.into(), rest.text()?.into(), rest.text()?.into());
        let (issue_date, max_date, expiry) = (TimeMs(rest.i64()?), TimeMs(rest.i64()?), TimeMs(rest.i64()?));
        let (sequence_number, master_key_id) = (number(rest)?, number(rest)?);
        let token = Token { owner, renewer, real_user, issue_date, max_date, sequence_number, master_key_id, expiry };
        tokens.tokens.insert(id, token);
    }
    Ok(tokens)
}

fn write_caches(caches: &Caches, rest: &mut RestWriter) {
    rest.i64(caches.next_directive);
    rest.length(caches.pool_count());
    for (name, pool, _) in caches.pools_after("") {
        let CachePool { owner, group, mode, limit, default_replication, longest_life_ms } = pool;
        [name, owner, group].into_iter().for_each(|name| rest.text(name));
        rest.u16(mode.bits());
        rest.i64(*limit);
        rest.u16(default_replication.cast_unsigned());
        rest.i64(*longest_life_ms);
    }
    rest.length(caches.directive_count());
    for (id, directive, _) in caches.directives_after(0) {
        let CacheDirective { path, replication, pool, expiry } = directive;
        rest.i64(id);
        rest.bytes(path);
        rest.u16(replication.cast_unsigned());
        rest.text(pool);
        rest.i64(expiry.0);
    }
}
fn read_caches(rest: &mut RestReader<'_>) -> Result<Caches, Malformed> {
    let mut caches = Caches::default();
    let next = rest.i64()?;
    for _ in 0..rest.length(32)? {
        let (name, owner, group) = (rest.text()?.into(), rest.text()?.into(), rest.text()?.into());
        let (mode, limit) = (Mode::new(rest.u16()?), rest.i64()?);
        let (default_replication, longest_life_ms) = (rest.u16()?.cast_signed(), rest.i64()?);
        let pool = CachePool { owner, group, mode, limit, default_replication, longest_life_ms };
        caches.put_pool(name, pool);
    }
    for _ in 0..rest.length(26)? {
        let (id, path, replication) = (rest.i64()?, rest.bytes()?.into(), rest.u16()?.cast_signed());
        let (pool, expiry) = (rest.text()?.into(), TimeMs(rest.i64()?));
        caches.put_directive(id, CacheDirective { path, replication, pool, expiry });
    }
    caches.next_directive = next;
    Ok(caches)
}
