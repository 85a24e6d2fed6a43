//! A FUSE file: its server writes into the memory of the caller whose `write(2)` it handles.

use std::io::IoSlice;
use std::path::PathBuf;

use fuser::BackgroundSession;
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::{driver, fuse_file};

const NAME: &str = "cxi0";

pub(crate) struct Mounted {
    // Unmounted before the directory is removed.
    _session: BackgroundSession,
    directory: TempDir,
}

impl Mounted {
    pub(crate) fn device(&self) -> PathBuf {
        self.directory.path().join(NAME)
    }
}

/// Serves the device; an error says why that is not possible here.
pub(crate) fn mount() -> Result<Mounted, String> {
    let directory = TempDir::new().map_err(|error| format!("no directory to mount on: {error}"))?;
    let session = fuse_file::mount(directory.path(), NAME, command)?;
    Ok(Mounted { _session: session, directory })
}

fn command(caller: Pid, command: &[u8]) -> Result<u32, i32> {
    let (stores, answer) = driver::answer(command);
    for (address, bytes) in stores {
        let there = RemoteIoVec { base: usize::try_from(address).unwrap_or(0), len: bytes.len() };
        if process_vm_writev(caller, &[IoSlice::new(&bytes)], &[there]) != Ok(bytes.len()) {
            return Err(nix::libc::EFAULT);
        }
    }
    answer.map_err(cxi_ioctl::Errno::raw)
}
