//! Decoding as Hadoop's parsers do it, on their own verdicts.

use bytes::Bytes;
use hadoop_proto::shape::{self, Shaped, java_text, missing_required};
use hadoop_proto::{DecodeError, common, datanode, decode, decode_lossy, fsimage, hdfs, namenode, qjournal};
use proptest::prelude::*;

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")).collect()
}

fn samples() -> impl Iterator<Item = (&'static str, Bytes, &'static str, &'static str)> {
    include_str!("golden/decode_samples.tsv").lines().map(|line| {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or("");
        (next(), unhex(next()).into(), next(), next())
    })
}

#[test]
fn missing_fields_are_listed_like_java_does() {
    let mut missing = 0;
    for (name, bytes, verdict, paths) in samples() {
        let shape = shape::by_name(name).unwrap_or_else(|| panic!("no message {name}"));
        let ours = missing_required(shape, &bytes);
        match verdict {
            "missing" => assert_eq!(ours.as_deref(), Some(paths), "{name} {bytes:x}"),
            "ok" => assert_eq!(ours, None, "{name} {bytes:x}"),
            _ => {}
        }
        missing += usize::from(verdict == "missing");
    }
    assert!(missing > 100, "only {missing} samples");
}

/// The verdict on one sample, if it is of this type.
fn verdict<M: prost::Message + Default + Shaped>(name: &str, bytes: &Bytes) -> Option<String> {
    (M::SHAPE.name == name).then(|| match decode::<M>(bytes.clone()) {
        Ok(_) => "ok ".to_owned(),
        Err(DecodeError::Malformed(_)) => "malformed ".to_owned(),
        Err(DecodeError::MissingRequired(paths)) => format!("missing {paths}"),
    })
}

macro_rules! verdict_of {
    ($name:expr, $bytes:expr; $($module:ident::$type:ident)*) => {
        None$(.or_else(|| verdict::<$module::$type>($name, $bytes)))*
    };
}

#[test]
fn decode_judges_like_java() {
    let mut judged = 0;
    for (name, bytes, theirs, paths) in samples() {
        let ours = verdict_of!(name, &bytes;
            hdfs::CreateRequestProto hdfs::AddBlockRequestProto hdfs::SetAclRequestProto hdfs::MkdirsRequestProto
            hdfs::GetAdditionalDatanodeRequestProto hdfs::ModifyCacheDirectiveRequestProto hdfs::ConcatRequestProto
            hdfs::GetServerDefaultsResponseProto hdfs::CacheDirectiveInfoProto hdfs::DatanodeStorageReportProto
            hdfs::GetContentSummaryResponseProto hdfs::CreateResponseProto hdfs::AppendResponseProto hdfs::FsyncRequestProto
            datanode::HeartbeatRequestProto datanode::HeartbeatResponseProto datanode::BlockReportRequestProto
            datanode::BlockReceivedAndDeletedRequestProto datanode::CommitBlockSynchronizationRequestProto
            datanode::DatanodeCommandProto datanode::RegisterDatanodeRequestProto datanode::StorageBlockReportProto
            namenode::RegisterRequestProto namenode::GetBlocksResponseProto qjournal::AcceptRecoveryRequestProto
            qjournal::JournalRequestProto qjournal::FormatRequestProto common::RpcRequestHeaderProto common::RpcSaslProto
            common::RpcResponseHeaderProto common::IpcConnectionContextProto common::RequestHeaderProto
            fsimage::FileSummary fsimage::NameSystemSection);
        let Some(ours) = ours else { continue };
        assert_eq!(ours, format!("{theirs} {paths}"), "{name} {bytes:x}");
        judged += 1;
    }
    assert!(judged > 100, "only {judged} samples");
}

/// Java reads an encoded surrogate as one U+FFFD (see `java_text`).
#[test]
fn text_reads_like_java() {
    for line in include_str!("golden/texts.tsv").lines() {
        let (bytes, utf16) = line.split_once('\t').expect("two columns");
        let utf16: Vec<u16> = unhex(utf16).chunks(2).map(|c| u16::from_be_bytes([c[0], c[1]])).collect();
        assert_eq!(java_text(&unhex(bytes)).encode_utf16().collect::<Vec<_>>(), utf16, "{bytes}");
    }
}

#[test]
fn bad_text_deep_inside_is_replaced() {
    let path = b"/a\xFF/b".to_vec();
    let block = [vec![0x0A, 2, b'p', 0xC0], vec![0x10, 5, 0x18, 6]].concat();
    let mut bytes = vec![0x0A, path.len() as u8];
    bytes.extend(&path);
    bytes.extend([0x12, 1, b'c', 0x1A, block.len() as u8]);
    bytes.extend(&block);
    let request: hdfs::CompleteRequestProto = decode(bytes.into()).expect("bad text is text");
    assert_eq!(request.src, "/a\u{FFFD}/b");
    assert_eq!(request.last.map(|b| b.pool_id).as_deref(), Some("p\u{FFFD}"));
    let missing = decode::<hdfs::CompleteRequestProto>(Bytes::new());
    assert_eq!(missing, Err(DecodeError::MissingRequired("src, clientName".to_owned())));
    assert!(decode_lossy::<hdfs::CompleteRequestProto>(Bytes::new()).is_ok());
}

proptest! {
    #[test]
    fn text_that_is_utf8_is_kept(text in any::<String>()) {
        prop_assert!(matches!(java_text(text.as_bytes()), std::borrow::Cow::Borrowed(t) if t == text));
    }

    #[test]
    fn any_bytes_get_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..80), at in any::<prop::sample::Index>()) {
        let shape = shape::SHAPES[at.index(shape::SHAPES.len())];
        let _ = missing_required(shape, &bytes);
        let _ = decode::<hdfs::AddBlockRequestProto>(bytes.clone().into());
        let _ = decode_lossy::<datanode::HeartbeatRequestProto>(bytes.into());
    }
}
