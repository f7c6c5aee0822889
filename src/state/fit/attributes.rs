//! Records that change attributes of one inode, and records of tables and counters.

use super::{Mismatch, Paths, Plan, Planned, Unfit, text};
use crate::State;
use edit::Record;
use edit::rules::Rule;
use record::{InodeHandle, KindTag};
use vocab::BlockId;
use vocab::erasure_coding::{ErasureCodingPolicy, PolicyState, REPLICATION, Units};

impl State {
    pub(super) fn plan_attributes(&self, record: &Record<'_>, paths: &mut Paths<'_>) -> Planned {
        match record {
            Record::SetReplication { path, .. } => match self.place(path, paths)?.last {
                None => Err(Unfit::NoOp(Rule::SetReplicationMissing)),
                Some(file) if self.tree.file_shape(&self.store, file).is_some_and(|s| s.stripe.is_none()) => {
                    Ok(Plan::Inode(file))
                }
                Some(_) => Err(Unfit::NoOp(Rule::SetReplicationDirectory)),
            },
            Record::SetOwner { path, user: None, group: None } => {
                self.existing(path, paths).and(Err(Unfit::NoOp(Rule::SetOwnerUnchanged)))
            }
            Record::Times { path, mtime, atime } if mtime.0 < 0 && atime.0 < 0 => {
                self.existing(path, paths).and(Err(Unfit::NoOp(Rule::TimesUnchanged)))
            }
            Record::SetPermissions { path, .. }
            | Record::SetOwner { path, .. }
            | Record::Times { path, .. }
            | Record::SetAcl { path, .. }
            | Record::SetXattr { path, .. }
            | Record::SetStoragePolicy { path, .. } => self.existing(path, paths).map(Plan::Inode),
            Record::SetNamespaceQuota { path, .. }
            | Record::ClearNamespaceQuota { path }
            | Record::SetQuota { path, .. }
            | Record::SetQuotaByKind { path, .. } => self.directory(path, paths).map(Plan::Inode),
            Record::RemoveXattr { path, xattrs, .. } => {
                let inode = self.existing(path, paths)?;
                let any = xattrs.iter().any(|x| self.tree.xattr(inode, x.namespace, &x.name).is_some());
                if any { Ok(Plan::Inode(inode)) } else { Err(Unfit::NoOp(Rule::RemoveXattrAbsent)) }
            }
            other => self.plan_tables(other),
        }
    }

    fn directory(&self, path: &[u8], paths: &mut Paths<'_>) -> Result<InodeHandle, Unfit> {
        let inode = self.existing(path, paths)?;
        match self.store.kind(inode) {
            KindTag::Directory => Ok(inode),
            _ => Err(Mismatch::new(format!("Path is not a directory: {}", text(path))).into()),
        }
    }

