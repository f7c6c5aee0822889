//! Encryption zones, and files in them. Whoever keeps the keys is asked without the lock, and on a thread that may wait.

use super::super::convert::encryption;
use super::super::{Answer, EMPTY, decode, message, superuser};
use super::namespace::create;
use super::{Request, refused};
use engine::Decided;
use hadoop_proto::hdfs::{
    CreateEncryptionZoneRequestProto, GetEnclosingRootRequestProto, GetEnclosingRootResponseProto,
    GetEzForPathRequestProto, GetEzForPathResponseProto, ListEncryptionZonesRequestProto,
    ListEncryptionZonesResponseProto, ListReencryptionStatusRequestProto, ListReencryptionStatusResponseProto,
    ReencryptActionProto, ReencryptEncryptionZoneRequestProto,
};
use hadoop_proto::view::client as view;
use observe::RemoteException;
use ops::Operation;
use ops::read::zones::{get_enclosing_root, get_zone, list_reencryption, list_zones};
use ops::write::reencrypt::{ReencryptZone, Wanted, key_of_root};
use ops::write::zones::CreateEncryptionZone;
use security::keys::{EncryptedKey, KeyError, Keys};
use std::sync::Arc;
use vocab::Refusal;
use vocab::encryption::{DataKey, suite_of_cipher};

/// A key for a file, with the name of the zone's key.
pub(super) type GivenKey = (Arc<str>, DataKey);

/// What the next create is to have.
pub(super) enum KeyOfFile {
    /// Nothing: the path lies in no zone.
    None,
    /// This key.
    Ready(GivenKey),
    /// One that has to be waited for, of this zone key.
    Awaited(Arc<str>),
}

pub(super) fn encryption_zones(request: &Request<'_>) -> Answer {
    let asked: ListEncryptionZonesRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "listEncryptionZones")?;
    let (zones, has_more) = request.read(|v| Ok(list_zones(v, asked.id)))?;
    message(&ListEncryptionZonesResponseProto { zones: zones.iter().map(encryption::zone).collect(), has_more })
}

pub(super) fn reencryption(request: &Request<'_>) -> Answer {
    let asked: ListReencryptionStatusRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "listReencryptionStatus")?;
    let (listed, has_more) =
        request.read(|v| Ok(list_reencryption(v, asked.id, request.shared.reencrypting.zone())))?;
    let statuses = listed.iter().map(encryption::reencrypting).collect();
    message(&ListReencryptionStatusResponseProto { statuses, has_more })
}

pub(super) fn zone_of_path(request: &Request<'_>) -> Answer {
    let asked: GetEzForPathRequestProto = decode(request.body.clone())?;
    let zone = request.read(|v| get_zone(v, asked.src.as_bytes()))?;
    message(&GetEzForPathResponseProto { zone: zone.as_ref().map(encryption::zone) })
}

pub(super) fn enclosing_root(request: &Request<'_>) -> Answer {
    let asked: GetEnclosingRootRequestProto = decode(request.body.clone())?;
    let root = request.read(|v| get_enclosing_root(v, asked.filename().as_bytes()))?;
    let root = String::from_utf8_lossy(&root).into_owned();
    message(&GetEnclosingRootResponseProto { enclosing_root_path: Some(root) })
}

fn failed(text: impl Into<Arc<str>>) -> RemoteException {
    Refusal::io(text).into()
}

/// Runs what waits for the keeper of keys apart from the threads that serve connections.
async fn apart<R: Send + 'static>(
    keys: &Arc<Keys>,
    work: impl FnOnce(&Keys) -> Result<R, KeyError> + Send + 'static,
) -> Result<R, RemoteException> {
    let keys = keys.clone();
    let done = tokio::task::spawn_blocking(move || work(&keys)).await;
    done.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.0))
}

