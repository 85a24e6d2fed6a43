//! Directories of tests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

/// A directory that is removed at the end of the test.
#[derive(Debug)]
pub struct Directory(TempDir);

impl Directory {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "it is on the disk")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.join(name);
        fs::write(&path, text).expect("the file can be written");
        path
    }

    /// Writes a file that nobody else may read, and returns its path.
    pub fn write_secret(&self, name: &str, text: &str) -> String {
        let path = self.write(name, text);
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
        path
    }
}
