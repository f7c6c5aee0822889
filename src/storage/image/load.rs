//! An image into a state.

use super::digest::Digest;
use super::features::{acl_entries, is_storage_policy, kind_quotas, xattrs};
use super::inode::{Attributes, DirectoryRecord, FileRecord, InodeRecord, RecordKind};
use super::legacy;
use super::policies::{self, PolicyError};
use super::strings::{Kind, StringTables};
use super::summary::{ImageError, Section, SectionName, Summary};
use hadoop_proto::wire::{Cursor, Value, WireError};
use namespace::build::Build;
use record::{BlockInfo, Features, Inode, InodeHandle, InodeKind, Store};
use state::State;
use state::tokens::{MasterKey, Token};
use vocab::erasure_coding::REPLICATION;
use vocab::layout::{Feature, LayoutVersion};
use vocab::quota::Quota;
use vocab::storage_policy::UNSPECIFIED;
use vocab::xattr::Xattr;
use vocab::{BlockState, GenerationStamp, InodeId, Mode, TimeMs, Txid};

/// The oldest layout that is read.
const OLDEST: LayoutVersion = LayoutVersion(Feature::RollingUpgrade as i32);
/// Bound on what is reserved for counts that are not yet believed.
const RESERVE_MAX: u64 = 1 << 24;
/// Attributes by which features that are not supported yet mark inodes.
const UNSUPPORTED_XATTRS: [(&str, &str); 2] =
    [("hdfs.crypto.encryption.zone", "encryption zones"), ("hdfs.crypto.file.encryption.info", "encryption zones")];

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

/// Loads the bytes of an image file into `state`, which must be empty (its tree is replaced).
///
/// # Errors
/// [`ImageError`] names what is wrong or not supported; `state` is gone then.
pub fn load(file: &[u8], expected: Digest, state: State) -> Result<Loaded, ImageError> {
    let found = Digest::of(file);
    if found != expected {
        let text = format!("is corrupt with MD5 checksum of {} but expecting {}", found.hex(), expected.hex());
        return Err(ImageError::Digest(text));
    }
    if legacy::is_legacy(file) {
        return legacy::load(file, state);
    }
    let summary = Summary::parse(file)?;
    let newer = summary.layout.newer_than(LayoutVersion::CURRENT);
    if newer || OLDEST.newer_than(summary.layout) {
        return Err(ImageError::Layout(summary.layout.0));
    }
    if let Some(codec) = &summary.codec {
        return Err(ImageError::Unsupported(format!("the codec {codec}")));
    }
    Loader { file, summary, strings: StringTables::empty() }.run(state)
}

struct Loader<'a> {
    file: &'a [u8],
    summary: Summary,
    strings: StringTables,
}

impl<'a> Loader<'a> {
    fn run(mut self, mut state: State) -> Result<Loaded, ImageError> {
        let (txid, namespace_id) = self.name_system(&mut state)?;
        self.strings = match self.part(SectionName::StringTable) {
            Some((bytes, section)) => StringTables::parse(bytes, section.offset)?,
            None => return Err(content("STRING_TABLE", "is missing")),
        };
        let policies = self.each(SectionName::ErasureCoding, |reader| {
            policies::decode(reader.message()?).map_err(|e| match e {
                PolicyError::Wire(error) => reader.wire(error),
                PolicyError::Content(what) => reader.place(Problem::Content(what)),
            })
        })?;
        self.snapshots(&mut state)?;
        state.store = Store::new();
        state.store.set_legacy_limit(state.sequences.stamp_v1_limit);
        let mut build = Build::new(&mut state.store);
        build.set_erasure_coding(policies.unwrap_or_default());
        self.inodes(&mut state, &mut build)?;
        self.directories(&mut state, &mut build)?;
        let error = |e: namespace::build::BuildError| content("INODE_DIR", &e.to_string());
        state.tree = build.finish(&mut state.store).map_err(error)?;
        self.secrets(&mut state)?;
        self.cache(&mut state)?;
        Ok(Loaded { state, txid, layout: self.summary.layout, namespace_id })
    }

