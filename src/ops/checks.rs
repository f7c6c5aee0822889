//! What most operations ask first: the walk of a path, access, safe mode, names and limits. Order and words are Hadoop's
//! (`FSDirectory.resolvePath`, `FSPermissionChecker`, `FSDirectory.verifyFSLimits`).

use crate::{Settings, View};
use namespace::access::is_superuser;
use namespace::resolve::text;
use namespace::{Checker, Resolved, Walk, Wanted};
use record::{InodeHandle, KindTag};
use std::net::IpAddr;
use std::sync::Arc;
use vocab::layout::Feature;
use vocab::limits::{PATH_DEPTH_MAX, PATH_LENGTH_MAX};
use vocab::path::{components, is_valid_name};
use vocab::{Action, Block, Caller, InodeId, Refusal, TimeMs};

/// `InvalidPathException` as Hadoop words it.
pub fn invalid_path(what: &str) -> Refusal {
    Refusal::InvalidPath(format!("Invalid path name {what}").into())
}

/// The refusal of a path that does not begin at the root.
pub(crate) fn not_absolute(path: &[u8]) -> Refusal {
    Refusal::Assertion(format!("Absolute path required, but got '{}'", text(path)).into())
}

/// # Errors
/// [`not_absolute`].
pub(crate) fn check_absolute(path: &[u8]) -> Result<(), Refusal> {
    if path.first() == Some(&b'/') { Ok(()) } else { Err(not_absolute(path)) }
}

/// That a caller may do what only superusers may, where the name of the operation is in the refusal (`checkSuperuserPrivilege`). Asks for no
/// state: what is refused need not wait for it.
///
/// # Errors
/// `AccessControl`, unless permissions are off.
pub fn superuser_for(settings: &Settings, caller: &Caller, operation: &str) -> Result<(), Refusal> {
    if !settings.permissions || is_superuser(caller, &settings.owner, &settings.super_group) {
        return Ok(());
    }
    let user = &caller.user;
    let text = format!("Access denied for user {user}. Superuser privilege is required for operation {operation}");
    Err(Refusal::AccessControl(text.into()))
}

impl<'a> View<'a> {
    /// Whether the caller is a superuser.
    pub fn is_superuser(&self) -> bool {
        is_superuser(self.caller, &self.settings.owner, &self.settings.super_group)
    }

