//! Encryption zones, and how files are encrypted.

use hadoop_proto::hdfs::{
    EncryptionZoneProto, FileEncryptionInfoProto, ReencryptionStateProto, ZoneReencryptionStatusProto,
};
use ops::encryption::{EncryptionZone, FileEncryption};
use ops::read::zones::{Reencrypting, State};

/// How a file is encrypted; suites and versions have the numbers of the wire.
pub fn file(encryption: &FileEncryption) -> FileEncryptionInfoProto {
    let FileEncryption { suite, version, zone_key, data_key } = encryption;
    FileEncryptionInfoProto {
        suite: *suite as i32,
        crypto_protocol_version: *version as i32,
        key: data_key.material.to_vec().into(),
        iv: data_key.iv.to_vec().into(),
        key_name: zone_key.to_string(),
        ez_key_version_name: data_key.key_version.to_string(),
    }
}

/// A zone.
pub fn zone(told: &EncryptionZone) -> EncryptionZoneProto {
    EncryptionZoneProto {
        id: told.id.0,
        path: String::from_utf8_lossy(&told.path).into_owned(),
        suite: told.zone.suite as i32,
        crypto_protocol_version: told.zone.version as i32,
        key_name: told.zone.key.to_string(),
    }
}

/// How far a zone's re-encryption is.
pub fn reencrypting(told: &Reencrypting) -> ZoneReencryptionStatusProto {
    let state = match told.state {
        State::Submitted => ReencryptionStateProto::Submitted,
        State::Processing => ReencryptionStateProto::Processing,
        State::Completed => ReencryptionStateProto::Completed,
    };
    let last = &told.last;
    ZoneReencryptionStatusProto {
        id: told.id.0,
        path: String::from_utf8_lossy(&told.path).into_owned(),
        state: state as i32,
        ez_key_version_name: last.key_version.to_string(),
        submission_time: last.submitted.0,
        canceled: last.cancelled,
        num_reencrypted: last.reencrypted,
        num_failures: last.failures,
        completion_time: Some(last.completed.map_or(0, |time| time.0)),
        last_file: last.last_file.as_deref().map(str::to_owned),
    }
}
