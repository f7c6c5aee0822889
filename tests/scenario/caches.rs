//! Commands of centralized caching.

use super::Printed;
use super::line::Line;
use super::world::World;
use ops::read::caches::{
    DirectiveFilter, ListedDirective, ListedPool, Needed, list_cache_directives, list_cache_pools,
};
use ops::write::caches::{
    AddCacheDirective, AddCachePool, DirectiveAsked, Expiry, ModifyCacheDirective, ModifyCachePool, PoolAsked,
    RemoveCacheDirective, RemoveCachePool,
};
use vocab::Mode;

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    Some(match line.name.as_str() {
        "pool-add" => world.write(line, &AddCachePool { asked: pool(line) }).map(|_| String::new()),
        "pool-modify" => world.ask(line, &ModifyCachePool { asked: pool(line) }),
        "pool-remove" => world.ask(line, &RemoveCachePool { name: line.text(0).into() }),
        "pools" => Ok(world.view(line, |view| {
            let (page, more) = list_cache_pools(view, line.option("after").unwrap_or_default());
            page.iter().map(pool_line).chain(more.then(|| "more\n".to_owned())).collect()
        })),
        "cache" => {
            let (asked, force) = (directive(line, Some(line.path(0))), line.has("force"));
            let length = needed(world, line, Some(&line.path(0)));
            world.write(line, &AddCacheDirective { asked, force, length }).map(|(id, _)| id.to_string())
        }
        "cache-modify" => {
            let path = line.option("path").map(|path| path.as_bytes().to_vec());
            let id = line.number(0);
            let known = world.view(line, |view| Needed::path_of(view, id));
            let length = needed(world, line, path.as_deref().or(known.as_deref()));
            let asked = DirectiveAsked { id: Some(id), ..directive(line, path) };
            world.ask(
                line,
                &ModifyCacheDirective { asked, force: line.has("force"), length, date: |_| "as it is".to_owned() },
            )
        }
        "uncache" => world.ask(line, &RemoveCacheDirective { id: line.number(0) }),
        "directives" => world.view(line, |view| {
            let filter = DirectiveFilter {
                id: line.option_number("id"),
                path: line.option("path").map(|path| path.as_bytes().to_vec()),
                pool: line.option("pool").map(Into::into),
                by_replication: line.option("replication").is_some(),
            };
            list_cache_directives(view, line.option_number("after").unwrap_or(0), &filter)
                .map(|(page, more)| page.iter().map(directive_line).chain(more.then(|| "more\n".to_owned())).collect())
        }),
        "cache-scan" => {
            let mut scan = std::mem::take(&mut world.caching);
            scan.begin();
            // in the smallest steps, so that each is seen to go on where the last one ended
            while world.soft(|state, now| scan.step(state, now, 1)) {}
            world.caching = scan;
            Ok(String::new())
        }
        _ => return None,
    })
}

fn pool(line: &Line) -> PoolAsked {
    PoolAsked {
        name: line.text(0).into(),
        owner: line.option("owner").map(Into::into),
        group: line.option("group").map(Into::into),
        mode: line.option("mode").map(|_| Mode::new(line.mode(0))),
        limit: line.option_number("limit"),
        default_replication: line.option_number("replication"),
        longest_life_ms: line.option_number("life"),
    }
}

/// `life=5000` from now on, `until=1700000000000`.
fn directive(line: &Line, path: Option<Vec<u8>>) -> DirectiveAsked {
    let expiry = |key: &str, relative: bool| {
        let millis = line.option_number(key)?;
        Some(Expiry { millis, relative, text: format!("{key} {millis}").into() })
    };
    DirectiveAsked {
        id: None,
        path,
        replication: line.option_number("replication"),
        pool: line.option("pool").map(Into::into),
        expiry: expiry("life", true).or_else(|| expiry("until", false)),
    }
}

fn needed(world: &World, line: &Line, path: Option<&[u8]>) -> u64 {
    let mut needed = Needed::default();
    if let Some(path) = path {
        while world.view(line, |view| needed.step(view, path, 1)) {}
    }
    needed.bytes
}

fn pool_line(pool: &ListedPool) -> String {
    let Some((of, used)) = &pool.seen else { return format!("{}\n", pool.name) };
    format!(
        "{} {}:{} {:o} limit={} replication={} life={} needs {} in {}, has {} in {}\n",
        pool.name,
        of.owner,
        of.group,
        of.mode.bits(),
        of.limit,
        of.default_replication,
        of.longest_life_ms,
        used.bytes_needed,
        used.files_needed,
        used.bytes_cached,
        used.files_cached
    )
}

fn directive_line(listed: &ListedDirective) -> String {
    let (of, used) = (&listed.directive, &listed.used);
    let over = if listed.expired { " (over)" } else { "" };
    format!(
        "{} {} x{} in {} until {}{over}: needs {} in {}, has {} in {}\n",
        listed.id,
        String::from_utf8_lossy(&of.path),
        of.replication,
        of.pool,
        of.expiry.0,
        used.bytes_needed,
        used.files_needed,
        used.bytes_cached,
        used.files_cached
    )
}
