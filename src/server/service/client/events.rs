//! The stream of events: what the records of the log say to those who follow it (Hadoop's inotify).

use super::super::convert::events::batch;
use super::super::{Answer, decode, message, superuser};
use super::Request;
use hadoop_proto::hdfs::{EventsListProto, GetEditsFromTxidRequestProto, GetEditsFromTxidResponseProto};
use observe::RemoteException;
use observe::remote_exception::class;
use std::ops::ControlFlow;
use storage::journal::tail::Followed;
use vocab::Txid;

/// What stands for a transaction where there is none.
const NO_TXID: i64 = -1;

/// Events of the durable records from a transaction on, as many as one answer may hold. Who asked for purged ones sees by the first transaction
/// that some are missing.
pub(super) async fn edits_from(request: &Request<'_>) -> Answer {
    let asked: GetEditsFromTxidRequestProto = decode(request.body.clone())?;
    request.read(|_| Ok(()))?;
    superuser(request.shared, request.caller, "getEditsFromTxid")?;
    let engine = request.shared.engine.clone();
    let durable = engine.journal().watermark().durable();
    let mut list = EventsListProto {
        first_txid: NO_TXID,
        last_txid: NO_TXID,
        sync_txid: durable.0 as i64,
        ..EventsListProto::default()
    };
    // no log was ever there for such, purged or not
    if asked.txid < 1 {
        let text = format!(
            "Gap in transactions. Expected to be able to read up until at least txid 0 but unable to find any edit logs containing txid {}",
            asked.txid
        );
        return Err(RemoteException::application(class::IO, text));
    }
    if asked.txid <= list.sync_txid {
        let (events_max, bytes_max) = (engine.settings().events_per_call, engine.settings().record_bytes_max);
        let places = request.shared.followers.clone();
        let read = move || {
            let (checkpoints, from) = (engine.checkpoints(), Txid(asked.txid.unsigned_abs()));
            let followed = Followed {
                disk: &*checkpoints.os.disk,
                currents: &checkpoints.edits_folders,
                durable,
                record_bytes_max: bytes_max,
                places: &places,
            };
            let mut events = 0;
            let read = followed.read(from, &mut |txid, record| {
                if let Some(batch) = batch(txid, record) {
                    events += batch.events.len();
                    list.batch.push(batch);
                }
                list.last_txid = txid.0 as i64;
                if list.first_txid == NO_TXID {
                    list.first_txid = list.last_txid;
                }
                let full = i64::try_from(events).unwrap_or(i64::MAX) >= i64::from(events_max);
                if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            read.map(|()| list)
        };
        let failed = |text: String| RemoteException::application(class::IO, text);
        // files are read: not on a thread that serves connections
        let read = tokio::task::spawn_blocking(read).await.map_err(|error| failed(error.to_string()))?;
        list = read.map_err(|error| failed(error.to_string()))?;
    }
    message(&GetEditsFromTxidResponseProto { events_list: list })
}
