//! The first seven bytes of a connection: magic, version, service class, authentication protocol; and what other callers than ours get.

use crate::call::RemoteException;
use crate::reply::{self, IPC_VERSION, ReplyIds};
use bytes::{Buf, BufMut, BytesMut};

const MAGIC: &[u8; 4] = b"hrpc";
const LENGTH: usize = 7;
const AUTH_NONE: i8 = 0;
const AUTH_SASL: i8 = -33;

/// What the header said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handshake {
    /// More bytes are needed.
    Incomplete,
    /// Go on; whether a SASL exchange comes first.
    Welcome { sasl: bool },
    /// The output holds what there is to say, then the connection closes.
    Refused,
}

/// Takes the connection header off `input`, if it is there; a refusal is written to `output` in the form its reader understands.
pub(crate) fn read(input: &mut BytesMut, output: &mut BytesMut) -> Handshake {
    let Some(&[a, b, c, d, version, _service_class, auth]) = input.first_chunk::<LENGTH>() else {
        return Handshake::Incomplete;
    };
    input.advance(LENGTH);
    let (magic, version, auth) = ([a, b, c, d], version as i8, auth as i8);
    if &magic == b"GET " {
        output.put_slice(HTTP_HINT.as_bytes());
        return Handshake::Refused;
    }
    if &magic != MAGIC || version != IPC_VERSION as i8 {
        refuse_version(version, output);
        return Handshake::Refused;
    }
    match auth {
        AUTH_NONE => Handshake::Welcome { sasl: false },
        AUTH_SASL => Handshake::Welcome { sasl: true },
        other => {
            reply::error(output, &ReplyIds::NONE, None, &RemoteException::auth_protocol(other));
            Handshake::Refused
        }
    }
}

const HTTP_HINT: &str = concat!(
    "HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n",
    "It looks like you are making an HTTP request to a Hadoop IPC port. ",
    "This is not the correct port for the web interface on this daemon.\r\n"
);

/// Versions 9 and up read the present form; 3 to 8 a call id and a status of -1 and two strings; 2 a call id, a flag and two strings;
/// others nothing.
fn refuse_version(version: i8, output: &mut BytesMut) {
    let error = RemoteException::ipc_version(IPC_VERSION, version);
    match version {
        9.. => return reply::error(output, &ReplyIds::NONE, None, &error),
        3..=8 => output.put_slice(&[0xff; 8]),
        2 => output.put_slice(&[0, 0, 0, 0, 1]),
        _ => return,
    }
    for text in [&*error.class, &*error.message] {
        output.put_u32(text.len() as u32);
        output.put_slice(text.as_bytes());
    }
}
