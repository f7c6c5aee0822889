//! Images and logs that were made by hand or by another hand; Hadoop's offline viewers make and read them.
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

pub(super) use md5_of_file::write_digest;

use super::client::{Client, refused};
use super::datanode::DataNode;
use super::fixture::Fixture;
use super::write;
use crate::support::driver::HadoopClient;
use crate::support::hadoop::hadoop;
use crate::support::namenode::{Kind, NameNode, format};

/// Digest files of changed images.
mod md5_of_file {
    use std::path::Path;
    use std::process::Command;

    /// Makes the `.md5` beside an image fit it, with md5sum(1), whose format it has.
    pub fn write_digest(image: &Path) {
        let name = image.file_name().expect("a file name");
        let folder = image.parent().expect("a folder");
        let output = Command::new("md5sum").arg("-b").arg(name).current_dir(folder).output().expect("md5sum(1)");
        assert!(output.status.success());
        std::fs::write(folder.join(format!("{}.md5", name.to_string_lossy())), output.stdout).expect("digest");
    }
}

/// A NameNode at rest, and Hadoop's offline tools.
struct Disk {
    fixture: Fixture,
    tools: HadoopClient,
}

impl Disk {
    fn new(name: &str, settings: &[(&str, &str)]) -> Option<Self> {
        let hadoop = hadoop()?;
        let fixture = Fixture::prepared(name, settings)?;
        let tools = HadoopClient::start(hadoop, &fixture.site.copy_to(fixture.work.join("tools")));
        Some(Self { fixture, tools })
    }

    fn files(&self, prefix: &str) -> Vec<PathBuf> {
        let listed = std::fs::read_dir(self.fixture.current()).expect("the name directory");
        let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("an entry").path()).collect();
        files.retain(|file| {
            let name = file.file_name().expect("a name").to_string_lossy().into_owned();
            name.starts_with(prefix) && !name.ends_with(".md5")
        });
        files.sort();
        files
    }

    /// The newest image.
    fn image(&self) -> PathBuf {
        self.files("fsimage_").pop().expect("an image")
    }

    fn tool(&self, tool: &str, processor: &str, input: &Path, output: &Path) {
        let (from, to) = (input.to_str().expect("UTF-8"), output.to_str().expect("UTF-8"));
        self.tools.ok(&[tool, "-p", processor, "-i", from, "-o", to]);
    }

    fn image_xml(&self) -> String {
        let xml = self.fixture.work.join("image.xml");
        self.tool("oiv", "XML", &self.image(), &xml);
        std::fs::read_to_string(xml).expect("oiv wrote")
    }

    /// Replaces the newest image by what the XML says, its digest with it.
    fn put_image(&self, xml: &str) {
        let file = self.fixture.work.join("changed.xml");
        std::fs::write(&file, xml).expect("XML");
        let image = self.image();
        self.tool("oiv", "ReverseXML", &file, &image);
        write_digest(&image);
    }

    fn edits_xml(&self, segment: &Path) -> String {
        let xml = self.fixture.work.join("edits.xml");
        self.tool("oev", "xml", segment, &xml);
        std::fs::read_to_string(xml).expect("oev wrote")
    }

    /// Replaces a segment by what the XML says.
    fn put_edits(&self, segment: &Path, xml: &str) {
        let file = self.fixture.work.join("changed.xml");
        std::fs::write(&file, xml).expect("XML");
        self.tool("oev", "binary", &file, segment);
    }

    /// Starts it and expects that it ends by itself; answers the status and the end of its log.
    fn start_fails(&self) -> (ExitStatus, String) {
        let mut node = NameNode::launch(self.fixture.kind, &self.fixture.site, &[]);
        let status = node.process().wait(Duration::from_secs(60));
        (status, std::fs::read_to_string(self.fixture.site.folder().join("namenode.log")).unwrap_or_default())
    }

    /// The files of the name directory with their contents.
    fn save_current(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = std::fs::read_dir(self.fixture.current()).expect("the name directory");
        let read = |file: PathBuf| (file.clone(), std::fs::read(file).expect("a file"));
        files.map(|entry| read(entry.expect("an entry").path())).collect()
    }

    fn restore_current(&self, files: &[(PathBuf, Vec<u8>)]) {
        std::fs::remove_dir_all(self.fixture.current()).expect("the name directory");
        std::fs::create_dir(self.fixture.current()).expect("the name directory");
        files.iter().for_each(|(file, content)| std::fs::write(file, content).expect("a file"));
    }

    fn format_and_start(&mut self) -> Client {
        format(self.fixture.kind, &self.fixture.site);
        self.fixture.launch();
        self.fixture.superuser()
    }
}

