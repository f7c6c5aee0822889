//! Files and directories as they are: status, listings, access.

use super::super::convert::located::put_blocks;
use super::super::convert::nested;
use super::super::convert::status::{Locations, put_status};
use super::super::convert::summary as convert;
use super::super::{Answer, EMPTY, bad_view, decode, message};
use super::{Request, boolean};
use ::blocks::Blocks;
use bytes::{Bytes, BytesMut};
use hadoop_proto::Message;
use hadoop_proto::hdfs::{
    BatchedListingKeyProto, CheckAccessRequestProto, GetBatchedListingRequestProto, GetBlockLocationsRequestProto,
    GetContentSummaryRequestProto, GetContentSummaryResponseProto, GetFileInfoRequestProto,
    GetFileLinkInfoRequestProto, GetLinkTargetRequestProto, GetLinkTargetResponseProto, GetListingRequestProto,
    GetLocatedFileInfoRequestProto, GetPreferredBlockSizeRequestProto, GetPreferredBlockSizeResponseProto,
    GetQuotaUsageRequestProto, GetQuotaUsageResponseProto, IsFileClosedRequestProto, ListOpenFilesRequestProto,
    ListOpenFilesResponseProto, OpenFilesBatchResponseProto, OpenFilesTypeProto,
};
use hadoop_proto::view::client as view;
use hadoop_proto::wire::Sink;
use md5::{Digest, Md5};
use observe::RemoteException;
use ops::Write as _;
use ops::read::batched_listing::{BatchedStart, BatchedVisitor, get_batched_listing};
use ops::read::block_locations::get_block_locations;
use ops::read::file_info;
use ops::read::listing::{ListingVisitor, get_listing};
use ops::read::open_files::{Which, list_open_files, may_list_open_files};
use ops::read::summary::{ContentSummary, ContentSummaryWalk, QuotaUsage, get_quota_usage, needs_count};
use ops::status::{FileStatus, LocatedBlocks};
use ops::write::access_time::TouchAccessTime;
use std::time::Duration;
use vocab::{Action, InodeId, Refusal};

/// Room for a status with names of usual length.
const STATUS_BYTES: usize = 160;

pub(super) fn file_info(request: &Request<'_>) -> Answer {
    let asked = view::GetFileInfoRequest::parse(request.body)
        .map_err(|e| bad_view::<GetFileInfoRequestProto>(request.body, e))?;
    let src = asked.src.to_str();
    one_status(request, |v| Ok(file_info::get_file_info(v, src.as_bytes())?.map(|status| (status, None))))
}

pub(super) fn file_link_info(request: &Request<'_>) -> Answer {
    let asked: GetFileLinkInfoRequestProto = decode(request.body.clone())?;
    one_status(request, |v| Ok(file_info::get_file_link_info(v, asked.src.as_bytes())?.map(|status| (status, None))))
}

pub(super) fn located_file_info(request: &Request<'_>) -> Answer {
    let asked: GetLocatedFileInfoRequestProto = decode(request.body.clone())?;
    one_status(request, |v| file_info::get_located_file_info(v, asked.src().as_bytes()))
}

/// A response whose field 1 is a status, or an empty one; written while the state is held.
fn one_status(
    request: &Request<'_>,
    find: impl for<'v> FnOnce(&ops::View<'v>) -> Result<Option<(FileStatus<'v>, Option<LocatedBlocks>)>, vocab::Refusal>,
) -> Answer {
    let pool = &request.shared.identity.block_pool;
    let mut out = BytesMut::with_capacity(STATUS_BYTES);
    request.read(|v| {
        if let Some((status, located)) = find(v)? {
            let blocks = &v.state.blocks;
            let locations = located.as_ref().map(|located| Locations { located, blocks, pool });
            nested(&mut out, 1, |out| put_status(out, &status, locations));
        }
        Ok(())
    })?;
    Ok(out.freeze())
}

/// Writes the entries of a listing as they come.
struct Entries<'a> {
    out: &'a mut BytesMut,
    blocks: &'a Blocks,
    pool: &'a str,
}

impl ListingVisitor for Entries<'_> {
    fn entry(&mut self, status: &FileStatus<'_>, located: Option<&LocatedBlocks>) {
        let locations = located.map(|located| Locations { located, blocks: self.blocks, pool: self.pool });
        nested(self.out, 1, |out| put_status(out, status, locations));
    }
}

