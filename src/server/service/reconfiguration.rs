//! `ReconfigurationProtocol`: keys that are changed while the server runs, by a task of their own (Hadoop's `ReconfigurableBase`).

use super::table;
use super::{Answer, EMPTY, Reconfigured, Shared, message, superuser};
use hadoop_proto::hdfs::{
    GetReconfigurationStatusConfigChangeProto, GetReconfigurationStatusResponseProto,
    ListReconfigurablePropertiesResponseProto,
};
use observe::RemoteException;
use observe::remote_exception::class;
use parking_lot::Mutex;
use vocab::Caller;

/// The last task. Times are milliseconds since 1970.
#[derive(Clone, Debug)]
struct Task {
    started: i64,
    ended: Option<i64>,
    changes: Vec<Reconfigured>,
}

/// What is known of changes of settings.
#[derive(Debug, Default)]
pub struct Reconfiguration(Mutex<Option<Task>>);

pub(super) fn serve(shared: &Shared, method: table::Reconfiguration, caller: &Caller) -> Answer {
    match method {
        table::Reconfiguration::Status => {
            superuser(shared, caller, "getNamenodeReconfigurationStatus")?;
            message(&status(shared))
        }
        table::Reconfiguration::Start => {
            superuser(shared, caller, "startNamenodeReconfiguration")?;
            start(shared)?;
            Ok(EMPTY)
        }
        table::Reconfiguration::List => {
            superuser(shared, caller, "listNamenodeReconfigurableProperties")?;
            message(&ListReconfigurablePropertiesResponseProto { name: shared.reload.reconfigurable() })
        }
    }
}

fn status(shared: &Shared) -> GetReconfigurationStatusResponseProto {
    // a start time of 0: there was no task
    let Some(task) = shared.reconfiguration.0.lock().clone() else {
        return GetReconfigurationStatusResponseProto::default();
    };
    let change = |change: Reconfigured| GetReconfigurationStatusConfigChangeProto {
        name: change.name,
        old_value: change.old,
        new_value: change.new,
        error_message: change.error,
    };
    GetReconfigurationStatusResponseProto {
        start_time: task.started,
        end_time: task.ended,
        changes: task.changes.into_iter().map(change).collect(),
    }
}

fn start(shared: &Shared) -> Result<(), RemoteException> {
    let mut last = shared.reconfiguration.0.lock();
    if last.as_ref().is_some_and(|task| task.ended.is_none()) {
        return Err(RemoteException::application(class::IO, "Another reconfiguration task is running."));
    }
    *last = Some(Task { started: shared.engine.now().wall.0, ended: None, changes: Vec::new() });
    let (reload, engine, account) = (shared.reload.clone(), shared.engine.clone(), shared.reconfiguration.clone());
    tokio::task::spawn_blocking(move || {
        let changes = reload.reconfigure().unwrap_or_else(|error| {
            tracing::error!("the configuration was not read again: {error}");
            Vec::new()
        });
        if let Some(task) = &mut *account.0.lock() {
            task.changes = changes;
            task.ended = Some(engine.now().wall.0);
        }
    });
    Ok(())
}
