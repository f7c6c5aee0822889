//! The INODE section into records: each part by a worker, with what it cannot do itself (indexes, side tables) as a list for the one that can.

use super::cut::{Part, Place};
use super::features::{acl_entries, is_storage_policy, kind_quotas, xattrs};
use super::inode::{Attributes, Body, DirectoryRecord, FileRecord, InodeRecord, PackedPermission, parse_symlink};
use super::strings::{Kind, StringTables};
use super::summary::ImageError;
use hadoop_proto::wire::WireError;
use namespace::bulk::{Side, Totals};
use namespace::erasure_coding::Policies;
use namespace::quota::FileShape;
use record::{BulkBlocks, BulkInode, BulkWorker, Features, InodeHandle, InodeKind, Owner, PartIds};
use vocab::erasure_coding::REPLICATION;
use vocab::quota::Quota;
use vocab::storage_policy::UNSPECIFIED;
use vocab::xattr::Xattr;
use vocab::{Block, InodeId, Mode};

/// Owners that a worker remembers, by their packed numbers: a power of two.
const OWNERS: usize = 256;

/// What is wrong with one record; the place is added later.
pub(super) enum Problem {
    Wire(WireError),
    Content(String),
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

/// What one part has given beside records.
#[derive(Default)]
pub(super) struct Decoded {
    pub(super) place: Place,
    pub(super) ids: PartIds,
    pub(super) sides: Vec<(InodeHandle, Side)>,
    /// The root, and whether it is a directory.
    pub(super) root: Option<(InodeHandle, bool)>,
    pub(super) totals: Totals,
    pub(super) count: u64,
    pub(super) error: Option<ImageError>,
}

impl Decoded {
    /// Forgets all; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.sides.clear();
        (self.root, self.totals, self.count, self.error) = (None, Totals::default(), 0, None);
    }
}

/// What decoding needs to know.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) strings: &'a StringTables,
    pub(super) policies: &'a Policies,
}

/// Decodes parts into records of its own.
pub(super) struct RecordWorker<'a, 'b> {
    pub(super) records: BulkWorker<'b>,
    context: Context<'a>,
    owners: Vec<Option<(u64, Owner)>>,
    /// Blocks of the file at hand.
    blocks: Vec<Block>,
}

impl<'a, 'b> RecordWorker<'a, 'b> {
    pub(super) fn new(records: BulkWorker<'b>, context: Context<'a>) -> RecordWorker<'a, 'b> {
        RecordWorker { records, context, owners: vec![None; OWNERS], blocks: Vec::new() }
    }

    /// Decodes one part, up to its first error.
    pub(super) fn decode(&mut self, part: &Part, out: &mut Decoded) {
        out.clear();
        out.place = part.place;
        let mut records = part.records();
        loop {
            let message = match records.next() {
                Ok(Some(message)) => message,
                Ok(None) => break,
                Err(error) => {
                    out.error = Some(error);
                    break;
                }
            };
            if let Err(problem) = self.inode(message, out) {
                out.error = Some(match problem {
                    Problem::Wire(error) => records.wire(error),
                    Problem::Content(what) => ImageError::Content { section: records.section(), what },
                    Problem::Image(error) => error,
                });
                break;
            }
            out.count += 1;
        }
        out.ids.sort();
    }

    #[inline(always)]
    fn inode(&mut self, message: &[u8], out: &mut Decoded) -> Result<(), Problem> {
        let InodeRecord { id, name, body } = InodeRecord::parse(message)?;
        match body {
            Body::File(body) => self.file(id, name, body, out),
            Body::Directory(body) => self.directory(id, name, body, out),
            Body::Symlink(body) => {
                let (attributes, target) = parse_symlink(body)?;
                let side = (Features::SYMLINK_TARGET, Side::Symlink(target.to_vec()));
                let sides = self.sides(Some(side), &attributes, &mut InodeKind::Symlink)?;
                self.add(id, name, &attributes, InodeKind::Symlink, BulkBlocks::NONE, sides, out)
            }
        }
    }

