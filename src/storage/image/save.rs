//! A state into an image.

mod inodes;
mod output;
mod past;

use super::caches;
use super::compress::Codec;
use super::digest::Digest;
use super::open_files;
use super::policies;
use super::strings::{Kind, StringTableBuilder};
use super::summary::{ImageError, MAGIC, SectionName};
use hadoop_proto::wire::Sink;
use output::Output;
use state::State;
use std::sync::Arc;
use vocab::layout::Feature;
use vocab::{LayoutVersion, Txid};

/// What an image says besides the state.
#[derive(Clone, Copy, Debug)]
pub struct SaveContext {
    /// Layout to write.
    pub layout: LayoutVersion,
    /// `namespaceID` of the storage.
    pub namespace_id: u32,
    /// Last transaction in the state.
    pub txid: Txid,
    /// Whether users, groups and attribute names get string tables of their own.
    pub expanded_string_tables: bool,
}

/// How an image is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveOptions {
    /// Every section is compressed by it.
    pub codec: Option<Codec>,
    /// Sub-sections of the large sections, so that Hadoop loads them in parallel.
    pub parallel: Option<SubSections>,
    /// Threads that encode, beside the one that writes and the one that digests.
    pub threads: usize,
    /// From so many inodes on threads are worth their start.
    pub threads_from: u64,
}

/// When and how sections are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubSections {
    /// From so many inodes on (`dfs.image.parallel.inode.threshold`).
    pub threshold: u64,
    /// About how many there should be (`dfs.image.parallel.target.sections`).
    pub target: u64,
}

impl Default for SaveOptions {
    fn default() -> SaveOptions {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        SaveOptions { codec: None, parallel: None, threads, threads_from: 1 << 16 }
    }
}

/// Encodes a state as an image, handing its bytes in order to `sink`, and gives the digest of all of them. Memory is bounded; nothing is
/// allocated per inode.
///
/// # Errors
/// [`ImageError`] if the state does not fit the format (too many distinct names).
pub fn encode(state: &State, context: SaveContext, sink: &mut dyn FnMut(&[u8])) -> Result<Digest, ImageError> {
    encode_with(state, context, &SaveOptions::default(), sink)
}

/// The same in another form.
///
/// # Errors
/// As [`encode`].
pub fn encode_with(
    state: &State,
    context: SaveContext,
    options: &SaveOptions,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<Digest, ImageError> {
    let inodes = state.store.inode_count();
    let beside = inodes >= options.threads_from && options.threads > 1;
    let subs = options.parallel.filter(|subs| inodes >= subs.threshold && subs.target > 1);
    Saver {
        state,
        context,
        options: *options,
        beside,
        sub_records: subs.map(|subs| inodes.div_ceil(subs.target).max(1)),
        cut: false,
        strings: StringTableBuilder::new(
            context.expanded_string_tables && context.layout.supports(Feature::ExpandedStringTable),
        ),
        users: Vec::new(),
        groups: Vec::new(),
        references: Vec::new(),
        out: Output::new(options.codec, beside, sink),
    }
    .run()
}

struct Saver<'a> {
    state: &'a State,
    context: SaveContext,
    options: SaveOptions,
    /// Whether threads are used.
    beside: bool,
    /// Inodes in a sub-section, if there are any.
    sub_records: Option<u64>,
    /// Whether the section at hand was cut into sub-sections.
    cut: bool,
    strings: StringTableBuilder,
    /// Serial numbers in the image by number of the store, 0 for not given yet.
    users: Vec<u32>,
    groups: Vec<u32>,
    references: Vec<past::Reference>,
    out: Output<'a>,
}

type Outcome = Result<(), ImageError>;

