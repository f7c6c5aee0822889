//! The section CACHE_MANAGER: cache pools and directives.

use super::cut::Records;
use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Sink, Value, WireError};
use state::caches::{CacheDirective, CachePool, Caches, FIRST_DIRECTIVE, LONGEST_LIFE_MS, NO_LIMIT};
use std::sync::Arc;
use vocab::{Mode, TimeMs};

/// Name of the section in errors.
const SECTION: &str = "CACHE_MANAGER";

/// Reads the section.
pub(super) fn load(reader: &mut Records<'_>, caches: &mut Caches) -> Result<(), ImageError> {
    let (mut next, mut pools, mut directives) = (None, None, None);
    for field in Cursor::new(reader.message()?).fields() {
        match field.map_err(|e| reader.wire(e))? {
            // a name node without any writes 1, as one that never had some
            (1, Value::Varint(v)) => next = Some((v as i64).max(FIRST_DIRECTIVE)),
            (2, Value::Varint(v)) => pools = Some(v),
            (3, Value::Varint(v)) => directives = Some(v),
            _ => {}
        }
    }
    let (Some(next), Some(pools), Some(directives)) = (next, pools, directives) else {
        return Err(content("the first message lacks a number".to_owned()));
    };
    for _ in 0..pools {
        let (name, pool) = pool(reader.message()?).map_err(|e| reader.wire(e))?;
        add_pool(caches, name, pool)?;
    }
    for _ in 0..directives {
        let (id, directive) = directive(reader.message()?).map_err(|e| reader.wire(e))?;
        add_directive(caches, id, directive)?;
    }
    caches.next_directive = next;
    Ok(())
}

/// A pool of which nothing is said.
pub(in crate::image) fn unsaid() -> CachePool {
    CachePool {
        owner: "".into(),
        group: "".into(),
        mode: Mode::new(0o755),
        limit: NO_LIMIT,
        default_replication: 1,
        longest_life_ms: LONGEST_LIFE_MS,
    }
}

/// Adds a pool that is not there yet.
pub(in crate::image) fn add_pool(caches: &mut Caches, name: Arc<str>, pool: CachePool) -> Result<(), ImageError> {
    if name.is_empty() || caches.pool(&name).is_some() {
        return Err(content(format!("Cache pool {name} already exists.")));
    }
    caches.put_pool(name, pool);
    Ok(())
}

/// Adds a directive that is not there yet, of a pool that is.
pub(in crate::image) fn add_directive(
    caches: &mut Caches,
    id: i64,
    directive: CacheDirective,
) -> Result<(), ImageError> {
    if caches.pool(&directive.pool).is_none() {
        return Err(content(format!("Directive refers to pool {}, which does not exist.", directive.pool)));
    }
    if id < FIRST_DIRECTIVE || caches.directive(id).is_some() {
        return Err(content(format!("A directive with ID {id} already exists")));
    }
    caches.put_directive(id, directive);
    Ok(())
}

fn content(what: String) -> ImageError {
    ImageError::Content { section: SECTION, what }
}

fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

fn pool(message: &[u8]) -> Result<(Arc<str>, CachePool), WireError> {
    let (mut name, mut pool) = ("".into(), unsaid());
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Bytes(b)) => name = text(b),
            (2, Value::Bytes(b)) => pool.owner = text(b),
            (3, Value::Bytes(b)) => pool.group = text(b),
            (4, Value::Varint(v)) => pool.mode = Mode::new(v as u16),
            (5, Value::Varint(v)) => pool.limit = v as i64,
            (6, Value::Varint(v)) => pool.longest_life_ms = v as i64,
            (7, Value::Varint(v)) => pool.default_replication = v as i16,
            _ => {}
        }
    }
    Ok((name, pool))
}

fn directive(message: &[u8]) -> Result<(i64, CacheDirective), WireError> {
    let mut id = 0;
    let mut directive = CacheDirective { path: [].into(), replication: 0, pool: "".into(), expiry: TimeMs(0) };
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Varint(v)) => id = v as i64,
            (2, Value::Bytes(b)) => directive.path = b.into(),
            (3, Value::Varint(v)) => directive.replication = v as i16,
            (4, Value::Bytes(b)) => directive.pool = text(b),
            (5, Value::Bytes(b)) => {
                for field in Cursor::new(b).fields() {
                    if let (1, Value::Varint(v)) = field? {
                        directive.expiry = TimeMs(v as i64);
                    }
                }
            }
            _ => {}
        }
    }
    Ok((id, directive))
}

/// Gives the messages of the section in order.
pub(super) fn save<E>(caches: &Caches, mut give: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    let mut m = Vec::new();
    m.put_varint_field(1, caches.next_directive as u64);
    m.put_varint_field(2, caches.pool_count() as u64);
    m.put_varint_field(3, caches.directive_count() as u64);
    give(&m)?;
    for (name, pool, _) in caches.pools_after("") {
        m.clear();
        m.put_bytes_field(1, name.as_bytes());
        m.put_bytes_field(2, pool.owner.as_bytes());
        m.put_bytes_field(3, pool.group.as_bytes());
        m.put_varint_field(4, pool.mode.bits().into());
        m.put_varint_field(5, pool.limit as u64);
        m.put_varint_field(6, pool.longest_life_ms as u64);
        // Quirk: an_image_keeps_the_default_replication_of_a_pool: Java reads it from an image but writes it into none, and forgets it
        if pool.default_replication != 1 {
            m.put_varint_field(7, pool.default_replication as u64);
        }
        give(&m)?;
    }
    for (id, directive, _) in caches.directives_after(0) {
        let mut expiry = Vec::new();
        expiry.put_varint_field(1, directive.expiry.0 as u64);
        expiry.put_varint_field(2, 0);
        m.clear();
        m.put_varint_field(1, id as u64);
        m.put_bytes_field(2, &directive.path);
        m.put_varint_field(3, directive.replication as u64);
        m.put_bytes_field(4, directive.pool.as_bytes());
        m.put_bytes_field(5, &expiry);
        give(&m)?;
    }
    Ok(())
}
