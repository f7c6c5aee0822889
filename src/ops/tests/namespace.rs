//! Names: mkdirs, rename, delete, listing, and their reports from the field.

use super::*;
use crate::read::file_info::*;
use crate::read::listing::get_listing;
use crate::write::delete::Delete;
use crate::write::mkdirs::Mkdirs;
use crate::write::new_node::CreateModes;
use crate::write::rename::{Rename, Rename2};
use vocab::Mode;

pub(super) fn modes(bits: u16) -> CreateModes {
    CreateModes { masked: Mode::new(bits), unmasked: None }
}

impl World {
    pub fn mkdirs(&mut self, who: &Caller, path: &str, mode: u16) -> Result<bool, Refusal> {
        self.write(who, &Mkdirs { path: path.into(), modes: modes(mode), create_parents: true })
    }
    pub fn exists(&self, path: &str) -> bool {
        let who = superuser();
        self.view(&who, |v| get_file_info(v, path.as_bytes()).unwrap().is_some())
    }
    pub fn rename(&mut self, who: &Caller, source: &str, target: &str) -> Result<bool, Refusal> {
        self.write(who, &Rename { source: source.into(), target: target.into() })
    }
    pub fn rename2(&mut self, source: &str, target: &str, overwrite: bool) -> Result<(), Refusal> {
        self.write(&superuser(), &Rename2 { source: source.into(), target: target.into(), overwrite, to_trash: false })
    }
    pub fn delete(&mut self, who: &Caller, path: &str, recursive: bool) -> Result<bool, Refusal> {
        self.write(who, &Delete { path: path.into(), recursive })
    }
    pub fn list(&self, path: &str, after: &[u8]) -> Option<(Vec<String>, usize)> {
        let who = superuser();
        self.view(&who, |v| {
            let mut entries: Vec<(crate::status::FileStatus<'static>, _)> = Vec::new();
            let page = get_listing(v, path.as_bytes(), after, false, &mut entries).unwrap()?;
            let names = entries.into_iter().map(|(s, _)| String::from_utf8_lossy(&s.name).into_owned()).collect();
            Some((names, page.remaining))
        })
    }
}

#[test]
fn mkdirs_makes_one_record_per_level() {
    let mut w = World::new();
    assert_eq!(w.mkdirs(&superuser(), "/a/b/c", 0o777), Ok(true));
    assert_eq!(w.logged(), 3);
    assert_eq!(w.mkdirs(&superuser(), "/a/b/c", 0o777), Ok(true));
    assert_eq!(w.logged(), 3);
    let who = superuser();
    w.view(&who, |v| {
        let status = get_file_info(v, b"/a/b/").unwrap().unwrap();
        assert_eq!((status.mode, &*status.owner, &*status.group), (Mode::new(0o777), "super", "supergroup"));
        assert_eq!((status.children, status.id.0), (1, 16_387));
    });
}

/// T09: the old rename reports refusals as false.
#[test]
fn t09_old_rename_reports_refusals_as_false() {
    let mut w = World::new();
    let who = superuser();
    for dir in ["/d", "/e", "/s", "/s2"] {
        w.mkdirs(&who, dir, 0o755).unwrap();
    }
    w.create("/f");
    w.create("/g");
    assert_eq!(w.rename(&who, "/f", "/g"), Ok(false), "onto an existing file");
    assert_eq!(w.rename(&who, "/f", "/d"), Ok(true), "into an existing directory");
    assert!(w.exists("/d/f") && !w.exists("/f"));
    assert_eq!(w.rename(&who, "/g", "/g"), Ok(true), "onto itself");
    assert_eq!(w.rename(&who, "/nope", "/x"), Ok(false));
    assert_eq!(w.rename(&who, "/g", "/no/parent"), Ok(false));
    assert_eq!(w.rename(&who, "/s", "/s/below"), Ok(false));
    assert_eq!(w.rename(&who, "/s", "/s2"), Ok(true));
    assert!(w.exists("/s2/s"));
    assert_eq!(w.rename(&who, "/", "/x"), Ok(false));
}

/// T10: rename2 raises, and overwrites only what it may.
#[test]
fn t10_rename2_raises_and_overwrites_only_what_it_may() {
    let mut w = World::new();
    let who = superuser();
    for dir in ["/d1", "/d2/x", "/d3"] {
        w.mkdirs(&who, dir, 0o755).unwrap();
    }
    w.create("/f");
    w.create("/g");
    assert_eq!(
        w.rename2("/f", "/g", false),
        Err(Refusal::FileAlreadyExists("rename destination /g already exists".into()))
    );
    assert_eq!(w.rename2("/d1", "/d2", true), Err(Refusal::io("rename destination directory is not empty: /d2")));
    assert_eq!(w.rename2("/d1", "/d3", true), Ok(()));
    assert_eq!(w.rename2("/f", "/g", true), Ok(()));
    assert!(w.exists("/g") && !w.exists("/f"));
    assert!(matches!(w.rename2("/g", "/g", true), Err(Refusal::FileAlreadyExists(_))));
    assert_eq!(
        w.rename2("/g", "/d3", true),
        Err(Refusal::io("Source /g and destination /d3 must both be directories"))
    );
    assert_eq!(w.rename2("/g", "/no/g", true), Err(Refusal::not_found("rename destination parent /no/g not found.")));
    assert!(matches!(w.rename2("/d3", "/g/x", true), Err(Refusal::ParentNotDirectory(_))));
}

/// T12: paging a listing, past the end and between names.
#[test]
fn t12_paging_a_listing() {
    let mut w = World::new();
    w.settings.listing_limit = 100;
    w.mkdirs(&superuser(), "/p/empty", 0o755).unwrap();
    for i in 0..250 {
        w.mkdirs(&superuser(), &format!("/p/n{i:04}"), 0o755).unwrap();
    }
    let (first, rest) = w.list("/p", b"").unwrap();
    assert_eq!((first.len(), rest), (100, 151));
    let (second, rest) = w.list("/p", first.last().unwrap().as_bytes()).unwrap();
    assert_eq!((second.len(), rest, &*second[0]), (100, 51, "n0099"));
    let (third, rest) = w.list("/p", second.last().unwrap().as_bytes()).unwrap();
    assert_eq!((third.len(), rest), (51, 0));
    assert_eq!(w.list("/p", third.last().unwrap().as_bytes()), Some((vec![], 0)));
    assert_eq!(w.list("/p", b"n0100x").unwrap().0[0], "n0101");
    assert_eq!(w.list("/p/empty", b""), Some((vec![], 0)));
    assert_eq!(w.list("/nope", b""), None);
}

/// T14: order of names that are not ASCII: bytes compare as signed.
#[test]
fn t14_order_of_non_ascii_names() {
    let mut w = World::new();
    for name in ["Z", "a", "~", "é", "中", "😀"] {
        w.mkdirs(&superuser(), &format!("/o/{name}"), 0o755).unwrap();
    }
    assert_eq!(w.list("/o", b"").unwrap().0, ["é", "中", "😀", "Z", "a", "~"]);
    w.settings.listing_limit = 2;
    assert_eq!(w.list("/o", "中".as_bytes()).unwrap(), (vec!["😀".into(), "Z".into()], 2));
}

/// T13: missing paths are absent, or an error, by call.
#[test]
fn t13_missing_paths_by_call() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o777).unwrap();
    w.create("/f");
    assert_eq!(w.delete(&superuser(), "/nope", true), Ok(false));
    let (admin, user) = (superuser(), alice());
    w.view(&admin, |v| {
        assert_eq!(get_file_info(v, b"/nope"), Ok(None));
        assert_eq!(get_file_link_info(v, b"/nope"), Ok(None));
        assert_eq!(is_file_closed(v, b"/nope"), Err(Refusal::not_found("File does not exist: /nope")));
        assert_eq!(is_file_closed(v, b"/d"), Err(Refusal::not_found("Path is not a file: /d")));
        assert_eq!(get_file_info(v, b"/f/x"), Ok(None));
    });
    w.view(&user, |v| {
        assert_eq!(get_file_info(v, b"/f/x"), Err(Refusal::AccessControl("/f (is not a directory)".into())));
    });
}

