//! Commands of encryption zones and delegation tokens. Keys of files are the test's own: whoever keeps real ones is not asked here.

use super::Printed;
use super::line::Line;
use super::world::World;
use ops::encryption::{EncryptionZone, FileEncryption};
use ops::read::zones::{get_enclosing_root, get_zone, list_reencryption, list_zones};
use ops::write::reencrypt::{Position, ReencryptZone, Wanted, next_waiting, note_progress, update_keys, walk_zone};
use ops::write::tokens::{CancelDelegationToken, GetDelegationToken, RenewDelegationToken, tend_tokens};
use ops::write::zones::CreateEncryptionZone;
use security::token::{self, Identifier};
use std::sync::Arc;
use vocab::TimeMs;
use vocab::encryption::{AES_CTR_NO_PADDING, DataKey};

pub fn run(world: &mut World, line: &Line) -> Option<Printed> {
    let path = || line.path(0);
    Some(match line.name.as_str() {
        "zone" => {
            let operation = CreateEncryptionZone { path: path(), suite: AES_CTR_NO_PADDING, key: line.text(1).into() };
            world.ask(line, &operation)
        }
        "zones" => Ok(world.view(line, |view| {
            let (zones, more) = list_zones(view, line.option_number("after").unwrap_or(0));
            zones.iter().map(zone_line).chain(more.then(|| "more\n".to_owned())).collect()
        })),
        "zone-of" => world.view(line, |view| {
            let root = get_enclosing_root(view, &path())?;
            let zone = get_zone(view, &path())?.map_or_else(|| "none".to_owned(), |zone| zone_line(&zone));
            Ok(format!("{} below {}", zone.trim_end(), String::from_utf8_lossy(&root)))
        }),
        "encryption" => world.view(line, |view| {
            let path = path();
            let resolved = view.resolve(&path, namespace::Walk::Read)?;
            let status = view.status_of_path(&resolved);
            let marked = status.as_ref().is_some_and(|s| s.flags.0 & ops::status::StatusFlags::ENCRYPTED != 0);
            let key = status.and_then(|status| status.encryption);
            Ok(format!(
                "{} {}",
                if marked { "encrypted" } else { "plain" },
                key.map_or_else(|| "-".to_owned(), |key| key_line(&key))
            ))
        }),
        "reencrypt" => {
            let wanted = match line.option("version") {
                Some(version) => Wanted::Start(version.into()),
                None => Wanted::Cancel,
            };
            world.ask(line, &ReencryptZone { path: path(), wanted })
        }
        "reencrypt-some" => Ok(reencrypt_some(world, line)),
        "reencryption" => Ok(world.view(line, |view| {
            let (listed, _) = list_reencryption(view, 0, None);
            let told = |of: &ops::read::zones::Reencrypting| {
                let last = &of.last;
                format!(
                    "{} {:?} {} of {} done={} failed={} cancelled={} after {}\n",
                    String::from_utf8_lossy(&of.path),
                    of.state,
                    last.key_version,
                    last.submitted.0,
                    last.reencrypted,
                    last.failures,
                    last.cancelled,
                    last.last_file.as_deref().unwrap_or("-")
                )
            };
            listed.iter().map(told).collect()
        })),
        _ => return tokens(world, line),
    })
}

fn zone_line(zone: &EncryptionZone) -> String {
    format!("{} {} {}\n", zone.id.0, String::from_utf8_lossy(&zone.path), zone.zone.key)
}

fn key_line(of: &FileEncryption) -> String {
    format!("{} {}", of.zone_key, of.data_key.key_version)
}

/// The key for a file that a script gives as `key=ZONEKEY@VERSION`.
pub fn data_key(line: &Line) -> Option<(Arc<str>, DataKey)> {
    let version = line.option("key")?;
    let zone_key = version.split('@').next().unwrap_or_default();
    Some((zone_key.into(), key_of(version)))
}

