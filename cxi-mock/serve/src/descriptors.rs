//! Asking the mock's file system in the process that answers.

use std::fs;
use std::io;
use std::thread;

use nix::sched::{CloneFlags, unshare};

use super::error::{Doing, ServeError};

/// Does what asks the mock's file system, in the process that answers. If the process is killed
/// meanwhile, this thread waits until the descriptor on which the answer would come is closed. So it
/// must not keep that descriptor itself: it has a copy of all, and closes those.
pub(crate) fn without_descriptors(
    act: impl FnOnce() -> Result<(), ServeError> + Send,
) -> Result<(), ServeError> {
    let what = || "give up the descriptors of a thread".to_owned();
    let close_all = || {
        unshare(CloneFlags::CLONE_FILES)?;
        for fd in descriptors()? {
            let _ = nix::unistd::close(fd);
        }
        io::Result::Ok(())
    };
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            close_all().doing(what)?;
            act()
        });
        let done = thread.join();
        done.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")).doing(what))
    })
}

/// The numbers of the open descriptors, without those of the terminal.
fn descriptors() -> io::Result<Vec<i32>> {
    let entries = fs::read_dir("/proc/thread-self/fd")?;
    let numbers = entries.map(|entry| Ok(entry?.file_name().to_str().and_then(|n| n.parse().ok())));
    let numbers: io::Result<Vec<Option<i32>>> = numbers.collect();
    Ok(numbers?
        .into_iter()
        .flatten()
        .filter(|fd| *fd > 2)
        .collect())
}
