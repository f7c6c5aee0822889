//! Files being written, by those who write them and by others.

use super::generate::{CLIENTS, Call, Generator, USERS, number, quoted};
use super::model::{Block, Entry};
use super::pair::Pair;
use prost_reflect::DynamicMessage;

pub(super) const BLOCK_BYTES: u64 = 1 << 20;

impl Generator {
    pub(super) fn create(&mut self, user: &'static str) -> Call {
        let path = if self.one_in(4) { self.path() } else { self.new_path() };
        let client = self.pick(&CLIENTS);
        let flags = self.pick(&[1, 1, 1, 3, 3, 2, 0, 17, 129, 65]);
        // over a striped file Hadoop takes any factor (see the scenario a_striped_file_gives_way_to_one_of_no_replica)
        let replication = if flags & 2 == 0 { self.pick(&[3, 3, 3, 3, 3, 3, 0, 513]) } else { 3 };
        let size = self.pick(&[BLOCK_BYTES, BLOCK_BYTES, BLOCK_BYTES, 2 * BLOCK_BYTES, 2 * BLOCK_BYTES, 100]);
        let mode = self.pick(&[0o644, 0o644, 0o600, 0o777]);
        let mut request = format!(
            "src: {} masked {{ perm: {mode} }} clientName: \"{client}\" createFlag: {flags} createParent: {} \
             replication: {replication} blockSize: {size}",
            quoted(&path),
            !self.one_in(4)
        );
        if self.one_in(3) {
            request += " unmasked { perm: 438 }";
        }
        if self.one_in(12) {
            request += &format!(" storagePolicy: \"{}\"", self.pick(&["COLD", "HOT", "ALL_SSD", "WARM"]));
        }
        if self.one_in(15) {
            request += &format!(" ecPolicyName: \"{}\"", self.pick(&["XOR-2-1-1024k", "RS-3-2-1024k", "x"]));
        }
        Call { client, ..self.call(user, "create", request, &[&path]) }
    }

    /// A block as a request has it.
    fn block(&self, block: &Block, length: u64) -> String {
        format!("poolId: \"§P§\" blockId: §B{}§ generationStamp: §G{}§ numBytes: {length}", block.id, block.stamp)
    }

    /// What the writer of an open file does, or somebody who would like to.
    pub(super) fn writer(&mut self, pair: &mut Pair) {
        let Some((path, entry)) = self.find(|entry| entry.writer.is_some()) else {
            let call = self.create("hdfs");
            return self.run(pair, call);
        };
        let client = entry.writer.clone().unwrap_or_default();
        let client = if self.one_in(25) {
            self.pick(&CLIENTS)
        } else {
            CLIENTS.iter().find(|c| **c == client).copied().unwrap_or("c1")
        };
        let user = if self.one_in(20) { self.pick(&USERS) } else { "hdfs" };
        let id = if self.one_in(15) { String::new() } else { format!(" fileId: §F{}§", entry.id) };
        let src = quoted(&self.or_odd(&path));
        let last = entry.blocks.last().cloned();
        let previous = last.as_ref().map(|block| self.block(block, block.length));
        match self.dice.below(19) {
            0..=4 => {
                let previous = previous.filter(|_| !self.one_in(20));
                let previous = previous.map(|b| format!(" previous {{ {b} }}")).unwrap_or_default();
                let request = format!("src: {src} clientName: \"{client}\"{previous}{id}");
                if let Ok(answer) = pair.ask(user, "addBlock", &request) {
                    self.placed(pair, &path, &answer);
                }
            }
            5..=8 => {
                let last =
                    previous.filter(|_| !self.one_in(20)).map(|b| format!(" last {{ {b} }}")).unwrap_or_default();
                let request = format!("src: {src} clientName: \"{client}\"{last}{id}");
                let call = Call { client, ..self.call(user, "complete", request, &[&path]) };
                self.run(pair, call);
            }
            9 => {
                let length = self.dice.below(BLOCK_BYTES as usize) as i64 - 1;
                let request = format!("src: {src} client: \"{client}\" lastBlockLength: {length}{id}");
                let call = self.call(user, "fsync", request, &[&path]);
                self.run(pair, call);
            }
            10 | 11 => {
                let Some(block) = last else { return };
                let request = format!("b {{ {} }} src: {src} holder: \"{client}\"{id}", self.block(&block, 0));
                // groups are not given back
                if pair.ask(user, "abandonBlock", &request).is_ok() && (block.id as i64) > 0 {
                    self.change(&path, |entry| _ = entry.blocks.pop());
                    self.go_on(pair, &path);
                }
            }
            12..=14 => self.pipeline(pair, (&path, &entry), client, user),
            15 | 16 => {
                let Some(block) = last else { return };
                let existing = format!("existings {{ {} }} existingStorageUuids: \"DS-1-0\"", node_info(1));
                let more = self.dice.below(3);
                let request = format!(
                    "src: {src} blk {{ {} }} {existing} numAdditionalNodes: {more} clientName: \"{client}\"{id}",
                    self.block(&block, block.length)
                );
                let _ = pair.ask(user, "getAdditionalDatanode", &request);
            }
            _ => {
                let namespaces = if self.one_in(12) { " namespaces: \"ns\"" } else { "" };
                let call = self.call(user, "renewLease", format!("clientName: \"{client}\"{namespaces}"), &[]);
                self.run(pair, call);
            }
        }
    }

