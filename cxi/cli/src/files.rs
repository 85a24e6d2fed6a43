//! Files that a command reads or replaces, and files that preserve state between calls, such as the
//! state of a mock node.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use cxi::kernel_file::read_bounded;
use cxi_job::cluster::store::Format;
use cxi_site::durable::{self, FileLock, LockError, LockGuard, Owner, directory_of, open_regular};
use cxi_site::{JobId, input};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Failure};
use crate::output::print_wait;

/// The file of a mock node.
pub const MOCK_NODE: Format =
    Format { name: "state file", format: "cxi mock node", holds: "the state of a mock node" };

/// The file of idle services that an audit found.
pub const OBSERVATION: Format = Format {
    name: "idle file",
    format: "cxi idle services",
    holds: "the services that an audit saw idle",
};

/// Far more than the state of a full node or a list of a cluster's jobs needs.
pub(crate) const LONGEST: u64 = 64 << 20;
/// Longest wait for another `cxi` that changes a state file.
const WAIT: Duration = Duration::from_secs(60);

/// The path of this program.
pub(crate) fn this_program() -> Result<PathBuf, Failure> {
    env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find the path of this program: {error}")))
}

/// A file that was read, with its name for messages.
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Reads a text: a file or a pipe, or standard input for `-`.
pub(crate) fn read(path: &Path, longest: u64) -> Result<Input, Failure> {
    let (name, bytes) = handed_over(path, longest);
    let text = bytes.and_then(input::text).map_err(|error| cannot_read(&name, &error))?;
    Ok(Input { name, text })
}

/// Reads what programs printed, in the same places. Bytes that are not UTF-8 are replaced.
pub(crate) fn read_lossy(path: &Path, longest: u64) -> Result<Input, Failure> {
    let (name, bytes) = handed_over(path, longest);
    let bytes = bytes.map_err(|error| cannot_read(&name, &error))?;
    Ok(Input { name, text: String::from_utf8_lossy(&bytes).into_owned() })
}

const STDIN: &str = "standard input";

fn handed_over(path: &Path, longest: u64) -> (String, io::Result<Vec<u8>>) {
    if path.as_os_str() == "-" {
        return (STDIN.to_owned(), input::stdin(longest));
    }
    (path.display().to_string(), input::read(path, longest))
}

fn cannot_read(name: &str, error: &io::Error) -> Failure {
    Failure::bad_input(format!("{name}: cannot be read: {error}"))
}

/// Longest wait for the first of what may be piped in, and for all of it.
const FIRST: Duration = Duration::from_secs(1);
const WHOLE: Duration = Duration::from_secs(60);

/// Reads what is waiting on standard input, if that is a file or a pipe: a command that needs no input
/// must not wait for ever for a pipe that a scheduler left open.
pub(crate) fn waiting(longest: u64) -> Result<Option<Input>, Failure> {
    let stdin = io::stdin();
    let kind = match nix::sys::stat::fstat(&stdin) {
        Ok(found) => found.st_mode & nix::libc::S_IFMT,
        // It may be closed.
        Err(_) => return Ok(None),
    };
    if !matches!(kind, nix::libc::S_IFREG | nix::libc::S_IFIFO | nix::libc::S_IFSOCK) {
        return Ok(None);
    }
    let bytes = input::piped(&stdin, longest, FIRST, WHOLE);
    let bytes = bytes.map_err(|error| cannot_read(STDIN, &error))?;
    Ok(bytes.map(|bytes| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Input { name: STDIN.to_owned(), text }
    }))
}

/// Reads a list of jobs, one per line.
pub(crate) fn jobs<C: FromIterator<JobId>>(path: &Path) -> Result<C, Failure> {
    let Input { name, text } = read(path, LONGEST)?;
    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(number, line)| {
            let job = line.trim().parse();
            job.map_err(|error| Failure::bad_input(format!("{name}: line {number}: {error}")))
        })
        .collect()
}

/// Replaces a file atomically, so that no reader sees half of it. Everyone may read the new file.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let owner = Owner::Set { uid: None, mode: 0o644 };
    durable::replace(path, text.as_bytes(), owner).map_err(|error| Failure::unwritten(path, &error))
}

