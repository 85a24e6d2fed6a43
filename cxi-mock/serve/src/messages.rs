//! The buffers of a command that came as a message: its answer has what they receive.

use std::sync::Arc;

use cxi_ioctl::abi::pointers;
use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::{Backing, CallerMemory, ClientMemory};
use nix::unistd::Pid;

use super::addresses::{RESPONSE, address_in};
use super::memory::ProcessMemory;
use super::{memory, procfs};

/// The buffers of a command, and the memory of the process that sent it.
#[derive(Debug)]
pub(crate) struct MessageBuffers {
    pub(crate) process: Pid,
    /// The memory, unless the process could not pass it: it may have changed its user.
    pub(crate) memory: Option<Arc<ProcessMemory>>,
    /// Contents of the caller's buffer for the response, if the driver reads it.
    pub(crate) contents: Vec<u8>,
    /// Number of bytes of response and list the caller has room for. Without room for a list, the
    /// command has the address of one.
    pub(crate) room: (usize, usize),
    pub(crate) response: Vec<u8>,
    pub(crate) list: Vec<u8>,
    pub(crate) list_address: Option<u64>,
}

impl MessageBuffers {
    /// Finds the address of the list.
    pub(crate) fn find_list(&mut self, command: &[u8], opcode: Opcode, release: DriverRelease) {
        let pointers = pointers(opcode, release).unwrap_or(RESPONSE);
        self.list_address = match (pointers.list, pointers.list_in_response) {
            (Some(at), _) => address_in(command, at),
            (None, Some(at)) => address_in(&self.contents, at),
            (None, None) => None,
        };
    }
}

impl CallerMemory for MessageBuffers {
    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        if response.len() > self.room.0 {
            return Err(Errno::EFAULT);
        }
        self.response = response.to_vec();
        Ok(())
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        let there = if self.response.is_empty() { &self.contents } else { &self.response };
        bytes.copy_from_slice(there.get(..bytes.len()).ok_or(Errno::EFAULT)?);
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        if self.room.1 == 0 {
            let address = self.list_address.ok_or(Errno::EFAULT)?;
            let written = self.process_memory().write(&[(address, list)]);
            return written.map_err(|_| Errno::EFAULT);
        }
        if list.len() > self.room.1 {
            return Err(Errno::EFAULT);
        }
        self.list = list.to_vec();
        Ok(())
    }

    fn process_memory(&self) -> Arc<dyn ClientMemory> {
        let known = self.memory.clone();
        known.unwrap_or_else(|| ProcessMemory::none(self.process))
    }

    fn backing(&self, va: u64, len: u64) -> Backing {
        memory::pin(self.process, va, len)
    }

    fn is_contiguous(&self, va: u64, len: u64) -> bool {
        procfs::are_contiguous(self.process, va, len)
    }
}
