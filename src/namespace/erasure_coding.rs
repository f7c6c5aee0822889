//! Erasure coding policies: the table of them, and which one is in effect where. Directories have one by name (an attribute), files by number.

use crate::Tree;
use record::{Features, InodeHandle, KindTag, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::SnapshotId;
use vocab::erasure_coding::{ErasureCodingPolicy, FIRST_USER_DEFINED, LAST, PolicyState, REPLICATION, Stripe, XATTR};
use vocab::xattr::{Xattr, XattrNamespace};

/// All policies of the file system (Hadoop's `ErasureCodingPolicyManager`).
#[derive(Clone, Debug)]
pub struct Policies {
    all: BTreeMap<u8, ErasureCodingPolicy>,
    /// Policies that were disabled since the image was loaded. Soft: the default policy counts as enabled until somebody disables it.
    disabled: BTreeSet<u8>,
    /// Whether any directory may have a policy. Soft: once true it stays.
    pub(crate) on_directories: bool,
}

impl Default for Policies {
    fn default() -> Policies {
        let all = ErasureCodingPolicy::built_in().map(|p| (p.id, p)).collect();
        Policies { all, disabled: BTreeSet::new(), on_directories: false }
    }
}

impl Policies {
    /// All, by number: what is durable of them.
    pub fn all(&self) -> &BTreeMap<u8, ErasureCodingPolicy> {
        &self.all
    }
    /// The policy of a number.
    pub fn by_id(&self, id: u8) -> Option<&ErasureCodingPolicy> {
        self.all.get(&id)
    }
    /// The policy of a name.
    pub fn by_name(&self, name: &str) -> Option<&ErasureCodingPolicy> {
        self.all.values().find(|p| *p.name == *name)
    }
    /// The layout of the block groups of a file, `None` for a replicated one.
    pub fn stripe(&self, id: u8) -> Option<Stripe> {
        if id == REPLICATION { None } else { self.by_id(id).map(|p| p.stripe) }
    }

    /// Whether directories and files may get a policy now. `default` is the name of the one that is enabled at every start.
    pub fn is_enabled(&self, policy: &ErasureCodingPolicy, default: &str) -> bool {
        policy.state == PolicyState::Enabled || *policy.name == *default && !self.disabled.contains(&policy.id)
    }

    /// The policy that has the name or the layout of one to be added.
    pub fn same_as(&self, new: &ErasureCodingPolicy) -> Option<&ErasureCodingPolicy> {
        self.all.values().find(|p| {
            let layout = |p: &ErasureCodingPolicy| (p.units, p.stripe.cell_size);
            p.name == new.name || p.codec == new.codec && layout(p) == layout(new) && p.options == new.options
        })
    }

    /// Number of the next policy that is added; `None` if there are as many as there may be.
    pub fn next_id(&self) -> Option<u8> {
        let last = self.all.keys().next_back().copied().unwrap_or(REPLICATION);
        (last < LAST).then(|| (last + 1).max(FIRST_USER_DEFINED))
    }

    /// Enters a policy, over one of the same number.
    pub fn insert(&mut self, policy: ErasureCodingPolicy) {
        self.all.insert(policy.id, policy);
    }

    /// Sets the state of a policy.
    pub fn set_state(&mut self, name: &str, state: PolicyState) {
        let Some(policy) = self.all.values_mut().find(|p| *p.name == *name) else { return };
        policy.state = state;
        match state {
            PolicyState::Enabled => self.disabled.remove(&policy.id),
            PolicyState::Disabled | PolicyState::Removed => self.disabled.insert(policy.id),
        };
    }
}

/// Whether an attribute is the one that gives a directory its policy.
pub fn is_policy(xattr: &Xattr) -> bool {
    xattr.namespace == XattrNamespace::System && &*xattr.name == XATTR
}

/// The attribute of a policy name: its length in four bytes, then UTF-8.
pub fn policy_xattr(name: &str) -> Xattr {
    let mut value = (name.len() as u32).to_be_bytes().to_vec();
    value.extend_from_slice(name.as_bytes());
    Xattr { namespace: XattrNamespace::System, name: XATTR.into(), value: value.into() }
}

/// The policy name in an attribute's value.
fn named(value: &[u8]) -> Option<Arc<str>> {
    let (length, name) = value.split_first_chunk::<4>()?;
    let name = name.get(..u32::from_be_bytes(*length) as usize)?;
    Some(String::from_utf8_lossy(name).into())
}

/// The policy name among attributes.
pub fn policy_named_by(xattrs: &[Xattr]) -> Option<Arc<str>> {
    xattrs.iter().find(|xattr| is_policy(xattr)).and_then(|xattr| named(&xattr.value))
}

impl Tree {
    /// The policy name set on a directory itself.
    pub fn own_erasure_coding_name(&self, directory: InodeHandle) -> Option<Arc<str>> {
        named(self.xattr(directory, XattrNamespace::System, XATTR)?.value)
    }

    /// The policy name in effect for what is made in a directory: its own, or that of the nearest one above.
    pub fn erasure_coding_name(&self, store: &Store, directory: InodeHandle) -> Option<Arc<str>> {
        if !self.erasure_coding.on_directories {
            return None;
        }
        let mut current = Some(directory);
        while let Some(inode) = current {
            if store.features(inode).contains(Features::XATTRS)
                && let Some(name) = self.own_erasure_coding_name(inode)
            {
                return Some(name);
            }
            current = store.parent(inode);
        }
        None
    }

    /// The policy in effect at a snapshot for the last inode of a path, given with all above it.
    pub fn erasure_coding_policy_at(
        &self,
        store: &Store,
        path: &[InodeHandle],
        snapshot: SnapshotId,
    ) -> Option<&ErasureCodingPolicy> {
        let (last, above) = path.split_last()?;
        match store.kind(*last) {
            KindTag::Directory if self.erasure_coding.on_directories => {
                match policy_named_by(&self.xattrs_at(*last, snapshot)) {
                    Some(name) => self.erasure_coding.by_name(&name),
                    None => self.erasure_coding_policy_at(store, above, snapshot),
                }
            }
            _ => self.erasure_coding_policy(store, *last),
        }
    }

    /// The policy in effect: of a file its own, of a directory the nearest one. `None` where files are replicated; symlinks have none.
    pub fn erasure_coding_policy(&self, store: &Store, inode: InodeHandle) -> Option<&ErasureCodingPolicy> {
        match store.kind(inode) {
            KindTag::File => match store.own_erasure_coding_policy(inode) {
                REPLICATION => None,
                id => self.erasure_coding.by_id(id),
            },
            KindTag::Directory => self.erasure_coding.by_name(&self.erasure_coding_name(store, inode)?),
            KindTag::Symlink | KindTag::Reference => None,
        }
    }
}
