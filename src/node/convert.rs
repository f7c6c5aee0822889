//! From the configuration's settings to those of each layer: the one place where a key's value meets its consumer.

use crate::config::settings::{Apart, LeavingWalks, Named, PlacementPolicy, ProxyUser, RackMapping, Rpc, Settings};
use security::groups::{GroupSettings, Provider};
use security::proxy::{Allowed, Hosts, Network, ProxyRule, ProxyRules};
use security::service::AccessList;
use server::service::reencryption::Pace;
use server::service::topology::Mapping;
use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;
use vocab::Policy;

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What operations obey. `owner` is the user this process runs as, the superuser.
pub fn operations(settings: &Settings, owner: &str) -> ops::Settings {
    let Settings { limits, features, permissions, server_defaults: defaults, redundancy, .. } = settings;
    ops::Settings {
        block_pool: "".into(), // known once the directories are read, as the next
        created: vocab::TimeMs(0),
        permissions: permissions.enabled,
        owner: owner.into(),
        super_group: permissions.superuser_group.as_str().into(),
        acls: features.acls,
        acl_inheritance: features.posix_acl_inheritance,
        xattrs: features.xattrs,
        xattrs_per_inode: limits.xattrs_per_inode as usize,
        xattr_size: size(limits.xattr_bytes),
        component_length: size(limits.component_bytes),
        directory_items: limits.directory_items as usize,
        block_size_min: limits.min_block_bytes,
        blocks_per_file: size(limits.blocks_per_file),
        objects_max: limits.objects,
        replication: redundancy.replication,
        replication_min: redundancy.min_replication,
        replication_max: redundancy.max_replication,
        block_size: defaults.block_bytes,
        bytes_per_checksum: defaults.bytes_per_checksum,
        checksum_type: defaults.checksum as u8,
        write_packet_size: defaults.packet_bytes,
        file_buffer_size: defaults.buffer_bytes,
        encrypt_data_transfer: defaults.encrypt_data_transfer,
        trash_interval: defaults.trash_interval_minutes.max(0).unsigned_abs(),
        key_provider: Some(defaults.key_provider.as_str()).filter(|uri| !uri.is_empty()).map(Into::into),
        snapshot_trash_root: defaults.snapshot_trash_root,
        access_time_precision_ms: features.access_time_precision.map_or(0, milliseconds),
        listing_limit: limits.listing_entries as usize,
        snapshots_of_directory: features.snapshots_of_directory as usize,
        snapshots_of_all: features.snapshots_of_all as usize,
        snapshot_changes_listed: features.snapshot_changes_listed as usize,
        snapshot_reports_below: features.snapshot_reports_below,
        batched_listing_limit: limits.batched_listing_paths as usize,
        open_files_limit: limits.open_files_listed as usize,
        zones_listed: limits.zones_listed as usize,
        reencryption_listed: limits.reencryption_listed as usize,
        events_per_call: limits.events_per_call,
        record_bytes_max: settings.edit_log.max_record_bytes as usize,
        cache_pools_listed: settings.caching.pools_listed as usize,
        cache_directives_listed: settings.caching.directives_listed as usize,
        summary_slice: limits.summary_slice as usize,
        summary_rest_micros: limits.summary_rest_micros,
        corrupt_files_limit: limits.corrupt_files_returned as usize,
        summary_checks_subtree: permissions.content_summary_checks_below,
        committed_blocks_allowed: features.committed_blocks_at_close as usize,
        lease_hard_limit_ms: milliseconds(features.lease_hard_limit),
        replace_datanode: settings.placement.replace_failed_node,
        storage_policies: features.storage_policies,
        quota_by_kind: features.quota_by_storage_type,
        owner_sets_quota: permissions.owner_sets_quota,
        protected_directories: features.protected_directories.iter().map(|path| path.clone().into_bytes()).collect(),
        protected_subdirectories: features.protect_below,
        erasure_coding_default: features.erasure_coding_default.as_str().into(),
        erasure_coding_cell_max: features.erasure_coding_cell_max,
        erasure_coding_user_defined: features.erasure_coding_user_defined,
        storage_policy_satisfier: features.storage_policy_satisfier,
        satisfier_queue: features.satisfier_queue as usize,
        default_policy: features.default_policy,
        storage_policies_of_superusers: features.storage_policies_of_superusers,
        get_blocks_is_a_read: features.get_blocks_is_a_read,
        symlinks: false,
        ..of_tokens(settings)
    }
}

