//! The memory of this process, as far as a device may use it.

use cxi_engine::{ClientMemory, MemoryFault};
use cxi_ioctl::memory::{read_at, write_at};

/// All [`DeviceMemory`](cxi_ioctl::DeviceMemory) of this process.
#[derive(Debug)]
pub(crate) struct OwnMemory;

impl ClientMemory for OwnMemory {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        read_at(va, into).map_err(|_| MemoryFault)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        parts.iter().try_for_each(|(va, part)| write_at(*va, part).map_err(|_| MemoryFault))
    }
}
