//! ACL calls: modify, remove, set; every one logs the whole resulting list. Rules and words are those of Hadoop's `AclTransformation`.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use namespace::resolve::text;
use record::KindTag;
use std::borrow::Cow;
use std::cmp::Ordering;
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::{Action, Refusal};

/// Most entries of one scope.
const ENTRIES_MAX: usize = 32;

/// What a call does with the list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AclChange {
    /// Adds entries or replaces those of the same scope, kind and name.
    Modify(Vec<AclEntry>),
    /// Removes entries by scope, kind and name.
    Remove(Vec<AclEntry>),
    /// Removes all default entries.
    RemoveDefault,
    /// Removes everything but the mode.
    RemoveAll,
    /// Replaces the list; a scope that has no entry here stays.
    Set(Vec<AclEntry>),
}

/// Changes the ACL of a path. Its owner or a superuser may.
#[derive(Clone, Debug)]
pub struct ChangeAcl {
    /// Path.
    pub path: Vec<u8>,
    /// What to do.
    pub change: AclChange,
}

/// That ACLs are not switched off.
///
/// # Errors
/// `Acl`.
pub fn check_enabled(view: &View<'_>) -> Result<(), Refusal> {
    if view.settings.acls {
        return Ok(());
    }
    let text = "The ACL operation has been rejected.  Support for ACLs has been disabled by setting dfs.namenode.acls.enabled to false.";
    Err(Refusal::Acl(text.into()))
}

impl Write for ChangeAcl {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetAcl;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        check_enabled(view)
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        let what = match &self.change {
            AclChange::Modify(_) => "Cannot modify ACL entries on",
            AclChange::Remove(_) => "Cannot remove ACL entries on",
            AclChange::RemoveDefault => "Cannot remove default ACL entries on",
            AclChange::RemoveAll => "Cannot remove ACL on",
            AclChange::Set(_) => "Cannot set ACL on",
        };
        view.check_safe_mode(|| format!("{what} {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        view.check_owner(&resolved)?;
        let inode = view.inode_of(&resolved)?;
        let path = resolved.path();
        // a whole list is refused under the path as the caller wrote it
        let told = if matches!(self.change, AclChange::Set(_)) { &self.path[..] } else { &path };
        let wrap = |text: String| Refusal::Acl(format!("{text} Path: {}", String::from_utf8_lossy(told)).into());
        let before = view.state.tree.logical_acl(&view.state.store, inode);
        let after = self.change.apply(before).map_err(wrap)?;
        let directory = view.state.store.kind(inode) == KindTag::Directory;
        if !directory && after.iter().any(|e| e.scope == AclScope::Default) {
            return Err(wrap(format!("Invalid ACL: only directories may have a default ACL. Path: {}", text(&path))));
        }
        turn.log(Record::SetAcl { path: Cow::Owned(path), entries: after });
        Ok(())
    }
}

/// Order of entries in a list: scope, kind, name; unnamed first.
fn order(a: &AclEntry, b: &AclEntry) -> Ordering {
    (a.scope, a.kind, &a.name).cmp(&(b.scope, b.kind, &b.name))
}

fn same_key(a: &AclEntry, b: &AclEntry) -> bool {
    order(a, b) == Ordering::Equal
}

/// The entry of a sorted list that says something of the same as `old`, found by halving as Hadoop does.
///
/// Quirk: of_two_entries_alike_the_one_found_by_halving_counts: a list that says two things of one name is refused only where the name is new
fn found<'s>(spec: &'s [AclEntry], old: &AclEntry) -> Option<&'s AclEntry> {
    let (mut low, mut high) = (0, spec.len());
    while low < high {
        let middle = (low + high - 1) / 2;
        match order(&spec[middle], old) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Some(&spec[middle]),
        }
    }
    None
}

impl AclChange {
    /// The logical list that results; empty means that the ACL goes.
    fn apply(&self, before: Vec<AclEntry>) -> Result<Vec<AclEntry>, String> {
        let mut b = Builder::default();
        match self {
            AclChange::RemoveAll => return Ok(Vec::new()),
            AclChange::RemoveDefault => {
                let kept: Vec<AclEntry> = before.into_iter().filter(|e| e.scope == AclScope::Access).collect();
                return validate(kept);
            }
            AclChange::Modify(spec) => {
                let spec = checked(spec)?;
                for old in &before {
                    match found(&spec, old) {
                        Some(new) => b.change(new.clone()),
                        None => b.keep(old.clone()),
                    }
                }
                spec.iter()
                    .filter(|new| !before.iter().any(|old| same_key(old, new)))
                    .for_each(|new| b.change(new.clone()));
            }
            AclChange::Remove(spec) => {
                let spec = checked(spec)?;
                for old in before {
                    match spec.iter().any(|gone| same_key(&old, gone)) {
                        true => b.touch(&old),
                        false => b.keep(old),
                    }
                }
            }
            AclChange::Set(spec) => {
                let spec = checked(spec)?;
                spec.iter().for_each(|new| b.change(new.clone()));
                before
                    .into_iter()
                    .filter(|old| !spec.iter().any(|new| new.scope == old.scope))
                    .for_each(|old| b.keep(old));
            }
        }
        b.build()
    }
}

