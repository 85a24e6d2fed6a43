//! Input that a person or another program hands over: a file, a pipe, or standard input.
//!
//! None of them is waited for without end, and none is read beyond a limit: a pipe may have a writer
//! that forgot it, `/dev/zero` has no end, and the file system of a file may be
//! [dead](crate::durable::answers).
//!
//! ```
//! use cxi_site::input;
//! use std::path::Path;
//!
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("service.yaml");
//! std::fs::write(&path, "vnis: [1024]\n")?;
//! assert_eq!(input::text(input::read(&path, 1 << 20)?)?, "vnis: [1024]\n");
//! let refused = input::read(directory.path(), 1 << 20).unwrap_err();
//! assert_eq!(refused.to_string(), "a directory: expected a regular file");
//! let refused = input::read(Path::new("/dev/zero"), 1 << 20).unwrap_err();
//! assert_eq!(refused.to_string(), "a character device: expected a regular file");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use std::fs::{FileType, Metadata, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use nix::errno::Errno;
use nix::libc::{O_NOCTTY, O_NONBLOCK};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::makedev;

use crate::durable;

/// Longest time that a pipe may be without a first byte.
const FIRST: Duration = Duration::from_secs(10);

/// Longest time that all of it may take.
const WHOLE: Duration = Duration::from_secs(60);

/// Reads a file of at most `longest` bytes, or a pipe, such as one of a shell's process substitution,
/// into which somebody writes.
///
/// # Errors
///
/// Those of opening and reading; [`io::ErrorKind::InvalidInput`] for a directory, a socket or a device
/// other than `/dev/null`; [`io::ErrorKind::FileTooLarge`] for more bytes; [`io::ErrorKind::TimedOut`] for
/// a pipe into which nothing is written for 10 s, or which is not closed within 60 s, and for a file
/// system that does not answer.
pub fn read(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    durable::answers(path)?;
    let other = |kind: FileType| {
        let message = format!("{}: expected a regular file", in_words(kind));
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer, and a terminal must not become this process's.
    let opened = options.read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path);
    let file = opened.map_err(|error| match fs::metadata(path) {
        Ok(there) if there.file_type().is_socket() => other(there.file_type()),
        _ => error,
    })?;
    let metadata = file.metadata()?;
    let kind = metadata.file_type();
    if is_null(&metadata) {
        return Ok(Vec::new());
    }
    if !kind.is_file() && !kind.is_fifo() {
        return Err(other(kind));
    }
    if metadata.len() > longest {
        return Err(too_long(longest));
    }
    piped(&file, longest, FIRST, WHOLE)?.ok_or_else(|| nothing(FIRST))
}

/// Reads standard input to its end.
///
/// # Errors
///
/// Those of reading; [`io::ErrorKind::FileTooLarge`] for more than `longest` bytes;
/// [`io::ErrorKind::TimedOut`] if it is not at its end within 60 s.
pub fn stdin(longest: u64) -> io::Result<Vec<u8>> {
    piped(&io::stdin(), longest, WHOLE, WHOLE)?.ok_or_else(|| nothing(WHOLE))
}

/// Reads to the end of what another program writes; `None` if there is nothing within `first`.
///
/// # Errors
///
/// Those of reading; [`io::ErrorKind::FileTooLarge`] for more than `longest` bytes;
/// [`io::ErrorKind::TimedOut`] if the end is not reached within `whole`.
pub fn piped(
    file: &impl AsFd,
    longest: u64,
    first: Duration,
    whole: Duration,
) -> io::Result<Option<Vec<u8>>> {
    let begins = Instant::now();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let time = if bytes.is_empty() { first.min(whole) } else { whole };
        let left = time.saturating_sub(begins.elapsed());
        let mut polled = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
        let rounded_up = left + Duration::from_millis(1);
        let timeout = PollTimeout::try_from(rounded_up).unwrap_or(PollTimeout::MAX);
        let ready = match poll(&mut polled, timeout) {
            Err(Errno::EINTR) => continue,
            ready => ready?,
        };
        let late = begins.elapsed() >= time;
        if late && bytes.is_empty() && ready == 0 {
            return Ok(None);
        }
        if late && begins.elapsed() >= whole {
            let message = format!("not at its end within {}", humantime::format_duration(whole));
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        if ready == 0 {
            continue;
        }
        match nix::unistd::read(file, &mut piece) {
            Ok(0) => return Ok(Some(bytes)),
            Ok(read) => bytes.extend_from_slice(piece.get(..read).unwrap_or_default()),
            Err(Errno::EINTR) => {}
            // A file of the kernel that always looks ready.
            Err(Errno::EAGAIN) => thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(error.into()),
        }
        if bytes.len() as u64 > longest {
            return Err(too_long(longest));
        }
    }
}

