//! What follows the inodes: delegation tokens and cache pools.

use super::cursor::Cursor;
use crate::image::caches::{add_directive, add_pool, unsaid};
use crate::image::summary::ImageError;
use state::caches::{CacheDirective, Caches, FIRST_DIRECTIVE};
use state::tokens::{MasterKey, Token, Tokens};
use std::sync::Arc;
use vocab::{Mode, TimeMs};

pub(super) fn secrets(cursor: &mut Cursor<'_>, tokens: &mut Tokens) -> Result<(), ImageError> {
    tokens.current_key = cursor.i32()?;
    for _ in 0..cursor.count(3)? {
        let (id, expiry, length) = (cursor.vint()?, TimeMs(cursor.vlong()?), cursor.vint()?);
        let secret = match usize::try_from(length) {
            Ok(length) => Some(cursor.take(length)?.into()),
            Err(_) => None,
        };
        tokens.keys.insert(id, MasterKey { expiry, secret });
    }
    tokens.sequence = cursor.i32()?;
    for _ in 0..cursor.count(16)? {
        let token = token(cursor)?;
        tokens.tokens.insert(token.sequence_number, token);
    }
    Ok(())
}

fn token(cursor: &mut Cursor<'_>) -> Result<Token, ImageError> {
    let version = cursor.take(1)?[0];
    if version != 0 {
        return Err(cursor.content(&format!("has a token of version {version}")));
    }
    let text = |bytes: &[u8]| -> Arc<str> { String::from_utf8_lossy(bytes).into() };
    Ok(Token {
        owner: text(cursor.text()?),
        renewer: text(cursor.text()?),
        real_user: text(cursor.text()?),
        issue_date: TimeMs(cursor.vlong()?),
        max_date: TimeMs(cursor.vlong()?),
        sequence_number: cursor.vint()?,
        master_key_id: cursor.vint()?,
        expiry: TimeMs(cursor.i64()?),
    })
}

/// Fields that are there or not, by the bits of a word before them, as in the records of the log.
pub(super) fn caches(cursor: &mut Cursor<'_>, caches: &mut Caches) -> Result<(), ImageError> {
    let text = |bytes: &[u8]| -> Arc<str> { String::from_utf8_lossy(bytes).into() };
    let next = cursor.i64()?;
    for _ in 0..cursor.count(6)? {
        let (name, mut pool) = (text(cursor.bytes()?), unsaid());
        let flags = cursor.i32()?;
        let has = |bit: i32| flags >> bit & 1 != 0;
        if has(0) {
            pool.owner = text(cursor.bytes()?);
        }
        if has(1) {
            pool.group = text(cursor.bytes()?);
        }
        if has(2) {
            pool.mode = Mode::new(cursor.u16()?);
        }
        if has(3) {
            pool.limit = cursor.i64()?;
        }
        if has(4) {
            pool.longest_life_ms = cursor.i64()?;
        }
        if has(5) {
            pool.default_replication = cursor.u16()?.cast_signed();
        }
        add_pool(caches, name, pool)?;
    }
    for _ in 0..cursor.count(12)? {
        let (id, flags) = (cursor.i64()?, cursor.i32()?);
        if flags != 0xf {
            return Err(cursor.content(&format!("has a cache directive {id} that is not whole")));
        }
        let (path, replication) = (cursor.bytes()?.into(), cursor.u16()?.cast_signed());
        let (pool, expiry) = (text(cursor.bytes()?), TimeMs(cursor.i64()?));
        add_directive(caches, id, CacheDirective { path, replication, pool, expiry })?;
    }
    caches.next_directive = next.max(FIRST_DIRECTIVE);
    Ok(())
}
