//! Framing of Hadoop's RPC connections: a header of seven bytes from the client, then packets of a four-byte length
//! (big endian) and as many bytes. A packet is a header message and what belongs to it, each behind a varint length.
//!
//! ```text
//!  Header --7 bytes ok--> Length --4 bytes ok--> Body(n) --n bytes--> Length ...
//!     \--other magic or version--> Failed <--negative or too long--/
//! ```

use crate::wire::{Sink, WireError};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// First bytes of a connection.
pub const MAGIC: [u8; 4] = *b"hrpc";
/// Version of the connection header and the packet format since Hadoop 2.1.
pub const VERSION: u8 = 9;
/// Authentication byte of a connection that starts without SASL.
pub const AUTH_NONE: u8 = 0;
/// Authentication byte of a connection that starts with a SASL exchange (-33 in Java).
pub const AUTH_SASL: u8 = 0xDF;
const HEADER_BYTES: usize = 7;

/// The connection header behind magic and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionHeader {
    /// Service class, for priorities among connections; clients send 0.
    pub service_class: u8,
    /// [`AUTH_NONE`] or [`AUTH_SASL`]; the server refuses others.
    pub auth_protocol: u8,
}

impl ConnectionHeader {
    /// The seven bytes that open a connection.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [h, r, p, c] = MAGIC;
        [h, r, p, c, VERSION, self.service_class, self.auth_protocol]
    }
}

/// What a peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// The connection header; once, first.
    Header(ConnectionHeader),
    /// Content of one packet, shared with the receive buffer.
    Packet(Bytes),
}

/// Why a connection cannot be read on; the decoder then repeats the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Other magic: an HTTP request or noise. All seven bytes are kept for the answer.
    BadMagic([u8; HEADER_BYTES]),
    /// A version that is not ours; old ones get an answer in their own format.
    BadVersion(u8),
    /// A length below zero.
    Negative(i32),
    /// A length above the limit.
    Oversize {
        /// Announced bytes.
        length: u32,
        /// Allowed bytes.
        limit: u32,
    },
}

impl FrameError {
    /// Whether the peer sent an HTTP GET, which Java answers in HTTP.
    pub fn is_http_get(&self) -> bool {
        matches!(self, FrameError::BadMagic([b'G', b'E', b'T', b' ', ..]))
    }
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            FrameError::BadMagic(seen) => write!(f, "not a Hadoop RPC connection: starts with {seen:?}"),
            FrameError::BadVersion(version) => write!(f, "RPC version {version}, expected {VERSION}"),
            FrameError::Negative(length) => write!(f, "packet length {length}"),
            FrameError::Oversize { length, limit } => write!(f, "packet of {length} bytes, allowed are {limit}"),
        }
    }
}

impl std::error::Error for FrameError {}

#[derive(Clone, Debug)]
enum State {
    Header,
    Length,
    Body(usize),
    Failed(FrameError),
}

/// Resumable decoder of one direction of a connection. Read into [`Decoder::buffer`], then take with
/// [`Decoder::next_incoming`] until there is nothing complete.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    state: State,
    limit: u32,
}

impl Decoder {
    /// For a server: expects a connection header. `limit` bounds a packet in bytes (`ipc.maximum.data.length`).
    pub fn new(limit: u32) -> Decoder {
        Decoder { buffer: BytesMut::new(), state: State::Header, limit }
    }

    /// For a client, or for what comes out of a SASL layer: packets from the start.
    pub fn packets(limit: u32) -> Decoder {
        Decoder { buffer: BytesMut::new(), state: State::Length, limit }
    }

    /// Where received bytes are appended.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes missing for the next item, at least 1; to size reads and, at end of stream, to tell a clean end.
    pub fn missing(&self) -> usize {
        let wanted = match self.state {
            State::Header => HEADER_BYTES,
            State::Length | State::Failed(_) => 4,
            State::Body(length) => length,
        };
        wanted.saturating_sub(self.buffer.len()).max(1)
    }

    /// Whether a connection may end here: between packets, or before anything came.
    pub fn is_clean(&self) -> bool {
        self.buffer.is_empty() && matches!(self.state, State::Header | State::Length)
    }

    /// The next complete item, or none until more bytes came.
    pub fn next_incoming(&mut self) -> Result<Option<Incoming>, FrameError> {
        let step = self.step();
        if let Err(e) = &step {
            self.state = State::Failed(e.clone());
        }
        step
    }

    fn step(&mut self) -> Result<Option<Incoming>, FrameError> {
        match &self.state {
            State::Failed(e) => return Err(e.clone()),
            State::Header => {
                let Some(&seen) = self.buffer.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
                let [h, r, p, c, version, service_class, auth_protocol] = seen;
                if [h, r, p, c] != MAGIC {
                    return Err(FrameError::BadMagic(seen));
                }
                if version != VERSION {
                    return Err(FrameError::BadVersion(version));
                }
                self.buffer.advance(HEADER_BYTES);
                self.state = State::Length;
                return Ok(Some(Incoming::Header(ConnectionHeader { service_class, auth_protocol })));
            }
            State::Length => {
                let Some(&length) = self.buffer.first_chunk::<4>() else { return Ok(None) };
                let length = u32::try_from(i32::from_be_bytes(length))
                    .map_err(|_| FrameError::Negative(i32::from_be_bytes(length)))?;
                if length > self.limit {
                    return Err(FrameError::Oversize { length, limit: self.limit });
                }
                self.buffer.advance(4);
                self.state = State::Body(length as usize);
            }
            State::Body(_) => {}
        }
        match self.state {
            State::Body(length) if self.buffer.len() >= length => {
                self.state = State::Length;
                Ok(Some(Incoming::Packet(self.buffer.split_to(length).freeze())))
            }
            _ => Ok(None),
        }
    }
}

