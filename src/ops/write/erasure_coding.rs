//! Erasure coding policies: added, removed, enabled, disabled (`ErasureCodingPolicyManager`), set on directories (`FSDirErasureCodingOp`).

use crate::{Operation, Turn, View, Write};
use edit::Record;
use namespace::erasure_coding::policy_xattr;
use namespace::{Resolved, Walk};
use record::{InodeHandle, KindTag};
use std::borrow::Cow;
use std::sync::Arc;
use vocab::erasure_coding::{CODECS, ErasureCodingPolicy, LAST, PolicyState, REPLICATION, REPLICATION_NAME};
use vocab::erasure_coding::{Stripe, UNITS_MAX, Units};
use vocab::{Action, Refusal};

fn illegal(text: String) -> Refusal {
    Refusal::HadoopIllegalArgument(text.into())
}

/// The refusal of a policy that no file could be laid out by.
fn unusable() -> Refusal {
    illegal("Units and cell size of a policy must be positive, cells in steps of 1024".to_owned())
}

/// A policy that an administrator wishes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPolicy {
    /// Codec.
    pub codec: Arc<str>,
    /// Data blocks of a group.
    pub data_units: u32,
    /// Parity blocks of a group.
    pub parity_units: u32,
    /// Bytes of a cell.
    pub cell_size: u32,
    /// Options of the codec.
    pub options: Vec<(Arc<str>, Arc<str>)>,
}

/// Adds policies, each for itself. Answers for each the policy as it is now, or why it was refused.
#[derive(Clone, Debug)]
pub struct AddErasureCodingPolicies {
    /// The policies.
    pub policies: Vec<NewPolicy>,
}

impl Write for AddErasureCodingPolicies {
    type Prepared = ();
    type Reply = Vec<Result<ErasureCodingPolicy, Refusal>>;
    const OPERATION: Operation = Operation::AddErasureCodingPolicies;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()?;
        view.check_erasure_coding("addErasureCodingPolicies")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<Self::Reply, Refusal> {
        turn.view().check_safe_mode(|| "Cannot add erasure coding policy".to_owned())?;
        Ok(self.policies.iter().map(|policy| policy.add(turn)).collect())
    }
}

impl NewPolicy {
    fn add(&self, turn: &mut Turn<'_>) -> Result<ErasureCodingPolicy, Refusal> {
        let view = turn.view();
        let policies = &view.state.tree.erasure_coding;
        let units = Units::from(self.check(&view)?);
        let new = ErasureCodingPolicy::new(REPLICATION, &self.codec, units, self.cell_size, self.options.clone());
        if let Some(known) = policies.same_as(&new) {
            return Ok(known.clone());
        }
        if policies.next_id().is_none() {
            return Err(illegal(format!(
                "Adding erasure coding policy failed because the number of policies stored in the system already reached the threshold, which is {LAST}"
            )));
        }
        turn.log(Record::AddErasureCodingPolicy {
            codec: self.codec.to_string().into(),
            data_units: units.data,
            parity_units: units.parity,
            cell_size: self.cell_size,
            options: new.options.iter().map(|(k, v)| (k.to_string().into(), v.to_string().into())).collect(),
            rpc: turn.view().caller.rpc_ids,
        });
        let added = turn.view().state.tree.erasure_coding.by_name(&new.name).cloned();
        added.ok_or_else(|| Refusal::io("The policy was not added"))
    }

    fn check(&self, view: &View<'_>) -> Result<Stripe, Refusal> {
        let settings = view.settings;
        if !settings.erasure_coding_user_defined {
            return Err(illegal("Addition of user defined erasure coding policy is disabled.".to_owned()));
        }
        if !CODECS.iter().any(|(codec, _)| *codec == &*self.codec) {
            return Err(illegal(format!("Codec name {} is not supported", self.codec)));
        }
        if self.data_units.saturating_add(self.parity_units) > UNITS_MAX {
            return Err(illegal(format!(
                "Number of data and parity blocks in an EC group {} should not exceed maximum {UNITS_MAX}",
                self.data_units.saturating_add(self.parity_units)
            )));
        }
        if self.cell_size > settings.erasure_coding_cell_max {
            return Err(illegal(format!(
                "Cell size {} should not exceed maximum {} bytes",
                self.cell_size, settings.erasure_coding_cell_max
            )));
        }
        let unit = |n: u32| u8::try_from(n).ok().filter(|n| *n > 0);
        match (unit(self.data_units), unit(self.parity_units)) {
            (Some(data_units), Some(parity_units)) if self.cell_size > 0 && self.cell_size.is_multiple_of(1024) => {
                Ok(Stripe { data_units, parity_units, cell_size: self.cell_size })
            }
            _ => Err(unusable()),
        }
    }
}

impl View<'_> {
    fn known_policy(&self, name: &str) -> Result<&ErasureCodingPolicy, Refusal> {
        let found = self.state.tree.erasure_coding.by_name(name);
        found.ok_or_else(|| illegal(format!("The policy name {name} does not exist")))
    }

    /// The policy of that name, if directories and files may get it. `replication` gives `None`.
    ///
    /// # Errors
    /// `HadoopIllegalArgument`, with the names of those that may be given.
    pub fn enabled_policy(&self, name: &str) -> Result<Option<&ErasureCodingPolicy>, Refusal> {
        let policies = &self.state.tree.erasure_coding;
        let enabled =
            |p: &&ErasureCodingPolicy| p.stripe.is_usable() && self.erasure_coding_state(p) == PolicyState::Enabled;
        if let Some(found) = policies.by_name(name).filter(enabled) {
            return Ok(Some(found));
        }
        if name.eq_ignore_ascii_case(REPLICATION_NAME) {
            return Ok(None);
        }
        let mut names: Vec<&str> = policies.all().values().filter(enabled).map(|p| &*p.name).collect();
        names.sort_unstable();
        let names = names.join(", ");
        Err(illegal(format!(
            "Policy '{name}' does not match any enabled erasure coding policies: [{names}]. An erasure coding policy can be enabled by enableErasureCodingPolicy API."
        )))
    }
}

