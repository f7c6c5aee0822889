//! What a peer gets that does not open its connection as Hadoop's clients of today do.

use crate::call::RemoteException;
use crate::reply::{self, ReplyIds};
use bytes::{BufMut, BytesMut};
use hadoop_proto::frame::{FrameError, VERSION};

const HTTP_HINT: &str = concat!(
    "HTTP/1.1 404 Not Found\r\nContent-type: text/plain\r\n\r\n",
    "It looks like you are making an HTTP request to a Hadoop IPC port. ",
    "This is not the correct port for the web interface on this daemon.\r\n"
);

/// Appends the answer to a connection that cannot be read (on), in the form its reader understands. Lengths out of bounds get none.
pub(crate) fn refuse(error: &FrameError, output: &mut BytesMut) {
    match error {
        error if error.is_http_get() => output.put_slice(HTTP_HINT.as_bytes()),
        // the byte where the version should be counts as the version, whatever was sent
        FrameError::BadMagic([_, _, _, _, version, ..]) | FrameError::BadVersion(version) => {
            refuse_version(*version as i8, output);
        }
        FrameError::Negative(_) | FrameError::Oversize { .. } => {}
    }
}

/// Versions 9 and up read the present form; 3 to 8 a call id and a status of -1 and two strings; 2 a call id, a flag and two strings;
/// others nothing.
fn refuse_version(version: i8, output: &mut BytesMut) {
    let error = RemoteException::ipc_version(VERSION, version);
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
