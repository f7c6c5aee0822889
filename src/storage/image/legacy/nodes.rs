//! The inodes of an old image as plain values, found again by path: layouts differ in how they name a parent and whether inodes have ids.

use super::cursor::{Cursor, Permission};
use crate::image::summary::ImageError;
use std::collections::HashMap;
use vocab::layout::Feature;
use vocab::{Block, InodeId};

/// Index of a node; the root has 0.
pub(super) type Index = usize;
pub(super) const ROOT: Index = 0;
/// The smallest record of an inode.
const INODE_MIN: usize = 2 + 2 + 8 + 8 + 4;
/// The 11 bits that Hadoop has for a replication.
const REPLICATION_MAX: u16 = (1 << 11) - 1;
/// What Hadoop says of names that have become reserved since.
const RESERVED: &str = "/.reserved is a reserved path and .snapshot is a reserved path component in this version of HDFS. Please rollback and delete or rename this path, or upgrade with the -renameReserved [key-value pairs] option to automatically rename these paths during upgrade.";

pub(super) enum Kind<'a> {
    Directory { namespace_quota: i64, space_quota: i64, snapshottable: bool },
    File { replication: u16, block_size: u64, blocks: Vec<Block>, writer: Option<(&'a [u8], &'a [u8])> },
    Symlink(&'a [u8]),
}

pub(super) struct Node<'a> {
    pub id: InodeId,
    pub name: &'a [u8],
    pub parent: Index,
    pub permission: Permission<'a>,
    pub mtime: i64,
    pub atime: i64,
    pub kind: Kind<'a>,
}

/// All inodes, parents before their children.
pub(super) struct Nodes<'a> {
    pub list: Vec<Node<'a>>,
    by_name: HashMap<(Index, &'a [u8]), Index>,
    by_id: HashMap<InodeId, Index>,
    last_id: InodeId,
}

