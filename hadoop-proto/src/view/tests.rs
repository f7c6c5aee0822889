//! Views against prost's decode, on random messages made from the shapes.

use super::{Encoded, Repeated, Sint32, Text, ViewError, client, datanode, rpc};
use crate::shape::{DecodeError, Kind, Shape, Shaped, decode};
use crate::wire::{Sink, WireType};
use bytes::{BufMut, Bytes};
use proptest::prelude::*;

/// Whether a part of a view is what prost read.
pub(crate) trait Same<P> {
    fn same(&self, theirs: &P) -> bool;
}

/// The fields a view knows, with prost's names and the labels.
pub(crate) trait Listed {
    type Message: prost::Message + Default + Shaped;
    const FIELDS: &'static [(u32, &'static str, &'static str)];
}

macro_rules! same_plain {
    ($($type:ty),*) => {$(
        impl Same<$type> for $type {
            fn same(&self, theirs: &$type) -> bool {
                self == theirs
            }
        }
    )*};
}
same_plain!(u64, i64, u32, i32, bool);

macro_rules! same_enum {
    ($($type:ty),*) => {$(
        impl Same<i32> for $type {
            fn same(&self, theirs: &i32) -> bool {
                *self as i32 == *theirs
            }
        }
    )*};
}
same_enum!(
    crate::common::RpcKindProto,
    crate::common::rpc_request_header_proto::OperationProto,
    crate::hdfs::CryptoProtocolVersionProto,
    crate::hdfs::AddBlockFlagProto,
    crate::hdfs::datanode_info_proto::AdminState,
    crate::hdfs::StorageTypeProto,
    crate::hdfs::datanode_storage_proto::StorageState,
    crate::datanode::received_deleted_block_info_proto::BlockStatus
);

impl Same<f64> for f64 {
    fn same(&self, theirs: &f64) -> bool {
        self.to_bits() == theirs.to_bits()
    }
}

impl Same<i32> for Sint32 {
    fn same(&self, theirs: &i32) -> bool {
        self.0 == *theirs
    }
}

impl Same<String> for Text<'_> {
    fn same(&self, theirs: &String) -> bool {
        self.to_str() == *theirs
    }
}

impl Same<Bytes> for &[u8] {
    fn same(&self, theirs: &Bytes) -> bool {
        self == theirs
    }
}

impl<M: prost::Message + Default + Shaped + PartialEq> Same<M> for Encoded<'_, M> {
    fn same(&self, theirs: &M) -> bool {
        self.decode().as_ref() == Ok(theirs)
    }
}

impl<P, T: Same<P>> Same<Option<P>> for Option<T> {
    fn same(&self, theirs: &Option<P>) -> bool {
        match (self, theirs) {
            (Some(ours), Some(theirs)) => ours.same(theirs),
            (None, None) => true,
            _ => false,
        }
    }
}

/// A required message is an option to prost.
impl<'a, P, T: Same<P> + super::Element<'a>> Same<Option<P>> for T {
    fn same(&self, theirs: &Option<P>) -> bool {
        theirs.as_ref().is_some_and(|theirs| self.same(theirs))
    }
}

impl<'a, P, T: Same<P> + super::Element<'a>> Same<Vec<P>> for Repeated<'a, T> {
    fn same(&self, theirs: &Vec<P>) -> bool {
        let ours: Vec<T> = self.iter().map(|element| element.expect("element of a message that prost read")).collect();
        self.is_empty() == theirs.is_empty()
            && ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(|(ours, theirs)| ours.same(theirs))
    }
}

/// Small numbers from a seed, so that a failing message can be made again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mixed = (self.0 ^ (self.0 >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) % below
    }

    fn integer(&mut self) -> u64 {
        let wide = self.roll(1 << 32) << 32 | self.roll(1 << 32);
        wide >> self.roll(64)
    }

    fn bytes(&mut self, text: bool) -> Vec<u8> {
        let length = self.roll(12);
        let bytes: Vec<u8> = (0..length).map(|_| self.roll(256) as u8).collect();
        if text && self.roll(4) > 0 { String::from_utf8_lossy(&bytes).into_owned().into_bytes() } else { bytes }
    }
}

/// A random message: fields in any order, repeats of single values, packed and unpacked, unknown fields, bad text; rarely
/// without a required field or with a value of another wire type.
fn random_message(shape: &Shape, dice: &mut Dice) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for field in shape.fields {
        let required = shape.required.contains(&field.number);
        let mut count = if field.repeated { dice.roll(4) } else { dice.roll(2) };
        if required && dice.roll(60) > 0 {
            count = 1;
        }
        if count == 1 && !matches!(field.kind, Kind::Message(_)) && dice.roll(20) == 0 {
            count = 2;
        }
        for _ in 0..count {
            let mut piece = Vec::new();
            match &field.kind {
                _ if dice.roll(200) == 0 => piece.put_varint_field(field.number + 1000, 7),
                Kind::Text if dice.roll(200) == 0 => piece.put_varint_field(field.number, 5),
                Kind::Varint if field.repeated && dice.roll(2) == 0 => {
                    let mut packed = Vec::new();
                    (0..dice.roll(5)).for_each(|_| packed.put_varint(dice.integer()));
                    packed.put_varint(9);
                    piece.put_bytes_field(field.number, &packed);
                }
                Kind::Varint => piece.put_varint_field(field.number, dice.integer()),
                Kind::Enum(known) => {
                    let value = known[dice.roll(known.len() as u64) as usize];
                    piece.put_varint_field(field.number, value as u64);
                }
                Kind::Fixed64 => {
                    piece.put_tag(field.number, WireType::Fixed64);
                    piece.put_u64_le(dice.integer());
                }
                Kind::Fixed32 => {
                    piece.put_tag(field.number, WireType::Fixed32);
                    piece.put_u32_le(dice.integer() as u32);
                }
                Kind::Text => piece.put_bytes_field(field.number, &dice.bytes(true)),
                Kind::Bytes => piece.put_bytes_field(field.number, &dice.bytes(false)),
                Kind::Message(inner) => piece.put_bytes_field(field.number, &random_message(inner, dice)),
            }
            pieces.push(piece);
        }
    }
    if dice.roll(2) == 0 {
        for at in (1..pieces.len()).rev() {
            pieces.swap(at, dice.roll(at as u64 + 1) as usize);
        }
    }
    pieces.concat()
}

