//! Methods that Hadoop has and this server has not.

use super::super::{Answer, unsupported};
use super::Request;

pub(super) fn answer(request: &Request<'_>) -> Answer {
    Err(unsupported(request.operation.row().method))
}
