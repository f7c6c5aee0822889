//! Cache pools and directives added, changed and removed (`CacheManager`, `FSNDNCacheOp`).

use crate::{Operation, Turn, View, Write};
use edit::Record;
use edit::record;
use state::RetryPayload;
use state::caches::{CacheDirective, CachePool, LONGEST_LIFE_MS, NO_LIMIT};
use std::sync::Arc;
use vocab::path::is_valid_name;
use vocab::time::TimeMs;
use vocab::{Action, Mode, Refusal};

/// Mode of a pool that is asked for without one.
const POOL_MODE: Mode = Mode::new(0o755);

fn invalid(text: impl Into<Arc<str>>) -> Refusal {
    Refusal::InvalidRequest(text.into())
}

/// When a directive is to end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expiry {
    /// Milliseconds, from now on or since 1970.
    pub millis: i64,
    /// Whether they count from now on.
    pub relative: bool,
    /// The same in words, for refusals.
    pub text: Arc<str>,
}

impl Expiry {
    fn absolute(&self, now: TimeMs) -> i64 {
        if self.relative { now.0.wrapping_add(self.millis) } else { self.millis }
    }
}

/// What is asked of a directive; what is absent is as the pool or the directive has it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DirectiveAsked {
    /// Number.
    pub id: Option<i64>,
    /// Path, as Java's `Path` has it.
    pub path: Option<Vec<u8>>,
    /// Replicas to be cached.
    pub replication: Option<i16>,
    /// Pool.
    pub pool: Option<Arc<str>>,
    /// End.
    pub expiry: Option<Expiry>,
}

/// That a path may be cached, whether or not it is there.
///
/// # Errors
/// `InvalidRequest`.
pub fn check_directive_path(path: Option<&[u8]>) -> Result<&[u8], Refusal> {
    let path = path.ok_or_else(|| invalid("No path specified."))?;
    if is_valid_name(path) {
        return Ok(path);
    }
    Err(invalid(format!("Invalid path '{}'.", String::from_utf8_lossy(path))))
}

fn check_replication(replication: i16) -> Result<i16, Refusal> {
    if replication > 0 {
        Ok(replication)
    } else {
        Err(invalid(format!("Invalid replication factor {replication} <= 0")))
    }
}

/// When a directive ends that is asked to end then, in a pool that allows so long a life.
fn check_expiry(expiry: Option<&Expiry>, longest_life_ms: i64, now: TimeMs) -> Result<i64, Refusal> {
    let Some(expiry) = expiry else { return Ok(now.0.wrapping_add(longest_life_ms)) };
    if expiry.millis < 0 {
        return Err(invalid(format!("Cannot set a negative expiration: {}", expiry.millis)));
    }
    let ends = expiry.absolute(now);
    let life = if expiry.relative { expiry.millis } else { ends.wrapping_sub(now.0) };
    if life > LONGEST_LIFE_MS {
        return Err(invalid(format!("Expiration {} is too far in the future!", expiry.text)));
    }
    if life > longest_life_ms {
        return Err(invalid(format!(
            "Expiration {} exceeds the max relative expiration time of {longest_life_ms} ms.",
            expiry.text
        )));
    }
    Ok(ends)
}

impl<'a> View<'a> {
    /// That the caller may do this with what is in a pool.
    ///
    /// # Errors
    /// `AccessControl`.
    pub fn check_cache_pool(&self, name: &str, pool: &CachePool, action: Action) -> Result<(), Refusal> {
        let user = &self.caller.user;
        let (owns, member) = (*user == pool.owner, self.caller.groups.contains(&pool.group));
        let allowed = !self.settings.permissions
            || self.is_superuser()
            || owns && pool.mode.user().implies(action)
            || member && pool.mode.group().implies(action)
            || !owns && !member && pool.mode.other().implies(action);
        if allowed {
            return Ok(());
        }
        let text = format!(
            "Permission denied while accessing pool {name}: user {user} does not have {} permissions.",
            action.name()
        );
        Err(Refusal::AccessControl(text.into()))
    }

    fn cache_pool(&self, name: &str) -> Result<&'a CachePool, Refusal> {
        self.state.caches.pool(name).ok_or_else(|| invalid(format!("Unknown pool {name}")))
    }

    fn cache_directive(&self, id: i64) -> Result<&'a CacheDirective, Refusal> {
        if id <= 0 {
            return Err(invalid("Invalid negative ID."));
        }
        self.state.caches.directive(id).ok_or_else(|| invalid(format!("No directive with ID {id} found.")))
    }

    /// That a pool has room for a path of so many bytes.
    fn check_pool_limit(&self, name: &str, pool: &CachePool, path: &[u8], of: (u64, i16)) -> Result<(), Refusal> {
        let ((length, replication), used) = (of, self.state.caches.pool_use(name).bytes_needed);
        if pool.limit == NO_LIMIT || used.saturating_add(needed(length, replication)) <= pool.limit {
            return Ok(());
        }
        Err(invalid(format!(
            "Caching path {} of size {length} bytes at replication {replication} would exceed pool {name}'s remaining capacity of {} bytes.",
            String::from_utf8_lossy(path),
            pool.limit.wrapping_sub(used)
        )))
    }
}

