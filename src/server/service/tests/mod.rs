//! The protocols over real sockets against a name node in this process.

mod followers;
mod services;
pub(crate) mod world;

use super::table::PortKind;

use hadoop_proto::datanode::datanode_command_proto::Type;
use hadoop_proto::datanode::received_deleted_block_info_proto::BlockStatus;
use hadoop_proto::datanode::{self as proto, DatanodeRegistrationProto};
use hadoop_proto::hdfs;
use hadoop_proto::hdfs::*;
use world::{CLIENT, DATANODE, LIFELINE, POOL, Peer, World, bytes, start};

fn permission(perm: u32) -> FsPermissionProto {
    FsPermissionProto { perm }
}

fn mkdirs(path: &str) -> MkdirsRequestProto {
    MkdirsRequestProto { src: path.into(), masked: permission(0o755), create_parent: true, unmasked: None }
}

fn create(path: &str) -> CreateRequestProto {
    CreateRequestProto {
        src: path.into(),
        masked: permission(0o644),
        client_name: "c1".into(),
        create_flag: 3,
        create_parent: true,
        replication: 1,
        block_size: 128 << 20,
        ..Default::default()
    }
}

async fn info(peer: &Peer, path: &str) -> Option<HdfsFileStatusProto> {
    let response: GetFileInfoResponseProto =
        peer.exact("getFileInfo", &GetFileInfoRequestProto { src: path.into() }).await;
    response.fs
}

async fn list(peer: &Peer, path: &str, need_location: bool) -> Option<DirectoryListingProto> {
    let request = GetListingRequestProto { src: path.into(), start_after: bytes(""), need_location };
    peer.exact::<GetListingResponseProto>("getListing", &request).await.dir_list
}

fn registration(uuid: &str) -> DatanodeRegistrationProto {
    let own = world::storage_info();
    DatanodeRegistrationProto {
        datanode_id: DatanodeIdProto {
            ip_addr: "10.9.9.9".into(),
            host_name: "localhost".into(),
            datanode_uuid: uuid.into(),
            xfer_port: 9866,
            info_port: 9864,
            ipc_port: 9867,
            info_secure_port: Some(0),
        },
        storage_info: StorageInfoProto {
            layout_version: -57i32 as u32,
            namespce_id: own.namespace_id as u32,
            cluster_id: own.cluster_id.to_string(),
            c_time: own.c_time as u64,
        },
        keys: super::namenode::no_keys(),
        software_version: "3.5.0".into(),
    }
}

fn storage() -> DatanodeStorageProto {
    DatanodeStorageProto { storage_uuid: "DS-1".into(), state: Some(0), storage_type: Some(1) }
}

