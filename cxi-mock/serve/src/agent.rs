//! Starting programs on another node of a cluster, as `ssh` does: `cxi-mock rsh HOST COMMAND`.
//!
//! A process of one node cannot enter the PID namespace of another, so process 1 of each node
//! starts what it is asked to. The server connects the two: it hands one end of a socket to
//! `cxi-mock rsh` and the other to that process. Over it goes a session, with standard input,
//! output and error, and back comes the exit status.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use cxi::environment::{NODE_VARIABLE as NODE_SOCKET, WINDOWS_VARIABLE};
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::control::{Connection, receive, send};
use super::error::{Doing, ServeError, say};
use super::launch::{DIR_VARIABLE, NODE_VARIABLE, Signals, this};
use super::namespaces::{Variable, variables};
use super::privileges::mount_refused;
use super::{children, procfs};

/// Line by which process 1 of a node says that programs can run there.
pub(crate) const READY: &[u8] = b"ready\n";
/// The status of `ssh` where the other side fails.
const EXIT_LOST: u8 = 255;
/// Options of `ssh` that have a value.
const WITH_VALUE: &str = "BbcDEeFIiJLlmOoPpQRSWw";

/// Program to run.
#[derive(Debug, Serialize, Deserialize)]
struct Session {
    program: Vec<OsString>,
    variables: Vec<Variable>,
    directory: PathBuf,
}

/// `ssh [OPTION...] [USER@]HOST [COMMAND...]`, whose options have no effect except `-n`.
pub(crate) fn ssh(words: &[OsString]) -> Result<u8, ServeError> {
    run(words).or_else(|error| {
        say(format_args!("{error}"));
        Ok(EXIT_LOST)
    })
}

fn run(words: &[OsString]) -> Result<u8, ServeError> {
    let (host, words, without_input) = parse(words).ok_or_else(|| {
        ServeError::Input("no node: expected a host, such as n2, and a command".to_owned())
    })?;
    let command: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let program = if command.is_empty() {
        vec!["sh".into()]
    } else {
        // The words reach a shell as one line, so quotes have to be doubled, as with ssh.
        vec!["sh".into(), "-c".into(), command.join(OsStr::new(" "))]
    };
    let dir = env::var_os(DIR_VARIABLE).ok_or_else(|| {
        ServeError::Input(format!(
            "{DIR_VARIABLE} is not set: run this on a node of a cluster that has a --dir"
        ))
    })?;
    // Asks for the node first: nothing is made for one that does not exist.
    let stream = UnixStream::from(Connection::open(dir.as_ref())?.shell(host)?);
    // If two variables have the same name, the last one counts.
    let own = variables([(NODE_VARIABLE, host.into()), ("TMPDIR", temporary(dir.as_ref(), host)?)]);
    let session = Session {
        program,
        variables: env::vars_os().chain(own).collect(),
        directory: env::current_dir().unwrap_or_else(|_| "/".into()),
    };
    let nothing = File::open("/dev/null").doing(|| "open /dev/null".to_owned())?;
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let stdin = if without_input { nothing.as_fd() } else { stdin.as_fd() };
    let fds = [stdin, stdout.as_fd(), stderr.as_fd()];
    session.run(&stream, &fds).doing(|| format!("start a program on {host}"))?
}

/// Runs a program on a node, with neither input nor output, and returns its status.
pub(crate) fn run_silently(shell: OwnedFd, program: &[&str]) -> Result<u8, ServeError> {
    let session = Session {
        program: program.iter().map(OsString::from).collect(),
        variables: env::vars_os().collect(),
        directory: "/".into(),
    };
    session.run(&shell.into(), &[]).doing(|| "start a program on a node".to_owned())?
}

