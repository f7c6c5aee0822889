//! Going on with a file: append, pipelines that lost a node, leases that are taken over.

use super::super::convert::located::put_block;
use super::super::convert::status::put_status;
use super::super::convert::{datanode as convert, nested};
use super::super::{Answer, EMPTY, Writing, decode};
use super::blocks::located_in;
use super::{Request, boolean};
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    AppendRequestProto, CreateFlagProto, GetAdditionalDatanodeRequestProto, RecoverLeaseRequestProto,
    TruncateRequestProto, UpdateBlockForPipelineRequestProto, UpdatePipelineRequestProto,
};
use ops::write::append::{Append, RecoverLease};
use ops::write::pipeline::{GetAdditionalDatanode, UpdateBlockForPipeline, UpdatePipeline};
use ops::write::truncate::Truncate;
use std::sync::Arc;
use vocab::InodeId;

pub(super) fn append(request: &Request<'_>) -> Writing {
    let asked: AppendRequestProto = decode(request.body.clone())?;
    let new_block = asked.flag() & CreateFlagProto::NewBlock as u32 != 0;
    let operation = Append { path: asked.src.into_bytes(), client: asked.client_name.into(), new_block };
    let (shared, name) = (request.shared, request.operation.row().method);
    request.write(operation, |appended| {
        let mut out = BytesMut::with_capacity(1_024);
        if let Some(last) = &appended.last {
            shared.engine.view(name, request.caller, |v| {
                nested(&mut out, 1, |out| put_block(out, &v.state.blocks, &shared.identity.block_pool, last));
            });
        }
        nested(&mut out, 2, |out| put_status(out, &appended.status, None));
        Ok(out.freeze())
    })
}

pub(super) fn recover_lease(request: &Request<'_>) -> Writing {
    let asked: RecoverLeaseRequestProto = decode(request.body.clone())?;
    let operation = RecoverLease { path: asked.src.into_bytes(), client: asked.client_name.into() };
    request.write(operation, boolean)
}

pub(super) fn update_block_for_pipeline(request: &Request<'_>) -> Writing {
    let asked: UpdateBlockForPipelineRequestProto = decode(request.body.clone())?;
    let block = convert::extended_from_wire(&asked.block);
    let operation = UpdateBlockForPipeline { block, client: asked.client_name.into() };
    request.write(operation, |block| located_in(request, &asked.block.pool_id, &block))
}

pub(super) fn update_pipeline(request: &Request<'_>) -> Writing {
    let asked: UpdatePipelineRequestProto = decode(request.body.clone())?;
    let uuids = asked.new_nodes.iter().map(|n| Arc::from(n.datanode_uuid.as_str()));
    let storages = asked.storage_i_ds.iter().map(|s| Arc::from(s.as_str()));
    let operation = UpdatePipeline {
        old: convert::extended_from_wire(&asked.old_block),
        new: convert::extended_from_wire(&asked.new_block),
        targets: uuids.zip(storages).collect(),
        client: asked.client_name.into(),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn additional_datanode(request: &Request<'_>) -> Answer {
    let asked: GetAdditionalDatanodeRequestProto = decode(request.body.clone())?;
    let uuids = asked.existings.iter().map(|n| Arc::from(n.id.datanode_uuid.as_str()));
    let storages = asked.existing_storage_uuids.iter().map(|s| Arc::from(s.as_str()));
    let existing = uuids.zip(storages).collect();
    let excludes = &asked.excludes;
    let block = request.read(|v| {
        let number = |uuid: &str| v.state.blocks.node_by_uuid(uuid).map(|n| n.number);
        let operation = GetAdditionalDatanode {
            path: asked.src.clone().into_bytes(),
            file: InodeId(asked.file_id() as i64),
            block: convert::extended_from_wire(&asked.blk),
            existing,
            excluded: excludes.iter().filter_map(|n| number(&n.id.datanode_uuid)).collect(),
            count: asked.num_additional_nodes as usize,
            client: asked.client_name.as_str().into(),
        };
        operation.run(v)
    })?;
    located_in(request, &asked.blk.pool_id, &block)
}

pub(super) fn truncate(request: &Request<'_>) -> Writing {
    let asked: TruncateRequestProto = decode(request.body.clone())?;
    let operation = Truncate {
        path: asked.src.into_bytes(),
        new_length: asked.new_length as i64,
        client: asked.client_name.into(),
        keeps_blocks: !request.shared.identity.upgrade_finalized(),
    };
    request.write(operation, boolean)
}
