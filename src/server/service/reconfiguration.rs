//! `ReconfigurationProtocol`: which keys could be changed while the server runs. None is, so far.

use super::table::Reconfiguration;
use super::{Answer, Shared, message, superuser};
use hadoop_proto::hdfs::{GetReconfigurationStatusResponseProto, ListReconfigurablePropertiesResponseProto};
use vocab::Caller;

pub(super) fn serve(shared: &Shared, method: Reconfiguration, caller: &Caller) -> Answer {
    match method {
        Reconfiguration::Status => {
            superuser(shared, caller, "getNamenodeReconfigurationStatus")?;
            // no task was ever started
            message(&GetReconfigurationStatusResponseProto { start_time: 0, ..Default::default() })
        }
        Reconfiguration::Start => {
            superuser(shared, caller, "startNamenodeReconfiguration")?;
            Err(super::unsupported("startReconfiguration"))
        }
        Reconfiguration::List => {
            superuser(shared, caller, "listNamenodeReconfigurableProperties")?;
            message(&ListReconfigurablePropertiesResponseProto::default())
        }
    }
}