/// A state file that no other `cxi` can change while this exists.
///
/// It is replaced atomically: a reader never sees half of it, and a crash never leaves half of it.
#[derive(Debug)]
pub(crate) struct StateFile {
    format: Format,
    path: PathBuf,
    _lock: LockGuard,
}

impl StateFile {
    /// Waits for earlier holders of the lock, takes it, and makes sure that the file could be
    /// replaced. It need not exist.
    pub(crate) fn lock(format: Format, path: &Path) -> Result<Self, Failure> {
        let path = real_path(format, path)?;
        replaceable(format, &path)?;
        let lock = FileLock::of(&path).wait(WAIT).on_wait(Some(print_wait)).acquire();
        let lock = lock.map_err(|error| of_lock(format.name, &error))?;
        // The file may have been replaced during the wait.
        replaceable(format, &path)?;
        Ok(Self { format, path, _lock: lock })
    }

    /// Returns the path of the file, with symbolic links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file, which keeps its owner and mode.
    pub(crate) fn save<T: Serialize>(&self, kept: &T) -> Result<(), Failure> {
        let text = print(self.format, kept)?;
        durable::replace(&self.path, text.as_bytes(), Owner::Kept).map_err(|error| {
            Failure::unwritten(&self.path, &error)
                .hint("The file is as it was before; what the command changed is lost.")
        })
    }
}

/// The text of a file.
pub(crate) fn print<T: Serialize>(format: Format, kept: &T) -> Result<String, Failure> {
    format.print(kept).map_err(|error| Failure::failed(format!("cannot write the state: {error}")))
}

/// Returns the failure for a file that other commands change and that could not be locked.
pub(crate) fn of_lock(name: &str, error: &LockError) -> Failure {
    match error {
        LockError::Busy { path, waited } => Failure::new(
            Exit::Busy,
            format!(
                "{}: another cxi has been using the {name} for {}",
                // The path of the lock file without its extension `.lock`.
                path.with_extension("").display(),
                humantime::format_duration(*waited)
            ),
        ),
        LockError::Open { .. } => Failure::bad_input(error).hint(format!(
            "The lock file is in the directory of the {name}: changing the {name} requires \
             permission to write there."
        )),
        _ => Failure::failed(error),
    }
}

fn unreadable(format: Format, path: &Path, why: &dyn std::fmt::Display) -> Failure {
    let (path, name) = (path.display(), format.name);
    Failure::bad_input(format!("{path}: the {name} cannot be read: {why}"))
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load<T: DeserializeOwned>(format: Format, path: &Path) -> Result<Option<T>, Failure> {
    let text = open_regular(path).and_then(|file| read_bounded(file, LONGEST));
    let text = text.and_then(input::text);
    let text = match text {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(format, path, &error)),
    };
    format.parse(&text).map(Some).map_err(|what| {
        Failure::bad_input(format!("{}: {what}", path.display()))
            .hint("The file was left as it is. Name another one, or remove it to start over.")
    })
}

/// Resolves symbolic links, so that the file behind a link is replaced and not the link.
fn real_path(format: Format, path: &Path) -> Result<PathBuf, Failure> {
    let real = durable::answers(path).and_then(|()| fs::canonicalize(path)).or_else(|error| {
        match path.file_name() {
            Some(name) if error.kind() == io::ErrorKind::NotFound => {
                Ok(fs::canonicalize(directory_of(path))?.join(name))
            }
            _ => Err(error),
        }
    });
    real.map_err(|error| {
        let (path, name) = (path.display(), format.name);
        Failure::bad_input(format!("{path}: cannot be used as {name}: {error}"))
    })
}

/// Refuses files that a rename would replace although it should not: read-only files, and anything
/// that is not a regular file.
fn replaceable(format: Format, path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(unreadable(format, path, &"not a regular file")),
        Ok(metadata) if metadata.permissions().readonly() => Err(Failure::bad_input(format!(
            "{}: the {} is read-only, and this command would change it",
            path.display(),
            format.name
        ))
        .hint("Make it writable, or name another file.")),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(unreadable(format, path, &error))
        }
        _ => Ok(()),
    }
}
