//! The INODE_DIR section into links: each part by a worker, with the child lists as flat lists of handles for the one who enters them.

use super::cut::{Part, Place, Records};
use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Value, WireError};
use namespace::build::BuildError;
use namespace::children;
use record::{InodeHandle, Linker};
use std::ops::Range;
use vocab::InodeId;
use vocab::path::compare_names;

/// Ids that are looked up, and inodes and names that are asked for, before the first of them is looked at: their waits for memory overlap, and
/// what has come stays in the nearer caches.
const TOGETHER: usize = 512;
/// Children of one directory that are linked by one thread; of a larger one several share them.
const SHARE: usize = 1 << 14;

/// Child lists of one part.
#[derive(Default)]
pub(super) struct Linked {
    pub(super) place: Place,
    /// Directories with the number of their children.
    pub(super) parents: Vec<(InodeHandle, u32)>,
    pub(super) children: Vec<InodeHandle>,
    /// Of each child.
    pub(super) tags: Vec<u8>,
    pub(super) error: Option<ImageError>,
}

impl Linked {
    /// Forgets all; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.parents.clear();
        self.children.clear();
        self.tags.clear();
        self.error = None;
    }
}

fn content(what: String) -> ImageError {
    ImageError::Content { section: "INODE_DIR", what }
}
pub(super) fn build(error: &BuildError) -> ImageError {
    content(error.to_string())
}

/// Links what parts list.
pub(super) struct LinkWorker<'l, 's> {
    linker: &'l Linker<'s>,
    root: InodeHandle,
    /// References by their place in the INODE_REFERENCE section.
    references: &'l [InodeHandle],
    threads: usize,
    /// Directories that wait to be linked.
    waiting: Vec<Waiting>,
    /// Of each of those its id, then its children.
    ids: Vec<i64>,
    /// Of each of those the places of children that are references.
    others: Vec<u64>,
    found: Vec<Option<InodeHandle>>,
}

/// A directory as parsed.
struct Waiting {
    id: i64,
    /// Its children with an id, and those that are references.
    ids: usize,
    others: usize,
}

impl<'l, 's> LinkWorker<'l, 's> {
    /// `threads` may help with a large directory.
    pub(super) fn new(
        linker: &'l Linker<'s>,
        root: InodeHandle,
        references: &'l [InodeHandle],
        threads: usize,
    ) -> LinkWorker<'l, 's> {
        let (waiting, ids, others, found) = Default::default();
        LinkWorker { linker, root, references, threads, waiting, ids, others, found }
    }

    /// Links one part, up to its first error.
    pub(super) fn link(&mut self, part: &Part, out: &mut Linked) {
        out.clear();
        out.place = part.place;
        self.forget();
        out.error = self.part(part, out).err();
    }

