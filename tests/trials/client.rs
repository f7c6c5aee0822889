//! A client that sends the messages of ClientNamenodeProtocol itself, so that names and numbers are the test's choice.
use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use hadoop_proto::common::RpcResponseHeaderProto;
use hadoop_proto::hdfs::*;
use prost::Message;
use rpc::client::{CallError, CallOptions, ClientSettings};
use tokio::runtime::Runtime;

/// The protocol of clients, as the request header names it.
pub const CLIENT_PROTOCOL: &str = "org.apache.hadoop.hdfs.protocol.ClientProtocol";
/// Block size of files that tests make, in bytes.
pub const BLOCK_SIZE: u64 = 1 << 20;
/// Bits of a create flag.
pub const CREATE: u32 = 1;
pub const OVERWRITE: u32 = 2;

/// Connections are served in the background, whoever waits.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

pub fn block_on<F: Future>(future: F) -> F::Output {
    RUNTIME.block_on(future)
}

/// An exception from the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Java class.
    pub class: String,
    /// What a client shows, without the stack that Hadoop appends.
    pub message: String,
    /// Name of the error code, as in the response header.
    pub code: String,
}

impl Refusal {
    /// Whether the class ends in `class` and the message holds `fragment`.
    pub fn is(&self, class: &str, fragment: &str) -> bool {
        self.class.ends_with(class) && self.message.contains(fragment)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

pub type Answer<T> = Result<T, Refusal>;

/// Expects a refusal of a class (its last part suffices) with a fragment of text.
#[track_caller]
pub fn refused<T: fmt::Debug>(answer: Answer<T>, class: &str, fragment: &str) {
    match answer {
        Err(refusal) => assert!(refusal.is(class, fragment), "{refusal}\nis not\n{class}: ..{fragment}.."),
        Ok(answer) => panic!("{answer:?}\ninstead of\n{class}: ..{fragment}.."),
    }
}

/// A connection of one user.
#[derive(Clone)]
pub struct Client {
    connection: rpc::client::Client,
    /// Lease holder in the calls below.
    pub name: String,
}

impl Client {
    /// Connects to the client port of 127.0.0.1.
    pub fn connect(port: u16, user: &str) -> Self {
        Self::speak(port, CLIENT_PROTOCOL, user)
    }

    /// Connects with any protocol (of version 1).
    pub fn speak(port: u16, protocol: &str, user: &str) -> Self {
        Self::with_settings(port, ClientSettings::new(protocol, 1, user))
    }

    /// Connects to any address; the call comes from it too if it is this machine's.
    pub fn speak_to(peer: SocketAddr, protocol: &str, user: &str) -> Self {
        Self::connect_to(peer, ClientSettings::new(protocol, 1, user)).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn with_settings(port: u16, settings: ClientSettings) -> Self {
        Self::try_with_settings(port, settings).unwrap_or_else(|e| panic!("{e}"))
    }

    /// As `connect`, to a server that may not be there.
    pub fn try_connect(port: u16, user: &str) -> Result<Self, String> {
        Self::try_with_settings(port, ClientSettings::new(CLIENT_PROTOCOL, 1, user))
    }

    fn try_with_settings(port: u16, settings: ClientSettings) -> Result<Self, String> {
        Self::connect_to(SocketAddr::from(([127, 0, 0, 1], port)), settings)
    }

    fn connect_to(peer: SocketAddr, mut settings: ClientSettings) -> Result<Self, String> {
        settings.call_timeout = Some(Duration::from_secs(60));
        let name = format!("client-of-{}", settings.user);
        let connection = block_on(rpc::client::Client::connect(peer, settings)).map_err(|e| e.to_string())?;
        Ok(Self { connection, name })
    }

    /// The same connection under another lease holder's name.
    pub fn named(&self, name: &str) -> Self {
        Self { connection: self.connection.clone(), name: name.to_owned() }
    }

    /// Body of the answer to an encoded request; panics when the connection fails.
    pub fn raw(&self, options: CallOptions, method: &str, body: &[u8]) -> Answer<Vec<u8>> {
        match self.exchange(options, method, body) {
            Ok(answer) => answer,
            Err(error) => panic!("{method}: {error}"),
        }
    }

    /// As `raw`; the outer error is a failed connection.
    pub fn exchange(&self, options: CallOptions, method: &str, body: &[u8]) -> Result<Answer<Vec<u8>>, String> {
        block_on(self.exchange_async(options, method, body))
    }

    /// As `exchange`, beside other calls.
    pub async fn exchange_async(
        &self,
        options: CallOptions,
        method: &str,
        body: &[u8],
    ) -> Result<Answer<Vec<u8>>, String> {
        match self.connection.call_with(options, method, body).await {
            Ok(answer) => Ok(Ok(answer.body.to_vec())),
            Err(CallError::Remote(e)) => {
                let message = e.message.split("\n\tat ").next().unwrap_or_default().trim_end_matches('\n').to_owned();
                Ok(Err(Refusal { class: e.class.to_string(), message, code: format!("{:?}", e.code) }))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The header of the answer to a call that succeeds.
    pub fn header_of(&self, method: &str, request: &impl Message) -> RpcResponseHeaderProto {
        let answer = block_on(self.connection.call_with(CallOptions::default(), method, &request.encode_to_vec()));
        answer.unwrap_or_else(|e| panic!("{method}: {e}")).header
    }

    pub fn call<R: Message + Default>(&self, method: &str, request: &impl Message) -> Answer<R> {
        self.call_as(CallOptions::default(), method, request)
    }

    pub fn call_as<R: Message + Default>(
        &self,
        options: CallOptions,
        method: &str,
        request: &impl Message,
    ) -> Answer<R> {
        let body = self.raw(options, method, &request.encode_to_vec())?;
        Ok(R::decode(body.as_slice()).unwrap_or_else(|e| panic!("{method}: {e}")))
    }
}

/// The calls that many tests make, in their everyday form.
impl Client {
    /// With parents, mode 0755.
    pub fn mkdirs(&self, path: &str) -> Answer<bool> {
        self.mkdir(path, 0o755, true)
    }

    pub fn mkdir(&self, path: &str, mode: u32, parents: bool) -> Answer<bool> {
        let masked = FsPermissionProto { perm: mode };
        let request = MkdirsRequestProto { src: path.into(), masked, create_parent: parents, unmasked: None };
        Ok(self.call::<MkdirsResponseProto>("mkdirs", &request)?.result)
    }

    /// A new file of replication 1, mode 0644, with its parents; answers its id.
    pub fn create(&self, path: &str) -> Answer<u64> {
        let fs = self.create_with(self.create_request(path))?.fs;
        Ok(fs.expect("status of the new file").file_id())
    }

    pub fn create_request(&self, path: &str) -> CreateRequestProto {
        CreateRequestProto {
            src: path.into(),
            masked: FsPermissionProto { perm: 0o644 },
            client_name: self.name.clone(),
            create_flag: CREATE,
            create_parent: true,
            replication: 1,
            block_size: BLOCK_SIZE,
            ..Default::default()
        }
    }

    pub fn create_with(&self, request: CreateRequestProto) -> Answer<CreateResponseProto> {
        self.call("create", &request)
    }

    pub fn add_block(&self, path: &str, file: u64, previous: Option<ExtendedBlockProto>) -> Answer<LocatedBlockProto> {
        let request = AddBlockRequestProto {
            src: path.into(),
            client_name: self.name.clone(),
            previous,
            file_id: Some(file),
            ..Default::default()
        };
        Ok(self.call::<AddBlockResponseProto>("addBlock", &request)?.block)
    }

    /// One call; false means not yet.
    pub fn complete_once(&self, path: &str, file: u64, last: Option<ExtendedBlockProto>) -> Answer<bool> {
        let client_name = self.name.clone();
        let request = CompleteRequestProto { src: path.into(), client_name, last, file_id: Some(file) };
        Ok(self.call::<CompleteResponseProto>("complete", &request)?.result)
    }

    /// As a client does it: again while the answer is false (replicas are still being noted), at most 10 s.
    pub fn complete(&self, path: &str, file: u64, last: Option<ExtendedBlockProto>) -> Answer<bool> {
        for _ in 0..200 {
            if self.complete_once(path, file, last.clone())? {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(false)
    }

    /// A closed file without blocks.
    pub fn touch(&self, path: &str) -> Answer<u64> {
        let file = self.create(path)?;
        assert!(self.complete(path, file, None)?, "{path} was not closed");
        Ok(file)
    }

    pub fn file_info(&self, path: &str) -> Answer<Option<HdfsFileStatusProto>> {
        Ok(self.call::<GetFileInfoResponseProto>("getFileInfo", &GetFileInfoRequestProto { src: path.into() })?.fs)
    }

    pub fn exists(&self, path: &str) -> bool {
        self.file_info(path).unwrap_or_else(|e| panic!("{path}: {e}")).is_some()
    }

    /// Status of what must be there.
    #[track_caller]
    pub fn status(&self, path: &str) -> HdfsFileStatusProto {
        self.file_info(path).unwrap_or_else(|e| panic!("{path}: {e}")).unwrap_or_else(|| panic!("no {path}"))
    }

    pub fn listing(&self, path: &str, start_after: &[u8], locations: bool) -> Answer<Option<DirectoryListingProto>> {
        let request = GetListingRequestProto {
            src: path.into(),
            start_after: start_after.to_vec().into(),
            need_location: locations,
        };
        Ok(self.call::<GetListingResponseProto>("getListing", &request)?.dir_list)
    }

    /// All names of a directory, page by page, in the order they came.
    pub fn names(&self, path: &str) -> Vec<String> {
        let (mut names, mut after): (Vec<String>, Vec<u8>) = Default::default();
        loop {
            let page = self.listing(path, &after, false).unwrap_or_else(|e| panic!("{path}: {e}"));
            let page = page.unwrap_or_else(|| panic!("no {path}"));
            let Some(last) = page.partial_listing.last() else { return names };
            after = last.path.to_vec();
            names.extend(page.partial_listing.iter().map(|e| String::from_utf8_lossy(&e.path).into_owned()));
            if page.remaining_entries == 0 {
                return names;
            }
        }
    }

    pub fn block_locations(&self, path: &str) -> Answer<Option<LocatedBlocksProto>> {
        let request = GetBlockLocationsRequestProto { src: path.into(), offset: 0, length: i64::MAX as u64 };
        Ok(self.call::<GetBlockLocationsResponseProto>("getBlockLocations", &request)?.locations)
    }

    pub fn rename(&self, src: &str, dst: &str) -> Answer<bool> {
        let request = RenameRequestProto { src: src.into(), dst: dst.into() };
        Ok(self.call::<RenameResponseProto>("rename", &request)?.result)
    }

    pub fn rename2(&self, src: &str, dst: &str, overwrite: bool) -> Answer<()> {
        let request =
            Rename2RequestProto { src: src.into(), dst: dst.into(), overwrite_dest: overwrite, move_to_trash: None };
        self.call::<Rename2ResponseProto>("rename2", &request).map(drop)
    }

    pub fn delete(&self, path: &str, recursive: bool) -> Answer<bool> {
        Ok(self.call::<DeleteResponseProto>("delete", &DeleteRequestProto { src: path.into(), recursive })?.result)
    }

    pub fn set_permission(&self, path: &str, mode: u32) -> Answer<()> {
        let request = SetPermissionRequestProto { src: path.into(), permission: FsPermissionProto { perm: mode } };
        self.call::<SetPermissionResponseProto>("setPermission", &request).map(drop)
    }

    /// Milliseconds; -1 leaves a time as it is.
    pub fn set_times(&self, path: &str, mtime: i64, atime: i64) -> Answer<()> {
        let request = SetTimesRequestProto { src: path.into(), mtime: mtime as u64, atime: atime as u64 };
        self.call::<SetTimesResponseProto>("setTimes", &request).map(drop)
    }

    pub fn set_replication(&self, path: &str, replication: u32) -> Answer<bool> {
        let request = SetReplicationRequestProto { src: path.into(), replication };
        Ok(self.call::<SetReplicationResponseProto>("setReplication", &request)?.result)
    }

    pub fn fsync(&self, path: &str, file: u64, last_block_length: i64) -> Answer<()> {
        let request = FsyncRequestProto {
            src: path.into(),
            client: self.name.clone(),
            last_block_length: Some(last_block_length),
            file_id: Some(file),
        };
        self.call::<FsyncResponseProto>("fsync", &request).map(drop)
    }

    pub fn is_file_closed(&self, path: &str) -> Answer<bool> {
        let request = IsFileClosedRequestProto { src: path.into() };
        Ok(self.call::<IsFileClosedResponseProto>("isFileClosed", &request)?.result)
    }

    /// Number of the last transaction in the edits.
    pub fn last_transaction(&self) -> i64 {
        let request = GetCurrentEditLogTxidRequestProto {};
        let answer = self.call::<GetCurrentEditLogTxidResponseProto>("getCurrentEditLogTxid", &request);
        answer.unwrap_or_else(|e| panic!("getCurrentEditLogTxid: {e}")).txid
    }

    pub fn content_summary(&self, path: &str) -> Answer<ContentSummaryProto> {
        let request = GetContentSummaryRequestProto { path: path.into() };
        Ok(self.call::<GetContentSummaryResponseProto>("getContentSummary", &request)?.summary)
    }

    pub fn safe_mode(&self, action: SafeModeActionProto) -> Answer<bool> {
        let request = SetSafeModeRequestProto { action: action.into(), checked: None };
        Ok(self.call::<SetSafeModeResponseProto>("setSafeMode", &request)?.result)
    }

    /// Safe mode on, saveNamespace, off.
    pub fn save_namespace(&self) {
        let ok = |step: &str, answer: Answer<bool>| answer.unwrap_or_else(|e| panic!("{step}: {e}"));
        ok("enter", self.safe_mode(SafeModeActionProto::SafemodeEnter));
        let request = SaveNamespaceRequestProto { time_window: Some(0), tx_gap: Some(0) };
        ok("save", self.call::<SaveNamespaceResponseProto>("saveNamespace", &request).map(|r| r.saved()));
        ok("leave", self.safe_mode(SafeModeActionProto::SafemodeLeave));
    }
}
