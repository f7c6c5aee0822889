//! Block lists against what Hadoop's own encoder and decoders make of them.

use hadoop_proto::datanode::StorageBlockReportProto;
use hadoop_proto::hdfs::DatanodeStorageProto;
use hadoop_proto::packed_blocks::{
    BlockListError, BufferReplicas, LongReplicas, PIECE_BYTES, ReplicaState, ReportedReplica, pieces, put_replica,
    to_longs,
};
use hadoop_proto::view::datanode::StorageBlockReport;
use hadoop_proto::wire::WireError;
use proptest::prelude::*;
use prost::Message;

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

fn state(name: &str) -> ReplicaState {
    match name {
        "FINALIZED" => ReplicaState::Finalized,
        "RBW" => ReplicaState::Rbw,
        "RWR" => ReplicaState::Rwr,
        "RUR" => ReplicaState::Rur,
        "TEMPORARY" => ReplicaState::Temporary,
        other => panic!("state {other}"),
    }
}

fn replica(columns: &[&str]) -> ReportedReplica {
    let [id, length, stamp, name] = columns else { panic!("{columns:?}") };
    let number = |text: &str| text.parse::<i64>().expect("number");
    ReportedReplica {
        block_id: number(id),
        length: number(length) as u64,
        generation_stamp: number(stamp),
        state: state(name),
    }
}

fn from_buffers<'a>(
    count: u64,
    buffers: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<ReportedReplica>, BlockListError> {
    BufferReplicas::new(count, buffers).collect()
}

fn from_longs(longs: &[u64]) -> Result<Vec<ReportedReplica>, BlockListError> {
    LongReplicas::new(longs.iter().map(|&l| Ok(l))).collect()
}

/// A buffer keeps 48 bits of a length.
fn as_read(replicas: &[ReportedReplica]) -> Vec<ReportedReplica> {
    replicas.iter().map(|r| ReportedReplica { length: r.length & 0xFFFF_FFFF_FFFF, ..*r }).collect()
}

#[test]
fn lists_are_written_and_read_like_hadoop_does() {
    let (mut replicas, mut cases) = (Vec::new(), 0);
    for line in include_str!("golden/block_lists.tsv").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        match columns[0] {
            "case" => replicas.clear(),
            "replica" => replicas.push(replica(&columns[1..])),
            "count" => assert_eq!(columns[1].parse(), Ok(replicas.len())),
            "buffer" => {
                let mut buffer = Vec::new();
                replicas.iter().for_each(|r| put_replica(&mut buffer, r));
                assert_eq!(buffer, unhex(columns[1]));
                assert_eq!(from_buffers(replicas.len() as u64, [&buffer[..]].into_iter()), Ok(as_read(&replicas)));
            }
            "longs" => {
                let longs: Vec<u64> = columns[1..].iter().map(|l| l.parse::<i64>().expect("long") as u64).collect();
                assert_eq!(to_longs(&as_read(&replicas)), longs);
                let mut sorted = as_read(&replicas);
                sorted.sort_by_key(|r| r.state != ReplicaState::Finalized);
                assert_eq!(from_longs(&longs), Ok(sorted));
                cases += 1;
            }
            _ => {}
        }
    }
    assert_eq!(cases, 6);
}

#[test]
fn good_and_bad_lists_end_where_hadoop_ends() {
    let mut cases = 0;
    for line in include_str!("golden/block_lists.tsv").lines().filter(|l| l.starts_with("decode\t")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, form, count, content, end, expected @ ..] = &columns[..] else { panic!("{line}") };
        let ours: Vec<Result<ReportedReplica, BlockListError>> = if *form == "buffers" {
            let buffers: Vec<Vec<u8>> = content.split(',').map(unhex).collect();
            let count = count.parse::<i64>().expect("count") as u64;
            BufferReplicas::new(count, buffers.iter().map(Vec::as_slice)).collect()
        } else {
            let longs = content.split(',').filter(|l| !l.is_empty());
            LongReplicas::new(longs.map(|l| Ok(l.parse::<i64>().expect("long") as u64))).collect()
        };
        let expected: Vec<ReportedReplica> =
            expected.iter().map(|r| replica(&r.split(',').collect::<Vec<_>>())).collect();
        let read: Vec<ReportedReplica> = ours.iter().filter_map(|r| r.ok()).collect();
        assert_eq!((read, ours.iter().any(Result::is_err)), (expected, *end == "error"), "{line}");
        assert!(ours.iter().rev().skip(1).all(Result::is_ok), "reads on after an error: {line}");
        cases += 1;
    }
    assert_eq!(cases, 32);
}

