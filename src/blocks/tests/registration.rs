use super::*;
use vocab::Refusal;

fn register(w: &mut World, r: Registration, resolved: Resolved) -> Result<Registration, Refusal> {
    w.blocks.register(r, &resolved, &w.own.clone(), "3.5.0", w.now)
}

/// T81: an address without a name is refused unless the check is off; loopback counts as resolved.
#[test]
fn registration_from_an_address_with_no_name_docker_hadoop_21() {
    let mut w = World::new(Settings::default());
    let nameless =
        Resolved { peer: Some("172.18.0.4".into()), peer_name: Some("172.18.0.4".into()), ..Resolved::default() };
    let r = w.registration(1);
    let text = format!(
        "Datanode denied communication with namenode because hostname cannot be resolved (ip=172.18.0.4, \
         hostname=172.18.0.4): {r}"
    );
    assert_eq!(register(&mut w, r.clone(), nameless.clone()), Err(Refusal::DisallowedDatanode(text.into())));
    assert!(w.blocks.node_by_uuid("uuid-1").is_none());
    let loopback = Resolved { peer: Some("127.0.0.1".into()), loopback: true, ..Resolved::default() };
    assert_eq!(&*register(&mut w, r.clone(), loopback).expect("registered").id.ip, "127.0.0.1");
    w.blocks.settings.check_host_name = false;
    assert_eq!(&*register(&mut w, r, nameless).expect("registered").id.ip, "172.18.0.4");
}

#[test]
fn text_of_a_registration() {
    let w = World::new(Settings::default());
    assert_eq!(
        w.registration(1).to_string(),
        "DatanodeRegistration(10.0.0.1:9866, datanodeUuid=uuid-1, infoPort=9864, infoSecurePort=0, ipcPort=9867, \
         storageInfo=lv=-57;cid=CID-x;nsid=7;c=0)"
    );
}

/// T85: calls with the ids of another file system are refused.
#[test]
fn datanode_of_another_cluster_hdfs_17307() {
    let w = World::new(Settings::default());
    let mut r = w.registration(1);
    assert_eq!(w.blocks.verify(&r, &w.own), Ok(()));
    r.storage.namespace_id = 8;
    let refusal = w.blocks.verify(&r, &w.own).expect_err("foreign");
    assert_eq!(refusal, Refusal::UnregisteredNode(format!("Unregistered server: {r}").into()));
}

#[test]
fn version_floor_and_upgrades() {
    let mut w = World::new(Settings::default());
    let mut r = w.registration(1);
    r.software_version = "2.0.6-alpha".into();
    assert_eq!(
        register(&mut w, r.clone(), Resolved::default()),
        Err(Refusal::IncorrectVersion(
            "The reported DataNode version is too low to communicate with this NameNode. DataNode version: \
             '2.0.6-alpha' Minimum DataNode version: '2.1.0-beta'"
                .into()
        ))
    );
    r.software_version = "3.3.6".into();
    register(&mut w, r.clone(), Resolved::default()).expect("an older DataNode of the same creation time");
    r.storage.c_time = 5;
    assert!(matches!(register(&mut w, r, Resolved::default()), Err(Refusal::IncorrectVersion(_))));
}

#[test]
fn include_list() {
    let mut w = World::new(Settings::default());
    w.blocks.hosts.included = vec![HostEntry::parse("10.0.0.2")];
    let r = w.registration(1);
    let text = format!("Datanode denied communication with namenode because the host is not in the include-list: {r}");
    assert_eq!(register(&mut w, r, Resolved::default()), Err(Refusal::DisallowedDatanode(text.into())));
    let r = w.registration(2);
    register(&mut w, r, Resolved::default()).expect("included");
}

#[test]
fn registering_twice_is_harmless() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let (_, block) = w.block(1, 1);
    w.received(1, block);
    w.register_on(1, "/default-rack");
    assert_eq!(w.number(1), n);
    assert_eq!(w.holders(1), [n], "its replicas stay until its report");
    w.beat(1);
    w.report(1, &[]);
    assert_eq!(w.holders(1), []);
    w.check();
}

#[test]
fn another_uuid_at_the_same_address_replaces_the_node() {
    let mut w = World::new(Settings::default());
    w.node(1);
    let (_, block) = w.block(1, 1);
    w.received(1, block);
    let mut r = w.registration(2);
    r.id.ip = "10.0.0.1".into();
    register(&mut w, r, Resolved::default()).expect("registered");
    w.drain();
    assert!(w.blocks.node_by_uuid("uuid-1").is_none());
    assert_eq!(w.holders(1), []);
    assert_eq!(w.blocks.datanode_report(ReportKind::All).len(), 1);
    w.check();
}

#[test]
fn the_same_uuid_at_another_address_moves_the_node() {
    let mut w = World::new(Settings::default());
    let n = w.node(1);
    let mut r = w.registration(1);
    r.id.ip = "10.0.0.9".into();
    register(&mut w, r, Resolved::default()).expect("registered");
    assert_eq!(w.blocks.node_at("10.0.0.9"), Some(n));
    assert_eq!(w.blocks.node_at("10.0.0.1"), None);
    let old = w.registration(1);
    let refusal = w.blocks.identify(&old).expect_err("the old address");
    assert_eq!(
        refusal,
        Refusal::UnregisteredNode(
            format!(
                "Data node {old} is attempting to report storage ID uuid-1. Node 10.0.0.9:9866 is expected to serve this \
                 storage."
            )
            .into()
        )
    );
}

#[test]
fn figures_of_any_size_are_summed_up() {
    let mut w = World::new(Settings::default());
    w.register_on(1, "/r");
    w.register_on(2, "/r");
    for n in 1..=2 {
        let mut figures = w.figures(n);
        let all = crate::VolumeReport {
            capacity: u64::MAX,
            remaining: u64::MAX,
            dfs_used: u64::MAX,
            ..figures.volumes[0].clone()
        };
        figures.volumes = vec![
            all.clone(),
            crate::VolumeReport { volume: crate::VolumeId { id: "second".into(), ..all.volume.clone() }, ..all },
        ];
        (figures.cache_capacity, figures.cache_used, figures.xceivers) = (u64::MAX, u64::MAX, u32::MAX);
        let id = w.registration(n);
        w.blocks.heartbeat(&mut w.store, &id, &figures, w.now).expect("heartbeat");
    }
    assert_eq!(w.blocks.stats(&w.store, w.now.monotonic).capacity, u64::MAX);
}
