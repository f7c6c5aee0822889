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

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of the checks is that of the Java name node.
    #[test]
    fn a_filter_is_refused_by_its_path_first() {
        let text = |filter: DirectiveFilter| match list_cache_directives(&filter) {
            Err(Refusal::InvalidRequest(text) | Refusal::IllegalArgument(text)) => text.to_string(),
            other => format!("{other:?}"),
        };
        let filter = DirectiveFilter { id: Some(7), path: Some(b"a".to_vec()), by_replication: true };
        assert_eq!(text(filter.clone()), "Invalid path 'a'.");
        let filter = DirectiveFilter { path: Some(b"/a".to_vec()), ..filter };
        assert_eq!(text(filter.clone()), "Filtering by replication is unsupported.");
        let filter = DirectiveFilter { by_replication: false, ..filter };
        assert_eq!(text(filter.clone()), "Did not find requested id 7");
        let filter = DirectiveFilter { id: None, ..filter };
        assert_eq!(text(filter.clone()), "Ok(())");
        assert_eq!(
            text(DirectiveFilter { path: Some(vec![]), ..filter }),
            "Can not create a Path from an empty string"
        );
    }
}