/// The text that was read.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`], with the line, for what is not UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        let message = format!("line {}: expected text in UTF-8", line + 1);
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn is_null(metadata: &Metadata) -> bool {
    metadata.file_type().is_char_device() && metadata.rdev() == makedev(1, 3)
}

fn in_words(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_char_device() {
        "a character device"
    } else if kind.is_block_device() {
        "a block device"
    } else {
        "a socket"
    }
}

fn too_long(longest: u64) -> io::Error {
    let message = format!("too long: expected at most {longest} bytes");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

fn nothing(time: Duration) -> io::Error {
    let time = time.as_secs();
    let message = format!("nothing was written to it within {time} s");
    io::Error::new(io::ErrorKind::TimedOut, message)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[test]
    fn what_is_no_file_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let terminal = Path::new("/dev/tty");
        for (path, kind) in [
            (directory.path(), "a directory"),
            (&socket, "a socket"),
            (Path::new("/dev/zero"), "a character device"),
            (terminal, "a character device"),
        ] {
            let error = read(path, 9).unwrap_err();
            // A process without a terminal cannot open it.
            if path == terminal && error.raw_os_error().is_some() {
                continue;
            }
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
            assert_eq!(error.to_string(), format!("{kind}: expected a regular file"));
        }
        assert_eq!(read(Path::new("/dev/null"), 9).unwrap(), b"");
        let missing = directory.path().join("missing");
        assert_eq!(read(&missing, 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let long = "too long: expected at most 4 bytes";
        assert_eq!(read(&path, 4).unwrap_err().to_string(), long);
        // A file with a hole of many terabytes.
        File::options().write(true).open(&path).unwrap().set_len(1 << 42).unwrap();
        assert_eq!(read(&path, 4).unwrap_err().to_string(), long);
        // The kernel says that its files are empty.
        assert!(read(Path::new("/proc/self/maps"), 1 << 20).unwrap().len() > 100);
        assert_eq!(read(Path::new("/proc/self/maps"), 4).unwrap_err().to_string(), long);
    }

    #[test]
    fn a_pipe_has_to_be_written_and_closed_in_time() {
        let (reader, mut writer) = io::pipe().unwrap();
        assert_eq!(piped(&reader, 9, SOON, 2 * SOON).unwrap(), None);
        writer.write_all(b"1234").unwrap();
        let error = piped(&reader, 9, SOON, 2 * SOON).unwrap_err();
        assert_eq!(error.to_string(), "not at its end within 100ms");
        // Somebody who goes on writing slowly does not get more time.
        thread::spawn(move || {
            while writer.write_all(b"1").is_ok() {
                thread::sleep(SOON / 10);
            }
        });
        let begins = Instant::now();
        let error = piped(&reader, 1 << 16, SOON, 2 * SOON).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begins.elapsed() < Duration::from_secs(20));
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"1234567890").unwrap();
        assert_eq!(piped(&reader, 9, SOON, WHOLE).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"1234").unwrap();
        drop(writer);
        assert_eq!(piped(&reader, 9, WHOLE, WHOLE).unwrap().unwrap(), b"1234");
    }

    #[test]
    fn text_is_utf8() {
        let no_text = text(b"vnis: [1]\n# \xff\n".to_vec()).unwrap_err();
        assert_eq!(no_text.to_string(), "line 2: expected text in UTF-8");
        assert_eq!(text(b"1234".to_vec()).unwrap(), "1234");
    }
}