/// The key must exist before a directory is made the root of a zone.
pub(super) async fn create_zone(request: &Request<'_>) -> Answer {
    let asked: CreateEncryptionZoneRequestProto = decode(request.body.clone())?;
    let (path, key) = (asked.src.clone(), asked.key_name.clone().unwrap_or_default());
    superuser(request.shared, request.caller, "createEncryptionZone")?;
    let Some(keys) = &request.shared.keys else {
        let text = format!("Can't create an encryption zone for {path} since no key provider is available.");
        return Err(failed(text));
    };
    if key.is_empty() {
        return Err(failed("Must specify a key name when creating an encryption zone"));
    }
    let name = key.clone();
    let cipher = apart(keys, move |keys| keys.provider().cipher(&name)).await?;
    let cipher = cipher.ok_or_else(|| failed(format!("Key {key} doesn't exist.")))?;
    let suite = suite_of_cipher(&cipher).ok_or_else(|| {
        let text = format!("Invalid cipher suite name: {cipher}");
        RemoteException::from(Refusal::IllegalArgument(text.into()))
    })?;
    fill(keys, &key);
    let operation = CreateEncryptionZone { path: path.into_bytes(), suite, key: key.into() };
    let decided = request.write(operation, |()| Ok(EMPTY))?;
    request.shared.engine.fence(decided).await
}

/// Fetches keys in advance, in the background.
fn fill(keys: &Arc<Keys>, key: &str) {
    let (keys, key) = (keys.clone(), key.to_owned());
    tokio::task::spawn_blocking(move || {
        if let Err(error) = keys.fill(&key) {
            tracing::warn!("no keys in advance for {key}: {error}");
        }
    });
}

fn given(zone_key: Arc<str>, key: EncryptedKey) -> GivenKey {
    let EncryptedKey { version: key_version, iv, material } = key;
    (zone_key, DataKey { material, iv, key_version })
}

/// What key the file needs that a request is to make.
pub(super) fn key_of_file(request: &Request<'_>) -> KeyOfFile {
    let Some(keys) = &request.shared.keys else { return KeyOfFile::None };
    let zone_key = request.shared.engine.view(Operation::Create.row().method, request.caller, |v| {
        if !v.state.tree.has_zones() {
            return None;
        }
        // what is wrong with the request is told by the create itself
        let path = view::CreateRequest::parse(request.body).ok()?.src.to_str().into_owned();
        let resolved = v.resolve_unchecked(path.as_bytes()).ok().filter(|resolved| !resolved.raw)?;
        Some(v.zone_of_path(&resolved)?.1.key)
    });
    let Some(zone_key) = zone_key else { return KeyOfFile::None };
    let (ready, is_low) = keys.take_ready(&zone_key);
    match ready {
        Some(key) => {
            if is_low {
                fill(keys, &zone_key);
            }
            KeyOfFile::Ready(given(zone_key, key))
        }
        None => KeyOfFile::Awaited(zone_key),
    }
}

/// A file for which no key is ready yet.
pub(super) async fn create_when_there_is_a_key(request: &Request<'_>) -> Answer {
    let key = match (key_of_file(request), &request.shared.keys) {
        (KeyOfFile::Ready(key), _) => Some(key),
        (KeyOfFile::Awaited(zone_key), Some(keys)) => {
            // a standby has nothing to fetch keys for
            request.shared.engine.pass(Operation::Create).map_err(|refusal| refused(refusal, "create"))?;
            let name = zone_key.clone();
            let key = apart(keys, move |keys| keys.take(&name)).await?;
            fill(keys, &zone_key);
            Some(given(zone_key, key))
        }
        _ => None,
    };
    let decided: Decided<Answer> = create(request, key)?;
    request.shared.engine.fence(decided).await
}

/// Has a zone's files encrypted anew, in the background, or no longer.
pub(super) async fn reencrypt(request: &Request<'_>) -> Answer {
    let asked: ReencryptEncryptionZoneRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "reencryptEncryptionZone")?;
    request.read(|_| Ok(()))?;
    let Some(keys) = &request.shared.keys else {
        return Err(failed("No key provider configured, re-encryption operation is rejected"));
    };
    let path = asked.zone.clone().into_bytes();
    let wanted = match asked.action() {
        ReencryptActionProto::CancelReencrypt => Wanted::Cancel,
        ReencryptActionProto::StartReencrypt => {
            let key = request.read(|v| key_of_root(v, &path))?;
            let version = apart(keys, move |keys| {
                // a version that was made in the meantime counts
                keys.forget(&key);
                keys.take(&key)
            });
            Wanted::Start(version.await?.version)
        }
    };
    let decided = request.write(ReencryptZone { path, wanted }, |()| Ok(EMPTY))?;
    let answer = request.shared.engine.fence(decided).await;
    if answer.is_ok() {
        request.shared.reencrypting.submitted();
    }
    answer
}
