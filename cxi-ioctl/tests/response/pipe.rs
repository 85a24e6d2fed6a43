//! A full pipe: `write(2)` sleeps in it until it is read. Meanwhile another thread learns from
//! `/proc` where the command is, and writes the response to the address in it.
//!
//! The thread writes as any code does, so a build with AddressSanitizer sees where to.

use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use std::{ptr, thread};

use cxi_ioctl::CharDev;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::gettid;

use crate::driver;

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Pipe {
    memory: File,
}

/// An error says why a pipe cannot stand in for a driver here.
pub(crate) fn start() -> Result<Pipe, String> {
    fs::read_to_string("/proc/thread-self/syscall")
        .map_err(|error| format!("/proc does not show system calls: {error}"))?;
    let memory = File::open("/proc/self/mem")
        .map_err(|error| format!("/proc does not give the process's memory: {error}"))?;
    Ok(Pipe { memory })
}

impl Pipe {
    /// Answers the one command that `caller` sends.
    pub(crate) fn serve(&self, caller: impl FnOnce(&CharDev)) {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let fd = writer.as_raw_fd();
        let filler = fill(&mut writer);
        let thread = gettid();
        let device = CharDev::from(OwnedFd::from(writer));
        thread::scope(|scope| {
            scope.spawn(|| self.answer(reader, filler, thread.as_raw(), fd));
            caller(&device);
        });
    }

    fn answer(&self, mut reader: PipeReader, filler: usize, thread: i32, fd: i32) {
        let (address, len) = sleeping_write(thread, fd);
        let mut command = vec![0; len];
        self.memory.read_exact_at(&mut command, address).unwrap();
        let (stores, answer) = driver::answer(&command);
        for (address, bytes) in stores {
            let place = ptr::with_exposed_provenance_mut::<u8>(usize::try_from(address).unwrap());
            // SAFETY: the thread that made the address sleeps in `write(2)`, and has to leave as
            // much room there as a driver writes. Whether it has is what this is a test of.
            unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        assert!(answer.is_ok(), "a pipe cannot refuse");

        // Only now is there room for the command, and the write can end.
        let mut drained = vec![0; filler + len];
        reader.read_exact(&mut drained).unwrap();
        assert_eq!(drained[filler..], command);
    }
}

/// Leaves no room for another byte; returns how many there are.
fn fill(writer: &mut PipeWriter) -> usize {
    let size = fcntl(&*writer, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let size = usize::try_from(size).unwrap();
    writer.write_all(&vec![0; size]).unwrap();
    size
}

/// Waits until the thread sleeps in a `write(2)` to that descriptor: address and length.
fn sleeping_write(thread: i32, fd: i32) -> (u64, usize) {
    let path = format!("/proc/self/task/{thread}/syscall");
    let start = Instant::now();
    loop {
        let line = fs::read_to_string(&path).unwrap();
        if let Some((address, len)) = parse(&line, fd) {
            return (address, len);
        }
        assert!(start.elapsed() < PATIENCE, "no write(2) came: {line}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// `number arguments… stack-pointer instruction-pointer`, or a word for a running thread.
fn parse(line: &str, fd: i32) -> Option<(u64, usize)> {
    let mut words = line.split_whitespace();
    let number: i64 = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let (descriptor, address, len) = (argument()?, argument()?, argument()?);
    (number == libc::SYS_write && i32::try_from(descriptor) == Ok(fd))
        .then_some((address, usize::try_from(len).ok()?))
}
