//! Writing answers: total length, delimited response header, delimited message.

use crate::call::{ClientId, RemoteException, Reply};
use bytes::{BufMut, BytesMut};
use hadoop_proto::frame::VERSION;
use hadoop_proto::wire::{Sink, varint_length, zigzag};

/// What ties an answer to its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyIds {
    pub call_id: i32,
    pub client_id: ClientId,
    pub retry: i32,
}

impl ReplyIds {
    /// Ids of an answer to no call: a fault of the connection itself.
    pub(crate) const NONE: ReplyIds = ReplyIds::of_connection(-1, -1);

    /// Ids of an answer that names no client, as those about the connection do.
    pub(crate) const fn of_connection(call_id: i32, retry: i32) -> ReplyIds {
        ReplyIds { call_id, client_id: ClientId::EMPTY, retry }
    }
    fn call_id_bits(&self) -> u64 {
        u64::from(self.call_id as u32)
    }
    fn retry_bits(&self) -> u64 {
        zigzag(i64::from(self.retry))
    }
    /// Bytes of the fields that every header has.
    fn length(&self) -> usize {
        1 + varint_length(self.call_id_bits())
            + 2 // status
            + 2 // version
            + 2
            + self.client_id.as_slice().len()
            + 1
            + varint_length(self.retry_bits())
    }
    fn write_front(&self, status: u8, out: &mut BytesMut) {
        out.put_u8(0x08);
        out.put_varint(self.call_id_bits());
        out.put_slice(&[0x10, status, 0x18, VERSION]);
    }
    fn write_back(&self, out: &mut BytesMut) {
        let client_id = self.client_id.as_slice();
        out.put_slice(&[0x3a, client_id.len() as u8]);
        out.put_slice(client_id);
        out.put_u8(0x40);
        out.put_varint(self.retry_bits());
    }
}

/// Appends an answer.
pub(crate) fn put(out: &mut BytesMut, ids: &ReplyIds, state_id: Option<i64>, answer: &Reply) {
    match answer {
        Reply::Message(message) => success(out, ids, state_id, message),
        Reply::Error(exception) => error(out, ids, state_id, exception),
    }
}

/// Appends a good answer with its message.
pub(crate) fn success(out: &mut BytesMut, ids: &ReplyIds, state_id: Option<i64>, message: &[u8]) {
    let state = state_id.map(|s| s as u64);
    let header = ids.length() + state.map_or(0, |s| 1 + varint_length(s));
    let total = varint_length(header as u64) + header + varint_length(message.len() as u64) + message.len();
    out.reserve(4 + total);
    out.put_u32(total as u32);
    out.put_varint(header as u64);
    ids.write_front(0, out);
    ids.write_back(out);
    if let Some(s) = state {
        out.put_u8(0x48);
        out.put_varint(s);
    }
    out.put_varint(message.len() as u64);
    out.put_slice(message);
}

/// Appends an error answer; its status is FATAL if its code is.
pub(crate) fn error(out: &mut BytesMut, ids: &ReplyIds, state_id: Option<i64>, error: &RemoteException) {
    let text = |s: &str| 1 + varint_length(s.len() as u64) + s.len();
    let state = state_id.map(|s| s as u64);
    let header =
        ids.length() + text(&error.class) + text(&error.message) + 2 + state.map_or(0, |s| 1 + varint_length(s));
    let total = varint_length(header as u64) + header;
    out.reserve(4 + total);
    out.put_u32(total as u32);
    out.put_varint(header as u64);
    ids.write_front(if error.is_fatal() { 2 } else { 1 }, out);
    for (tag, s) in [(0x22, &*error.class), (0x2a, &*error.message)] {
        out.put_u8(tag);
        out.put_varint(s.len() as u64);
        out.put_slice(s.as_bytes());
    }
    out.put_slice(&[0x30, error.code as u8]);
    ids.write_back(out);
    if let Some(s) = state {
        out.put_u8(0x48);
        out.put_varint(s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::ErrorCode;
    use hadoop_proto::common::RpcResponseHeaderProto;
    use prost::Message;

    fn ids(call_id: i32, retry: i32) -> ReplyIds {
        ReplyIds { call_id, client_id: ClientId::new(b"0123456789abcdef").unwrap(), retry }
    }

    /// Both forms equal prost's encoding of the same header.
    #[test]
    fn equals_prost() {
        for (call_id, retry, state) in
            [(0, 0, None), (-33, -1, None), (300, 5, Some(-1)), (i32::MAX, i32::MIN, Some(1 << 40))]
        {
            let mut header = RpcResponseHeaderProto {
                call_id: call_id as u32,
                status: 0,
                server_ipc_version_num: Some(9),
                client_id: Some(bytes::Bytes::from_static(b"0123456789abcdef")),
                retry_count: Some(retry),
                state_id: state,
                ..Default::default()
            };
            let mut out = BytesMut::new();
            success(&mut out, &ids(call_id, retry), state, &[7; 200]);
            let mut expected = header.encode_length_delimited_to_vec();
            expected.extend_from_slice(&[200, 1]);
            expected.extend_from_slice(&[7; 200]);
            assert_eq!(out[..4], (expected.len() as u32).to_be_bytes());
            assert_eq!(out[4..], expected);

            let e =
                RemoteException { class: "a.B".into(), message: "é".repeat(100), code: ErrorCode::FatalUnauthorized };
            header.status = 2;
            header.exception_class_name = Some(e.class.to_string());
            header.error_msg = Some(e.message.clone());
            header.error_detail = Some(e.code as i32);
            out.clear();
            error(&mut out, &ids(call_id, retry), state, &e);
            let expected = header.encode_length_delimited_to_vec();
            assert_eq!(out[..4], (expected.len() as u32).to_be_bytes());
            assert_eq!(out[4..], expected);
        }
    }
}
