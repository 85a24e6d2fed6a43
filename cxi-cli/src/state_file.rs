//! The file that keeps a mock node between calls.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};

const FORMAT: &str = "cxi mock node";
const VERSION: u32 = 1;
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// A state file that no other `cxi` can change while this exists.
///
/// It is replaced as a whole, so that a reader or a crash never sees half of it.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    /// Mode of the file that is replaced, if there is one.
    permissions: Option<Permissions>,
    _lock: File,
}

#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents<T> {
    format: String,
    version: u32,
    node: T,
}

impl StateFile {
    /// Locks the file and makes sure that it could be replaced. It need not exist.
    pub(crate) fn lock(path: &Path) -> Result<Self, Failure> {
        let path = real_path(path)?;
        let permissions = writable(&path)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let lock_path = path.with_file_name(name);
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(|error| {
                Failure::bad_input(format!(
                    "{}: the folder of the state file cannot be written: {error}",
                    path.display()
                ))
                .hint("The state file is replaced as a whole, beside it goes a lock file.")
            })?;
        wait_for(&lock, &path)?;
        Ok(Self {
            path,
            permissions,
            _lock: lock,
        })
    }

    /// Where the file is, with symbolic links resolved.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file.
    pub(crate) fn save<T: Serialize>(&self, node: &T) -> Result<(), Failure> {
        let contents = Contents {
            format: FORMAT.to_owned(),
            version: VERSION,
            node,
        };
        let mut text = serde_json::to_vec_pretty(&contents).map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot write the state: {error}"))
        })?;
        text.push(b'\n');
        self.replace(&text).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("{}: cannot be written: {error}", self.path.display()),
            )
            .hint("The file is as it was before; what the command changed is lost.")
        })
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let folder = folder_of(&self.path);
        let mut temporary = tempfile::Builder::new()
            .prefix(".cxi-state-")
            .permissions(new_file_mode())
            .tempfile_in(folder)?;
        temporary.write_all(text)?;
        if let Some(permissions) = &self.permissions {
            temporary.as_file().set_permissions(permissions.clone())?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&self.path)?;
        File::open(folder)?.sync_all()
    }
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::bad_input(format!(
                "{}: the state file cannot be read: {error}",
                path.display()
            )));
        }
    };
    parse(&text).map(Some).map_err(|what| {
        Failure::bad_input(format!("{}: {what}", path.display()))
            .hint("The file was left as it is. Name another one, or remove it to start over.")
    })
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.trim().is_empty() {
        return Err("the state file is empty: expected the state of a mock node as JSON".into());
    }
    let header: Header = serde_json::from_str(text).map_err(|error| damaged(&error))?;
    match header.format.as_deref() {
        Some(FORMAT) => {}
        Some(other) => {
            return Err(format!(
                "line 1: this is no state file: format is \"{other}\", expected \"{FORMAT}\""
            ));
        }
        None => {
            return Err(format!(
                "line 1: this is no state file: expected an object with \"format\": \"{FORMAT}\""
            ));
        }
    }
    match header.version {
        Some(VERSION) => {}
        Some(other) => {
            return Err(format!(
                "the state file has version {other}, this cxi reads version {VERSION}"
            ));
        }
        None => {
            return Err(format!(
                "the state file has no version, this cxi reads version {VERSION}"
            ));
        }
    }
    serde_json::from_str::<Contents<T>>(text)
        .map(|contents| contents.node)
        .map_err(|error| damaged(&error))
}

fn damaged(error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("the state file is cut off: {error}")
    } else {
        format!("the state file is damaged: {error}")
    }
}

/// Resolves symbolic links, so that the file behind a link is replaced and not the link.
fn real_path(path: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error: io::Error| {
        Failure::bad_input(format!(
            "{}: cannot be used as state file: {error}",
            path.display()
        ))
    };
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(name) = path.file_name() else {
                return Err(cannot(error));
            };
            let folder = fs::canonicalize(folder_of(path)).map_err(cannot)?;
            Ok(folder.join(name))
        }
        Err(error) => Err(cannot(error)),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Refuses what a rename would happily replace: a file marked read-only, or no file at all.
fn writable(path: &Path) -> Result<Option<Permissions>, Failure> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Failure::bad_input(format!(
            "{}: cannot be used as state file: it is not a regular file",
            path.display()
        ))),
        Ok(metadata) if metadata.permissions().readonly() => Err(Failure::bad_input(format!(
            "{}: the state file is read-only, and this command changes the state",
            path.display()
        ))
        .hint("Make it writable, or name another file.")),
        Ok(metadata) => Ok(Some(metadata.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::bad_input(format!(
            "{}: the state file cannot be read: {error}",
            path.display()
        ))),
    }
}

fn wait_for(lock: &File, path: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(
                    Exit::Busy,
                    format!(
                        "{}: another cxi has been using the state file for {} seconds",
                        path.display(),
                        LOCK_WAIT.as_secs()
                    ),
                ));
            }
            Err(TryLockError::Error(error)) => {
                return Err(Failure::new(
                    Exit::Failed,
                    format!("{}: cannot be locked: {error}", path.display()),
                ));
            }
        }
    }
}

/// Of a new file, before the umask.
fn new_file_mode() -> Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    Permissions::from_mode(0o666)
}
