//! Files with a password, a token or a key.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{self, Path};

use cxi::kernel_file::read_bounded;
use nix::unistd::geteuid;

use crate::durable::open_regular;

/// Longer than any secret.
const LONGEST: u64 = 1 << 16;

/// Reads a file that only its owner can read: this process's user, or root. As root, also a file of
/// another user, such as that of a scheduler's controller, if nobody but root and that user can have
/// put it there: its path has no symbolic link, and nobody else can write to a directory of it.
/// Otherwise its owner might have linked to it what only root can read.
///
/// ```
/// use std::fs::{self, Permissions};
/// use std::os::unix::fs::PermissionsExt;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("password");
/// fs::write(&path, "secret\n")?;
/// fs::set_permissions(&path, Permissions::from_mode(0o644))?;
/// assert!(cxi_site::secret::read(&path).is_err());
/// fs::set_permissions(&path, Permissions::from_mode(0o600))?;
/// assert_eq!(cxi_site::secret::read(&path)?, b"secret\n");
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
    check(&file, path)?;
    read_bounded(file, LONGEST)
}

fn check(file: &File, path: &Path) -> io::Result<()> {
    let (metadata, user) = (file.metadata()?, geteuid().as_raw());
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    let problem = if owner != user && owner != 0 && (user != 0 || !is_put_by(owner, path)?) {
        let and = if user == 0 { ", or of a user who alone can put it there" } else { "" };
        format!("a secret of uid {owner}: expected a file of uid {user} or of root{and}")
    } else if mode & 0o077 != 0 {
        format!("a secret that others can use (mode {mode:03o}): expected mode 600")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

/// Returns whether nobody but root and this user can have put a file there.
fn is_put_by(owner: u32, path: &Path) -> io::Result<bool> {
    let path = path::absolute(path)?;
    if fs::canonicalize(&path)? != path {
        return Ok(false);
    }
    for (depth, directory) in path.ancestors().skip(1).enumerate() {
        let metadata = fs::symlink_metadata(directory)?;
        let (user, mode) = (metadata.uid(), metadata.mode());
        // What is theirs in /tmp, nobody else replaces.
        let is_shared = mode & 0o022 != 0 && (depth == 0 || mode & 0o1000 == 0);
        if user != 0 && user != owner || is_shared {
            return Ok(false);
        }
    }
    Ok(true)
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
    }

    #[test]
    fn root_reads_a_secret_of_a_user_who_alone_can_have_put_it_there() {
        if !geteuid().is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("secret"), directory.path().join("link"));
        fs::write(&path, "x").unwrap();
        symlink(&path, &link).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(1234), None).unwrap();
        for owner in [0, 1234] {
            chown(directory.path(), Some(owner), None).unwrap();
            assert_eq!(read(&path).unwrap(), b"x");
            let error = read(&link).unwrap_err().to_string();
            assert!(
                error.contains("uid 1234: expected a file of uid 0 or of root, or "),
                "{error}"
            );
        }
        // Another user's directory, and one in which others can write.
        for (owner, mode) in [(1235, 0o700), (1234, 0o770), (0, 0o1777)] {
            chown(directory.path(), Some(owner), None).unwrap();
            fs::set_permissions(directory.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
    }
}
