//! Whoever keeps the keys of encryption zones, as the configuration says.

use crate::config::settings::{self, KEY_PROVIDER, Settings, WarmUp};
use crate::config::{ConfigError, Source};
use engine::{Engine, HaState};
use security::jceks::KeyStoreFile;
use security::keys::{KeyProvider, Keys};
use security::kms::{Kms, Truststore};
use server::service::own_caller;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The password of a key store where none is set.
const STORE_PASSWORD: &str = "none";

/// The keeper of keys, asked as `user`; nothing where none is set.
///
/// # Errors
/// It is of a kind that is not known, or cannot be used as it is set: a name node without the keys of its zones is not started.
pub fn keys(settings: &Settings, source: &Source, user: &str) -> Result<Option<Arc<Keys>>, ConfigError> {
    let address = settings.server_defaults.key_provider.as_str();
    let wrong = |problem| ConfigError::Value { key: KEY_PROVIDER.into(), problem };
    let provider: Box<dyn KeyProvider> = match address.split_once("://").map(|(scheme, _)| scheme) {
        _ if address.is_empty() => return Ok(None),
        Some("kms") => {
            let mut asking = settings.keys.asking.clone();
            if address.starts_with("kms://https@") {
                asking.truststore = truststore(&settings.keys, source)?;
            }
            Box::new(Kms::new(address, user, asking).map_err(wrong)?)
        }
        Some("jceks") => {
            let password = store_password(&settings.keys, source)?;
            Box::new(KeyStoreFile::new(address, password).map_err(wrong)?)
        }
        _ => return Err(wrong(format!("Could not instantiate KeyProvider for uri: {address}"))),
    };
    Ok(Some(Arc::new(Keys::new(provider, settings.keys.advance))))
}

/// Whom to trust over TLS (`ssl.client.truststore.*`).
fn truststore(keys: &settings::Keys, source: &Source) -> Result<Option<Truststore>, ConfigError> {
    let tls = source.read_beside(&keys.tls_file)?;
    let [location, password] = settings::KEYS_OF_TRUSTSTORE;
    let path = tls.trimmed(location)?.filter(|path| !path.is_empty());
    let password = tls.trimmed(password)?.filter(|password| !password.is_empty());
    Ok(path.map(|path| Truststore { path: path.into(), password }))
}

fn store_password(keys: &settings::Keys, source: &Source) -> Result<String, ConfigError> {
    if let Ok(password) = std::env::var("HADOOP_KEYSTORE_PASSWORD") {
        return Ok(password);
    }
    let Some(name) = &keys.store_password_file else { return Ok(STORE_PASSWORD.to_owned()) };
    let path = source.directory.as_deref().map(|directory| directory.join(name));
    let read = path.and_then(|path| std::fs::read_to_string(path).ok());
    read.map(|text| text.trim().to_owned())
        .ok_or_else(|| ConfigError::Contradiction(format!("Password file does not exist: {name}")))
}

/// Fetches keys for the files of all zones soon after the start, so that the first files need not wait for them.
pub async fn warm_up(engine: Arc<Engine>, keys: Arc<Keys>, how: WarmUp) {
    tokio::time::sleep(how.delay).await;
    let caller = own_caller(&engine);
    for attempt in 0..how.attempts {
        let names: BTreeSet<Arc<str>> = engine.view("warmUpEdeks", &caller, |view| {
            let tree = &view.state.tree;
            tree.zones().filter_map(|root| Some(tree.own_zone(root)?.key)).collect()
        });
        if names.is_empty() || engine.gate().state() != HaState::Active {
            return;
        }
        let (count, keys) = (names.len(), keys.clone());
        let filled = tokio::task::spawn_blocking(move || names.iter().try_for_each(|name| keys.warm_up(name))).await;
        match filled {
            Ok(Ok(())) => {
                tracing::info!("Successfully warmed up {count} EDEKs.");
                return;
            }
            Ok(Err(error)) => tracing::info!("Failed to warm up EDEKs: {error}"),
            Err(error) => tracing::error!("Cannot warm up EDEKs: {error}"),
        }
        if attempt + 1 == how.attempts {
            tracing::warn!("Max retry {} reached, unable to warm up EDEKs.", how.attempts);
        }
        tokio::time::sleep(how.interval).await;
    }
}