/// What operations on tokens obey; all else as it is without a configuration.
fn of_tokens(settings: &Settings) -> ops::Settings {
    ops::Settings {
        tokens: settings.tokens.always_use,
        token_key_interval_ms: milliseconds(settings.tokens.key_interval),
        token_lifetime_ms: milliseconds(settings.tokens.lifetime),
        token_renewal_ms: milliseconds(settings.tokens.renewal),
        ..ops::Settings::default()
    }
}

/// What changes how a record is applied.
pub fn policy(settings: &Settings) -> Policy {
    Policy {
        ordered_snapshot_deletion: settings.features.ordered_snapshot_deletion,
        snapshot_captures_open_files: settings.features.snapshots_capture_open_files,
        snapshot_skips_access_time: settings.features.snapshots_skip_access_time,
        replication_min: settings.redundancy.min_replication,
        replication_max: settings.redundancy.max_replication,
        retry_cache: settings.retry_cache.enabled,
        ..Policy::default()
    }
}

/// What the block half obeys.
pub fn blocks(settings: &Settings) -> blocks::Settings {
    let Settings { redundancy, placement, liveness, slow_nodes, block_reports, .. } = settings;
    let Settings { datanode_hosts, topology, safe_mode, .. } = settings;
    blocks::Settings {
        replication_min: redundancy.min_replication,
        replication_default: redundancy.replication,
        replication_max: redundancy.max_replication,
        heartbeat_interval_ms: milliseconds(liveness.heartbeat_interval),
        heartbeat_recheck_ms: milliseconds(liveness.recheck_interval),
        stale_interval_ms: milliseconds(liveness.stale_interval),
        avoid_stale_for_read: placement.avoid_stale_for_read,
        random_for_read: placement.random_for_read,
        load_for_read: placement.load_for_read,
        medium_for_read: placement.medium_for_read,
        tolerated_heartbeats: placement.tolerated_heartbeats.into(),
        peer_stats: slow_nodes.peers,
        disk_stats: slow_nodes.disks,
        outlier_interval_ms: milliseconds(slow_nodes.interval),
        slow_nodes_reported: slow_nodes.nodes_shown as usize,
        slow_disks_reported: slow_nodes.disks_shown as usize,
        slow_nodes_collected: slow_nodes.nodes_avoided as usize,
        slow_collect_interval_ms: milliseconds(slow_nodes.collect),
        avoid_slow_for_read: slow_nodes.avoid_for_read,
        avoid_slow_for_write: slow_nodes.avoid_for_write,
        avoid_stale_for_write: placement.avoid_stale_for_write,
        stale_write_ratio: placement.stale_ratio_for_write,
        consider_load: placement.consider_load,
        consider_load_factor: placement.load_factor,
        consider_load_by_kind: placement.load_by_kind,
        consider_load_by_volume: placement.load_by_volume,
        prefer_local_node: placement.prefer_local,
        spread_evenly: matches!(placement.policy, PlacementPolicy::Known { evenly: true, .. }),
        apart: apart(&placement.policy),
        available_space: available_space(&placement.policy),
        min_blocks_for_write: placement.min_blocks_of_space.into(),
        max_streams: redundancy.max_streams,
        max_streams_hard: redundancy.max_streams_hard,
        invalidate_limit: redundancy.invalidate_limit as usize,
        invalidate_node_share: redundancy.invalidate_share,
        work_multiplier: redundancy.work_multiplier,
        queue_restart_rounds: redundancy.queue_restart_rounds,
        redundancy_interval_ms: milliseconds(redundancy.interval),
        pending_timeout_ms: milliseconds(redundancy.pending_timeout),
        excess_timeout_ms: milliseconds(redundancy.excess_timeout),
        startup_deletion_delay_ms: milliseconds(redundancy.deletion_delay),
        delete_corrupt_immediately: redundancy.delete_corrupt_immediately,
        postponed_rescan: size(redundancy.postponed_rescan),
        report_leases_max: block_reports.leases as usize,
        report_lease_ms: milliseconds(block_reports.lease_length),
        check_host_name: datanode_hosts.check_hostname,
        minimum_datanode_version: datanode_hosts.min_version.clone(),
        reject_unresolved_topology: topology.reject_unresolved,
        safe_threshold: safe_mode.threshold,
        queues_threshold: safe_mode.queues_threshold,
        safe_datanodes_min: safe_mode.min_datanodes,
        safe_replication_min: safe_mode.min_replication,
        safe_extension_ms: milliseconds(safe_mode.extension),
        maintenance_replication_min: redundancy.maintenance_replication,
        decommission_interval_ms: milliseconds(redundancy.leaving_interval),
        decommission_blocks_per_interval: redundancy.leaving_blocks,
        decommission_tracked_max: redundancy.leaving_nodes as usize,
        decommission_backoff: backoff(&redundancy.leaving_walks),
        default_policy: settings.features.default_policy,
        caching: settings.caching.enabled,
        caching_retry_ms: milliseconds(settings.caching.retry),
        storage_policies: settings.features.storage_policies,
    }
}

