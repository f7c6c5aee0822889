//! Reading the front of a request: header and names, apart from the body, without copying.

use bytes::Bytes;
use hadoop_proto::common::RpcKindProto;
use hadoop_proto::common::rpc_request_header_proto::OperationProto;

/// Bytes that are no message of the wanted type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Malformed {
    /// The input ends inside a field.
    Truncated,
    /// A varint of more than ten bytes, a field number of 0 or an unknown wire type.
    Invalid,
    /// A required field is missing.
    Missing(&'static str),
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Malformed::Truncated => f.write_str("the input ended unexpectedly in the middle of a field"),
            Malformed::Invalid => f.write_str("malformed varint, tag or wire type"),
            Malformed::Missing(field) => write!(f, "Message missing required fields: {field}"),
        }
    }
}

/// `RpcRequestHeaderProto`, borrowed.
#[derive(Debug, Default)]
pub(crate) struct RawHeader<'a> {
    pub kind: Option<RpcKindProto>,
    pub operation: Option<OperationProto>,
    pub call_id: i32,
    pub client_id: &'a [u8],
    pub retry: i32,
    pub caller_context: Option<&'a [u8]>,
    pub state_id: Option<i64>,
}

impl<'a> RawHeader<'a> {
    /// Reads a delimited header from the front of `input` and moves `input` behind it.
    pub(crate) fn read(input: &mut &'a [u8]) -> Result<RawHeader<'a>, Malformed> {
        let mut fields = delimited(input)?;
        let mut header = RawHeader { retry: -1, ..RawHeader::default() };
        let (mut call_id, mut client_id) = (None, None);
        while let Some((number, value)) = field(&mut fields)? {
            match (number, value) {
                (1, Value::Number(n)) => header.kind = enumerated(n),
                (2, Value::Number(n)) => header.operation = enumerated(n),
                (3, Value::Number(n)) => call_id = Some(zigzag(n)),
                (4, Value::Bytes(b)) => client_id = Some(b),
                (5, Value::Number(n)) => header.retry = zigzag(n),
                (7, Value::Bytes(b)) => header.caller_context = Some(b),
                (8, Value::Number(n)) => header.state_id = Some(n as i64),
                _ => {}
            }
        }
        header.call_id = call_id.ok_or(Malformed::Missing("callId"))?;
        header.client_id = client_id.ok_or(Malformed::Missing("clientId"))?;
        Ok(header)
    }
}

/// `RequestHeaderProto`, borrowed, not yet checked for UTF-8.
pub(crate) struct RawNames<'a> {
    pub method: &'a [u8],
    pub protocol: &'a [u8],
    pub version: u64,
}

impl<'a> RawNames<'a> {
    /// Reads delimited names from the front of `input` and moves `input` behind them.
    pub(crate) fn read(input: &mut &'a [u8]) -> Result<RawNames<'a>, Malformed> {
        let mut fields = delimited(input)?;
        let (mut method, mut protocol, mut version) = (None, None, None);
        while let Some((number, value)) = field(&mut fields)? {
            match (number, value) {
                (1, Value::Bytes(b)) => method = Some(b),
                (2, Value::Bytes(b)) => protocol = Some(b),
                (3, Value::Number(n)) => version = Some(n),
                _ => {}
            }
        }
        Ok(RawNames {
            method: method.ok_or(Malformed::Missing("methodName"))?,
            protocol: protocol.ok_or(Malformed::Missing("declaringClassProtocolName"))?,
            version: version.ok_or(Malformed::Missing("clientProtocolVersion"))?,
        })
    }
}

/// `RPCCallerContextProto`: context and signature.
pub(crate) fn caller_context(mut fields: &[u8]) -> Result<(&[u8], Option<&[u8]>), Malformed> {
    let (mut context, mut signature) = (None, None);
    while let Some((number, value)) = field(&mut fields)? {
        match (number, value) {
            (1, Value::Bytes(b)) => context = Some(b),
            (2, Value::Bytes(b)) => signature = Some(b),
            _ => {}
        }
    }
    Ok((context.ok_or(Malformed::Missing("context"))?, signature))
}

/// The body: one delimited message, the rest of the frame. A missing length (Hadoop's clients always send one) is an empty message.
pub(crate) fn body(frame: &Bytes, mut rest: &[u8]) -> Result<Bytes, Malformed> {
    if rest.is_empty() {
        return Ok(Bytes::new());
    }
    Ok(frame.slice_ref(delimited(&mut rest)?))
}

/// A length and that many bytes.
pub(crate) fn delimited<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(varint(input)?).map_err(|_| Malformed::Truncated)?;
    let (message, rest) = input.split_at_checked(length).ok_or(Malformed::Truncated)?;
    *input = rest;
    Ok(message)
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed,
}

