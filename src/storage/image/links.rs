//! The INODE_DIR section into links: each part by a worker, with the child lists as flat lists of handles for the one who enters them.

use super::cut::{Part, Place, Records};
use super::summary::ImageError;
use hadoop_proto::wire::{Cursor, Value};
use namespace::build::BuildError;
use namespace::children;
use record::{InodeHandle, Linker};
use std::num::NonZeroU32;
use std::ops::Range;
use vocab::InodeId;
use vocab::path::compare_names;

/// Children whose memory is asked for ahead of use.
const AHEAD: usize = 8;
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
    ids: Vec<i64>,
    others: Vec<u64>,
    /// The group of ids looked at last: children are often made one after the other.
    near: Option<(i64, NonZeroU32)>,
}

impl<'l, 's> LinkWorker<'l, 's> {
    /// `threads` may help with a large directory.
    pub(super) fn new(
        linker: &'l Linker<'s>,
        root: InodeHandle,
        references: &'l [InodeHandle],
        threads: usize,
    ) -> LinkWorker<'l, 's> {
        LinkWorker { linker, root, references, threads, ids: Vec::new(), others: Vec::new(), near: None }
    }

    /// Links one part, up to its first error.
    pub(super) fn link(&mut self, part: &Part, out: &mut Linked) {
        out.clear();
        out.place = part.place;
        let mut records = part.records();
        loop {
            let done = match records.next() {
                Ok(Some(message)) => self.directory(&records, message, out),
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                out.error = Some(error);
                break;
            }
        }
    }

    fn directory(&mut self, records: &Records<'_>, message: &[u8], out: &mut Linked) -> Result<(), ImageError> {
        let parent = self.parse(records, message)?;
        let missing = |id: i64| content(format!("directory {parent} needs inode {id}, which the image does not have"));
        let linker = self.linker;
        let find = |near: &mut Option<(i64, NonZeroU32)>, id: i64| linker.find(near, id).ok_or_else(|| missing(id));
        let (directory, first) = (find(&mut self.near, parent)?, out.children.len());
        if self.is_shared(self.ids.len()) {
            let found = self.shared(self.ids.len(), &|range: Range<usize>| {
                let mut near = None;
                let find = |id: &i64| find(&mut near, *id).inspect(|child| linker.prefetch(*child));
                self.ids[range].iter().map(find).collect::<Result<Vec<_>, _>>()
            })?;
            out.children.extend(found.into_iter().flatten());
        } else {
            for id in &self.ids {
                let child = find(&mut self.near, *id)?;
                self.linker.prefetch(child);
                out.children.push(child);
            }
        }
        for at in &self.others {
            let reference = usize::try_from(*at).ok().and_then(|at| self.references.get(at));
            out.children.push(*reference.ok_or_else(|| {
                content(format!("directory {parent} needs reference {at}, which the image does not have"))
            })?);
        }
        if !self.linker.is_directory(directory) {
            return Err(build(&BuildError::NotADirectory(InodeId(parent))));
        }
        let children = &mut out.children[first..];
        if !self.others.is_empty() {
            children.sort_by(|a, b| compare_names(self.linker.name(*a), self.linker.name(*b)));
        }
        if self.is_shared(children.len()) {
            let children = &*children;
            let tags = self.shared(children.len(), &|range| {
                let mut tags = Vec::with_capacity(range.len());
                self.check_order(parent, children, range, &mut tags).map(|()| tags)
            })?;
            out.tags.extend(tags.into_iter().flatten());
            self.shared(children.len(), &|range| self.adopt(directory, &children[range]))?;
        } else {
            self.check_order(parent, children, 0..children.len(), &mut out.tags)?;
            self.adopt(directory, children)?;
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

    fn adopt(&self, directory: InodeHandle, children: &[InodeHandle]) -> Result<(), ImageError> {
        for child in children {
            if *child == self.root || !self.linker.adopt(*child, directory) {
                return Err(build(&BuildError::TwoParents(self.linker.id(*child))));
            }
        }
        Ok(())
    }

    fn parse(&mut self, records: &Records<'_>, message: &[u8]) -> Result<i64, ImageError> {
        self.ids.clear();
        self.others.clear();
        let mut parent = 0;
        let mut cursor = Cursor::new(message);
        while let Some(field) = cursor.field().map_err(|e| records.wire(e))? {
            match field {
                (1, Value::Varint(v)) => parent = v as i64,
                (2, Value::Varint(v)) => self.ids.push(v as i64),
                (3, Value::Varint(v)) => self.others.push(v),
                (number @ (2 | 3), Value::Bytes(packed)) => {
                    let mut ids = Cursor::new(packed);
                    while !ids.is_empty() {
                        let value = ids.varint().map_err(|e| records.wire(e))?;
                        if number == 2 { self.ids.push(value as i64) } else { self.others.push(value) }
                    }
                }
                _ => {}
            }
        }
        Ok(parent)
    }

    /// Whether the children in a range come in order, also behind the one before them. Appends their tags.
    fn check_order(
        &self,
        parent: i64,
        children: &[InodeHandle],
        range: Range<usize>,
        tags: &mut Vec<u8>,
    ) -> Result<(), ImageError> {
        let mut before = range.start.checked_sub(1).map(|at| self.linker.name(children[at]));
        for at in range {
            if let Some(later) = children.get(at + AHEAD) {
                self.linker.prefetch_name(*later);
            }
            let name = self.linker.name(children[at]);
            if before.is_some_and(|before| !compare_names(before, name).is_lt()) {
                return Err(build(&BuildError::Order(InodeId(parent))));
            }
            tags.push(children::tag(name));
            before = Some(name);
        }
        Ok(())
    }
}
