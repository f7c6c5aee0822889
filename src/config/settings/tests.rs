//! The tree as a whole: defaults, samples, and that the registry tells the truth about what is read.
use super::*;
use crate::config::{Environment, load, registry};
use std::path::Path;
use std::time::Duration;

fn configuration(keys: &[(&str, &str)]) -> Configuration {
    let mut configuration = Configuration::with_defaults(Environment::default());
    for (key, value) in [("fs.defaultFS", "hdfs://localhost")].iter().chain(keys) {
        configuration.set(key, value, "hdfs-site.xml");
    }
    configuration
}

fn read(keys: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let mut configuration = configuration(keys);
    let identity = identify(&mut configuration, |_| false)?;
    Settings::read(&configuration, identity)
}

/// The column `honoured` of keys.tsv is exactly what `Settings`, `identify` and the `/conf` output read.
#[test]
fn registry_says_what_is_read() {
    let configuration = configuration(&[]);
    let reader = Reader::new(&configuration);
    Settings::read_with(&reader, Identity::default()).unwrap();
    let mut read = reader.keys_read();
    read.extend(identity::KEYS_OF_IDENTITY);
    read.extend(KEYS_OF_POLICY);
    read.insert(crate::config::output::SENSITIVE_KEY);
    let marked = registry().keys().filter(|key| key.honoured).map(|key| key.name).collect();
    let missing: Vec<_> = read.difference(&marked).collect();
    let too_many: Vec<_> = marked.difference(&read).collect();
    assert!(missing.is_empty() && too_many.is_empty(), "to be marked: {missing:?}\nto be unmarked: {too_many:?}");
}

/// Every key read is one that a Java NameNode reads too, so that `not_honoured` judges the same keys.
#[test]
fn keys_read_are_the_namenodes() {
    let others: Vec<_> = registry().keys().filter(|key| key.honoured && !key.namenode).map(|key| key.name).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn defaults() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.addresses.rpc.bind().to_string(), "localhost:8020");
    assert_eq!(settings.addresses.http.bind().to_string(), "0.0.0.0:9870");
    assert_eq!((settings.addresses.service_rpc, settings.addresses.lifeline_rpc), (None, None));
    assert_eq!(settings.server_defaults.block_bytes, 134_217_728);
    assert_eq!(settings.server_defaults.checksum, namespace::Checksum::Crc32C);
    assert_eq!(settings.limits.min_block_bytes, 1_048_576);
    assert_eq!(settings.features.access_time_precision, Some(Duration::from_secs(3600)));
    assert_eq!(settings.safe_mode.threshold, 0.999);
    assert_eq!(settings.safe_mode.min_replication, 1);
    assert_eq!(settings.liveness.stale_interval, Duration::from_secs(30));
    assert_eq!(settings.redundancy.invalidate_limit, 1000);
    assert_eq!(settings.edit_log.roll_transactions, 500_000);
    assert_eq!(settings.edit_log.max_record_bytes, 52_428_800);
    assert_eq!(settings.features.lease_hard_limit, Duration::from_secs(1200));
    assert_eq!(settings.rpc.lifeline_handlers, 1);
    assert_eq!(settings.rpc.max_idle, Duration::from_secs(20));
    assert_eq!(settings.groups.overrides.get("dr.who"), Some(&vec![]));
}

#[test]
fn derived_values() {
    let settings = read(&[
        ("dfs.heartbeat.interval", "2m"),
        ("dfs.namenode.heartbeat.recheck-interval", "1000"),
        ("dfs.namenode.accesstime.precision", "0"),
        ("dfs.namenode.lifeline.handler.ratio", "0.5"),
        ("dfs.ls.limit", "0"),
        ("dfs.namenode.rpc-bind-host", "0.0.0.0"),
        ("dfs.namenode.servicerpc-address", "localhost"),
        ("dfs.namenode.rpc-address.auxiliary-ports", "8021, 8022"),
    ])
    .unwrap();
    assert_eq!(settings.redundancy.invalidate_limit, 2400);
    assert_eq!(settings.liveness.stale_interval, Duration::from_secs(360));
    assert_eq!(settings.features.access_time_precision, None);
    assert_eq!((settings.rpc.lifeline_handlers, settings.limits.listing_entries), (5, 1000));
    assert_eq!(settings.addresses.rpc.bind().to_string(), "0.0.0.0:8020");
    assert_eq!(settings.addresses.service_rpc.unwrap().address.to_string(), "localhost:8020");
    assert_eq!(settings.addresses.auxiliary_ports, [8021, 8022]);
}

#[track_caller]
fn check_refused(key: &str, value: &str, expected: &str) {
    assert_eq!(read(&[(key, value)]).expect_err(value).to_string(), expected);
}

