//! Blocks asked for by their ids.

use super::Check;
use blocks::AdminState;
use ops::read::fsck::{BlockCheck, Replica, check_block_of_id};
use vocab::BlockId;

impl Check {
    /// Lines about each of the blocks, whose names stand with blanks between them.
    pub(super) fn blocks_by_id(&mut self, names: &str) {
        let begin = format!("{} at {}", self.started(), self.date());
        self.out.line(&begin);
        // as Java splits: what is empty at the end is no word
        for name in names.trim_end_matches(' ').split(' ') {
            if !name.contains("blk_") {
                self.out.line(&format!("Incorrect blockId format: {name}"));
                continue;
            }
            self.out.put("\n");
            // a name that is none of a block stands for block 0, as in Java
            let id = name.strip_prefix("blk_").and_then(|number| number.parse().ok()).unwrap_or(0);
            let found = self.shared.engine.view("fsck", &self.caller, |view| check_block_of_id(view, BlockId(id)));
            match found {
                Some((check, path)) => self.block(name, &check, &String::from_utf8_lossy(&path)),
                None => self.out.line(&format!("Block {name} does not exist")),
            }
        }
    }

    fn block(&mut self, name: &str, check: &BlockCheck, path: &str) {
        let count = &check.count;
        self.out.line(&format!("Block Id: {name}"));
        self.out.line(&format!("Block belongs to: {path}"));
        let mut numbers = vec![
            ("Expected", check.wanted),
            ("live", count.live),
            ("excess", count.excess),
            ("stale", count.stale),
            ("decommissioned", count.decommissioned),
            ("decommissioning", count.decommissioning),
        ];
        if self.asked.maintenance {
            numbers.push(("entering maintenance", count.maintenance_for_read));
            numbers.push(("in maintenance", count.maintenance_not_for_read));
        }
        numbers.push(("corrupted", count.corrupt));
        if check.striped {
            numbers.push(("redundant", 0));
        }
        for (what, number) in numbers {
            self.out.line(&format!("No. of {what} Replica: {number}"));
        }
        for replica in check.replicas.iter().rev() {
            let line = self.replica(replica);
            self.out.line(&line);
        }
    }

    fn replica(&self, replica: &Replica) -> String {
        let standing = match (replica.corrupt, replica.admin) {
            (Some(reason), _) => format!("is CORRUPT\t ReasonCode: {}", reason.name()),
            (None, AdminState::Decommissioned) => "is DECOMMISSIONED".to_owned(),
            (None, AdminState::Decommissioning) => "is DECOMMISSIONING".to_owned(),
            (None, AdminState::EnteringMaintenance) if self.asked.maintenance => "is ENTERING MAINTENANCE".to_owned(),
            (None, AdminState::InMaintenance) if self.asked.maintenance => "is IN MAINTENANCE".to_owned(),
            _ if replica.stale_node => "is STALE".to_owned(),
            _ if replica.excess => "is EXCESS".to_owned(),
            _ => "is HEALTHY".to_owned(),
        };
        format!("Block replica on datanode/rack: {}{} {standing}", replica.host, replica.rack)
    }
}