    /// A checker for the caller.
    pub fn checker(&self) -> Checker<'a> {
        Checker::new(&self.state.tree, &self.state.store, self.caller, self.is_superuser())
    }

    /// Walks a path for an operation: names that may be made are valid, ancestors are directories that the caller may traverse, symlinks are left
    /// to the client.
    ///
    /// # Errors
    /// `InvalidPath`, `FileNotFound` (by id), `PermissionDenied`, `AccessControl`, `ParentNotDirectory` (walks that create), `UnresolvedPath`,
    /// `SnapshotIsReadOnly` for changes of the past.
    pub fn resolve<'p>(&self, path: &'p [u8], walk: Walk) -> Result<Resolved<'p>, Refusal> {
        self.resolve_for(path, walk, self.settings.permissions)
    }

    /// As [`View::resolve`] to read, but what the caller may is left to a later check: calls that say first whether there is such a file.
    ///
    /// # Errors
    /// As [`View::resolve`], without `PermissionDenied`.
    pub fn resolve_before_access<'p>(&self, path: &'p [u8]) -> Result<Resolved<'p>, Refusal> {
        self.resolve_for(path, Walk::Read, false)
    }

    /// As [`View::resolve`] to change something, with nothing asked of the caller.
    ///
    /// # Errors
    /// As [`View::resolve`], without `PermissionDenied`.
    pub fn resolve_unchecked<'p>(&self, path: &'p [u8]) -> Result<Resolved<'p>, Refusal> {
        self.resolve_for(path, Walk::Write, false)
    }

    fn resolve_for<'p>(&self, path: &'p [u8], walk: Walk, permissions: bool) -> Result<Resolved<'p>, Refusal> {
        if walk.creates() && !is_valid_name(path) {
            return Err(invalid_path(&format!("Invalid file name: {}", text(path))));
        }
        self.resolve_valid(path, walk, permissions)
    }

    /// As [`View::resolve`], of a name that is known to be valid.
    pub(crate) fn resolve_valid<'p>(
        &self,
        path: &'p [u8],
        walk: Walk,
        permissions: bool,
    ) -> Result<Resolved<'p>, Refusal> {
        if path.first() != Some(&b'/') {
            return Err(not_absolute(path));
        }
        let resolved = self.state.tree.resolve(&self.state.store, path)?;
        if permissions && resolved.raw && !walk.reads() {
            self.require_superuser()?;
        }
        self.traverse(&resolved, walk, permissions)?;
        if !walk.reads() && resolved.is_past() {
            return Err(Refusal::SnapshotIsReadOnly);
        }
        Ok(resolved)
    }

    fn traverse(&self, resolved: &Resolved<'_>, walk: Walk, permissions: bool) -> Result<(), Refusal> {
        let checker = self.checker();
        let walked = if permissions { checker.traverse(resolved) } else { checker.traverse_unchecked(resolved) };
        match walked {
            Err(Refusal::ParentNotDirectory(text)) if !walk.creates() => return Err(Refusal::AccessControl(text)),
            other => other?,
        }
        if walk.follows()
            && let Some(link) = self.state.tree.unresolved(&self.state.store, resolved, resolved.depth())
        {
            return Err(link);
        }
        Ok(())
    }

    /// Access along a path, if permissions are on.
    ///
    /// # Errors
    /// See [`Checker::check`].
    pub fn check(&self, resolved: &Resolved<'_>, wanted: Wanted) -> Result<(), Refusal> {
        if self.settings.permissions { self.checker().check(resolved, wanted) } else { Ok(()) }
    }
    /// Access to the inode itself.
    ///
    /// # Errors
    /// See [`Checker::check`].
    pub fn check_inode(&self, resolved: &Resolved<'_>, action: Action) -> Result<(), Refusal> {
        self.check(resolved, Wanted { inode: Some(action), ..Wanted::default() })
    }
    /// Access to the parent.
    ///
    /// # Errors
    /// See [`Checker::check`].
    pub fn check_parent(&self, resolved: &Resolved<'_>, action: Action) -> Result<(), Refusal> {
        self.check(resolved, Wanted { parent: Some(action), ..Wanted::default() })
    }
    /// Access to the deepest existing ancestor.
    ///
    /// # Errors
    /// See [`Checker::check`].
    pub fn check_ancestor(&self, resolved: &Resolved<'_>, action: Action) -> Result<(), Refusal> {
        self.check(resolved, Wanted { ancestor: Some(action), ..Wanted::default() })
    }
    /// Ownership of the inode.
    ///
    /// # Errors
    /// See [`Checker::check`].
    pub fn check_owner(&self, resolved: &Resolved<'_>) -> Result<(), Refusal> {
        if resolved.last().is_none() {
            return Err(Refusal::not_found(format!("Directory/File does not exist {}", resolved.path_text())));
        }
        self.check(resolved, Wanted { owner: true, ..Wanted::default() })
    }
    /// That the caller is a superuser, whatever the switch for permissions says.
    ///
    /// # Errors
    /// `SuperuserRequired`.
    pub fn require_superuser(&self) -> Result<(), Refusal> {
        if self.is_superuser() {
            return Ok(());
        }
        Err(Refusal::SuperuserRequired(self.caller.user.clone()))
    }
    /// That the caller is a superuser, if permissions are on.
    ///
    /// # Errors
    /// `SuperuserRequired`.
    pub fn check_superuser(&self) -> Result<(), Refusal> {
        if self.settings.permissions { self.require_superuser() } else { Ok(()) }
    }

    /// That the name node is not in safe mode; `what` opens the message.
    ///
    /// # Errors
    /// `SafeMode`.
    pub fn check_safe_mode(&self, what: impl FnOnce() -> String) -> Result<(), Refusal> {
        if !self.state.blocks.safe_mode.is_on() {
            return Ok(());
        }
        let status = self.state.blocks.safe_mode.status(self.now.monotonic);
        Err(Refusal::SafeMode { what: what().into(), status: status.into() })
    }

    /// That a path is not too long or too deep to be made (`NameNodeRpcServer.checkPathLength`).
    ///
    /// # Errors
    /// `Io`.
    pub fn check_path_length(&self, what: &str, path: &[u8]) -> Result<(), Refusal> {
        if path.is_empty() {
            return Err(Refusal::IllegalArgument("Can not create a Path from an empty string".into()));
        }
        if path.len() <= PATH_DEPTH_MAX.min(PATH_LENGTH_MAX) {
            return Ok(()); // neither can be exceeded
        }
        let units = String::from_utf8_lossy(path).encode_utf16().count();
        // Java's Path drops a trailing slash and doubled ones before it counts levels.
        if units > PATH_LENGTH_MAX || components(path).count() > PATH_DEPTH_MAX {
            let text =
                format!("{what}: Pathname too long.  Limit {PATH_LENGTH_MAX} characters, {PATH_DEPTH_MAX} levels.");
            return Err(Refusal::Io(text.into()));
        }
        Ok(())
    }

    /// That the name at `depth` of a path may be entered into a directory: not reserved, not too long, the directory not too full.
    ///
    /// # Errors
    /// `HadoopIllegalArgument` for reserved names, `ComponentTooLong`, `DirectoryItems`.
    pub fn check_new_name(&self, parent: InodeHandle, path: &Resolved<'_>, depth: usize) -> Result<(), Refusal> {
        self.check_name(parent, path, depth)?;
        self.check_directory_items(parent, path, depth)
    }

    /// That one more child fits into a directory.
    ///
    /// # Errors
    /// `DirectoryItems`.
    pub fn check_directory_items(&self, parent: InodeHandle, path: &Resolved<'_>, depth: usize) -> Result<(), Refusal> {
        let limit = self.settings.directory_items;
        let count = self.state.store.children(parent).1 as usize;
        if count >= limit {
            return Err(Refusal::DirectoryItems { path: text(&path.path_to(depth - 1)), limit, count });
        }
        Ok(())
    }

    /// As [`View::check_new_name`], without the count of the directory.
    ///
    /// # Errors
    /// `HadoopIllegalArgument`, `ComponentTooLong`.
    pub fn check_name(&self, parent: InodeHandle, path: &Resolved<'_>, depth: usize) -> Result<(), Refusal> {
        let name = path.component(depth - 1);
        if name == b".reserved" && parent == self.state.tree.root() {
            return Err(Refusal::HadoopIllegalArgument(
                format!(
                    "File name \"{}\" is reserved and cannot be created. If this is during upgrade change the name of the existing file or directory to another name before upgrading to the new release.",
                    text(name)
                )
                .into(),
            ));
        }
        let limit = self.settings.component_length;
        if limit != 0 && name.len() > limit {
            return Err(Refusal::ComponentTooLong {
                limit,
                length: name.len(),
                parent: text(&path.path_to(depth - 1)),
                child: text(name),
            });
        }
        if name == b".snapshot" {
            return Err(Refusal::HadoopIllegalArgument("\".snapshot\" is a reserved name.".into()));
        }
        Ok(())
    }

    /// That the number of inodes and blocks stays within `dfs.namenode.max.objects`.
    ///
    /// # Errors
    /// `Io`.
    pub fn check_object_count(&self) -> Result<(), Refusal> {
        let limit = self.settings.objects_max;
        if limit > 0 && limit <= self.state.tree.inode_count() + self.state.store.block_count() {
            return Err(Refusal::io(format!("Exceeded the configured number of objects {limit} in the filesystem.")));
        }
        Ok(())
    }

    /// The inode of a path, which must exist and be a file (`INodeFile.valueOf`).
    ///
    /// # Errors
    /// `FileNotFound` with Hadoop's two texts.
    pub fn file_of(&self, resolved: &Resolved<'_>) -> Result<InodeHandle, Refusal> {
        match resolved.last() {
            Some(inode) if self.state.store.kind(inode) == KindTag::File => Ok(inode),
            other => self.file_named(other, &resolved.path_text()),
        }
    }

    /// As [`View::file_of`], for an inode found otherwise.
    ///
    /// # Errors
    /// `FileNotFound`.
    pub fn file_named(&self, inode: Option<InodeHandle>, path: &str) -> Result<InodeHandle, Refusal> {
        match inode {
            None => Err(Refusal::not_found(format!("File does not exist: {path}"))),
            Some(inode) if self.state.store.kind(inode) == KindTag::File => Ok(inode),
            Some(_) => Err(Refusal::not_found(format!("Path is not a file: {path}"))),
        }
    }

    /// The inode of a path that must exist (`FSDirectory.resolveLastINode`).
    ///
    /// # Errors
    /// `FileNotFound`.
    pub fn inode_of(&self, resolved: &Resolved<'_>) -> Result<InodeHandle, Refusal> {
        resolved.last().ok_or_else(|| Refusal::not_found(format!("cannot find {}", resolved.path_text())))
    }

    /// The path of a call that names its file by path and id: the id decides, unless it is 0 (old clients). No access is checked by id: whoever
    /// holds the lease may write.
    ///
    /// # Errors
    /// Those of [`View::resolve`] where there is no id.
    pub fn resolve_file<'p>(&self, path: &'p [u8], id: InodeId) -> Result<Resolved<'p>, Refusal> {
        if id == InodeId::GRANDFATHERED {
            return self.resolve(path, Walk::Write);
        }
        match self.state.tree.find(&self.state.store, id) {
            Some(inode) => {
                let (tree, store) = (&self.state.tree, &self.state.store);
                Ok(tree.resolve_known(store, path, inode).unwrap_or_else(|| tree.resolve_inode(store, inode)))
            }
            None => Ok(self.state.tree.unresolved_path(path)),
        }
    }

    /// That the parent of a path exists and is a directory (`FSDirectory.verifyParentDir`).
    ///
    /// # Errors
    /// `FileNotFound`, `ParentNotDirectory`.
    pub fn check_parent_directory(&self, resolved: &Resolved<'_>) -> Result<(), Refusal> {
        let Some(above) = resolved.depth().checked_sub(1).filter(|d| *d > 0) else { return Ok(()) };
        let path = || text(&resolved.path_to(above));
        match resolved.parent() {
            None => Err(Refusal::not_found(format!("Parent directory doesn't exist: {}", path()))),
            Some(parent) if self.state.store.kind(parent) == KindTag::Directory => Ok(()),
            Some(_) => Err(Refusal::ParentNotDirectory(format!("Parent path is not a directory: {}", path()).into())),
        }
    }

    /// Text of a path as the client gave it.
    pub fn path_text(&self, path: &[u8]) -> Arc<str> {
        text(path)
    }
}

