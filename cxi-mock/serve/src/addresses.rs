//! Positions in a command at which a caller put the addresses of its buffers.

use std::sync::Arc;

use nix::unistd::Pid;

use cxi_ioctl::abi::pointers;
use cxi_ioctl::{DriverRelease, Errno, Opcode, Pointers};

use super::memory::ProcessMemory;
use super::{memory, procfs};
use cxi_mock::{Backing, CallerMemory, ClientMemory};

/// Position of the response's address in commands that only kernels send.
pub(crate) const RESPONSE: Pointers =
    Pointers { response: Some(8), list: None, list_in_response: None };

/// The buffers of a command in the process of a caller.
#[derive(Debug)]
pub(crate) struct RemoteBuffers {
    pid: Pid,
    /// The process is stopped at its stores to doorbells.
    traps_stores: bool,
    response: Option<u64>,
    list: Option<u64>,
    list_in_response: Option<usize>,
}

impl RemoteBuffers {
    /// Finds the buffers of a command.
    pub(crate) fn of(pid: Pid, command: &[u8], opcode: Opcode, release: DriverRelease) -> Self {
        let pointers = pointers(opcode, release).unwrap_or(RESPONSE);
        let address = |at: Option<usize>| at.and_then(|at| address_in(command, at));
        Self {
            pid,
            traps_stores: false,
            response: address(pointers.response),
            list: address(pointers.list),
            list_in_response: pointers.list_in_response,
        }
    }

    /// The same, of a process whose stores to doorbells are trapped or not.
    pub(crate) fn trapping(self, traps_stores: bool) -> Self {
        Self { traps_stores, ..self }
    }
}

impl CallerMemory for RemoteBuffers {
    fn process_memory(&self) -> Arc<dyn ClientMemory> {
        ProcessMemory::of(self.pid)
    }

    fn respond(&mut self, response: &[u8]) -> Result<(), Errno> {
        let address = self.response.ok_or(Errno::EFAULT)?;
        memory::write(self.pid, &[(address, response)])
    }

    fn read_response(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        memory::read(self.pid, self.response.ok_or(Errno::EFAULT)?, bytes)?;
        if let Some(at) = self.list_in_response {
            self.list = address_in(bytes, at);
        }
        Ok(())
    }

    fn write_list(&mut self, list: &[u8]) -> Result<(), Errno> {
        let address = self.list.ok_or(Errno::EFAULT)?;
        memory::write(self.pid, &[(address, list)])
    }

    fn backing(&self, va: u64, len: u64) -> Backing {
        memory::pin(self.pid, va, len)
    }

    fn is_contiguous(&self, va: u64, len: u64) -> bool {
        procfs::are_contiguous(self.pid, va, len)
    }

    fn traps_stores(&self) -> bool {
        self.traps_stores
    }
}

pub(crate) fn address_in(bytes: &[u8], at: usize) -> Option<u64> {
    let address = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(command: &[u8], opcode: Opcode) -> RemoteBuffers {
        RemoteBuffers::of(Pid::this(), command, opcode, DriverRelease::Main2026_07)
    }

    #[test]
    fn a_command_without_room_for_an_address_has_no_buffer() {
        let mut buffers = own(&[1, 0, 0, 0, 0, 0, 0, 0], Opcode::LNI_FREE);
        assert_eq!(buffers.respond(&[1]), Err(Errno::EFAULT));
        assert_eq!(buffers.write_list(&[1]), Err(Errno::EFAULT));
    }

    #[test]
    fn the_list_of_a_status_stands_in_the_response() {
        let list = Box::new([0_u8; 4]);
        let address = (&raw const *list).expose_provenance() as u64;
        let mut response = [0_u8; 32];
        response[16..24].copy_from_slice(&address.to_ne_bytes());
        let response = Box::new(response);
        let mut command = [0_u8; 24];
        let at = (&raw const *response).expose_provenance() as u64;
        command[8..16].copy_from_slice(&at.to_ne_bytes());

        let mut buffers = own(&command, Opcode::PTE_STATUS);
        let mut bytes = [0; 32];
        assert_eq!(buffers.read_response(&mut bytes), Ok(()));
        assert_eq!(bytes, *response);
        assert_eq!(buffers.list, Some(address));
    }
}