/// T25: name and directory limits.
#[test]
fn t25_name_and_directory_limits() {
    let mut w = World::new();
    let who = superuser();
    w.mkdirs(&who, "/l", 0o755).unwrap();
    assert_eq!(w.mkdirs(&who, &format!("/l/{}", "x".repeat(255)), 0o755), Ok(true));
    let long = "x".repeat(256);
    let refused = w.mkdirs(&who, &format!("/l/{long}"), 0o755);
    assert!(matches!(&refused, Err(Refusal::ComponentTooLong { limit: 255, length: 256, .. })), "{refused:?}");
    let refused = w.mkdirs(&who, &format!("/l/{}", "é".repeat(128)), 0o755);
    assert!(matches!(refused, Err(Refusal::ComponentTooLong { length: 256, .. })));
    for bad in ["/l/a:b", "/l/../b", "/l//b"] {
        let refused = w.mkdirs(&who, bad, 0o755);
        assert_eq!(refused, Err(Refusal::InvalidPath(format!("Invalid path name Invalid file name: {bad}").into())));
    }
    let deep = "/a".repeat(1_001);
    assert_eq!(
        w.mkdirs(&who, &deep, 0o755),
        Err(Refusal::io("mkdirs: Pathname too long.  Limit 8000 characters, 1000 levels."))
    );
    w.settings.directory_items = 64;
    for i in 0..64 {
        w.mkdirs(&who, &format!("/m/{i}"), 0o755).unwrap();
    }
    let refused = w.mkdirs(&who, "/m/65", 0o755);
    assert_eq!(refused, Err(Refusal::DirectoryItems { path: "/m".into(), limit: 64, count: 64 }));
    w.mkdirs(&who, "/n", 0o755).unwrap();
    assert!(matches!(w.rename(&who, "/n", "/m/n"), Err(Refusal::DirectoryItems { .. })));
    assert_eq!(w.rename(&who, "/m/1", "/m/renamed"), Ok(true), "not the item limit inside one directory");
    assert!(matches!(w.rename(&who, "/n", &format!("/l/{long}")), Err(Refusal::ComponentTooLong { .. })));
}

