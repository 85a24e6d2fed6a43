//! Files that a user names.

use std::fs::File;
use std::io;
use std::path::Path;

use cxi::kernel_file::read_bounded;

use super::error::{Doing, ServeError};

/// Far larger than a node with all its NICs, or a site's services.
const LONGEST: u64 = 64 << 20;

/// Reads a file, which may be a pipe.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ServeError> {
    File::open(path).and_then(bounded).doing(|| format!("read {}", path.display()))
}

/// Reads a file that is open, unless it is too long.
pub(crate) fn bounded(file: File) -> io::Result<Vec<u8>> {
    read_bounded(file, LONGEST)
}
