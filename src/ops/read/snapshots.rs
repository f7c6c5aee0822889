//! getSnapshottableDirListing, getSnapshotListing, getSnapshotDiffReport.

use crate::View;
use crate::checks::check_absolute;
use crate::status::FileStatus;
use crate::write::snapshots::{directory_as, root_of};
use namespace::snapshot::report::{Change, Cursor, Listing, Scope};
use namespace::{Resolved, Walk, Wanted};
use record::{InodeHandle, KindTag};
use vocab::path::compare_names;
use vocab::{Action, Refusal, SnapshotId};

/// A directory that allows snapshots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshottable<'a> {
    /// Its status; the name is its own.
    pub status: FileStatus<'a>,
    /// Path of the directory above; empty for the root.
    pub parent: Vec<u8>,
    /// How many snapshots it has.
    pub count: u32,
    /// How many it may have.
    pub quota: u32,
}

impl Snapshottable<'_> {
    /// Path of the directory.
    pub fn path(&self) -> Vec<u8> {
        match &*self.parent {
            b"" => b"/".to_vec(),
            b"/" => [b"/", &*self.status.name].concat(),
            parent => [parent, b"/", &*self.status.name].concat(),
        }
    }
}

/// getSnapshottableDirListing: the caller's own, or all for a superuser.
pub fn get_snapshottable<'a>(view: &View<'a>) -> Vec<Snapshottable<'a>> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let all = view.is_superuser() || !view.settings.permissions;
    let mine = |d: InodeHandle| all || **store.user_name(store.owner(d).0) == *view.caller.user;
    let mut found: Vec<Snapshottable<'_>> = tree
        .snapshots
        .roots()
        .filter(|(_, root)| mine(root.directory))
        .map(|(_, root)| Snapshottable {
            status: plain(view, root.directory, store.name(root.directory)),
            parent: store.parent(root.directory).map_or(Vec::new(), |above| tree.path_of(store, above)),
            count: root.snapshots.len() as u32,
            quota: root.quota,
        })
        .collect();
    found.sort_by(|a, b| {
        compare_names(&a.parent, &b.parent).then_with(|| compare_names(&a.status.name, &b.status.name))
    });
    found
}

/// Status without marks and policies, as these listings have it.
fn plain<'a>(view: &View<'a>, inode: InodeHandle, name: &'a [u8]) -> FileStatus<'a> {
    FileStatus { flags: Default::default(), erasure_coding: None, encryption: None, ..view.status(inode, name, 0) }
}

/// A snapshot in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotStatus<'a> {
    /// Status of the directory as it was; the name is the snapshot's.
    pub status: FileStatus<'a>,
    /// Number.
    pub id: SnapshotId,
    /// Path of the directory.
    pub parent: Vec<u8>,
    /// Whether it was deleted and waits for older ones to go.
    pub is_deleted: bool,
}

/// getSnapshotListing.
///
/// # Errors
/// `FileNotFound`, `PathIsNotDirectory`, `ParentNotDirectory`, `Snapshot` for a directory that does not allow any; access.
pub fn get_snapshot_listing<'a>(view: &View<'a>, path: &[u8]) -> Result<Vec<SnapshotStatus<'a>>, Refusal> {
    check_absolute(path)?;
    // reserved names mean nothing here
    if path.starts_with(b"/.reserved/") {
        return Err(Refusal::not_found(format!("Directory does not exist: {}", view.path_text(path))));
    }
    let resolved = view.state.tree.resolve(&view.state.store, path)?;
    // Quirk: a_file_above_a_snapshot_root_is_no_access_refusal: unlike other reads this one names the file as it is
    let checker = view.checker();
    if view.settings.permissions {
        checker.traverse(&resolved)?
    } else {
        checker.traverse_unchecked(&resolved)?
    }
    view.check_inode(&resolved, Action::READ)?;
    let (directory, root) = root_of(view, &resolved)?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    let children = store.children(directory).1;
    let one = |snapshot: &namespace::snapshot::Snapshot| SnapshotStatus {
        status: FileStatus {
            flags: Default::default(),
            erasure_coding: None,
            children,
            ..view.past_status(&[directory], snapshot.name.to_vec(), 0, snapshot.id)
        },
        id: snapshot.id,
        parent: tree.path_of(store, directory),
        is_deleted: snapshot.is_deleted(),
    };
    Ok(root.map_or(Vec::new(), |root| root.snapshots.iter().map(one).collect()))
}

/// What a diff was asked of.
struct Asked {
    /// The directory that has the snapshots.
    root: InodeHandle,
    scope: Scope,
    from: SnapshotId,
    to: SnapshotId,
}

