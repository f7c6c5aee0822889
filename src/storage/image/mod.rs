//! Purpose: fsimage files: format, load into a state, save from a state, digest and choice of the newest copy.
//! Called by: the binary's node assembly (start), engine (saveNamespace), storage (format).
//! Calls: state and namespace (build and walk), edit's neighbours in vocab, hadoop-proto (wire cursor), os (files).
//! Never: drops what it does not understand: an unknown section, codec or feature is refused by name before anything is written.
//! Invariants: a state is returned only after the digest of the whole file was compared; a file gets its final name only after its content
//! and digest are durable.

mod caches;
mod compress;
mod cut;
pub(crate) mod digest;
mod features;
pub(crate) mod file;
mod inode;
mod input;
pub mod legacy;
mod links;
mod load;
mod md5sum;
mod open_files;
mod past;
mod policies;
mod records;
mod save;
mod stages;
mod stream;
mod strings;
mod summary;
mod whole;

pub use compress::Codec;
pub use digest::{Digest, read_digest_file};
pub use file::{
    CopyError, Failed, Newest, SaveError, Saved, all, all_of_both_kinds, all_rollback, give_names, load_copies, newest,
    save, save_rollback, save_unnamed, save_with,
};
pub use input::{FileInput, Input};
pub use load::{Loaded, Loading, load, load_input};
pub use save::{SaveContext, SaveOptions, SubSections, encode, encode_with};
pub use stream::SectionReader;
pub use strings::{Kind as StringKind, StringTables};
pub use summary::{ImageError, MAGIC, Section, SectionName, Summary};