pub(super) fn listing(request: &Request<'_>) -> Answer {
    let asked = view::GetListingRequest::parse(request.body)
        .map_err(|e| bad_view::<GetListingRequestProto>(request.body, e))?;
    let (src, pool) = (asked.src.to_str(), &request.shared.identity.block_pool);
    let mut out = BytesMut::with_capacity(64 * STATUS_BYTES);
    request.read(|v| {
        let mut found = Ok(None);
        nested(&mut out, 1, |out| {
            let mut entries = Entries { out, blocks: &v.state.blocks, pool };
            found = get_listing(v, src.as_bytes(), asked.start_after, asked.need_location, &mut entries);
            if let Ok(Some(page)) = &found {
                out.put_varint_field(2, page.remaining as u64);
            }
        });
        if found?.is_none() {
            out.clear();
        }
        Ok(())
    })?;
    Ok(out.freeze())
}

pub(super) fn is_file_closed(request: &Request<'_>) -> Answer {
    let asked: IsFileClosedRequestProto = decode(request.body.clone())?;
    boolean(request.read(|v| file_info::is_file_closed(v, asked.src.as_bytes()))?)
}

pub(super) fn preferred_block_size(request: &Request<'_>) -> Answer {
    let asked: GetPreferredBlockSizeRequestProto = decode(request.body.clone())?;
    let bsize = request.read(|v| file_info::get_preferred_block_size(v, asked.filename.as_bytes()))?;
    message(&GetPreferredBlockSizeResponseProto { bsize })
}

pub(super) fn check_access(request: &Request<'_>) -> Answer {
    let asked: CheckAccessRequestProto = decode(request.body.clone())?;
    let action = Action(asked.mode as u8 & 7);
    request.read(|v| file_info::check_access(v, asked.path.as_bytes(), action))?;
    Ok(EMPTY)
}

pub(super) fn link_target(request: &Request<'_>) -> Answer {
    let asked: GetLinkTargetRequestProto = decode(request.body.clone())?;
    let target = request.read(|v| Ok(file_info::get_link_target(v, asked.path.as_bytes())?.to_vec()))?;
    message(&GetLinkTargetResponseProto { target_path: Some(String::from_utf8_lossy(&target).into_owned()) })
}

/// Puts the pages of a batched listing into messages of their own.
struct Batches<'a> {
    out: &'a mut BytesMut,
    /// Entries of the directory that is being listed.
    page: BytesMut,
    index: usize,
    blocks: &'a Blocks,
    pool: &'a str,
}

impl ListingVisitor for Batches<'_> {
    fn entry(&mut self, status: &FileStatus<'_>, located: Option<&LocatedBlocks>) {
        Entries { out: &mut self.page, blocks: self.blocks, pool: self.pool }.entry(status, located);
    }
}

impl BatchedVisitor for Batches<'_> {
    fn begin(&mut self, index: usize) {
        self.page.clear();
        self.index = index;
    }
    fn end(&mut self, _remaining: usize) {
        self.page.put_varint_field(2, self.index as u64);
        self.out.put_bytes_field(1, &self.page);
    }
    fn refused(&mut self, index: usize, refusal: Refusal) {
        let exception = RemoteException::from(refusal);
        nested(self.out, 1, |out| {
            out.put_varint_field(2, index as u64);
            nested(out, 3, |out| {
                out.put_bytes_field(1, exception.class.as_bytes());
                out.put_bytes_field(2, exception.message.as_bytes());
            });
        });
    }
}

/// Digest of the paths of a batched listing: a key goes with them alone.
fn digest_of(paths: &[Vec<u8>]) -> [u8; 16] {
    paths.iter().fold(Md5::new(), |digest, path| digest.chain_update(path)).finalize().into()
}

/// Where the last page of a batched listing said that the next one begins. A key without a name is of a path that is done.
fn batched_start(paths: &[Vec<u8>], key: Bytes) -> Result<BatchedStart, RemoteException> {
    if key.is_empty() {
        return Ok(BatchedStart::default());
    }
    let key: BatchedListingKeyProto = decode(key)?;
    if key.checksum != digest_of(paths)[..] {
        return Err(Refusal::IllegalArgument("".into()).into());
    }
    let (index, name) = (key.path_index as usize, key.start_after.to_vec());
    Ok(BatchedStart { index: if name.is_empty() { index + 1 } else { index }, name })
}

fn batched_key(paths: &[Vec<u8>], next: BatchedStart) -> Vec<u8> {
    let done = usize::from(next.name.is_empty());
    let key = BatchedListingKeyProto {
        checksum: digest_of(paths).to_vec().into(),
        path_index: (next.index - done) as u32,
        start_after: next.name.into(),
    };
    key.encode_to_vec()
}

