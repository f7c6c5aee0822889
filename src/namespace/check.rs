//! What must hold between the records, the child lists and the side tables. Used by tests and by diagnosis; walks everything.

use crate::Tree;
use crate::side::key;
use record::{Features, InodeHandle, KindTag, Store};
use vocab::path::compare_names;

impl Tree {
    /// Violations of the invariants, as sentences; empty when all is well.
    pub fn check(&self, store: &Store) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut reached = 0u64;
        let mut open_files = 0usize;
        let mut stack = self.past_tops();
        stack.push(self.root);
        while let Some(inode) = stack.pop() {
            reached += 1;
            self.check_inode(store, inode, &mut wrong);
            if store.features(inode).contains(Features::CONSTRUCTION) {
                open_files += 1;
            }
            if store.kind(inode) == KindTag::Directory {
                self.check_children(store, inode, &mut wrong);
                stack.extend(self.children(store, inode));
            }
        }
        if self.detached.is_empty() {
            if reached != self.inode_count {
                wrong.push(format!("{reached} inodes are reachable, {} are counted", self.inode_count));
            }
            if open_files != self.constructions.len() {
                wrong.push(format!("{open_files} files are open, {} are in the table", self.constructions.len()));
            }
            self.check_quotas(store, &mut wrong);
        }
        let leased: usize = self.leases.iter().map(|l| l.files.len()).sum();
        let past = |file: &InodeHandle| store.features(*file).contains(Features::CONSTRUCTION);
        let past = self.past_inodes(store).iter().filter(|file| past(file)).count();
        // what a deleted snapshot held open goes in slices
        if leased + past != self.constructions.len() && !self.has_cleanup() {
            wrong.push(format!("{leased} files are leased, {} are open", self.constructions.len()));
        }
        wrong
    }

    fn check_children(&self, store: &Store, directory: InodeHandle, wrong: &mut Vec<String>) {
        let id = store.inode_id(directory);
        let children: Vec<InodeHandle> = self.children(store, directory).collect();
        if children.len() != store.children(directory).1 as usize {
            wrong.push(format!(
                "directory {id} counts {} children and lists {}",
                store.children(directory).1,
                children.len()
            ));
        }
        for pair in children.windows(2) {
            if !compare_names(store.name(pair[0]), store.name(pair[1])).is_lt() {
                wrong.push(format!("names in directory {id} are out of order"));
            }
        }
        for child in children {
            if store.parent(child) != Some(directory) {
                wrong.push(format!("inode {} does not name {id} as its parent", store.inode_id(child)));
            }
        }
    }

    fn check_inode(&self, store: &Store, inode: InodeHandle, wrong: &mut Vec<String>) {
        let features = store.features(inode);
        let id = store.inode_id(inode);
        let mut agree = |feature: Features, entry: bool, what: &str| {
            if features.contains(feature) != entry {
                wrong.push(format!("inode {id}: {what} and the feature bit disagree"));
            }
        };
        agree(Features::ACL, self.acls.contains(key(inode)), "ACL");
        agree(Features::XATTRS, self.xattrs.contains(key(inode)), "extended attributes");
        agree(Features::QUOTA, self.quotas.contains(key(inode)), "quota");
        agree(Features::CONSTRUCTION, self.constructions.contains(key(inode)), "construction");
        agree(Features::SYMLINK_TARGET, self.symlinks.contains(key(inode)), "symlink target");
        if store.find_inode(id) != Some(inode) {
            wrong.push(format!("inode {id} is not in the index"));
        }
        if let Some(construction) = self.construction(inode).filter(|_| self.is_present(store, inode))
            && !self.leases.get(construction.client).is_some_and(|l| l.files.contains(&id))
        {
            wrong.push(format!("open file {id} has no lease of {}", construction.client));
        }
    }

    fn check_quotas(&self, store: &Store, wrong: &mut Vec<String>) {
        // of those that only snapshots hold the use is not kept
        for (directory, record) in self.all_quotas().filter(|(d, _)| self.is_attached(store, *d)) {
            let counted = self.subtree_usage(store, directory);
            // use by kind follows a change of the storage policy of very many inodes only at the next load
            if (counted.namespace, counted.space) != (record.usage.namespace, record.usage.space) {
                let id = store.inode_id(directory);
                wrong.push(format!("quota directory {id} has use {:?}, counted {counted:?}", record.usage));
            }
        }
    }
}
