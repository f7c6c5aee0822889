//! The services of the schema with their methods, wire names and retry rules, for dispatch tables and compatibility lists.

/// What a client may do with a call whose answer it did not get (`@Idempotent`, `@AtMostOnce` on the Java interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not marked: the client fails rather than repeat it.
    None,
    /// May simply be executed again.
    Idempotent,
    /// Repeated only against a server that remembers the answers by client id and call id.
    AtMostOnce,
}

/// Marks a call that changes nothing and may go to an observer (`@ReadOnly` on the Java interface, HDFS-12943).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOnly {
    /// Only the active NameNode answers it.
    pub active_only: bool,
    /// It may move an access time.
    pub writes_atime: bool,
    /// An observer answers after it has caught up with the state id of the caller.
    pub coordinated: bool,
}

/// One method of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The name in the request header.
    pub name: &'static str,
    /// Full name of the request message, for example `hadoop.hdfs.MkdirsRequestProto`.
    pub input: &'static str,
    /// Full name of the response message.
    pub output: &'static str,
    /// Retry rule of the client.
    pub retry: Retry,
    /// Set for calls that only read.
    pub read_only: Option<ReadOnly>,
}

/// One service of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Name of the protobuf service, for example `ClientNamenodeProtocol`.
    pub name: &'static str,
    /// Protobuf package, for example `hadoop.hdfs`.
    pub package: &'static str,
    /// `declaringClassProtocolName` of the request header: a Java interface name. Empty if Hadoop 3.5 serves it nowhere.
    pub protocol: &'static str,
    /// `clientProtocolVersion` of the request header.
    pub version: u64,
    /// In the order of the schema.
    pub methods: &'static [Method],
    /// Positions in `methods`, sorted by method name.
    by_name: &'static [u16],
}

include!(concat!(env!("OUT_DIR"), "/services.rs"));

/// The service whose requests carry this protocol name.
pub fn by_protocol(protocol: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|s| s.protocol == protocol && !protocol.is_empty())
}

/// The service of this protobuf name, without package.
pub fn by_name(name: &str) -> Option<&'static Service> {
    SERVICES.iter().find(|s| s.name == name)
}

impl Service {
    /// Position in [`Service::methods`] of the method of this name; a binary search, fit for each call.
    pub fn method_index(&self, name: &str) -> Option<usize> {
        let found = self.by_name.binary_search_by(|&i| self.methods[usize::from(i)].name.cmp(name));
        found.ok().map(|at| usize::from(self.by_name[at]))
    }

    /// The method of this name.
    pub fn method(&self, name: &str) -> Option<&'static Method> {
        self.method_index(name).map(|i| &self.methods[i])
    }
}
