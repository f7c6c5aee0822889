//! Encryption zones, of which there are none yet, and enclosing roots.

use super::super::{Answer, EMPTY, decode, message, superuser};
use super::Request;
use hadoop_proto::hdfs::{
    GetEnclosingRootRequestProto, GetEnclosingRootResponseProto, GetEzForPathRequestProto,
    ListEncryptionZonesRequestProto, ListEncryptionZonesResponseProto, ListReencryptionStatusRequestProto,
    ListReencryptionStatusResponseProto,
};
use ops::read::zones::get_zone;

pub(super) fn encryption_zones(request: &Request<'_>) -> Answer {
    let _: ListEncryptionZonesRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "listEncryptionZones")?;
    request.read(|_| Ok(()))?;
    message(&ListEncryptionZonesResponseProto { zones: Vec::new(), has_more: false })
}

pub(super) fn reencryption(request: &Request<'_>) -> Answer {
    let _: ListReencryptionStatusRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "listReencryptionStatus")?;
    request.read(|_| Ok(()))?;
    message(&ListReencryptionStatusResponseProto { statuses: Vec::new(), has_more: false })
}

pub(super) fn zone_of_path(request: &Request<'_>) -> Answer {
    let asked: GetEzForPathRequestProto = decode(request.body.clone())?;
    request.read(|v| get_zone(v, asked.src.as_bytes()))?;
    Ok(EMPTY)
}

/// Without zones the root encloses everything.
pub(super) fn enclosing_root(request: &Request<'_>) -> Answer {
    let asked: GetEnclosingRootRequestProto = decode(request.body.clone())?;
    request.read(|v| get_zone(v, asked.filename().as_bytes()))?;
    message(&GetEnclosingRootResponseProto { enclosing_root_path: Some("/".to_owned()) })
}