fn checked(spec: &[AclEntry]) -> Result<Vec<AclEntry>, String> {
    let mut spec = spec.to_vec();
    spec.sort_by(order);
    check_count(&spec)?;
    Ok(spec)
}

fn check_count(entries: &[AclEntry]) -> Result<(), String> {
    for (scope, name) in [(AclScope::Access, "access"), (AclScope::Default, "default")] {
        let count = entries.iter().filter(|e| e.scope == scope).count();
        if count > ENTRIES_MAX {
            return Err(format!(
                "Invalid ACL: ACL has {count} {name} entries, which exceeds maximum of {ENTRIES_MAX}."
            ));
        }
    }
    Ok(())
}

/// A list being put together; masks are kept apart until it is known whether they must be computed.
#[derive(Default)]
struct Builder {
    entries: Vec<AclEntry>,
    /// Masks that are given, by scope.
    masks: [Option<AclEntry>; 2],
    /// Scopes in which anything changed.
    changed: [bool; 2],
    /// Scopes in which the mask itself was set or removed.
    mask_changed: [bool; 2],
}

impl Builder {
    fn keep(&mut self, entry: AclEntry) {
        if entry.kind == AclKind::Mask {
            let at = entry.scope as usize;
            self.masks[at] = Some(entry);
        } else {
            self.entries.push(entry);
        }
    }
    fn touch(&mut self, entry: &AclEntry) {
        self.changed[entry.scope as usize] = true;
        self.mask_changed[entry.scope as usize] |= entry.kind == AclKind::Mask;
    }
    fn change(&mut self, entry: AclEntry) {
        self.touch(&entry);
        self.keep(entry);
    }

    fn build(mut self) -> Result<Vec<AclEntry>, String> {
        self.copy_defaults();
        for scope in [AclScope::Access, AclScope::Default] {
            self.add_mask(scope)?;
        }
        validate(self.entries)
    }

    /// A default list that lacks one of its three base entries takes it from the access list.
    fn copy_defaults(&mut self) {
        if !self.entries.iter().any(|e| e.scope == AclScope::Default) {
            return;
        }
        for kind in [AclKind::User, AclKind::Group, AclKind::Other] {
            let base =
                |scope| self.entries.iter().find(move |e| e.scope == scope && e.kind == kind && e.name.is_none());
            if base(AclScope::Default).is_none()
                && let Some(access) = base(AclScope::Access).cloned()
            {
                self.entries.push(AclEntry { scope: AclScope::Default, ..access });
            }
        }
    }

    /// The mask of a scope: a given one, unless entries changed and it did not; else the union of what it masks, where one is needed.
    fn add_mask(&mut self, scope: AclScope) -> Result<(), String> {
        let at = scope as usize;
        let of_scope = || self.entries.iter().filter(move |e| e.scope == scope);
        if of_scope().next().is_none() {
            return Ok(());
        }
        let needed = of_scope().any(|e| e.name.is_some());
        let union = of_scope()
            .filter(|e| e.kind == AclKind::Group || e.name.is_some())
            .fold(0, |bits, e| bits | e.permission.0);
        let (changed, mask_changed) = (self.changed[at], self.mask_changed[at]);
        match self.masks[at].take() {
            None if needed && mask_changed => Err("Invalid ACL: mask is required and cannot be deleted.".to_owned()),
            Some(mask) if !changed || mask_changed => {
                self.entries.push(mask);
                Ok(())
            }
            given => {
                if needed || given.is_some() {
                    self.entries.push(AclEntry { scope, kind: AclKind::Mask, name: None, permission: Action(union) });
                }
                Ok(())
            }
        }
    }
}

fn validate(mut entries: Vec<AclEntry>) -> Result<Vec<AclEntry>, String> {
    entries.sort_by(order);
    if entries.windows(2).any(|pair| same_key(&pair[0], &pair[1])) {
        return Err("Invalid ACL: multiple entries with same scope, type and name.".to_owned());
    }
    if let Some(named) = entries.iter().find(|e| e.name.is_some() && matches!(e.kind, AclKind::Mask | AclKind::Other)) {
        return Err(format!("Invalid ACL: this entry type must not have a name: {}.", show(named)));
    }
    check_count(&entries)?;
    for (scope, what) in [(AclScope::Access, "ACL"), (AclScope::Default, "default ACL")] {
        if scope == AclScope::Default && !entries.iter().any(|e| e.scope == scope) {
            continue;
        }
        let has = |kind| entries.iter().any(|e| e.scope == scope && e.kind == kind && e.name.is_none());
        if !(has(AclKind::User) && has(AclKind::Group) && has(AclKind::Other)) {
            return Err(format!("Invalid {what}: the user, group and other entries are required."));
        }
    }
    Ok(entries)
}

