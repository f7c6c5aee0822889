//! Cache pools and directives, of which there are none yet.

use super::super::{Answer, decode, message};
use super::Request;
use hadoop_proto::hdfs::{
    ListCacheDirectivesRequestProto, ListCacheDirectivesResponseProto, ListCachePoolsRequestProto,
    ListCachePoolsResponseProto,
};
use ops::read::caches::{DirectiveFilter, list_cache_directives};

pub(super) fn pools(request: &Request<'_>) -> Answer {
    let _: ListCachePoolsRequestProto = decode(request.body.clone())?;
    request.read(|_| Ok(()))?;
    message(&ListCachePoolsResponseProto { entries: Vec::new(), has_more: false })
}

pub(super) fn directives(request: &Request<'_>) -> Answer {
    let asked: ListCacheDirectivesRequestProto = decode(request.body.clone())?;
    let filter = DirectiveFilter {
        id: asked.filter.id,
        path: asked.filter.path.map(String::into_bytes),
        by_replication: asked.filter.replication.is_some(),
    };
    request.read(|_| list_cache_directives(&filter))?;
    message(&ListCacheDirectivesResponseProto { elements: Vec::new(), has_more: false })
}