fn field<'a>(input: &mut &'a [u8]) -> Result<Option<(u64, Value<'a>)>, Malformed> {
    if input.is_empty() {
        return Ok(None);
    }
    let key = varint(input)?;
    let skip = |input: &mut &'a [u8], n| {
        *input = input.get(n..).ok_or(Malformed::Truncated)?;
        Ok(Value::Fixed)
    };
    let value = match key & 7 {
        0 => Value::Number(varint(input)?),
        1 => skip(input, 8)?,
        2 => Value::Bytes(delimited(input)?),
        5 => skip(input, 4)?,
        _ => return Err(Malformed::Invalid),
    };
    if key >> 3 == 0 { Err(Malformed::Invalid) } else { Ok(Some((key >> 3, value))) }
}

fn varint(input: &mut &[u8]) -> Result<u64, Malformed> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *input = &input[i + 1..];
            return Ok(value);
        }
    }
    Err(if input.len() < 10 { Malformed::Truncated } else { Malformed::Invalid })
}

fn zigzag(n: u64) -> i32 {
    ((n >> 1) as i32) ^ -((n & 1) as i32)
}

/// Unknown numbers of an enum count as absent, as in proto2.
fn enumerated<E: TryFrom<i32>>(n: u64) -> Option<E> {
    E::try_from(n as i32).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadoop_proto::common::{RequestHeaderProto, RpcRequestHeaderProto};
    use prost::Message;

    #[test]
    fn reads_what_prost_writes() {
        for (call_id, retry, state) in
            [(0, 0, None), (-3, -1, Some(-1)), (i32::MAX, 7, Some(i64::MAX)), (i32::MIN, 1, Some(0))]
        {
            let header = RpcRequestHeaderProto {
                rpc_kind: Some(2),
                rpc_op: Some(0),
                call_id,
                client_id: Bytes::from_static(b"0123456789abcdef"),
                retry_count: Some(retry),
                state_id: state,
                ..Default::default()
            };
            let mut bytes = header.encode_length_delimited_to_vec();
            bytes.extend_from_slice(b"rest");
            let mut input = &bytes[..];
            let raw = RawHeader::read(&mut input).unwrap();
            assert_eq!((raw.call_id, raw.retry, raw.state_id), (call_id, retry, state));
            assert_eq!(raw.client_id, b"0123456789abcdef");
            assert_eq!(raw.kind, Some(RpcKindProto::RpcProtocolBuffer));
            assert_eq!(input, b"rest");
            for cut in 0..bytes.len() - 4 {
                assert!(RawHeader::read(&mut &bytes[..cut]).is_err());
            }
        }
        let names = RequestHeaderProto {
            method_name: "mkdirs".into(),
            declaring_class_protocol_name: "p".into(),
            client_protocol_version: 1,
        };
        let bytes = names.encode_length_delimited_to_vec();
        let raw = RawNames::read(&mut &bytes[..]).unwrap();
        assert_eq!((raw.method, raw.protocol, raw.version), (&b"mkdirs"[..], &b"p"[..], 1));
    }

    #[test]
    fn zigzag_is_prosts() {
        assert_eq!([0, 1, 2, 3, u64::from(u32::MAX)].map(zigzag), [0, -1, 1, -2, i32::MIN]);
    }
}