/// That the caller may read all of a snapshot. Only one taken of the directory itself: below it the path names nothing, which Hadoop lets pass.
fn check_snapshot(view: &View<'_>, path: &[u8], name: &str) -> Result<(), Refusal> {
    let path = [path.strip_suffix(b"/").unwrap_or(path), b"/.snapshot/", name.as_bytes()].concat();
    let resolved = view.resolve(&path, Walk::Read)?;
    view.check(&resolved, Wanted { inode: Some(Action::READ), subtree: Some(Action::READ), ..Wanted::default() })
}

/// The directory with snapshots that a path lies in.
fn root_above(view: &View<'_>, resolved: &Resolved<'_>) -> Result<InodeHandle, Refusal> {
    let (tree, store) = (&view.state.tree, &view.state.store);
    let is_directory = |inode: &InodeHandle| store.kind(*inode) == KindTag::Directory;
    let start = match resolved.last().filter(is_directory) {
        Some(directory) => directory,
        None => resolved.above().filter(is_directory).ok_or_else(|| {
            let parent = view.path_text(&resolved.path_to(resolved.depth().saturating_sub(1)));
            Refusal::not_found(format!("Directory does not exist: {parent}"))
        })?,
    };
    if start == tree.root() {
        return Ok(start);
    }
    let mut above = Some(start);
    while let Some(directory) = above {
        if tree.snapshot_root(store, directory).is_some() {
            return Ok(directory);
        }
        above = store.parent(directory);
    }
    let text = format!("The path {} is neither snapshottable nor under a snapshot root!", resolved.path_text());
    Err(Refusal::Snapshot(text.into()))
}

fn asked(view: &View<'_>, path: &[u8], from: &str, to: &str) -> Result<Asked, Refusal> {
    if path.is_empty() && !(from.is_empty() && to.is_empty()) {
        // Hadoop looks at the path's last letter before it puts a snapshot's name behind it
        return Err(Refusal::StringIndex("index -1, length 0".into()));
    }
    let resolved = view.resolve(path, Walk::Read)?;
    if view.settings.permissions {
        check_snapshot(view, path, from)?;
        check_snapshot(view, path, to)?;
    }
    let directory = match view.settings.snapshot_reports_below {
        true => root_above(view, &resolved)?,
        false => root_of(view, &resolved)?.0,
    };
    let scope = directory_as(view, &resolved, || view.path_text(path))?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    let root = tree.snapshot_root(store, directory);
    let named = |name: &str| match (name, root.and_then(|root| root.snapshot(name.as_bytes()))) {
        ("", _) => Ok(SnapshotId::CURRENT),
        (_, Some(snapshot)) => Ok(snapshot.id),
        _ => {
            let path = view.path_text(&tree.path_of(store, directory));
            let text = format!("Cannot find the snapshot of directory {path} with name {name}");
            Err(Refusal::Snapshot(text.into()))
        }
    };
    let own = tree.snapshot_root(store, scope).and_then(|root| root.by_id(resolved.snapshot()));
    let scope = Scope { directory: scope, is_snapshot: own.is_some() };
    Ok(Asked { root: directory, scope, from: named(from)?, to: named(to)? })
}

/// A report: the path that it is told for, and what changed.
pub type Report = (Vec<u8>, Vec<Change>);

/// getSnapshotDiffReport between two snapshots; an empty name stands for the present state.
///
/// # Errors
/// `FileNotFound`; `Snapshot` for paths that are not below a directory with snapshots, and for names of snapshots; access.
pub fn get_snapshot_diff(view: &View<'_>, path: &[u8], from: &str, to: &str) -> Result<Report, Refusal> {
    let Asked { root, scope, from, to } = asked(view, path, from, to)?;
    let (tree, store) = (&view.state.tree, &view.state.store);
    // where there is nothing to compare the path is told as it was asked
    let told = if from == to { path.to_vec() } else { tree.path_of(store, root) };
    Ok((told, tree.snapshot_diff(store, scope, from, to)))
}

