//! Files being written: which client, from where. The client name is the lease holder.

use crate::Tree;
use crate::codec::{put_string, take_string};
use crate::side::{inode_of, key};
use record::{Features, InodeHandle, Store};

/// Who writes a file. Durable: both names are in the image and in records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Construction<'a> {
    /// Lease holder.
    pub client: &'a str,
    /// Host of the client.
    pub machine: &'a str,
}

pub(crate) fn encode(construction: Construction<'_>, out: &mut Vec<u8>) {
    put_string(out, construction.client.as_bytes());
    out.extend_from_slice(construction.machine.as_bytes());
}
/// Bytes that are not of [`encode`] give empty names.
pub(crate) fn decode(mut bytes: &[u8]) -> Construction<'_> {
    let client = take_string(&mut bytes).unwrap_or_default();
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    Construction { client: text(client), machine: text(bytes) }
}

impl Tree {
    /// Who writes the file, if it is open.
    pub fn construction(&self, inode: InodeHandle) -> Option<Construction<'_>> {
        self.constructions.get(key(inode)).map(decode)
    }
    /// How many files are open, those waiting to be freed included.
    pub fn open_count(&self) -> usize {
        self.constructions.len()
    }
    pub(crate) fn put_construction(&mut self, inode: InodeHandle, client: &str, machine: &str) {
        let mut value = Vec::with_capacity(client.len() + machine.len() + 2);
        encode(Construction { client, machine }, &mut value);
        self.constructions.set(key(inode), &value);
    }
    /// Opens a file for writing and gives the client its lease. An open file changes hands.
    pub fn open(&mut self, store: &mut Store, inode: InodeHandle, client: &str, machine: &str) {
        let id = store.inode_id(inode);
        self.leases.add(client, id);
        if let Some(before) = self.constructions.get(key(inode)).map(decode)
            && before.client != client
        {
            self.leases.remove(before.client, id);
        }
        self.put_construction(inode, client, machine);
        let features = store.features(inode);
        store.set_features(inode, features.with(Features::CONSTRUCTION));
    }
    /// Closes a file and drops its lease.
    pub fn close(&mut self, store: &mut Store, inode: InodeHandle) {
        if !store.features(inode).contains(Features::CONSTRUCTION) {
            return;
        }
        if let Some(was) = self.constructions.get(key(inode)).map(decode) {
            self.leases.remove(was.client, store.inode_id(inode));
            self.constructions.remove(key(inode));
            let features = store.features(inode);
            store.set_features(inode, features.without(Features::CONSTRUCTION));
        }
    }
    /// Gives the lease of an open file to another holder.
    pub fn reassign(&mut self, store: &Store, inode: InodeHandle, holder: &str) {
        let id = store.inode_id(inode);
        if let Some(was) = self.constructions.get(key(inode)).map(decode) {
            self.leases.remove(was.client, id);
            self.leases.add(holder, id);
            let machine = was.machine.to_owned();
            self.put_construction(inode, holder, &machine);
        }
    }
    /// Takes the lease of an open file away that goes into the past, where it stays as it is.
    pub(crate) fn drop_lease(&mut self, store: &Store, inode: InodeHandle) {
        if let Some(was) = self.constructions.get(key(inode)).map(decode) {
            self.leases.remove(was.client, store.inode_id(inode));
        }
    }
    /// Makes the leases from the open files: what a start does.
    pub fn derive_leases(&mut self, store: &Store) {
        for (key, value) in self.constructions.iter() {
            // a file that only snapshots hold stays as it was, and nobody writes it
            if let Some(file) = inode_of(key).filter(|file| self.is_present(store, *file)) {
                self.leases.add(decode(value).client, store.inode_id(file));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out(client in "\\PC{0,200}", machine in "\\PC{0,20}") {
            let (mut bytes, construction) = (Vec::new(), Construction { client: &client, machine: &machine });
            encode(construction, &mut bytes);
            prop_assert_eq!(decode(&bytes), construction);
        }
    }
}
