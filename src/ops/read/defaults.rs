//! getServerDefaults.

use crate::View;
use std::sync::Arc;

/// What a client takes from the server where its own configuration says nothing (Hadoop's `FsServerDefaults`).
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // as in the message
pub struct ServerDefaults {
    pub block_size: u64,
    pub bytes_per_checksum: u32,
    pub write_packet_size: u32,
    pub replication: u16,
    pub file_buffer_size: u32,
    pub encrypt_data_transfer: bool,
    pub trash_interval: u64,
    pub checksum_type: u8,
    pub key_provider: Option<Arc<str>>,
    pub storage_policy: u8,
    pub snapshot_trash_root: bool,
}

/// getServerDefaults.
pub fn get_server_defaults(view: &View<'_>) -> ServerDefaults {
    let s = view.settings;
    ServerDefaults {
        block_size: s.block_size,
        bytes_per_checksum: s.bytes_per_checksum,
        write_packet_size: s.write_packet_size,
        replication: s.replication,
        file_buffer_size: s.file_buffer_size,
        encrypt_data_transfer: s.encrypt_data_transfer,
        trash_interval: s.trash_interval,
        checksum_type: s.checksum_type,
        key_provider: s.key_provider.clone(),
        storage_policy: s.default_policy,
        snapshot_trash_root: s.snapshot_trash_root,
    }
}