/// A view gives what `decode` gives, and refuses what `decode` refuses for want of a field.
fn check<M>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<Box<dyn Same<M> + '_>, ViewError>)
where
    M: prost::Message + Default + Shaped + std::fmt::Debug,
{
    let theirs = decode::<M>(Bytes::copy_from_slice(bytes));
    match (parse(bytes), &theirs) {
        (Ok(view), Ok(message)) => assert!(view.same(message), "differs from {message:?}"),
        // Elements of repeated fields are looked at when they are iterated.
        (Ok(_), Err(DecodeError::MissingRequired(paths))) => {
            assert!(paths.split(", ").all(|p| p.contains("].") || is_left_out(p)), "view accepts without {paths}");
        }
        (Err(ViewError::MissingRequired(_)), Err(DecodeError::MissingRequired(_))) => {}
        (view, theirs) => panic!("view {:?}, decode {theirs:?}", view.map(|_| ()).err()),
    }
}

/// Messages that a view keeps encoded are checked when they are decoded.
fn is_left_out(path: &str) -> bool {
    path.contains("registration.keys.") || path.starts_with("keys.")
}

macro_rules! views {
    ($($module:ident::$name:ident)*) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(1500))]
            #[test]
            fn views_equal_decode(seed in any::<u64>()) {
                $({
                    type Message = <$module::$name<'static> as Listed>::Message;
                    let bytes = random_message(Message::SHAPE, &mut Dice(seed));
                    check::<Message>(&bytes, |b| Ok(Box::new($module::$name::parse(b)?)));
                })*
            }

            #[test]
            fn views_of_any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..60), seed in any::<u64>(), at in any::<prop::sample::Index>()) {
                $({
                    let _ = $module::$name::parse(&bytes);
                    let mut damaged = random_message(<$module::$name<'static> as Listed>::Message::SHAPE, &mut Dice(seed));
                    if !damaged.is_empty() {
                        let at = at.index(damaged.len());
                        damaged[at] ^= bytes.first().copied().unwrap_or(1);
                    }
                    let _ = $module::$name::parse(&damaged);
                })*
            }
        }

        #[test]
        fn views_name_the_fields_of_the_schema() {
            $({
                let view = <$module::$name<'static> as Listed>::FIELDS;
                let shape = <<$module::$name<'static> as Listed>::Message as Shaped>::SHAPE;
                for &(number, name, label) in view {
                    let field = shape.field(number).expect(name);
                    assert_eq!(name.replace('_', ""), field.name.replace('_', "").to_lowercase(), "{}", shape.name);
                    assert_eq!(label == "repeated", field.repeated, "{}.{name}", shape.name);
                    assert_eq!(label == "required", shape.required.contains(&number), "{}.{name}", shape.name);
                }
                if stringify!($name) != "DatanodeInfo" {
                    assert_eq!(view.len(), shape.fields.len(), "{}", shape.name);
                }
            })*
        }
    };
}

views! {
    rpc::RpcRequestHeader rpc::RequestHeader
    client::GetFileInfoRequest client::GetListingRequest client::GetBlockLocationsRequest client::CreateRequest
    client::DatanodeInfo client::AddBlockRequest client::CompleteRequest client::MkdirsRequest client::DeleteRequest
    client::RenameRequest client::Rename2Request client::RenewLeaseRequest
    datanode::HeartbeatRequest datanode::StorageBlockReport datanode::BlockReportRequest
    datanode::BlockReceivedAndDeletedRequest
}

#[test]
fn a_message_in_parts_is_left_to_decode() {
    let mut bytes = Vec::new();
    bytes.put_bytes_field(1, b"/a");
    bytes.put_bytes_field(2, b"client");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    first.put_bytes_field(1, b"pool");
    second.put_varint_field(2, 7);
    second.put_varint_field(3, 8);
    bytes.put_bytes_field(3, &first);
    bytes.put_bytes_field(3, &second);
    let view = client::CompleteRequest::parse(&bytes);
    assert_eq!(view.err(), Some(ViewError::MissingRequired("block_id")));
    second.put_bytes_field(1, b"pool");
    let mut whole = bytes[..bytes.len() - 4 - 2 - first.len() - 2].to_vec();
    whole.put_bytes_field(3, &second);
    whole.put_bytes_field(3, &second);
    assert_eq!(client::CompleteRequest::parse(&whole).err(), Some(ViewError::SplitMessage("last")));
    let merged: crate::hdfs::CompleteRequestProto = decode(bytes.into()).expect("parts make a whole");
    assert_eq!(merged.last.map(|l| (l.pool_id, l.block_id)), Some(("pool".to_owned(), 7)));
}