/// T27: permission messages that people and tools read.
#[test]
fn t27_permission_messages() {
    let mut w = World::new();
    let admin = superuser();
    w.mkdirs(&admin, "/d", 0o755).unwrap();
    w.mkdirs(&admin, "/private", 0o700).unwrap();
    w.mkdirs(&admin, "/tmp", 0o1777).unwrap();
    w.mkdirs(&alice(), "/tmp/alices", 0o755).unwrap();
    let Err(Refusal::PermissionDenied(denied)) = w.mkdirs(&alice(), "/d/x", 0o755) else { panic!("allowed") };
    assert_eq!((&*denied.user, denied.access.name(), &*denied.path), ("alice", "WRITE", "/d"));
    assert_eq!((&*denied.owner, &*denied.group, denied.directory), ("super", "supergroup", true));
    let user = alice();
    w.view(&user, |v| {
        let refused = get_listing(v, b"/private", b"", false, &mut Vec::new());
        let Err(Refusal::PermissionDenied(denied)) = refused else { panic!("allowed") };
        assert_eq!(denied.access.name(), "READ_EXECUTE");
    });
    let Err(Refusal::AccessControl(sticky)) = w.delete(&bob(), "/tmp/alices", true) else { panic!("allowed") };
    assert_eq!(
        &*sticky,
        "Permission denied by sticky bit: user=bob, path=\"/tmp/alices\":alice:supergroup:drwxr-xr-x, \
         parent=\"/tmp\":super:supergroup:drwxrwxrwt"
    );
    w.mkdirs(&admin, "/tmp/alices/supers/x", 0o755).unwrap();
    let Err(Refusal::PermissionDenied(denied)) = w.delete(&alice(), "/tmp/alices", true) else { panic!("allowed") };
    assert_eq!((denied.access.name(), &*denied.path), ("ALL", "/tmp/alices/supers"));
    w.delete(&admin, "/tmp/alices/supers/x", true).unwrap();
    assert_eq!(w.delete(&alice(), "/tmp/alices", true), Ok(true));
}

#[test]
fn mkdirs_keeps_ancestors_when_a_quota_ends_it() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/q", 0o755).unwrap();
    w.turn(&superuser(), |t| t.log(Record::SetQuota { path: b"/q"[..].into(), namespace: 3, space: i64::MAX }));
    let refused = w.mkdirs(&superuser(), "/q/a/b/c", 0o755);
    let Err(Refusal::NamespaceQuota(quota)) = refused else { panic!("{refused:?}") };
    assert_eq!((&*quota.path, quota.quota, quota.count), ("/q", 3, 4));
    assert!(w.exists("/q/a/b") && !w.exists("/q/a/b/c"));
    w.delete(&superuser(), "/q/a", true).unwrap();
    assert_eq!(w.mkdirs(&superuser(), "/q/x/y", 0o755), Ok(true));
}

#[test]
fn deleted_trees_are_invisible_at_once_and_freed_in_slices() {
    let mut w = World::new();
    w.checked = false;
    w.mkdirs(&superuser(), "/t", 0o755).unwrap();
    for i in 0..60 {
        for j in 0..60 {
            w.mkdirs(&superuser(), &format!("/t/{i}/{j}"), 0o755).unwrap();
        }
    }
    w.reclaims = false;
    assert_eq!(w.delete(&superuser(), "/t", true), Ok(true));
    assert!(!w.exists("/t/1/1"));
    let left = w.state.tree.inode_count();
    assert!(left > 3_300, "{left} inodes wait");
    assert_eq!(w.state.tree.check(&w.state.store), Vec::<String>::new());
    while w.state.reclaim(100) {}
    assert_eq!((w.state.tree.inode_count(), w.state.store.inode_count()), (1, 1));
    w.check();
}
