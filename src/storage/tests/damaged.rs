//! The 593 damaged logs of tests/golden/edits: each gives what Hadoop 3.5.0 gives, or a refusal. What needs the namespace (inode counts) is not
//! looked at here.

#[path = "../../../tests/support/recipe.rs"]
#[allow(dead_code)]
mod recipe;

use os::disk::Open;
use os::{Os, durable};
use recipe::{Tree, Variant};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::journal::{Journal, JournalFailed, LocalJournal, Membership, Observer, Options, local};
use storage::{Directories, Location, Roles, StorageError, replay, select};
use vocab::Txid;

const MAX: usize = 50 << 20;

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/edits/3.5.0").join(path)
}

#[derive(Debug)]
struct Silent;

impl Observer for Silent {
    fn dropped(&self, _label: &str, _error: &io::Error) {}
    fn restored(&self, _label: &str) {}
    fn failed(&self, _failure: &JournalFailed) {}
}

fn no_md5(_content: &[u8]) -> String {
    panic!("no recipe of a log makes a digest")
}

/// Puts a variant on a simulated disk.
fn put(variant: &Variant, base: &BTreeMap<String, Vec<u8>>) -> Os {
    let tree = Tree::from_recipe(&variant.recipe, base, no_md5);
    let (os, _, _) = Os::simulated(7);
    for folder in &tree.folders {
        os.disk.create_directories(&Path::new("/").join(folder), 0o700).unwrap();
    }
    for (name, content) in &tree.files {
        let file = os.disk.open(&Path::new("/").join(name), Open::Truncate).unwrap();
        file.write_all_at(content, 0).unwrap();
    }
    if let Some(bytes) = variant.bytes {
        assert!(
            tree.files.values().any(|content| content.len() == bytes),
            "{}: the recipe gives another length",
            variant.id
        );
    }
    os
}

/// What a start does, as far as storage goes: directories, recovery, edits from transaction 1 on (the image is that of a format), the next
/// segment begun and ended.
fn start(os: &Os, directories: &[String]) -> Result<Txid, StorageError> {
    let roles = Roles { image: true, edits: true, required: false };
    let locations: Vec<_> = directories.iter().map(|d| Location { root: Path::new("/").join(d), roles }).collect();
    let opened = Directories::open(&locations, os)?;
    opened.formatted_info()?;
    let inspection = select::inspect(&*os.disk, &opened)?;
    let folders = opened.edits_folders();
    let recovery =
        local::recover(&*os.disk, &folders, MAX, local::Damage::Refused, |usable| opened.enough_edits(usable, 1))?;
    let usable: Vec<&Path> = folders
        .iter()
        .map(PathBuf::as_path)
        .filter(|folder| !recovery.unusable.iter().any(|(bad, _)| bad == folder))
        .collect();
    let segments = local::select(&*os.disk, &usable, Txid(1), inspection.seen)?;
    let last = replay::replay(&*os.disk, &segments, Txid(1), MAX, &mut |_| {}, &mut |_, _| Ok::<(), ()>(()));
    let last = last.map_err(|error| match error {
        replay::ReplayError::Storage(error) => error,
        replay::ReplayError::Apply { .. } => panic!("nothing is applied"),
    })?;
    let member = |folder: &PathBuf| Membership {
        target: Box::new(LocalJournal::new(os.disk.clone(), folder, "", 4096)),
        required: false,
    };
    let options = Options { seen: folders.clone(), ..Options::default() };
    let journal =
        Journal::open(folders.iter().map(member).collect(), last.next(), options, os, Arc::new(Silent)).unwrap();
    journal.close().unwrap();
    Ok(last)
}

fn files_after(os: &Os, directories: &[String]) -> String {
    let names = |directory: &String| {
        let mut names = os.disk.list(&Path::new("/").join(directory).join("current")).unwrap();
        names.sort();
        format!("{directory}: {}", names.join(" "))
    };
    let text = directories.iter().map(names).collect::<Vec<_>>().join(" | ");
    // Runs of ten or more zeros before a digit are shown as `0*`.
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("0000000000") {
        let run = rest[at..].len() - rest[at..].trim_start_matches('0').len();
        let digit = rest[at + run..].starts_with(|c: char| c.is_ascii_digit());
        shown.push_str(&rest[..at]);
        shown.push_str(if digit { "0*" } else { "0*0" });
        rest = &rest[at + run..];
    }
    shown + rest
}

/// Variants that Hadoop loads with what is left before the damage, though intact records follow it: those are lost without a word. We refuse.
fn refused_here_only(variant: &Variant) -> bool {
    variant.id.starts_with("inprogress-flip-")
        && (variant.id.ends_with("length-high") || variant.id.ends_with("op100-length-low"))
}

