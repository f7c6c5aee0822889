//! Files being written: which client, from where. The client name is the lease holder.

use crate::Tree;
use record::{Features, InodeHandle, Store};
use std::sync::Arc;

/// Who writes a file. Durable: both names are in the image and in records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Construction {
    /// Lease holder.
    pub client: Arc<str>,
    /// Host of the client.
    pub machine: Arc<str>,
}

impl Tree {
    /// Who writes the file, if it is open.
    pub fn construction(&self, inode: InodeHandle) -> Option<&Construction> {
        self.constructions.get(&inode)
    }
    /// How many files are open, those waiting to be freed included.
    pub fn open_count(&self) -> usize {
        self.constructions.len()
    }
    /// Opens a file for writing and gives the client its lease. An open file changes hands.
    pub fn open(&mut self, store: &mut Store, inode: InodeHandle, client: &str, machine: &str) {
        let id = store.inode_id(inode);
        let client = self.leases.add(client, id);
        if let Some(before) =
            self.constructions.insert(inode, Construction { client: client.clone(), machine: machine.into() })
            && before.client != client
        {
            self.leases.remove(&before.client, id);
        }
        let features = store.features(inode);
        store.set_features(inode, features.with(Features::CONSTRUCTION));
    }
    /// Closes a file and drops its lease.
    pub fn close(&mut self, store: &mut Store, inode: InodeHandle) {
        if let Some(was) = self.constructions.remove(&inode) {
            self.leases.remove(&was.client, store.inode_id(inode));
            let features = store.features(inode);
            store.set_features(inode, features.without(Features::CONSTRUCTION));
        }
    }
    /// Gives the lease of an open file to another holder.
    pub fn reassign(&mut self, store: &Store, inode: InodeHandle, holder: &str) {
        let id = store.inode_id(inode);
        if let Some(construction) = self.constructions.get_mut(&inode) {
            self.leases.remove(&construction.client, id);
            construction.client = self.leases.add(holder, id);
        }
    }
}
