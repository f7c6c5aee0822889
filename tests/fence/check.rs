//! The rule, over the events of a trace: an answer begins to leave only after the record that it rests on is durable everywhere.

use super::load::Asked;
use super::trace::{Event, Target};
use edit::Record;
use edit::frame::{Decoded, HEADER_LENGTH, RECORD_MAX};
use hadoop_proto::common::RpcResponseHeaderProto;
use hadoop_proto::datanode::{HeartbeatResponseProto, block_command_proto};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use vocab::LayoutVersion;

/// Calls by number, with the record that each makes.
pub type Calls = HashMap<i32, Asked>;

/// What a trace has shown.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Answers whose record was found, and durable in time.
    pub answers: usize,
    /// Orders to delete a block, likewise.
    pub orders: usize,
    /// Records written (to the first directory).
    pub records: usize,
    /// Syncs of edits (there).
    pub syncs: usize,
}

/// One edits directory.
#[derive(Default)]
struct Directory {
    /// Highest transaction written completely.
    written: u64,
    /// Highest transaction durable.
    durable: u64,
    records: usize,
    syncs: usize,
}

/// A call between its beginning and its end.
enum Open {
    /// Bytes for an edits file: directory, length, last transaction in them.
    Edits(usize, usize, u64),
    /// A sync of an edits file: directory, and what was written when it began.
    Sync(usize, u64),
    /// Bytes for a peer.
    Answer(usize),
}

#[derive(Default)]
struct Check<'a> {
    names: &'a [String],
    directories: Vec<Directory>,
    open: HashMap<usize, Open>,
    /// Transaction of each record.
    made: HashMap<Asked, u64>,
    /// Path of the file that a block was added to.
    files: HashMap<i64, Vec<u8>>,
    /// What each peer was sent and has not been made out yet.
    streams: BTreeMap<String, Vec<u8>>,
    seen: Seen,
}

/// Checks a trace. `names` are the edits directories.
///
/// # Errors
/// What left too early, or cannot be made out.
pub fn check(events: &[Event], names: &[String], asked: &Calls) -> Result<Seen, String> {
    let directories = names.iter().map(|_| Directory::default()).collect();
    let mut check = Check { names, directories, ..Check::default() };
    for event in events {
        match event {
            Event::Write { call, target: Target::File(path), bytes, offset } => {
                check.edits(*call, path, bytes, *offset)?
            }
            Event::Write { call, target: Target::Peer(peer), bytes, .. } => {
                check.answer(peer, bytes, asked)?;
                check.open.insert(*call, Open::Answer(bytes.len()));
            }
            Event::Sync { call, file } => {
                if let Some(directory) = check.directory(file) {
                    check.open.insert(*call, Open::Sync(directory, check.directories[directory].written));
                }
            }
            Event::End { call, result } => check.end(*call, *result)?,
        }
    }
    check.seen.records = check.directories[0].records;
    check.seen.syncs = check.directories[0].syncs;
    Ok(check.seen)
}