/// marcelmay/hadoop-hdfs-fsimage-exporter#22.
#[test]
fn t48_image_of_a_namespace_with_only_the_root() {
    let Some(mut disk) = Disk::new("t48", &[]) else { return };
    format(disk.fixture.kind, &disk.fixture.site);
    for round in ["formatted", "saved"] {
        let xml = disk.image_xml();
        assert_eq!(xml.matches("<inode>").count(), 1, "{round}: {xml}");
        assert!(xml.contains("<lastInodeId>16385</lastInodeId><numInodes>1</numInodes>"), "{round}: {xml}");
        assert!(xml.contains("<inode><id>16385</id><type>DIRECTORY</type><name></name>"), "{round}: {xml}");
        assert!(xml.contains("<permission>hdfs:supergroup:0755</permission>"), "{round}: {xml}");
        assert!(xml.contains("<INodeDirectorySection></INodeDirectorySection>"), "{round}: {xml}");
        if round == "formatted" {
            disk.fixture.launch();
            disk.fixture.superuser().save_namespace();
            disk.fixture.stop();
        }
    }
    // Hadoop's own empty image
    std::fs::remove_dir_all(disk.fixture.current()).expect("the name directory");
    format(Kind::Java, &disk.fixture.site);
    disk.fixture.launch();
    assert_eq!(disk.fixture.superuser().names("/"), [""; 0]);
}

/// marcelmay/hadoop-hdfs-fsimage-exporter#193.
#[test]
fn t49_layout_version_in_the_version_file() {
    let Some(disk) = Disk::new("t49", &[]) else { return };
    format(disk.fixture.kind, &disk.fixture.site);
    assert!(disk.image_xml().contains("<layoutVersion>-67</layoutVersion>"));
    let version = disk.fixture.current().join("VERSION");
    let text = std::fs::read_to_string(&version).expect("VERSION");
    assert!(text.contains("layoutVersion=-67"), "{text}");
    for (layout, wanted) in [("-66", "old layout version -66"), ("-68", "Unexpected version of storage directory")] {
        let other = text.replace("layoutVersion=-67", &format!("layoutVersion={layout}"));
        std::fs::write(&version, &other).expect("VERSION");
        let (status, log) = disk.start_fails();
        assert!(!status.success() && log.contains(wanted), "{layout}: {status}\n{log}");
        assert_eq!(std::fs::read_to_string(&version).expect("VERSION"), other, "unchanged");
    }
}

/// apache/hadoop#6549 (HDFS-17380).
#[test]
fn t53_image_with_unreachable_inodes() {
    let Some(mut disk) = Disk::new("t53", &[]) else { return };
    let client = disk.format_and_start();
    for file in ["a", "b"] {
        client.touch(&format!("/d/{file}")).expect("create");
    }
    let orphan = client.status("/d/b").file_id();
    client.save_namespace();
    disk.fixture.stop();
    let xml = disk.image_xml();
    let child = format!("<child>{orphan}</child>");
    assert!(xml.contains(&child), "{xml}");
    disk.put_image(&xml.replace(&child, ""));
    for round in ["loaded", "saved and loaded"] {
        disk.fixture.launch();
        let client = disk.fixture.superuser();
        assert_eq!(client.names("/d"), ["a"], "{round}");
        assert!(!client.exists("/d/b"), "{round}");
        assert_eq!(client.content_summary("/").expect("getContentSummary").file_count, 1, "{round}");
        client.save_namespace();
        disk.fixture.stop();
    }
}