/// Takes a varint length and as many bytes off the front, sharing them. On an error `bytes` is as it was.
pub fn split_delimited(bytes: &mut Bytes) -> Result<Bytes, WireError> {
    let mut cursor = crate::wire::Cursor::new(bytes);
    let length = cursor.bytes()?.len();
    let end = bytes.len() - cursor.rest().len();
    let mut item = bytes.split_to(end);
    item.advance(end - length);
    Ok(item)
}

/// Appends a packet whose content `fill` appends; the length before it is set afterwards.
pub fn put_packet(out: &mut BytesMut, fill: impl FnOnce(&mut BytesMut)) {
    let start = out.len();
    out.put_u32(0);
    fill(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a message behind its varint length, as headers and bodies stand in a packet.
pub fn put_message(out: &mut BytesMut, message: &impl prost::Message) {
    out.put_varint(message.encoded_len() as u64);
    message.encode_raw(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(decoder: &mut Decoder, out: &mut Vec<Incoming>) -> Result<(), FrameError> {
        while let Some(item) = decoder.next_incoming()? {
            out.push(item);
        }
        Ok(())
    }

    fn decode_in_pieces(stream: &[u8], cuts: &[usize]) -> (Vec<Incoming>, Option<FrameError>, bool) {
        let (mut decoder, mut out, mut at) = (Decoder::new(100), Vec::new(), 0);
        for end in cuts.iter().copied().chain([stream.len()]) {
            let end = end.clamp(at, stream.len());
            decoder.buffer().extend_from_slice(&stream[at..end]);
            at = end;
            if let Err(e) = drain(&mut decoder, &mut out) {
                assert_eq!(decoder.next_incoming(), Err(e.clone()));
                return (out, Some(e), false);
            }
        }
        (out, None, decoder.is_clean())
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let packet = prop::collection::vec(any::<u8>(), 0..100);
        let tail = prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(any::<u8>(), 0..8)];
        let header = prop_oneof![8 => Just(b"hrpc\x09\0\0".to_vec()), 1 => prop::collection::vec(any::<u8>(), 7)];
        (header, prop::collection::vec(packet, 0..6), tail).prop_map(|(header, packets, tail)| {
            let mut out = BytesMut::from(header.as_slice());
            packets.iter().for_each(|p| put_packet(&mut out, |o| o.put_slice(p)));
            out.put_slice(&tail);
            out.to_vec()
        })
    }

    proptest! {
        #[test]
        fn any_split_decodes_like_one_piece(stream in stream(), mut cuts in prop::collection::vec(0usize..700, 0..20)) {
            cuts.sort();
            prop_assert_eq!(decode_in_pieces(&stream, &cuts), decode_in_pieces(&stream, &[]));
            let each: Vec<usize> = (0..stream.len()).collect();
            prop_assert_eq!(decode_in_pieces(&stream, &each), decode_in_pieces(&stream, &[]));
        }

        #[test]
        fn packets_come_back(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 0..6)) {
            let mut out = BytesMut::from(&ConnectionHeader { service_class: 3, auth_protocol: AUTH_SASL }.to_bytes()[..]);
            packets.iter().for_each(|p| put_packet(&mut out, |o| o.put_slice(p)));
            let mut expected = vec![Incoming::Header(ConnectionHeader { service_class: 3, auth_protocol: AUTH_SASL })];
            expected.extend(packets.into_iter().map(|p| Incoming::Packet(p.into())));
            prop_assert_eq!(decode_in_pieces(&out, &[]), (expected, None, true));
        }

        #[test]
        fn split_takes_what_was_put(first in prop::collection::vec(any::<u8>(), 0..300), rest in prop::collection::vec(any::<u8>(), 0..9)) {
            let mut packet = Vec::new();
            packet.put_delimited(&first);
            packet.extend_from_slice(&rest);
            let mut packet = Bytes::from(packet);
            prop_assert_eq!(split_delimited(&mut packet), Ok(Bytes::from(first)));
            prop_assert_eq!(packet, Bytes::from(rest));
        }
    }

    #[test]
    fn errors_are_named() {
        let error = |stream: &[u8]| decode_in_pieces(stream, &[]).1;
        let http = error(b"GET / HTTP/1.1\r\n").unwrap();
        assert!(http.is_http_get());
        assert_eq!(http, FrameError::BadMagic(*b"GET / H"));
        assert_eq!(error(b"GET /"), None);
        assert_eq!(error(b"hrpc\x04\0\0"), Some(FrameError::BadVersion(4)));
        assert_eq!(error(b"hrpc\x09\0\0\xff\xff\xff\xfe"), Some(FrameError::Negative(-2)));
        assert_eq!(error(b"hrpc\x09\0\0\0\0\0\x65"), Some(FrameError::Oversize { length: 101, limit: 100 }));
        assert_eq!(error(b"hrpc\x09\0\0\0\0\0\x64"), None);
    }

    #[test]
    fn a_bad_delimited_length_changes_nothing() {
        let mut packet = Bytes::from_static(&[5, 1, 2]);
        assert_eq!(split_delimited(&mut packet), Err(WireError::Truncated));
        assert_eq!(packet.len(), 3);
    }

    #[test]
    fn packets_share_the_receive_buffer() {
        let mut decoder = Decoder::packets(1 << 20);
        put_packet(decoder.buffer(), |out| out.put_bytes(7, 1000));
        let body = decoder.buffer()[4..].as_ptr();
        let Ok(Some(Incoming::Packet(packet))) = decoder.next_incoming() else { panic!("no packet") };
        assert_eq!((packet.len(), packet.as_ptr()), (1000, body));
    }
}
