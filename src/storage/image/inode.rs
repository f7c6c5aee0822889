//! One inode of an image as borrowed values: decoded in place, nothing allocated.

use hadoop_proto::wire::{Cursor, Value, WireError};
use vocab::{Block, BlockId, GenerationStamp};

/// Packed owner, group and mode (`fixed64`): mode in bits 0 to 15, group serial in 16 to 39, user serial in 40 to 63.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct PackedPermission(pub u64);

impl PackedPermission {
    /// Packs; serials have 24 bits.
    pub fn new(user: u32, group: u32, mode: u16) -> PackedPermission {
        PackedPermission(u64::from(user) << 40 | u64::from(group) << 16 | u64::from(mode))
    }
    /// Serial number of the user.
    pub fn user(self) -> u32 {
        (self.0 >> 40) as u32
    }
    /// Serial number of the group.
    pub fn group(self) -> u32 {
        (self.0 >> 16) as u32 & 0xFF_FFFF
    }
    /// Mode.
    pub fn mode(self) -> u16 {
        self.0 as u16
    }
}

/// Attributes that files, directories and their snapshot copies share.
#[derive(Clone, Copy, Default, Debug)]
pub struct Attributes<'a> {
    /// Owner, group, mode.
    pub permission: PackedPermission,
    /// Modification time in ms.
    pub mtime: i64,
    /// Access time in ms.
    pub atime: i64,
    /// Packed ACL entries (the message's bytes).
    pub acl: Option<&'a [u8]>,
    /// Extended attributes (the message's bytes).
    pub xattrs: Option<&'a [u8]>,
}

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct FileRecord<'a> {
    /// Shared attributes.
    pub attributes: Attributes<'a>,
    /// Replication.
    pub replication: u32,
    /// Preferred block size in bytes.
    pub block_size: u64,
    /// Lease holder and its host, if the file is open.
    pub construction: Option<(&'a [u8], &'a [u8])>,
    /// Storage policy, 0 for none.
    pub storage_policy: u32,
    /// Erasure coding policy; its presence makes the file striped.
    pub erasure_coding_policy: Option<u32>,
    /// Whether the record says that its blocks are striped.
    pub striped: bool,
}

/// A directory. Quotas are -1 where there is none.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryRecord<'a> {
    /// Shared attributes; no access time.
    pub attributes: Attributes<'a>,
    /// Namespace quota.
    pub namespace_quota: i64,
    /// Space quota.
    pub space_quota: i64,
    /// Quotas by storage type (the message's bytes).
    pub kind_quotas: Option<&'a [u8]>,
}

/// One inode, its body not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct InodeRecord<'a> {
    /// Number.
    pub id: i64,
    /// Local name; empty for the root.
    pub name: &'a [u8],
    /// What it is.
    pub body: Body<'a>,
}