    /// An open file gets a block, or is closed: Java counts the space of open files by whether their last block is finished, which no log
    /// tells; ours counts another block as soon as a file is open, and that is not compared here.
    pub(super) fn go_on(&mut self, pair: &mut Pair, path: &str) {
        let Some(entry) = self.model.tree.get(path).cloned() else { return };
        let client = entry.writer.unwrap_or_default();
        let client = CLIENTS.iter().find(|c| **c == client).copied().unwrap_or("c1");
        let previous = entry.blocks.last().map(|block| self.block(block, block.length)).unwrap_or_default();
        let part = |name: &str| if previous.is_empty() { String::new() } else { format!(" {name} {{ {previous} }}") };
        let request = format!("src: {} clientName: \"{client}\"", quoted(path));
        if let Ok(answer) = pair.ask("hdfs", "addBlock", &format!("{request}{}", part("previous"))) {
            return self.placed(pair, path, &answer);
        }
        let request = format!("{request}{}", part("last"));
        let call = Call { client, ..self.call("hdfs", "complete", request, &[path]) };
        self.run(pair, call);
    }

    /// A block was given: mostly it is written to all DataNodes.
    fn placed(&mut self, pair: &mut Pair, path: &str, answer: &DynamicMessage) {
        let get = |name: &str| number(answer, &["block", "b", name]);
        let (Some(id), Some(stamp)) = (get("blockId"), get("generationStamp")) else { return };
        let length = if self.one_in(3) { BLOCK_BYTES } else { 1 + self.dice.below(BLOCK_BYTES as usize - 1) as u64 };
        pair.receive_placed(length);
        let block = Block { id, stamp, length };
        self.change(path, |entry| match entry.blocks.last() {
            Some(last) if last.id == id => {}
            _ => entry.blocks.push(block),
        });
    }

    fn pipeline(&mut self, pair: &mut Pair, (path, entry): (&str, &Entry), client: &str, user: &'static str) {
        let Some(block) = entry.blocks.last().cloned() else { return };
        let request = format!("block {{ {} }} clientName: \"{client}\"", self.block(&block, block.length));
        let Ok(answer) = pair.ask(user, "updateBlockForPipeline", &request) else { return };
        let Some(stamp) = number(&answer, &["block", "b", "generationStamp"]) else { return };
        if self.one_in(4) {
            return; // the client dies
        }
        let new = Block { stamp, ..block.clone() };
        let nodes: String =
            (1..=3).map(|n| format!(" newNodes {{ {} }} storageIDs: \"DS-{n}-0\"", node_id(n))).collect();
        let request = format!(
            "clientName: \"{client}\" oldBlock {{ {} }} newBlock {{ {} }}{nodes}",
            self.block(&block, block.length),
            self.block(&new, block.length)
        );
        if pair.ask(user, "updatePipeline", &request).is_ok() {
            pair.receive(new.id, new.stamp, new.length);
            self.change(path, |entry| *entry.blocks.last_mut().expect("a block") = new);
        }
    }
}

pub(super) fn node_id(n: u32) -> String {
    format!(
        "ipAddr: \"127.0.0.1\" hostName: \"localhost\" datanodeUuid: \"dn-{n}\" xferPort: {} infoPort: {} ipcPort: {}",
        20_000 + n,
        21_000 + n,
        22_000 + n
    )
}

pub(super) fn node_info(n: u32) -> String {
    format!("id {{ {} }}", node_id(n))
}
