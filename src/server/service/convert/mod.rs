//! Purpose: values of the core to protobuf and back, field by field as a Java name node sets them.
//! Called by: the handlers of this service.
//! Calls: hadoop-proto.
//! Never: looks anything up; decides what is answered.
//! Invariants: fields come in the order of their numbers, as Java writes them; hot messages are written without building a value first.

pub mod attributes;
pub mod caches;
pub mod datanode;
pub mod encryption;
pub mod erasure_coding;
pub mod events;
pub mod kinds;
pub mod located;
pub mod status;
pub mod summary;

use bytes::{BufMut, BytesMut};
use hadoop_proto::wire::{Sink, WireType, varint_length};

/// Writes a message field whose content is written by `fill`, without knowing its length before.
pub fn nested(out: &mut BytesMut, number: u32, fill: impl FnOnce(&mut BytesMut)) {
    out.put_tag(number, WireType::Bytes);
    let at = out.len();
    out.put_u8(0);
    fill(out);
    let length = out.len() - at - 1;
    let more = varint_length(length as u64) - 1;
    if more > 0 {
        out.put_bytes(0, more);
        out.copy_within(at + 1..at + 1 + length, at + 1 + more);
    }
    (&mut out[at..=at + more]).put_varint(length as u64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::wire::{Cursor, Value};

    #[test]
    fn lengths_of_nested_messages() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 3_000_000] {
            let content: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut out = BytesMut::from(&b"\x08\x01"[..]);
            nested(&mut out, 3, |out| out.put_slice(&content));
            out.put_varint_field(4, 5);
            let mut expected = vec![8, 1];
            expected.put_bytes_field(3, &content);
            expected.put_varint_field(4, 5);
            assert_eq!(&out[..], &expected[..], "{length}");
            assert_eq!(Cursor::new(&out[2..]).field(), Ok(Some((3, Value::Bytes(&content)))));
        }
    }
}
