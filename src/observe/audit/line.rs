//! One audit line, as Hadoop's `FSNamesystemAuditLogger` builds it: fields with tabs between them.

use super::Options;
use std::io::Write as _;
use std::sync::Arc;
use vocab::{AuthenticationMethod, Caller, Mode};

/// Owner, group and mode of what an operation was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Owning user.
    pub user: Arc<str>,
    /// Owning group.
    pub group: Arc<str>,
    /// Permission bits.
    pub mode: Mode,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Whether the caller was allowed to.
    pub allowed: bool,
    /// Who asked.
    pub caller: &'a Caller,
    /// `cmd=`.
    pub command: &'a str,
    /// `src=`; `null` if there is none.
    pub source: Option<&'a str>,
    /// `dst=`; `null` if there is none.
    pub target: Option<&'a str>,
    /// `perm=`; `null` if there is none.
    pub owner: Option<&'a Owner>,
    /// `proto=`: `rpc` or `webhdfs`; `null` where Hadoop has none.
    pub protocol: Option<&'a str>,
}

/// Appends the line, without its end.
pub(super) fn write(out: &mut Vec<u8>, event: &Event<'_>, options: &Options) {
    let caller = event.caller;
    let text = |out: &mut Vec<u8>, name: &str, value: Option<&str>| {
        out.extend_from_slice(name.as_bytes());
        match value {
            Some(value) => escaped(out, value),
            None => out.extend_from_slice(b"null"),
        }
    };
    out.extend_from_slice(if event.allowed { b"allowed=true\tugi=" } else { b"allowed=false\tugi=" });
    put(out, |out| match &caller.real_user {
        // a token vouches for both
        Some(real) if caller.method == AuthenticationMethod::Token => {
            write!(out, "{} (auth:TOKEN) via {real} (auth:TOKEN)", caller.user)
        }
        Some(real) => write!(out, "{} (auth:PROXY) via {real} (auth:{})", caller.user, method(caller.method)),
        None => write!(out, "{} (auth:{})", caller.user, method(caller.method)),
    });
    put(out, |out| write!(out, "\tip=/{}\tcmd={}", caller.address.ip().to_canonical(), event.command));
    text(out, "\tsrc=", event.source);
    text(out, "\tdst=", event.target);
    match event.owner {
        None => out.extend_from_slice(b"\tperm=null"),
        Some(owner) => put(out, |out| write!(out, "\tperm={}:{}:{}", owner.user, owner.group, owner.mode)),
    }
    if options.tracking_id {
        out.extend_from_slice(b"\ttrackingId=");
    }
    put(out, |out| write!(out, "\tproto={}", event.protocol.unwrap_or("null")));
    if options.caller_context {
        context(out, caller, options);
    }
}

/// The caller's own words and, if it is wanted, the port it called from.
fn context(out: &mut Vec<u8>, caller: &Caller, options: &Options) {
    let said = caller.context.as_deref().unwrap_or("");
    let mut whole = said.to_owned();
    if options.remote_port && !said.contains("clientPort:") {
        if !whole.is_empty() {
            whole += &options.context_separator;
        }
        whole += &format!("clientPort:{}", caller.address.port());
    }
    if whole.is_empty() {
        return;
    }
    out.extend_from_slice(b"\tcallerContext=");
    escaped(out, &whole);
}

/// Vectors take everything.
fn put(out: &mut Vec<u8>, f: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
    f(out).expect("writing to memory");
}

/// The name of Hadoop's `AuthenticationMethod`.
fn method(method: AuthenticationMethod) -> &'static str {
    match method {
        AuthenticationMethod::Simple => "SIMPLE",
        AuthenticationMethod::Kerberos => "KERBEROS",
        AuthenticationMethod::Token => "TOKEN",
        AuthenticationMethod::Proxy => "PROXY",
    }
}

/// Appends a text as a Java literal would have it (`StringEscapeUtils.escapeJava`): one event is one line of ASCII, whatever its paths are.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    let plain = |c: char| matches!(c, ' '..='\x7f') && c != '"' && c != '\\';
    if text.chars().all(plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\r' => out.extend_from_slice(b"\\r"),
            c if plain(c) => out.push(c as u8),
            c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| put(out, |out| write!(out, "\\u{unit:04X}"))),
        }
    }
}
