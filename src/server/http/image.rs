//! `/imagetransfer`: images and finished segments for checkpointers and administrators, and the images that checkpointers bring
//! (Hadoop's `ImageServlet`).

use super::{Parameters, Remote, Web, refuse};
use crate::service::Shared;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::HaState;
use futures_util::StreamExt;
use os::disk::Open;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use storage::transfer::{self, Served, Upload};
use tokio::sync::mpsc;
use vocab::Txid;

/// Bytes read from the disk at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Chunks that wait for the network, or for the disk.
const CHUNKS_WAITING: usize = 4;
/// An image that comes this much before its time is taken all the same: clocks of checkpointers are not ours.
const EARLY: f64 = 0.75;

type Asking = HashMap<String, String>;

/// Limits of transfers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfers {
    /// Most bytes a second of one image, 0 for no limit (`dfs.image.transfer.bandwidthPerSec`).
    pub bytes_per_second: u64,
    /// An image before this time is over since the last one is not taken (`dfs.namenode.checkpoint.period`), unless
    pub period: Duration,
    /// it is this many transactions newer (`dfs.namenode.checkpoint.txns`).
    pub transactions: u64,
}

/// What is asked for.
enum Asked {
    Image(Option<Txid>),
    Segment(Txid, Txid),
}

fn number(parameters: &Asking, name: &str) -> Option<u64> {
    parameters.get(name)?.parse::<i64>().ok().map(|n| n as u64)
}

fn asked(parameters: &Asking) -> Option<Asked> {
    let txid = |name: &str| number(parameters, name).map(Txid);
    let is = |name: &str| parameters.contains_key(name);
    match (is("getimage"), is("getedit")) {
        (true, false) if parameters.get("txid").is_some_and(|txid| txid == "latest") => Some(Asked::Image(None)),
        (true, false) => Some(Asked::Image(Some(txid("txid")?))),
        (false, true) => Some(Asked::Segment(txid("startTxId")?, txid("endTxId")?)),
        _ => None,
    }
}

/// What identifies the storage: a checkpointer of another name space gets nothing.
fn storage_text(shared: &Shared) -> String {
    let own = &shared.identity.storage;
    format!("{}:{}:{}:{}", own.layout_version, own.namespace_id, own.c_time, own.cluster_id)
}

fn other_storage(shared: &Shared, parameters: &Asking) -> Option<Response> {
    let (own, theirs) = (storage_text(shared), parameters.get("storageInfo")?);
    (own != *theirs).then(|| {
        let text = format!("This namenode has storage info {own} but the secondary expected {theirs}");
        refuse(StatusCode::FORBIDDEN, &text)
    })
}

fn loading() -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "The name node has not loaded its image yet.")
}

fn get_failed(what: &str) -> Response {
    refuse(StatusCode::GONE, &format!("GetImage failed. java.io.IOException: {what}"))
}

/// A file with its digest in the headers.
pub(super) async fn get(State(web): State<Arc<Web>>, Parameters(parameters): Parameters) -> Response {
    let Some(shared) = web.node.get().and_then(|node| node.shared()) else { return loading() };
    let Some(wanted) = asked(&parameters) else { return get_failed("Illegal parameters to TransferFsImage") };
    if let Some(refused) = other_storage(&shared, &parameters) {
        return refused;
    }
    let (looking, missing) = (shared.clone(), missing(&wanted));
    let found = tokio::task::spawn_blocking(move || find(&looking, &wanted)).await;
    match found.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic())) {
        Ok(Some(file)) => send(&shared, file, web.settings.transfers.bytes_per_second),
        Ok(None) => get_failed(&missing),
        Err(error) => get_failed(&error.to_string()),
    }
}

fn missing(wanted: &Asked) -> String {
    match wanted {
        Asked::Image(Some(txid)) => format!("Could not find image with txid {}", txid.0),
        Asked::Segment(first, last) => format!("No edits file for range {}-{}", first.0, last.0),
        Asked::Image(None) => "Could not find image".to_owned(),
    }
}

fn find(shared: &Shared, wanted: &Asked) -> Result<Option<Served>, storage::StorageError> {
    let checkpoints = shared.engine.checkpoints();
    let disk = &*checkpoints.os.disk;
    match wanted {
        Asked::Image(txid) => transfer::image(disk, &checkpoints.image_folders.lock().clone(), *txid),
        Asked::Segment(first, last) => transfer::segment(disk, &checkpoints.edits_folders, *first, *last),
    }
}

fn send(shared: &Arc<Shared>, file: Served, bytes_per_second: u64) -> Response {
    let (chunks, mut receiver) = mpsc::channel(CHUNKS_WAITING);
    let (disk, path) = (shared.engine.checkpoints().os.disk.clone(), file.path.clone());
    tokio::task::spawn_blocking(move || {
        let failed = |error: std::io::Error| {
            tracing::error!(path = %path.display(), %error, "the file was not sent whole");
            // the reader sees a body that is too short
            _ = chunks.blocking_send(Err(error));
        };
        let opened = match disk.open(&path, Open::Read) {
            Ok(opened) => opened,
            Err(error) => return failed(error),
        };
        let (mut at, since) = (0, Instant::now());
        loop {
            let mut chunk = vec![0; CHUNK_BYTES];
            match opened.read_at(&mut chunk, at) {
                Ok(0) => return,
                Ok(read) => {
                    chunk.truncate(read);
                    at += read as u64;
                    if chunks.blocking_send(Ok(Bytes::from(chunk))).is_err() {
                        return;
                    }
                    throttle(at, bytes_per_second, since);
                }
                Err(error) => return failed(error),
            }
        }
    });
    let body = Body::from_stream(futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx)));
    let mut headers = HeaderMap::new();
    let mut set = |name: &'static str, value: String| {
        if let Ok(value) = value.parse() {
            headers.insert(name, value);
        }
    };
    set("content-length", file.length.to_string());
    set("content-disposition", format!("attachment; filename={}", file.name));
    set("x-image-edits-name", file.name);
    if let Some(digest) = file.digest {
        set("x-md5-digest", digest);
    }
    (headers, [(header::CONTENT_TYPE, "application/octet-stream")], body).into_response()
}

