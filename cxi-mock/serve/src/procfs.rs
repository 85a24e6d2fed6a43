//! What `/proc` says of a thread. Names in it may be any bytes.

use std::fs::File;
use std::io::Read;

use nix::unistd::Pid;

/// What is read at a time: reading little by little takes a system call for each piece.
const PAGE: usize = 4096;
/// More than the lines up to `Gid`: a name of 64 bytes at most, and numbers.
const HEAD: usize = 1024;

/// The text of a file of a thread; `None` if the thread has ended.
pub(crate) fn text(thread: Pid, file: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(PAGE);
    open(thread, file)?.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn open(thread: Pid, file: &str) -> Option<File> {
    File::open(format!("/proc/{thread}/{file}")).ok()
}

/// The lines of a thread's `status`, each a name and its value.
#[derive(Debug, Default)]
pub(crate) struct Status(String);

impl Status {
    /// The first lines, name, process and users among them: three system calls.
    pub(crate) fn head(thread: Pid) -> Option<Self> {
        let mut bytes = [0; HEAD];
        let length = open(thread, "status")?.read(&mut bytes).ok()?;
        let head = String::from_utf8_lossy(bytes.get(..length)?);
        Some(Self(head.into_owned()))
    }

    /// All lines.
    pub(crate) fn whole(thread: Pid) -> Option<Self> {
        text(thread, "status").map(Self)
    }

    /// The words of a line.
    pub(crate) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.lines().filter_map(move |line| {
            let value = line.strip_prefix(name)?;
            value.strip_prefix(':')
        });
        values.take(1).flat_map(str::split_whitespace)
    }

    /// The process of the thread.
    pub(crate) fn process(&self) -> Option<Pid> {
        let process = self.words("Tgid").next()?;
        process.parse().ok().map(Pid::from_raw)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nix::unistd::{getgid, gettid, getuid};

    use super::*;

    #[test]
    fn a_head_reaches_up_to_the_groups() {
        let head = Status::head(gettid()).expect("proc is mounted");
        assert_eq!(head.process(), Some(Pid::this()));
        let uid = getuid().to_string();
        assert_eq!(head.words("Uid").collect::<Vec<_>>(), [uid.as_str(); 4]);
        let gid = getgid().to_string();
        assert_eq!(head.words("Gid").next(), Some(gid.as_str()));
        let whole = Status::whole(gettid()).expect("proc is mounted");
        assert!(whole.0.len() > head.0.len() && whole.words("CapEff").next().is_some());
    }

    #[test]
    fn a_name_is_any_bytes() {
        let thread = thread::spawn(|| {
            rustix::thread::set_name(c"\xff").expect("a name");
            let status = Status::head(gettid()).expect("a status");
            assert_eq!(status.process(), Some(Pid::this()));
            assert!(text(gettid(), "stat").is_some());
        });
        thread.join().expect("no failure");
    }

    #[test]
    fn lines_are_words() {
        let status = Status("Name:\ta Tgid:\\n\nTgid:\t7\nGroups:\t4 24 1000 \n".to_owned());
        assert_eq!(status.process(), Some(Pid::from_raw(7)));
        assert_eq!(
            status.words("Groups").collect::<Vec<_>>(),
            ["4", "24", "1000"]
        );
        assert_eq!(status.words("Group").next(), None);
        assert_eq!(Status::default().process(), None);
    }
}
