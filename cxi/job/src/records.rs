//! What a node keeps of its jobs.

use std::path::Path;
use std::{fmt, fs, io};

use cxi::kernel_file;

use crate::IdSet;

/// The VNIs of the jobs that a node has records of: of each file `NAME.vnis` in a directory, such as
/// `1024,1025`. A prolog writes it before it makes services, an epilog removes it after they are
/// gone, so this is what [`CleanPolicy::live`](crate::CleanPolicy::live) asks for.
///
/// # Errors
///
/// The directory or a record cannot be read, or a record holds something else; the error names it.
pub fn live_vnis(directory: &Path) -> io::Result<IdSet> {
    let of = |path: &Path, what: &dyn fmt::Display| {
        io::Error::other(format!("{}: {what}", path.display()))
    };
    let mut live = IdSet::new();
    let entries = fs::read_dir(directory).map_err(|error| of(directory, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| of(directory, &error))?.path();
        if path.extension().is_none_or(|kind| kind != "vnis") {
            continue;
        }
        let text = match kernel_file::read(&path) {
            // The job has ended since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text.map_err(|error| of(&path, &error))?,
        };
        let vnis: IdSet = text.trim().parse().map_err(|error| of(&path, &error))?;
        live = live.union(&vnis);
    }
    Ok(live)
}
