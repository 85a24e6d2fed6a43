//! Files that a command writes.

use std::path::Path;

use cxi_job::durable::{self, Owner};

use crate::exit::{Exit, Failure};

/// Replaces a file as a whole, so that no reader sees half of it. Everyone may read the new one.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let owner = Owner::Set {
        uid: None,
        mode: 0o644,
    };
    durable::replace(path, text.as_bytes(), owner).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("{}: cannot be written: {error}", path.display()),
        )
    })
}
