//! Several journals as one: a batch counts when enough of them hold it.

use super::Observer;
use super::buffer::Batch;
use parking_lot::Mutex;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// One journal of a set: a directory, or a quorum of remote nodes. Each has a thread of its own, so a commit may take its time.
pub trait Target: Send + Debug {
    /// What messages call it.
    fn label(&self) -> &str;
    /// Writes a batch and makes it durable; returns only then. After an error it is not called again before a batch that begins with
    /// the start of a segment.
    ///
    /// # Errors
    /// The batch is not, or not wholly, durable.
    fn commit(&mut self, batch: &Batch) -> io::Result<()>;
    /// Bytes of records that a commit may have to take no more than a write into what is there and a sync of it.
    fn room(&self) -> usize {
        0
    }
}

/// A journal to be put into a set.
#[derive(Debug)]
pub struct Membership {
    /// The journal.
    pub target: Box<dyn Target>,
    /// Whether the set fails when this one does (`dfs.namenode.edits.dir.required`; shared journals always).
    pub required: bool,
}

/// State of a journal of a set, for status pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberStatus {
    /// What messages call it.
    pub label: String,
    /// Whether the set needs it.
    pub required: bool,
    /// Why it was dropped; `None` while it is in use.
    pub dropped: Option<String>,
}

/// The journals of a set and the rule for how many must work.
#[derive(Debug)]
pub(super) struct JournalSet {
    members: Vec<Member>,
    minimum: usize,
    restore: Arc<AtomicBool>,
    /// Whether a member was dropped or restored.
    changed: bool,
}

#[derive(Debug)]
struct Member {
    status: MemberStatus,
    target: Arc<Mutex<Box<dyn Target>>>,
    batches: Option<Sender<Arc<Batch>>>,
    results: Receiver<io::Result<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Member {
    fn new(membership: Membership) -> io::Result<Member> {
        let status =
            MemberStatus { label: membership.target.label().to_owned(), required: membership.required, dropped: None };
        let target = Arc::new(Mutex::new(membership.target));
        let (batches, work) = channel::<Arc<Batch>>();
        let (answer, results) = channel();
        let own = target.clone();
        let run = move || {
            for batch in work {
                if answer.send(own.lock().commit(&batch)).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("journal".to_owned()).spawn(run)?;
        Ok(Member { status, target, batches: Some(batches), results, thread: Some(thread) })
    }
    fn submit(&self, batch: &Arc<Batch>) -> io::Result<()> {
        let sent = self.batches.as_ref().is_some_and(|batches| batches.send(batch.clone()).is_ok());
        if sent { Ok(()) } else { Err(io::Error::other("the journal's thread has ended")) }
    }
    fn result(&self) -> io::Result<()> {
        self.results.recv().unwrap_or_else(|_| Err(io::Error::other("the journal's thread has ended")))
    }
    /// Whether this changed its status.
    fn settle(&mut self, result: io::Result<()>, observer: &dyn Observer) -> bool {
        match result {
            Ok(()) if self.status.dropped.take().is_some() => observer.restored(&self.status.label),
            Ok(()) => return false,
            Err(error) => {
                self.status.dropped = Some(error.to_string());
                observer.dropped(&self.status.label, &error);
            }
        }
        true
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl JournalSet {
    pub fn new(members: Vec<Membership>, minimum: usize, restore: Arc<AtomicBool>) -> io::Result<JournalSet> {
        Ok(JournalSet {
            members: members.into_iter().map(Member::new).collect::<io::Result<_>>()?,
            minimum,
            restore,
            changed: false,
        })
    }

    /// Makes a batch durable in every journal in use, all at the same time. One that fails is dropped; dropped ones join again with the
    /// start of a segment, if they may.
    ///
    /// # Errors
    /// Too few journals are left; the text says why.
    pub fn commit(&mut self, batch: &Arc<Batch>, observer: &dyn Observer) -> Result<(), String> {
        let rejoin = if self.restore.load(Ordering::Relaxed) { batch.from_start().map(Arc::new) } else { None };
        let work = |member: &Member| if member.status.dropped.is_none() { Some(batch.clone()) } else { rejoin.clone() };
        let mut asked: Vec<_> =
            self.members.iter_mut().filter_map(|member| work(member).map(|work| (member, work))).collect();
        // The first works on this thread: with one journal, nothing changes hands.
        let Some(((first, first_work), others)) = asked.split_first_mut() else { return self.enough() };
        let submitted: Vec<_> = others.iter().map(|(member, work)| member.submit(work)).collect();
        let result = first.target.lock().commit(first_work);
        let mut changed = first.settle(result, observer);
        for ((member, _), submitted) in others.iter_mut().zip(submitted) {
            let result = submitted.and_then(|()| member.result());
            changed |= member.settle(result, observer);
        }
        self.changed |= changed;
        self.enough()
    }

    /// Bytes of records whose commit is nothing out of the ordinary for any journal in use.
    pub fn room(&self) -> usize {
        let used = self.members.iter().filter(|member| member.status.dropped.is_none());
        used.map(|member| member.target.lock().room()).min().unwrap_or(0)
    }

    /// The rule of Hadoop's `NameNodeResourcePolicy`: every required journal, and of the others the minimum; with required ones only,
    /// these suffice.
    fn enough(&self) -> Result<(), String> {
        let lost = |member: &&Member| member.status.required && member.status.dropped.is_some();
        if let Some(member) = self.members.iter().find(lost) {
            return Err(format!("Error: flush failed for required journal ({})", member.status.label));
        }
        let (required, others): (Vec<_>, Vec<_>) = self.members.iter().partition(|member| member.status.required);
        let working = others.iter().filter(|member| member.status.dropped.is_none()).count();
        let enough = if others.is_empty() { !required.is_empty() } else { working >= self.minimum.max(1) };
        if enough { Ok(()) } else { Err("flush failed for too many journals".to_owned()) }
    }

    /// Whether [`JournalSet::status`] is another than at the last time.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
    pub fn status(&self) -> Vec<MemberStatus> {
        self.members.iter().map(|member| member.status.clone()).collect()
    }
}
