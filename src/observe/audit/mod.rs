//! Purpose: the audit log: one line for each operation of a client, made where the operation ended, written by a thread of its own.
//! Called by: server (events), the binary (opens it).
//! Calls: vocab, the system's files.
//! Never: decides what is audited; loses a line while the process lives: whoever finds the queue full waits, as in Hadoop.
//! Invariants: lines are written in the order in which they were handed over; what is handed over has passed the fence.

mod appender;
mod layout;
mod line;

pub use appender::{Appender, Place, Target};
pub use layout::Layout;
pub use line::{Event, Owner, escaped};

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Most bytes that wait for the thread; who has more waits too.
const QUEUE_BYTES_MAX: usize = 8 << 20;
/// How long lines gather under load before the thread looks again: it writes once per batch then and not once per line.
const GATHER: Duration = Duration::from_millis(2);
/// Room for a usual line.
const LINE_BYTES: usize = 256;
/// Lines in a batch from which on there is load.
const BUSY: usize = 16;

/// Level of a line, as far as audit lines have one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Almost all.
    Info,
    /// Commands of `dfs.namenode.audit.log.debug.cmdlist`: written only where the logger is open that far.
    Debug,
}

impl Level {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Debug => "DEBUG",
        }
    }
}

/// What lines say and which are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The logger writes lines of level DEBUG too.
    pub debug: bool,
    /// Commands whose lines are of level DEBUG (`dfs.namenode.audit.log.debug.cmdlist`).
    pub debug_commands: BTreeSet<String>,
    /// Lines have a column for the tracking id of the caller's token (`dfs.namenode.audit.log.token.tracking.id`). It is empty where callers
    /// have none.
    pub tracking_id: bool,
    /// Lines tell the caller's port (`dfs.namenode.audit.log.with.remote.port`); seen only with `caller_context`.
    pub remote_port: bool,
    /// Lines end in the caller context (`hadoop.caller.context.enabled`).
    pub caller_context: bool,
    /// Most characters of a caller context (`hadoop.caller.context.max.size`).
    pub context_chars_max: usize,
    /// Longest signature of a caller context that is shown, in bytes (`hadoop.caller.context.signature.max.size`).
    pub signature_bytes_max: usize,
    /// What separates the parts of a caller context (`hadoop.caller.context.separator`).
    pub context_separator: String,
}

/// A line that was not handed over yet: what it tells of is not durable.
#[derive(Debug)]
pub struct Line {
    level: Level,
    text: Vec<u8>,
}

/// What waits for the thread.
#[derive(Default)]
struct Queue {
    /// Messages one after another.
    text: Vec<u8>,
    /// Of each: when it happened (milliseconds since 1970), level, where it ends in `text`.
    ends: Vec<(i64, Level, usize)>,
    /// Lines that were ever put in.
    handed: u64,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    emptied: Condvar,
    written: AtomicU64,
}

