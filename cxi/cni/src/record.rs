//! Records of attachments: one file each, written before anything is allocated.

use std::ffi::OsStr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use cxi::{Vni, kernel_file};
use cxi_job::Grant;
use cxi_job::cluster::store::{self, Format, RecordError};
use cxi_site::FileLock;
use cxi_site::durable::{self, LockGuard, Owner, directory_of};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Error};

const RECORD: Format = Format {
    name: "record of an attachment",
    format: "cxi cni attachment",
    holds: "what an attachment has",
};
const ENDING: &str = ".json";
/// A name in a directory has at most 255 bytes; that of a file that is being written has a few more than
/// the record's.
const LONGEST_NAME: usize = 240;
/// Changes with each boot, which no service survives.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The identity of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub(crate) network: String,
    pub(crate) container: String,
    pub(crate) interface: String,
}

impl Attachment {
    /// An attachment of a container to a network with an interface.
    ///
    /// # Errors
    ///
    /// A name is not one that CNI allows, or they are too long together.
    pub fn new(network: &str, container: &str, interface: &str) -> Result<Self, Error> {
        let first = |c: char| c.is_ascii_alphanumeric();
        let plain = |name: &str| {
            name.starts_with(first) && name.chars().all(|c| first(c) || "_.-".contains(c))
        };
        let invalid = |code, what: &str, name: &str, expected: &str| {
            Err(Error::new(code, format!("invalid {what} {name:?}: expected {expected}")))
        };
        let letters = "letters, digits and _ . -, a letter or digit first";
        if !plain(network) {
            return invalid(Code::Configuration, "name of the network", network, letters);
        }
        if !plain(container) {
            return invalid(Code::Environment, "CNI_CONTAINERID", container, letters);
        }
        let of_interface = |c: char| !c.is_whitespace() && !c.is_control() && !"/:".contains(c);
        if matches!(interface, "" | "." | "..")
            || interface.len() > 15
            || !interface.chars().all(of_interface)
        {
            let expected = "the name of a network interface, at most 15 bytes";
            return invalid(Code::Environment, "CNI_IFNAME", interface, expected);
        }
        let attachment = Self {
            network: network.to_owned(),
            container: container.to_owned(),
            interface: interface.to_owned(),
        };
        if attachment.file_name().len() > LONGEST_NAME {
            return Err(Error::new(
                Code::Environment,
                "the names of network, container and interface are too long: expected at most 233 \
                 bytes altogether",
            ));
        }
        Ok(attachment)
    }

    /// The names are joined by colons, which none of them contains.
    fn file_name(&self) -> String {
        let Self { network, container, interface } = self;
        format!("{network}:{container}:{interface}{ENDING}")
    }
}

/// The resources of an attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) attachment: Attachment,
    /// The inode of its network namespace.
    pub(crate) netns: u32,
    pub(crate) vnis: Vec<Vni>,
    pub(crate) boot: String,
    /// Its services; `None` as long as it is unknown which of them were made.
    pub(crate) grant: Option<Grant>,
}

/// The directory of records.
#[derive(Debug)]
pub(crate) struct Records {
    directory: PathBuf,
    pub(crate) boot: String,
}

