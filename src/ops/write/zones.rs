//! createEncryptionZone.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::Walk;
use record::KindTag;
use std::borrow::Cow;
use std::sync::Arc;
use vocab::Refusal;
use vocab::encryption::{VERSION, Zone};

/// Makes an empty directory the root of a zone.
#[derive(Clone, Debug)]
pub struct CreateEncryptionZone {
    /// The directory.
    pub path: Vec<u8>,
    /// Cipher suite of the key, by number.
    pub suite: u32,
    /// Name of the key, which exists.
    pub key: Arc<str>,
}

impl Write for CreateEncryptionZone {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::CreateEncryptionZone;

    fn prepare(&self, _: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot create encryption zone on {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::Write)?;
        let (tree, store) = (&view.state.tree, &view.state.store);
        let path = resolved.path_text();
        let inode = resolved.last().ok_or_else(|| Refusal::not_found(format!("cannot find {path}")))?;
        let is_directory = store.kind(inode) == KindTag::Directory;
        if is_directory && store.children(inode).1 > 0 {
            return Err(Refusal::io("Attempt to create an encryption zone for a non-empty directory."));
        }
        if !is_directory {
            return Err(Refusal::io("Attempt to create an encryption zone for a file."));
        }
        if tree.own_zone(inode).is_some() {
            return Err(Refusal::io(format!("Directory {path} is already an encryption zone.")));
        }
        let zone = Zone { suite: self.suite, version: VERSION, key: self.key.clone(), reencryption: None };
        let (rpc, path) = (view.caller.rpc_ids, Cow::Owned(resolved.path()));
        turn.log(Record::SetXattr { path, xattrs: vec![zone.to_xattr()], given: true, rpc });
        Ok(())
    }
}
