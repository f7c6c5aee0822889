//! The two large sections on all cores.
//!
//! ```text
//!  reader: read, digest, cut ──parts──> workers: decode, encode records ──ids, sides──> this thread: indexes, side tables
//!     │                                  (INODE)                                             │ all records there: joined
//!     └──────────────────────parts──> workers: find, check order, link ──child lists──> this thread: lists
//!                                        (INODE_DIR)
//! ```
//!
//! The reader needs the digest's time, about as long as `md5sum`; all else is done beside it. Where sections are compressed, or stand in an unusual
//! order, they are read apart from the digest: each sub-section is a stream that one thread decompresses and cuts.
//! A small image takes the same way without threads.

use super::compress::Codec;
use super::cut::{Buffers, Cutter, Piece, Place};
use super::digest::Digest;
use super::input::{Digester, Input, Range};
use super::links::{self, LinkWorker, Linked};
use super::records::{Context, Decoded, RecordWorker};
use super::summary::{ImageError, Section, SectionName, Summary};
use hadoop_proto::wire::{Cursor, Value, WireError};
use namespace::build::Build;
use namespace::bulk::{Sides, Totals};
use namespace::quota;
use record::{Bulk, BulkIndex, InodeHandle, Store, Twice};
use std::io::Read;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use vocab::quota::Usage;
use vocab::{GenerationStamp, InodeId};

/// Arena pages from which on counting is shared.
const SHARED_FROM: u32 = 4;
/// Parts that may wait for a worker, for each worker.
const WAITING: usize = 4;

/// What the sections have become.
pub(super) struct Built {
    pub(super) store: Store,
    pub(super) build: Build,
    /// Directories with children.
    pub(super) parents: Vec<InodeHandle>,
    pub(super) totals: Totals,
    /// The highest inode id handed out.
    pub(super) last_id: i64,
}

/// What all threads look at.
pub(super) struct Stages<'a> {
    pub(super) input: &'a dyn Input,
    pub(super) summary: &'a Summary,
    pub(super) context: Context<'a>,
    pub(super) legacy_limit: GenerationStamp,
    pub(super) threads: usize,
    /// Images up to this size are loaded by one thread.
    pub(super) small_bytes: u64,
    /// Told how many bytes of the image were read.
    pub(super) progress: &'a (dyn Fn(u64) + Sync),
}

/// The first message of the INODE section.
#[derive(Default)]
struct Head {
    last: AtomicI64,
    count: AtomicU64,
}

impl Head {
    fn read(&self, message: &[u8]) -> Result<u64, WireError> {
        for field in Cursor::new(message).fields() {
            match field? {
                (1, Value::Varint(v)) => self.last.store(v as i64, Ordering::Relaxed),
                (2, Value::Varint(v)) => self.count.store(v, Ordering::Relaxed),
                _ => {}
            }
        }
        Ok(self.count.load(Ordering::Relaxed))
    }
}

/// The failure of the lowest place.
#[derive(Default)]
struct Failure(Option<(Place, ImageError)>);

impl Failure {
    fn note(&mut self, place: Place, error: ImageError) {
        if self.0.as_ref().is_none_or(|(lowest, _)| place < *lowest) {
            self.0 = Some((place, error));
        }
    }
    fn outcome(self) -> Result<(), ImageError> {
        self.0.map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// Time since some moment.
fn clock() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

/// What becomes of the INODE section beside records.
struct Gathered {
    index: BulkIndex,
    sides: Sides,
    totals: Totals,
    count: u64,
    root: Option<(Place, InodeHandle, bool)>,
    failure: Failure,
    twice: Option<(Place, Twice)>,
}

impl Gathered {
    fn new() -> Gathered {
        Gathered {
            index: BulkIndex::new(clock),
            sides: Sides::default(),
            totals: Totals::default(),
            count: 0,
            root: None,
            failure: Failure::default(),
            twice: None,
        }
    }
    fn take(&mut self, part: &mut Decoded) {
        if let Some(twice) = self.index.enter(&part.ids)
            && self.twice.is_none_or(|(place, _)| part.place < place)
        {
            self.twice = Some((part.place, twice));
        }
        part.sides.iter().for_each(|(inode, side)| self.sides.put(*inode, side));
        self.totals.add(&part.totals);
        self.count += part.count;
        if let Some((root, is_directory)) = part.root
            && self.root.is_none_or(|(place, ..)| part.place > place)
        {
            self.root = Some((part.place, root, is_directory));
        }
        if let Some(error) = part.error.take() {
            self.failure.note(part.place, error);
        }
    }
}

/// What is handed out in turn and taken back.
struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }
    fn give_back(&self, item: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }
}