impl Saver<'_> {
    fn run(mut self) -> Result<Digest, ImageError> {
        self.out.raw(MAGIC);
        self.section(SectionName::NsInfo, Self::name_system)?;
        if self.context.layout.supports(Feature::ErasureCoding) {
            self.section(SectionName::ErasureCoding, Self::erasure_coding)?;
        }
        self.section(SectionName::Inode, Self::inodes)?;
        self.section(SectionName::InodeDir, Self::directories)?;
        self.section(SectionName::FilesUnderConstruction, Self::open_files)?;
        self.section(SectionName::Snapshot, Self::snapshots)?;
        if self.state.tree.snapshots.count() > 0 {
            self.section(SectionName::SnapshotDiff, Self::diffs)?;
        }
        self.section(SectionName::InodeReference, Self::references)?;
        self.section(SectionName::SecretManager, Self::secrets)?;
        self.section(SectionName::CacheManager, Self::cache)?;
        self.section(SectionName::StringTable, Self::strings)?;
        Ok(self.out.finish(self.context.layout))
    }

    fn section(&mut self, name: SectionName, write: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let offset = self.out.begin()?;
        self.cut = false;
        write(self)?;
        self.out.end(name, offset, self.cut)?;
        Ok(())
    }

    fn name_system(&mut self) -> Outcome {
        let s = &self.state.sequences;
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(self.context.namespace_id));
        m.put_varint_field(2, s.stamp_v1.0 as u64);
        m.put_varint_field(3, s.stamp.0 as u64);
        m.put_varint_field(4, s.stamp_v1_limit.0 as u64);
        m.put_varint_field(5, s.block.0 as u64);
        m.put_varint_field(6, self.context.txid.0);
        if let Some(start) = s.rolling_upgrade_start {
            m.put_varint_field(7, start.0 as u64);
        }
        m.put_varint_field(8, s.block_group.0 as u64);
        self.out.message(&m)?;
        Ok(())
    }

    fn erasure_coding(&mut self) -> Outcome {
        self.out.message(&policies::encode(&self.state.tree.erasure_coding))?;
        Ok(())
    }

    fn open_files(&mut self) -> Outcome {
        let State { store, tree, blocks, .. } = self.state;
        for lease in tree.leases.iter() {
            for id in &lease.files {
                let Some(handle) = store.find_inode(*id) else { continue };
                let mut m = Vec::new();
                m.put_varint_field(1, id.0 as u64);
                m.put_bytes_field(2, &tree.path_of(store, handle));
                let last = store.last_block(handle).map(|b| store.block_core(b).id);
                if let Some(truncate) = last.and_then(|id| blocks.construction(id)?.truncate) {
                    m.put_bytes_field(open_files::TRUNCATE, &open_files::encode_block(&truncate));
                }
                self.out.message(&m)?;
            }
        }
        Ok(())
    }

    fn secrets(&mut self) -> Outcome {
        let tokens = &self.state.tokens;
        let mut m = Vec::new();
        m.put_varint_field(1, u64::from(tokens.current_key as u32));
        m.put_varint_field(2, u64::from(tokens.sequence as u32));
        m.put_varint_field(3, tokens.keys.len() as u64);
        m.put_varint_field(4, tokens.tokens.len() as u64);
        self.out.message(&m)?;
        for (id, key) in &tokens.keys {
            let mut m = Vec::new();
            m.put_varint_field(1, u64::from(*id as u32));
            m.put_varint_field(2, key.expiry.0 as u64);
            if let Some(secret) = &key.secret {
                m.put_bytes_field(3, secret);
            }
            self.out.message(&m)?;
        }
        for token in tokens.tokens.values() {
            let mut m = Vec::new();
            m.put_bytes_field(2, token.owner.as_bytes());
            m.put_bytes_field(3, token.renewer.as_bytes());
            m.put_bytes_field(4, token.real_user.as_bytes());
            m.put_varint_field(5, token.issue_date.0 as u64);
            m.put_varint_field(6, token.max_date.0 as u64);
            m.put_varint_field(7, u64::from(token.sequence_number as u32));
            m.put_varint_field(8, u64::from(token.master_key_id as u32));
            m.put_varint_field(9, token.expiry.0 as u64);
            self.out.message(&m)?;
        }
        Ok(())
    }

    fn cache(&mut self) -> Outcome {
        caches::save(&self.state.caches, |message| self.out.message(message))
    }

    fn strings(&mut self) -> Outcome {
        let section = self.strings.encode();
        self.out.put(&section)
    }
}

fn fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    out.push((number << 3 | 1) as u8);
    out.extend_from_slice(&value.to_le_bytes());
}

/// The image's serial number of a name, looked up once per number of the store.
fn serial<'a>(
    known: &mut Vec<u32>,
    number: u32,
    kind: Kind,
    strings: &mut StringTableBuilder,
    name: impl FnOnce() -> &'a Arc<str>,
) -> Result<u32, ImageError> {
    let at = number as usize;
    if known.len() <= at {
        known.resize(at + 1, 0);
    }
    if known[at] == 0 {
        known[at] = strings.serial(kind, name())?;
    }
    Ok(known[at])
}