    fn owner(&mut self, permission: PackedPermission) -> Result<Owner, ImageError> {
        let packed = permission.0 >> 16;
        let at = (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % OWNERS;
        if let Some((known, owner)) = self.owners[at]
            && known == packed
        {
            return Ok(owner);
        }
        let strings = self.context.strings;
        let user = strings.get(Kind::User, permission.user())?.map_or("", |s| s);
        let group = strings.get(Kind::Group, permission.group())?.map_or("", |s| s);
        let owner = self.records.owner(user, group);
        self.owners[at] = Some((packed, owner));
        Ok(owner)
    }

    /// What side tables have of an inode.
    fn sides(
        &self,
        own: Option<(Features, Side)>,
        attributes: &Attributes<'_>,
        kind: &mut InodeKind,
    ) -> Result<Vec<(Features, Side)>, Problem> {
        let mut sides = Vec::new();
        sides.extend(own);
        if let Some(message) = attributes.acl {
            let entries = acl_entries(message, self.context.strings)?;
            if !entries.is_empty() {
                sides.push((Features::ACL, Side::Acl(entries)));
            }
        }
        if let Some(message) = attributes.xattrs {
            let all = self.xattrs(message, kind)?;
            if !all.is_empty() {
                sides.push((Features::XATTRS, Side::Xattrs(all)));
            }
        }
        Ok(sides)
    }

    /// Adds an inode with what every kind has.
    #[allow(clippy::too_many_arguments)] // as one value they would go through memory once more
    #[inline(always)]
    fn add(
        &mut self,
        id: i64,
        name: &[u8],
        attributes: &Attributes<'_>,
        kind: InodeKind,
        blocks: BulkBlocks<'_>,
        sides: Vec<(Features, Side)>,
        out: &mut Decoded,
    ) -> Result<(), Problem> {
        let owner = self.owner(attributes.permission)?;
        let mut features = Features::NONE;
        sides.iter().for_each(|(feature, _)| features.insert(*feature));
        let is_directory = matches!(kind, InodeKind::Directory { .. });
        let (mode, Attributes { mtime, atime, .. }) = (Mode::new(attributes.permission.mode()), *attributes);
        let inode = BulkInode { id, owner, mode, mtime, atime, features, kind };
        let handle = self.records.add(&inode, name, blocks, &mut out.ids);
        out.sides.extend(sides.into_iter().map(|(_, side)| (handle, side)));
        if id == InodeId::ROOT.0 {
            out.root = Some((handle, is_directory));
        }
        Ok(())
    }

    /// Attributes of an inode, but for the one that holds the storage policy of a directory.
    fn xattrs(&self, message: &[u8], kind: &mut InodeKind) -> Result<Vec<Xattr>, Problem> {
        let mut all = xattrs(message, self.context.strings)?;
        if let InodeKind::Directory { storage_policy, .. } = kind
            && let Some(at) = all.iter().position(is_storage_policy)
        {
            *storage_policy = all.remove(at).value.first().copied().unwrap_or(UNSPECIFIED);
        }
        Ok(all)
    }

    fn file(&mut self, id: i64, name: &[u8], body: &[u8], out: &mut Decoded) -> Result<(), Problem> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.clear();
        let done = self.file_with(id, name, body, &mut blocks, out);
        self.blocks = blocks;
        done
    }

    #[inline(always)]
    fn file_with(
        &mut self,
        id: i64,
        name: &[u8],
        body: &[u8],
        blocks: &mut Vec<Block>,
        out: &mut Decoded,
    ) -> Result<(), Problem> {
        let file = FileRecord::parse(body, blocks)?;
        let policies = self.context.policies;
        let (erasure_coding_policy, replication) = match file.erasure_coding_policy {
            Some(policy) => match u8::try_from(policy).ok().filter(|policy| policies.by_id(*policy).is_some()) {
                Some(policy) => (policy, 1),
                None => {
                    let text = format!("erasure coding policy {policy} of inode {id} does not exist");
                    return Err(Problem::Content(text));
                }
            },
            None => (REPLICATION, file.replication as u16),
        };
        let (block_size, storage_policy) = (file.block_size.max(1), file.storage_policy as u8);
        let open = file.construction.is_some();
        let stripe = policies.stripe(erasure_coding_policy);
        let shape = FileShape { replication, block_size, open, storage_policy, erasure_coding_policy, stripe };
        out.totals.add_file(&shape, blocks);
        let mut kind = InodeKind::File { replication, block_size, storage_policy, erasure_coding_policy };
        let own = file.construction.map(|(client, machine)| {
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            (Features::CONSTRUCTION, Side::Construction(text(client), text(machine)))
        });
        let plain = own.is_none() && file.attributes.acl.is_none() && file.attributes.xattrs.is_none();
        let sides = if plain { Vec::new() } else { self.sides(own, &file.attributes, &mut kind)? };
        let blocks = BulkBlocks { blocks, replication, open, storage_policy, erasure_coding_policy };
        self.add(id, name, &file.attributes, kind, blocks, sides, out)
    }

    fn directory(&mut self, id: i64, name: &[u8], body: &[u8], out: &mut Decoded) -> Result<(), Problem> {
        let directory = DirectoryRecord::parse(body)?;
        let mut kind = InodeKind::Directory { children: 0, child_count: 0, storage_policy: UNSPECIFIED };
        let limit = |value: i64| u64::try_from(value).ok();
        let mut quota = Quota {
            namespace: limit(directory.namespace_quota),
            space: limit(directory.space_quota),
            ..Quota::default()
        };
        if let Some(message) = directory.kind_quotas {
            // Quirk: a_quota_of_kinds_alone_comes_back_alone: Hadoop gives such a directory a huge quota of names whenever it starts from an image
            quota.by_kind = kind_quotas(message)?;
        }
        let own = (quota != Quota::default()).then_some((Features::QUOTA, Side::Quota(quota)));
        let sides = self.sides(own, &directory.attributes, &mut kind)?;
        if let InodeKind::Directory { storage_policy, .. } = kind {
            out.totals.policies |= storage_policy != UNSPECIFIED;
        }
        self.add(id, name, &directory.attributes, kind, BulkBlocks::NONE, sides, out)
    }
}
