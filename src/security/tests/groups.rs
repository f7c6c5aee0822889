//! Group lookups through an `id` of the test's own, which is first in the `PATH` of a child process that runs the test proper.

use security::groups::{GroupSettings, Groups, Provider};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const FOLDER: &str = "GROUPS_TEST_FOLDER";

/// Notes each question, is slow, and knows alice (two groups), hang (never answers) and odd (a group without a name).
const ID: &str = r#"#!/bin/bash
echo "$@" >> "$GROUPS_TEST_FOLDER/asked"
sleep 0.05
case "$2 $1" in
  "alice -gn") echo staff;;
  "alice -Gn") echo staff dev;;
  "it's me -gn") echo quoted;;
  "it's me -Gn") echo quoted;;
  hang*) exec sleep 4;;
  "odd -gn") echo 1000;;
  "odd -Gn") echo 1000 named; exit 1;;
  "odd -g") echo 1000;;
  "odd -G") echo 1000 50;;
  *) exit 1;;
esac
"#;

/// Runs the named test again in a child with the `id` above; true in the child.
fn in_child(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return Some(folder.into());
    }
    let folder = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("id"), ID).unwrap();
    std::fs::set_permissions(folder.join("id"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("PATH", path)
        .env(FOLDER, &folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&child.stderr));
    None
}

fn asked(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("asked")).unwrap_or_default();
    let _ = std::fs::remove_file(folder.join("asked"));
    text.lines().map(str::to_owned).collect()
}

fn mapping(timeout: Option<Duration>) -> Groups {
    Groups::new(GroupSettings {
        provider: Provider::Shell { timeout },
        ttl: Duration::from_millis(400),
        negative_ttl: Duration::from_millis(200),
        ..GroupSettings::default()
    })
}

async fn names(groups: &Groups, user: &str) -> Vec<String> {
    groups.of(user).await.groups.iter().map(|g| g.to_string()).collect()
}

#[test]
fn answers_are_shared_cached_and_forgotten() {
    let Some(folder) = in_child("answers_are_shared_cached_and_forgotten") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let groups = Arc::new(mapping(None));
        // twenty who ask at once share one lookup
        let all: Vec<_> = (0..20)
            .map(|_| {
                let groups = groups.clone();
                tokio::spawn(async move { names(&groups, "alice").await })
            })
            .collect();
        for task in all {
            assert_eq!(task.await.unwrap(), ["staff", "dev"]);
        }
        assert_eq!(asked(&folder), ["-gn alice", "-Gn alice"]);

        let answer = groups.of("alice").await;
        assert!(groups.is_current(&answer, Instant::now()));
        tokio::time::sleep(Duration::from_millis(450)).await;
        assert!(!groups.is_current(&answer, Instant::now()));
        names(&groups, "alice").await;
        assert_eq!(asked(&folder).len(), 2, "asked again after the time to live");

        let answer = groups.of("alice").await;
        groups.refresh();
        assert!(!groups.is_current(&answer, Instant::now()));
        names(&groups, "alice").await;
        assert_eq!(asked(&folder).len(), 2, "asked again after a refresh");

        // that a user is unknown is remembered for a shorter time
        assert!(names(&groups, "nobody here").await.is_empty());
        assert!(names(&groups, "nobody here").await.is_empty());
        assert_eq!(asked(&folder).len(), 2);
        tokio::time::sleep(Duration::from_millis(250)).await;
        assert!(names(&groups, "nobody here").await.is_empty());
        assert_eq!(asked(&folder).len(), 2);

        assert!(names(&groups, "dr.who").await.is_empty());
        assert!(asked(&folder).is_empty(), "an override is never looked up");
    });
}

#[test]
fn odd_users_and_slow_commands() {
    let Some(folder) = in_child("odd_users_and_slow_commands") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let groups = mapping(Some(Duration::from_secs(2)));
        assert_eq!(names(&groups, "it's me").await, ["quoted"]);
        assert_eq!(names(&groups, "odd").await, ["named"]);
        assert!(names(&groups, "$(touch x); `touch y`").await.is_empty());
        asked(&folder);
        let started = Instant::now();
        assert!(names(&groups, "hang").await.is_empty());
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    });
}
