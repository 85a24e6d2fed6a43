//! File systems that do not answer: of a network whose server is gone, or of a program (FUSE) that is
//! stopped.
//!
//! Whoever uses such a file system waits until it answers, and often not even SIGKILL ends that: then a
//! thread that waits keeps its process from ending too. So another process asks first.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::input::piped;
use crate::mounts::{Mount, MountTable};

/// Longest time that a file system may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for which an answer is relied on, and for which one that has not answered is not asked again.
const FRESH: Duration = Duration::from_secs(1);
const DEAD: Duration = Duration::from_secs(30);

/// The program of coreutils and busybox, by its path: the caller of a setuid program chooses `PATH`.
const STAT: [&str; 2] = ["/usr/bin/stat", "/bin/stat"];

/// Knowledge about mounts.
#[derive(Debug, Default)]
struct Known {
    mounts: Option<(Instant, MountTable)>,
    /// By mount: when it was asked, and whether it answered.
    asked: BTreeMap<u64, (Instant, bool)>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known { mounts: None, asked: BTreeMap::new() });

/// Checks that the file system of a path answers, if it is not one of this machine: otherwise, opening,
/// looking for or removing a file there could keep this process waiting for ever, beyond SIGKILL. The
/// file need not exist.
///
/// A file system that stops answering right after this still keeps its next user waiting.
///
/// # Errors
///
/// [`io::ErrorKind::TimedOut`] if the file system does not answer within 5 s.
pub fn answers(path: &Path) -> io::Result<()> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_fresh = |at: &Instant| at.elapsed() < FRESH;
    if known.mounts.as_ref().is_none_or(|(at, _)| !is_fresh(at)) {
        // Without /proc, nothing is known.
        let Ok(mounts) = MountTable::of(Path::new("/proc/self")) else { return Ok(()) };
        known.mounts = Some((Instant::now(), mounts));
    }
    let Known { mounts, asked } = &mut *known;
    let mounts = mounts.as_ref().map(|(_, mounts)| mounts);
    let Some(mount) = mounts.and_then(|mounts| mounts.first_that_may_be_dead(path)) else {
        return Ok(());
    };
    let answers = match asked.get(&mount.id) {
        Some((at, true)) if is_fresh(at) => true,
        Some((at, false)) if at.elapsed() < DEAD => false,
        _ => {
            let answers = ask(mount, PATIENCE);
            asked.insert(mount.id, (Instant::now(), answers));
            answers
        }
    };
    if answers {
        return Ok(());
    }
    let Mount { at, kind, .. } = mount;
    let message = format!("the file system at {} ({kind}) does not answer", at.display());
    Err(io::Error::new(io::ErrorKind::TimedOut, message))
}

/// Asks a file system for something that it must not know by heart: how much of it is free.
fn ask(mount: &Mount, patience: Duration) -> bool {
    let start = |program: &&str| {
        Command::new(program)
            .args(["-f", "-c", "%t", "--"])
            .arg(&mount.at)
            .env_clear()
            // Pipes, because a container may have no /dev/null.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()
    };
    // Without the program, files are used without this check.
    let Some(mut child) = STAT.iter().find_map(start) else { return true };
    let Some(output) = child.stdout.take() else { return true };
    let answer = piped(&output, 1 << 12, patience, patience);
    if matches!(answer, Ok(None)) || answer.is_err() {
        abandon(child);
        return false;
    }
    let _ = child.wait();
    true
}

/// Ends a process that may not end. This one does not wait for it, and may end before it.
fn abandon(mut child: Child) {
    let _ = child.kill();
    // If there can be no thread, whoever waits for this process gets its child too.
    let _ = thread::Builder::new().name("cxi-stat".to_owned()).spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_this_machine_answer() {
        let directory = tempfile::tempdir().unwrap();
        answers(directory.path()).unwrap();
        answers(&directory.path().join("missing/file")).unwrap();
        let mount = Mount {
            id: 1,
            file_system: 1,
            kind: "nfs4".to_owned(),
            at: "/proc".into(),
            layers: Vec::new(),
        };
        assert!(ask(&mount, PATIENCE));
        // Whatever it answers.
        let gone = Mount { at: directory.path().join("gone"), ..mount };
        assert!(ask(&gone, PATIENCE));
    }
}