pub(super) fn batched_listing(request: &Request<'_>) -> Answer {
    let asked: GetBatchedListingRequestProto = decode(request.body.clone())?;
    let paths: Vec<Vec<u8>> = asked.paths.into_iter().map(String::into_bytes).collect();
    let start = batched_start(&paths, asked.start_after)?;
    let pool = &request.shared.identity.block_pool;
    let mut out = BytesMut::with_capacity(64 * STATUS_BYTES);
    request.read(|v| {
        let blocks = &v.state.blocks;
        let mut batches = Batches { out: &mut out, page: BytesMut::new(), index: 0, blocks, pool };
        let next = get_batched_listing(v, &paths, &start, asked.need_location, &mut batches)?;
        out.put_varint_field(2, next.is_some().into());
        out.put_bytes_field(3, &next.map(|next| batched_key(&paths, next)).unwrap_or_default());
        Ok(())
    })?;
    Ok(out.freeze())
}

pub(super) fn block_locations(request: &Request<'_>) -> Answer {
    let asked = view::GetBlockLocationsRequest::parse(request.body)
        .map_err(|e| bad_view::<GetBlockLocationsRequestProto>(request.body, e))?;
    let (src, pool) = (asked.src.to_str(), &request.shared.identity.block_pool);
    let mut out = BytesMut::with_capacity(1_024);
    let touch = request.read(|v| {
        let found = get_block_locations(v, src.as_bytes(), asked.offset as i64, asked.length as i64)?;
        nested(&mut out, 1, |out| {
            put_blocks(out, &v.state.blocks, pool, &found.blocks, found.blocks.encryption.as_deref());
        });
        Ok(found.touch)
    })?;
    if let Some(file) = touch {
        // nobody waits for an access time, and a refusal of it is nobody's concern
        let name = request.operation.row().method;
        let touched = request.shared.engine.turn(name, request.caller, |turn| TouchAccessTime { file }.run(turn, ()));
        drop(touched);
    }
    Ok(out.freeze())
}

/// Most inodes counted under one hold of the lock, whatever the settings say.
const SUMMARY_SLICE: usize = 2_000;

async fn count(request: &Request<'_>, path: &[u8]) -> Result<ContentSummary, RemoteException> {
    let mut walk = request.read(|v| ContentSummaryWalk::begin(v, path))?;
    let (limit, rest) = {
        let settings = request.shared.engine.settings();
        (settings.summary_slice, Duration::from_micros(settings.summary_rest_micros))
    };
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut counted = 0;
    loop {
        if let Some(summary) = request.read(|v| walk.step(v, SUMMARY_SLICE.min(limit)))? {
            return Ok(summary);
        }
        counted += SUMMARY_SLICE.min(limit);
        if counted >= limit && !rest.is_zero() {
            counted = 0;
            tokio::time::sleep(rest).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}

pub(super) async fn content_summary(request: &Request<'_>) -> Answer {
    let asked: GetContentSummaryRequestProto = decode(request.body.clone())?;
    let summary = count(request, asked.path.as_bytes()).await?;
    message(&GetContentSummaryResponseProto { summary: convert::content_summary(&summary) })
}

pub(super) async fn quota_usage(request: &Request<'_>) -> Answer {
    let asked: GetQuotaUsageRequestProto = decode(request.body.clone())?;
    let path = asked.path.as_bytes();
    let usage = if request.read(|v| needs_count(v, path))? {
        let summary = count(request, path).await?;
        QuotaUsage { usage: summary.totals.usage, quota: summary.quota }
    } else {
        request.read(|v| get_quota_usage(v, path))?
    };
    message(&GetQuotaUsageResponseProto { usage: convert::quota_usage(&usage) })
}

pub(super) fn open_files(request: &Request<'_>) -> Answer {
    let asked: ListOpenFilesRequestProto = decode(request.body.clone())?;
    let path = asked.path().as_bytes();
    request.read(|v| may_list_open_files(v, path))?;
    let has = |kind: OpenFilesTypeProto| asked.types.contains(&(kind as i32));
    let which = match (has(OpenFilesTypeProto::AllOpenFiles), has(OpenFilesTypeProto::BlockingDecommission)) {
        (true, _) => Which::All,
        (false, true) => Which::BlockingLeave,
        (false, false) => return Err(Refusal::IllegalArgument("Unknown OpenFileType: []".into()).into()),
    };
    let found = request.read(|v| list_open_files(v, InodeId(asked.id), path, which))?;
    let entry = |f: ops::read::open_files::OpenFile| OpenFilesBatchResponseProto {
        id: f.id.0,
        path: String::from_utf8_lossy(&f.path).into_owned(),
        client_name: f.client.to_string(),
        client_machine: f.machine.to_string(),
    };
    message(&ListOpenFilesResponseProto {
        entries: found.entries.into_iter().map(entry).collect(),
        has_more: found.has_more,
        types: asked.types,
    })
}
