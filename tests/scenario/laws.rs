//! What holds after every scenario.

use super::world::World;
use crate::model::laws::{equal, sound};
use crate::sim::node::{self, OWNER};
use edit::Record;
use os::Os;
use state::{RootAttributes, State};
use std::collections::BTreeSet;
use std::path::Path;
use storage::image::{self, SaveContext};
use storage::journal::reader::SegmentReader;
use storage::names::{self, Kind};
use vocab::{LayoutVersion, Policy, Txid};

/// Largest record.
const RECORD_MAX: usize = 50 << 20;
/// From how many records on only some of the prefixes are saved and reloaded.
const MANY: u64 = 60;

fn formatted() -> State {
    State::new(RootAttributes { user: OWNER, group: "supergroup", mode: vocab::Mode::new(0o755) })
}

/// All records of the log in `folder`, from the first on.
pub fn records(os: &Os, folder: &Path, seen: &mut dyn FnMut(Txid, &Record<'_>)) {
    let names = os.disk.list(folder).expect("lists");
    let mut segments: Vec<(Txid, String)> = names
        .into_iter()
        .filter_map(|name| match names::kind(&name) {
            Kind::Finalized(first, _) | Kind::InProgress(first) => Some((first, name)),
            _ => None,
        })
        .collect();
    segments.sort();
    for (_, name) in segments {
        let mut reader = SegmentReader::open(&*os.disk, &folder.join(name), RECORD_MAX).expect("opens");
        while let Some(frame) = reader.next().expect("reads") {
            seen(frame.txid, &frame.record);
        }
    }
}

/// A state saved and loaded again.
fn reloaded(state: &State, txid: Txid) -> State {
    let context = SaveContext { layout: LayoutVersion::CURRENT, namespace_id: 7, txid, expanded_string_tables: true };
    let mut bytes = Vec::new();
    let digest = image::encode(state, context, &mut |piece| bytes.extend_from_slice(piece)).expect("encodes");
    image::load(&bytes, digest, formatted()).unwrap_or_else(|e| panic!("after record {txid}: {e}")).state
}

impl World {
    /// Live, replayed, saved and reloaded state are one, with the whole log, every prefix of it, and what a crash leaves. The opcodes of the log.
    pub fn check_laws(&mut self) -> BTreeSet<u8> {
        if self.node.is_none() {
            self.start().expect("starts");
        }
        self.reclaim();
        self.settle();
        let engine = self.engine();
        let last = engine.journal().last_assigned();
        let crashed = self.disk.fork();
        engine.lock().read("laws", |state| {
            sound(state, "live");
            equal(state, &reloaded(state, last), "live and reloaded");
        });
        let opcodes = self.check_prefixes(last);
        self.check_crashed(&crashed, &engine);
        engine.journal().close().expect("closes");
        self.node = None; // lets go of the directories
        let loaded = node::load_with(&self.os, &node::roots(), &self.blocks, &mut |_, _, _| {}).expect("loads");
        engine.lock().read("laws", |state| equal(state, &loaded.state, "live and replayed after the last image"));
        opcodes
    }

    /// Every prefix of the log is a legal state, and loads as it was saved.
    fn check_prefixes(&self, last: Txid) -> BTreeSet<u8> {
        let policy = Policy::default();
        let mut state = formatted();
        let stride = 1 + last.0 / MANY;
        let (mut count, mut opcodes) = (0, BTreeSet::new());
        records(&self.os, Path::new("/a/current"), &mut |txid, record| {
            count += 1;
            opcodes.insert(record.opcode() as u8);
            assert_eq!(txid, Txid(count), "transactions in order");
            node::apply(&mut state, record, &policy).unwrap_or_else(|e| panic!("record {txid}: {e}"));
            sound(&state, &format!("after record {txid}, {record:?}"));
            if txid.0 % stride == 0 {
                equal(&state, &reloaded(&state, txid), &format!("after record {txid}, {record:?}: saved and reloaded"));
            }
        });
        assert_eq!(count, last.0, "the whole log is there");
        self.state(|live| equal(live, &state, "live and replayed from the first record on"));
        opcodes
    }

    /// The power goes at the end: all is there.
    fn check_crashed(&self, disk: &os::sim::SimDisk, live: &engine::Engine) {
        let random = std::sync::Arc::new(os::sim::SimRandom::new(1));
        let disk = std::sync::Arc::new(disk.crash());
        let os = Os { disk, clock: std::sync::Arc::new(self.clock.clone()), random };
        let loaded = node::load_with(&os, &node::roots(), &self.blocks, &mut |_, _, _| {}).expect("loads");
        live.lock().read("laws", |state| equal(state, &loaded.state, "live and what a crash leaves"));
    }
}