    fn plan_tables(&self, record: &Record<'_>) -> Planned {
        match record {
            Record::SetGenstampV1 { .. } | Record::SetGenstampV2 { .. } | Record::UpdateMasterKey { .. } => {
                Ok(Plan::Tables)
            }
            Record::AllocateBlockId { id } => {
                let last = if BlockId(*id).is_striped() { self.sequences.block_group } else { self.sequences.block };
                if *id < last.0 {
                    let text = format!("Cannot skip to less than the current value (={last}), where newValue={id}");
                    return Err(Mismatch::new(text).into());
                }
                Ok(Plan::Tables)
            }
            Record::GetDelegationToken { token, .. } => {
                if self.tokens.tokens.contains_key(&token.sequence_number) {
                    return Err(Mismatch::new(format!(
                        "Same delegation token being added twice; sequence number {}",
                        token.sequence_number
                    ))
                    .into());
                }
                match self.tokens.keys.contains_key(&token.master_key_id) {
                    true => Ok(Plan::Tables),
                    false => Err(Unfit::NoOp(Rule::TokenWithoutKey)),
                }
            }
            Record::RenewDelegationToken { token, .. } => {
                self.known_token(token.sequence_number, Rule::RenewTokenMissing)
            }
            Record::CancelDelegationToken { token } => {
                self.known_token(token.sequence_number, Rule::CancelTokenMissing)
            }
            Record::RollingUpgradeStart { .. } if self.sequences.rolling_upgrade_start.is_some() => {
                Err(Mismatch::new("Failed to start a rolling upgrade since one is already in progress.").into())
            }
            Record::RollingUpgradeStart { .. } => Ok(Plan::Tables),
            Record::RollingUpgradeFinalize { .. } if self.sequences.rolling_upgrade_start.is_none() => {
                Err(Unfit::NoOp(Rule::RollingUpgradeFinalizeNone))
            }
            Record::RollingUpgradeFinalize { .. } => Ok(Plan::Tables),
            Record::AddCacheDirective { .. }
            | Record::RemoveCacheDirective { .. }
            | Record::ModifyCacheDirective { .. }
            | Record::AddCachePool { .. }
            | Record::ModifyCachePool { .. }
            | Record::RemoveCachePool { .. } => self.plan_caches(record),
            other => self.plan_erasure_coding(other),
        }
    }

    fn plan_erasure_coding(&self, record: &Record<'_>) -> Planned {
        let policies = &self.tree.erasure_coding;
        let known = |name: &str| {
            let text = || format!("The policy name {name} does not exist");
            policies.by_name(name).ok_or_else(|| Mismatch::new(text()))
        };
        match record {
            Record::AddErasureCodingPolicy { .. } => match added_policy(record) {
                Some(new) if !new.units.is_legal() || new.stripe.cell_size.cast_signed() <= 0 => {
                    Err(Mismatch::new(format!("Erasure coding policy {} has no legal units and cells", new.name))
                        .into())
                }
                Some(new) if policies.same_as(&new).is_some() => Err(Unfit::NoOp(Rule::ErasureCodingPolicyExists)),
                Some(_) if policies.next_id().is_some() => Ok(Plan::Tables),
                _ => Err(Mismatch::new("There is no number left for an erasure coding policy").into()),
            },
            Record::EnableErasureCodingPolicy { name, .. } => match known(name)?.state {
                PolicyState::Enabled => Err(Unfit::NoOp(Rule::ErasureCodingPolicyUnchanged)),
                _ => Ok(Plan::Tables),
            },
            // a built-in one may be enabled by setting, which no record says
            Record::DisableErasureCodingPolicy { name, .. } => match known(name)? {
                policy if policy.is_built_in() || policy.state == PolicyState::Enabled => Ok(Plan::Tables),
                _ => Err(Unfit::NoOp(Rule::ErasureCodingPolicyUnchanged)),
            },
            Record::RemoveErasureCodingPolicy { name, .. } => match known(name)? {
                policy if policy.is_built_in() => {
                    Err(Mismatch::new(format!("System erasure coding policy {name} cannot be removed")).into())
                }
                _ => Ok(Plan::Tables),
            },
            other => Err(Mismatch::new(format!("A record that nothing handles: {other:?}")).into()),
        }
    }

    fn known_token(&self, sequence: i32, rule: Rule) -> Planned {
        if self.tokens.tokens.contains_key(&sequence) { Ok(Plan::Tables) } else { Err(Unfit::NoOp(rule)) }
    }
}

/// The policy that a record adds, with no number yet.
pub(crate) fn added_policy(record: &Record<'_>) -> Option<ErasureCodingPolicy> {
    let Record::AddErasureCodingPolicy { codec, data_units, parity_units, cell_size, options, .. } = record else {
        return None;
    };
    let units = Units { data: *data_units, parity: *parity_units };
    let options = options.iter().map(|(key, value)| ((&**key).into(), (&**value).into())).collect();
    Some(ErasureCodingPolicy::new(REPLICATION, codec, units, *cell_size, options))
}