fn next<T>(from: &Mutex<Receiver<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Makes references of the loader's once all inodes are there.
pub(super) type References<'r> = &'r mut dyn FnMut(&mut Store, &mut Build) -> Result<Vec<InodeHandle>, ImageError>;

impl Stages<'_> {
    /// Loads INODE and INODE_DIR. The digest of the whole input comes with the outcome, whatever that is, unless nobody has computed it.
    pub(super) fn run(
        &self,
        references: References<'_>,
    ) -> (Result<Built, ImageError>, Option<Result<Digest, ImageError>>) {
        if self.alone() {
            return (self.run_alone(references), None);
        }
        self.run_threads(references)
    }

    fn alone(&self) -> bool {
        self.input.length() <= self.small_bytes || self.threads <= 1
    }

    /// On this thread.
    fn run_alone(&self, references: References<'_>) -> Result<Built, ImageError> {
        let (buffers, head, bulk) = (Buffers::default(), Head::default(), Bulk::new(self.legacy_limit, clock));
        let mut gathered = Gathered::new();
        let mut worker = RecordWorker::new(bulk.worker(), self.context);
        let mut decoded = Decoded::default();
        self.read_apart(SectionName::Inode, &head, &buffers, &mut |piece| {
            match piece {
                Piece::Part(part) => {
                    worker.decode(&part, &mut decoded);
                    gathered.take(&mut decoded);
                    buffers.give_back(part.buffer);
                }
                Piece::Failed(place, error) => gathered.failure.note(place, error),
            }
            true
        });
        let parts = Bulk::parts(vec![worker.records]);
        let mut built = self.join(bulk, parts, gathered, &head)?;
        let references = references(&mut built.store, &mut built.build)?;
        let (mut failure, mut large) = (Failure::default(), Vec::new());
        let linker = built.store.linker();
        let mut worker = LinkWorker::new(&linker, built.build.root(), &references, 1);
        let mut linked = Linked::default();
        self.read_apart(SectionName::InodeDir, &head, &buffers, &mut |piece| {
            match piece {
                Piece::Part(part) => {
                    worker.link(&part, &mut linked);
                    enter(
                        &mut linked,
                        &linker,
                        &mut built.build,
                        &mut built.parents,
                        &mut built.totals,
                        &mut large,
                        &mut failure,
                    );
                    buffers.give_back(part.buffer);
                }
                Piece::Failed(place, error) => failure.note(place, error),
            }
            true
        });
        drop(linker);
        failure.outcome()?;
        large.iter().for_each(|(parent, children)| built.build.put_children(&mut built.store, *parent, children));
        Ok(built)
    }

    fn run_threads(
        &self,
        references: References<'_>,
    ) -> (Result<Built, ImageError>, Option<Result<Digest, ImageError>>) {
        let (buffers, head) = (&Buffers::default(), &Head::default());
        std::thread::scope(|scope| {
            let (inode_parts, inodes) = sync_channel::<Piece>(self.threads * WAITING);
            let (link_parts, links) = sync_channel::<Piece>(self.threads * WAITING);
            let digest = if self.beside() {
                scope.spawn(move || self.read_beside(head, buffers, inode_parts, link_parts))
            } else {
                scope.spawn(move || {
                    self.read_apart(SectionName::Inode, head, buffers, &mut |piece| inode_parts.send(piece).is_ok());
                    drop(inode_parts);
                    self.read_apart(SectionName::InodeDir, head, buffers, &mut |piece| link_parts.send(piece).is_ok());
                });
                scope.spawn(move || {
                    let mut digester = Digester::new(self.input);
                    self.skip(&mut digester, self.input.length())?;
                    digester.finish()
                })
            };
            let built = self.build(buffers, head, inodes, links, references);
            let digest = digest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (built, Some(digest))
        })
    }

    fn build(
        &self,
        buffers: &Buffers,
        head: &Head,
        inodes: Receiver<Piece>,
        links: Receiver<Piece>,
        references: References<'_>,
    ) -> Result<Built, ImageError> {
        let bulk = Bulk::new(self.legacy_limit, clock);
        let (parts, gathered) = self.decode_all(&bulk, buffers, inodes);
        let mut built = self.join(bulk, parts, gathered, head)?;
        let references = references(&mut built.store, &mut built.build)?;
        self.link_all(&mut built, buffers, links, &references)?;
        Ok(built)
    }

    /// Workers decode, this thread gathers.
    fn decode_all(&self, bulk: &Bulk, buffers: &Buffers, inodes: Receiver<Piece>) -> (record::BulkParts, Gathered) {
        let (inodes, spare) = (&Mutex::new(inodes), &Spare::<Decoded>(Mutex::default()));
        let mut gathered = Gathered::new();
        let work = &|done: SyncSender<Decoded>| {
            let mut worker = RecordWorker::new(bulk.worker(), self.context);
            while let Some(piece) = next(inodes) {
                let mut out = spare.take();
                match piece {
                    Piece::Part(part) => {
                        worker.decode(&part, &mut out);
                        buffers.give_back(part.buffer);
                    }
                    Piece::Failed(place, error) => {
                        out.clear();
                        (out.place, out.error) = (place, Some(error));
                    }
                }
                if done.send(out).is_err() {
                    break;
                }
            }
            worker.records
        };
        let workers = std::thread::scope(|scope| {
            let (done, decoded) = sync_channel::<Decoded>(self.threads * WAITING);
            let spawn = |_| {
                let done = done.clone();
                scope.spawn(move || work(done))
            };
            let threads: Vec<_> = (0..self.threads).map(spawn).collect();
            drop(done);
            for mut part in decoded {
                gathered.take(&mut part);
                spare.give_back(part);
            }
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        });
        (Bulk::parts(workers), gathered)
    }

    /// A store of what was decoded, or what was wrong first.
    fn join(&self, bulk: Bulk, parts: record::BulkParts, gathered: Gathered, head: &Head) -> Result<Built, ImageError> {
        let Gathered { index, sides, totals, count, root, mut failure, twice } = gathered;
        let twice = twice.or_else(|| index.collision().map(|twice| ((u32::MAX, u32::MAX), twice)));
        let store = bulk.join(parts, index);
        if let Some((place, twice)) = twice {
            failure.note(place, listed_twice(&store, twice));
        }
        failure.outcome()?;
        let wanted = head.count.load(Ordering::Relaxed);
        if count < wanted {
            let offset = self.summary.section(SectionName::Inode).map_or(0, |s| s.offset + s.length);
            return Err(ImageError::Wire { section: "INODE", offset, error: WireError::Truncated });
        }
        if count > wanted {
            let what = format!("has {count} inodes and says that it has {wanted}");
            return Err(ImageError::Content { section: "INODE", what });
        }
        let missing = || ImageError::Content { section: "INODE_DIR", what: "there is no root directory".into() };
        let (_, root, is_directory) = root.ok_or_else(missing)?;
        let build = Build::of_bulk(root, is_directory, sides, self.context.policies.clone(), clock);
        Ok(Built { store, build, parents: Vec::new(), totals, last_id: head.last.load(Ordering::Relaxed) })
    }

    /// Workers link, this thread enters the lists.
    fn link_all(
        &self,
        built: &mut Built,
        buffers: &Buffers,
        links: Receiver<Piece>,
        references: &[InodeHandle],
    ) -> Result<(), ImageError> {
        let Built { store, build, parents, totals, .. } = built;
        let (mut failure, mut large) = (Failure::default(), Vec::new());
        let (links, spare, root) = (&Mutex::new(links), &Spare::<Linked>(Mutex::default()), build.root());
        let linker = &store.linker();
        std::thread::scope(|scope| {
            let (done, linked) = sync_channel::<Linked>(self.threads * WAITING);
            for _ in 0..self.threads {
                let done = done.clone();
                scope.spawn(move || {
                    let mut worker = LinkWorker::new(linker, root, references, self.threads);
                    while let Some(piece) = next(links) {
                        let mut out = spare.take();
                        match piece {
                            Piece::Part(part) => {
                                worker.link(&part, &mut out);
                                buffers.give_back(part.buffer);
                            }
                            Piece::Failed(place, error) => {
                                out.clear();
                                (out.place, out.error) = (place, Some(error));
                            }
                        }
                        if done.send(out).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(done);
            for mut part in linked {
                enter(&mut part, linker, build, parents, totals, &mut large, &mut failure);
                spare.give_back(part);
            }
        });
        failure.outcome()?;
        large.iter().for_each(|(parent, children)| build.put_children(store, *parent, children));
        Ok(())
    }

    // ---- reading

    /// Whether the sections can be cut while the whole file is digested: stored plain, one after the other.
    fn beside(&self) -> bool {
        let place = |name| self.summary.section(name).map(|s| (s.offset, s.offset + s.length));
        let ordered = match (place(SectionName::Inode), place(SectionName::InodeDir)) {
            (Some((_, end)), Some((begin, _))) => end <= begin,
            _ => true,
        };
        self.summary.codec.is_none() && ordered
    }

    fn skip(&self, digester: &mut Digester<'_>, to: u64) -> Result<(), ImageError> {
        const STEP: u64 = 16 << 20;
        while digester.offset() < to {
            digester.skip_to((digester.offset() + STEP).min(to))?;
            (self.progress)(digester.offset());
        }
        Ok(())
    }

    /// Reads the file once, digests it and hands the two sections on.
    fn read_beside(
        &self,
        head: &Head,
        buffers: &Buffers,
        inode_parts: SyncSender<Piece>,
        link_parts: SyncSender<Piece>,
    ) -> Result<Digest, ImageError> {
        let mut digester = Digester::new(self.input);
        let mut sections = [(SectionName::Inode, Some(inode_parts)), (SectionName::InodeDir, Some(link_parts))];
        for (name, parts) in &mut sections {
            // dropped when its section is over, so that those who wait for more of it know
            let (Some(section), Some(parts)) = (self.summary.section(*name), parts.take()) else { continue };
            self.skip(&mut digester, section.offset)?;
            let mut first = |message: &[u8]| head.read(message).map(|_| None);
            let head: Option<&mut dyn FnMut(&[u8]) -> Result<Option<u64>, WireError>> =
                if *name == SectionName::Inode { Some(&mut first) } else { None };
            let cutter = Cutter { section, stream: 0, buffers, plain: true };
            let progress = self.progress;
            let mut stream = digester.up_to(section.offset + section.length);
            cutter.cut(&mut stream, head, &mut |piece| {
                if let Piece::Part(part) = &piece {
                    progress(part.offset());
                }
                parts.send(piece).is_ok()
            });
        }
        drop(sections);
        self.skip(&mut digester, self.input.length())?;
        digester.finish()
    }

    /// Reads a section by itself: its sub-sections by several threads at once if it is compressed.
    fn read_apart(&self, name: SectionName, head: &Head, buffers: &Buffers, sink: &mut dyn FnMut(Piece) -> bool) {
        let streams = self.summary.streams(name);
        let one = |at: usize, sink: &mut dyn FnMut(Piece) -> bool| {
            let section = streams[at];
            let plain = self.summary.codec.is_none();
            let cutter = Cutter { section, stream: at as u32, buffers, plain };
            let mut first = |message: &[u8]| head.read(message).map(|_| None);
            let head: Option<&mut dyn FnMut(&[u8]) -> Result<Option<u64>, WireError>> =
                if name == SectionName::Inode && at == 0 { Some(&mut first) } else { None };
            match self.summary.open(Range::new(self.input, section)) {
                Ok(mut stream) => cutter.cut(&mut *stream, head, sink),
                Err(error) => drop(sink(Piece::Failed((at as u32, 0), error))),
            }
        };
        let threads = self.threads.min(streams.len());
        if self.alone() || threads <= 1 {
            (0..streams.len()).for_each(|at| one(at, sink));
            return;
        }
        let (parts, received) = sync_channel::<Piece>(1);
        let (at, one) = (&AtomicUsize::new(0), &one);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let parts = parts.clone();
                let streams = streams.len();
                scope.spawn(move || {
                    while let Some(at) = Some(at.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < streams) {
                        one(at, &mut |piece| parts.send(piece).is_ok());
                    }
                });
            }
            drop(parts);
            for piece in received {
                if !sink(piece) {
                    break;
                }
            }
        });
    }
}

/// Shares arena pages out among threads that each make sums of their own.
pub(super) fn share(threads: usize, pages: u32, sums: usize, add: &(dyn Fn(u32, &mut [Usage]) + Sync)) -> Vec<Usage> {
    let work = |first: u32, step: usize| {
        let mut own = vec![Usage::default(); sums];
        (first..pages).step_by(step).for_each(|page| add(page, &mut own));
        own
    };
    if threads <= 1 || pages < SHARED_FROM {
        return work(0, 1);
    }
    std::thread::scope(|scope| {
        let work = &work;
        let spawn = |first: usize| scope.spawn(move || work(first as u32, threads));
        let running: Vec<_> = (0..threads).map(spawn).collect();
        let mut all = vec![Usage::default(); sums];
        for thread in running {
            let own = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.iter_mut().zip(own).for_each(|(sum, own)| quota::add(sum, &own));
        }
        all
    })
}

/// Enters the child lists of a part.
fn enter(
    part: &mut Linked,
    linker: &record::Linker<'_>,
    build: &mut Build,
    parents: &mut Vec<InodeHandle>,
    totals: &mut Totals,
    large: &mut Vec<(InodeHandle, Vec<InodeHandle>)>,
    failure: &mut Failure,
) {
    let Linked { place, parents: directories, children, tags, error } = part;
    let mut from = 0;
    for (directory, count) in directories.iter().copied() {
        let range = from..from + count as usize;
        from = range.end;
        match build.put_tagged(linker, directory, &children[range.clone()], &tags[range.clone()]) {
            Ok(true) => {}
            Ok(false) => large.push((directory, children[range].to_vec())),
            Err(twice) => failure.note(*place, links::build(&twice)),
        }
        if count > 0 {
            parents.push(directory);
        }
        totals.linked += u64::from(count);
    }
    if let Some(error) = error.take() {
        failure.note(*place, error);
    }
}

fn listed_twice(store: &Store, twice: Twice) -> ImageError {
    let what = match twice {
        Twice::Inode(id) => format!("inode {id} is listed twice"),
        Twice::Block(block) => {
            let file = store.block_file(block).map_or(InodeId(0), |file| store.inode_id(file));
            format!("block {} is in two files (inode {file})", store.block(block).block.id)
        }
    };
    ImageError::Content { section: "INODE", what }
}

/// The streams that a section is read by.
impl Summary {
    /// The sub-sections of a compressed section, if they cover it, else the section itself.
    pub(super) fn streams(&self, name: SectionName) -> Vec<Section> {
        let Some(whole) = self.section(name) else { return Vec::new() };
        let part = match name {
            SectionName::Inode => SectionName::InodeSub,
            SectionName::InodeDir => SectionName::InodeDirSub,
            SectionName::InodeReference => SectionName::InodeReferenceSub,
            SectionName::SnapshotDiff => SectionName::SnapshotDiffSub,
            _ => return vec![whole],
        };
        let parts: Vec<Section> = self.sections.iter().filter(|s| s.name == part).copied().collect();
        let mut at = whole.offset;
        for part in &parts {
            if part.offset != at {
                return vec![whole];
            }
            at += part.length;
        }
        if self.codec.is_none() || parts.is_empty() || at != whole.offset + whole.length {
            return vec![whole];
        }
        parts.into_iter().map(|part| Section { name, ..part }).collect()
    }
    /// The bytes of a section as they were before it was compressed.
    pub(super) fn open<'a>(&self, stream: Range<'a>) -> Result<Box<dyn Read + 'a>, ImageError> {
        let Some(class) = &self.codec else { return Ok(Box::new(stream)) };
        let codec = Codec::of_class(class).ok_or_else(|| ImageError::Unsupported(format!("the codec {class}")))?;
        if stream.is_empty() {
            return Ok(Box::new(stream));
        }
        codec.decoder(stream).map_err(|e| ImageError::Read(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// All sections of the image of a scenario that Hadoop saved in one form.
    fn sections(scenario: &str) -> Vec<(SectionName, Vec<u8>)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/fsimage/3.5.0").join(scenario);
        let file = std::fs::read(folder.join("current/fsimage_0000000000000002912")).expect("image");
        let summary = Summary::parse(&file).expect("a table");
        let subs = [
            SectionName::InodeSub,
            SectionName::InodeDirSub,
            SectionName::InodeReferenceSub,
            SectionName::SnapshotDiffSub,
        ];
        let whole = summary.sections.iter().filter(|section| !subs.contains(&section.name));
        whole
            .map(|section| {
                let mut bytes = Vec::new();
                for stream in summary.streams(section.name) {
                    let input: &dyn Input = &&file[..];
                    summary.open(Range::new(input, stream)).expect("opens").read_to_end(&mut bytes).expect("reads");
                }
                (section.name, bytes)
            })
            .collect()
    }

    #[test]
    fn every_form_of_an_image_has_the_same_content() {
        let plain = sections("everything-serial");
        assert!(
            plain.len() > 10 && plain.iter().any(|(name, bytes)| *name == SectionName::Inode && bytes.len() > 5_000)
        );
        for form in
            ["parallel", "default", "deflate", "default-parallel", "gzip", "gzip-parallel", "bzip2", "snappy", "lz4"]
        {
            for ((name, bytes), (wanted_name, wanted)) in sections(&format!("everything-{form}")).iter().zip(&plain) {
                assert_eq!(name, wanted_name, "{form}");
                // the numbers of strings depend on who asked first
                let close = bytes.len().abs_diff(wanted.len()) <= 8;
                assert!(bytes == wanted || close, "{form}: {name:?} has {} bytes, not {}", bytes.len(), wanted.len());
            }
        }
    }
}