fn key_of(version: &str) -> DataKey {
    DataKey { material: version.as_bytes().into(), iv: [7; 16][..].into(), key_version: version.into() }
}

/// One batch of the zone that has waited longest.
fn reencrypt_some(world: &mut World, line: &Line) -> String {
    let Some(waiting) = world.view(line, next_waiting) else { return "nothing waits".to_owned() };
    let root = world.view(line, |view| {
        let (tree, store) = (&view.state.tree, &view.state.store);
        tree.find(store, waiting.id).map(|root| tree.path_of(store, root)).unwrap_or_default()
    });
    let mut position = waiting.last.last_file.as_deref().map_or_else(Position::default, |f| Position::after(&root, f));
    let mut files = Vec::new();
    let is_last = loop {
        let left = line.number::<usize>(0) - files.len();
        // two inodes at a time, so that each step is seen to go on where the last one ended
        let Some(batch) = world.view(line, |view| walk_zone(view, waiting.id, &mut position, left, 2)) else {
            return "over".to_owned();
        };
        files.extend(batch.files);
        if batch.is_last || files.len() >= line.number(0) {
            break batch.is_last;
        }
    };
    let changed: Vec<_> = files.into_iter().map(|old| (old, key_of(&waiting.last.key_version))).collect();
    let (last, done) = world.turn(line, |turn| update_keys(turn, waiting.id, &changed));
    world.turn(line, |turn| note_progress(turn, waiting.id, last, (done, 0), is_last));
    format!("{done}{}", if is_last { ", all" } else { "" })
}

fn tokens(world: &mut World, line: &Line) -> Option<Printed> {
    let date = |time: TimeMs| time.0.to_string();
    Some(match line.name.as_str() {
        "token" => {
            let operation = GetDelegationToken { renewer: line.text(0), secret: [1; token::KEY_BYTES] };
            world
                .write(line, &operation)
                .map(|issued| issued.map_or_else(|| "none".to_owned(), |i| i.identifier.to_string()))
        }
        "renew" => {
            let identifier = identifier(world, line);
            let bytes = identifier.encode();
            let key =
                world.state(|state| state.tokens.keys.get(&identifier.master_key_id).and_then(|k| k.secret.clone()));
            let password = token::password(&bytes, key.as_deref().unwrap_or_default()).to_vec();
            let shown = identifier.in_refusal(&identifier.owner);
            let operation = RenewDelegationToken { identifier: (identifier, bytes), shown, password, date };
            world.write(line, &operation).map(|expiry| expiry.0.to_string())
        }
        "cancel" => {
            let identifier = identifier(world, line);
            let shown = identifier.in_refusal(&identifier.owner);
            world.ask(line, &CancelDelegationToken { identifier, shown })
        }
        "prove" => {
            let identifier = identifier(world, line);
            world.view(line, |view| view.token_password(&identifier, date)).map(|_| "proved".to_owned())
        }
        "tend-tokens" => {
            world.turn(line, |turn| tend_tokens(turn, [2; token::KEY_BYTES]));
            Ok(world.state(|state| format!("{} keys, {} tokens", state.tokens.keys.len(), state.tokens.tokens.len())))
        }
        _ => return None,
    })
}

/// The token of this number, or one of a number that was never given, made from the first.
fn identifier(world: &World, line: &Line) -> Identifier {
    let number = line.number(0);
    world.state(|state| {
        let Some(found) = state.tokens.tokens.get(&number) else {
            return Identifier {
                owner: "hdfs".into(),
                renewer: "jt".into(),
                sequence_number: number,
                ..Identifier::default()
            };
        };
        Identifier {
            owner: found.owner.to_string(),
            renewer: found.renewer.to_string(),
            real_user: found.real_user.to_string(),
            issue_date: found.issue_date.0,
            max_date: found.max_date.0,
            sequence_number: found.sequence_number,
            master_key_id: found.master_key_id,
        }
    })
}
