//! Programs that must not outlive the one that started them: an intermediate process asks the kernel for a signal when its parent ends, then becomes
//! the program. (The parent itself cannot ask for its children without unsafe code between fork and exec.)

use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A command for `program` that ends when the calling thread, or this process, ends: start it from a thread that stays.
pub fn command(program: &Path) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("supervise").arg(std::process::id().to_string()).arg(program);
    Ok(command)
}

/// The intermediate process.
pub fn run(words: &[OsString]) -> ExitCode {
    let [parent, program, arguments @ ..] = words else { return ExitCode::from(2) };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        eprintln!("cannot watch the parent process: {error}");
        return ExitCode::FAILURE;
    }
    // it may have ended before the signal was asked for
    let alive = getppid().is_some_and(|id| OsStr::new(&id.as_raw_nonzero().to_string()) == parent);
    if !alive {
        return ExitCode::FAILURE;
    }
    let error = Command::new(program).args(arguments).exec();
    eprintln!("{}: {error}", program.to_string_lossy());
    ExitCode::FAILURE
}
