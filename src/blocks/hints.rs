//! Where an earlier process knew replicas to be: for readers, until a volume has told what it holds. Nobody else sees them: neither redundancy nor
//! safe mode, deletion or the balancer.

use crate::registry::Registry;
use crate::{Blocks, Target};
use hashbrown::HashMap;
use mem::persist::{Malformed, RestReader, RestWriter};
use record::{BlockHandle, ReplicaFlags, StorageNumber, Store};
use std::sync::Arc;

/// Volumes of an earlier process by the numbers that it gave them: uuid of the DataNode and id of the storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hints(HashMap<StorageNumber, (Arc<str>, Arc<str>)>);

impl Hints {
    /// A volume has told all it holds: what is remembered of it says nothing more.
    pub(crate) fn forget(&mut self, uuid: &str, id: &str) {
        self.0.retain(|_, (of, volume)| **of != *uuid || **volume != *id);
    }
}

impl Blocks {
    /// Writes down which volumes storage numbers stand for: those of this process, and those of an earlier one that have not reported yet.
    pub fn write_hints(&self, rest: &mut RestWriter) {
        let registry: &Registry = &self.registry;
        let named = |s: StorageNumber, uuid: &str, id: &str, rest: &mut RestWriter| {
            rest.u32(s.0);
            rest.text(uuid);
            rest.text(id);
        };
        let volumes = || registry.volumes().filter_map(|v| Some((v, registry.node(v.node)?)));
        rest.length(self.hints.0.len() + volumes().count());
        self.hints.0.iter().for_each(|(s, (uuid, id))| named(*s, uuid, id, rest));
        volumes().for_each(|(v, node)| named(v.number, &node.id.uuid, &v.id, rest));
    }
    /// Remembers what [`Blocks::write_hints`] wrote.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn restore_hints(&mut self, rest: &mut RestReader<'_>) -> Result<(), Malformed> {
        for _ in 0..rest.length(20)? {
            let (s, uuid, id) = (StorageNumber(rest.u32()?), rest.text()?.into(), rest.text()?.into());
            self.hints.0.insert(s, (uuid, id));
        }
        Ok(())
    }

    /// Where a block of which no replica was reported yet may be read: on volumes of registered DataNodes that have not told yet what they hold.
    pub(crate) fn hinted(&self, store: &Store, b: BlockHandle) -> Vec<(Target, u8)> {
        if self.hints.0.is_empty() {
            return Vec::new();
        }
        let hints = store.hints(b).into_iter().filter(|r| !r.flags.contains(ReplicaFlags::CORRUPT));
        let place = |r: record::Replica| {
            let (uuid, id) = self.hints.0.get(&r.storage)?;
            let node = self.registry.by_uuid(uuid)?;
            let registered = self.registry.node(node).is_some_and(|node| node.registered && node.alive);
            let volume = self.registry.find_volume(node, id).filter(|_| registered)?;
            Some((self.target(volume).filter(|_| self.reports_count(volume))?, r.index))
        };
        hints.filter_map(place).collect()
    }
}
