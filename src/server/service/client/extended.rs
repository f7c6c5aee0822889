//! ACLs and extended attributes.

use super::super::convert::attributes as convert;
use super::super::{Answer, EMPTY, Writing, decode, message};
use super::Request;
use hadoop_proto::hdfs::{
    AclStatusProto, FsPermissionProto, GetAclStatusRequestProto, GetAclStatusResponseProto, GetXAttrsRequestProto,
    GetXAttrsResponseProto, ListXAttrsRequestProto, ListXAttrsResponseProto, ModifyAclEntriesRequestProto,
    RemoveAclEntriesRequestProto, RemoveAclRequestProto, RemoveDefaultAclRequestProto, RemoveXAttrRequestProto,
    SetAclRequestProto, SetXAttrRequestProto, XAttrSetFlagProto,
};
use ops::read::acl_status::get_acl_status;
use ops::write::acl::{AclChange, ChangeAcl};
use ops::write::xattr::{RemoveXattr, SetXattr, get_xattrs, list_xattrs};

fn change_acl(request: &Request<'_>, src: String, change: AclChange) -> Writing {
    request.write(ChangeAcl { path: src.into_bytes(), change }, |_| Ok(EMPTY))
}

pub(super) fn modify_acl(request: &Request<'_>) -> Writing {
    let asked: ModifyAclEntriesRequestProto = decode(request.body.clone())?;
    let entries = asked.acl_spec.iter().map(convert::acl_from_wire).collect();
    change_acl(request, asked.src, AclChange::Modify(entries))
}

pub(super) fn remove_acl_entries(request: &Request<'_>) -> Writing {
    let asked: RemoveAclEntriesRequestProto = decode(request.body.clone())?;
    let entries = asked.acl_spec.iter().map(convert::acl_from_wire).collect();
    change_acl(request, asked.src, AclChange::Remove(entries))
}

pub(super) fn remove_default_acl(request: &Request<'_>) -> Writing {
    let asked: RemoveDefaultAclRequestProto = decode(request.body.clone())?;
    change_acl(request, asked.src, AclChange::RemoveDefault)
}

pub(super) fn remove_acl(request: &Request<'_>) -> Writing {
    let asked: RemoveAclRequestProto = decode(request.body.clone())?;
    change_acl(request, asked.src, AclChange::RemoveAll)
}

pub(super) fn set_acl(request: &Request<'_>) -> Writing {
    let asked: SetAclRequestProto = decode(request.body.clone())?;
    let entries = asked.acl_spec.iter().map(convert::acl_from_wire).collect();
    change_acl(request, asked.src, AclChange::Set(entries))
}

pub(super) fn acl_status(request: &Request<'_>) -> Answer {
    let asked: GetAclStatusRequestProto = decode(request.body.clone())?;
    let status = request.read(|v| get_acl_status(v, asked.src.as_bytes()))?;
    let result = AclStatusProto {
        owner: status.owner.to_string(),
        group: status.group.to_string(),
        sticky: status.mode.is_some_and(|mode| mode.sticky()),
        entries: status.entries.iter().map(convert::acl_to_wire).collect(),
        permission: status.mode.map(|mode| FsPermissionProto { perm: mode.bits().into() }),
    };
    message(&GetAclStatusResponseProto { result })
}

pub(super) fn set_xattr(request: &Request<'_>) -> Writing {
    let asked: SetXAttrRequestProto = decode(request.body.clone())?;
    let flag = |flag: XAttrSetFlagProto| asked.flag() & flag as u32 != 0;
    let operation = SetXattr {
        given: asked.x_attr.as_ref().is_some_and(|xattr| xattr.value.is_some()),
        xattr: convert::xattr_from_wire(asked.x_attr.as_ref().unwrap_or(&Default::default())),
        create: flag(XAttrSetFlagProto::XattrCreate),
        replace: flag(XAttrSetFlagProto::XattrReplace),
        path: asked.src.into_bytes(),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn remove_xattr(request: &Request<'_>) -> Writing {
    let asked: RemoveXAttrRequestProto = decode(request.body.clone())?;
    let xattr = convert::xattr_from_wire(asked.x_attr.as_ref().unwrap_or(&Default::default()));
    request.write(RemoveXattr { path: asked.src.into_bytes(), xattr }, |_| Ok(EMPTY))
}

pub(super) fn xattrs(request: &Request<'_>) -> Answer {
    let asked: GetXAttrsRequestProto = decode(request.body.clone())?;
    let wanted: Vec<_> = asked.x_attrs.iter().map(convert::xattr_from_wire).collect();
    let found = request.read(|v| get_xattrs(v, asked.src.as_bytes(), &wanted))?;
    message(&GetXAttrsResponseProto { x_attrs: found.iter().map(convert::xattr_to_wire).collect() })
}

pub(super) fn xattr_names(request: &Request<'_>) -> Answer {
    let asked: ListXAttrsRequestProto = decode(request.body.clone())?;
    let found = request.read(|v| list_xattrs(v, asked.src.as_bytes()))?;
    message(&ListXAttrsResponseProto { x_attrs: found.iter().map(convert::xattr_to_wire).collect() })
}
