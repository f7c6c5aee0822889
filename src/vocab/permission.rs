//! POSIX modes and the owner of an inode.

use std::fmt;
use std::sync::Arc;

/// What an access wants: any union of read 4, write 2, execute 1 (Hadoop's `FsAction`, same numbers).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Action(pub u8);

impl Action {
    /// No access.
    pub const NONE: Action = Action(0);
    /// Traverse or execute.
    pub const EXECUTE: Action = Action(1);
    /// Write.
    pub const WRITE: Action = Action(2);
    /// Write and execute.
    pub const WRITE_EXECUTE: Action = Action(3);
    /// Read.
    pub const READ: Action = Action(4);
    /// Read and execute.
    pub const READ_EXECUTE: Action = Action(5);
    /// Read and write.
    pub const READ_WRITE: Action = Action(6);
    /// Everything.
    pub const ALL: Action = Action(7);

    /// Whether all of `wanted` is in `self`.
    pub fn implies(self, wanted: Action) -> bool {
        self.0 & wanted.0 == wanted.0
    }
    /// The name Hadoop prints in "access=...".
    pub fn name(self) -> &'static str {
        ["NONE", "EXECUTE", "WRITE", "WRITE_EXECUTE", "READ", "READ_EXECUTE", "READ_WRITE", "ALL"]
            [(self.0 & 7) as usize]
    }
    /// Three characters as in `ls -l`.
    pub fn symbol(self) -> &'static str {
        ["---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"][(self.0 & 7) as usize]
    }
}

/// Nine permission bits and the sticky bit (01777). Other bits are never stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(transparent)]
pub struct Mode(u16);

impl Mode {
    /// The bits that exist: nine permission bits and sticky.
    pub const MASK: u16 = 0o1777;
    /// Keeps the ten bits that HDFS stores.
    pub const fn new(bits: u16) -> Mode {
        Mode(bits & Self::MASK)
    }
    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Owner's bits.
    pub const fn user(self) -> Action {
        Action((self.0 >> 6 & 7) as u8)
    }
    /// Group's bits (the mask, where an ACL exists).
    pub const fn group(self) -> Action {
        Action((self.0 >> 3 & 7) as u8)
    }
    /// Everybody else's bits.
    pub const fn other(self) -> Action {
        Action((self.0 & 7) as u8)
    }
    /// Whether only owners may delete entries of this directory.
    pub const fn sticky(self) -> bool {
        self.0 & 0o1000 != 0
    }
    /// The mode with the bits of `umask` cleared; sticky stays.
    pub const fn without(self, umask: Mode) -> Mode {
        Mode(self.0 & !(umask.0 & 0o777))
    }
}

impl fmt::Display for Mode {
    /// Nine characters as Hadoop's `FsPermission.toString`: `rwxr-xr-t`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other = self.other().symbol();
        write!(f, "{}{}", self.user().symbol(), self.group().symbol())?;
        if self.sticky() {
            write!(f, "{}{}", &other[..2], if self.other().0 & 1 != 0 { 't' } else { 'T' })
        } else {
            f.write_str(other)
        }
    }
}

/// Owner, group and mode, by name: what records and requests carry.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub struct PermissionStatus {
    /// Owning user.
    pub user: Arc<str>,
    /// Owning group; `None` where a record leaves it to be inherited.
    pub group: Option<Arc<str>>,
    /// Mode bits.
    pub mode: Mode,
}
