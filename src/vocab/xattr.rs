//! Extended attributes.

use std::sync::Arc;

/// Namespace of an attribute (Hadoop's `XAttr.NameSpace`, ordinals as stored).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum XattrNamespace {
    User = 0,
    Trusted = 1,
    Security = 2,
    System = 3,
    Raw = 4,
}

/// One attribute with its raw value; an absent value is empty.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct Xattr {
    /// Namespace.
    pub namespace: XattrNamespace,
    /// Name without the namespace prefix.
    pub name: Arc<str>,
    /// Value bytes.
    pub value: Arc<[u8]>,
}