#[test]
fn refusals_name_the_key() {
    check_refused("dfs.replication", "x", "For input string: \"x\" (configuration property 'dfs.replication')");
    check_refused(
        "dfs.namenode.http-address",
        "nn_1:8020",
        "Does not contain a valid host:port authority: nn_1:8020 (configuration property 'dfs.namenode.http-address')",
    );
    check_refused("dfs.namenode.rpc-address", "nn_1:8020", "Does not contain a valid host:port authority: nn_1:8020");
    check_refused(
        "dfs.namenode.fs-limits.max-directory-items",
        "0",
        "Cannot set dfs.namenode.fs-limits.max-directory-items to a value less than 1 or greater than 6400000",
    );
    for (value, bound) in [("-1", "> 0"), ("0", "> 0"), ("32769", "<= maximum size hard limit 32768")] {
        let key = "dfs.namenode.fs-limits.max-xattr-size";
        check_refused(key, value, &format!("The maximum size of an xattr should be {bound}: ({key})."));
    }
    check_refused(
        "dfs.namenode.fs-limits.max-xattrs-per-inode",
        "-1",
        "Cannot set a negative limit on the number of xattrs per inode (dfs.namenode.fs-limits.max-xattrs-per-inode).",
    );
    check_refused(
        "fs.defaultFS",
        "file:///",
        "Invalid URI for NameNode address (check fs.defaultFS): file:/// has no authority.",
    );
    for (key, value, rest) in [
        ("dfs.namenode.replication.min", "0", "dfs.namenode.replication.min = 0 <= 0"),
        ("dfs.namenode.maintenance.replication.min", "-1", "dfs.namenode.maintenance.replication.min = -1 < 0"),
        (
            "dfs.namenode.maintenance.replication.min",
            "4",
            "dfs.namenode.maintenance.replication.min = 4 > dfs.replication = 3",
        ),
        ("dfs.replication.max", "40000", "dfs.replication.max = 40000 > 32767"),
        ("dfs.namenode.replication.min", "600", "dfs.namenode.replication.min = 600 > dfs.replication.max = 512"),
    ] {
        check_refused(key, value, &format!("Unexpected configuration parameters: {rest}"));
    }
    check_refused("dfs.batched.ls.limit", "0", "dfs.batched.ls.limit must be greater than zero");
    check_refused(
        "dfs.namenode.stale.datanode.interval",
        "0",
        "dfs.namenode.stale.datanode.interval = '0' is invalid. It should be a positive non-zero value.",
    );
    check_refused(
        "dfs.namenode.shared.edits.dir",
        "file:///sh",
        "Invalid configuration: a shared edits dir must not be specified if HA is not enabled.",
    );
    check_refused(
        "hadoop.security.authentication",
        "x",
        "Invalid attribute value for hadoop.security.authentication of x",
    );
    check_refused("dfs.checksum.type", "MD5", "Invalid checksum type in dfs.checksum.type: MD5");
}

/// An RPC address of its own wins over a default file system that cannot be used.
#[test]
fn rpc_address_wins() {
    for default in ["file:///", "hdfs://nn_1:8020", "hdfs://nn1.example"] {
        let settings = read(&[("fs.defaultFS", default), ("dfs.namenode.rpc-address", "127.0.0.1:8021")]).unwrap();
        assert_eq!(settings.addresses.rpc.bind().to_string(), "127.0.0.1:8021", "with {default}");
    }
}

#[test]
fn odd_booleans_mean_the_default() {
    let configuration = configuration(&[("dfs.permissions.enabled", "no")]);
    let reader = Reader::new(&configuration);
    assert!(Permissions::read(&reader).unwrap().enabled);
    assert_eq!(
        reader.warnings(),
        ["Invalid value for boolean: no, choose default value: true for dfs.permissions.enabled"]
    );
}

/// The sample directories of `conf/` are whole and use nothing we do not honour.
#[test]
fn samples_load() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf");
    let mut seen = Vec::new();
    for entry in std::fs::read_dir(&root).unwrap() {
        let directory = entry.unwrap().path();
        let mut configuration = load(Environment::of_process(), Some(&directory), &Default::default()).unwrap();
        assert!(configuration.properties().any(|(_, p)| p.sources == ["hdfs-site.xml"]), "{directory:?} has no sites");
        let identity = identify(&mut configuration, |host| host == "127.0.0.1" || host == "localhost").unwrap();
        Settings::read(&configuration, identity).unwrap();
        let left = crate::config::not_honoured(&configuration);
        assert!(left.is_empty(), "{directory:?}: {left:?}");
        seen.push(directory.file_name().unwrap().to_string_lossy().into_owned());
    }
    assert!(seen.contains(&"single".to_string()), "{seen:?}");
}