    /// Bytes of a section.
    fn part(&self, name: SectionName) -> Option<(&'a [u8], Section)> {
        let section = self.summary.section(name)?;
        let range = section.offset as usize..(section.offset + section.length) as usize;
        Some((&self.file[range], section))
    }

    /// Runs `f` on the section's bytes, turning wire errors into ones that say where.
    fn each<R>(
        &self,
        name: SectionName,
        f: impl FnOnce(&mut Reader<'a>) -> Result<R, ImageError>,
    ) -> Result<Option<R>, ImageError> {
        let Some((bytes, section)) = self.part(name) else { return Ok(None) };
        f(&mut Reader { cursor: Cursor::new(bytes), section }).map(Some)
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

    /// Snapshots are not supported: the sections must say that there are none.
    fn snapshots(&self, state: &mut State) -> Result<(), ImageError> {
        self.each(SectionName::Snapshot, |reader| {
            let (mut counter, mut directories, mut count) = (0, 0, 0);
            for field in Cursor::new(reader.message()?).fields() {
                match field.map_err(|e| reader.wire(e))? {
                    (1, Value::Varint(v)) => counter = v as u32,
                    (2, Value::Varint(_)) => directories += 1,
                    (2, Value::Bytes(packed)) => directories += usize::from(!packed.is_empty()),
                    (3, Value::Varint(v)) => count = v,
                    _ => {}
                }
            }
            if directories > 0 || count > 0 {
                return Err(ImageError::Unsupported("snapshots (section SNAPSHOT)".into()));
            }
            state.preserved.snapshot_counter = counter;
            Ok(())
        })?;
        let references = self.part(SectionName::InodeReference).is_some_and(|(bytes, _)| !bytes.is_empty());
        if references {
            return Err(ImageError::Unsupported("snapshots (section INODE_REFERENCE)".into()));
        }
        self.each(SectionName::SnapshotDiff, |reader| {
            while let Some(message) = reader.next()? {
                for field in Cursor::new(message).fields() {
                    if let (3, Value::Varint(1..)) = field.map_err(|e| reader.wire(e))? {
                        return Err(ImageError::Unsupported("snapshots (section SNAPSHOT_DIFF)".into()));
                    }
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn inodes(&self, state: &mut State, build: &mut Build) -> Result<(), ImageError> {
        let read = self.each(SectionName::Inode, |reader| {
            let (mut last, mut count) = (0, 0);
            for field in Cursor::new(reader.message()?).fields() {
                match field.map_err(|e| reader.wire(e))? {
                    (1, Value::Varint(v)) => last = v as i64,
                    (2, Value::Varint(v)) => count = v,
                    _ => {}
                }
            }
            state.sequences.inode = InodeId(last);
            state.store.reserve(count.min(RESERVE_MAX), 0);
            for _ in 0..count {
                let message = reader.message()?;
                let inode = InodeRecord::parse(message).map_err(|e| reader.wire(e))?;
                self.inode(&mut state.store, build, &inode).map_err(|e| reader.place(e))?;
            }
            Ok(())
        })?;
        read.ok_or_else(|| content("INODE", "is missing"))
    }

    fn inode(&self, store: &mut Store, build: &mut Build, inode: &InodeRecord<'_>) -> Result<(), Problem> {
        if inode.id != InodeId::ROOT.0 && store.find_inode(InodeId(inode.id)).is_some() {
            return Err(Problem::Content(format!("inode {} is listed twice", inode.id)));
        }
        match inode.kind {
            RecordKind::File(file) => self.file(store, build, inode, &file),
            RecordKind::Directory(directory) => self.directory(store, build, inode, &directory),
            RecordKind::Symlink(attributes, target) => {
                let handle = self.add(store, build, inode, &attributes, InodeKind::Symlink)?;
                build.set_symlink_target(store, handle, target);
                Ok(())
            }
        }
    }

    /// Adds the inode itself, with what every kind has.
    fn add(
        &self,
        store: &mut Store,
        build: &mut Build,
        inode: &InodeRecord<'_>,
        attributes: &Attributes<'_>,
        kind: InodeKind,
    ) -> Result<InodeHandle, Problem> {
        let permission = attributes.permission;
        let user = self.strings.get(Kind::User, permission.user())?.map_or("", |s| s);
        let group = self.strings.get(Kind::Group, permission.group())?.map_or("", |s| s);
        let (user, group) = (store.intern_user(user), store.intern_group(group));
        let mut record = Inode {
            id: InodeId(inode.id),
            parent: None,
            user,
            group,
            mode: Mode::new(permission.mode()),
            mtime: TimeMs(attributes.mtime),
            atime: TimeMs(attributes.atime),
            features: Features::NONE,
            kind,
        };
        let xattrs = match attributes.xattrs {
            Some(message) => self.xattrs(inode, message, &mut record.kind)?,
            None => Vec::new(),
        };
        let handle = build.add(store, &record, inode.name);
        if let Some(message) = attributes.acl {
            build.set_acl(store, handle, &acl_entries(message, &self.strings)?);
        }
        if !xattrs.is_empty() {
            build.set_xattrs(store, handle, &xattrs);
        }
        Ok(handle)
    }

    /// Attributes of an inode, but for the one that holds the storage policy of a directory.
    fn xattrs(&self, inode: &InodeRecord<'_>, message: &[u8], kind: &mut InodeKind) -> Result<Vec<Xattr>, Problem> {
        let mut all = xattrs(message, &self.strings)?;
        let refused = |name: &str| UNSUPPORTED_XATTRS.iter().find(|(x, _)| *x == name).map(|(_, feature)| *feature);
        if let Some(feature) = all.iter().find_map(|x| refused(&x.name)) {
            return Err(Problem::Unsupported(format!("{feature} (inode {})", inode.id)));
        }
        if let InodeKind::Directory { storage_policy, .. } = kind
            && let Some(at) = all.iter().position(is_storage_policy)
        {
            *storage_policy = all.remove(at).value.first().copied().unwrap_or(UNSPECIFIED);
        }
        Ok(all)
    }

    fn file(
        &self,
        store: &mut Store,
        build: &mut Build,
        inode: &InodeRecord<'_>,
        file: &FileRecord<'_>,
    ) -> Result<(), Problem> {
        let (erasure_coding_policy, replication) = match file.erasure_coding_policy {
            Some(id) => match u8::try_from(id).ok().filter(|id| build.erasure_coding().by_id(*id).is_some()) {
                Some(id) => (id, 1),
                None => {
                    let text = format!("erasure coding policy {id} of inode {} does not exist", inode.id);
                    return Err(Problem::Content(text));
                }
            },
            None => (REPLICATION, file.replication as u16),
        };
        let kind = InodeKind::File {
            replication,
            block_size: file.block_size.max(1),
            storage_policy: file.storage_policy as u8,
            erasure_coding_policy,
        };
        let handle = self.add(store, build, inode, &file.attributes, kind)?;
        if let Some((client, machine)) = file.construction {
            build.open(store, handle, &String::from_utf8_lossy(client), &String::from_utf8_lossy(machine));
        }
        let open = file.construction.is_some();
        let mut blocks = file.blocks().peekable();
        while let Some(block) = blocks.next() {
            let block = block?;
            if store.find_block(block.id).is_some() {
                return Err(Problem::Content(format!("block {} is in two files (inode {})", block.id, inode.id)));
            }
            let last = blocks.peek().is_none();
            let state = if open && last { BlockState::UnderConstruction } else { BlockState::Complete };
            let info = BlockInfo {
                block,
                replication,
                state,
                open,
                storage_policy: file.storage_policy as u8,
                erasure_coding_policy,
                ..BlockInfo::default()
            };
            store.push_block(handle, &info);
        }
        store.settle(handle);
        Ok(())
    }

    fn directory(
        &self,
        store: &mut Store,
        build: &mut Build,
        inode: &InodeRecord<'_>,
        directory: &DirectoryRecord<'_>,
    ) -> Result<(), Problem> {
        let kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: 0 };
        let handle = self.add(store, build, inode, &directory.attributes, kind)?;
        let limit = |value: i64| u64::try_from(value).ok();
        let mut quota = Quota {
            namespace: limit(directory.namespace_quota),
            space: limit(directory.space_quota),
            ..Quota::default()
        };
        if let Some(message) = directory.kind_quotas {
            quota.by_kind = kind_quotas(message)?;
            if quota.namespace.is_none() && quota.space.is_none() {
                // Quirk: a_quota_of_kinds_alone_comes_back_with_a_huge_one_of_names: as that of the root; clients see the number
                quota.namespace = Some(i64::MAX as u64);
            }
        }
        build.set_quota(store, handle, quota);
        Ok(())
    }

    fn directories(&self, state: &mut State, build: &mut Build) -> Result<(), ImageError> {
        self.each(SectionName::InodeDir, |reader| {
            while let Some(message) = reader.next()? {
                let (mut parent, mut children) = (0, Vec::new());
                for field in Cursor::new(message).fields() {
                    match field.map_err(|e| reader.wire(e))? {
                        (1, Value::Varint(v)) => parent = v as i64,
                        (2, Value::Varint(v)) => children.push(v as i64),
                        (2, Value::Bytes(packed)) => {
                            let mut ids = Cursor::new(packed);
                            while !ids.is_empty() {
                                children.push(ids.varint().map_err(|e| reader.wire(e))? as i64);
                            }
                        }
                        (3, _) => return Err(ImageError::Unsupported("snapshots (references in INODE_DIR)".into())),
                        _ => {}
                    }
                }
                let find = |id: i64| {
                    let missing = || {
                        content(
                            "INODE_DIR",
                            &format!("directory {parent} needs inode {id}, which the image does not have"),
                        )
                    };
                    state.store.find_inode(InodeId(id)).ok_or_else(missing)
                };
                let directory = find(parent)?;
                let handles = children.into_iter().map(find).collect::<Result<Vec<_>, _>>()?;
                build
                    .set_children(&mut state.store, directory, &handles)
                    .map_err(|e| content("INODE_DIR", &e.to_string()))?;
            }
            Ok(())
        })?;
        Ok(())
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
        self.each(SectionName::CacheManager, |reader| {
            for field in Cursor::new(reader.message()?).fields() {
                match field.map_err(|e| reader.wire(e))? {
                    // the first number is 1, which a new file system has as 0
                    (1, Value::Varint(v)) => state.preserved.next_cache_directive = if v == 1 { 0 } else { v },
                    (2 | 3, Value::Varint(1..)) => {
                        return Err(ImageError::Unsupported("cache pools (section CACHE_MANAGER)".into()));
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        Ok(())
    }
}

fn content(section: &'static str, what: &str) -> ImageError {
    ImageError::Content { section, what: what.into() }
}

/// What is wrong with one record; the reader adds the place.
enum Problem {
    Wire(WireError),
    Content(String),
    Unsupported(String),
    Image(ImageError),
}

impl From<WireError> for Problem {
    fn from(e: WireError) -> Problem {
        Problem::Wire(e)
    }
}

impl From<ImageError> for Problem {
    fn from(e: ImageError) -> Problem {
        Problem::Image(e)
    }
}

/// Delimited messages of one section.
struct Reader<'a> {
    cursor: Cursor<'a>,
    section: Section,
}

impl<'a> Reader<'a> {
    fn wire(&self, error: WireError) -> ImageError {
        let offset = self.section.offset + self.section.length - self.cursor.rest().len() as u64;
        ImageError::Wire { section: self.section.name.text(), offset, error }
    }
    fn place(&self, problem: Problem) -> ImageError {
        match problem {
            Problem::Wire(error) => self.wire(error),
            Problem::Content(what) => ImageError::Content { section: self.section.name.text(), what },
            Problem::Unsupported(what) => ImageError::Unsupported(what),
            Problem::Image(error) => error,
        }
    }
    /// The next message; there must be one.
    fn message(&mut self) -> Result<&'a [u8], ImageError> {
        self.cursor.bytes().map_err(|e| self.wire(e))
    }
    /// The next message, if the section goes on.
    fn next(&mut self) -> Result<Option<&'a [u8]>, ImageError> {
        if self.cursor.is_empty() { Ok(None) } else { self.message().map(Some) }
    }
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