/// Blocks that wait and that are looked at at a time, where leaving nodes are walked that way.
fn backoff(walks: &LeavingWalks) -> Option<(usize, usize)> {
    match *walks {
        LeavingWalks::Backoff { waiting, at_a_time } => Some((waiting as usize, at_a_time as usize)),
        _ => None,
    }
}

fn apart(policy: &PlacementPolicy) -> blocks::Apart {
    match policy {
        PlacementPolicy::Known { apart: Apart::UpgradeDomains(factor), .. } => {
            blocks::Apart::UpgradeDomains(*factor as usize)
        }
        PlacementPolicy::Known { apart: Apart::NodeGroups, .. } => blocks::Apart::NodeGroups,
        _ => blocks::Apart::Racks,
    }
}

fn available_space(policy: &PlacementPolicy) -> Option<blocks::AvailableSpace> {
    let PlacementPolicy::Known { space: Some(space), .. } = policy else { return None };
    Some(blocks::AvailableSpace {
        preference: space.preference,
        tolerance: space.tolerance,
        tolerance_limit: space.tolerance_limit,
        local: space.local,
    })
}

/// The emptier of the trash, if there is trash.
pub fn trash(settings: &Settings) -> Option<server::trash::Trash> {
    let defaults = &settings.server_defaults;
    let minutes = |minutes: i64| u64::try_from(minutes).unwrap_or(0);
    let (keep, every) = (minutes(defaults.trash_interval_minutes), minutes(defaults.trash_round_minutes));
    server::trash::Trash::new(keep, every, defaults.trash_cleans_root, defaults.homes.clone())
}

/// What the pages obey. `logs` is the folder of logs, if there is one.
pub fn web(settings: &Settings, logs: Option<std::path::PathBuf>) -> server::http::WebSettings {
    let (http, checkpoints) = (&settings.http, &settings.checkpoints);
    server::http::WebSettings {
        frame_options: http.frame_options.clone(),
        static_user: http.static_user.clone(),
        prometheus: http.prometheus,
        administrators: http.administrators.as_deref().map(AccessList::parse),
        log_readers: http.log_readers.as_deref().map(AccessList::parse),
        logs: logs.filter(|_| http.logs).map(|folder| server::http::Logs { folder, aliases: http.log_aliases }),
        levels: super::logging::levels(),
        transfers: server::http::Transfers {
            bytes_per_second: checkpoints.transfer_bytes_per_second,
            period: checkpoints.period,
            transactions: checkpoints.transactions,
        },
    }
}

