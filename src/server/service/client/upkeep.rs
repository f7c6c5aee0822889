//! Upkeep that administrators ask for: files with missing blocks, the end of an upgrade, storage directories.

use super::super::{Answer, EMPTY, decode, message, superuser};
use super::Request;
use hadoop_proto::hdfs::{
    CorruptFileBlocksProto, ListCorruptFileBlocksRequestProto, ListCorruptFileBlocksResponseProto,
    MetaSaveRequestProto, RestoreFailedStorageRequestProto, RestoreFailedStorageResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use ops::read::corrupt_files::CorruptFilesWalk;
use ops::read::meta_save::MetaSave;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use tokio::task::JoinError;

/// Missing blocks looked at under one hold of the lock.
const CORRUPT_SLICE: usize = 500;
/// Blocks of an account between two looks at the clock: each is a line with a path and its replicas.
const ACCOUNTED: usize = 32;

pub(super) async fn corrupt_files(request: &Request<'_>) -> Answer {
    let asked: ListCorruptFileBlocksRequestProto = decode(request.body.clone())?;
    superuser(request.shared, request.caller, "listCorruptFileBlocks")?;
    // a cookie that is no number comes back as it is where nothing is missing
    let from = CorruptFilesWalk::from_cookie(asked.cookie.as_deref());
    let begun = request.read(|v| CorruptFilesWalk::begin(v, asked.path.as_bytes(), from))?;
    let Some(mut walk) = begun else {
        let cookie = asked.cookie.unwrap_or_else(|| from.to_string());
        return message(&ListCorruptFileBlocksResponseProto {
            corrupt: CorruptFileBlocksProto { files: Vec::new(), cookie },
        });
    };
    while !request.read(|v| Ok(walk.step(v, CORRUPT_SLICE)))? {
        tokio::task::yield_now().await;
    }
    let (cookie, files) = (walk.cookie().to_string(), walk.files);
    let files = files.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    message(&ListCorruptFileBlocksResponseProto { corrupt: CorruptFileBlocksProto { files, cookie } })
}

/// Writes an account of the blocks among the logs.
pub(super) async fn meta_save(request: &Request<'_>) -> Answer {
    let asked: MetaSaveRequestProto = decode(request.body.clone())?;
    let (engine, reload, caller) =
        (request.shared.engine.clone(), request.shared.reload.clone(), request.caller.clone());
    let mut account = request.read(MetaSave::begin)?;
    let done = tokio::task::spawn_blocking(move || -> Result<(), (PathBuf, io::Error)> {
        let (path, mut file) = reload.create_log(&asked.filename)?;
        loop {
            let done = engine.view_slice("metaSave", &caller, |view, slice| {
                loop {
                    let done = account.step(view, &|time| reload.date(time), ACCOUNTED);
                    if done || slice.is_over() {
                        return done;
                    }
                }
            });
            // as the lines come: of all blocks they would be hundreds of megabytes
            let written = file.write_all(account.take_text().as_bytes());
            if let Err(error) = written.and_then(|()| if done { file.flush() } else { Ok(()) }) {
                return Err((path, error));
            }
            if done {
                return Ok(());
            }
        }
    })
    .await;
    let failed = |error: JoinError| RemoteException::application(class::IO, error.to_string());
    done.map_err(failed)?.map_err(|(path, error)| unwritten(&path, &error))?;
    Ok(EMPTY)
}

/// Why a file could not be written, as Java tells it.
fn unwritten(path: &Path, error: &io::Error) -> RemoteException {
    let shown = path.display();
    let (class, text) = match error.kind() {
        io::ErrorKind::NotFound => (class::NO_SUCH_FILE, shown.to_string()),
        io::ErrorKind::PermissionDenied => (class::ACCESS_DENIED, shown.to_string()),
        io::ErrorKind::InvalidInput => (class::INVALID_FILE_PATH, format!("Nul character not allowed: {shown}")),
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error ").next().unwrap_or_default();
            (class::FILE_SYSTEM, format!("{shown}: {text}"))
        }
    };
    RemoteException::application(class, text)
}

/// Gives up the way back to before an upgrade, if there is one; DataNodes are told with the answers to their next block reports.
pub(super) async fn finalize_upgrade(request: &Request<'_>) -> Answer {
    superuser(request.shared, request.caller, "finalizeUpgrade")?;
    request.read(|_| Ok(()))?;
    let reload = request.shared.reload.clone();
    // deleting a large directory takes its time
    let done = tokio::task::spawn_blocking(move || reload.finalize_upgrade()).await;
    let failed = |text: String| RemoteException::application(class::IO, text);
    done.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
    request.shared.identity.upgrade_finalized.store(true, Ordering::Release);
    Ok(EMPTY)
}

/// Whether failed directories are taken up again at the next segment or image, and a switch for that.
pub(super) fn restore_failed_storage(request: &Request<'_>) -> Answer {
    let asked: RestoreFailedStorageRequestProto = decode(request.body.clone())?;
    let verb = match &*asked.arg {
        "check" => "check",
        "true" => "enable",
        _ => "disable",
    };
    superuser(request.shared, request.caller, &format!("{verb}RestoreFailedStorage"))?;
    request.read(|_| Ok(()))?;
    let journal = request.shared.engine.journal();
    if verb != "check" {
        tracing::info!("set restore failed storage to {}", verb == "enable");
        journal.set_restore(verb == "enable");
    }
    message(&RestoreFailedStorageResponseProto { result: journal.restores() })
}
