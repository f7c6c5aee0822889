//! Images of every release and form, loaded and saved again: line by line the same, and Hadoop, where it can be had, reads what is saved as we do.
//! `IRONROOT_GOLDEN` names a folder with more of them.

use super::{assert_same, bytes, golden, run, text};
use crate::support::driver::HadoopClient;
use crate::support::hadoop::hadoop;
use crate::support::site::Site;
use crate::support::work::WorkDir;
use state::{RootAttributes, State};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use storage::image::{Codec, Digest, SaveContext, SaveOptions, SubSections, encode_with, load};
use vocab::{InodeId, LayoutVersion, Mode};

/// All images below a folder. Packed ones and damaged ones are left out.
fn images(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            images(&path, out);
        } else if name.starts_with("fsimage_") && path.extension().is_none() {
            out.push(path);
        }
    }
    out.sort();
}

/// How an image is saved, in turn.
fn forms() -> Vec<(bool, SaveOptions)> {
    let parallel = Some(SubSections { threshold: 1, target: 4 });
    let plain = SaveOptions { codec: None, parallel: None, threads: 1, threads_from: 0 };
    let codecs = [Codec::Zlib, Codec::Deflate, Codec::Gzip, Codec::Bzip2, Codec::Snappy];
    let coded = codecs.into_iter().map(|codec| (false, SaveOptions { codec: Some(codec), parallel, ..plain }));
    [(false, plain), (true, plain), (false, SaveOptions { parallel, threads: 2, ..plain })]
        .into_iter()
        .chain(coded)
        .collect()
}

/// Lines of a viewer's XML with how often each comes, without what a layout decides.
fn lines(xml: &[u8]) -> BTreeMap<String, i64> {
    let mut all = BTreeMap::new();
    for line in String::from_utf8_lossy(xml).replace("><", ">\n<").lines() {
        if !line.contains("ayoutVersion>") {
            *all.entry(line.to_owned()).or_insert(0) += 1;
        }
    }
    all
}

/// Lines that one has more often than the other.
fn differing(one: &[u8], other: &[u8]) -> Vec<String> {
    let mut left = lines(one);
    for (line, count) in lines(other) {
        *left.entry(line).or_insert(0) -= count;
    }
    left.into_iter().filter(|(_, count)| *count != 0).map(|(line, count)| format!("{count:+} {line}")).collect()
}

fn xml_of(image: &Path) -> Vec<u8> {
    let output = run(&["oiv", "-p", "XML", "-i", text(image)]);
    assert!(output.status.success(), "{}: {}", image.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn images_come_back_line_by_line_and_hadoop_reads_them() {
    let mut all = Vec::new();
    images(&golden("fsimage"), &mut all);
    assert!(all.len() > 40, "only {} images", all.len());
    if let Some(more) = std::env::var_os("IRONROOT_GOLDEN") {
        images(Path::new(&more), &mut all);
    }
    let work = WorkDir::new("round-trip");
    let client = hadoop().map(|hadoop| HadoopClient::start(hadoop, &Site::new(work.join("conf"))));
    let forms = forms();
    let (saved, theirs) = (work.join("saved"), work.join("xml"));
    for (turn, image) in all.iter().enumerate() {
        let (content, what) = (bytes(image), image.display());
        let empty = State::new(RootAttributes { user: "hdfs", group: "supergroup", mode: Mode::new(0o755) });
        let loaded = load(&content, Digest::of(&content), empty).unwrap_or_else(|e| panic!("{what}: {e}"));
        let before = xml_of(image);
        // each image in the plain form, and in one of the others
        for (expanded, options) in [&forms[0], &forms[turn % forms.len()]] {
            let context = SaveContext {
                layout: LayoutVersion::CURRENT,
                namespace_id: loaded.namespace_id,
                txid: loaded.txid,
                expanded_string_tables: *expanded,
            };
            let mut encoded = Vec::new();
            encode_with(&loaded.state, context, options, &mut |chunk| encoded.extend_from_slice(chunk))
                .expect("encodes");
            std::fs::write(&saved, &encoded).expect("writes");
            let after = xml_of(&saved);
            let told = without_leases_of_the_past(&without_empty_diffs(&before), &loaded.state);
            let differing = differing(&told, &without_policies(&after, &before));
            assert!(is_mended(image) || differing.is_empty(), "{what}, {options:?}: {differing:#?}");
            if let Some(client) = &client {
                client.ok(&["oiv", "-p", "XML", "-i", text(&saved), "-o", text(&theirs)]);
                assert_same(&after, &bytes(&theirs), text(image));
            }
        }
    }
}

/// Whether loading mends something: 2.x kept names of concatenated files, and Hadoop keeps deleted symlinks, though both are nowhere; and
/// below a snapshot root another one may take the attributes of the upper one for its own.
fn is_mended(image: &Path) -> bool {
    ["snapshots-concat", "symlinks-snapshot", "nested"]
        .iter()
        .any(|scenario| image.iter().any(|folder| folder == *scenario))
}

/// Without the section of differences that 2.x writes where there is no snapshot: none of the root.
fn without_empty_diffs(xml: &[u8]) -> Vec<u8> {
    let none = "<dirDiffEntry><inodeId>16385</inodeId><count>0</count></dirDiffEntry>";
    let section = format!("<SnapshotDiffSection>{none}</SnapshotDiffSection>\n");
    String::from_utf8_lossy(xml).replace(&section, "").into()
}

/// Without the leases of files that only snapshots hold: Hadoop ends them when it next looks at them, we when we load.
fn without_leases_of_the_past(xml: &[u8], state: &State) -> Vec<u8> {
    let is_of_the_past = |line: &str| {
        let entry = line.trim_start_matches("<FileUnderConstructionSection>").strip_prefix("<inode><id>")?;
        let id = entry.split_once("</id><path>")?.0.parse().ok()?;
        let file = state.store.find_inode(InodeId(id))?;
        Some(!state.tree.is_present(&state.store, file))
    };
    let xml = String::from_utf8_lossy(xml);
    xml.split_inclusive('\n').filter(|line| is_of_the_past(line) != Some(true)).collect::<String>().into()
}

/// Without the section of coding policies, if an older image does not have it.
fn without_policies(xml: &[u8], older: &[u8]) -> Vec<u8> {
    let (text, tag) = (String::from_utf8_lossy(xml), "ErasureCodingSection>");
    let section = text.split_once(&format!("<{tag}\n")).zip(text.split_once(&format!("</{tag}\n\n")));
    match section {
        Some(((before, _), (_, after))) if !String::from_utf8_lossy(older).contains(tag) => {
            [before, after].concat().into()
        }
        _ => xml.to_vec(),
    }
}