/// The audit log, open or not.
pub struct AuditLog {
    options: Options,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl AuditLog {
    /// One that is not kept: nothing is made of any event.
    pub fn off() -> AuditLog {
        AuditLog { options: Options::default(), shared: Arc::default(), thread: None }
    }

    /// Opens the targets and starts the thread. Without targets it is as [`AuditLog::off`].
    ///
    /// # Errors
    /// A file that cannot be opened, with its path; no thread.
    pub fn open(options: Options, targets: Vec<Target>) -> io::Result<AuditLog> {
        if targets.is_empty() {
            return Ok(AuditLog::off());
        }
        let mut appenders = targets.into_iter().map(Appender::open).collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let write = move || {
            let mut busy = false;
            while let Some(lines) = of_thread.write_batch(&mut appenders, busy) {
                busy = lines >= BUSY;
            }
        };
        let thread = std::thread::Builder::new().name("audit".to_owned()).spawn(write)?;
        Ok(AuditLog { options, shared, thread: Some(thread) })
    }

    /// Whether events are wanted at all: who makes them asks first.
    pub fn is_on(&self) -> bool {
        self.thread.is_some()
    }

    /// A caller's context as lines show it: cut, with its signature behind it if that is short enough.
    pub fn context(&self, context: &str, signature: Option<&[u8]>) -> String {
        let cut = context.char_indices().nth(self.options.context_chars_max).map_or(context.len(), |(at, _)| at);
        let signature = signature.filter(|s| !s.is_empty() && s.len() <= self.options.signature_bytes_max);
        let signature = signature.map(|s| format!(":{}", String::from_utf8_lossy(s)));
        format!("{}{}", &context[..cut], signature.unwrap_or_default())
    }

    /// Lines written so far.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Returns when all that was handed over is written.
    pub fn flush(&self) {
        let mut queue = self.shared.queue.lock();
        while self.is_on() && self.written() < queue.handed && !queue.closed {
            self.shared.emptied.wait(&mut queue);
        }
    }

    /// Hands over the line of an event that happened at `now_ms` (milliseconds since 1970). Waits while the queue is full.
    pub fn log(&self, now_ms: i64, event: &Event<'_>) {
        if let Some(level) = self.level(event) {
            self.put(now_ms, level, |text| line::write(text, event, &self.options));
        }
    }

    /// The line of an event, to be handed over later; `None` if it is not wanted.
    pub fn line(&self, event: &Event<'_>) -> Option<Line> {
        let level = self.level(event)?;
        let mut text = Vec::with_capacity(LINE_BYTES);
        line::write(&mut text, event, &self.options);
        Some(Line { level, text })
    }

    /// Hands over a line of [`AuditLog::line`]. The rest is as with [`AuditLog::log`].
    pub fn hand_over(&self, now_ms: i64, line: &Line) {
        self.put(now_ms, line.level, |text| text.extend_from_slice(&line.text));
    }

    fn level(&self, event: &Event<'_>) -> Option<Level> {
        if !self.is_on() {
            return None;
        }
        let debug = self.options.debug_commands.contains(event.command);
        if debug { self.options.debug.then_some(Level::Debug) } else { Some(Level::Info) }
    }

    fn put(&self, now_ms: i64, level: Level, write: impl FnOnce(&mut Vec<u8>)) {
        let mut queue = self.shared.queue.lock();
        while queue.text.len() >= QUEUE_BYTES_MAX {
            self.shared.emptied.wait(&mut queue);
        }
        write(&mut queue.text);
        let end = queue.text.len();
        queue.ends.push((now_ms, level, end));
        queue.handed += 1;
        if queue.ends.len() == 1 {
            self.shared.filled.notify_one();
        }
    }
}

impl Shared {
    /// Waits for lines and writes them; how many. `None` when the log is closed and nothing is left.
    fn write_batch(&self, appenders: &mut [Appender], busy: bool) -> Option<usize> {
        let mut queue = self.queue.lock();
        while queue.ends.is_empty() && !queue.closed {
            self.filled.wait(&mut queue);
        }
        if busy && !queue.closed && queue.text.len() < QUEUE_BYTES_MAX / 2 {
            drop(queue);
            std::thread::sleep(GATHER);
            queue = self.queue.lock();
        }
        let (text, ends, closed) = (mem::take(&mut queue.text), mem::take(&mut queue.ends), queue.closed);
        drop(queue);
        let mut from = 0;
        for (time, level, end) in &ends {
            let message = &text[from..*end];
            appenders.iter_mut().for_each(|appender| appender.add(*time, *level, message));
            from = *end;
        }
        appenders.iter_mut().for_each(Appender::flush);
        self.written.fetch_add(ends.len() as u64, Ordering::Relaxed);
        // under the lock, so that nobody begins to wait just now
        let queue = self.queue.lock();
        self.emptied.notify_all();
        drop(queue);
        (!closed || !ends.is_empty()).then_some(ends.len())
    }
}

impl Drop for AuditLog {
    /// What was handed over is written before the log is gone.
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            eprintln!("the thread of the audit log has failed");
        }
    }
}

#[cfg(test)]
mod tests;