fn beat(registration: &DatanodeRegistrationProto) -> proto::HeartbeatRequestProto {
    proto::HeartbeatRequestProto {
        registration: registration.clone(),
        reports: vec![StorageReportProto {
            storage_uuid: "DS-1".into(),
            capacity: Some(1 << 40),
            remaining: Some(1 << 40),
            storage: Some(storage()),
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A DataNode that has registered, sent a heartbeat and an empty report.
async fn datanode(world: &World) -> (Peer, DatanodeRegistrationProto) {
    let peer = world.connect(DATANODE, "hdfs").await;
    let request = proto::RegisterDatanodeRequestProto { registration: registration("u1") };
    let response: proto::RegisterDatanodeResponseProto = peer.call("registerDatanode", &request).await;
    assert_eq!(response.registration.datanode_id.ip_addr, "127.0.0.1", "the address of the call counts");
    let registered = response.registration;
    let _: proto::HeartbeatResponseProto = peer.call("sendHeartbeat", &beat(&registered)).await;
    let report = proto::BlockReportRequestProto {
        registration: registered.clone(),
        block_pool_id: POOL.into(),
        reports: vec![proto::StorageBlockReportProto {
            storage: storage(),
            number_of_blocks: Some(0),
            ..Default::default()
        }],
        context: Some(proto::BlockReportContextProto { total_rpcs: 1, cur_rpc: 0, id: 1, lease_id: Some(0) }),
    };
    let response: proto::BlockReportResponseProto = peer.call("blockReport", &report).await;
    assert_eq!(response.cmd.map(|c| c.cmd_type()), Some(Type::FinalizeCommand));
    (peer, registered)
}

#[tokio::test]
async fn directories_and_status() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    assert!(peer.call::<MkdirsResponseProto>("mkdirs", &mkdirs("/d/e")).await.result);
    let status = info(&peer, "/d").await.unwrap();
    assert_eq!((status.file_type, status.children_num, status.file_id), (1, Some(1), Some(16_386)));
    assert_eq!((status.owner.as_str(), status.group.as_str(), status.permission.perm), ("hdfs", "supergroup", 0o755));
    assert_eq!((status.storage_policy, status.flags, status.block_replication), (Some(0), Some(0), Some(0)));
    assert!(info(&peer, "/none").await.is_none());
    assert!(list(&peer, "/none", false).await.is_none());
    let listing = list(&peer, "/d", false).await.unwrap();
    assert_eq!(listing.partial_listing.iter().map(|e| &e.path[..]).collect::<Vec<_>>(), [b"e"]);
    assert_eq!(listing.remaining_entries, 0);
    let bob = world.connect(CLIENT, "bob").await;
    let refusal = bob.refused("mkdirs", &mkdirs("/d/x")).await;
    assert_eq!(&*refusal.class, "org.apache.hadoop.security.AccessControlException");
    assert_eq!(refusal.message, r#"Permission denied: user=bob, access=WRITE, inode="/d":hdfs:supergroup:drwxr-xr-x"#);
    let deleted: DeleteResponseProto =
        peer.call("delete", &DeleteRequestProto { src: "/d".into(), recursive: true }).await;
    assert!(deleted.result && info(&peer, "/d").await.is_none());
}

#[tokio::test]
async fn a_file_from_create_to_close() {
    let world = start(PortKind::Client);
    let client = world.connect(CLIENT, "hdfs").await;
    let (node, registered) = datanode(&world).await;
    let created: CreateResponseProto = client.exact("create", &create("/f")).await;
    let id = created.fs.unwrap().file_id.unwrap();
    let request =
        AddBlockRequestProto { src: "/f".into(), client_name: "c1".into(), file_id: Some(id), ..Default::default() };
    let added: AddBlockResponseProto = client.exact("addBlock", &request).await;
    let block = added.block.b.clone();
    assert_eq!((block.pool_id.as_str(), block.block_id, block.generation_stamp), (POOL, 1_073_741_825, 1_001));
    assert_eq!(added.block.storage_i_ds, ["DS-1"]);
    assert_eq!((added.block.storage_types, added.block.is_cached), (vec![1], vec![false]));
    assert_eq!(added.block.locs[0].id.datanode_uuid, "u1");
    let open = list(&client, "/f", true).await.unwrap().partial_listing[0].locations.clone().unwrap();
    assert!(open.under_construction && !open.is_last_block_complete && open.last_block.is_some());
    let finished = ExtendedBlockProto { num_bytes: Some(1_000), ..block.clone() };
    let complete =
        CompleteRequestProto { src: "/f".into(), client_name: "c1".into(), last: Some(finished), file_id: Some(id) };
    assert!(!client.call::<CompleteResponseProto>("complete", &complete).await.result, "no replica is reported yet");
    let received = proto::BlockReceivedAndDeletedRequestProto {
        registration: registered.clone(),
        block_pool_id: POOL.into(),
        blocks: vec![proto::StorageReceivedDeletedBlocksProto {
            storage_uuid: "DS-1".into(),
            storage: Some(storage()),
            blocks: vec![proto::ReceivedDeletedBlockInfoProto {
                block: BlockProto {
                    block_id: block.block_id,
                    gen_stamp: block.generation_stamp,
                    num_bytes: Some(1_000),
                },
                status: BlockStatus::Received as i32,
                delete_hint: None,
            }],
        }],
    };
    let _: proto::BlockReceivedAndDeletedResponseProto = node.call("blockReceivedAndDeleted", &received).await;
    assert!(client.call::<CompleteResponseProto>("complete", &complete).await.result);
    let status = info(&client, "/f").await.unwrap();
    assert_eq!((status.length, status.blocksize, status.block_replication), (1_000, Some(128 << 20), Some(1)));
    let closed: IsFileClosedResponseProto =
        client.call("isFileClosed", &IsFileClosedRequestProto { src: "/f".into() }).await;
    assert!(closed.result);
    deletion_reaches_the_node(&world, &client, &node, &registered).await;
}

/// The replica of a deleted file is invalidated by a heartbeat, after the deletion is durable.
async fn deletion_reaches_the_node(world: &World, client: &Peer, node: &Peer, registered: &DatanodeRegistrationProto) {
    let delete = DeleteRequestProto { src: "/f".into(), recursive: false };
    assert!(client.call::<DeleteResponseProto>("delete", &delete).await.result);
    let mut work = ops::datanode::Work::default();
    world.clock.advance(10_000);
    let now = world.shared.engine.now();
    world.shared.engine.lock().write("test", |state| while work.step(state, now) {});
    let response: proto::HeartbeatResponseProto = node.call("sendHeartbeat", &beat(registered)).await;
    let command = response.cmds.first().and_then(|c| c.blk_cmd.as_ref()).expect("a command");
    assert_eq!(
        (command.action(), command.block_pool_id.as_str()),
        (proto::block_command_proto::Action::Invalidate, POOL)
    );
    assert_eq!(command.blocks[0].block_id, 1_073_741_825);
    assert_eq!(response.ha_status.state(), hdfs::nnha_status_heartbeat_proto::State::Active);
}

#[tokio::test]
async fn strangers_are_not_taken_for_datanodes() {
    let world = start(PortKind::Client);
    let node = world.connect(DATANODE, "hdfs").await;
    let response: proto::HeartbeatResponseProto = node.call("sendHeartbeat", &beat(&registration("u9"))).await;
    assert_eq!(response.cmds[0].cmd_type(), Type::RegisterCommand, "a node that is not known");
    let mut foreign = registration("u9");
    foreign.storage_info.cluster_id = "CID-2".into();
    let refusal = node.refused("sendHeartbeat", &beat(&foreign)).await;
    assert_eq!(&*refusal.class, "org.apache.hadoop.hdfs.protocol.UnregisteredNodeException");
    let version: VersionResponseProto = node.call("versionRequest", &VersionRequestProto {}).await;
    assert_eq!((version.info.block_pool_id.as_str(), version.info.capabilities), (POOL, Some(1)));
    assert_eq!(version.info.storage_info.layout_version as i32, -67);
}

#[tokio::test]
async fn a_lifeline_port_serves_lifelines_only() {
    let world = start(PortKind::Lifeline);
    let lifeline = world.connect(LIFELINE, "hdfs").await;
    lifeline.call::<()>("sendLifeline", &beat(&registration("u1"))).await;
    let client = world.connect(CLIENT, "hdfs").await;
    let refusal = client.refused("mkdirs", &mkdirs("/d")).await;
    assert_eq!(&*refusal.class, "org.apache.hadoop.ipc.RpcNoSuchProtocolException");
}

#[tokio::test]
async fn facts_and_refusals_without_a_path() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    let defaults: GetServerDefaultsResponseProto =
        peer.call("getServerDefaults", &GetServerDefaultsRequestProto {}).await;
    let d = defaults.server_defaults;
    assert_eq!((d.block_size, d.policy_id, d.key_provider_uri.as_deref()), (128 << 20, Some(7), Some("")));
    let policies: GetStoragePoliciesResponseProto =
        peer.call("getStoragePolicies", &GetStoragePoliciesRequestProto {}).await;
    assert_eq!(policies.policies.len(), 8);
    let refusal = peer.refused("getHAServiceState", &HaServiceStateRequestProto {}).await;
    assert_eq!(
        (&*refusal.class, refusal.message.as_str()),
        ("org.apache.hadoop.ha.ServiceFailedException", "HA for namenode is not enabled")
    );
    let rolled: RollEditsResponseProto = peer.call("rollEdits", &RollEditsRequestProto {}).await;
    assert!(rolled.new_segment_tx_id > 1);
    let bob = world.connect(CLIENT, "bob").await;
    let refusal = bob.refused("rollEdits", &RollEditsRequestProto {}).await;
    assert_eq!(
        refusal.message,
        "Access denied for user bob. Superuser privilege is required for operation rollEditLog"
    );
    let refusal = peer.refused("getFileInfo", &GetServerDefaultsRequestProto {}).await;
    assert_eq!(refusal.message, "Message missing required fields: src");
}

#[tokio::test]
async fn cache_pools_and_directives() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    let info = CachePoolInfoProto {
        pool_name: Some("p".to_owned()),
        group_name: Some("g".to_owned()),
        max_relative_expiry: Some(1_000),
        ..CachePoolInfoProto::default()
    };
    let _: AddCachePoolResponseProto =
        peer.call("addCachePool", &AddCachePoolRequestProto { info: info.clone() }).await;
    let refusal = peer.refused("addCachePool", &AddCachePoolRequestProto { info }).await;
    assert_eq!(&*refusal.class, "org.apache.hadoop.fs.InvalidRequestException");
    let expiration = |millis| Some(CacheDirectiveInfoExpirationProto { millis, is_relative: true });
    let add = |millis| AddCacheDirectiveRequestProto {
        info: CacheDirectiveInfoProto {
            path: Some("/nothing//there/".to_owned()),
            pool: Some("p".to_owned()),
            expiration: expiration(millis),
            ..CacheDirectiveInfoProto::default()
        },
        cache_flags: None,
    };
    let refusal = peer.refused("addCacheDirective", &add(1_001)).await;
    assert_eq!(refusal.message, "Expiration 000:00:00:01.001 exceeds the max relative expiration time of 1000 ms.");
    let added: AddCacheDirectiveResponseProto = peer.call("addCacheDirective", &add(1_000)).await;
    assert_eq!(added.id, 1);
    let asked = ListCacheDirectivesRequestProto { prev_id: 0, filter: CacheDirectiveInfoProto::default() };
    let listed: ListCacheDirectivesResponseProto = peer.call("listCacheDirectives", &asked).await;
    assert_eq!((listed.elements.len(), listed.elements[0].info.path()), (1, "/nothing/there"));
    let refusal = peer.refused("removeCachePool", &RemoveCachePoolRequestProto { pool_name: "x".to_owned() }).await;
    assert_eq!(refusal.message, "Cannot remove non-existent cache pool x");
}

/// A call is a value that the transport moves once; a careless local in any method would make all calls big.
#[tokio::test]
async fn calls_are_small_values() {
    let world = start(PortKind::Client);
    let port = super::Port::new(world.shared.clone(), PortKind::Client, "localhost");
    let method = rpc::Service::find(&port, CLIENT, 1, "mkdirs").unwrap();
    let call = rpc::Call {
        method,
        client_version: 1,
        header: rpc::RequestHeader::default(),
        caller: crate::http::nobody(),
        body: bytes(""),
        received: std::time::Instant::now(),
    };
    let size = std::mem::size_of_val(&rpc::Service::call(&port, call));
    assert!(size <= 256, "{size} bytes");
}

/// In safe mode changes are refused by Hadoop's words and with the host, also those that are not done here.
#[tokio::test]
async fn safe_mode_names_the_host() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    let enter = SetSafeModeRequestProto { action: SafeModeActionProto::SafemodeEnter as i32, checked: None };
    assert!(peer.call::<SetSafeModeResponseProto>("setSafeMode", &enter).await.result);
    let status = "It was turned on manually. Use \"hdfs dfsadmin -safemode leave\" to turn safe mode off. NamenodeHostName:localhost";
    let refusal = peer.refused("mkdirs", &mkdirs("/d")).await;
    assert_eq!(&*refusal.class, "org.apache.hadoop.hdfs.server.namenode.SafeModeException");
    assert_eq!(refusal.message, format!("Cannot create directory /d. Name node is in safe mode.\n{status}"));
    let policy = EnableErasureCodingPolicyRequestProto { ec_policy_name: "p".into() };
    let refusal = peer.refused("enableErasureCodingPolicy", &policy).await;
    assert_eq!(refusal.message, format!("Cannot enable erasure coding policy p. Name node is in safe mode.\n{status}"));
    let saved: SaveNamespaceResponseProto = peer.call("saveNamespace", &SaveNamespaceRequestProto::default()).await;
    assert!(saved.saved());
}

#[tokio::test]
async fn an_image_that_is_not_due_counts_as_saved() {
    let world = start(PortKind::Client);
    let peer = world.connect(CLIENT, "hdfs").await;
    let enter = SetSafeModeRequestProto { action: SafeModeActionProto::SafemodeEnter as i32, checked: None };
    assert!(peer.call::<SetSafeModeResponseProto>("setSafeMode", &enter).await.result);
    let newest = || world.shared.newest_checkpoint().0;
    let mut images = vec![newest()];
    for (window, due) in [(0, true), (3_600, false), (0, true)] {
        let request = SaveNamespaceRequestProto { time_window: Some(window), tx_gap: Some(1_000) };
        assert!(peer.call::<SaveNamespaceResponseProto>("saveNamespace", &request).await.saved());
        assert_eq!(newest() > images[images.len() - 1], due, "{window}");
        images.push(newest());
    }
}

/// An id that is no UUID cannot be remembered: calls that are remembered are refused, others served.
#[tokio::test]
async fn client_ids_have_16_bytes() {
    let world = start(PortKind::Client);
    let port = super::Port::new(world.shared.clone(), PortKind::Client, "localhost");
    let refusal = |method: &str, id: &[u8], call_id: i32| {
        let method = rpc::Service::find(&port, CLIENT, 1, method).unwrap();
        let client_id = rpc::ClientId::new(id).unwrap();
        let header = rpc::RequestHeader { call_id, client_id, ..Default::default() };
        let (caller, received) = (crate::http::nobody(), std::time::Instant::now());
        let call = rpc::Call { method, client_version: 1, header, caller, body: bytes(""), received };
        super::unusable_client_id(&call).map(|exception| (exception.class.into_owned(), exception.message))
    };
    let text = "Invalid clientId - length is 5 expected length 16".to_owned();
    assert_eq!(refusal("delete", b"short", 1), Some(("java.lang.IllegalArgumentException".to_owned(), text)));
    assert_eq!(refusal("mkdirs", b"short", 1), None, "not remembered");
    assert_eq!(refusal("delete", b"", 1), None, "no id, nothing to remember");
    assert_eq!(refusal("delete", b"short", -4), None, "no call of a client");
    assert_eq!(refusal("delete", &[7; 16], 1), None);
}
