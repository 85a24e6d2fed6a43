//! Files that a command writes.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::exit::{Exit, Failure};

/// Replaces a file as a whole, so that no reader sees half of it. Everybody may read the new one.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    write(path, text).map_err(|error| {
        Failure::new(
            Exit::Failed,
            format!("{}: cannot be written: {error}", path.display()),
        )
    })
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    // Hidden, and without the ending that readers of such directories look for.
    let mut file = tempfile::Builder::new()
        .prefix(".cxi-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