fn needed(length: u64, replication: i16) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX).saturating_mul(replication.into())
}

fn pool_name(name: Option<&Arc<str>>) -> Result<&Arc<str>, Refusal> {
    match name {
        None => Err(invalid("No pool specified.")),
        Some(name) if name.is_empty() => Err(invalid("Invalid empty pool name.")),
        Some(name) => Ok(name),
    }
}

/// Adds a directive. Answers with its number, and what it is unless the call was a repetition.
#[derive(Clone, Debug)]
pub struct AddCacheDirective {
    /// What is asked.
    pub asked: DirectiveAsked,
    /// Whether the pool's limit does not count.
    pub force: bool,
    /// Bytes of the file at the path, or of the files in the directory there.
    pub length: u64,
}

impl Write for AddCacheDirective {
    type Prepared = ();
    type Reply = (i64, Option<CacheDirective>);
    const OPERATION: Operation = Operation::AddCacheDirective;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Self::Reply, Refusal> {
        if let Some(entry) = turn.cached() {
            let RetryPayload::Id(id) = entry.payload else { return Ok((0, None)) };
            return Ok((id, None));
        }
        let (view, asked) = (turn.view(), &self.asked);
        view.check_safe_mode(|| "Cannot add cache directive".to_owned())?;
        if asked.id.is_some() {
            return Err(Refusal::io("addDirective: you cannot specify an ID for this operation."));
        }
        let name = pool_name(asked.pool.as_ref())?;
        let pool = view.cache_pool(name)?;
        view.check_cache_pool(name, pool, Action::WRITE)?;
        let path = check_directive_path(asked.path.as_deref())?;
        let replication = check_replication(asked.replication.unwrap_or(pool.default_replication))?;
        let expiry = check_expiry(asked.expiry.as_ref(), pool.longest_life_ms, view.now.wall)?;
        if !self.force {
            view.check_pool_limit(name, pool, path, (self.length, replication))?;
        }
        let id = view.state.caches.next_directive;
        if id >= i64::MAX - 1 {
            return Err(Refusal::io("No more available IDs."));
        }
        let rpc = view.caller.rpc_ids;
        let made = CacheDirective { path: path.into(), replication, pool: name.clone(), expiry: TimeMs(expiry) };
        let directive = record::CacheDirective {
            id,
            path: Some(path.into()),
            replication: Some(replication),
            pool: Some((**name).into()),
            expiration: Some(TimeMs(expiry)),
        };
        turn.log(Record::AddCacheDirective { directive, rpc });
        turn.soft().caches.set_needed(id, needed(self.length, replication));
        Ok((id, Some(made)))
    }
}

/// Changes a directive.
#[derive(Clone, Debug)]
pub struct ModifyCacheDirective {
    /// What is asked.
    pub asked: DirectiveAsked,
    /// Whether the limit of the pool that it goes to does not count.
    pub force: bool,
    /// Bytes of the file at the path, or of the files in the directory there.
    pub length: u64,
    /// How refusals write a time in milliseconds since 1970.
    pub date: fn(i64) -> String,
}

impl Write for ModifyCacheDirective {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::ModifyCacheDirective;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, asked) = (turn.view(), &self.asked);
        view.check_safe_mode(|| "Cannot add cache directive".to_owned())?;
        let id = asked.id.ok_or_else(|| invalid("Must supply an ID."))?;
        let known = view.cache_directive(id)?;
        let source = view.cache_pool(&known.pool)?;
        view.check_cache_pool(&known.pool, source, Action::WRITE)?;
        let path = check_directive_path(asked.path.as_deref().or(Some(&known.path)))?;
        let replication = check_replication(asked.replication.unwrap_or(known.replication))?;
        let name = pool_name(asked.pool.as_ref().or(Some(&known.pool)))?;
        let pool = view.cache_pool(name)?;
        if *name != known.pool {
            view.check_cache_pool(name, pool, Action::WRITE)?;
            if !self.force {
                view.check_pool_limit(name, pool, path, (self.length, replication))?;
            }
        }
        let kept = Expiry { millis: known.expiry.0, relative: false, text: (self.date)(known.expiry.0).into() };
        check_expiry(asked.expiry.as_ref().or(Some(&kept)), pool.longest_life_ms, view.now.wall)?;
        let expiration = asked.expiry.as_ref().map(|expiry| TimeMs(expiry.absolute(view.now.wall)));
        let rpc = view.caller.rpc_ids;
        let directive = record::CacheDirective {
            id,
            path: asked.path.as_deref().map(Into::into),
            replication: asked.replication,
            pool: asked.pool.as_deref().map(Into::into),
            expiration,
        };
        turn.log(Record::ModifyCacheDirective { directive, rpc });
        turn.soft().caches.set_needed(id, needed(self.length, replication));
        Ok(())
    }
}

/// Removes a directive.
#[derive(Clone, Debug)]
pub struct RemoveCacheDirective {
    /// Its number.
    pub id: i64,
}