/// An entry as Java prints it.
pub(crate) fn show(entry: &AclEntry) -> String {
    let scope = if entry.scope == AclScope::Default { "default:" } else { "" };
    let kind = ["user", "group", "mask", "other"][entry.kind as usize];
    format!("{scope}{kind}:{}:{}", entry.name.as_deref().unwrap_or(""), entry.permission.symbol())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `user:bob:r-x`, with `default:` in front for the other scope.
    fn parse(spec: &str) -> Vec<AclEntry> {
        let entry = |text: &str| {
            let (scope, text) =
                text.strip_prefix("default:").map_or((AclScope::Access, text), |t| (AclScope::Default, t));
            let parts: Vec<&str> = text.split(':').collect();
            let kind = match parts[0] {
                "user" => AclKind::User,
                "group" => AclKind::Group,
                "mask" => AclKind::Mask,
                _ => AclKind::Other,
            };
            let bits = (0u8..8).find(|b| Some(&Action(*b).symbol()) == parts.get(2)).unwrap_or(0);
            let name = Some(parts[1]).filter(|n| !n.is_empty()).map(Into::into);
            AclEntry { scope, kind, name, permission: Action(bits) }
        };
        spec.split(',').filter(|s| !s.is_empty()).map(entry).collect()
    }
    fn render(list: Result<Vec<AclEntry>, String>) -> String {
        list.map_or_else(|e| e, |l| l.iter().map(show).collect::<Vec<_>>().join(","))
    }
    fn check(before: &str, change: fn(Vec<AclEntry>) -> AclChange, spec: &str, after: &str) {
        assert_eq!(render(change(parse(spec)).apply(parse(before))), after);
    }
    const MINIMAL: &str = "user::rwx,group::r-x,other::r--";

    #[test]
    fn modify() {
        check(MINIMAL, AclChange::Modify, "user:bob:rw-", "user::rwx,user:bob:rw-,group::r-x,mask::rwx,other::r--");
        let full = "user::rwx,user:bob:rw-,group::r-x,mask::r--,other::r--";
        check(full, AclChange::Modify, "user:bob:r--", "user::rwx,user:bob:r--,group::r-x,mask::r-x,other::r--");
        check(full, AclChange::Modify, "mask::rw-", "user::rwx,user:bob:rw-,group::r-x,mask::rw-,other::r--");
        check(
            MINIMAL,
            AclChange::Modify,
            "default:user:bob:rwx",
            "user::rwx,group::r-x,other::r--,default:user::rwx,default:user:bob:rwx,default:group::r-x,default:mask::rwx,default:other::r--",
        );
    }

    #[test]
    fn of_two_entries_alike_the_one_found_by_halving_counts() {
        let full = "user::rwx,user:bob:rw-,group::r-x,mask::rwx,other::r--";
        let after = "user::rwx,user:bob:---,group::r-x,mask::r-x,other::---";
        check(full, AclChange::Modify, "user:bob:rwx,user:bob:---,other::---", after);
        let refused = "Invalid ACL: multiple entries with same scope, type and name.";
        check(MINIMAL, AclChange::Modify, "user:bob:rwx,user:bob:---,other::---", refused);
    }

    #[test]
    fn remove() {
        let full = "user::rwx,user:bob:rw-,group::r-x,mask::rwx,other::r--";
        check(full, AclChange::Remove, "user:bob:", "user::rwx,group::r-x,mask::r-x,other::r--");
        check(full, AclChange::Remove, "user:bob:,mask::", MINIMAL);
        check(full, AclChange::Remove, "mask::", "Invalid ACL: mask is required and cannot be deleted.");
        check(full, AclChange::Remove, "user::", "Invalid ACL: the user, group and other entries are required.");
    }

    #[test]
    fn set_and_its_refusals() {
        let full = "user::rwx,group::r-x,other::r--,default:user::rwx,default:group::r-x,default:other::---";
        check(
            full,
            AclChange::Set,
            "user::rw-,group::r--,other::---",
            "user::rw-,group::r--,other::---,default:user::rwx,default:group::r-x,default:other::---",
        );
        check(MINIMAL, AclChange::Set, "user:bob:r--", "Invalid ACL: the user, group and other entries are required.");
        check(
            MINIMAL,
            AclChange::Modify,
            "user:a:r--,user:a:rw-",
            "Invalid ACL: multiple entries with same scope, type and name.",
        );
        check(
            MINIMAL,
            AclChange::Modify,
            "mask:a:r--",
            "Invalid ACL: this entry type must not have a name: mask:a:r--.",
        );
        let many = (0..31).map(|i| format!("user:u{i}:r--")).collect::<Vec<_>>().join(",");
        check(
            MINIMAL,
            AclChange::Modify,
            &many,
            "Invalid ACL: ACL has 35 access entries, which exceeds maximum of 32.",
        );
    }
}
