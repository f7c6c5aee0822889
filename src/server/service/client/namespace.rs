//! Changes of the tree: directories, files by name, renames, deletes.

use super::super::convert::nested;
use super::super::convert::status::put_status;
use super::super::{Answer, EMPTY, Writing, bad_view, decode, superuser};
use super::zones::GivenKey;
use super::{Request, boolean};
use bytes::BytesMut;
use hadoop_proto::hdfs::{
    ConcatRequestProto, CreateFlagProto, CreateRequestProto, CreateSymlinkRequestProto, DeleteRequestProto,
    MkdirsRequestProto, Rename2RequestProto, RenameRequestProto,
};
use hadoop_proto::view::client as view;
use observe::RemoteException;
use ops::write::concat::Concat;
use ops::write::create::Create;
use ops::write::delete::{Delete, DeleteCheck};
use ops::write::mkdirs::Mkdirs;
use ops::write::new_node::CreateModes;
use ops::write::rename::{Rename, Rename2};
use ops::write::symlink::CreateSymlink;
use vocab::Mode;

/// Inodes looked at in one hold before a large directory is deleted.
const CHECK_SLICE: usize = 1_000;

fn modes(masked: &view::FsPermission<'_>, unmasked: Option<&view::FsPermission<'_>>) -> CreateModes {
    CreateModes { masked: Mode::new(masked.perm as u16), unmasked: unmasked.map(|m| Mode::new(m.perm as u16)) }
}

pub(super) fn mkdirs(request: &Request<'_>) -> Writing {
    let asked =
        view::MkdirsRequest::parse(request.body).map_err(|e| bad_view::<MkdirsRequestProto>(request.body, e))?;
    let operation = Mkdirs {
        path: asked.src.to_str().into_owned().into_bytes(),
        modes: modes(&asked.masked, asked.unmasked.as_ref()),
        create_parents: asked.create_parent,
    };
    request.write(operation, boolean)
}

/// Versions of the encryption protocol that a client knows.
fn versions(request: &Request<'_>) -> Result<Vec<i32>, RemoteException> {
    Ok(decode::<CreateRequestProto>(request.body.clone())?.crypto_protocol_version)
}

pub(super) fn create(request: &Request<'_>, data_key: Option<GivenKey>) -> Writing {
    let asked =
        view::CreateRequest::parse(request.body).map_err(|e| bad_view::<CreateRequestProto>(request.body, e))?;
    let flag = |flag: CreateFlagProto| asked.create_flag & flag as u32 != 0;
    let operation = Create {
        path: asked.src.to_str().into_owned().into_bytes(),
        modes: modes(&asked.masked, asked.unmasked.as_ref()),
        client: asked.client_name.to_str().into(),
        create: flag(CreateFlagProto::Create),
        overwrite: flag(CreateFlagProto::Overwrite),
        create_parents: asked.create_parent,
        // a short in Java
        replication: asked.replication as u16,
        block_size: asked.block_size,
        lazy_persist: flag(CreateFlagProto::LazyPersist),
        should_replicate: flag(CreateFlagProto::ShouldReplicate),
        erasure_coding_policy: asked
            .ec_policy_name
            .map(|n| n.to_str().into())
            .filter(|n: &std::sync::Arc<str>| !n.is_empty()),
        storage_policy: asked.storage_policy.map(|n| n.to_str().into()).filter(|n: &std::sync::Arc<str>| !n.is_empty()),
        versions: if data_key.is_some() { versions(request)? } else { Vec::new() },
        data_key,
    };
    request.write(operation, |status| {
        let mut out = BytesMut::with_capacity(160);
        nested(&mut out, 1, |out| put_status(out, &status, None));
        Ok(out.freeze())
    })
}

fn deletion(request: &Request<'_>) -> Result<Delete, RemoteException> {
    let asked =
        view::DeleteRequest::parse(request.body).map_err(|e| bad_view::<DeleteRequestProto>(request.body, e))?;
    Ok(Delete { path: asked.src.to_str().into_owned().into_bytes(), recursive: asked.recursive })
}

/// `None` for what is checked in slices before.
pub(super) fn delete(request: &Request<'_>) -> Option<Writing> {
    let delete = match deletion(request) {
        Ok(delete) => delete,
        Err(refused) => return Some(Err(refused)),
    };
    let is_checked = delete.recursive && superuser(request.shared, request.caller, "delete").is_err();
    if is_checked && begin_check(request, &delete).is_some() {
        return None;
    }
    Some(request.write(delete, boolean))
}

fn begin_check(request: &Request<'_>, delete: &Delete) -> Option<DeleteCheck> {
    request.shared.engine.view("delete", request.caller, |view| DeleteCheck::begin(view, delete))
}

/// The caller's rights in a large directory are looked at in slices before it goes.
pub(super) async fn delete_when_checked(request: &Request<'_>) -> Answer {
    let (engine, delete) = (&request.shared.engine, deletion(request)?);
    engine.pass(request.operation)?;
    let decided = match begin_check(request, &delete) {
        Some(mut check) => {
            while !engine.view("deleteCheck", request.caller, |view| check.step(view, CHECK_SLICE)) {
                tokio::task::yield_now().await;
            }
            request.write(check, boolean)?
        }
        // it has gone meanwhile, or most of it
        None => request.write(delete, boolean)?,
    };
    engine.fence(decided).await
}

pub(super) fn rename(request: &Request<'_>) -> Writing {
    let asked =
        view::RenameRequest::parse(request.body).map_err(|e| bad_view::<RenameRequestProto>(request.body, e))?;
    let operation = Rename {
        source: asked.src.to_str().into_owned().into_bytes(),
        target: asked.dst.to_str().into_owned().into_bytes(),
    };
    request.write(operation, boolean)
}

pub(super) fn rename2(request: &Request<'_>) -> Writing {
    let asked =
        view::Rename2Request::parse(request.body).map_err(|e| bad_view::<Rename2RequestProto>(request.body, e))?;
    let operation = Rename2 {
        source: asked.src.to_str().into_owned().into_bytes(),
        target: asked.dst.to_str().into_owned().into_bytes(),
        overwrite: asked.overwrite_dest,
        to_trash: asked.move_to_trash.unwrap_or(false),
    };
    request.write(operation, |_| Ok(EMPTY))
}

pub(super) fn concat(request: &Request<'_>) -> Writing {
    let asked: ConcatRequestProto = decode(request.body.clone())?;
    let sources = asked.srcs.into_iter().map(String::into_bytes).collect();
    request.write(Concat { target: asked.trg.into_bytes(), sources }, |_| Ok(EMPTY))
}

pub(super) fn create_symlink(request: &Request<'_>) -> Writing {
    let asked: CreateSymlinkRequestProto = decode(request.body.clone())?;
    let operation = CreateSymlink {
        target: asked.target.into_bytes(),
        link: asked.link.into_bytes(),
        modes: CreateModes { masked: Mode::new(asked.dir_perm.perm as u16), unmasked: None },
        create_parents: asked.create_parent,
    };
    request.write(operation, |_| Ok(EMPTY))
}
