//! The calls that are measured, read from a table.

use hadoop_proto::hdfs::{BlockProto, ExtendedBlockProto};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use rpc::client::CallError;
use std::sync::LazyLock;

static SCHEMA: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(hadoop_proto::FILE_DESCRIPTOR_SET).expect("the schema's descriptors"));
const TABLE: &str = include_str!("calls.txt");

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    pub method: &'static str,
    /// Whether DataNodes make it.
    pub datanode: bool,
    pub measured: bool,
    /// Whether it is one of the most frequent ones.
    pub frequent: bool,
    /// Only numbers that this divides.
    pub every: u64,
    request: &'static str,
}

/// What an earlier call of the same number has answered.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub file: u64,
    pub block: ExtendedBlockProto,
}

impl Known {
    pub fn reported(&self) -> BlockProto {
        let block = &self.block;
        BlockProto { block_id: block.block_id, gen_stamp: block.generation_stamp, num_bytes: Some(block.num_bytes()) }
    }
}

/// All rows.
pub fn calls() -> Vec<Call> {
    TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(call).collect()
}

fn call(line: &'static str) -> Option<Call> {
    let unmeasured = line.strip_prefix('-');
    let frequent = line.strip_prefix('*');
    let rest = unmeasured.or(frequent).unwrap_or(line);
    let of_datanode = rest.strip_prefix("datanode ");
    let rest = of_datanode.unwrap_or(rest);
    let (head, request) = rest.split_once(' ').unwrap_or((rest, ""));
    let (method, every) = head.split_once('/').unwrap_or((head, "1"));
    let every = every.parse().ok()?;
    let (datanode, measured, frequent) = (of_datanode.is_some(), unmeasured.is_none(), frequent.is_some());
    Some(Call { method, datanode, measured, frequent, every, request })
}

fn descriptor(method: &str) -> Option<MessageDescriptor> {
    let service = SCHEMA.get_service_by_name("hadoop.hdfs.ClientNamenodeProtocol")?;
    service.methods().find(|found| found.name() == method).map(|found| found.input())
}

impl Call {
    /// The encoded request number `n` of a round.
    pub fn body(&self, round: usize, number: u64, known: &Known) -> Result<Vec<u8>, String> {
        let text = filled(self.request, round, number, known)?;
        let of = descriptor(self.method).ok_or_else(|| format!("no method {}", self.method))?;
        let message =
            DynamicMessage::parse_text_format(of, &text).map_err(|e| format!("{} {text}: {e}", self.method))?;
        Ok(hadoop_proto::Message::encode_to_vec(&message))
    }
    /// The row as it is shown.
    pub fn name(&self) -> String {
        let located = if self.request.contains("needLocation: true") { ", located" } else { "" };
        let whole = if self.request.contains("recursive: true") { ", a directory of 100" } else { "" };
        format!("{}{located}{whole}", self.method)
    }
}

/// The request with what its braces stand for.
fn filled(request: &str, round: usize, number: u64, known: &Known) -> Result<String, String> {
    let mut out = String::with_capacity(request.len() + 32);
    let mut rest = request;
    while let Some(at) = rest.find('{') {
        let Some(end) = rest[at..].find(['}', ' ']).map(|end| at + end).filter(|end| rest[*end..].starts_with('}'))
        else {
            // a message in it
            out += &rest[..=at];
            rest = &rest[at + 1..];
            continue;
        };
        out += &rest[..at];
        let word = &rest[at + 1..end];
        let by = |text: &str| text.parse::<u64>().map_err(|e| format!("{word}: {e}"));
        match word {
            "" => out += "{}",
            "r" => out += &round.to_string(),
            "n" => out += &number.to_string(),
            "file" => out += &known.file.to_string(),
            "block" => {
                let ExtendedBlockProto { pool_id, block_id, generation_stamp, num_bytes } = &known.block;
                let length = num_bytes.unwrap_or(0);
                out += &format!(
                    "poolId: \"{pool_id}\" blockId: {block_id} generationStamp: {generation_stamp} numBytes: {length}"
                );
            }
            _ if word.starts_with("n%") => out += &(number % by(&word[2..])?).to_string(),
            _ if word.starts_with("n/") => out += &(number / by(&word[2..])?).to_string(),
            _ => return Err(format!("{{{word}}} stands for nothing")),
        }
        rest = &rest[end + 1..];
    }
    Ok(out + rest)
}

/// What a refusal says, short.
pub fn shown(error: &CallError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_call() {
        let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        let all = calls();
        assert_eq!(all.len(), rows);
        for call in all.iter().filter(|call| !call.datanode) {
            let body = call.body(1, 37, &Known::default());
            assert!(body.is_ok(), "{body:?}");
        }
        assert!(all.iter().filter(|call| call.frequent).count() >= 10);
    }

    #[test]
    fn braces_stand_for_numbers() {
        let text = filled("a: \"{r}-{n}-{n%10}-{n/10}\" b { c: {file} } d {}", 2, 37, &Known::default());
        assert_eq!(text.as_deref(), Ok("a: \"2-37-7-3\" b { c: 0 } d {}"));
    }
}
