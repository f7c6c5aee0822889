//! An image into a state.

use super::caches;
use super::cut::Records;
use super::digest::Digest;
use super::input::{Digester, Input, Range, bytes_at};
use super::legacy;
use super::open_files;
use super::past::{self, Past};
use super::policies::{self, PolicyError};
use super::records::Context;
use super::stages::{self, Built, Stages};
use super::strings::StringTables;
use super::summary::{ImageError, Section, SectionName, Summary};
use super::whole;
use hadoop_proto::wire::{Cursor, Value, WireError};
use namespace::build::{Build, BuildError};
use namespace::erasure_coding::Policies;
use record::{InodeHandle, Store};
use state::State;
use state::tokens::{MasterKey, Token};
use std::io::Read;
use vocab::layout::{Feature, LayoutVersion};
use vocab::quota::Usage;
use vocab::{BlockId, GenerationStamp, InodeId, TimeMs, Txid};

/// Layout of the last releases before 3.0.
const LAST_OF_2: LayoutVersion = LayoutVersion(-63);
/// Block ids are handed out from the one after this.
const BLOCK_ID_MIN: i64 = BlockId::LAST_RESERVED_CONTIGUOUS.0;
/// The oldest layout that is read.
const OLDEST: LayoutVersion = LayoutVersion(Feature::RollingUpgrade as i32);

/// A loaded image.
pub struct Loaded {
    /// The state at [`Loaded::txid`].
    pub state: State,
    /// Last transaction that the image includes.
    pub txid: Txid,
    /// Layout of the file.
    pub layout: LayoutVersion,
    /// `namespaceId` in the file.
    pub namespace_id: u32,
}

/// How an image is loaded.
#[derive(Clone, Copy)]
pub struct Loading<'a> {
    /// Threads that decode, beside the one that reads and digests.
    pub threads: usize,
    /// Images up to this size are loaded by one thread.
    pub small_bytes: u64,
    /// Told now and then how many bytes were read.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

impl Default for Loading<'_> {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Loading { threads, small_bytes: 4 << 20, progress: &|_| {} }
    }
}

/// Loads the bytes of an image file into `state`, which must be empty (its tree is replaced).
///
/// # Errors
/// [`ImageError`] names what is wrong or not supported; `state` is gone then.
pub fn load(file: &[u8], expected: Digest, state: State) -> Result<Loaded, ImageError> {
    load_input(&file, expected, state, Loading::default())
}

/// The same of a file that is not in memory.
///
/// # Errors
/// As [`load`]. A wrong digest comes before all else that is wrong.
pub fn load_input(
    input: &dyn Input,
    expected: Digest,
    state: State,
    loading: Loading<'_>,
) -> Result<Loaded, ImageError> {
    let (outcome, digest) = if legacy::is_legacy(&bytes_at(input, 0, input.length().min(4))?) {
        let file = bytes_at(input, 0, input.length())?;
        (legacy::load(&file, state), Some(Ok(Digest::of(&file))))
    } else {
        match open(input) {
            Ok(summary) => Loader { input, summary, strings: StringTables::empty(), loading }.run(state),
            Err(error) => (Err(error), None),
        }
    };
    let digest = match digest {
        Some(digest) => digest?,
        None => Digester::new(input).finish()?,
    };
    if digest != expected {
        let text = format!("is corrupt with MD5 checksum of {} but expecting {}", digest.hex(), expected.hex());
        return Err(ImageError::Digest(text));
    }
    outcome
}

/// The table of an image of a layout that can be read.
fn open(input: &dyn Input) -> Result<Summary, ImageError> {
    let summary = Summary::read(input)?;
    let newer = summary.layout.newer_than(LayoutVersion::CURRENT);
    if newer || OLDEST.newer_than(summary.layout) {
        return Err(ImageError::Layout(summary.layout.0));
    }
    whole::listed_once(&summary)?;
    Ok(summary)
}

struct Loader<'a> {
    input: &'a dyn Input,
    summary: Summary,
    strings: StringTables,
    loading: Loading<'a>,
}

/// What came of a load, and the digest of the file if it was computed.
type Outcome = (Result<Loaded, ImageError>, Option<Result<Digest, ImageError>>);

