//! Methods that Hadoop has and this server has not: refused as in Hadoop where the role or safe mode refuses them, else as unsupported.

use super::super::{Answer, unsupported};
use super::Request;
use hadoop_proto::wire::{Cursor, Value};
use ops::Operation;

pub(super) fn answer(request: &Request<'_>) -> Answer {
    if let Some((what, named)) = words(request.operation) {
        let name = if named { first_text(request.body) } else { String::new() };
        request.read(|view| view.check_safe_mode(|| format!("{what}{name}")))?;
    }
    match request.operation {
        _ => {}
    }
    Err(unsupported(request.operation.row().method))
}

/// How Hadoop opens the refusal of a change in safe mode, and whether the request's first text follows.
fn words(operation: Operation) -> Option<(&'static str, bool)> {
    Some(match operation {
        Operation::CreateEncryptionZone => ("Cannot create encryption zone on ", true),
        Operation::SatisfyStoragePolicy => ("Cannot satisfy storage policy for ", true),
        _ => return None,
    })
}

/// Field 1 of a request, where that is text.
fn first_text(body: &[u8]) -> String {
    let first = Cursor::new(body).fields().map_while(Result::ok).find(|(number, _)| *number == 1);
    match first {
        Some((_, Value::Bytes(text))) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}
