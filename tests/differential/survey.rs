//! All that is there, compared, and taken for the model.

use super::generate::{Generator, listed, number, quoted};
use super::model::{Block, Entry};
use super::pair::Pair;
use super::side::Answer;
use prost_reflect::{DynamicMessage, Value};
use std::collections::HashMap;

impl Generator {
    /// Compares all that is there, and takes it for the model.
    pub fn survey(&mut self, pair: &mut Pair) {
        let old = std::mem::take(&mut self.model);
        let (old_roots, old_snapshots) = (old.roots, old.snapshots);
        let writers: HashMap<u64, String> =
            old.tree.into_values().filter_map(|entry| Some((entry.id, entry.writer?))).collect();
        let mut open = vec!["/".to_owned()];
        while let Some(path) = open.pop() {
            self.survey_directory(pair, &path, &writers, &mut open);
        }
        (self.model.roots, self.model.snapshots) = (old_roots, old_snapshots);
        self.survey_snapshots(pair);
        for (method, request) in [
            ("getFsStats", ""),
            ("getFsReplicatedBlockStats", ""),
            ("getFsECBlockGroupStats", ""),
            ("listCorruptFileBlocks", "path: \"/\""),
            ("listCachePools", "prevPoolName: \"\""),
            ("listCacheDirectives", "prevId: 0 filter { }"),
            ("getErasureCodingPolicies", ""),
            ("listOpenFiles", "id: 0 types: ALL_OPEN_FILES path: \"/\""),
        ] {
            let _ = pair.ask("hdfs", method, request);
        }
    }

    fn survey_directory(
        &mut self,
        pair: &mut Pair,
        path: &str,
        writers: &HashMap<u64, String>,
        open: &mut Vec<String>,
    ) {
        let request = format!("src: {} startAfter: \"\" needLocation: true", quoted(path));
        let Ok(answer) = pair.ask("hdfs", "getListing", &request) else { return };
        for entry in listed(&answer) {
            let get = |name: &str| entry.get_field_by_name(name).map(|value| value.into_owned());
            let Some(Value::Bytes(name)) = get("path") else { continue };
            let Ok(name) = std::str::from_utf8(&name) else { continue };
            let full = format!("{}/{name}", path.trim_end_matches('/'));
            let id = number(&entry, &["fileId"]).unwrap_or(0);
            let directory = matches!(get("fileType"), Some(Value::EnumNumber(1)));
            let blocks = blocks_of(&entry);
            let writing = matches!(get("locations"), Some(Value::Message(m)) if m.get_field_by_name("underConstruction").is_some_and(|v| v.as_bool() == Some(true)));
            let writer = writing.then(|| writers.get(&id).cloned().unwrap_or_else(|| "c1".to_owned()));
            self.model.put(&full, Entry { directory, id, writer, blocks });
            let src = quoted(&full);
            for (method, key) in [
                ("getAclStatus", "src"),
                ("getXAttrs", "src"),
                ("getContentSummary", "path"),
                ("getQuotaUsage", "path"),
            ] {
                if directory || !method.starts_with("getQuota") {
                    let _: Answer = pair.ask("hdfs", method, &format!("{key}: {src}"));
                }
            }
            if directory {
                open.push(full);
            }
        }
    }
}

fn blocks_of(entry: &DynamicMessage) -> Vec<Block> {
    let blocks = entry.get_field_by_name("locations");
    let blocks =
        blocks.as_ref().and_then(|value| value.as_message()?.get_field_by_name("blocks").map(|v| v.into_owned()));
    let blocks = blocks.as_ref().and_then(|blocks| blocks.as_list()).unwrap_or_default();
    let block = |value: &Value| {
        let message = value.as_message()?;
        let get = |name: &str| number(message, &["b", name]);
        Some(Block { id: get("blockId")?, stamp: get("generationStamp")?, length: get("numBytes")? })
    };
    blocks.iter().filter_map(block).collect()
}
