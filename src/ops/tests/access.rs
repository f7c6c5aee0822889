//! ACLs, extended attributes, symlinks: end to end.

use super::namespace::modes;
use super::*;
use crate::read::acl_status::get_acl_status;
use crate::read::file_info::*;
use crate::write::acl::{AclChange, ChangeAcl};
use crate::write::new_node::CreateModes;
use crate::write::symlink::CreateSymlink;
use crate::write::xattr::{RemoveXattr, SetXattr, get_xattrs, list_xattrs};
use vocab::acl::{AclEntry, AclKind, AclScope};
use vocab::xattr::{Xattr, XattrNamespace};
use vocab::{Action, Mode as Permissions};

fn entry(scope: AclScope, kind: AclKind, name: Option<&str>, bits: u8) -> AclEntry {
    AclEntry { scope, kind, name: name.map(Into::into), permission: Action(bits) }
}

impl World {
    fn acl(&mut self, path: &str, change: AclChange) -> Result<(), Refusal> {
        self.write(&superuser(), &ChangeAcl { path: path.into(), change })
    }
}

/// T27 (e): a denial decided by an ACL says so.
#[test]
fn t27_a_denial_decided_by_an_acl() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o755).unwrap();
    w.acl("/d", AclChange::Modify(vec![entry(AclScope::Access, AclKind::User, Some("alice"), 4)])).unwrap();
    let user = alice();
    w.view(&user, |v| {
        let refused = crate::read::listing::get_listing(v, b"/d", b"", false, &mut Vec::new());
        let Err(Refusal::PermissionDenied(denied)) = refused else { panic!("allowed") };
        assert_eq!(denied.access, Action::READ_EXECUTE);
    });
    let who = bob();
    w.view(&who, |v| assert!(crate::read::listing::get_listing(v, b"/d", b"", false, &mut Vec::new()).is_ok()));
}

#[test]
fn named_entries_are_masked_and_groups_add_up() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o770).unwrap();
    let access = |kind, name, bits| entry(AclScope::Access, kind, name, bits);
    w.acl("/d", AclChange::Modify(vec![access(AclKind::Group, Some("staff"), 7), access(AclKind::Mask, None, 5)]))
        .unwrap();
    assert!(matches!(w.mkdirs(&alice(), "/d/x", 0o755), Err(Refusal::PermissionDenied(_))), "masked");
    w.acl("/d", AclChange::Modify(vec![access(AclKind::Mask, None, 7)])).unwrap();
    assert_eq!(w.mkdirs(&alice(), "/d/x", 0o755), Ok(true));
    w.acl(
        "/d",
        AclChange::Modify(vec![access(AclKind::Group, Some("staff"), 0), access(AclKind::Group, Some("ops"), 7)]),
    )
    .unwrap();
    assert!(w.mkdirs(&alice(), "/d/y", 0o755).is_err());
    assert_eq!(w.mkdirs(&bob(), "/d/y", 0o755), Ok(true), "one group that grants is enough");
    w.acl("/d", AclChange::RemoveAll).unwrap();
    let who = superuser();
    w.view(&who, |v| {
        let status = get_acl_status(v, b"/d").unwrap();
        assert_eq!((status.mode, status.entries.len()), (Some(Permissions::new(0o770)), 0));
    });
}

#[test]
fn default_entries_are_inherited_with_the_unmasked_mode() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o755).unwrap();
    w.acl("/d", AclChange::Modify(vec![entry(AclScope::Default, AclKind::User, Some("alice"), 7)])).unwrap();
    let modes = CreateModes { masked: Permissions::new(0o755), unmasked: Some(Permissions::new(0o777)) };
    let op = crate::write::mkdirs::Mkdirs { path: b"/d/sub".into(), modes, create_parents: true };
    w.write(&superuser(), &op).unwrap();
    let op = crate::write::create::Create { modes, ..World::create_op("/d/file", "c") };
    w.write(&superuser(), &op).unwrap();
    let who = superuser();
    w.view(&who, |v| {
        let sub = get_acl_status(v, b"/d/sub").unwrap();
        assert_eq!(
            sub.mode,
            Some(Permissions::new(0o775)),
            "group bits are the mask: rwx of alice and the group under 0777"
        );
        assert_eq!(sub.entries.len(), 2 + 5);
        let file = get_acl_status(v, b"/d/file").unwrap();
        assert!(file.entries.iter().all(|e| e.scope == AclScope::Access));
        assert_eq!(file.entries.len(), 2);
    });
    let refused = w.acl("/d/file", AclChange::Modify(vec![entry(AclScope::Default, AclKind::User, Some("a"), 7)]));
    assert_eq!(
        refused,
        Err(Refusal::Acl("Invalid ACL: only directories may have a default ACL. Path: /d/file Path: /d/file".into()))
    );
    w.settings.acls = false;
    assert!(matches!(w.acl("/d", AclChange::RemoveAll), Err(Refusal::Acl(_))));
}