impl Session {
    /// Runs its program at the other end, which gets these descriptors; returns the status.
    fn run(
        self,
        stream: &UnixStream,
        fds: &[BorrowedFd<'_>],
    ) -> io::Result<Result<u8, ServeError>> {
        send(stream, &Ok(serde_json::to_value(self)?), fds)?;
        // Without an answer, the node is gone.
        let Ok((status, _)) = receive(stream) else { return Ok(Ok(EXIT_LOST)) };
        let number = |status: Value| status.as_u64().and_then(|status| status.try_into().ok());
        Ok(status.map(|status| number(status).unwrap_or(EXIT_LOST)).map_err(ServeError::Input))
    }
}

/// The host, the command, and whether the command has no input.
fn parse(words: &[OsString]) -> Option<(&str, &[OsString], bool)> {
    let (mut words, mut without_input) = (words.iter(), false);
    loop {
        let word = words.next()?.to_str()?;
        let Some(letters) = word.strip_prefix('-') else {
            let host = word.rsplit('@').next().unwrap_or(word);
            return Some((host, words.as_slice(), without_input));
        };
        for (at, letter) in letters.char_indices() {
            without_input |= letter == 'n';
            if WITH_VALUE.contains(letter) {
                // Its value is the rest of the word, or the next word if there is no rest.
                if at + letter.len_utf8() == letters.len() {
                    words.next();
                }
                break;
            }
        }
    }
}

/// A directory for a node's temporary files. Daemons name theirs in `/tmp`, which nodes share, by
/// their process number, which is the same on each node.
pub(crate) fn temporary(dir: &Path, node: &str) -> Result<OsString, ServeError> {
    let path = dir.join("tmp").join(node);
    fs::create_dir_all(&path).doing(|| format!("make the directory {}", path.display()))?;
    Ok(path.into_os_string())
}

/// A session at process 1 of a node: the socket, and the program once it runs.
type Open = (UnixStream, Option<Pid>);

/// Process 1 of a node with PID namespace: makes its `/proc`, says that the node is ready, starts
/// what it is asked to, and reaps orphans until the server closes the input, or is gone. Then the
/// kernel ends all processes of the node.
pub(crate) fn init() -> Result<u8, ServeError> {
    let signals = Signals::take()?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        .map_err(|errno| mount_refused("a /proc of the node's own", errno))?;
    give_up_mounting().doing(|| "give up a capability".to_owned())?;
    let server = io::stdin().as_fd().try_clone_to_owned();
    let server = UnixStream::from(server.doing(|| "keep the server's socket".to_owned())?);
    let mut output = io::stdout();
    let said = output.write_all(READY).and_then(|()| output.flush());
    said.doing(|| "say that the node is ready".to_owned())?;
    let mut sessions: Vec<Open> = Vec::new();
    loop {
        let fixed = [signals.as_fd(), server.as_fd()];
        let opened = sessions.iter().map(|(stream, _)| stream.as_fd());
        let fds = fixed.into_iter().chain(opened);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        // An interrupted wait looks like one that found nothing.
        let _ = poll(&mut fds, PollTimeout::NONE);
        let ready: Vec<_> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let (fixed, ready) = ready.split_at(2);
        let mut at = ready.iter().copied();
        sessions.retain_mut(|session| !at.next().unwrap_or(false) || go_on(session));
        while signals.next().is_some() {}
        for (ended, status) in children::reap() {
            sessions.retain(|(stream, pid)| {
                let over = *pid == Some(ended);
                if over {
                    let _ = send(stream, &Ok(json!(status)), &[]);
                }
                !over
            });
        }
        if fixed[1] {
            let Ok((_, fds)) = receive(&server) else { return Ok(0) };
            sessions.extend(fds.into_iter().map(|fd| (UnixStream::from(fd), None)));
        }
    }
}

/// Starts the program of a session, or ends it if `rsh` is gone. Returns whether the session
/// continues.
fn go_on((stream, pid): &mut Open) -> bool {
    if let Some(pid) = pid {
        // A program started by nohup, or below one that was, ignores SIGHUP.
        for signal in [Signal::SIGHUP, Signal::SIGTERM] {
            let _ = killpg(*pid, signal);
        }
        return false;
    }
    match receive(stream).and_then(|(session, fds)| start(session, fds)) {
        Ok(child) => {
            *pid = Some(child);
            true
        }
        Err(error) => {
            let _ = send(stream, &Err(format!("cannot run the command: {error}")), &[]);
            false
        }
    }
}

fn start(session: Result<Value, String>, fds: Vec<OwnedFd>) -> io::Result<Pid> {
    let session = session.map_err(io::Error::other)?;
    let session: Session = serde_json::from_value(session)?;
    let mut fds = fds.into_iter().map(Stdio::from);
    let mut next = || fds.next().unwrap_or_else(Stdio::null);
    let mut command = this(&["start"], &session.program);
    command.env_clear().envs(session.variables);
    // The caller's variables name the socket of the caller's node.
    for name in [NODE_SOCKET, WINDOWS_VARIABLE] {
        match env::var_os(name) {
            Some(socket) => command.env(name, socket),
            None => command.env_remove(name),
        };
    }
    command.stdin(next()).stdout(next()).stderr(next());
    // A separate process group, so that all of it can be ended when `rsh` ends.
    command.process_group(0);
    if session.directory.is_dir() {
        command.current_dir(session.directory);
    }
    let child = command.spawn()?;
    Ok(procfs::pid(child.id()))
}

/// Programs get no capability from process 1 that their user does not have.
fn give_up_mounting() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable -= CapabilitySet::SYS_ADMIN;
    Ok(set_capabilities(None, sets)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values_as_in_ssh() {
        for (line, expected) in [
            ("n2", Some(("n2", "", false))),
            ("me@n2 cat -n", Some(("n2", "cat -n", false))),
            ("-n n2 cat", Some(("n2", "cat", true))),
            ("-xn n2 cat", Some(("n2", "cat", true))),
            ("-np 22 n2 cat", Some(("n2", "cat", true))),
            ("-xp 22 n2 cat", Some(("n2", "cat", false))),
            ("-p22 -l ann n2 cat", Some(("n2", "cat", false))),
            ("-lann n2", Some(("n2", "", false))),
            ("-oStrictHostKeyChecking=no n2", Some(("n2", "", false))),
            ("-o StrictHostKeyChecking=no n2", Some(("n2", "", false))),
            ("-np 22", None),
            ("", None),
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let parsed = parse(&words).map(|(host, command, without_input)| {
                (host, command.join(OsStr::new(" ")), without_input)
            });
            let expected = expected.map(|(host, command, no)| (host, command.into(), no));
            assert_eq!(parsed, expected, "{line}");
        }
    }
}
