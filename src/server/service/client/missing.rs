//! Methods that Hadoop has and this server has not: refused as in Hadoop where the role or safe mode refuses them, else as unsupported.

use super::super::{Answer, superuser, unsupported};
use super::Request;
use hadoop_proto::wire::{Cursor, Value};
use ops::Operation;

pub(super) fn answer(request: &Request<'_>) -> Answer {
    if let Some((what, named)) = words(request.operation) {
        let name = if named { first_text(request.body) } else { String::new() };
        request.read(|view| view.check_safe_mode(|| format!("{what}{name}")))?;
    }
    if request.operation == Operation::MetaSave {
        superuser(request.shared, request.caller, "metaSave")?;
    }
    Err(unsupported(request.operation.row().method))
}

/// How Hadoop opens the refusal of a change in safe mode, and whether the request's first text follows.
fn words(operation: Operation) -> Option<(&'static str, bool)> {
    Some(match operation {
        Operation::AllowSnapshot => ("Cannot allow snapshot for ", true),
        Operation::DisallowSnapshot => ("Cannot disallow snapshot for ", true),
        Operation::CreateSnapshot => ("Cannot create snapshot for ", true),
        Operation::RenameSnapshot => ("Cannot rename snapshot for ", true),
        Operation::DeleteSnapshot => ("Cannot delete snapshot for ", true),
        Operation::CreateEncryptionZone => ("Cannot create encryption zone on ", true),
        Operation::SatisfyStoragePolicy => ("Cannot satisfy storage policy for ", true),
        Operation::AddCacheDirective | Operation::ModifyCacheDirective => ("Cannot add cache directive", false),
        Operation::RemoveCacheDirective => ("Cannot remove cache directives", false),
        Operation::AddCachePool => ("Cannot add cache pool", false),
        Operation::ModifyCachePool => ("Cannot modify cache pool", false),
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