#[test]
fn attributes_set_last_come_first() {
    let mut w = World::new();
    let who = superuser();
    w.mkdirs(&who, "/d", 0o755).unwrap();
    for name in ["a", "b", "c", "a"] {
        let xattr = Xattr { namespace: XattrNamespace::User, name: name.into(), value: b"v"[..].into() };
        let set = SetXattr { path: b"/d".into(), xattr, given: true, create: true, replace: true };
        assert_eq!(w.write(&who, &set), Ok(()));
    }
    let names = |v: &View<'_>| list_xattrs(v, b"/d").unwrap().iter().map(|x| x.name.to_string()).collect::<Vec<_>>();
    w.view(&who, |v| assert_eq!(names(v), ["a", "c", "b"]));
}

#[test]
fn extended_attributes() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d", 0o777).unwrap();
    let xattr =
        |namespace, name: &str, value: &str| Xattr { namespace, name: name.into(), value: value.as_bytes().into() };
    let set =
        |x: &Xattr, create, replace| SetXattr { path: b"/d".into(), xattr: x.clone(), given: true, create, replace };
    let user = xattr(XattrNamespace::User, "k", "v");
    assert_eq!(w.write(&alice(), &set(&user, true, false)), Ok(()));
    assert_eq!(
        w.write(&alice(), &set(&user, true, false)),
        Err(Refusal::io("XAttr: k already exists. The REPLACE flag must be specified."))
    );
    assert_eq!(w.write(&alice(), &set(&xattr(XattrNamespace::User, "k", "w"), true, true)), Ok(()));
    assert_eq!(
        w.write(&alice(), &set(&xattr(XattrNamespace::User, "new", ""), false, true)),
        Err(Refusal::io("XAttr: new does not exist. The CREATE flag must be specified."))
    );
    let trusted = xattr(XattrNamespace::Trusted, "t", "1");
    assert_eq!(
        w.write(&alice(), &set(&trusted, true, false)),
        Err(Refusal::AccessControl("User doesn't have permission for xattr: trusted.t".into()))
    );
    assert_eq!(w.write(&superuser(), &set(&trusted, true, false)), Ok(()));
    let (admin, plain) = (superuser(), alice());
    w.view(&admin, |v| assert_eq!(get_xattrs(v, b"/d", &[]).unwrap().len(), 2));
    w.view(&plain, |v| {
        assert_eq!(list_xattrs(v, b"/d").unwrap().len(), 1);
        assert_eq!(&*get_xattrs(v, b"/d", std::slice::from_ref(&user)).unwrap()[0].value, b"w");
        let missing = get_xattrs(v, b"/d", &[xattr(XattrNamespace::User, "none", "")]);
        assert_eq!(
            missing,
            Err(Refusal::XattrNotFound("At least one of the attributes provided was not found.".into()))
        );
    });
    let remove = RemoveXattr { path: b"/d".into(), xattr: user };
    assert_eq!(w.write(&alice(), &remove), Ok(()));
    assert_eq!(w.write(&alice(), &remove), Err(Refusal::io("No matching attributes found for remove operation")));
    // what is no zone's attribute is kept, and makes no zone
    let zone = xattr(XattrNamespace::Raw, "hdfs.crypto.encryption.zone", "x");
    let op = SetXattr { path: b"/.reserved/raw/d".into(), xattr: zone, given: true, create: true, replace: false };
    assert_eq!(w.write(&superuser(), &op), Ok(()));
}