/// As above: a directory entry that names no inode. Starting and refusing are both right; dying is not.
#[test]
fn t53_directory_entry_without_inode() {
    let Some(mut disk) = Disk::new("t53-missing", &[]) else { return };
    if disk.fixture.kind == Kind::Java {
        crate::support::skip("Hadoop ends with a NullPointerException there");
        return;
    }
    let client = disk.format_and_start();
    client.touch("/d/a").expect("create");
    client.save_namespace();
    disk.fixture.stop();
    let child = format!("<child>{}</child>", client_child(&disk));
    disk.put_image(&disk.image_xml().replace(&child, "<child>99999</child>"));
    // without an older image, from which it would start
    let older = disk.fixture.current().join("fsimage_0000000000000000000");
    std::fs::remove_file(&older).expect("an older image");
    let (status, log) = disk.start_fails();
    assert!(!status.success() && log.contains("99999") && !log.contains("panicked"), "{status}\n{log}");
}

/// The only file's id.
fn client_child(disk: &Disk) -> String {
    let xml = disk.image_xml();
    let (_, rest) = xml
        .split_once("<type>FILE</type>")
        .map(|_| xml.split_once("<type>FILE</type>").expect("a file"))
        .expect("a file");
    let before = &xml[..xml.len() - rest.len() - "<type>FILE</type>".len()];
    let (_, id) = before.rsplit_once("<id>").expect("an id");
    id.trim_end_matches("</id>").to_owned()
}

/// apache/hadoop#8120 (HDFS-17861).
#[test]
fn t60_close_that_disagrees_on_a_generation_stamp() {
    let Some(mut disk) = Disk::new("t60", &[]) else { return };
    let client = disk.format_and_start();
    let mut datanode = DataNode::start(disk.fixture.port(), 1);
    let blocks = write(&client, &mut datanode, "/f", &[super::client::BLOCK_SIZE, 100]);
    disk.fixture.stop();
    let segment = disk.files("edits_").pop().expect("a segment");
    let good = disk.edits_xml(&segment);
    let (before, close) = good.split_once("<OPCODE>OP_CLOSE</OPCODE>").expect("the file was closed");
    let change = |from: String, to: &str| {
        assert!(close.contains(&from), "{from} in {close}");
        format!("{before}<OPCODE>OP_CLOSE</OPCODE>{}", close.replacen(&from, to, 1))
    };
    let stamp = |block: usize| format!("<GENSTAMP>{}</GENSTAMP>", blocks[block].generation_stamp);
    let id = |block: usize| format!("<BLOCK_ID>{}</BLOCK_ID>", blocks[block].block_id);
    let text = "Mismatched block IDs or generation stamps, attempting to replace block";
    let untouched = disk.save_current();
    for (what, xml) in [
        ("stamp of the first block", change(stamp(0), "<GENSTAMP>1099</GENSTAMP>")),
        ("id of the first block", change(id(0), "<BLOCK_ID>4711</BLOCK_ID>")),
    ] {
        disk.restore_current(&untouched);
        disk.put_edits(&segment, &xml);
        let (status, log) = disk.start_fails();
        assert!(!status.success() && log.contains(text), "{what}: {status}\n{log}");
        assert!(log.contains("as block # 0/2 of /f"), "{what}\n{log}");
    }
    // the last block may have got a newer stamp from a recovery
    disk.restore_current(&untouched);
    disk.put_edits(&segment, &change(stamp(1), "<GENSTAMP>1099</GENSTAMP>"));
    disk.fixture.launch();
    let client = disk.fixture.superuser();
    client.safe_mode(hadoop_proto::hdfs::SafeModeActionProto::SafemodeLeave).expect("setSafeMode");
    let located = client.block_locations("/f").expect("getBlockLocations").expect("a file");
    assert_eq!(located.blocks[1].b.generation_stamp, 1099);
}

