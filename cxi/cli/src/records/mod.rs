//! What is kept of jobs in files: on the controller, what it decided; on a node, what runs there.
//!
//! ```text
//!   controller                                each node of the job
//!
//!   job reserve --> running/JOB/job.json ---> job prolog: reads, writes its own record
//!                   …/JOB/reservation.json    with hardware collectives
//!   job release --> ended/JOB/job.json        job epilog: services gone
//!                   …/JOB/confirmed/NODE <--- confirms, removes its own record
//!   VNIs are free when all nodes have confirmed
//! ```
//!
//! Nodes lock nothing of the controller's, and each of them writes one file that no other writes.

pub(crate) mod controller;
pub(crate) mod node;
mod reservation;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

use cxi_job::JobId;
use nix::libc::O_NONBLOCK;
use nix::unistd::geteuid;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use reservation::Reservation;

use crate::exit::{Exit, Failure};
use crate::input;
use crate::state_file::{Kind, parse, text_of};

/// Far more than the record of a job on all nodes of a large machine.
const LONGEST: u64 = 16 << 20;

fn cannot(path: &Path, what: &str, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::PermissionDenied => Exit::NotPermitted,
        _ => Exit::Failed,
    };
    Failure::new(exit, format!("{}: cannot {what}: {error}", path.display()))
}

/// The name of a job as a file's.
fn name_of(job: &JobId) -> Result<&str, Failure> {
    let name = job.as_str();
    if name.starts_with('.') || name.contains('/') {
        return Err(Failure::bad_input(format!(
            "invalid job '{job}': expected no slash and no dot in front, as its record is a file"
        )));
    }
    Ok(name)
}

/// Reads a record; `None` if there is none. One that others than its owner could have written is
/// not trusted.
fn read<T: DeserializeOwned>(kind: Kind, path: &Path) -> Result<Option<T>, Failure> {
    // A pipe would be waited for.
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open(path);
    let opened = open.and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(path, "be read", &error)),
    };
    if !metadata.is_file() {
        return Err(Failure::bad_input(format!(
            "{}: not a record: expected a regular file",
            path.display()
        )));
    }
    if metadata.mode() & 0o022 != 0 {
        return Err(Failure::bad_input(format!(
            "{}: group or others may write it: expected mode 644",
            path.display()
        )));
    }
    let text = input::bounded(file, LONGEST).map_err(|error| cannot(path, "be read", &error))?;
    parse(kind, &text)
        .map(Some)
        .map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))
}

/// Who may read a record.
#[derive(Clone, Copy)]
enum Readers {
    All,
    /// This user, or else who writes it.
    Owner(Option<u32>),
}

/// Writes a record as a whole.
fn write<T: Serialize>(
    kind: Kind,
    path: &Path,
    record: &T,
    readers: Readers,
) -> Result<(), Failure> {
    let text = text_of(kind, record)?;
    let written = || {
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".new-")
            .tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        match readers {
            Readers::All => file
                .as_file()
                .set_permissions(fs::Permissions::from_mode(0o644))?,
            // The mode of temporary files is 600.
            Readers::Owner(uid) if geteuid().is_root() => fchown(&file, uid, None)?,
            Readers::Owner(_) => {}
        }
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    written().map_err(|error| cannot(path, "be written", &error))
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(cannot(path, "be removed", &error))
        }
        _ => Ok(()),
    }
}

/// The names in a directory; none if it does not exist.
fn names(directory: &Path) -> Result<Vec<String>, Failure> {
    let read = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            let name = entry?.file_name();
            names.extend(
                name.to_str()
                    .filter(|name| !name.starts_with('.'))
                    .map(str::to_owned),
            );
        }
        names.sort();
        Ok(names)
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        result => result.map_err(|error| cannot(directory, "be listed", &error)),
    }
}