/// An address as text: what `to_string` of the canonical form gives. Nearly every write names its host in a record.
pub(crate) fn host_text(address: IpAddr) -> String {
    let IpAddr::V4(address) = address.to_canonical() else { return address.to_canonical().to_string() };
    let mut text = String::with_capacity(15);
    for (i, octet) in address.octets().into_iter().enumerate() {
        if i > 0 {
            text.push('.');
        }
        let digit = |n: u8| char::from(b'0' + n);
        if octet >= 100 {
            text.push(digit(octet / 100));
        }
        if octet >= 10 {
            text.push(digit(octet / 10 % 10));
        }
        text.push(digit(octet % 10));
    }
    text
}

impl View<'_> {
    /// Address of the client's host, as lease records name it.
    pub fn client_machine(&self) -> String {
        host_text(self.caller.address.ip())
    }

    /// That a block named by a client is of this name space's pool.
    ///
    /// # Errors
    /// `Io`.
    pub fn check_pool(&self, pool: &str) -> Result<(), Refusal> {
        if *pool == *self.settings.block_pool {
            return Ok(());
        }
        Err(Refusal::io(format!("Unexpected BlockPoolId {pool} - expected {}", self.settings.block_pool)))
    }

    /// That the layout being written has a feature: an older one is written while a rolling upgrade runs.
    ///
    /// # Errors
    /// `HadoopIllegalArgument`.
    pub fn check_feature(&self, feature: Feature) -> Result<(), Refusal> {
        let layout = self.policy.effective_layout;
        if layout.supports(feature) {
            return Ok(());
        }
        let (name, layout) = (feature.name(), layout.0);
        Err(Refusal::HadoopIllegalArgument(
            format!(
                "Feature {name} unsupported at NameNode layout version {layout}.  If a rolling upgrade is in progress, then it must be finalized before using this feature."
            )
            .into(),
        ))
    }

    /// The time of a change of snapshots, where the layout being written can say it.
    ///
    /// Quirk: directories_of_2_7_are_written_in_their_layout_until_the_end: times of snapshots with it. Hadoop changes the directory's time and
    /// that of the snapshot and logs neither, so that a restart takes them back; here they are at once what they are after it
    pub(crate) fn snapshot_time(&self) -> Option<TimeMs> {
        self.policy.effective_layout.supports(Feature::SnapshotModificationTime).then_some(self.now.wall)
    }

    /// A block as Java prints it with its pool.
    pub fn pool_block_text(&self, block: &Block) -> String {
        format!("{}:{}", self.settings.block_pool, blocks::block_text(block))
    }

    /// That a replication is within the limits (`BlockManager.verifyReplication`); `by_client` adds the caller's host to the text.
    ///
    /// # Errors
    /// `Io`.
    pub fn check_replication(&self, path: &[u8], replication: u16, by_client: bool) -> Result<(), Refusal> {
        // Java holds it in a signed short.
        let replication = replication as i16;
        let (least, most) = (self.settings.replication_min as i16, self.settings.replication_max as i16);
        let why = if replication > most {
            format!(" exceeds maximum of {most}")
        } else if replication < least {
            format!(" is less than the required minimum of {least}")
        } else {
            return Ok(());
        };
        let by = if by_client { format!(", clientName={}", self.client_machine()) } else { String::new() };
        Err(Refusal::io(format!("Requested replication factor of {replication}{why} for {}{by}", text(path))))
    }

    /// That a non-empty directory which is protected by the settings, or above or below such ones, is not deleted or renamed.
    ///
    /// # Errors
    /// `AccessControl`.
    pub fn check_protected(&self, resolved: &Resolved<'_>) -> Result<(), Refusal> {
        let protected = &self.settings.protected_directories;
        let non_empty = |inode: Option<InodeHandle>| inode.is_some_and(|i| self.state.store.children(i).1 > 0);
        if protected.is_empty() || !non_empty(resolved.last()) {
            return Ok(());
        }
        let path = resolved.path();
        let refuse = |what: &str, path: &[u8]| {
            Err(Refusal::AccessControl(format!("Cannot delete/rename {what} {}", text(path)).into()))
        };
        if protected.contains(&path) {
            return refuse("non-empty protected directory", &path);
        }
        for other in protected {
            let below = other.strip_prefix(&path[..]).is_some_and(|rest| rest.first() == Some(&b'/'));
            if below && non_empty(self.state.tree.resolve(&self.state.store, other)?.last()) {
                return refuse("non-empty protected subdirectory", other);
            }
        }
        if self.settings.protected_subdirectories {
            let mut above = vocab::path::parent(&path);
            while let Some(directory) = above.filter(|d| *d != b"/") {
                if protected.iter().any(|p| p == directory) {
                    return refuse("subdirectory under protected subdirectory", directory);
                }
                above = vocab::path::parent(directory);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_as_the_library_does() {
        for address in ["0.0.0.0", "10.1.20.255", "192.168.100.9", "::1", "::ffff:10.2.3.40", "fe80::1:2"] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(host_text(address), address.to_canonical().to_string());
        }
    }
}
