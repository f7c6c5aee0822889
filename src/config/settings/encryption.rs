//! Encryption zones: who keeps their keys, and how files are re-encrypted.

use super::reader::Reader;
use crate::config::ConfigError;
use crate::config::values::Unit;
use security::keys::Advance;
use security::kms::Asking;
use std::time::Duration;

/// Address of who keeps the keys of encryption zones.
pub const KEY_PROVIDER: &str = "hadoop.security.key.provider.path";
/// Path and password of the truststore, in the file with settings of TLS.
pub const KEYS_OF_TRUSTSTORE: [&str; 2] = ["ssl.client.truststore.location", "ssl.client.truststore.password"];

/// Who keeps the keys of encryption zones is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// How, as far as it does not depend on other files (`hadoop.security.kms.client.*`).
    pub asking: Asking,
    /// The file with settings of TLS (`hadoop.ssl.client.conf`).
    pub tls_file: String,
    /// Keys for files that are fetched in advance (`hadoop.security.kms.client.encrypted.key.cache.*`).
    pub advance: Advance,
    /// Fetching them at the start.
    pub warm_up: WarmUp,
    /// File with the password of a key store, in the configuration's folder (`hadoop.security.keystore.java-keystore-provider.password-file`).
    pub store_password_file: Option<String>,
}

/// Keys for files are fetched at the start for all zones (`dfs.namenode.edekcacheloader.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// So long after the start.
    pub delay: Duration,
    /// So long after a failure.
    pub interval: Duration,
    /// So often.
    pub attempts: u32,
}

impl Keys {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Keys, ConfigError> {
        let milliseconds = |key| reader.amount(key, 0).map(Duration::from_millis);
        let failovers = reader.non_empty("hadoop.security.kms.client.failover.max.retries")?;
        let failovers = failovers.map(|_| reader.count("hadoop.security.kms.client.failover.max.retries", 0));
        Ok(Keys {
            asking: Asking {
                timeout: Duration::from_secs(reader.amount("hadoop.security.kms.client.timeout", 1)?),
                authentications: reader.count("hadoop.security.kms.client.authentication.retry-count", 0)?,
                failovers: failovers.transpose()?,
                pause: milliseconds("hadoop.security.kms.client.failover.sleep.base.millis")?,
                pause_max: milliseconds("hadoop.security.kms.client.failover.sleep.max.millis")?,
                truststore: None,
            },
            tls_file: reader.text("hadoop.ssl.client.conf")?,
            advance: Advance {
                size: reader.count("hadoop.security.kms.client.encrypted.key.cache.size", 1)? as usize,
                low: reader.float("hadoop.security.kms.client.encrypted.key.cache.low-watermark")?,
                expiry: milliseconds("hadoop.security.kms.client.encrypted.key.cache.expiry")?,
            },
            warm_up: WarmUp {
                delay: milliseconds("dfs.namenode.edekcacheloader.initial.delay.ms")?,
                interval: milliseconds("dfs.namenode.edekcacheloader.interval.ms")?,
                attempts: reader.count("dfs.namenode.edekcacheloader.max-retries", 0)?,
            },
            store_password_file: reader.non_empty("hadoop.security.keystore.java-keystore-provider.password-file")?,
        })
    }
}

/// Re-encryption of zones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reencryption {
    /// How often it is looked whether a zone waits (`dfs.namenode.reencrypt.sleep.interval`).
    pub interval: Duration,
    /// Files of one batch (`dfs.namenode.reencrypt.batch.size`).
    pub batch: u32,
    /// Batches that are with the key server at once (`dfs.namenode.reencrypt.edek.threads`).
    pub threads: u32,
    /// Part of the time in which the lock may be held to look for files (`dfs.namenode.reencrypt.throttle.limit.handler.ratio`).
    pub looking: f64,
    /// The same to change them (`dfs.namenode.reencrypt.throttle.limit.updater.ratio`).
    pub changing: f64,
}

impl Reencryption {
    pub(super) fn read(reader: &Reader<'_>) -> Result<Reencryption, ConfigError> {
        let positive = |key: &'static str, holds: bool| {
            if holds { Ok(()) } else { Err(ConfigError::Contradiction(format!("{key} is not positive."))) }
        };
        let ratio = |key| {
            let ratio = reader.double(key)?;
            positive(key, ratio > 0.0).map(|()| ratio)
        };
        let interval = reader.duration("dfs.namenode.reencrypt.sleep.interval", Unit::Milliseconds)?;
        positive("dfs.namenode.reencrypt.sleep.interval", !interval.is_zero())?;
        let batch = reader.int("dfs.namenode.reencrypt.batch.size")?;
        positive("dfs.namenode.reencrypt.batch.size", batch > 0)?;
        Ok(Reencryption {
            interval,
            batch: batch.unsigned_abs(),
            threads: reader.count("dfs.namenode.reencrypt.edek.threads", 1)?,
            looking: ratio("dfs.namenode.reencrypt.throttle.limit.handler.ratio")?,
            changing: ratio("dfs.namenode.reencrypt.throttle.limit.updater.ratio")?,
        })
    }
}