/// Takes a policy that was added out of use for good; what has it keeps it.
#[derive(Clone, Debug)]
pub struct RemoveErasureCodingPolicy {
    /// Name.
    pub name: Arc<str>,
}

impl Write for RemoveErasureCodingPolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::RemoveErasureCodingPolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()?;
        view.check_erasure_coding("removeErasureCodingPolicy")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, name) = (turn.view(), &self.name);
        view.check_safe_mode(|| format!("Cannot remove erasure coding policy {name}"))?;
        if view.known_policy(name)?.is_built_in() {
            return Err(illegal(format!("System erasure coding policy {name} cannot be removed")));
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::RemoveErasureCodingPolicy { name: name.to_string().into(), rpc });
        Ok(())
    }
}

/// Lets directories and files get a policy.
#[derive(Clone, Debug)]
pub struct EnableErasureCodingPolicy {
    /// Name.
    pub name: Arc<str>,
}

impl Write for EnableErasureCodingPolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::EnableErasureCodingPolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()?;
        view.check_erasure_coding("enableErasureCodingPolicy")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, name) = (turn.view(), &self.name);
        view.check_safe_mode(|| format!("Cannot enable erasure coding policy {name}"))?;
        // the default policy counts as enabled, but only a record makes it last
        let known = view.known_policy(name)?;
        if known.state == PolicyState::Enabled {
            return Ok(());
        }
        if !known.stripe.is_usable() {
            return Err(unusable());
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::EnableErasureCodingPolicy { name: name.to_string().into(), rpc });
        Ok(())
    }
}

/// Lets nothing new get a policy.
#[derive(Clone, Debug)]
pub struct DisableErasureCodingPolicy {
    /// Name.
    pub name: Arc<str>,
}

impl Write for DisableErasureCodingPolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::DisableErasureCodingPolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_superuser()?;
        view.check_erasure_coding("disableErasureCodingPolicy")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let (view, name) = (turn.view(), &self.name);
        view.check_safe_mode(|| format!("Cannot disable erasure coding policy {name}"))?;
        if view.erasure_coding_state(view.known_policy(name)?) != PolicyState::Enabled {
            return Ok(());
        }
        let rpc = view.caller.rpc_ids;
        turn.log(Record::DisableErasureCodingPolicy { name: name.to_string().into(), rpc });
        Ok(())
    }
}

/// The directory that a policy is set on or taken from.
fn directory(view: &View<'_>, resolved: &Resolved<'_>, refusal: &str) -> Result<InodeHandle, Refusal> {
    view.check_inode(resolved, Action::WRITE)?;
    let Some(inode) = resolved.last() else {
        return Err(Refusal::not_found(format!("Path not found: {}", resolved.path_text())));
    };
    match view.state.store.kind(inode) {
        KindTag::Directory => Ok(inode),
        _ => Err(Refusal::io(format!("{refusal} {}", resolved.path_text()))),
    }
}

/// Gives a directory a policy, for files made in it from now on.
#[derive(Clone, Debug)]
pub struct SetErasureCodingPolicy {
    /// Path.
    pub path: Vec<u8>,
    /// Name; `None` for the default one.
    pub policy: Option<Arc<str>>,
}

impl Write for SetErasureCodingPolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::SetErasureCodingPolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_erasure_coding("setErasureCodingPolicy")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot set erasure coding policy on {}", view.path_text(&self.path)))?;
        let name = self.policy.as_ref().unwrap_or(&view.settings.erasure_coding_default);
        let name = view.enabled_policy(name)?.map_or_else(|| REPLICATION_NAME.into(), |policy| policy.name.clone());
        let resolved = view.resolve(&self.path, Walk::WriteLink)?;
        directory(&view, &resolved, "Attempt to set an erasure coding policy for a file")?;
        let (path, rpc) = (Cow::Owned(resolved.path()), view.caller.rpc_ids);
        turn.log(Record::SetXattr { path, xattrs: vec![policy_xattr(&name)], given: true, rpc });
        Ok(())
    }
}

/// Takes its own policy from a directory.
#[derive(Clone, Debug)]
pub struct UnsetErasureCodingPolicy {
    /// Path.
    pub path: Vec<u8>,
}

impl Write for UnsetErasureCodingPolicy {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::UnsetErasureCodingPolicy;

    fn prepare(&self, view: &View<'_>) -> Result<(), Refusal> {
        view.check_erasure_coding("unsetErasureCodingPolicy")
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        if turn.cached().is_some() {
            return Ok(());
        }
        let view = turn.view();
        view.check_safe_mode(|| format!("Cannot unset erasure coding policy on {}", view.path_text(&self.path)))?;
        let resolved = view.resolve(&self.path, Walk::WriteLink)?;
        let inode = directory(&view, &resolved, "Cannot unset an erasure coding policy on a file")?;
        let all = view.state.tree.xattrs(inode);
        let Some(xattr) = all.iter().find(|x| namespace::erasure_coding::is_policy(x)).cloned() else {
            let text = format!("No erasure coding policy explicitly set on {}", resolved.path_text());
            return Err(Refusal::NoErasureCodingPolicy(text.into()));
        };
        let (path, rpc) = (Cow::Owned(resolved.path()), view.caller.rpc_ids);
        turn.log(Record::RemoveXattr { path, xattrs: vec![xattr], rpc });
        Ok(())
    }
}