/// A port with this many handlers.
pub fn port(rpc: &Rpc, handlers: u32, caller_context: bool) -> rpc::Settings {
    rpc::Settings {
        request_bytes_max: rpc.max_request_bytes,
        in_flight_max: handlers.saturating_mul(rpc.queue_per_handler) as usize,
        connections_max: rpc.max_connections as usize,
        idle_threshold: rpc.idle_threshold as usize,
        idle_after: rpc.max_idle,
        idle_scan: rpc.idle_scan_interval.max(Duration::from_millis(1)),
        idle_close_max: rpc.idle_closed_at_a_time as usize,
        backlog: rpc.listen_backlog,
        caller_context,
        ..rpc::Settings::default()
    }
}

/// Where groups come from. A mapping that is not known was refused before.
pub fn groups(settings: &Settings) -> GroupSettings {
    let groups = &settings.groups;
    GroupSettings {
        provider: groups.mapping.clone().unwrap_or(Provider::Nobody),
        overrides: groups
            .overrides
            .iter()
            .map(|(user, groups)| (user.clone(), groups.iter().map(|group| group.as_str().into()).collect()))
            .collect(),
        ttl: groups.cache,
        negative_ttl: groups.negative_cache,
        background: groups.background as usize,
        warn_after: groups.warn_after,
    }
}

/// Who may act for whom. Host names are resolved here, once; those that cannot be are no hosts.
pub fn proxy_rules(settings: &Settings) -> ProxyRules {
    let rules: HashMap<_, _> =
        settings.proxy_users.iter().map(|(user, rule)| (user.clone(), proxy_rule(rule))).collect();
    ProxyRules::new(rules)
}

fn proxy_rule(user: &ProxyUser) -> ProxyRule {
    let allowed = |named: &Named| match named {
        Named::Nobody => Allowed::None,
        Named::Everybody => Allowed::All,
        Named::These(names) => Allowed::Some(names.iter().cloned().collect()),
    };
    let hosts = match &user.hosts {
        Named::Nobody => Hosts::None,
        Named::Everybody => Hosts::All,
        Named::These(names) => Hosts::Networks(names.iter().flat_map(|name| networks(name)).collect()),
    };
    ProxyRule { hosts, groups: allowed(&user.groups), users: allowed(&user.users) }
}

/// The networks of an address, a range or a name.
pub(super) fn networks(host: &str) -> Vec<Network> {
    if let Some(network) = Network::parse(host) {
        return vec![network];
    }
    let addresses = (host, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect::<Vec<IpAddr>>());
    if let Err(error) = &addresses {
        tracing::warn!("proxy host {host} cannot be resolved: {error}");
    }
    addresses.unwrap_or_default().iter().filter_map(|address| Network::parse(&address.to_string())).collect()
}

/// Where racks come from. A mapping that is not known was refused before.
pub fn racks(settings: &Settings) -> Mapping {
    let topology = &settings.topology;
    match (&topology.mapping, &topology.script, &topology.table) {
        (RackMapping::Script, Some(script), _) => {
            Mapping::Script { program: script.clone(), arguments_max: topology.script_arguments as usize }
        }
        (RackMapping::Table, _, Some(table)) => Mapping::Table(table.clone()),
        _ => Mapping::OneRack,
    }
}

/// How re-encryption works.
pub fn reencryption(settings: &Settings) -> Pace {
    let crate::config::settings::Reencryption { interval, batch, threads, looking, changing } = settings.reencryption;
    Pace { interval, batch: batch as usize, threads: threads as usize, looking, changing }
}
