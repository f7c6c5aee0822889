//! What is done when mapped memory is lost: where the disk gives a page of a mapped file no more, the kernel sends SIGBUS to whoever touches it. Nobody has
//! the page's content then, so that the process cannot go on with what it has; but it can begin anew at once, under its own number, as if it had just
//! been started, and read from elsewhere.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;
use std::{io, ptr};

/// Set for a program that began anew.
const ANEW: &str = "IRONROOT_BEGAN_ANEW";
const MESSAGE: &[u8] =
    b"A page of a mapped file cannot be read any more (SIGBUS): the process begins anew, without such files\n";
/// This program, whatever its file is called by now.
const PROGRAM: &CStr = c"/proc/self/exe";

/// How the program is started again; all of it made beforehand, since nothing is allocated when the signal is there.
struct Again {
    words: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

// SAFETY: the pointers are to strings that live for good and are only read.
unsafe impl Send for Again {}
// SAFETY: as above.
unsafe impl Sync for Again {}

static AGAIN: OnceLock<Again> = OnceLock::new();

/// Pointers to strings that are leaked, and a null.
fn pointers(strings: impl Iterator<Item = Vec<u8>>) -> Vec<*const c_char> {
    // what came from the system has no zero byte inside
    let pointers = strings.filter_map(|string| CString::new(string).ok()).map(|string| string.into_raw().cast_const());
    pointers.chain([ptr::null()]).collect()
}

/// Whether this process has lost memory and began anew.
pub fn began_anew() -> bool {
    std::env::var_os(ANEW).is_some()
}

/// From now on the loss of mapped memory ends nothing: the program is started again in this process, with the same words and the same environment, and
/// [`began_anew`] is true there. Descriptors that are not to be inherited are closed, and with them the locks.
///
/// # Errors
/// The system does not take the handler.
pub fn begin_anew_on_lost_memory() -> io::Result<()> {
    AGAIN.get_or_init(|| {
        let variable =
            |(name, value): (std::ffi::OsString, std::ffi::OsString)| [name.into_vec(), value.into_vec()].join(&b'=');
        let variables = std::env::vars_os().map(variable).chain([format!("{ANEW}=1").into_bytes()]);
        Again { words: pointers(std::env::args_os().map(OsStringExt::into_vec)), environment: pointers(variables) }
    });
    // SAFETY: all zero is a valid value of the plain C structure: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = lost;
    action.sa_sigaction = handler as usize;
    // not blocked meanwhile: the mask outlives the start of the program, and a blocked fault ends a process on the spot
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: a whole structure; the handler calls nothing but what a handler may call.
    match unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn lost(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands over a whole structure.
    let no_such_memory = unsafe { (*info).si_code } == libc::BUS_ADRERR;
    if let Some(again) = AGAIN.get().filter(|_| no_such_memory) {
        // SAFETY: both may be called in a handler; the message is whole, the lists end with a null. There is nothing to do about a message that is not written.
        unsafe {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::execve(PROGRAM.as_ptr(), again.words.as_ptr(), again.environment.as_ptr());
        }
    }
    // SAFETY: may be called in a handler. The fault comes again, and ends the process.
    unsafe {
        libc::signal(libc::SIGBUS, libc::SIG_DFL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, Open};
    use std::process::Command;

    /// This test again as a process: it maps a file, the file is cut, the memory is touched.
    #[test]
    fn a_process_whose_mapped_file_is_cut_begins_anew() {
        const CHILD: &str = "IRONROOT_TEST_LOSES_MEMORY";
        if began_anew() {
            println!("anew in {}", std::process::id());
            return;
        }
        if let Some(path) = std::env::var_os(CHILD) {
            println!("begun in {}", std::process::id());
            begin_anew_on_lost_memory().unwrap();
            let path = std::path::PathBuf::from(path);
            let file = crate::RealDisk::default().open(&path, Open::Read).unwrap();
            let memory = file.map(0, 1 << 20, 1 << 21).unwrap();
            std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
            std::thread::scope(|scope| {
                (0..4).for_each(|n| {
                    drop(scope.spawn({
                        let memory = &memory;
                        move || assert_eq!(memory[n << 16], 1)
                    }))
                });
            });
            unreachable!("the memory is gone");
        }
        let path = std::env::temp_dir().join(format!("ironroot-lost-{}", std::process::id()));
        std::fs::write(&path, vec![1u8; 1 << 20]).unwrap();
        let name = "lost::tests::a_process_whose_mapped_file_is_cut_begins_anew";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", name, "--nocapture"]).env(CHILD, &path).output().unwrap();
        std::fs::remove_file(&path).unwrap();
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let number =
            |word: &str| said.split(word).nth(1).and_then(|rest| rest.split_whitespace().next().map(str::to_owned));
        assert!(output.status.success(), "{said}{complained}");
        assert!(number("begun in ").is_some() && number("begun in ") == number("anew in "), "{said}");
        assert!(complained.contains("begins anew"), "{complained}");
    }
}
