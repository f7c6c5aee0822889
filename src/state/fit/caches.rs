//! Records of cache pools and directives.

use super::{Mismatch, Plan, Planned};
use crate::State;
use edit::Record;

impl State {
    pub(super) fn plan_caches(&self, record: &Record<'_>) -> Planned {
        let caches = &self.caches;
        let known_pool = |name: &str| match caches.pool(name) {
            Some(_) => Ok(()),
            None => Err(Mismatch::new(format!("Cache pool {name} does not exist."))),
        };
        let known_directive = |id: i64| match caches.directive(id) {
            _ if id <= 0 => Err(Mismatch::new("Invalid negative ID.")),
            Some(_) => Ok(()),
            None => Err(Mismatch::new(format!("No directive with ID {id} found."))),
        };
        match record {
            Record::AddCachePool { pool, .. } => {
                if caches.pool(&pool.name).is_some() {
                    return Err(Mismatch::new(format!("Cache pool {} already exists.", pool.name)).into());
                }
                if pool.name.is_empty() || pool.owner.is_none() || pool.group.is_none() {
                    return Err(Mismatch::new("The record of a new cache pool says not whose it is").into());
                }
            }
            Record::ModifyCachePool { pool, .. } => known_pool(&pool.name)?,
            Record::RemoveCachePool { name, .. } => known_pool(name)?,
            Record::AddCacheDirective { directive, .. } => {
                let id = directive.id;
                if id <= 0 {
                    return Err(Mismatch::new("Invalid negative ID.").into());
                }
                // one of the same number is replaced, as in Hadoop
                let replication = directive.replication.unwrap_or_default();
                match (&directive.path, &directive.pool, directive.expiration) {
                    (Some(_), Some(pool), Some(_)) if replication > 0 => known_pool(pool)?,
                    _ => return Err(Mismatch::new(format!("The record of the new directive {id} is not whole")).into()),
                }
            }
            Record::ModifyCacheDirective { directive, .. } => {
                known_directive(directive.id)?;
                directive.pool.as_deref().map_or(Ok(()), known_pool)?;
            }
            Record::RemoveCacheDirective { id, .. } => known_directive(*id)?,
            other => return Err(Mismatch::new(format!("A record that nothing handles: {other:?}")).into()),
        }
        Ok(Plan::Tables)
    }
}
