//! Files that keep something between calls: a mock node, a pool of VNIs.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::exit::{Exit, Failure};

/// What a file keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// What it is called in messages.
    pub(crate) name: &'static str,
    /// How the file says what it is.
    format: &'static str,
    version: u32,
    /// What is in it, in words.
    holds: &'static str,
    /// The member of the JSON object that has it.
    member: &'static str,
}

/// The file of a mock node.
pub(crate) const MOCK_NODE: Kind = Kind {
    name: "state file",
    format: "cxi mock node",
    version: 1,
    holds: "the state of a mock node",
    member: "node",
};

/// The file of a pool of VNIs.
pub(crate) const VNI_POOL: Kind = Kind {
    name: "pool file",
    format: "cxi vni pool",
    version: 1,
    holds: "the state of a pool of VNIs",
    member: "pool",
};

const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The file of what an audit saw.
pub(crate) const OBSERVATION: Kind = Kind {
    name: "idle file",
    format: "cxi idle services",
    version: 1,
    holds: "the services that an audit saw idle",
    member: "observation",
};

/// A state file that no other `cxi` can change while this exists.
///
/// It is replaced as a whole, so that a reader or a crash never sees half of it.
#[derive(Debug)]
pub(crate) struct StateFile {
    kind: Kind,
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents<T> {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u32,
    #[serde(alias = "node", alias = "pool", alias = "observation")]
    kept: T,
}

struct Written<'a, T> {
    kind: Kind,
    kept: &'a T,
}

impl<T: Serialize> Serialize for Written<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("format", self.kind.format)?;
        map.serialize_entry("version", &self.kind.version)?;
        map.serialize_entry(self.kind.member, self.kept)?;
        map.end()
    }
}

impl StateFile {
    /// Locks the file and makes sure that it could be replaced. It need not exist.
    pub(crate) fn lock(kind: Kind, path: &Path) -> Result<Self, Failure> {
        let path = real_path(kind, path)?;
        let permissions = writable(kind, &path)?;
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
                    "{}: the directory of the {} cannot be written: {error}",
                    path.display(),
                    kind.name
                ))
                .hint(format!(
                    "The {} is replaced as a whole, beside it goes a lock file.",
                    kind.name
                ))
            })?;
        wait_for(kind, &lock, &path)?;
        Ok(Self {
            kind,
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
    pub(crate) fn save<T: Serialize>(&self, kept: &T) -> Result<(), Failure> {
        let text = text_of(self.kind, kept)?;
        self.replace(text.as_bytes()).map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("{}: cannot be written: {error}", self.path.display()),
            )
            .hint("The file is as it was before; what the command changed is lost.")
        })
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let directory = directory_of(&self.path);
        let mut temporary = tempfile::Builder::new()
            .prefix(".cxi-state-")
            .permissions(new_file_mode())
            .tempfile_in(directory)?;
        temporary.write_all(text)?;
        if let Some(permissions) = &self.permissions {
            temporary.as_file().set_permissions(permissions.clone())?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&self.path)?;
        File::open(directory)?.sync_all()
    }
}

/// What a file keeps, as its text.
pub(crate) fn text_of<T: Serialize>(kind: Kind, kept: &T) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(&Written { kind, kept })
        .map_err(|error| Failure::new(Exit::Failed, format!("cannot write the state: {error}")))?;
    text.push('\n');
    Ok(text)
}

/// Reads a state file; `None` if there is none.
pub(crate) fn load<T: DeserializeOwned>(kind: Kind, path: &Path) -> Result<Option<T>, Failure> {
    // A pipe would keep the reader waiting, a device might never end.
    let text = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(no_regular_file(kind, path)),
        _ => fs::read_to_string(path),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure::bad_input(format!(
                "{}: the {} cannot be read: {error}",
                path.display(),
                kind.name
            )));
        }
    };
    parse(kind, &text).map(Some).map_err(|what| {
        Failure::bad_input(format!("{}: {what}", path.display()))
            .hint("The file was left as it is. Name another one, or remove it to start over.")
    })
}

pub(crate) fn parse<T: DeserializeOwned>(kind: Kind, text: &str) -> Result<T, String> {
    let Kind {
        name,
        format,
        version,
        holds,
        ..
    } = kind;
    if text.trim().is_empty() {
        return Err(format!("the {name} is empty: expected {holds} as JSON"));
    }
    let no_state =
        || format!("line 1: this is no {name}: expected an object with \"format\": \"{format}\"");
    let object = text.trim_start().starts_with('{');
    let header = serde_json::from_str::<Header>(text);
    let header = header.map_err(|error| {
        if object {
            damaged(name, &error)
        } else {
            no_state()
        }
    })?;
    match header.format.as_deref() {
        Some(found) if found == format => {}
        Some(other) => {
            return Err(format!(
                "line 1: this is no {name}: format is \"{other}\", expected \"{format}\""
            ));
        }
        None => return Err(no_state()),
    }
    match header.version {
        Some(found) if found == version => {}
        Some(other) => {
            return Err(format!(
                "the {name} has version {other}, this cxi reads version {version}"
            ));
        }
        None => {
            return Err(format!(
                "the {name} has no version, this cxi reads version {version}"
            ));
        }
    }
    serde_json::from_str::<Contents<T>>(text)
        .map(|contents| contents.kept)
        .map_err(|error| damaged(name, &error))
}

fn damaged(name: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        format!("the {name} is cut off: {error}")
    } else {
        format!("the {name} is damaged: {error}")
    }
}

/// Resolves symbolic links, so that the file behind a link is replaced and not the link.
fn real_path(kind: Kind, path: &Path) -> Result<PathBuf, Failure> {
    let cannot = |error: io::Error| {
        Failure::bad_input(format!(
            "{}: cannot be used as {}: {error}",
            path.display(),
            kind.name
        ))
    };
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(name) = path.file_name() else {
                return Err(cannot(error));
            };
            let directory = fs::canonicalize(directory_of(path)).map_err(cannot)?;
            Ok(directory.join(name))
        }
        Err(error) => Err(cannot(error)),
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Refuses what a rename would happily replace: a file marked read-only, or no file at all.
fn writable(kind: Kind, path: &Path) -> Result<Option<Permissions>, Failure> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(no_regular_file(kind, path)),
        Ok(metadata) if metadata.permissions().readonly() => Err(Failure::bad_input(format!(
            "{}: the {} is read-only, and this command changes the state",
            path.display(),
            kind.name
        ))
        .hint("Make it writable, or name another file.")),
        Ok(metadata) => Ok(Some(metadata.permissions())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::bad_input(format!(
            "{}: the {} cannot be read: {error}",
            path.display(),
            kind.name
        ))),
    }
}

fn no_regular_file(kind: Kind, path: &Path) -> Failure {
    Failure::bad_input(format!(
        "{}: cannot be used as {}: it is not a regular file",
        path.display(),
        kind.name
    ))
}

fn wait_for(kind: Kind, lock: &File, path: &Path) -> Result<(), Failure> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(
                    Exit::Busy,
                    format!(
                        "{}: another cxi has been using the {} for {} seconds",
                        path.display(),
                        kind.name,
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
