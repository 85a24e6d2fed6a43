//! The windows of an open file, which programs map.
//!
//! The kernel passes a mapping through to a memory of this process. A mapping holds that memory
//! rather than the file, so only the memory can tell whether the file is still in use.

#![allow(
    unsafe_code,
    reason = "the requests that tell who has a memory open, and what a mapping is of, have no safe \
              wrapper"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use fuser::{BackingId, INodeNo, ReplyOpen};
use nix::libc::{
    AT_EMPTY_PATH, AT_HANDLE_FID, F_SETLEASE, F_UNLCK, F_WRLCK, fcntl, file_handle,
    name_to_handle_at,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};

use cxi_mock::Client;
use cxi_mock::serve::Windows;

/// The memory behind the windows of an open file, in the hands of the kernel.
#[derive(Debug)]
pub(crate) struct Backing {
    id: Arc<BackingId>,
    probe: Probe,
}

impl Backing {
    /// Hands the memory of a file that is being opened to the kernel. This takes Linux 6.9, and
    /// privilege in the initial user namespace.
    pub(crate) fn new(client: &Client, reply: &ReplyOpen) -> io::Result<Self> {
        let memory = Windows::of(client).memory()?;
        Ok(Self { probe: Probe::new(&memory)?, id: Arc::new(reply.open_backing(&*memory)?) })
    }

    pub(crate) fn id(&self) -> Arc<BackingId> {
        Arc::clone(&self.id)
    }

    /// Returns whether a program has the file open, or has a window of it mapped.
    pub(crate) fn is_in_use(&self) -> bool {
        self.probe.is_open_elsewhere()
    }
}

/// Determines whether another process has a memory open. A mapping keeps open what it was made
/// from.
#[derive(Debug)]
struct Probe(File);

impl Probe {
    /// Opens the memory again, because the kernel does not count the descriptor that came with it.
    fn new(memory: &Arc<OwnedFd>) -> io::Result<Self> {
        File::open(format!("/proc/self/fd/{}", memory.as_raw_fd())).map(Self)
    }

    /// A write lease is granted only if no one else has the file open. If it is refused for another
    /// reason, the memory counts as closed: otherwise it would never count as closed later.
    fn is_open_elsewhere(&self) -> bool {
        let held = self.lease(F_WRLCK);
        let _ = self.lease(F_UNLCK);
        held.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    fn lease(&self, kind: i32) -> io::Result<()> {
        // SAFETY: F_SETLEASE takes an integer and touches no memory; the descriptor is open as
        // long as the file that is borrowed here.
        match unsafe { fcntl(self.0.as_raw_fd(), F_SETLEASE, kind) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// The number of a file system while it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem(u32, u32);

/// The file system that a path leads to, and the inode there as FUSE has it: `stat(2)` shows the
/// same number for every open file of a device. `None` for a file that FUSE does not serve.
///
/// The file system is not asked. The server may be killed while it asks itself, and would then wait
/// forever.
pub(crate) fn opened(path: &str) -> Option<(FileSystem, INodeNo)> {
    /// The inode number in two words, and a generation.
    const FILEID_INO64_GEN: i32 = 0x81;
    #[repr(C)]
    struct Handle(file_handle, [u32; 3]);
    let file = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut handle = Handle(file_handle { handle_bytes: 12, handle_type: 0, f_handle: [] }, [0; 3]);
    let mut mount = 0;
    // SAFETY: the handle has room for the bytes that it says, and the path is an empty C string.
    let done = unsafe {
        name_to_handle_at(
            file.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut handle).cast(),
            &raw mut mount,
            AT_EMPTY_PATH | AT_HANDLE_FID,
        )
    };
    let Handle(head, [high, low, _]) = handle;
    (done == 0 && head.handle_type == FILEID_INO64_GEN).then_some(())?;
    let as_known = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let known = statx(&file, "", as_known, StatxFlags::INO).ok()?;
    Some((
        FileSystem(known.stx_dev_major, known.stx_dev_minor),
        INodeNo(u64::from(high) << 32 | u64::from(low)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cxi_ioctl::Mapping;
    use cxi_mock::{Nic, NicConfig};

    #[test]
    fn a_mapping_keeps_the_memory_in_use() {
        let client = Nic::new(NicConfig::new()).unwrap().open().unwrap();
        let memory = Windows::of(&client).memory().unwrap();
        let probe = Probe::new(&memory).unwrap();
        let own = Mapping::from_file(&*memory, 0, 4096).unwrap();
        assert!(!probe.is_open_elsewhere(), "what the server maps does not count");
        let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
        let opened = File::options().read(true).write(true).open(path).unwrap();
        assert!(probe.is_open_elsewhere());
        let mapping = Mapping::from_file(&opened, 0, 4096).unwrap();
        drop(opened);
        assert!(probe.is_open_elsewhere(), "it is mapped");
        drop(mapping);
        assert!(!probe.is_open_elsewhere());
        drop(own);
    }
}