/// The same as lists that the client puts together: the page that begins at `start`.
///
/// # Errors
/// As [`get_snapshot_diff`].
pub fn get_snapshot_diff_listing(
    view: &View<'_>,
    path: &[u8],
    from: &str,
    to: &str,
    start: &Cursor,
) -> Result<Listing, Refusal> {
    let Asked { scope, from, to, .. } = asked(view, path, from, to)?;
    let limit = view.settings.snapshot_changes_listed;
    Ok(view.state.tree.snapshot_diff_listing(&view.state.store, scope, (from, to), start, limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{World, superuser};

    #[test]
    fn a_file_above_a_snapshot_root_is_no_access_refusal() {
        let mut w = World::new();
        let caller = superuser();
        w.create("/f");
        let listing = w.view(&caller, |v| get_snapshot_listing(v, b"/f/x").map(|_| ()));
        assert!(matches!(listing, Err(Refusal::ParentNotDirectory(_))), "{listing:?}");
        let diff = w.view(&caller, |v| get_snapshot_diff(v, b"/f/x", "a", "b"));
        assert!(matches!(diff, Err(Refusal::AccessControl(_))), "{diff:?}");
        let of_none = |from: &str| w.view(&caller, |v| get_snapshot_diff(v, b"", from, ""));
        assert_eq!(of_none("a"), Err(Refusal::StringIndex("index -1, length 0".into())));
        assert!(matches!(of_none(""), Err(Refusal::Assertion(_))));
    }

    #[test]
    fn a_rename_is_told_where_the_older_name_was() {
        use crate::write::rename::Rename;
        use crate::write::snapshots::{AllowSnapshot, CreateSnapshot};
        let mut w = World::new();
        let caller = superuser();
        w.mkdirs(&caller, "/d/sub", 0o755).unwrap();
        w.create("/d/a");
        w.write(&caller, &AllowSnapshot { path: b"/d".into() }).unwrap();
        w.write(&caller, &CreateSnapshot { path: b"/d".into(), name: b"s1".into() }).unwrap();
        w.write(&caller, &Rename { source: b"/d/a".into(), target: b"/d/sub/b".into() }).unwrap();
        w.write(&caller, &CreateSnapshot { path: b"/d".into(), name: b"s2".into() }).unwrap();
        let report = |path: &'static [u8], from: &str, to: &str| {
            let (root, changes) = w.view(&caller, |v| get_snapshot_diff(v, path, from, to)).unwrap();
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            let line = |c: Change| format!("{} {} {}", c.label, text(c.path), c.target.map_or_else(String::new, text));
            (text(root), changes.into_iter().map(line).collect::<Vec<_>>())
        };
        let lines = |all: [&str; 3]| all.map(str::to_owned).to_vec();
        assert_eq!(report(b"/d", "s1", "s2"), ("/d".to_owned(), lines(["M  ", "R a sub/b", "M sub "])));
        assert_eq!(report(b"/d", "s2", "s1"), ("/d".to_owned(), lines(["M  ", "R sub/b a", "M sub "])));
        assert_eq!(report(b"/d/sub", "s2", "s1").0, "/d");
        assert_eq!(report(b"/d/sub", "", ""), ("/d/sub".to_owned(), Vec::new()));
        let listed = |path: &'static [u8]| w.view(&caller, |v| get_snapshot_listing(v, path).map(|all| all.len()));
        assert_eq!(listed(b"/d"), Ok(2));
        assert!(matches!(listed(b"/d/.snapshot/s1"), Err(Refusal::Snapshot(_))));
    }

    #[test]
    fn a_report_of_what_is_not_there_names_it_as_it_was_asked() {
        use crate::write::snapshots::{AllowSnapshot, CreateSnapshot};
        let mut w = World::new();
        let caller = superuser();
        w.mkdirs(&caller, "/d/x", 0o755).unwrap();
        w.mkdirs(&caller, "/e", 0o755).unwrap();
        w.write(&caller, &AllowSnapshot { path: b"/d".into() }).unwrap();
        w.write(&caller, &CreateSnapshot { path: b"/d".into(), name: b"s".into() }).unwrap();
        let refusal = |path: &str| w.view(&caller, |v| get_snapshot_diff(v, path.as_bytes(), "s", "")).map(|_| ());
        for (path, told) in [
            ("/d/.snapshot", "/d/.snapshot"),
            ("/d/.snapshot/", "/d/.snapshot/"),
            ("/d/.snapshot/missing", "/d/.snapshot/missing"),
            ("//d/.snapshot//missing/", "//d/.snapshot//missing/"),
            ("/d/.snapshot/missing/a", "/d/.snapshot/missing"),
            ("/.reserved/raw/d/.snapshot/missing", "/.reserved/raw/d/.snapshot/missing"),
            ("/d/x/missing/", "/d/x/missing/"),
            ("/d/x/missing/a/", "/d/x/missing"),
            ("/e/.snapshot/s", "/e/.snapshot"),
        ] {
            assert_eq!(refusal(path), Err(Refusal::not_found(format!("Directory does not exist: {told}"))), "{path}");
        }
    }
}
