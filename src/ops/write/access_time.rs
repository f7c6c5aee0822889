//! The access time that reading a file leaves behind (getBlockLocations). Logged lazily: nobody waits for it.

use crate::{Operation, Turn, View, Write};
use edit::Record;
use record::{InodeHandle, KindTag};
use std::borrow::Cow;
use vocab::{InodeId, Refusal, TimeMs};

/// Sets the access time of a file to now, if it is still there and the old one is older than the precision.
#[derive(Clone, Copy, Debug)]
pub struct TouchAccessTime {
    /// The file.
    pub file: InodeId,
}

impl View<'_> {
    /// Whether reading a file now should leave a new access time. Not in safe mode, where nothing is written.
    pub fn wants_access_time(&self, file: InodeHandle) -> bool {
        let precision = self.settings.access_time_precision_ms;
        let old = self.state.store.inode(file).atime;
        precision != 0
            && !self.state.blocks.safe_mode.is_on()
            && self.now.wall.0 > old.0.saturating_add_unsigned(precision)
    }
}

impl Write for TouchAccessTime {
    type Prepared = ();
    type Reply = ();
    const OPERATION: Operation = Operation::GetBlockLocations;

    fn prepare(&self, _view: &View<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    fn run(&self, turn: &mut Turn<'_>, (): ()) -> Result<(), Refusal> {
        let view = turn.view();
        let store = &view.state.store;
        let file = view.state.tree.find(store, self.file).filter(|f| store.kind(*f) == KindTag::File);
        // while a snapshot above is being deleted, none is noted: the next reader leaves one
        let waits = |f: &InodeHandle| view.state.tree.waits_for_cleanup(store, *f);
        if let Some(file) = file.filter(|f| view.wants_access_time(*f) && !waits(f)) {
            let path = view.state.tree.path_of(store, file);
            let atime = view.now.wall;
            turn.log_lazy(Record::Times { path: Cow::Owned(path), mtime: TimeMs(-1), atime });
        }
        Ok(())
    }
}
