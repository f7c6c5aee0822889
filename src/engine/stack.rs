//! Where a thread is and since when, as the log tells it.

use std::backtrace::Backtrace;
use std::time::SystemTime;

/// Functions that are not worth telling: of the language, its runtime and this account.
const PASSED_OVER: [&str; 10] = [
    "std::",
    "core::",
    "alloc::",
    "tokio::",
    "<core::",
    "<alloc::",
    "<std::",
    "<tokio::",
    "engine::lock::HoldTimes",
    "engine::lock::Reports",
];

/// The name of a thread and its functions, innermost first, one a line. Looking up names takes long.
pub(crate) fn own_frames(thread: &str, stack: &Backtrace) -> String {
    let stack = stack.to_string();
    let named = stack
        .lines()
        .filter_map(|line| line.trim_start().split_once(": "))
        .filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit()));
    let worth = named
        .map(|(_, name)| name)
        .filter(|name| name.contains("::") && !PASSED_OVER.iter().any(|start| name.starts_with(start)));
    std::iter::once(thread).chain(worth).collect::<Vec<_>>().join("\n")
}

/// A time as Hadoop's reports have it.
pub(crate) fn told_time(time: SystemTime) -> String {
    let time = jiff::Timestamp::try_from(time).unwrap_or_default().to_zoned(jiff::tz::TimeZone::system());
    time.strftime("%Y-%m-%d %H:%M:%S,%3f%z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_begins_with_the_thread_and_has_what_called() {
        let told = own_frames("worker", &Backtrace::force_capture());
        assert!(told.starts_with("worker\n"), "{told}");
        assert!(told.contains("engine::stack::tests::a_stack_begins"), "{told}");
        assert!(!told.contains("\nstd::"), "{told}");
    }

    #[test]
    fn times_have_milliseconds_and_a_zone() {
        let told = told_time(SystemTime::UNIX_EPOCH);
        assert_eq!((told.len(), &told[19..23]), (28, ",000"), "{told}");
    }
}
