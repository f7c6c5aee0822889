//! Cache pools and directives.

use super::super::convert::caches as convert;
use super::super::{Answer, EMPTY, Writing, audit, decode, message};
use super::Request;
use hadoop_proto::hdfs::{
    AddCacheDirectiveRequestProto, AddCacheDirectiveResponseProto, AddCachePoolRequestProto,
    ListCacheDirectivesRequestProto, ListCacheDirectivesResponseProto, ListCachePoolsRequestProto,
    ListCachePoolsResponseProto, ModifyCacheDirectiveRequestProto, ModifyCachePoolRequestProto,
    RemoveCacheDirectiveRequestProto, RemoveCachePoolRequestProto,
};
use observe::RemoteException;
use ops::read::caches::{Needed, list_cache_directives, list_cache_pools};
use ops::write::caches as write;

/// Files that are measured under one hold of the lock.
const MEASURED: usize = 500;
/// The flag that lets a pool's limit be exceeded.
const FORCE: u32 = 1;

pub(super) async fn pools(request: &Request<'_>) -> Answer {
    let asked: ListCachePoolsRequestProto = decode(request.body.clone())?;
    request.shared.engine.cache_scan().await;
    let (page, has_more) = request.read(|v| Ok(list_cache_pools(v, &asked.prev_pool_name)))?;
    message(&ListCachePoolsResponseProto { entries: page.iter().map(convert::pool_entry).collect(), has_more })
}

pub(super) async fn directives(request: &Request<'_>) -> Answer {
    let asked: ListCacheDirectivesRequestProto = decode(request.body.clone())?;
    let filter = convert::filter(&asked.filter)?;
    request.shared.engine.cache_scan().await;
    let (page, has_more) = request.read(|v| list_cache_directives(v, asked.prev_id, &filter))?;
    let elements = page.iter().map(convert::directive_entry).collect();
    message(&ListCacheDirectivesResponseProto { elements, has_more })
}

/// Measures what there is to cache at a path, and waits until what else is to be cached is known: a pool's limit is asked next.
async fn measured(request: &Request<'_>, path: Option<&[u8]>, force: bool) -> Result<u64, RemoteException> {
    if !force {
        request.shared.engine.cache_scan().await;
    }
    let mut needed = Needed::default();
    let Some(path) = path else { return Ok(0) };
    while request.read(|v| Ok(needed.step(v, path, MEASURED)))? {
        tokio::task::yield_now().await;
    }
    Ok(needed.bytes)
}

pub(super) async fn add_directive(request: &Request<'_>) -> Answer {
    let wire: AddCacheDirectiveRequestProto = decode(request.body.clone())?;
    let (asked, force) = (convert::directive_asked(&wire.info)?, wire.cache_flags() & FORCE != 0);
    let length = measured(request, asked.path.as_deref(), force).await?;
    let operation = write::AddCacheDirective { asked, force, length };
    let decided = request.write(operation, |(id, made)| {
        if let Some(made) = made {
            request.tell(|| convert::made_directive_text(id, &made));
        }
        message(&AddCacheDirectiveResponseProto { id })
    })?;
    request.shared.engine.fence(decided).await
}

pub(super) async fn modify_directive(request: &Request<'_>) -> Answer {
    let wire: ModifyCacheDirectiveRequestProto = decode(request.body.clone())?;
    let (asked, force) = (convert::directive_asked(&wire.info)?, wire.cache_flags() & FORCE != 0);
    let known = asked.id.filter(|_| asked.path.is_none());
    let known = request.read(|v| Ok(known.and_then(|id| Needed::path_of(v, id))))?;
    let length = measured(request, asked.path.as_deref().or(known.as_deref()), force).await?;
    let decided =
        request.write(write::ModifyCacheDirective { asked, force, length, date: convert::date }, |()| Ok(EMPTY))?;
    request.shared.engine.fence(decided).await
}

pub(super) fn remove_directive(request: &Request<'_>) -> Writing {
    let wire: RemoveCacheDirectiveRequestProto = decode(request.body.clone())?;
    request.write(write::RemoveCacheDirective { id: wire.id }, |()| Ok(EMPTY))
}

pub(super) fn add_pool(request: &Request<'_>) -> Writing {
    let wire: AddCachePoolRequestProto = decode(request.body.clone())?;
    request.write(write::AddCachePool { asked: convert::pool_asked(&wire.info)? }, |made| {
        if let Some(made) = made {
            request.tell(|| convert::pool_text(&made));
        }
        Ok(EMPTY)
    })
}

pub(super) fn modify_pool(request: &Request<'_>) -> Writing {
    let wire: ModifyCachePoolRequestProto = decode(request.body.clone())?;
    request.write(write::ModifyCachePool { asked: convert::pool_asked(&wire.info)? }, |()| Ok(EMPTY))
}

pub(super) fn remove_pool(request: &Request<'_>) -> Writing {
    let wire: RemoveCachePoolRequestProto = decode(request.body.clone())?;
    request.write(write::RemoveCachePool { name: wire.pool_name.into() }, |()| Ok(EMPTY))
}

impl Request<'_> {
    /// Names what was made, for the audit line.
    fn tell(&self, text: impl FnOnce() -> String) {
        if self.shared.audit.is_on() {
            *self.seen.lock() = audit::Seen::Made(text().into());
        }
    }
}
