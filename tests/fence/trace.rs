//! What strace wrote (`-f -yy -xx`), as events in the order in which the tracer saw them.

/// What a system call is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A file's path.
    File(String),
    /// The other end of a TCP connection.
    Peer(String),
}

/// A system call that begins or ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Bytes begin to leave for a file (at an offset, where the call has one) or a peer. The number pairs it with its end.
    Write { call: usize, target: Target, bytes: Vec<u8>, offset: Option<u64> },
    /// A sync begins.
    Sync { call: usize, file: String },
    /// A call has returned this.
    End { call: usize, result: i64 },
}

/// How many syncs of files below `folder` threads have made that also sent something to a peer.
///
/// # Errors
/// A line that cannot be understood.
pub fn syncs_of_senders(text: &str, folder: &str) -> Result<usize, String> {
    let mut threads: std::collections::HashMap<&str, (bool, usize)> = std::collections::HashMap::new();
    for line in text.lines() {
        let (thread, rest) = line.split_once(' ').ok_or("no thread")?;
        let told = threads.entry(thread).or_default();
        match begin(rest.trim_start(), 0).flatten() {
            Some(Event::Write { target: Target::Peer(_), .. }) => told.0 = true,
            Some(Event::Sync { file, .. }) => told.1 += usize::from(file.starts_with(folder)),
            _ => {}
        }
    }
    Ok(threads.into_values().filter(|(sends, _)| *sends).map(|(_, syncs)| syncs).sum())
}

/// All events of a trace. Calls on other things than files and TCP connections are left out.
///
/// # Errors
/// A line that cannot be understood.
pub fn parse(text: &str) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    let mut unfinished: std::collections::HashMap<&str, Option<usize>> = std::collections::HashMap::new();
    let mut calls = 0;
    for (number, line) in text.lines().enumerate() {
        let bad = |what: &str| format!("line {}: {what}: {}", number + 1, &line[..line.len().min(200)]);
        let (thread, rest) = line.split_once(' ').ok_or_else(|| bad("no thread"))?;
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(resumed) = rest.strip_prefix("<... ") {
            let open = unfinished.remove(thread).ok_or_else(|| bad("resumed but never begun"))?;
            if let Some(call) = open {
                events.push(Event::End { call, result: result(resumed).ok_or_else(|| bad("no result"))? });
            }
            continue;
        }
        let (body, end) = match rest.strip_suffix("<unfinished ...>") {
            Some(body) => (body, None),
            None => (rest, Some(result(rest).ok_or_else(|| bad("no result"))?)),
        };
        calls += 1;
        let begun = begin(body, calls).ok_or_else(|| bad("not understood"))?;
        let known = begun.is_some();
        events.extend(begun);
        match end {
            Some(result) if known => events.push(Event::End { call: calls, result }),
            Some(_) => {}
            None => _ = unfinished.insert(thread, known.then_some(calls)),
        }
    }
    Ok(events)
}

/// The number behind the last ` = `; `?` (the process ended within the call) counts as a failure.
fn result(line: &str) -> Option<i64> {
    let text = line.rsplit_once(" = ")?.1;
    let number = text.split(' ').next()?;
    if number == "?" { Some(-1) } else { number.parse().ok() }
}

/// The beginning of a call: `name(fd<what>, ...`. `Some(None)` for calls on other things.
fn begin(body: &str, call: usize) -> Option<Option<Event>> {
    let (name, arguments) = body.split_once('(')?;
    let Some((_, annotated)) = arguments.split_once('<').filter(|(fd, _)| fd.bytes().all(|b| b.is_ascii_digit()))
    else {
        return Some(None); // a descriptor that is none: the call fails
    };
    let (target, rest) = match annotated.strip_prefix("TCP") {
        Some(tcp) => {
            let (pair, rest) = tcp.split_once(">, ").unwrap_or((tcp, ""));
            let Some((_, peer)) = pair.split_once("->") else { return Some(None) };
            (Target::Peer(peer.trim_end_matches(']').to_owned()), rest)
        }
        None => {
            let end = annotated.find(['>', '<'])?;
            let path = String::from_utf8(unhex(&annotated[..end])?).ok()?;
            if !path.starts_with('/') {
                return Some(None);
            }
            (Target::File(path), annotated[end + 1..].strip_prefix(", ").unwrap_or(""))
        }
    };
    if matches!(name, "fsync" | "fdatasync") {
        let Target::File(file) = target else { return Some(None) };
        return Some(Some(Event::Sync { call, file }));
    }
    let bytes = strings(rest)?;
    let offset = if name == "pwrite64" { rest.rsplit_once(", ").and_then(|(_, last)| number(last)) } else { None };
    Some(Some(Event::Write { call, target, bytes, offset }))
}

fn number(text: &str) -> Option<u64> {
    text.split([')', ' ']).next()?.parse().ok()
}

/// All quoted strings of the arguments, one after the other (one, or those of an iovec).
fn strings(arguments: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for quoted in arguments.split('"').skip(1).step_by(2) {
        bytes.extend(unhex(quoted)?);
    }
    Some(bytes)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    if !text.starts_with("\\x") {
        return Some(text.as_bytes().to_vec());
    }
    text.as_bytes()
        .chunks(4)
        .map(|chunk| match chunk {
            [b'\\', b'x', high, low] => {
                Some((char::from(*high).to_digit(16)? * 16 + char::from(*low).to_digit(16)?) as u8)
            }
            _ => None,
        })
        .collect()
}

#[test]
fn lines_of_a_trace() {
    let text = concat!(
        "12 pwrite64(6<\\x2f\\x65>, \"\\x68\\xff\", 2, 3) = 2\n",
        "12 fdatasync(6<\\x2f\\x65> <unfinished ...>\n",
        "13 writev(5<TCP:[127.0.0.1:1->127.0.0.1:2]>, [{iov_base=\"\\x61\", iov_len=1}, {iov_base=\"\\x62\", iov_len=1}], 2) = 2\n",
        "13 write(4<\\x70\\x69\\x70\\x65\\x3a\\x5b\\x31\\x5d>, \"\\x61\", 1) = 1\n",
        "12 <... fdatasync resumed>) = 0\n",
        "12 sendto(5<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"\\x63\", 1, MSG_NOSIGNAL, NULL, 0) = -1 EPIPE (Broken pipe)\n",
        "12 +++ exited with 0 +++\n",
    );
    let file = || "/e".to_owned();
    let peer = || Target::Peer("127.0.0.1:2".to_owned());
    let expected = [
        Event::Write { call: 1, target: Target::File(file()), bytes: b"h\xff".to_vec(), offset: Some(3) },
        Event::End { call: 1, result: 2 },
        Event::Sync { call: 2, file: file() },
        Event::Write { call: 3, target: peer(), bytes: b"ab".to_vec(), offset: None },
        Event::End { call: 3, result: 2 },
        Event::End { call: 2, result: 0 },
        Event::Write { call: 5, target: peer(), bytes: b"c".to_vec(), offset: None },
        Event::End { call: 5, result: -1 },
    ];
    assert_eq!(parse(text).unwrap(), expected);
    assert_eq!((syncs_of_senders(text, "/e"), syncs_of_senders(text, "/f")), (Ok(1), Ok(0)));
    assert!(parse("12 nonsense").is_err());
}
