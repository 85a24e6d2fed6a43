//! Records: JSON files that are replaced as a whole, and say what they contain.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use cxi::kernel_file::read_bounded;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use cxi_site::durable::{self, Owner};
use cxi_site::{ErrorCode, JobId, input};

/// Far longer than the record of a job on all nodes of a large machine.
const LONGEST: u64 = 16 << 20;

/// Format of a file: a header with format and version, and one value.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::exhaustive_structs, reason = "programs name their files")]
pub struct Format {
    /// Name of the file in messages: `job record`.
    pub name: &'static str,
    /// The name of the format in the file.
    pub format: &'static str,
    /// Content of the file, in words: `what a job has on this node`.
    pub holds: &'static str,
}

/// The version of all formats.
const VERSION: u32 = 1;

#[derive(Deserialize)]
struct Header {
    format: Option<String>,
    version: Option<u32>,
}

/// A file: what it is, and the value.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents<T> {
    format: String,
    version: u32,
    record: T,
}

impl Format {
    /// A value as the text of a file.
    ///
    /// # Errors
    ///
    /// The value cannot be written as JSON.
    pub fn print<T: Serialize>(self, value: &T) -> serde_json::Result<String> {
        let contents = Contents { format: self.format.to_owned(), version: VERSION, record: value };
        let mut text = serde_json::to_string_pretty(&contents)?;
        text.push('\n');
        Ok(text)
    }

    /// The value in the text of a file.
    ///
    /// # Errors
    ///
    /// Parses a text, or says what is wrong with it, and where.
    pub fn parse<T: DeserializeOwned>(self, text: &str) -> Result<T, String> {
        let Self { name, format, holds } = self;
        if text.trim().is_empty() {
            return Err(format!("the {name} is empty: expected {holds} as JSON"));
        }
        let damaged = |error: serde_json::Error| {
            let how = if error.is_eof() { "cut off" } else { "damaged" };
            format!("the {name} is {how}: {error}")
        };
        let other =
            || format!("line 1: invalid {name}: expected an object with \"format\": \"{format}\"");
        // The header is parsed alone first. Otherwise, a file of another kind would be reported as
        // damaged at its first member.
        let header: Header = serde_json::from_str(text).map_err(|error| {
            if text.trim_start().starts_with('{') { damaged(error) } else { other() }
        })?;
        match header.format.as_deref() {
            Some(found) if found == format => {}
            Some(found) => {
                return Err(format!(
                    "line 1: invalid {name}: format is \"{found}\", expected \"{format}\""
                ));
            }
            None => return Err(other()),
        }
        if header.version != Some(VERSION) {
            let found = header
                .version
                .map_or_else(|| "no version".to_owned(), |found| format!("version {found}"));
            return Err(format!("the {name} has {found}, this cxi reads version {VERSION}"));
        }
        let contents: Contents<T> = serde_json::from_str(text).map_err(damaged)?;
        Ok(contents.record)
    }

    /// Reads a record; `None` if there is no file. A record that users other than its owner could
    /// have written is not trusted.
    ///
    /// # Errors
    ///
    /// [`RecordError`].
    pub fn read<T: DeserializeOwned>(self, path: &Path) -> Result<Option<T>, RecordError> {
        let Some(text) = self.text(path)? else { return Ok(None) };
        let invalid = |reason| RecordError::Invalid { path: path.to_owned(), reason };
        self.parse(&text).map(Some).map_err(invalid)
    }

    /// The text of a record that can be trusted.
    pub(super) fn text(self, path: &Path) -> Result<Option<String>, RecordError> {
        let invalid = |reason: String| RecordError::Invalid { path: path.to_owned(), reason };
        let read = durable::open_regular(path).and_then(|file| {
            let mode = file.metadata()?.mode();
            Ok((mode, read_bounded(file, LONGEST).and_then(input::text)?))
        });
        let (mode, text) = match read {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(invalid("not a record: expected a regular file".to_owned()));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(invalid(format!("the {} is damaged: expected text", self.name)));
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(invalid(format!("not a {}: {error}", self.name)));
            }
            Err(error) => return Err(cannot(path, "read")(error)),
        };
        if mode & 0o022 != 0 {
            return Err(invalid("group or others may write it: expected mode 644".to_owned()));
        }
        Ok(Some(text))
    }

    /// Replaces a record, or creates it.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`]: it is as it was before.
    pub fn write<T: Serialize>(
        self,
        path: &Path,
        record: &T,
        owner: Owner,
    ) -> Result<(), RecordError> {
        self.print(record)
            .map_err(io::Error::from)
            .and_then(|text| durable::replace(path, text.as_bytes(), owner))
            .map_err(cannot(path, "written"))
    }
}

/// A record that every user may read.
pub(super) const PUBLIC: Owner = Owner::Set { uid: None, mode: 0o644 };

/// Reason for which a record cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A file or directory cannot be read, written or removed.
    #[error("{}: cannot be {what}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The attempt that failed.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A file contains something else than its record, or is not trusted.
    #[error("{}: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The fault of its content.
        reason: String,
    },
    /// A job's id is not the name of a file.
    #[error("invalid job '{0}': expected no slash and no leading dot, as its record is a file")]
    Name(JobId),
}

impl RecordError {
    /// Returns the kind of failure.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                ErrorCode::NotPermitted
            }
            Self::Io { .. } => ErrorCode::Failed,
            Self::Invalid { .. } | Self::Name(_) => ErrorCode::BadInput,
        }
    }
}

/// For `map_err`.
pub(super) fn cannot<'a>(
    path: &'a Path,
    what: &'static str,
) -> impl FnOnce(io::Error) -> RecordError + 'a {
    move |source| RecordError::Io { path: path.to_owned(), what, source }
}

/// The name of a job as a file's.
pub(super) fn name_of(job: &JobId) -> Result<&str, RecordError> {
    let name = job.as_str();
    if name.starts_with('.') || name.contains('/') {
        return Err(RecordError::Name(job.clone()));
    }
    Ok(name)
}

/// Removes a record, if there is one.
///
/// # Errors
///
/// [`RecordError::Io`].
pub fn remove(path: &Path) -> Result<(), RecordError> {
    let removes = || {
        durable::answers(path)?;
        durable::may_change()?;
        fs::remove_file(path)
    };
    match removes() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(cannot(path, "removed")(error))
        }
        _ => Ok(()),
    }
}

/// The names in a directory that are not hidden, sorted; none if it does not exist.
///
/// # Errors
///
/// [`RecordError::Io`].
pub fn names(directory: &Path) -> Result<Vec<String>, RecordError> {
    let read = || -> io::Result<Vec<String>> {
        durable::answers(directory)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name().into_string();
            names.extend(name.ok().filter(|name| !name.starts_with('.')));
        }
        names.sort();
        Ok(names)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        result => result.map_err(cannot(directory, "listed")),
    }
}
