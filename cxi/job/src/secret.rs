//! Files with a password, a token or a key.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use cxi::kernel_file::{open_regular, read_bounded};
use nix::unistd::geteuid;

/// Longer than any secret.
const LONGEST: u64 = 1 << 16;

/// Reads a file that only its owner can read: this process's user, or root.
///
/// ```
/// use std::fs::{self, Permissions};
/// use std::os::unix::fs::PermissionsExt;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("password");
/// fs::write(&path, "secret\n")?;
/// fs::set_permissions(&path, Permissions::from_mode(0o644))?;
/// assert!(cxi_job::secret::read(&path).is_err());
/// fs::set_permissions(&path, Permissions::from_mode(0o600))?;
/// assert_eq!(cxi_job::secret::read(&path)?, b"secret\n");
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Those of opening and reading; [`io::ErrorKind::PermissionDenied`] if the file has another owner, or
/// its mode lets group or others do anything; [`io::ErrorKind::InvalidInput`] for what is not a regular
/// file; [`io::ErrorKind::FileTooLarge`] for more than 64 KiB.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    check(&file)?;
    read_bounded(file, LONGEST)
}

fn check(file: &File) -> io::Result<()> {
    let (metadata, user) = (file.metadata()?, geteuid().as_raw());
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    let problem = if owner != user && owner != 0 {
        format!("a secret of uid {owner}: expected a file of uid {user} or of root")
    } else if mode & 0o077 != 0 {
        format!("a secret that others can use (mode {mode:03o}): expected mode 600")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        fs::write(&path, "x").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            for path in [&path, &link] {
                let error = read(path).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                assert!(error.to_string().contains(&format!("(mode {mode:03o})")), "{error}");
            }
        }
        for mode in [0o600, 0o400] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&link).unwrap(), b"x");
        }
        if geteuid().is_root() {
            chown(&path, Some(1234), None).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("uid 1234: expected a file of uid 0"), "{error}");
        }
    }
}