impl Loader<'_> {
    fn run(mut self, mut state: State) -> Outcome {
        let mut digest = None;
        let loaded = self.load(&mut state, &mut digest);
        let layout = self.summary.layout;
        let whole = |(txid, namespace_id)| Loaded { state, txid, layout, namespace_id };
        (loaded.map(whole), digest)
    }

    fn load(
        &mut self,
        state: &mut State,
        digest: &mut Option<Result<Digest, ImageError>>,
    ) -> Result<(Txid, u32), ImageError> {
        let named = self.name_system(state)?;
        self.strings = match self.part(SectionName::StringTable)? {
            Some((bytes, section)) => StringTables::parse(&bytes, section.offset)?,
            None => return Err(content("STRING_TABLE", "is missing")),
        };
        let policies = self.each(SectionName::ErasureCoding, |reader| {
            policies::decode(reader.message()?).map_err(|e| match e {
                PolicyError::Wire(error) => reader.wire(error),
                PolicyError::Content(what) => ImageError::Content { section: reader.section(), what },
            })
        })?;
        let mut built = self.tree(state.sequences.stamp_v1_limit, &policies.unwrap_or_default(), digest)?;
        state.sequences.inode = InodeId(built.last_id);
        let below_root = whole::no_circles(&built)?;
        self.snapshots(&mut built)?;
        let error = |e: BuildError| content("INODE_DIR", &e.to_string());
        let (threads, Built { mut store, build, totals, parents, .. }) = (self.loading.threads, built);
        let share = |pages, sums, add: &(dyn Fn(u32, &mut [Usage]) + Sync)| stages::share(threads, pages, sums, add);
        state.tree = build.finish_bulk(&mut store, &totals, &parents, below_root, &share).map_err(error)?;
        state.store = store;
        self.each(SectionName::FilesUnderConstruction, |reader| open_files::load(reader, state))?;
        self.secrets(state)?;
        self.cache(state)?;
        Ok(named)
    }

    /// The inodes and how they hang together.
    fn tree(
        &self,
        legacy_limit: GenerationStamp,
        policies: &Policies,
        digest: &mut Option<Result<Digest, ImageError>>,
    ) -> Result<Built, ImageError> {
        for name in [SectionName::Inode, SectionName::InodeDir] {
            if self.summary.section(name).is_none() {
                return Err(content(name.text(), "is missing"));
            }
        }
        let stages = Stages {
            input: self.input,
            summary: &self.summary,
            context: Context { strings: &self.strings, policies },
            legacy_limit,
            threads: self.loading.threads,
            small_bytes: self.loading.small_bytes,
            progress: self.loading.progress,
        };
        let (built, found) = stages.run(&mut |store, build| self.references(store, build));
        *digest = found;
        built
    }

    /// What directories list by their place in the INODE_REFERENCE section.
    fn references(&self, store: &mut Store, _build: &mut Build) -> Result<Vec<InodeHandle>, ImageError> {
        let references = self.part(SectionName::InodeReference)?;
        let references = past::references(past::borrow(&references), store)?;
        Ok(references.iter().map(|r| r.inode).collect())
    }

    /// Bytes of a section.
    fn part(&self, name: SectionName) -> Result<Option<(Vec<u8>, Section)>, ImageError> {
        let Some(section) = self.summary.section(name) else { return Ok(None) };
        if self.summary.codec.is_none() {
            return Ok(Some((bytes_at(self.input, section.offset, section.length)?, section)));
        }
        let mut bytes = Vec::new();
        let failed = |e: std::io::Error| content(name.text(), &format!("cannot be decompressed: {e}"));
        for stream in self.summary.streams(name) {
            self.summary.open(Range::new(self.input, stream))?.read_to_end(&mut bytes).map_err(failed)?;
        }
        Ok(Some((bytes, section)))
    }

    /// Runs `f` on the section's bytes, turning wire errors into ones that say where.
    fn each<R>(
        &self,
        name: SectionName,
        f: impl FnOnce(&mut Records<'_>) -> Result<R, ImageError>,
    ) -> Result<Option<R>, ImageError> {
        let Some((bytes, section)) = self.part(name)? else { return Ok(None) };
        f(&mut Records::new(&bytes, section)).map(Some)
    }

    fn name_system(&self, state: &mut State) -> Result<(Txid, u32), ImageError> {
        let read = self.each(SectionName::NsInfo, |reader| {
            let (mut txid, mut namespace_id) = (0, 0);
            let sequences = &mut state.sequences;
            let message = reader.message()?;
            for field in Cursor::new(message).fields() {
                match field.map_err(|e| reader.wire(e))? {
                    (1, Value::Varint(v)) => namespace_id = v as u32,
                    (2, Value::Varint(v)) => sequences.stamp_v1 = GenerationStamp(v as i64),
                    (3, Value::Varint(v)) => sequences.stamp = GenerationStamp(v as i64),
                    (4, Value::Varint(v)) => sequences.stamp_v1_limit = GenerationStamp(v as i64),
                    (5, Value::Varint(v)) if (v as i64) < BLOCK_ID_MIN => {
                        return Err(content(
                            "NS_INFO",
                            &format!("the last block id {} is below {BLOCK_ID_MIN}", v as i64),
                        ));
                    }
                    (5, Value::Varint(v)) => sequences.block.0 = v as i64,
                    (6, Value::Varint(v)) => txid = v,
                    (7, Value::Varint(v)) => sequences.rolling_upgrade_start = Some(TimeMs(v as i64)),
                    (8, Value::Varint(v)) => sequences.block_group.0 = v as i64,
                    _ => {}
                }
            }
            Ok((Txid(txid), namespace_id))
        })?;
        read.ok_or_else(|| content("NS_INFO", "is missing"))
    }

    /// Snapshots, diffs and references.
    fn snapshots(&self, built: &mut Built) -> Result<(), ImageError> {
        let whole = |name| self.part(name);
        let references = whole(SectionName::InodeReference)?;
        let references = past::references(past::borrow(&references), &built.store)?;
        let (snapshots, diffs) = (whole(SectionName::Snapshot)?, whole(SectionName::SnapshotDiff)?);
        let Built { store, build, .. } = built;
        let of_2 = !self.summary.layout.newer_than(LAST_OF_2);
        let mut past = Past::new(&self.strings, store, build, &references, of_2);
        past.load(past::borrow(&snapshots), past::borrow(&diffs))
    }

    fn secrets(&self, state: &mut State) -> Result<(), ImageError> {
        self.each(SectionName::SecretManager, |reader| {
            let (mut keys, mut tokens) = (0, 0);
            for field in Cursor::new(reader.message()?).fields() {
                match field.map_err(|e| reader.wire(e))? {
                    (1, Value::Varint(v)) => state.tokens.current_key = v as i32,
                    (2, Value::Varint(v)) => state.tokens.sequence = v as i32,
                    (3, Value::Varint(v)) => keys = v,
                    (4, Value::Varint(v)) => tokens = v,
                    _ => {}
                }
            }
            for _ in 0..keys {
                let (id, key) = master_key(reader.message()?).map_err(|e| reader.wire(e))?;
                state.tokens.keys.insert(id, key);
            }
            for _ in 0..tokens {
                let token = token(reader.message()?).map_err(|e| reader.wire(e))?;
                state.tokens.tokens.insert(token.sequence_number, token);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn cache(&self, state: &mut State) -> Result<(), ImageError> {
        self.each(SectionName::CacheManager, |reader| caches::load(reader, &mut state.caches))?;
        Ok(())
    }
}

fn content(section: &'static str, what: &str) -> ImageError {
    ImageError::Content { section, what: what.into() }
}

fn master_key(message: &[u8]) -> Result<(i32, MasterKey), WireError> {
    let (mut id, mut key) = (0, MasterKey { expiry: TimeMs(0), secret: None });
    for field in Cursor::new(message).fields() {
        match field? {
            (1, Value::Varint(v)) => id = v as i32,
            (2, Value::Varint(v)) => key.expiry = TimeMs(v as i64),
            (3, Value::Bytes(b)) => key.secret = Some(b.into()),
            _ => {}
        }
    }
    Ok((id, key))
}

fn token(message: &[u8]) -> Result<Token, WireError> {
    let text = |b: &[u8]| String::from_utf8_lossy(b).into();
    let mut token = Token {
        owner: "".into(),
        renewer: "".into(),
        real_user: "".into(),
        issue_date: TimeMs(0),
        max_date: TimeMs(0),
        sequence_number: 0,
        master_key_id: 0,
        expiry: TimeMs(0),
    };
    for field in Cursor::new(message).fields() {
        match field? {
            (2, Value::Bytes(b)) => token.owner = text(b),
            (3, Value::Bytes(b)) => token.renewer = text(b),
            (4, Value::Bytes(b)) => token.real_user = text(b),
            (5, Value::Varint(v)) => token.issue_date = TimeMs(v as i64),
            (6, Value::Varint(v)) => token.max_date = TimeMs(v as i64),
            (7, Value::Varint(v)) => token.sequence_number = v as i32,
            (8, Value::Varint(v)) => token.master_key_id = v as i32,
            (9, Value::Varint(v)) => token.expiry = TimeMs(v as i64),
            _ => {}
        }
    }
    Ok(token)
}