impl<'a> Nodes<'a> {
    pub fn new(last_id: InodeId) -> Nodes<'a> {
        Nodes { list: Vec::new(), by_name: HashMap::new(), by_id: HashMap::new(), last_id }
    }
    pub fn last_id(&self) -> InodeId {
        self.last_id
    }

    /// Reads `count` inodes, the root first.
    pub fn read(&mut self, cursor: &mut Cursor<'a>, count: i64) -> Result<(), ImageError> {
        let possible = usize::try_from(count).ok().filter(|n| *n >= 1 && *n <= cursor.remaining() / INODE_MIN);
        let count = possible.ok_or_else(|| cursor.content(&format!("has an impossible count of {count} inodes")))?;
        if cursor.u16()? != 0 {
            return Err(cursor.content("First node is not root"));
        }
        let mut root = self.node(cursor, b"", ROOT)?;
        // without ids of its own the root takes one from the sequence, and keeps the one it always has
        root.id = InodeId::ROOT;
        if !matches!(root.kind, Kind::Directory { .. }) {
            return Err(cursor.content("has a root that is no directory"));
        }
        self.by_id.insert(root.id, ROOT);
        self.list.push(root);
        match (cursor.has(Feature::FsimageNameOptimization), cursor.has(Feature::Snapshot)) {
            (false, _) => self.full_names(cursor, count),
            (true, false) => self.by_parent_path(cursor, count),
            (true, true) => self.by_parent_id(cursor, count),
        }
    }

    fn full_names(&mut self, cursor: &mut Cursor<'a>, count: usize) -> Result<(), ImageError> {
        while self.list.len() < count {
            let path = cursor.bytes()?;
            let cut = path.iter().rposition(|b| *b == b'/').ok_or_else(|| cursor.content("has a path without root"))?;
            let parent = self.find(&path[..cut]).ok_or_else(|| missing(cursor, &path[..cut]))?;
            self.add(cursor, &path[cut + 1..], parent)?;
        }
        Ok(())
    }

    fn by_parent_path(&mut self, cursor: &mut Cursor<'a>, count: usize) -> Result<(), ImageError> {
        while self.list.len() < count {
            let path = cursor.bytes()?;
            let parent = self.find(path).ok_or_else(|| missing(cursor, path))?;
            self.children(cursor, parent)?;
        }
        Ok(())
    }

    /// Directories with their children, each followed by the directories below it.
    fn by_parent_id(&mut self, cursor: &mut Cursor<'a>, count: usize) -> Result<(), ImageError> {
        let mut open = vec![1usize];
        while let Some(left) = open.last_mut() {
            if *left == 0 {
                open.pop();
                continue;
            }
            *left -= 1;
            let id = InodeId(cursor.i64()?);
            let parent = *self.by_id.get(&id).ok_or_else(|| cursor.content(&format!("needs inode {id}")))?;
            self.snapshots_of(cursor, parent)?;
            self.children(cursor, parent)?;
            if cursor.i32()? > 0 {
                return Err(ImageError::Unsupported("snapshots in an old layout".into()));
            }
            open.push(cursor.count(8)?);
        }
        if self.list.len() == count { Ok(()) } else { Err(cursor.content("has another count of inodes than it says")) }
    }

    /// The snapshots of a directory; there must be none. A directory with a limit of them allows them.
    fn snapshots_of(&mut self, cursor: &mut Cursor<'a>, directory: Index) -> Result<(), ImageError> {
        match cursor.i32()? {
            ..0 => Ok(()),
            0 => {
                let limit = cursor.i32()?;
                if let Kind::Directory { snapshottable, .. } = &mut self.list[directory].kind {
                    *snapshottable = limit > 0;
                }
                Ok(())
            }
            _ => Err(ImageError::Unsupported("snapshots in an old layout".into())),
        }
    }

    fn children(&mut self, cursor: &mut Cursor<'a>, parent: Index) -> Result<(), ImageError> {
        for _ in 0..cursor.count(INODE_MIN)? {
            let name = cursor.bytes()?;
            self.add(cursor, name, parent)?;
        }
        Ok(())
    }

    fn add(&mut self, cursor: &mut Cursor<'a>, name: &'a [u8], parent: Index) -> Result<(), ImageError> {
        let snapshot = name == b".snapshot" && !cursor.has(Feature::Snapshot);
        let reserved = name == b".reserved" && parent == ROOT && !cursor.has(Feature::AddInodeId);
        if snapshot || reserved {
            return Err(cursor.content(RESERVED));
        }
        if name.is_empty() || name.contains(&b'/') {
            return Err(cursor.content("has an inode without a name"));
        }
        if !matches!(self.list[parent].kind, Kind::Directory { .. }) {
            return Err(cursor.content("has children of an inode that is no directory"));
        }
        let node = self.node(cursor, name, parent)?;
        let index = self.list.len();
        let doubled =
            self.by_name.insert((parent, name), index).is_some() || self.by_id.insert(node.id, index).is_some();
        if doubled {
            return Err(cursor.content(&format!("has {} twice", String::from_utf8_lossy(name))));
        }
        self.list.push(node);
        Ok(())
    }

    fn find(&self, path: &[u8]) -> Option<Index> {
        let mut components = path.split(|b| *b == b'/').filter(|component| !component.is_empty());
        components.try_fold(ROOT, |at, component| self.by_name.get(&(at, component)).copied())
    }

    /// An id from the file, or else the next one: every record takes one, also those of files that are listed a second time.
    fn id(&mut self, cursor: &mut Cursor<'a>) -> Result<InodeId, ImageError> {
        if cursor.has(Feature::AddInodeId) {
            return Ok(InodeId(cursor.i64()?));
        }
        self.last_id.0 += 1;
        Ok(self.last_id)
    }

    fn node(&mut self, cursor: &mut Cursor<'a>, name: &'a [u8], parent: Index) -> Result<Node<'a>, ImageError> {
        let id = self.id(cursor)?;
        let (replication, mtime) = (cursor.u16()?, cursor.i64()?);
        let atime = if cursor.has(Feature::FileAccessTime) { cursor.i64()? } else { 0 };
        let (block_size, blocks) = (cursor.i64()?, cursor.i32()?);
        let kind = match blocks {
            0.. => self.file(cursor, replication, block_size, blocks as usize)?,
            -1 => directory(cursor)?,
            -2 if cursor.has(Feature::Symlinks) => Kind::Symlink(cursor.text()?),
            -3 if cursor.has(Feature::Snapshot) => {
                return Err(ImageError::Unsupported("snapshots in an old layout".into()));
            }
            _ => return Err(cursor.content(&format!("Unknown inode type: numBlocks={blocks}"))),
        };
        Ok(Node { id, name, parent, permission: cursor.permission()?, mtime, atime, kind })
    }

    fn file(
        &self,
        cursor: &mut Cursor<'a>,
        replication: u16,
        block_size: i64,
        blocks: usize,
    ) -> Result<Kind<'a>, ImageError> {
        if replication > REPLICATION_MAX {
            return Err(cursor.content(&format!("has a file of {replication} replicas")));
        }
        let blocks = cursor.blocks(blocks)?;
        if cursor.has(Feature::Snapshot) && cursor.i32()? > 0 {
            return Err(ImageError::Unsupported("snapshots in an old layout".into()));
        }
        let block_size = u64::try_from(block_size).map_err(|_| cursor.content("has a negative block size"))?;
        Ok(Kind::File { replication, block_size, blocks, writer: None })
    }

    /// The files that are being written: their inodes again, with who writes.
    pub fn read_under_construction(&mut self, cursor: &mut Cursor<'a>) -> Result<(), ImageError> {
        for _ in 0..cursor.count(INODE_MIN)? {
            let path = cursor.bytes()?;
            self.id(cursor)?;
            let _replication = cursor.u16()?;
            let (_mtime, _block_size, count) = (cursor.i64()?, cursor.i64()?, cursor.i32()?);
            let count = usize::try_from(count).map_err(|_| cursor.content("has a negative count of blocks"))?;
            let again = cursor.blocks(count)?;
            cursor.permission()?;
            let client = (cursor.bytes()?, cursor.bytes()?);
            if cursor.i32()? != 0 {
                return Err(cursor.content("has locations of an open block"));
            }
            let index = self.find(path).ok_or_else(|| missing(cursor, path))?;
            let Kind::File { blocks, writer, .. } = &mut self.list[index].kind else {
                return Err(cursor.content("has a directory that is being written"));
            };
            *writer = Some(client);
            // the last block counts as it is here
            if let (Some(last), Some(newer)) = (blocks.last_mut(), again.last()) {
                *last = *newer;
            }
        }
        Ok(())
    }
}

fn directory<'a>(cursor: &mut Cursor<'a>) -> Result<Kind<'a>, ImageError> {
    let namespace_quota = cursor.i64()?;
    let space_quota = if cursor.has(Feature::DiskspaceQuota) { cursor.i64()? } else { -1 };
    // whether it allows snapshots, and if not, whether it was in one: both said again with its children
    if cursor.has(Feature::Snapshot) && !cursor.bool()? {
        cursor.bool()?;
    }
    Ok(Kind::Directory { namespace_quota, space_quota, snapshottable: false })
}

fn missing(cursor: &Cursor<'_>, path: &[u8]) -> ImageError {
    cursor.content(&format!("needs {}, which it does not have", String::from_utf8_lossy(path)))
}
