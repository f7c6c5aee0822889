//! The header before each request, read fast in the form in which clients write it.

use hadoop_proto::common::RpcKindProto;
use hadoop_proto::common::rpc_request_header_proto::OperationProto;
use hadoop_proto::view::rpc::{CallerContext, RpcRequestHeader};
use hadoop_proto::view::{Sint32, ViewError};
use hadoop_proto::wire::Cursor;

/// Kind of protocol buffers, final packet, and the tag of the call's number.
const FRONT: [u8; 5] = [0x08, 2, 0x10, 0, 0x18];
/// Tag and length of the client's id.
const CLIENT_ID: [u8; 2] = [0x22, 16];
const RETRY: u8 = 0x28;
const CALLER_CONTEXT: u8 = 0x3a;

/// The header in these bytes.
pub(crate) fn parse(bytes: &[u8]) -> Result<RpcRequestHeader<'_>, ViewError> {
    usual(bytes).map_or_else(|| RpcRequestHeader::parse(bytes), Ok)
}

/// The header of an ordinary call of Hadoop's client: five fields in the order of their numbers, and a caller context or none.
fn usual(bytes: &[u8]) -> Option<RpcRequestHeader<'_>> {
    let (call_id, rest) = sint32(bytes.strip_prefix(&FRONT)?)?;
    let (client_id, rest) = rest.strip_prefix(&CLIENT_ID)?.split_at_checked(16)?;
    let (retry_count, rest) = sint32(rest.strip_prefix(&[RETRY])?)?;
    let caller_context = match rest {
        [] => None,
        [CALLER_CONTEXT, length, context @ ..] if usize::from(*length) == context.len() && *length < 0x80 => {
            Some(CallerContext::parse(context).ok()?)
        }
        _ => return None,
    };
    Some(RpcRequestHeader {
        raw: bytes,
        rpc_kind: Some(RpcKindProto::RpcProtocolBuffer),
        rpc_op: Some(OperationProto::RpcFinalPacket),
        call_id,
        client_id,
        retry_count,
        trace_info: None,
        caller_context,
        state_id: None,
        router_federated_state: None,
        authorization_header: None,
    })
}

/// A number of at most four bytes, and what follows it.
fn sint32(bytes: &[u8]) -> Option<(Sint32, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            return Some((Sint32((value >> 1) as i32 ^ -((value & 1) as i32)), &bytes[at + 1..]));
        }
    }
    None
}

/// A length and as many bytes off the front of `rest`.
pub(crate) fn delimited<'b>(rest: &mut &'b [u8]) -> Result<&'b [u8], ViewError> {
    let mut cursor = Cursor::new(rest);
    let item = cursor.bytes().map_err(ViewError::Wire)?;
    *rest = cursor.rest();
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::common::{RpcCallerContextProto, RpcRequestHeaderProto};
    use prost::Message;

    fn shown(header: &RpcRequestHeader<'_>) -> String {
        format!("{header:?}")
    }

    /// What is read fast is what the schema says, and most calls are.
    #[test]
    fn usual_headers_are_read_as_the_schema_says() {
        let mut fast = 0;
        let headers = [0, 1, 63, 64, 300, 1 << 20, i32::MAX, -3, -33, i32::MIN].into_iter().flat_map(|call_id| {
            [None, Some(-1), Some(0), Some(7), Some(i32::MAX)].map(|retry_count| RpcRequestHeaderProto {
                rpc_kind: Some(RpcKindProto::RpcProtocolBuffer as i32),
                rpc_op: Some(OperationProto::RpcFinalPacket as i32),
                call_id,
                client_id: bytes::Bytes::from_static(b"0123456789abcdef"),
                retry_count,
                ..Default::default()
            })
        });
        for header in headers {
            let bytes = header.encode_to_vec();
            let expected = RpcRequestHeader::parse(&bytes).unwrap();
            assert_eq!(shown(&parse(&bytes).unwrap()), shown(&expected));
            fast += usize::from(usual(&bytes).is_some());
            for end in 0..bytes.len() {
                assert_eq!(
                    parse(&bytes[..end]).map(|h| shown(&h)).ok(),
                    RpcRequestHeader::parse(&bytes[..end]).map(|h| shown(&h)).ok()
                );
            }
            for (context, signature) in [("CLI", None), ("c", Some(&b"signed"[..])), (&"long".repeat(50), None)] {
                let context = RpcCallerContextProto {
                    context: context.to_owned(),
                    signature: signature.map(bytes::Bytes::from_static),
                };
                let bytes = RpcRequestHeaderProto { caller_context: Some(context), ..header.clone() }.encode_to_vec();
                assert_eq!(shown(&parse(&bytes).unwrap()), shown(&RpcRequestHeader::parse(&bytes).unwrap()));
                fast += usize::from(usual(&bytes).is_some());
            }
            let others = [
                RpcRequestHeaderProto { client_id: bytes::Bytes::from_static(b"short"), ..header.clone() },
                RpcRequestHeaderProto { state_id: Some(5), ..header.clone() },
                RpcRequestHeaderProto { rpc_kind: Some(1), ..header.clone() },
            ];
            for other in others.map(|other| other.encode_to_vec()) {
                assert!(usual(&other).is_none());
                assert_eq!(shown(&parse(&other).unwrap()), shown(&RpcRequestHeader::parse(&other).unwrap()));
            }
        }
        assert_eq!(fast, 8 * 3 * 3, "numbers of up to 28 bits, no context or a short one");
    }
}
