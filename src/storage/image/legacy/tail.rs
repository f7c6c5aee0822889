//! What follows the inodes: delegation tokens and cache pools.

use super::cursor::Cursor;
use crate::image::summary::ImageError;
use state::preserved::Preserved;
use state::tokens::{MasterKey, Token, Tokens};
use std::sync::Arc;
use vocab::TimeMs;

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

pub(super) fn cache(cursor: &mut Cursor<'_>, preserved: &mut Preserved) -> Result<(), ImageError> {
    let next = cursor.i64()?;
    // the first number is 1, which a new file system has as 0
    preserved.next_cache_directive = if next == 1 { 0 } else { next as u64 };
    if cursor.i32()? > 0 || cursor.i32()? > 0 {
        return Err(ImageError::Unsupported("cache pools in an old layout".into()));
    }
    Ok(())
}
