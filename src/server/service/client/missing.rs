//! Methods that Hadoop has and this server has not: refused as in Hadoop where the role or safe mode refuses them, else as unsupported.

use super::super::{Answer, superuser, unsupported};
use super::Request;
use hadoop_proto::wire::{Cursor, Value};
use ops::Operation;
use vocab::Refusal;

pub(super) fn answer(request: &Request<'_>) -> Answer {
    if let Some((what, named)) = words(request.operation) {
        let name = if named { first_text(request.body) } else { String::new() };
        request.read(|view| view.check_safe_mode(|| format!("{what}{name}")))?;
    }
    match request.operation {
        Operation::GetEditsFromTxid => superuser(request.shared, request.caller, "getEditsFromTxid")?,
        // there are no directives, which is what Hadoop says then
        Operation::RemoveCacheDirective => return Err(no_directive(first_number(request.body)).into()),
        _ => {}
    }
    Err(unsupported(request.operation.row().method))
}

/// How Hadoop opens the refusal of a change in safe mode, and whether the request's first text follows.
fn words(operation: Operation) -> Option<(&'static str, bool)> {
    Some(match operation {
        Operation::CreateEncryptionZone => ("Cannot create encryption zone on ", true),
        Operation::SatisfyStoragePolicy => ("Cannot satisfy storage policy for ", true),
        Operation::AddCacheDirective | Operation::ModifyCacheDirective => ("Cannot add cache directive", false),
        Operation::RemoveCacheDirective => ("Cannot remove cache directives", false),
        Operation::AddCachePool => ("Cannot add cache pool", false),
        Operation::ModifyCachePool => ("Cannot modify cache pool", false),
        _ => return None,
    })
}

/// The refusal of a directive that does not exist.
fn no_directive(id: i64) -> Refusal {
    let text = if id <= 0 { "Invalid negative ID.".to_owned() } else { format!("No directive with ID {id} found.") };
    Refusal::InvalidRequest(text.into())
}

/// Field 1 of a request, where that is a number; the last one counts.
fn first_number(body: &[u8]) -> i64 {
    let numbers = Cursor::new(body).fields().map_while(Result::ok).filter_map(|field| match field {
        (1, Value::Varint(number)) => Some(number as i64),
        _ => None,
    });
    numbers.last().unwrap_or_default()
}

/// Field 1 of a request, where that is text.
fn first_text(body: &[u8]) -> String {
    let first = Cursor::new(body).fields().map_while(Result::ok).find(|(number, _)| *number == 1);
    match first {
        Some((_, Value::Bytes(text))) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}
