//! getErasureCodingPolicies, getErasureCodingPolicy, getErasureCodingCodecs (`FSDirErasureCodingOp`).

use crate::View;
use namespace::Walk;
use namespace::resolve::is_exactly_reserved;
use vocab::erasure_coding::{ErasureCodingPolicy, PolicyState};
use vocab::layout::Feature;
use vocab::{Action, Refusal};

impl View<'_> {
    /// That the layout being written has erasure coding: not so in a rolling upgrade from a version without it.
    ///
    /// # Errors
    /// `UnsupportedAction`.
    pub fn check_erasure_coding(&self, operation: &str) -> Result<(), Refusal> {
        if self.policy.effective_layout.supports(Feature::ErasureCoding) {
            return Ok(());
        }
        Err(Refusal::UnsupportedAction(format!("{operation} not supported.").into()))
    }

    /// The state that clients see of a policy.
    pub fn erasure_coding_state(&self, policy: &ErasureCodingPolicy) -> PolicyState {
        let enabled = self.state.tree.erasure_coding.is_enabled(policy, &self.settings.erasure_coding_default);
        if enabled { PolicyState::Enabled } else { policy.state }
    }
}

/// All policies by name, in the states that clients see.
pub fn policies(view: &View<'_>) -> Vec<ErasureCodingPolicy> {
    let all = view.state.tree.erasure_coding.all().values();
    let mut all: Vec<_> =
        all.map(|policy| ErasureCodingPolicy { state: view.erasure_coding_state(policy), ..policy.clone() }).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// getErasureCodingPolicies.
///
/// # Errors
/// `UnsupportedAction`.
pub fn get_erasure_coding_policies(view: &View<'_>) -> Result<Vec<ErasureCodingPolicy>, Refusal> {
    view.check_erasure_coding("getErasureCodingPolicies")?;
    Ok(policies(view))
}

/// getErasureCodingPolicy: the policy in effect; `None` where files are replicated.
///
/// # Errors
/// Access along the path, and READ of what it names; `FileNotFound`.
pub fn get_erasure_coding_policy(view: &View<'_>, path: &[u8]) -> Result<Option<ErasureCodingPolicy>, Refusal> {
    view.check_erasure_coding("getErasureCodingPolicy")?;
    if is_exactly_reserved(path) {
        return Ok(None);
    }
    let resolved = view.resolve(path, Walk::Read)?;
    view.check_inode(&resolved, Action::READ)?;
    // wherever the name stands: with or without snapshots, in one, below what is not there
    if resolved.name() == b".snapshot" {
        return Ok(None);
    }
    match resolved.last() {
        Some(_) => {
            let (tree, store) = (&view.state.tree, &view.state.store);
            Ok(tree.erasure_coding_policy_at(store, resolved.inodes(), resolved.snapshot()).cloned())
        }
        // as it was asked, unless it was a reserved one
        None if path.starts_with(b"/.reserved") => {
            Err(Refusal::not_found(format!("Path not found: {}", resolved.path_text())))
        }
        None => Err(Refusal::not_found(format!("Path not found: {}", view.path_text(path)))),
    }
}
