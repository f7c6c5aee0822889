//! Commands that change what files and directories are like.

use super::Printed;
use super::line::Line;
use super::world::{BEGIN, World};
use ops::write::acl::{AclChange, ChangeAcl};
use ops::write::attributes::{SetOwner, SetPermission, SetReplication, SetTimes};
use ops::write::erasure_coding::{
    AddErasureCodingPolicies, DisableErasureCodingPolicy, EnableErasureCodingPolicy, NewPolicy,
    RemoveErasureCodingPolicy, SetErasureCodingPolicy, UnsetErasureCodingPolicy,
};
use ops::write::quota::SetQuota;
use ops::write::storage_policy::{SatisfyStoragePolicy, SetStoragePolicy};
use ops::write::xattr::{RemoveXattr, SetXattr};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Mode, StorageKind, TimeMs};

/// `user:alice:rwx` or `default:group::r-x`, with commas between.
fn entries(text: &str) -> Vec<AclEntry> {
    let entry = |text: &str| {
        let (scope, text) = match text.strip_prefix("default:") {
            Some(rest) => (AclScope::Default, rest),
            None => (AclScope::Access, text),
        };
        let mut parts = text.split(':');
        let kind = match parts.next() {
            Some("user") => AclKind::User,
            Some("group") => AclKind::Group,
            Some("mask") => AclKind::Mask,
            _ => AclKind::Other,
        };
        let name = parts.next().filter(|name| !name.is_empty()).map(Into::into);
        let letters = parts.next().unwrap_or("---").bytes();
        let bits = letters.map(|letter| match letter {
            b'r' => 4,
            b'w' => 2,
            b'x' => 1,
            _ => 0,
        });
        AclEntry { scope, kind, name, permission: Action(bits.sum()) }
    };
    text.split(',').map(entry).collect()
}

/// `user.name`, with a value.
pub fn xattr(name: &str, value: &[u8]) -> Xattr {
    let (namespace, name) = name.split_once('.').expect("namespace.name");
    let namespace = match namespace {
        "user" => XattrNamespace::User,
        "trusted" => XattrNamespace::Trusted,
        "security" => XattrNamespace::Security,
        "system" => XattrNamespace::System,
        _ => XattrNamespace::Raw,
    };
    Xattr { namespace, name: name.into(), value: value.into() }
}

/// A time as it is shown, `+5000` after the beginning, or in milliseconds.
fn time(text: &str) -> TimeMs {
    let number = |text: &str| text.parse::<i64>().expect("a time in ms");
    TimeMs(text.strip_prefix('+').map_or_else(|| number(text), |text| BEGIN + number(text)))
}

/// A number, or `none`, `keep`, `reset`.
fn limit(text: Option<&str>) -> i64 {
    match text {
        None | Some("keep") => i64::MAX,
        Some("reset") => -1,
        Some(text) => text.parse().expect("a limit"),
    }
}

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    let path = || line.path(0);
    Some(match line.name.as_str() {
        "chmod" => {
            let mode = Mode::new(u16::from_str_radix(&line.text(1), 8).expect("an octal mode"));
            world.ask(line, &SetPermission { path: path(), mode })
        }
        "chown" => {
            let name = |key: &str| line.option(key).map(Into::into);
            world.ask(line, &SetOwner { path: path(), user: name("user"), group: name("group") })
        }
        "times" => {
            let (mtime, atime) =
                (time(line.option("mtime").unwrap_or("-1")), time(line.option("atime").unwrap_or("-1")));
            world.ask(line, &SetTimes { path: path(), mtime, atime })
        }
        "setrep" => world.ask_whether(line, &SetReplication { path: path(), replication: line.number(1) }),
        "quota" => {
            let kind = line
                .option("kind")
                .map(|name| *StorageKind::ALL.iter().find(|kind| kind.name() == name).expect("a storage kind"));
            let (names, space) = (limit(line.option("names")), limit(line.option("space")));
            world.ask(line, &SetQuota { path: path(), names, space, kind })
        }
        "policy" => {
            let policy = (!line.has("unset")).then(|| line.text(1).into());
            world.ask(line, &SetStoragePolicy { path: path(), policy })
        }
        "satisfy" => world.ask(line, &SatisfyStoragePolicy { path: path() }),
        "satisfier" => {
            let queue = world.soft(|state, _| std::mem::take(&mut state.satisfier));
            Ok(queue.iter().map(|id| format!("{id}\n")).collect())
        }
        "satisfier-on" => {
            world.setup.settings.storage_policy_satisfier = true;
            Ok("from the next start on".to_owned())
        }
        "acl" => {
            let spec = || entries(&line.text(2));
            let change = match line.text(1).as_str() {
                "modify" => AclChange::Modify(spec()),
                "remove" => AclChange::Remove(spec()),
                "set" => AclChange::Set(spec()),
                "remove-default" => AclChange::RemoveDefault,
                "remove-all" => AclChange::RemoveAll,
                other => panic!("acl {other}"),
            };
            world.ask(line, &ChangeAcl { path: path(), change })
        }
        "set-xattr" => {
            let xattr = xattr(&line.text(1), &line.paths(2).first().cloned().unwrap_or_default());
            let (create, replace) = (line.option("flags") != Some("replace"), line.option("flags") != Some("create"));
            world.ask(line, &SetXattr { path: path(), xattr, given: !line.paths(2).is_empty(), create, replace })
        }
        "remove-xattr" => world.ask(line, &RemoveXattr { path: path(), xattr: xattr(&line.text(1), b"") }),
        _ => return erasure_coding(world, line),
    })
}

fn erasure_coding(world: &mut World, line: &Line) -> Option<Printed> {
    let name = || line.text(0).into();
    Some(match line.name.as_str() {
        "ec-add" => {
            let policy = NewPolicy {
                codec: name(),
                data_units: line.number(1),
                parity_units: line.number(2),
                cell_size: line.number(3),
                options: Vec::new(),
            };
            let answers = world.write(line, &AddErasureCodingPolicies { policies: vec![policy] });
            answers.map(|answers| {
                let shown = answers.into_iter().map(|answer| match answer {
                    Ok(policy) => format!("{} {}\n", policy.id, policy.name),
                    Err(refusal) => super::show::refusal(&refusal),
                });
                shown.collect()
            })
        }
        "ec-enable" => world.ask(line, &EnableErasureCodingPolicy { name: name() }),
        "ec-disable" => world.ask(line, &DisableErasureCodingPolicy { name: name() }),
        "ec-remove" => world.ask(line, &RemoveErasureCodingPolicy { name: name() }),
        "ec-set" => {
            let policy = line.paths(1).first().map(|name| String::from_utf8_lossy(name).into());
            world.ask(line, &SetErasureCodingPolicy { path: line.path(0), policy })
        }
        "ec-unset" => world.ask(line, &UnsetErasureCodingPolicy { path: line.path(0) }),
        _ => return None,
    })
}