/// apache/hadoop#5235 (HDFS-16869).
#[test]
fn t61_records_with_no_rpc_ids() {
    let Some(mut disk) = Disk::new("t61", &[("dfs.namenode.enable.retrycache", "false")]) else { return };
    let client = disk.format_and_start();
    client.mkdirs("/d").expect("mkdirs");
    assert!(client.delete("/d", true).expect("delete"));
    disk.fixture.stop();
    disk.fixture.site.set("dfs.namenode.enable.retrycache", "true");
    disk.fixture.launch();
    assert!(!disk.fixture.superuser().exists("/d"));
    disk.fixture.stop();
}

/// As above: an id that is no UUID. Refusing it and loading the record without it are both right.
#[test]
fn t61_record_with_a_call_id_but_no_client_id() {
    let Some(mut disk) = Disk::new("t61-empty", &[]) else { return };
    let client = disk.format_and_start();
    client.mkdirs("/d").expect("mkdirs");
    assert!(client.delete("/d", true).expect("delete"));
    disk.fixture.kill();
    let segment = disk.files("edits_").pop().expect("a segment");
    let xml = disk.edits_xml(&segment);
    let (before, delete) = xml.split_once("<OPCODE>OP_DELETE</OPCODE>").expect("the deletion");
    let (_, id) = delete.split_once("<RPC_CLIENTID>").expect("a client id");
    let (id, _) = id.split_once("</RPC_CLIENTID>").expect("a client id");
    let (_, call) = delete.split_once("<RPC_CALLID>").expect("a call id");
    let (call, _) = call.split_once("</RPC_CALLID>").expect("a call id");
    let changed = delete.replacen(&format!("<RPC_CLIENTID>{id}<"), "<RPC_CLIENTID><", 1);
    let changed = changed.replacen(&format!("<RPC_CALLID>{call}<"), "<RPC_CALLID>5<", 1);
    disk.put_edits(&segment, &format!("{before}<OPCODE>OP_DELETE</OPCODE>{changed}"));
    if disk.fixture.kind == Kind::Java {
        let (status, log) = disk.start_fails();
        assert!(!status.success(), "{status}");
        assert!(log.contains("Invalid clientId - length is 0 expected length 16"), "{log}");
        return;
    }
    let mut node = NameNode::launch(disk.fixture.kind, &disk.fixture.site, &[]);
    std::thread::sleep(Duration::from_secs(3));
    if let Some(status) = node.process().ended() {
        let log = node.process().log_tail();
        assert!(!status.success() && log.contains("client id") && !log.contains("panicked"), "{log}");
    } else {
        assert!(!disk.fixture.superuser().exists("/d"), "the record was replayed");
    }
}

/// apache/hadoop#2296 (HDFS-15568), the part about names.
#[test]
fn t63_limits_lowered_between_runs_do_not_stop_replay() {
    let limit = "dfs.namenode.fs-limits.max-component-length";
    let Some(mut fixture) = Fixture::start("t63", &[(limit, "400")]) else { return };
    let long = |letter: &str| format!("/s/{}", letter.repeat(300));
    fixture.superuser().touch(&long("a")).expect("create");
    fixture.kill();
    fixture.site.set(limit, "255");
    for round in ["from the edits", "from the image"] {
        fixture.launch();
        let client = fixture.superuser();
        assert!(client.exists(&long("a")), "{round}");
        refused(client.create(&long("b")), "PathComponentTooLongException", "limit=255 length=300");
        client.save_namespace();
        fixture.kill();
    }
}

