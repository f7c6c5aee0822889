//! `/stacks`: the threads of the process, in the form of Hadoop's thread dump. What the system knows of a thread stands where Java has its frames:
//! to read those of another thread it would have to be stopped and its registers looked at, which takes unsafe code.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// All threads, oldest first.
pub(super) fn text() -> String {
    let Ok(folder) = fs::read_dir("/proc/self/task") else {
        return "Process Thread Dump: \n0 active threads\n".to_owned();
    };
    let mut threads: Vec<u64> = folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable();
    let mut text = format!("Process Thread Dump: \n{} active threads\n", threads.len());
    threads.iter().for_each(|id| thread(&mut text, *id));
    text
}

fn thread(text: &mut String, id: u64) {
    let folder = format!("/proc/self/task/{id}");
    let file = |name: &str| fs::read_to_string(Path::new(&folder).join(name)).unwrap_or_default();
    let status = file("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim().to_owned()
    };
    // a thread that has ended meanwhile is not told of
    if status.is_empty() {
        return;
    }
    let state = match field("State").chars().next() {
        Some('R') => "RUNNABLE",
        Some('D') => "BLOCKED",
        Some('Z' | 'X') => "TERMINATED",
        _ => "WAITING",
    };
    let waits = file("wchan");
    let waits = waits.trim().trim_matches('0');
    // writing to a string does not fail
    _ = write!(
        text,
        "Thread {id} ({}):\n  State: {state}\n  Blocked count: {}\n  Waited count: {}\n",
        field("Name"),
        field("nonvoluntary_ctxt_switches"),
        field("voluntary_ctxt_switches")
    );
    if !waits.is_empty() {
        _ = writeln!(text, "  Waiting on {waits}");
    }
    text.push_str("  Stack:\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_thread_is_told_of() {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let (running, ran) = std::sync::mpsc::channel();
        let named = std::thread::Builder::new().name("told-of".to_owned());
        let thread = named.spawn(move || running.send(()).is_ok() && wait.recv().is_err()).expect("a thread");
        ran.recv().expect("it runs, and has its name");
        let text = super::text();
        drop(done);
        assert!(thread.join().expect("ends"));
        assert!(text.starts_with("Process Thread Dump: \n"), "{text}");
        assert!(text.contains(" (told-of):\n  State: ") && text.contains("  Waited count: "), "{text}");
    }
}
