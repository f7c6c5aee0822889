//! Changes of what is known about a file: permission, owner, times, replication.

use super::super::{EMPTY, Writing, decode};
use super::{Request, boolean};
use hadoop_proto::hdfs::{
    SetOwnerRequestProto, SetPermissionRequestProto, SetReplicationRequestProto, SetTimesRequestProto,
};
use ops::write::attributes::{SetOwner, SetPermission, SetReplication, SetTimes};
use vocab::{Mode, TimeMs};

pub(super) fn set_permission(request: &Request<'_>) -> Writing {
    let asked: SetPermissionRequestProto = decode(request.body.clone())?;
    let mode = Mode::new(asked.permission.perm as u16);
    request.write(SetPermission { path: asked.src.into_bytes(), mode }, |_| Ok(EMPTY))
}

pub(super) fn set_owner(request: &Request<'_>) -> Writing {
    let asked: SetOwnerRequestProto = decode(request.body.clone())?;
    let operation = SetOwner {
        path: asked.src.into_bytes(),
        user: asked.username.map(Into::into),
        group: asked.groupname.map(Into::into),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn set_times(request: &Request<'_>) -> Writing {
    let asked: SetTimesRequestProto = decode(request.body.clone())?;
    let (mtime, atime) = (TimeMs(asked.mtime as i64), TimeMs(asked.atime as i64));
    request.write(SetTimes { path: asked.src.into_bytes(), mtime, atime }, |_| Ok(EMPTY))
}

pub(super) fn set_replication(request: &Request<'_>) -> Writing {
    let asked: SetReplicationRequestProto = decode(request.body.clone())?;
    // a short in Java
    let replication = asked.replication as u16;
    request.write(SetReplication { path: asked.src.into_bytes(), replication }, boolean)
}