impl Check<'_> {
    /// The directory whose edits a file is of.
    fn directory(&self, path: &str) -> Option<usize> {
        self.names
            .iter()
            .position(|name| path.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with("/current/edits_")))
    }

    fn edits(&mut self, call: usize, path: &str, bytes: &[u8], offset: Option<u64>) -> Result<(), String> {
        let Some(directory) = self.directory(path) else { return Ok(()) };
        let mut rest = if offset == Some(0) { bytes.get(HEADER_LENGTH..).unwrap_or_default() } else { bytes };
        let mut last = 0;
        while !rest.is_empty() {
            match edit::decode(rest, LayoutVersion::CURRENT, RECORD_MAX) {
                Ok(Decoded::Frame(frame)) => {
                    last = frame.txid.0;
                    self.note(&frame.record, last);
                    self.directories[directory].records += 1;
                    rest = &rest[frame.length..];
                }
                Ok(Decoded::Fill) => break,
                other => return Err(format!("{path}: bytes that are no records: {other:?}")),
            }
        }
        self.open.insert(call, Open::Edits(directory, bytes.len(), last));
        Ok(())
    }

    fn note(&mut self, record: &Record<'_>, txid: u64) {
        let (method, path) = match record {
            Record::Mkdir { path, .. } => ("mkdirs", path),
            Record::Add(add) => ("create", &add.path),
            Record::SetPermissions { path, .. } => ("setPermission", path),
            Record::RenameOld { src, .. } => ("rename", src),
            Record::Delete { path, .. } => ("delete", path),
            Record::AddBlock { path, last, .. } => {
                self.files.insert(last.id.0, path.to_vec());
                return;
            }
            _ => return,
        };
        self.made.entry(Asked { method, path: path.to_vec() }).or_insert(txid);
    }

    fn end(&mut self, call: usize, result: i64) -> Result<(), String> {
        match self.open.remove(&call) {
            Some(Open::Edits(directory, length, last)) => {
                if result != length as i64 {
                    return Err(format!("edits: {result} bytes of {length} were written: not foreseen here"));
                }
                let directory = &mut self.directories[directory];
                directory.written = directory.written.max(last);
            }
            Some(Open::Sync(directory, written)) if result == 0 => {
                let directory = &mut self.directories[directory];
                directory.syncs += 1;
                directory.durable = directory.durable.max(written);
            }
            Some(Open::Sync(..)) => return Err("edits: a sync failed".to_owned()),
            Some(Open::Answer(length)) if result != length as i64 => {
                return Err(format!("a peer took {result} bytes of {length}: not foreseen here"));
            }
            Some(Open::Answer(_)) | None => {}
        }
        Ok(())
    }

    fn answer(&mut self, peer: &str, bytes: &[u8], asked: &Calls) -> Result<(), String> {
        let stream = self.streams.entry(peer.to_owned()).or_default();
        if stream.is_empty() && bytes.starts_with(b"HTTP/") {
            return Ok(());
        }
        // An answer that began with an earlier write is looked at when it is whole: everything it rests on must have been durable at its
        // beginning, so that is when this would have to be asked; answers here are small and leave whole.
        if !stream.is_empty() {
            return Err(format!("an answer to {peer} left in pieces: not foreseen here"));
        }
        let mut rest = bytes;
        while rest.len() >= 4 {
            let length = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]) as usize;
            let Some(packet) = rest.get(4..4 + length) else {
                return Err(format!("an answer to {peer} left in pieces: not foreseen here"));
            };
            self.packet(peer, packet, asked)?;
            rest = &rest[4 + length..];
        }
        if rest.is_empty() { Ok(()) } else { Err(format!("an answer to {peer} left in pieces: not foreseen here")) }
    }

    fn packet(&mut self, peer: &str, mut packet: &[u8], asked: &Calls) -> Result<(), String> {
        let header =
            RpcResponseHeaderProto::decode_length_delimited(&mut packet).map_err(|e| format!("{peer}: {e}"))?;
        let call = header.call_id as i32;
        if let Some(key) = asked.get(&call) {
            self.must_be_durable(key, &format!("the answer to call {call}, {key:?},"))?;
            self.seen.answers += 1;
            return Ok(());
        }
        let Ok(heartbeat) = HeartbeatResponseProto::decode_length_delimited(&mut packet) else { return Ok(()) };
        let commands = heartbeat.cmds.iter().filter_map(|command| command.blk_cmd.as_ref());
        let deletions = commands.filter(|command| command.action == block_command_proto::Action::Invalidate as i32);
        for block in deletions.flat_map(|command| &command.blocks) {
            let path =
                self.files.get(&(block.block_id as i64)).ok_or("an order to delete a block that no record has")?;
            let key = Asked { method: "delete", path: path.clone() };
            self.must_be_durable(&key, &format!("the order to delete block {}", block.block_id))?;
            self.seen.orders += 1;
        }
        Ok(())
    }

    fn must_be_durable(&self, key: &Asked, what: &str) -> Result<(), String> {
        let txid = *self.made.get(key).ok_or_else(|| format!("{what} left before its record was written anywhere"))?;
        for (name, directory) in self.names.iter().zip(&self.directories) {
            if directory.durable < txid {
                return Err(format!(
                    "{what} rests on transaction {txid} and left when {name} was durable up to {} only",
                    directory.durable
                ));
            }
        }
        Ok(())
    }
}

/// The check itself is checked: with one event of a good trace changed it must object. Every so many answers is moved in front of the sync
/// before it, and every so many syncs is taken out or fails.
pub fn check_spoiled(events: &[Event], names: &[String], asked: &Calls) {
    let is_sync = |event: &Event| matches!(event, Event::Sync { file, .. } if file.starts_with(&names[0]) && file.contains("/current/edits_inprogress"));
    let syncs: Vec<usize> = (0..events.len()).filter(|at| is_sync(&events[*at])).collect();
    let mut found = 0;
    for at in syncs.iter().skip(5).step_by(syncs.len().div_ceil(10)) {
        let Event::Sync { call, .. } = events[*at] else { continue };
        let mut failing = events.to_vec();
        for event in &mut failing {
            if let Event::End { call: ended, result } = event
                && *ended == call
            {
                *result = -1;
            }
        }
        assert!(check(&failing, names, asked).is_err(), "a failed sync");
        // the sync returns only after the next answer has left
        let end = events.iter().position(|event| matches!(event, Event::End { call: ended, .. } if *ended == call));
        let end = end.expect("it ended");
        let answer = (end..events.len()).find(|at| matches!(events[*at], Event::Write { target: Target::Peer(_), .. }));
        let Some(answer) = answer else { continue };
        let mut late = events.to_vec();
        let moved = late.remove(end);
        late.insert(answer, moved);
        found += usize::from(check(&late, names, asked).is_err());
    }
    assert!(found > 0, "answers before their sync are found out");
}
