//! listCachePools and listCacheDirectives, as they are where nothing was ever told to be cached.

use vocab::Refusal;
use vocab::path::is_valid_name;

/// What listed directives are to have in common.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DirectiveFilter {
    /// This one only.
    pub id: Option<i64>,
    /// Those of this path.
    pub path: Option<Vec<u8>>,
    /// Asking by replication is refused.
    pub by_replication: bool,
}

/// listCacheDirectives: that the filter may be asked for; nothing fits it.
///
/// # Errors
/// `InvalidRequest`, also for the id of a directive.
pub fn list_cache_directives(filter: &DirectiveFilter) -> Result<(), Refusal> {
    let refuse = |text: String| Err(Refusal::InvalidRequest(text.into()));
    match filter {
        DirectiveFilter { path: Some(path), .. } if path.is_empty() => {
            Err(Refusal::IllegalArgument("Can not create a Path from an empty string".into()))
        }
        DirectiveFilter { path: Some(path), .. } if !is_valid_name(path) => {
            refuse(format!("Invalid path '{}'.", String::from_utf8_lossy(path)))
        }
        DirectiveFilter { by_replication: true, .. } => refuse("Filtering by replication is unsupported.".to_owned()),
        DirectiveFilter { id: Some(id), .. } => refuse(format!("Did not find requested id {id}")),
        _ => Ok(()),
    }
}
