//! Memory whose pages do not come.

#![allow(unsafe_code, reason = "a mapping in the place of another one has no safe wrapper")]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::ptr;

use cxi::{Device, DeviceMemory};
use cxi_hw::{DmaOp, EventType};
use rustix::mm::{MapFlags, ProtFlags, mmap};

use crate::endpoint::{BUFFER_BYTES, Operation};
use crate::process::Problem;
use crate::traffic;

/// Line that [`put`] prints to the standard error before it rings.
pub const PUTTING: &str = "putting";

/// Puts the contents of a mapped file to a peer. Returns the outcome.
///
/// # Errors
///
/// Something could not be allocated or mapped.
pub fn put(device: &Device, pid: u32, peer: (u32, u32), file: &Path) -> Result<String, Problem> {
    let mut end = traffic::endpoint(device, pid)?;
    replace(&end.local, &File::options().read(true).write(true).open(file)?)?;
    writeln!(std::io::stderr(), "{PUTTING}")?;
    end.send(&Operation {
        op: DmaOp::PUT,
        to: peer,
        offset: 0,
        local: end.local_iova(),
        len: u32::try_from(BUFFER_BYTES)?,
    })?;
    loop {
        if let Some((EventType::ACK, code)) = end.event()? {
            return Ok(format!("{code:?}"));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Replaces the memory with a mapping of a file.
fn replace(memory: &DeviceMemory, file: &File) -> Result<(), Problem> {
    let address = ptr::with_exposed_provenance_mut(usize::try_from(memory.address())?);
    // SAFETY: the memory stays mapped, readable and writable, for as long as before. It is accessed
    // as atomic words alone, which may have any value.
    unsafe {
        mmap(
            address,
            memory.len(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::FIXED,
            file,
            0,
        )
    }?;
    Ok(())
}