impl Records {
    /// Opens the directory, and creates it if it is missing. Records that others could have written are
    /// not trusted.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        durable::answers(directory).map_err(|error| io_error(directory, "read", error))?;
        // This check comes before anything is created: otherwise root would create it wherever the
        // link's owner chooses.
        if let Some(link) = link_of_another(directory, 0) {
            return Err(Error::new(
                Code::Io,
                format!(
                    "{}: leads through the symbolic link {} of another user: expected links of this \
                     user or of root",
                    directory.display(),
                    link.display()
                ),
            ));
        }
        let create = |directory, mode| {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true).mode(mode).create(directory)
        };
        // Users look for records of jobs in another directory next to it.
        let above = directory.parent().unwrap_or(directory);
        let made = create(above, 0o755).and_then(|()| create(directory, 0o700));
        made.map_err(|error| io_error(directory, "created", error))?;
        let metadata =
            fs::metadata(directory).map_err(|error| io_error(directory, "read", error))?;
        if metadata.uid() != geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
            return Err(Error::new(
                Code::Io,
                format!(
                    "{}: other users can write to it: expected a directory of this user with mode \
                     755 or 700",
                    directory.display()
                ),
            ));
        }
        let boot = kernel_file::read(Path::new(BOOT_ID))
            .map_err(|error| io_error(Path::new(BOOT_ID), "read", error))?;
        Ok(Self { directory: directory.to_owned(), boot: boot.trim().to_owned() })
    }

    /// Keeps other calls of the plugin from changing records, and services of records. Removes what
    /// a killed call left of a record that it was writing.
    pub(crate) fn lock(&self) -> Result<LockGuard, Error> {
        let guard = FileLock::new(self.directory.join("lock")).acquire().map_err(|error| {
            let code = if error.is_busy() { Code::TryAgain } else { Code::Io };
            Error::new(code, error.to_string())
        })?;
        durable::remove_abandoned(&self.directory, OsStr::new("."));
        Ok(guard)
    }

    /// The record of an attachment, if there is one of this boot.
    pub(crate) fn read(&self, attachment: &Attachment) -> Result<Option<Record>, Error> {
        self.load(&self.path(attachment))
    }

    /// Every record of this boot. One that cannot be read is a separate error.
    pub(crate) fn all(&self) -> Result<Vec<Result<Record, Error>>, Error> {
        let names = store::names(&self.directory)?.into_iter();
        let paths = names.filter(|name| name.ends_with(ENDING));
        let loaded = paths.map(|name| self.load(&self.directory.join(name)));
        Ok(loaded.filter_map(Result::transpose).collect())
    }

    fn load(&self, path: &Path) -> Result<Option<Record>, Error> {
        let Some(record) = RECORD.read::<Record>(path)? else { return Ok(None) };
        // The attachment in the record names the file that is removed in the end.
        if self.path(&record.attachment) != path {
            let reason = "it names another attachment than its file".to_owned();
            let path = path.to_owned();
            return Err(RecordError::Invalid { path, reason }.into());
        }
        if record.boot == self.boot {
            return Ok(Some(record));
        }
        // Its services ended with the boot that they were made in, and ids are reused.
        self.remove(&record.attachment)?;
        Ok(None)
    }

    /// Writes a record; when this returns, it survives a crash. Needs the lock.
    pub(crate) fn write(&self, record: &Record) -> Result<(), Error> {
        let owner = Owner::Set { uid: None, mode: 0o600 };
        Ok(RECORD.write(&self.path(&record.attachment), record, owner)?)
    }

    /// Removes a record, if there is one.
    pub(crate) fn remove(&self, attachment: &Attachment) -> Result<(), Error> {
        Ok(store::remove(&self.path(attachment))?)
    }

    fn path(&self, attachment: &Attachment) -> PathBuf {
        self.directory.join(attachment.file_name())
    }
}

/// The number of links that the kernel follows.
const MOST_LINKS: usize = 40;

/// A symbolic link on a path, followed `links` links already, whose owner could make it lead
/// elsewhere at any time.
fn link_of_another(path: &Path, links: usize) -> Option<PathBuf> {
    let mut places: Vec<_> = path.ancestors().collect();
    places.reverse();
    places.into_iter().find_map(|place| {
        // A place that does not exist yet will be created by this user.
        let metadata = fs::symlink_metadata(place).ok()?;
        if !metadata.is_symlink() {
            return None;
        }
        let trusted = [0, geteuid().as_raw()].contains(&metadata.uid());
        if !trusted || links >= MOST_LINKS {
            return Some(place.to_owned());
        }
        let target = directory_of(place).join(fs::read_link(place).ok()?);
        link_of_another(&target, links + 1)
    })
}

fn io_error(path: &Path, what: &'static str, source: io::Error) -> Error {
    let path = path.to_owned();
    RecordError::Io { path, what, source }.into()
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Invalid { .. } => Self::new(Code::Decoding, error.to_string())
                .details("Destroy the services of its network namespace, then remove the file."),
            _ => Self::new(Code::Io, error.to_string()),
        }
    }
}
