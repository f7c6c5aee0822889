//! Groups of several sources (Hadoop's `CompositeGroupsMapping`).

use super::{GroupList, Source};
use std::sync::Arc;
use vocab::hash_order;

/// Of all sources, or of the first one that knows any.
pub(super) async fn look_up(sources: &[Source], combined: bool, user: &str) -> GroupList {
    let mut found: Vec<Arc<str>> = Vec::new();
    for source in sources {
        for group in Box::pin(source.look_up(user)).await.iter() {
            if !found.contains(group) {
                found.push(group.clone());
            }
        }
        if !combined && !found.is_empty() {
            break;
        }
    }
    sort(&mut found);
    found.into()
}

/// In the order of Java's `HashSet`, in which Hadoop gathers them: the first one counts as the user's primary group.
fn sort(names: &mut [Arc<str>]) {
    hash_order::sort(names, hash_order::USUAL, |name| name);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The orders are those of `new HashSet<>(List.of(...))` of Java 17.
    #[test]
    fn the_order_is_javas() {
        for (names, expected) in [
            ("staff users wheel admin hdfs", "wheel admin hdfs staff users"),
            ("n m l k j i h g f e d c b a", "a b c d e f g h i j k l m n"),
            (
                "group1 group2 Domain_Users hadoop supergroup yarn mapred",
                "supergroup Domain_Users hadoop yarn group2 mapred group1",
            ),
        ] {
            let mut sorted: Vec<Arc<str>> = names.split(' ').map(Arc::from).collect();
            sort(&mut sorted);
            assert_eq!(sorted.join(" "), expected);
        }
    }
}
