//! listCachePools and listCacheDirectives, and how much there is to cache at a path.

use crate::View;
use crate::write::caches::check_directive_path;
use record::{InodeHandle, KindTag};
use state::caches::{CacheDirective, CachePool, CacheUse};
use std::sync::Arc;
use vocab::{Action, Refusal};

/// What listed directives are to have in common.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DirectiveFilter {
    /// This one only.
    pub id: Option<i64>,
    /// Those of this path.
    pub path: Option<Vec<u8>>,
    /// Those of this pool.
    pub pool: Option<Arc<str>>,
    /// Asking by replication is refused.
    pub by_replication: bool,
}

/// A listed directive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedDirective {
    /// Number.
    pub id: i64,
    /// What it is.
    pub directive: CacheDirective,
    /// What it uses.
    pub used: CacheUse,
    /// Whether its time is over.
    pub expired: bool,
}

/// A listed pool. Who may not read it learns its name alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedPool {
    /// Name.
    pub name: Arc<str>,
    /// What it is, and what its directives use.
    pub seen: Option<(CachePool, CacheUse)>,
}

/// listCacheDirectives: a page of those after a number that fit and that the caller may read, and whether more may follow.
///
/// # Errors
/// `InvalidRequest` for a filter that may not be asked for, and for the number of no directive.
pub fn list_cache_directives(
    view: &View<'_>,
    after: i64,
    filter: &DirectiveFilter,
) -> Result<(Vec<ListedDirective>, bool), Refusal> {
    let refuse = |text: String| Err(Refusal::InvalidRequest(text.into()));
    let caches = &view.state.caches;
    let path = filter.path.as_deref().map(|path| check_directive_path(Some(path))).transpose()?;
    if filter.by_replication {
        return refuse("Filtering by replication is unsupported.".to_owned());
    }
    let after = match filter.id {
        Some(id) if caches.directive(id).is_none() => return refuse(format!("Did not find requested id {id}")),
        Some(id) => id - 1,
        // the number after the largest one is the smallest one in Java
        None if after == i64::MAX => i64::MIN,
        None => after,
    };
    let mut page = Vec::new();
    for (id, directive, used) in caches.directives_after(after) {
        if page.len() >= view.settings.cache_directives_listed {
            return Ok((page, true));
        }
        if filter.id.is_some_and(|wanted| wanted != id) {
            break;
        }
        let fits = filter.pool.as_ref().is_none_or(|pool| *pool == directive.pool)
            && path.is_none_or(|path| *path == *directive.path);
        let pool = caches.pool(&directive.pool).filter(|_| fits);
        if pool.is_some_and(|pool| view.check_cache_pool(&directive.pool, pool, Action::READ).is_ok()) {
            let expired = view.now.wall > directive.expiry;
            page.push(ListedDirective { id, directive: directive.clone(), used: *used, expired });
        }
    }
    Ok((page, false))
}

/// listCachePools: a page of those after a name, and whether more follow.
pub fn list_cache_pools(view: &View<'_>, after: &str) -> (Vec<ListedPool>, bool) {
    let limit = view.settings.cache_pools_listed;
    let mut pools = view.state.caches.pools_after(after);
    let listed = |(name, pool, used): (&Arc<str>, &CachePool, &CacheUse)| {
        let readable = view.check_cache_pool(name, pool, Action::READ).is_ok();
        ListedPool { name: name.clone(), seen: readable.then(|| (pool.clone(), *used)) }
    };
    let page = pools.by_ref().take(limit).map(listed).collect();
    (page, pools.next().is_some())
}

/// How many bytes a directive for a path would cache at replication 1: those of the file, or of the files in the directory. Counted in steps.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    /// Bytes so far.
    pub bytes: u64,
    /// The child that was counted last.
    after: Vec<u8>,
}

impl Needed {
    /// Counts up to `budget` files; whether there are more.
    pub fn step(&mut self, view: &View<'_>, path: &[u8], budget: usize) -> bool {
        let state = view.state;
        let Some(inode) = to_be_cached(view.state, path) else { return false };
        let length = |file: InodeHandle| state.tree.file_length(&state.store, file);
        if state.store.kind(inode) == KindTag::File {
            self.bytes = length(inode);
            return false;
        }
        let mut last = None;
        for child in state.tree.children_after(&state.store, inode, &self.after).0.take(budget) {
            if state.store.kind(child) == KindTag::File {
                self.bytes = self.bytes.saturating_add(length(child));
            }
            last = Some(child);
        }
        last.is_some_and(|child| {
            self.after = state.store.name(child).to_vec();
            true
        })
    }

    /// The path of a directive.
    pub fn path_of(view: &View<'_>, id: i64) -> Option<Arc<[u8]>> {
        view.state.caches.directive(id).map(|directive| directive.path.clone())
    }
}

/// The file or directory at the path of a directive, as it is now, even if the path leads through a snapshot.
pub(crate) fn to_be_cached(state: &state::State, path: &[u8]) -> Option<InodeHandle> {
    let resolved = state.tree.resolve(&state.store, path).ok()?;
    resolved.last().filter(|inode| matches!(state.store.kind(*inode), KindTag::File | KindTag::Directory))
}