impl Write for RemoveCacheDirective {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RemoveCacheDirective;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| "Cannot remove cache directives".to_owned())?;
        let directive = view.cache_directive(self.id)?;
        view.check_cache_pool(&directive.pool, view.cache_pool(&directive.pool)?, Action::WRITE)?;
        let rpc = view.caller.rpc_ids;
        turn.log(Record::RemoveCacheDirective { id: self.id, rpc });
        Ok(())
    }
}

/// What is asked of a pool; what is absent is by default, or as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PoolAsked {
    /// Name.
    pub name: Arc<str>,
    /// Owner.
    pub owner: Option<Arc<str>>,
    /// Group.
    pub group: Option<Arc<str>>,
    /// Mode.
    pub mode: Option<Mode>,
    /// Bytes.
    pub limit: Option<i64>,
    /// Replication of directives that name none.
    pub default_replication: Option<i16>,
    /// Longest life of a directive, in milliseconds.
    pub longest_life_ms: Option<i64>,
}

fn check_pool_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty() { Err(Refusal::io("invalid empty cache pool name")) } else { Ok(()) }
}

impl PoolAsked {
    fn check(&self) -> Result<(), Refusal> {
        if self.limit.is_some_and(|limit| limit < 0) {
            return Err(invalid("Limit is negative."));
        }
        if self.default_replication.is_some_and(|replication| replication < 0) {
            return Err(invalid("Default Replication is negative"));
        }
        match self.longest_life_ms {
            Some(..0) => Err(invalid("Max relative expiry is negative.")),
            Some(life) if life > LONGEST_LIFE_MS => Err(invalid("Max relative expiry is too big.")),
            _ => check_pool_name(&self.name),
        }
    }

    fn record(&self) -> record::CachePool<'_> {
        record::CachePool {
            name: (*self.name).into(),
            owner: self.owner.as_deref().map(Into::into),
            group: self.group.as_deref().map(Into::into),
            mode: self.mode,
            limit: self.limit,
            max_relative_expiry: self.longest_life_ms,
            default_replication: self.default_replication,
        }
    }
}

/// Adds a pool. Answers with what it is, unless the call was a repetition.
#[derive(Clone, Debug)]
pub struct AddCachePool {
    /// What is asked.
    pub asked: PoolAsked,
}

impl Write for AddCachePool {
    type Prepared = ();
    type Reply = Option<PoolAsked>;
    const OPERATION: Operation = Operation::AddCachePool;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Self::Reply, Refusal> {
        if turn.cached().is_some() {
            return Ok(None);
        }
        let (view, asked) = (turn.view(), &self.asked);
        view.check_safe_mode(|| format!("Cannot add cache pool{}", asked.name))?;
        asked.check()?;
        if view.state.caches.pool(&asked.name).is_some() {
            return Err(invalid(format!("Cache pool {} already exists.", asked.name)));
        }
        let caller = view.caller;
        let group = match asked.group.as_ref().or(caller.groups.first()) {
            Some(group) => group.clone(),
            None => {
                let method = format!("{:?}", caller.method).to_uppercase();
                let text = format!("There is no primary group for UGI {} (auth:{method})", caller.user);
                return Err(Refusal::Io(text.into()));
            }
        };
        let made = PoolAsked {
            name: asked.name.clone(),
            owner: Some(asked.owner.clone().unwrap_or_else(|| caller.user.clone())),
            group: Some(group),
            mode: Some(asked.mode.unwrap_or(POOL_MODE)),
            limit: Some(asked.limit.unwrap_or(NO_LIMIT)),
            default_replication: Some(asked.default_replication.unwrap_or(1)),
            longest_life_ms: Some(asked.longest_life_ms.unwrap_or(LONGEST_LIFE_MS)),
        };
        let rpc = caller.rpc_ids;
        turn.log(Record::AddCachePool { pool: made.record(), rpc });
        Ok(Some(made))
    }
}

/// Changes a pool.
#[derive(Clone, Debug)]
pub struct ModifyCachePool {
    /// What is asked.
    pub asked: PoolAsked,
}

impl Write for ModifyCachePool {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::ModifyCachePool;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, asked) = (turn.view(), &self.asked);
        view.check_safe_mode(|| format!("Cannot modify cache pool{}", asked.name))?;
        asked.check()?;
        if view.state.caches.pool(&asked.name).is_none() {
            return Err(invalid(format!("Cache pool {} does not exist.", asked.name)));
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::ModifyCachePool { pool: asked.record(), rpc });
        Ok(())
    }
}

/// Removes a pool with its directives.
#[derive(Clone, Debug)]
pub struct RemoveCachePool {
    /// Name.
    pub name: Arc<str>,
}

impl Write for RemoveCachePool {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RemoveCachePool;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, name) = (turn.view(), &self.name);
        view.check_safe_mode(|| format!("Cannot modify cache pool{name}"))?;
        check_pool_name(name)?;
        if view.state.caches.pool(name).is_none() {
            return Err(invalid(format!("Cannot remove non-existent cache pool {name}")));
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::RemoveCachePool { name: name.to_string().into(), rpc });
        Ok(())
    }
}