/// What an inode is, with the message that tells more.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// For [`FileRecord::parse`].
    File(&'a [u8]),
    /// For [`DirectoryRecord::parse`].
    Directory(&'a [u8]),
    /// For [`parse_symlink`].
    Symlink(&'a [u8]),
}

/// Steps over a tag, if it comes next: writers put fields in order of their numbers, so that most of a record is met without a look at what else a tag
/// could be.
#[inline(always)]
fn comes(cursor: &mut Cursor<'_>, tag: u8) -> bool {
    match cursor.rest() {
        [first, rest @ ..] if *first == tag => {
            *cursor = Cursor::new(rest);
            true
        }
        _ => false,
    }
}
/// Tag of a field with one byte.
const fn varint(number: u8) -> u8 {
    number << 3
}
const fn fixed64(number: u8) -> u8 {
    number << 3 | 1
}
const fn bytes(number: u8) -> u8 {
    number << 3 | 2
}

impl<'a> InodeRecord<'a> {
    /// Decodes the message of one inode.
    ///
    /// # Errors
    /// [`WireError`]; a record whose type has no body is [`WireError::Truncated`].
    #[inline(always)] // its fields are taken apart at once: as a value it would go through memory several times
    pub fn parse(message: &'a [u8]) -> Result<InodeRecord<'a>, WireError> {
        let (mut tag, mut id, mut name) = (0, 0, &b""[..]);
        let (mut file, mut directory, mut symlink) = (None, None, None);
        let mut cursor = Cursor::new(message);
        if comes(&mut cursor, varint(1)) {
            tag = cursor.varint()?;
        }
        if comes(&mut cursor, varint(2)) {
            id = cursor.varint()? as i64;
        }
        if comes(&mut cursor, bytes(3)) {
            name = cursor.bytes()?;
        }
        if comes(&mut cursor, bytes(4)) {
            file = Some(cursor.bytes()?);
        }
        while let Some(field) = cursor.field()? {
            match field {
                (1, Value::Varint(v)) => tag = v,
                (2, Value::Varint(v)) => id = v as i64,
                (3, Value::Bytes(b)) => name = b,
                (4, Value::Bytes(b)) => file = Some(b),
                (5, Value::Bytes(b)) => directory = Some(b),
                (6, Value::Bytes(b)) => symlink = Some(b),
                _ => {}
            }
        }
        let body = match tag {
            1 => file.map(Body::File),
            2 => directory.map(Body::Directory),
            3 => symlink.map(Body::Symlink),
            _ => None,
        };
        Ok(InodeRecord { id, name, body: body.ok_or(WireError::Truncated)? })
    }
}

impl<'a> FileRecord<'a> {
    /// Decodes an `INodeFile`; its blocks come to those given, in order.
    ///
    /// # Errors
    /// [`WireError`].
    #[inline(always)] // as that of an inode
    pub fn parse(message: &'a [u8], blocks: &mut Vec<Block>) -> Result<FileRecord<'a>, WireError> {
        let mut file = FileRecord {
            attributes: Attributes::default(),
            replication: 0,
            block_size: 0,
            construction: None,
            storage_policy: 0,
            erasure_coding_policy: None,
            striped: false,
        };
        let mut cursor = Cursor::new(message);
        if comes(&mut cursor, varint(1)) {
            file.replication = cursor.varint()? as u32;
        }
        if comes(&mut cursor, varint(2)) {
            file.attributes.mtime = cursor.varint()? as i64;
        }
        if comes(&mut cursor, varint(3)) {
            file.attributes.atime = cursor.varint()? as i64;
        }
        if comes(&mut cursor, varint(4)) {
            file.block_size = cursor.varint()?;
        }
        if comes(&mut cursor, fixed64(5)) {
            file.attributes.permission = PackedPermission(cursor.fixed64()?);
        }
        while comes(&mut cursor, bytes(6)) {
            blocks.push(parse_block(cursor.bytes()?)?);
        }
        while let Some(field) = cursor.field()? {
            match field {
                (1, Value::Varint(v)) => file.replication = v as u32,
                (2, Value::Varint(v)) => file.attributes.mtime = v as i64,
                (3, Value::Varint(v)) => file.attributes.atime = v as i64,
                (4, Value::Varint(v)) => file.block_size = v,
                (5, Value::Fixed64(v)) => file.attributes.permission = PackedPermission(v),
                (6, Value::Bytes(b)) => blocks.push(parse_block(b)?),
                (7, Value::Bytes(b)) => file.construction = Some(parse_construction(b)?),
                (8, Value::Bytes(b)) => file.attributes.acl = Some(b),
                (9, Value::Bytes(b)) => file.attributes.xattrs = Some(b),
                (10, Value::Varint(v)) => file.storage_policy = v as u32,
                (11, Value::Varint(v)) => file.striped = v == 1,
                (12, Value::Varint(v)) => file.erasure_coding_policy = Some(v as u32),
                _ => {}
            }
        }
        Ok(file)
    }
}

impl<'a> DirectoryRecord<'a> {
    /// Decodes an `INodeDirectory`.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn parse(message: &'a [u8]) -> Result<DirectoryRecord<'a>, WireError> {
        let mut directory = DirectoryRecord {
            attributes: Attributes::default(),
            namespace_quota: -1,
            space_quota: -1,
            kind_quotas: None,
        };
        let mut cursor = Cursor::new(message);
        while let Some(field) = cursor.field()? {
            match field {
                (1, Value::Varint(v)) => directory.attributes.mtime = v as i64,
                (2, Value::Varint(v)) => directory.namespace_quota = v as i64,
                (3, Value::Varint(v)) => directory.space_quota = v as i64,
                (4, Value::Fixed64(v)) => directory.attributes.permission = PackedPermission(v),
                (5, Value::Bytes(b)) => directory.attributes.acl = Some(b),
                (6, Value::Bytes(b)) => directory.attributes.xattrs = Some(b),
                (7, Value::Bytes(b)) => directory.kind_quotas = Some(b),
                _ => {}
            }
        }
        Ok(directory)
    }
}

/// Decodes an `INodeSymlink`: attributes and target.
///
/// # Errors
/// [`WireError`].
pub fn parse_symlink(message: &[u8]) -> Result<(Attributes<'_>, &[u8]), WireError> {
    let (mut attributes, mut target) = (Attributes::default(), &b""[..]);
    let mut cursor = Cursor::new(message);
    while let Some(field) = cursor.field()? {
        match field {
            (1, Value::Fixed64(v)) => attributes.permission = PackedPermission(v),
            (2, Value::Bytes(b)) => target = b,
            (3, Value::Varint(v)) => attributes.mtime = v as i64,
            (4, Value::Varint(v)) => attributes.atime = v as i64,
            _ => {}
        }
    }
    Ok((attributes, target))
}

fn parse_construction(message: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let (mut name, mut machine) = (&b""[..], &b""[..]);
    let mut cursor = Cursor::new(message);
    while let Some(field) = cursor.field()? {
        match field {
            (1, Value::Bytes(b)) => name = b,
            (2, Value::Bytes(b)) => machine = b,
            _ => {}
        }
    }
    Ok((name, machine))
}

/// Decodes a `BlockProto`.
///
/// # Errors
/// [`WireError`].
pub fn parse_block(message: &[u8]) -> Result<Block, WireError> {
    let mut block = Block::default();
    let mut cursor = Cursor::new(message);
    if comes(&mut cursor, varint(1)) {
        block.id = BlockId(cursor.varint()? as i64);
    }
    if comes(&mut cursor, varint(2)) {
        block.stamp = GenerationStamp(cursor.varint()? as i64);
    }
    if comes(&mut cursor, varint(3)) {
        block.length = cursor.varint()?;
    }
    while let Some(field) = cursor.field()? {
        match field {
            (1, Value::Varint(v)) => block.id = BlockId(v as i64),
            (2, Value::Varint(v)) => block.stamp = GenerationStamp(v as i64),
            (3, Value::Varint(v)) => block.length = v,
            _ => {}
        }
    }
    Ok(block)
}
