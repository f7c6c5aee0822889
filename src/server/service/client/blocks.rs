//! Writing a file: blocks, pipelines, leases, the end.

use super::super::convert::located::put_block;
use super::super::convert::{datanode as convert, nested};
use super::super::{Answer, EMPTY, Writing, bad_view, decode};
use super::{Request, boolean};
use ::blocks::NodeNumber;
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    AbandonBlockRequestProto, AddBlockFlagProto, AddBlockRequestProto, CompleteRequestProto, FsyncRequestProto,
    RenewLeaseRequestProto, ReportBadBlocksRequestProto,
};
use hadoop_proto::view::{ViewError, client as view};
use ops::status::LocatedBlock;
use ops::write::add_block::AddBlock;
use ops::write::complete::{AbandonBlock, Complete, Fsync, RenewLease};
use vocab::{InodeId, Refusal};

/// A response whose field 1 is a located block.
pub(super) fn located(request: &Request<'_>, block: &LocatedBlock) -> Answer {
    located_in(request, &request.shared.identity.block_pool, block)
}

/// The same for a block that the caller named: it gets back the pool it said.
pub(super) fn located_in(request: &Request<'_>, pool: &str, block: &LocatedBlock) -> Answer {
    let mut out = BytesMut::with_capacity(1_024);
    let (shared, name) = (request.shared, request.operation.row().method);
    shared.engine.view(name, request.caller, |v| {
        nested(&mut out, 1, |out| put_block(out, &v.state.blocks, pool, block));
    });
    Ok(out.freeze())
}

pub(super) fn add_block(request: &Request<'_>) -> Writing {
    let bad = |e: ViewError| bad_view::<AddBlockRequestProto>(request.body, e);
    let asked = view::AddBlockRequest::parse(request.body).map_err(bad)?;
    let (excluded, favored) = nodes(request, &asked).map_err(bad)?;
    let flags = asked.flags.iter().collect::<Result<Vec<_>, _>>().map_err(bad)?;
    let operation = AddBlock {
        path: asked.src.to_str().into_owned().into_bytes(),
        file: InodeId(asked.file_id as i64),
        client: asked.client_name.to_str().into(),
        previous: asked.previous.as_ref().map(convert::extended),
        previous_pool: asked.previous.as_ref().map(|b| b.pool_id.to_str().into()),
        excluded,
        favored,
        no_local_write: flags.contains(&AddBlockFlagProto::NoLocalWrite),
        no_local_rack: false,
        ignore_client_locality: flags.contains(&AddBlockFlagProto::IgnoreClientLocality),
    };
    request.write(operation, |block| located(request, &block))
}

/// Excluded nodes by uuid, favoured ones by `host:port`. Such as are not known are left out.
fn nodes(
    request: &Request<'_>,
    asked: &view::AddBlockRequest<'_>,
) -> Result<(Vec<NodeNumber>, Vec<NodeNumber>), ViewError> {
    if asked.exclude_nodes.is_empty() && asked.favored_nodes.is_empty() {
        return Ok(Default::default());
    }
    let excluded = asked.exclude_nodes.iter().collect::<Result<Vec<_>, _>>()?;
    let favored = asked.favored_nodes.iter().collect::<Result<Vec<_>, _>>()?;
    Ok(request.shared.engine.view("addBlock", request.caller, |v| {
        let blocks = &v.state.blocks;
        let by_uuid = |n: &view::DatanodeInfo<'_>| blocks.node_by_uuid(&n.id.datanode_uuid.to_str()).map(|n| n.number);
        let by_host = |n: &hadoop_proto::view::Text<'_>| {
            let text = n.to_str();
            let host = text.rsplit_once(':').map_or(&*text, |(host, _)| host);
            blocks.node_at(host.trim_matches(['[', ']']))
        };
        (excluded.iter().filter_map(by_uuid).collect(), favored.iter().filter_map(by_host).collect())
    }))
}

pub(super) fn complete(request: &Request<'_>) -> Writing {
    let asked =
        view::CompleteRequest::parse(request.body).map_err(|e| bad_view::<CompleteRequestProto>(request.body, e))?;
    let operation = Complete {
        path: asked.src.to_str().into_owned().into_bytes(),
        file: InodeId(asked.file_id as i64),
        client: asked.client_name.to_str().into(),
        last: asked.last.as_ref().map(convert::extended),
        last_pool: asked.last.as_ref().map(|b| b.pool_id.to_str().into()),
    };
    request.write(operation, boolean)
}

pub(super) fn abandon_block(request: &Request<'_>) -> Writing {
    let asked: AbandonBlockRequestProto = decode(request.body.clone())?;
    let operation = AbandonBlock {
        file: InodeId(asked.file_id() as i64),
        block: convert::extended_from_wire(&asked.b),
        path: asked.src.into_bytes(),
        client: asked.holder.into(),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn fsync(request: &Request<'_>) -> Writing {
    let asked: FsyncRequestProto = decode(request.body.clone())?;
    let operation = Fsync {
        file: InodeId(asked.file_id() as i64),
        last_length: asked.last_block_length(),
        path: asked.src.into_bytes(),
        client: asked.client.into(),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn renew_lease(request: &Request<'_>) -> Writing {
    let asked = view::RenewLeaseRequest::parse(request.body)
        .map_err(|e| bad_view::<RenewLeaseRequestProto>(request.body, e))?;
    let namespaces: Result<Vec<_>, _> =
        asked.namespaces.iter().map(|name| name.map(|n| n.to_str().into_owned())).collect();
    let namespaces = namespaces.map_err(|e| bad_view::<RenewLeaseRequestProto>(request.body, e))?;
    if !namespaces.is_empty() {
        return Err(Refusal::io(format!("namespaces([{}]) should be null or empty", namespaces.join(", "))).into());
    }
    request.write(RenewLease { client: asked.client_name.to_str().into() }, |_| Ok(EMPTY))
}

/// Bad replicas that a reader met.
pub(super) fn report_bad_blocks(request: &Request<'_>) -> Answer {
    let asked: ReportBadBlocksRequestProto = decode(request.body.clone())?;
    request.shared.engine.pass(request.operation)?;
    super::super::datanode::bad_blocks(request.shared, request.caller, &asked.blocks)
}
