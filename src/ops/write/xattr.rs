//! Extended attributes: set, remove, get, list, and who may see which (Hadoop's `XAttrPermissionFilter`).

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::{Resolved, Walk};
use record::{InodeHandle, KindTag};
use state::SATISFY_XATTR;
use std::borrow::Cow;
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Refusal};

/// Nobody but its owner and users with access may read a file that has this, not even a superuser.
const UNREADABLE: &str = "hdfs.unreadable.by.superuser";

/// An attribute's name as clients write it: `user.name`.
fn prefixed(xattr: &Xattr) -> String {
    let namespace = ["user", "trusted", "security", "system", "raw"][xattr.namespace as usize];
    format!("{namespace}.{}", xattr.name)
}

fn is_unreadable_mark(xattr: &Xattr) -> bool {
    xattr.namespace == XattrNamespace::Security && &*xattr.name == UNREADABLE
}

fn check_enabled(view: &View<'_>) -> Result<(), Refusal> {
    if view.settings.xattrs {
        return Ok(());
    }
    Err(Refusal::io(
        "The XAttr operation has been rejected.  Support for XAttrs has been disabled by setting dfs.namenode.xattrs.enabled to false.",
    ))
}

/// Whether the caller may name this attribute at all.
fn visible(view: &View<'_>, xattr: &Xattr, raw_path: bool) -> bool {
    match xattr.namespace {
        XattrNamespace::User => true,
        XattrNamespace::Trusted => view.is_superuser(),
        XattrNamespace::Raw => raw_path,
        XattrNamespace::Security => is_unreadable_mark(xattr),
        XattrNamespace::System => false,
    }
}

fn check_visible(view: &View<'_>, xattr: &Xattr, raw_path: bool) -> Result<(), Refusal> {
    if is_unreadable_mark(xattr) && !xattr.value.is_empty() {
        return Err(Refusal::AccessControl(
            format!("Attempt to set a value for 'security.{UNREADABLE}'. Values are not allowed for this xattr.")
                .into(),
        ));
    }
    if visible(view, xattr, raw_path) {
        return Ok(());
    }
    Err(Refusal::AccessControl(format!("User doesn't have permission for xattr: {}", prefixed(xattr)).into()))
}

fn is_raw(path: &[u8]) -> bool {
    path.starts_with(b"/.reserved/raw")
}

/// Attributes of the user namespace need write access; on a sticky directory only its owner changes them.
fn check_change(view: &View<'_>, resolved: &Resolved<'_>, xattr: &Xattr) -> Result<(), Refusal> {
    if xattr.namespace != XattrNamespace::User {
        return Ok(());
    }
    let store = &view.state.store;
    let sticky = resolved.last().is_some_and(|i| store.kind(i) == KindTag::Directory && store.mode(i).sticky());
    if sticky { view.check_owner(resolved) } else { view.check_inode(resolved, Action::WRITE) }
}

/// Sets one attribute.
#[derive(Clone, Debug)]
pub struct SetXattr {
    /// Path.
    pub path: Vec<u8>,
    /// Attribute with its value.
    pub xattr: Xattr,
    /// Whether the value was given, be it empty.
    pub given: bool,
    /// Whether it may be new.
    pub create: bool,
    /// Whether it may be there.
    pub replace: bool,
}

impl Write for SetXattr {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetXattr;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set XAttr on {}", view.path_text(&self.path)))?;
        check_enabled(&view)?;
        let (size, most) = (self.xattr.name.len() + self.xattr.value.len(), view.settings.xattr_size);
        if size > most {
            let text = format!(
                "The XAttr is too big. The maximum combined size of the name and value is {most}, but the total size is {size}"
            );
            return Err(Refusal::HadoopIllegalArgument(text.into()));
        }
        check_visible(&view, &self.xattr, is_raw(&self.path))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        check_change(&view, &resolved, &self.xattr)?;
        let inode = view.inode_of(&resolved)?;
        check_new_xattr(&view, inode, (&self.xattr, self.create, self.replace))?;
        let rpc = view.caller.rpc_ids;
        let satisfy = view.settings.storage_policy_satisfier
            && (self.xattr.namespace, &*self.xattr.name) == SATISFY_XATTR
            && view.state.has_something_to_satisfy(inode);
        let satisfy = satisfy.then(|| view.state.store.inode_id(inode));
        let (path, xattrs) = (Cow::Owned(resolved.path()), vec![self.xattr.clone()]);
        turn.log(Record::SetXattr { path, xattrs, given: self.given, rpc });
        turn.soft().satisfier.extend(satisfy);
        Ok(())
    }
}

