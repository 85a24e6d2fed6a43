//! What a command answers: kept until the NIC is free for others, and taken back if it does not
//! arrive.
//!
//! The memory of a caller may make whoever writes to it wait, and for ever if the caller wants it.

use cxi_ioctl::abi::counter::CtAllocResp;
use cxi_ioctl::abi::domain::DomainAllocResp;
use cxi_ioctl::abi::lni::LniAllocResp;
use cxi_ioctl::abi::memory::AtuMapResp;
use cxi_ioctl::abi::portal::{PteAllocResp, PteMapResp, PteStatus};
use cxi_ioctl::abi::profile::CpAllocResp;
use cxi_ioctl::abi::queue::{CqAllocResp, EqAllocResp};
use cxi_ioctl::abi::wait::WaitAllocResp;
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromBytes;

use super::Device;
use crate::CallerMemory;

/// The answer of one command.
#[derive(Debug)]
pub(super) struct Answer {
    /// What the caller left in the response buffer, for the command that looks at it.
    left: Option<Result<[u8; size_of::<PteStatus>()], Errno>>,
    response: Option<Vec<u8>>,
    list: Option<Vec<u8>>,
}

impl Answer {
    /// No answer yet.
    pub(super) fn new(command: &[u8], memory: &mut dyn CallerMemory) -> Self {
        let opcode = u32::read_from_prefix(command).map(|(number, _)| Opcode::from_number(number));
        let left = (opcode == Ok(Opcode::PTE_STATUS)).then(|| {
            let mut left = [0; size_of::<PteStatus>()];
            memory.read_response(&mut left).map(|()| left)
        });
        Self {
            left,
            response: None,
            list: None,
        }
    }

    pub(super) fn respond(&mut self, response: &[u8]) {
        self.response = Some(response.to_vec());
    }

    pub(super) fn write_list(&mut self, list: &[u8]) {
        self.list = Some(list.to_vec());
    }

    /// What the caller left in the response buffer.
    pub(super) fn read_response(&self, bytes: &mut [u8]) -> Result<(), Errno> {
        let left = self.left.unwrap_or(Err(Errno::EFAULT))?;
        bytes.copy_from_slice(left.get(..bytes.len()).ok_or(Errno::EFAULT)?);
        Ok(())
    }

    /// Writes the list, and then the response.
    pub(super) fn deliver(&self, memory: &mut dyn CallerMemory) -> Result<(), Errno> {
        if let Some(list) = &self.list {
            memory.write_list(list)?;
        }
        match &self.response {
            Some(response) => memory.respond(response),
            None => Ok(()),
        }
    }

    fn handle<R: FromBytes>(&self, handle: impl FnOnce(R) -> u32) -> Option<u32> {
        let response = R::read_from_bytes(self.response.as_deref()?).ok()?;
        Some(handle(response))
    }
}

impl Device {
    /// Takes back what a command made whose answer did not arrive. What is not here stays, as the
    /// driver leaves it. Returns the errno where it is not EFAULT.
    pub(super) fn undo(&mut self, opcode: Opcode, file: u32, answer: &Answer) -> Option<Errno> {
        let (handle, free): (_, fn(&mut Self, u32, u32) -> Result<(), Errno>) = match opcode {
            Opcode::DEV_INFO_GET => return Some(Errno::EOPNOTSUPP),
            Opcode::LNI_ALLOC => (answer.handle(|made: LniAllocResp| made.lni), Self::lni_free),
            Opcode::CP_ALLOC | Opcode::TRIG_CP_ALLOC => (
                answer.handle(|made: CpAllocResp| made.cp_hndl),
                Self::cp_free,
            ),
            Opcode::DOMAIN_ALLOC => (
                answer.handle(|made: DomainAllocResp| made.domain),
                Self::domain_free,
            ),
            Opcode::CQ_ALLOC | Opcode::CQ_ALLOC_BUF => {
                (answer.handle(|made: CqAllocResp| made.cq), Self::cq_free)
            }
            Opcode::CT_ALLOC => (answer.handle(|made: CtAllocResp| made.ctn), Self::ct_free),
            Opcode::WAIT_ALLOC => (
                answer.handle(|made: WaitAllocResp| made.wait),
                Self::wait_free,
            ),
            Opcode::EQ_ALLOC => (answer.handle(|made: EqAllocResp| made.eq), Self::eq_free),
            Opcode::PTE_ALLOC => (
                answer.handle(|made: PteAllocResp| made.pte_number),
                Self::pte_free,
            ),
            Opcode::PTE_MAP => (
                answer.handle(|made: PteMapResp| made.pte_index),
                Self::pte_unmap,
            ),
            Opcode::ATU_MAP => (answer.handle(|made: AtuMapResp| made.id), Self::atu_unmap),
            _ => return None,
        };
        let _ = handle.map(|handle| free(self, file, handle));
        None
    }
}
