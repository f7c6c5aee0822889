//! ACL entries and extended attributes; their numbers on the wire are those of the core.

use hadoop_proto::hdfs::acl_entry_proto::{AclEntryScopeProto, AclEntryTypeProto, FsActionProto};
use hadoop_proto::hdfs::{AclEntryProto, XAttrProto, x_attr_proto::XAttrNamespaceProto};
use vocab::Action;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};

/// An entry in a request; an empty name is none.
pub fn acl_from_wire(e: &AclEntryProto) -> AclEntry {
    AclEntry {
        scope: match e.scope() {
            AclEntryScopeProto::Access => AclScope::Access,
            AclEntryScopeProto::Default => AclScope::Default,
        },
        kind: match e.r#type() {
            AclEntryTypeProto::User => AclKind::User,
            AclEntryTypeProto::Group => AclKind::Group,
            AclEntryTypeProto::Mask => AclKind::Mask,
            AclEntryTypeProto::Other => AclKind::Other,
        },
        name: e.name.as_deref().filter(|n| !n.is_empty()).map(Into::into),
        permission: Action(e.permissions() as u8),
    }
}

/// An entry for the wire.
pub fn acl_to_wire(e: &AclEntry) -> AclEntryProto {
    AclEntryProto {
        r#type: e.kind as i32,
        scope: e.scope as i32,
        permissions: FsActionProto::try_from(i32::from(e.permission.0)).unwrap_or(FsActionProto::None) as i32,
        name: e.name.as_deref().map(str::to_owned),
    }
}

/// An attribute in a request; an absent value is empty.
pub fn xattr_from_wire(x: &XAttrProto) -> Xattr {
    Xattr {
        namespace: match x.namespace() {
            XAttrNamespaceProto::User => XattrNamespace::User,
            XAttrNamespaceProto::Trusted => XattrNamespace::Trusted,
            XAttrNamespaceProto::Security => XattrNamespace::Security,
            XAttrNamespaceProto::System => XattrNamespace::System,
            XAttrNamespaceProto::Raw => XattrNamespace::Raw,
        },
        name: x.name.as_str().into(),
        value: x.value().into(),
    }
}

/// An attribute for the wire; an empty value is left out.
pub fn xattr_to_wire(x: &Xattr) -> XAttrProto {
    let value = (!x.value.is_empty()).then(|| x.value.to_vec().into());
    XAttrProto { namespace: x.namespace as i32, name: x.name.to_string(), value }
}