/// That an attribute may be set, with these flags: whether it may be new, and whether it may be there.
///
/// # Errors
/// What contradicts the flags; too many attributes.
pub(super) fn check_new_xattr(
    view: &View<'_>,
    inode: InodeHandle,
    (xattr, create, replace): (&Xattr, bool, bool),
) -> Result<(), Refusal> {
    let all = view.state.tree.xattrs(inode);
    let exists = all.iter().any(|x| x.namespace == xattr.namespace && x.name == xattr.name);
    let name = &xattr.name;
    match (exists, create, replace) {
        (_, false, false) => return Err(Refusal::HadoopIllegalArgument("A flag must be specified.".into())),
        (true, _, false) => {
            return Err(Refusal::io(format!("XAttr: {name} already exists. The REPLACE flag must be specified.")));
        }
        (false, false, _) => {
            return Err(Refusal::io(format!("XAttr: {name} does not exist. The CREATE flag must be specified.")));
        }
        _ => {}
    }
    let counts = |x: &Xattr| matches!(x.namespace, XattrNamespace::User | XattrNamespace::Trusted);
    let most = view.settings.xattrs_per_inode;
    if !exists && counts(xattr) && all.iter().filter(|x| counts(x)).count() + 1 > most {
        return Err(Refusal::io(format!("Cannot add additional XAttr to inode, would exceed limit of {most}")));
    }
    if is_unreadable_mark(xattr) && view.state.store.kind(inode) != KindTag::File {
        return Err(Refusal::io(format!("Can only set 'security.{UNREADABLE}' on a file.")));
    }
    Ok(())
}

/// Removes one attribute.
#[derive(Clone, Debug)]
pub struct RemoveXattr {
    /// Path.
    pub path: Vec<u8>,
    /// Attribute; its value does not count.
    pub xattr: Xattr,
}

impl Write for RemoveXattr {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RemoveXattr;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot remove XAttr entry on {}", view.path_text(&self.path)))?;
        check_enabled(&view)?;
        check_visible(&view, &self.xattr, is_raw(&self.path))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        check_change(&view, &resolved, &self.xattr)?;
        let inode = view.inode_of(&resolved)?;
        let found = view.state.tree.xattr(inode, self.xattr.namespace, &self.xattr.name).map(|x| x.to_xattr());
        let Some(found) = found else {
            return Err(Refusal::io("No matching attributes found for remove operation"));
        };
        if is_unreadable_mark(&found) {
            return Err(Refusal::AccessControl(
                format!("The xattr 'security.{UNREADABLE}' can not be deleted.").into(),
            ));
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::RemoveXattr { path: Cow::Owned(resolved.path()), xattrs: vec![self.xattr.clone()], rpc });
        Ok(())
    }
}

/// getXAttrs: all attributes that the caller may see, or those asked for.
///
/// # Errors
/// `FileNotFound`, access; `XattrNotFound` if one asked for is not there.
pub fn get_xattrs(view: &View<'_>, path: &[u8], wanted: &[Xattr]) -> Result<Vec<Xattr>, Refusal> {
    check_enabled(view)?;
    let raw = is_raw(path);
    for xattr in wanted {
        check_visible(view, xattr, raw)?;
    }
    let resolved = view.resolve(path, Walk::Read)?;
    view.check_inode(&resolved, Action::READ)?;
    let inode = view.inode_of(&resolved)?;
    let mut all = view.state.tree.xattrs_at(inode, resolved.snapshot());
    all.retain(|x| visible(view, x, raw));
    if wanted.is_empty() {
        return Ok(all);
    }
    let find = |w: &Xattr| all.iter().find(|x| x.namespace == w.namespace && x.name == w.name).cloned();
    let found: Option<Vec<Xattr>> = wanted.iter().map(find).collect();
    found.ok_or_else(|| Refusal::XattrNotFound("At least one of the attributes provided was not found.".into()))
}

/// listXAttrs: the attributes that the caller may see; names count, values are for the caller to drop.
///
/// # Errors
/// `FileNotFound`, access (READ of the inode).
pub fn list_xattrs(view: &View<'_>, path: &[u8]) -> Result<Vec<Xattr>, Refusal> {
    check_enabled(view)?;
    let raw = is_raw(path);
    let resolved = view.resolve(path, Walk::Read)?;
    view.check_inode(&resolved, Action::READ)?;
    let inode = view.inode_of(&resolved)?;
    let mut all = view.state.tree.xattrs_at(inode, resolved.snapshot());
    all.retain(|x| visible(view, x, raw));
    Ok(all)
}