fn any_replica() -> impl Strategy<Value = ReportedReplica> {
    let id = prop_oneof![any::<i64>(), 1_073_741_825i64..1_100_000_000];
    (id, 0u64..1 << 48, prop_oneof![any::<i64>(), 1000i64..100_000], 0u64..5).prop_map(
        |(block_id, length, stamp, n)| {
            let state = ReplicaState::from_number(n).expect("state");
            ReportedReplica { block_id, length, generation_stamp: stamp, state }
        },
    )
}

proptest! {
    #[test]
    fn buffers_may_be_cut_anywhere(replicas in prop::collection::vec(any_replica(), 0..40), piece in 1usize..200) {
        let mut buffer = Vec::new();
        replicas.iter().for_each(|r| put_replica(&mut buffer, r));
        prop_assert_eq!(from_buffers(replicas.len() as u64, buffer.chunks(piece)), Ok(replicas));
    }

    #[test]
    fn longs_round_trip(replicas in prop::collection::vec(any_replica(), 0..40)) {
        let mut sorted = replicas.clone();
        sorted.sort_by_key(|r| r.state != ReplicaState::Finalized);
        prop_assert_eq!(from_longs(&to_longs(&replicas)), Ok(sorted));
    }

    #[test]
    fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200), count in any::<u64>(), piece in 1usize..50) {
        let read = BufferReplicas::new(count, bytes.chunks(piece)).count();
        prop_assert!(read <= bytes.len() / 4 + 1);
        let longs: Vec<u64> = bytes.iter().map(|&b| u64::from(b % 9).wrapping_sub(1)).collect();
        prop_assert!(LongReplicas::new(longs.iter().map(|&l| Ok(l))).count() <= longs.len());
    }
}

#[test]
fn a_report_is_read_through_its_view() {
    let replicas: Vec<ReportedReplica> = (0..20_000)
        .map(|i| ReportedReplica {
            block_id: 1_073_741_825 + i,
            length: i as u64 * 7,
            generation_stamp: 1001 + i,
            state: ReplicaState::from_number((i % 7 % 5) as u64).expect("state"),
        })
        .collect();
    let mut buffer = Vec::new();
    replicas.iter().for_each(|r| put_replica(&mut buffer, r));
    let storage = DatanodeStorageProto { storage_uuid: "DS-1".to_owned(), state: None, storage_type: None };
    let mut report = StorageBlockReportProto {
        storage,
        blocks: Vec::new(),
        number_of_blocks: Some(replicas.len() as u64),
        blocks_buffers: pieces(&buffer).map(|p| p.to_vec().into()).collect(),
    };
    assert_eq!(report.blocks_buffers.len(), buffer.len().div_ceil(PIECE_BYTES));
    assert!(report.blocks_buffers.len() > 2);
    let read = |report: &StorageBlockReportProto| {
        let bytes = report.encode_to_vec();
        StorageBlockReport::parse(&bytes).expect("view").replicas().collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read(&report).as_ref(), Ok(&replicas));
    report.blocks = to_longs(&replicas);
    report.number_of_blocks = None;
    let mut sorted = replicas;
    sorted.sort_by_key(|r| r.state != ReplicaState::Finalized);
    assert_eq!(read(&report), Ok(sorted));
    report.blocks.truncate(50);
    assert_eq!(read(&report), Err(BlockListError::Wire(WireError::Truncated)));
    assert_eq!(pieces(&[]).count(), 1);
}