#[test]
fn every_damaged_log_gives_the_outcome_of_hadoop_or_a_refusal() {
    let base = recipe::read_folder(&golden("smallops/current"));
    let variants = recipe::variants(&std::fs::read_to_string(golden("damaged.tsv")).unwrap());
    assert_eq!(variants.len(), 593);
    let mut problems = Vec::new();
    let (mut same, mut safer, mut same_message) = (0, Vec::new(), 0);
    for variant in &variants {
        let os = put(variant, &base);
        match (start(&os, &variant.directories), variant.loaded) {
            (Ok(last), true) if Some(last.0) == variant.last_txid => {
                same += 1;
                let after = files_after(&os, &variant.directories);
                if after != variant.files_after {
                    problems.push(format!("{}: leaves {after}, not {}", variant.id, variant.files_after));
                }
            }
            (Ok(last), _) => {
                problems.push(format!("{}: loaded up to {last}, Hadoop: {:?}", variant.id, variant.last_txid))
            }
            (Err(_), true) => safer.push(variant.id.clone()),
            (Err(error), false) => {
                same += 1;
                same_message += usize::from(error.to_string().lines().next() == Some(variant.message.as_str()));
            }
        }
    }
    safer.retain(|id| !variants.iter().any(|variant| variant.id == *id && refused_here_only(variant)));
    println!("{same} as Hadoop, {same_message} of the refusals in the same words");
    assert!(problems.is_empty() && safer.is_empty(), "{}\nrefused here only: {safer:#?}", problems.join("\n"));
    assert!(same_message > 250, "{same_message}");
}

#[test]
fn a_refused_start_leaves_an_intact_log_as_it_was() {
    let base = recipe::read_folder(&golden("smallops/current"));
    let variants = recipe::variants(&std::fs::read_to_string(golden("damaged.tsv")).unwrap());
    for variant in variants.iter().filter(|variant| variant.id.contains("-flip-op54-") && !variant.loaded) {
        let os = put(variant, &base);
        let path = |os: &Os| os.disk.list(Path::new("/a/current")).unwrap();
        let before = path(&os);
        assert!(start(&os, &variant.directories).is_err());
        assert_eq!(path(&os), before, "{}", variant.id);
    }
}

#[test]
fn field_report_t58_an_open_segment_that_never_got_a_record() {
    // Bytes of the open segment after transaction 101, and what becomes of it; `None` refuses.
    let header = [&(-67i32).to_be_bytes()[..], &[0; 4]].concat();
    let padded = [header.clone(), vec![0xff; (1 << 20) - 8]].concat();
    let cases = [(vec![], Some("")), (header, Some(".empty")), (padded, Some(".empty")), (vec![0xff, 0xff], None)];
    for (content, becomes) in cases {
        let base = recipe::read_folder(&golden("smallops/current"));
        let variants = recipe::variants(&std::fs::read_to_string(golden("damaged.tsv")).unwrap());
        let os = put(&variants[0], &base);
        let open = Path::new("/a/current/edits_inprogress_0000000000000000102");
        os.disk.open(open, Open::CreateNew).unwrap().write_all_at(&content, 0).unwrap();
        durable::sync_parent(&*os.disk, open).unwrap();
        let result = start(&os, &["a".to_owned()]);
        let names = os.disk.list(Path::new("/a/current")).unwrap();
        let aside: Vec<_> = names.iter().filter(|name| name.contains("inprogress")).collect();
        match becomes {
            Some(suffix) => {
                assert_eq!(result.unwrap(), Txid(101));
                let expected: Vec<_> = (!suffix.is_empty())
                    .then(|| format!("edits_inprogress_0000000000000000102{suffix}"))
                    .into_iter()
                    .collect();
                assert_eq!(aside, expected.iter().collect::<Vec<_>>());
            }
            None => {
                let text = result.unwrap_err().to_string();
                assert!(text.contains("In-progress edit log file is corrupt"), "{text}");
                assert_eq!(aside, ["edits_inprogress_0000000000000000102.corrupt"]);
            }
        }
    }
}

#[test]
fn one_bad_byte_anywhere_in_an_open_segment_is_refused_or_costs_the_last_record_only() {
    let base = recipe::read_folder(&golden("smallops/current"));
    let segment = "edits_0000000000000000001-0000000000000000101";
    let bytes = &base[segment];
    let last_record = bytes.len() - 17;
    for at in 0..bytes.len() {
        // Another pattern for each place, never 0.
        let xor = (at * 151 % 255 + 1) as u8;
        let (os, _, _) = Os::simulated(7);
        os.disk.create_directories(Path::new("/a/current"), 0o700).unwrap();
        for (name, content) in &base {
            let mut content = content.clone();
            let open = name == segment;
            if open {
                content[at] ^= xor;
            }
            let name = if open { "edits_inprogress_0000000000000000001" } else { name };
            let file = os.disk.open(&Path::new("/a/current").join(name), Open::Truncate).unwrap();
            file.write_all_at(&content, 0).unwrap();
        }
        match start(&os, &["a".to_owned()]) {
            Err(_) => {}
            Ok(last) => {
                assert!(at >= last_record && last == Txid(100), "byte {at} xor {xor:#04x}: loaded up to {last}")
            }
        }
    }
}