#[test]
fn symlinks_send_the_client_on() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/real/sub", 0o755).unwrap();
    let op =
        CreateSymlink { target: b"/real".into(), link: b"/links/l".into(), modes: modes(0o755), create_parents: true };
    assert_eq!(w.write(&superuser(), &op), Err(Refusal::Unsupported("Symlinks not supported".into())));
    w.settings.symlinks = true;
    assert_eq!(w.write(&superuser(), &op), Ok(()));
    let who = superuser();
    w.view(&who, |v| {
        let Err(Refusal::UnresolvedPath { preceding, remainder, target, .. }) = get_file_info(v, b"/links/l/sub/x")
        else {
            panic!("followed")
        };
        assert_eq!((&*preceding, &*remainder, &*target), ("/links", "sub/x", "/real"));
        assert!(matches!(get_file_info(v, b"/links/l"), Err(Refusal::UnresolvedPath { .. })));
        assert_eq!(get_file_link_info(v, b"/links/l").unwrap().unwrap().symlink.as_deref(), Some(&b"/real"[..]));
        assert_eq!(get_link_target(v, b"/links/l"), Ok(&b"/real"[..]));
        assert!(matches!(get_link_target(v, b"/real"), Err(Refusal::Io(_))));
    });
    assert_eq!(w.delete(&superuser(), "/links/l", false), Ok(true));
    w.restart();
    assert!(w.exists("/real/sub"));
}

#[test]
fn reserved_paths_by_inode_id() {
    let mut w = World::new();
    w.mkdirs(&superuser(), "/d/e", 0o755).unwrap();
    let id = w.create("/d/e/f");
    let who = superuser();
    w.view(&who, |v| {
        let by_id = format!("/.reserved/.inodes/{id}");
        assert_eq!(get_file_info(v, by_id.as_bytes()).unwrap().unwrap().id, id);
        let up = format!("/.reserved/.inodes/{id}/..");
        assert_eq!(get_file_info(v, up.as_bytes()).unwrap().unwrap().children, 1);
        let root = format!("/.reserved/.inodes/{}/d/e/f", vocab::InodeId::ROOT);
        assert_eq!(get_file_info(v, root.as_bytes()).unwrap().unwrap().id, id);
        assert_eq!(get_file_info(v, b"/.reserved/raw/d/e/f").unwrap().unwrap().id, id);
        assert!(matches!(get_file_info(v, b"/.reserved/.inodes/99999"), Err(Refusal::FileNotFound(_))));
    });
    assert!(matches!(w.mkdirs(&superuser(), "/.reserved/x", 0o755), Err(Refusal::HadoopIllegalArgument(_))));
    assert!(matches!(w.mkdirs(&superuser(), "/d/.snapshot", 0o755), Err(Refusal::HadoopIllegalArgument(_))));
}

/// What a check in slices finds is what the check in the deletion's own hold finds, wherever the slices end.
#[test]
fn rights_below_a_large_directory_are_checked_in_slices() {
    use crate::write::delete::{Delete, DeleteCheck};
    let mut w = World::new();
    w.checked = false;
    w.mkdirs(&superuser(), "/d", 0o777).unwrap();
    for n in 0..50 {
        (0..100).for_each(|m| drop(w.mkdirs(&alice(), &format!("/d/{n:02}/{m:02}"), 0o700)));
    }
    w.mkdirs(&bob(), "/d/33-of-bob/x", 0o700).unwrap();
    let delete = Delete { path: b"/d".to_vec(), recursive: true };
    w.mkdirs(&superuser(), "/small", 0o777).unwrap();
    let small = Delete { path: b"/small".to_vec(), recursive: true };
    let (owner, administrator) = (alice(), superuser());
    w.view(&owner, |v| assert!(DeleteCheck::begin(v, &small).is_none()));
    w.view(&administrator, |v| assert!(DeleteCheck::begin(v, &delete).is_none(), "nothing is checked"));
    // alice may write where the directory lies
    w.write(
        &superuser(),
        &crate::write::attributes::SetPermission { path: b"/".to_vec(), mode: Permissions::new(0o777) },
    )
    .unwrap();
    let sliced = |w: &mut World, who: &Caller, budget: usize| {
        let check = w.view(who, |v| {
            let mut check = DeleteCheck::begin(v, &delete).expect("it is large");
            while !check.step(v, budget) {}
            check
        });
        w.write(who, &check)
    };
    let refused = w.write(&owner, &delete);
    assert!(
        matches!(&refused, Err(Refusal::PermissionDenied(denied)) if &*denied.path == "/d/33-of-bob"),
        "{refused:?}"
    );
    for budget in [1, 7, 100, 10_000] {
        assert_eq!(sliced(&mut w, &owner, budget), refused, "{budget}");
    }
    w.write(&bob(), &Delete { path: b"/d/33-of-bob".to_vec(), recursive: true }).unwrap();
    assert_eq!(sliced(&mut w, &owner, 3), Ok(true));
    w.view(&owner, |v| assert_eq!(get_file_info(v, b"/d"), Ok(None)));
    w.checked = true;
    w.mkdirs(&owner, "/small/all-is-as-a-restart-would-have-it", 0o755).unwrap();
}