/// HADOOP-9103: the log has the old Hadoop form of strings, the image plain UTF-8.
#[test]
fn t62_names_outside_the_basic_plane_in_edits_and_image() {
    let Some(mut disk) = Disk::new("t62", &[]) else { return };
    const NAMES: [&str; 3] = ["\u{e9}", "\u{4e2d}", "\u{1f431}"];
    let has = |file: &Path, bytes: &[u8]| {
        let content = std::fs::read(file).expect("a file");
        content.windows(bytes.len()).any(|window| window == bytes)
    };
    let client = disk.format_and_start();
    for name in NAMES {
        client.mkdirs(&format!("/u/{name}")).expect("mkdirs");
    }
    let mut order = NAMES.map(str::to_owned);
    order.sort_by_key(|name| name.bytes().map(|b| b as i8).collect::<Vec<_>>());
    assert_eq!(client.names("/u"), order);
    disk.fixture.kill();
    let segment = disk.files("edits_inprogress").pop().expect("an open segment");
    // U+1F431 is the pair D83D DC31, each as three bytes
    assert!(has(&segment, b"\xed\xa0\xbd\xed\xb0\xb1"), "in the log");
    let xml = disk.edits_xml(&segment);
    assert!(NAMES.iter().all(|name| xml.contains(&format!("/u/{name}")) || *name == NAMES[2]), "{xml}");
    disk.fixture.launch();
    assert_eq!(disk.fixture.superuser().names("/u"), order, "after a crash");
    disk.fixture.superuser().save_namespace();
    disk.fixture.stop();
    assert!(has(&disk.image(), "\u{1f431}".as_bytes()), "in the image");
    disk.fixture.launch();
    assert_eq!(disk.fixture.superuser().names("/u"), order, "from the image");
}

/// HDFS-1221: what is left of a segment that never got a record. The image has every transaction, and `seen_txid` is
/// written only after the first record.
#[test]
fn t58_segment_in_progress_that_never_got_a_record() {
    let Some(mut disk) = Disk::new("t58", &[]) else { return };
    let client = disk.format_and_start();
    client.mkdirs("/d").expect("mkdirs");
    client.save_namespace();
    disk.fixture.kill();
    let segment = disk.files("edits_inprogress").pop().expect("an open segment");
    let name = segment.file_name().expect("a name").to_string_lossy().into_owned();
    let first: u64 = name.rsplit('_').next().and_then(|txid| txid.parse().ok()).expect("a transaction id");
    std::fs::write(disk.fixture.current().join("seen_txid"), format!("{}\n", first - 1)).expect("seen_txid");
    let untouched = disk.save_current();
    let header: &[u8] = b"\xff\xff\xff\xbd\0\0\0\0";
    let padded = [header, &[0xff; 1 << 20][..]].concat();
    let kept =
        |disk: &Disk, suffix: &str| disk.files(&name).iter().any(|file| file.to_string_lossy().ends_with(suffix));
    for (what, content, kept_as) in [
        ("nothing", &b""[..], None),
        ("a header", header, Some(".empty")),
        ("a header and padding", &padded[..], Some(".empty")),
    ] {
        disk.restore_current(&untouched);
        std::fs::write(&segment, content).expect("the segment");
        disk.fixture.launch();
        assert!(disk.fixture.superuser().exists("/d"), "{what}");
        assert!(kept_as.is_none_or(|suffix| kept(&disk, suffix)), "{what}");
        assert!(disk.fixture.superuser().mkdirs("/e").expect("mkdirs"), "{what}");
        disk.fixture.restart();
        assert!(disk.fixture.superuser().exists("/e"), "{what}");
        disk.fixture.stop();
    }
    disk.restore_current(&untouched);
    std::fs::write(&segment, &header[..2]).expect("the segment");
    let (status, log) = disk.start_fails();
    assert!(!status.success() && log.contains("corrupt"), "{status}\n{log}");
    assert!(kept(&disk, ".corrupt"), "half a header");
}