/// Sleeps while more was sent than the limit allows.
fn throttle(sent: u64, bytes_per_second: u64, since: Instant) {
    if bytes_per_second > 0 {
        let due = Duration::from_secs_f64(sent as f64 / bytes_per_second as f64);
        std::thread::sleep(due.saturating_sub(since.elapsed()));
    }
}

/// Takes an image that a checkpointer made, with its digest. Its content is not looked at before the next start, as in Hadoop.
pub(super) async fn put(
    State(web): State<Arc<Web>>,
    ConnectInfo(remote): ConnectInfo<Remote>,
    Parameters(parameters): Parameters,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(shared) = web.node.get().and_then(|node| node.shared()) else { return loading() };
    let failed = |what: &str| refuse(StatusCode::GONE, &format!("PutImage failed. java.io.IOException: {what}"));
    let (Some(txid), Some(length)) = (number(&parameters, "txid"), number(&parameters, "File-Length")) else {
        return failed("Illegal parameters to TransferFsImage");
    };
    let txid = Txid(txid);
    if let Some(refused) = other_storage(&shared, &parameters) {
        return refused;
    }
    let state = shared.engine.gate().state();
    if state != HaState::Active {
        let text = format!(
            "Namenode is currently not in a state which can accept upload of new fsimages. State: {}",
            state.name()
        );
        return refuse(StatusCode::EXPECTATION_FAILED, &text);
    }
    // a save of our own must not meet it
    let Ok(_one) = shared.engine.checkpoints().running.try_lock() else {
        let text = format!(
            "Either current namenode is checkpointing or another checkpointer is already in the process of uploading a \
             checkpoint made at transaction ID {}",
            txid.0
        );
        return refuse(StatusCode::CONFLICT, &text);
    };
    if let Some(text) = not_wanted(&shared, &web.settings.transfers, txid) {
        tracing::info!("{text}");
        return refuse(StatusCode::CONFLICT, &text);
    }
    let digest = headers.get("x-md5-digest").and_then(|digest| digest.to_str().ok()).map(str::to_owned);
    match receive(&shared, txid, length, digest, body).await {
        Ok(()) => {
            tracing::info!(from = %remote.0, txid = txid.0, bytes = length, "an image was uploaded");
            shared.engine.image_received(txid);
            StatusCode::OK.into_response()
        }
        Err(what) => failed(&what),
    }
}

/// Why an image is of no use now, if it is.
fn not_wanted(shared: &Shared, limits: &Transfers, txid: Txid) -> Option<String> {
    let ((last, made), now) = (shared.newest_checkpoint(), shared.engine.now().wall.0);
    let (age, expected) = ((now - made) / 1_000, (limits.period.as_secs() as f64 * EARLY) as i64);
    let gap = txid.0 as i64 - last as i64;
    if age < expected && gap < limits.transactions as i64 {
        return Some(format!(
            "Rejecting a fsimage due to small time delta and txnid delta. Time since previous checkpoint is {age} expecting at \
             least {expected} txnid delta since previous checkpoint is {gap} expecting at least {}",
            limits.transactions
        ));
    }
    (txid.0 == last).then(|| {
        format!(
            "Either current namenode has checkpointed or another checkpointer already uploaded an checkpoint with txid {}",
            txid.0
        )
    })
}

async fn receive(
    shared: &Arc<Shared>,
    txid: Txid,
    length: u64,
    digest: Option<String>,
    body: Body,
) -> Result<(), String> {
    let (chunks, mut receiver) = mpsc::channel::<Bytes>(CHUNKS_WAITING);
    let of_thread = shared.clone();
    let writer = tokio::task::spawn_blocking(move || {
        let checkpoints = of_thread.engine.checkpoints();
        let folders = checkpoints.image_folders.lock().clone();
        let mut upload = Upload::begin(&*checkpoints.os.disk, &folders, txid);
        while let Some(chunk) = receiver.blocking_recv() {
            upload.write(&chunk);
        }
        upload.finish(length, digest.as_deref())
    });
    let mut body = body.into_data_stream();
    while let Some(chunk) = body.next().await {
        // a body that breaks off is too short, which the writer finds
        let Ok(chunk) = chunk else { break };
        if chunks.send(chunk).await.is_err() {
            break;
        }
    }
    drop(chunks);
    let failed = writer.await.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked.into_panic()))?;
    for (folder, error) in failed {
        tracing::error!(folder = %folder.display(), %error, "storage directory: the uploaded image was not written");
    }
    Ok(())
}
