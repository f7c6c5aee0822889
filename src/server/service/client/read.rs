//! Files and directories as they are: status, listings, access.

use super::super::convert::nested;
use super::super::convert::status::{Locations, put_status};
use super::super::{Answer, EMPTY, bad_view, decode, message};
use super::{Request, boolean};
use blocks::Blocks;
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    CheckAccessRequestProto, GetFileInfoRequestProto, GetFileLinkInfoRequestProto, GetLinkTargetRequestProto,
    GetLinkTargetResponseProto, GetListingRequestProto, GetLocatedFileInfoRequestProto,
    GetPreferredBlockSizeRequestProto, GetPreferredBlockSizeResponseProto, IsFileClosedRequestProto,
};
use hadoop_proto::view::client as view;
use hadoop_proto::wire::Sink;
use ops::read::file_info;
use ops::read::listing::{ListingVisitor, get_listing};
use ops::status::{FileStatus, LocatedBlocks};
use vocab::Action;

/// Room for a status with names of usual length.
const STATUS_BYTES: usize = 160;

pub(super) fn file_info(request: &Request<'_>) -> Answer {
    let asked = view::GetFileInfoRequest::parse(&request.body)
        .map_err(|e| bad_view::<GetFileInfoRequestProto>(&request.body, e))?;
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
    let asked = view::GetListingRequest::parse(&request.body)
        .map_err(|e| bad_view::<GetListingRequestProto>(&request.body, e))?;
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
