//! Reading of short files that others write, such as those of `/proc` and `/sys`: not always text, and
//! not always files. Nothing here waits for a pipe, or reads without a bound.
//!
//! ```
//! use std::path::Path;
//!
//! let release = cxi::kernel_file::read(Path::new("/proc/sys/kernel/osrelease"))?;
//! assert!(!release.is_empty());
//! assert!(cxi::kernel_file::read(Path::new("/dev/zero")).is_err());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Far more than any file of sysfs, of a process or of a job has.
const LONGEST: u64 = 1 << 16;

/// Opens a regular file for reading.
///
/// # Errors
///
/// As [`open_regular_with`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(path, OpenOptions::new().read(true), 0)
}

/// Opens a regular file with options, and with more flags of `open(2)`. A pipe is refused at once,
/// rather than waited for until another process opens its other end.
///
/// # Errors
///
/// The errors of opening; [`io::ErrorKind::InvalidInput`] for what is not a regular file.
pub fn open_regular_with(path: &Path, options: &mut OpenOptions, flags: i32) -> io::Result<File> {
    let file = open_nonblocking(path, options, flags)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    let error = io::ErrorKind::InvalidInput;
    Err(io::Error::new(error, "not a regular file"))
}

/// Opens a file of sysfs for reading. The kernel made it, so its kind is not looked up: that would be
/// one more system call for each of the many attributes of a NIC.
pub(crate) fn open_attribute(path: &Path) -> io::Result<File> {
    open_nonblocking(path, OpenOptions::new().read(true), 0)
}

fn open_nonblocking(path: &Path, options: &mut OpenOptions, flags: i32) -> io::Result<File> {
    options.custom_flags(flags | nix::libc::O_NONBLOCK).open(path)
}

/// Reads a file. Bytes that are not UTF-8, such as in a name that a program gave itself, are
/// replaced.
///
/// # Errors
///
/// As [`open_regular_with`], and those of reading; [`io::ErrorKind::FileTooLarge`] for a file of more
/// than 64 KiB.
pub fn read(path: &Path) -> io::Result<String> {
    let bytes = read_bounded(open_regular(path)?, LONGEST)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads all of a file or stream that has at most `longest` bytes.
///
/// # Errors
///
/// Those of reading; [`io::ErrorKind::FileTooLarge`] for more bytes.
pub fn read_bounded(reader: impl Read, longest: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if reader.take(longest + 1).read_to_end(&mut bytes)? as u64 > longest {
        let message = format!("too long: expected at most {longest} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_of_sane_length_is_read() {
        let error = read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("status");
        std::fs::write(&path, b"Name:\t\xFFx\n").unwrap();
        assert_eq!(read(&path).unwrap(), "Name:\t\u{FFFD}x\n");
        std::fs::write(&path, vec![b' '; 1 << 16]).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1 << 16);
        std::fs::write(&path, vec![b' '; (1 << 16) + 1]).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "too long: expected at most 65536 bytes");
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("numa_node");
        let mut mkfifo = std::process::Command::new("mkfifo");
        assert!(mkfifo.arg(&path).status().unwrap().success());
        assert_eq!(read(&path).unwrap_err().to_string(), "not a regular file");
        assert_eq!(crate::sysfs::attribute(&path).unwrap(), "");
    }
}
