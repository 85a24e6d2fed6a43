//! The memory of the process that sends a command.

use std::sync::Arc;

use cxi_ioctl::Errno;

use crate::ClientMemory;
use crate::data_path::OwnMemory;

/// The first address that no process has.
pub(crate) const USER_SPACE: u64 = 1 << 47;

/// The memory of a caller, as far as one command reaches it.
pub trait CallerMemory {
    /// Writes the response to where the command points.
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be written.
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno>;

    /// Reads what the caller left in the response buffer (PTE_STATUS).
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be read.
    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno>;

    /// Writes the list to where the command points.
    ///
    /// # Errors
    ///
    /// EFAULT if the caller's memory cannot be written.
    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno>;

    /// The memory of the caller's process, for everything that the NIC does on its own: memory that
    /// a command hands to the NIC is read and written as long as the object exists. Without a front
    /// end it is any [`DeviceMemory`](cxi_ioctl::DeviceMemory) of this process.
    fn process_memory(&self) -> Arc<dyn ClientMemory> {
        Arc::new(OwnMemory)
    }

    /// Returns the memory behind a range that the caller wants pinned (ATU_MAP, EQ_ALLOC). A front
    /// end that cannot tell returns [`Backing::Writable`] for all addresses that a process can
    /// have.
    fn backing(&self, va: u64, len: u64) -> Backing {
        let end = va.checked_add(len).filter(|end| *end <= USER_SPACE);
        end.map_or(Backing::Missing, |_| Backing::Writable)
    }

    /// Returns whether the pages of a range are contiguous in physical memory (EQ_ALLOC, for
    /// buffers without address translation). A front end that cannot tell returns true.
    fn is_contiguous(&self, va: u64, len: u64) -> bool {
        let _ = (va, len);
        true
    }

    /// Returns whether the caller is stopped at a store to a doorbell past the end of the memory of
    /// its windows, and the front end then calls [`Windows::store`](crate::serve::Windows::store). The
    /// doorbells of such a caller are allocated there; others are polled.
    fn traps_stores(&self) -> bool {
        false
    }
}

/// Memory behind a range of addresses of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// No memory behind some of it.
    Missing,
    /// Memory, some of which the caller itself may not write to.
    ReadOnly,
    /// Memory that can be read and written.
    Writable,
}