    fn part(&mut self, part: &Part, out: &mut Linked) -> Result<(), ImageError> {
        let mut records = part.records();
        loop {
            let next = match records.next() {
                Ok(Some(message)) => self.parse(&records, message).map(|()| true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            if !matches!(next, Ok(true)) || self.ids.len() >= TOGETHER {
                self.waiting(out)?;
            }
            if !next? {
                return Ok(());
            }
        }
    }

    /// Links the directories that wait.
    fn waiting(&mut self, out: &mut Linked) -> Result<(), ImageError> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut found = std::mem::take(&mut self.found);
        let linker = self.linker;
        let look = |ids: &[i64], found: &mut Vec<_>| linker.find_each(ids, |inode| found.push(inode));
        if self.is_shared(self.ids.len()) {
            let shares = self.shared(self.ids.len(), &|range: Range<usize>| {
                let mut found = Vec::with_capacity(range.len());
                look(&self.ids[range], &mut found);
                Ok(found)
            })?;
            found.extend(shares.into_iter().flatten());
        } else {
            look(&self.ids, &mut found);
            found.iter().flatten().for_each(|inode| linker.prefetch_name(*inode));
        }
        let (mut ids, mut others) = (0, 0);
        for directory in &waiting {
            let (own, rest) = (ids..ids + 1 + directory.ids, others..others + directory.others);
            (ids, others) = (own.end, rest.end);
            self.directory(directory.id, &self.ids[own.clone()], &found[own], &self.others[rest], out)?;
        }
        (self.waiting, self.found) = (waiting, found);
        self.forget();
        Ok(())
    }
    /// No directory waits any more; the memory is kept.
    fn forget(&mut self) {
        self.waiting.clear();
        self.ids.clear();
        self.others.clear();
        self.found.clear();
    }

    /// Links one directory: it and its children as found by their ids, and the places of those that are references.
    fn directory(
        &self,
        parent: i64,
        ids: &[i64],
        found: &[Option<InodeHandle>],
        others: &[u64],
        out: &mut Linked,
    ) -> Result<(), ImageError> {
        let missing = |what: &str, id: &dyn std::fmt::Display| {
            content(format!("directory {parent} needs {what} {id}, which the image does not have"))
        };
        let first = out.children.len();
        let directory = found[0].ok_or_else(|| missing("inode", &parent))?;
        for (id, inode) in ids.iter().zip(found).skip(1) {
            out.children.push(inode.ok_or_else(|| missing("inode", id))?);
        }
        for at in others {
            let reference = usize::try_from(*at).ok().and_then(|at| self.references.get(at));
            out.children.push(*reference.ok_or_else(|| missing("reference", at))?);
        }
        if !self.linker.is_directory(directory) {
            return Err(build(&BuildError::NotADirectory(InodeId(parent))));
        }
        let children = &mut out.children[first..];
        if !others.is_empty() {
            children.sort_by(|a, b| compare_names(self.linker.name(*a), self.linker.name(*b)));
        }
        let (children, parent) = (&*children, InodeId(parent));
        if self.is_shared(children.len()) {
            let tags = self.shared(children.len(), &|range| {
                let mut tags = Vec::with_capacity(range.len());
                self.adopt(parent, directory, children, range, &mut tags).map(|()| tags)
            })?;
            out.tags.extend(tags.into_iter().flatten());
        } else {
            self.adopt(parent, directory, children, 0..children.len(), &mut out.tags)?;
        }
        out.parents.push((directory, children.len() as u32));
        Ok(())
    }

    fn is_shared(&self, children: usize) -> bool {
        self.threads > 1 && children > SHARE
    }
    /// Has several threads work on shares of so many children; the error of the lowest share is the one told.
    fn shared<T: Send>(
        &self,
        children: usize,
        work: &(dyn Fn(Range<usize>) -> Result<T, ImageError> + Sync),
    ) -> Result<Vec<T>, ImageError> {
        let share = children.div_ceil(self.threads).max(1);
        std::thread::scope(|scope| {
            let begin = |from: usize| scope.spawn(move || work(from..(from + share).min(children)));
            let running: Vec<_> = (0..children).step_by(share).map(begin).collect();
            // all are waited for, whatever the first ones say
            let done: Vec<_> = running.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            done.into_iter().map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Lets the directory of a message wait, unless it is malformed.
    fn parse(&mut self, records: &Records<'_>, message: &[u8]) -> Result<(), ImageError> {
        let (ids, others) = (self.ids.len(), self.others.len());
        self.ids.push(0);
        let parsed = self.fields(message);
        if let Err(error) = parsed {
            self.ids.truncate(ids);
            self.others.truncate(others);
            return Err(records.wire(error));
        }
        let id = self.ids[ids];
        self.waiting.push(Waiting { id, ids: self.ids.len() - ids - 1, others: self.others.len() - others });
        Ok(())
    }
    fn fields(&mut self, message: &[u8]) -> Result<(), WireError> {
        let directory = self.ids.len() - 1;
        let mut cursor = Cursor::new(message);
        while let Some(field) = cursor.field()? {
            match field {
                (1, Value::Varint(v)) => self.ids[directory] = v as i64,
                (2, Value::Varint(v)) => self.ids.push(v as i64),
                (3, Value::Varint(v)) => self.others.push(v),
                (number @ (2 | 3), Value::Bytes(packed)) => {
                    let mut ids = Cursor::new(packed);
                    while !ids.is_empty() {
                        let value = ids.varint()?;
                        if number == 2 { self.ids.push(value as i64) } else { self.others.push(value) }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives children of a range their parent. They must come in order, also behind the one before them. Appends their tags.
    fn adopt(
        &self,
        parent: InodeId,
        directory: InodeHandle,
        children: &[InodeHandle],
        range: Range<usize>,
        tags: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        let mut before = range.start.checked_sub(1).map(|at| self.linker.name(children[at]));
        for children in children[range].chunks(TOGETHER) {
            // of a few they were asked for already
            if children.len() == TOGETHER {
                children.iter().for_each(|child| self.linker.prefetch(*child));
                children.iter().for_each(|child| self.linker.prefetch_name(*child));
            }
            for child in children {
                let name = self.linker.name(*child);
                if before.is_some_and(|before| !compare_names(before, name).is_lt()) {
                    return Err(build(&BuildError::Order(parent)));
                }
                if *child == self.root || !self.linker.adopt(*child, directory) {
                    return Err(build(&BuildError::TwoParents(self.linker.id(*child))));
                }
                tags.push(children::tag(name));
                before = Some(name);
            }
        }
        Ok(())
    }
}
