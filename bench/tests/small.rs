//! Every measurement, once and small: it does its work and prints a table. The counts themselves are not judged.

use std::process::Command;

fn bench(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn reports_and_images() {
    assert_eq!(bench(&["reports", "2000"]).matches("DataNode").count(), 6);
    assert!(bench(&["image", "500"]).contains("load"));
}

#[test]
fn what_is_counted_under_the_lock_is_done() {
    let kinds = [
        "create",
        "mkdirs",
        "delete",
        "rename",
        "addBlock",
        "complete",
        "getFileInfo",
        "first-report",
        "unchanged-report",
    ];
    for kind in kinds {
        bench(&["holds", kind, "exclusive", "20"]);
    }
    if Command::new("valgrind").arg("--version").output().is_ok() {
        let table = bench(&["instructions", "5"]);
        let counted = |line: &&str| line.contains("exclusive") || line.contains("shared");
        assert_eq!(table.lines().filter(counted).count(), 12, "{table}");
    }
}
