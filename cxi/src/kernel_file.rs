//! Reading short files that others write, the kernel among them: not always text, and not always
//! files.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Far more than any file of sysfs, of a process or of a job has. Anything longer, such as a link to
/// `/dev/zero`, is not one of those.
const LONGEST: u64 = 1 << 16;

/// Opens a file without blocking, even if it is a pipe that nobody writes to.
///
/// # Errors
///
/// The errors of opening.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)
}

/// Reads a file. Bytes that are not UTF-8, such as in a name that a program gave itself, are
/// replaced.
///
/// # Errors
///
/// The errors of opening and reading; [`io::ErrorKind::FileTooLarge`] for a file of more than 64
/// KiB.
pub fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let length = open(path)?.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if length as u64 > LONGEST {
        let message = format!("too long: expected at most {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_end_is_refused() {
        assert_eq!(
            read(Path::new("/dev/zero")).unwrap_err().to_string(),
            "too long: expected at most 65536 bytes"
        );
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        std::fs::write(&path, b"Name:\t\xFFx\n").unwrap();
        assert_eq!(read(&path).unwrap(), "Name:\t\u{FFFD}x\n");
        std::fs::write(&path, vec![b' '; 1 << 16]).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1 << 16);
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numa_node");
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(&path).status().unwrap().success());
        assert_eq!(read(&path).unwrap(), "");
        assert_eq!(crate::sysfs::attribute(&path).unwrap(), "");
    }
}
