//! What a command answers: kept until the NIC is free for others, and taken back if it does not
//! arrive.
//!
//! A write to the memory of a caller may block, and for ever if the caller wants it.

use std::sync::{Arc, LazyLock};

use cxi_ioctl::abi::counter::CtAllocResp;
use cxi_ioctl::abi::domain::DomainAllocResp;
use cxi_ioctl::abi::lni::LniAllocResp;
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuMapResp, MapFlags};
use cxi_ioctl::abi::portal::{PteAllocResp, PteMapResp, PteStatus};
use cxi_ioctl::abi::profile::CpAllocResp;
use cxi_ioctl::abi::queue::{CqAllocResp, EQ_PASSTHROUGH, EqAllocCmd, EqAllocResp, EqAttr};
use cxi_ioctl::abi::wait::WaitAllocResp;
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromBytes;

use super::Device;
use super::window::PAGE;
use crate::data_path::OwnMemory;
use crate::{Backing, CallerMemory, ClientMemory};

/// Frees what a file has by its handle.
type Free = fn(&mut Device, u32, u32) -> Result<(), Errno>;

/// The answer of one command.
#[derive(Debug)]
pub(super) struct Answer {
    /// What the caller left in the response buffer, for the command that reads it.
    left: Option<Result<[u8; size_of::<PteStatus>()], Errno>>,
    /// What the memory is that the command pins, and whether it is in one piece.
    backing: Backing,
    is_contiguous: bool,
    response: Option<Vec<u8>>,
    list: Option<Vec<u8>>,
}

impl Answer {
    /// No answer yet.
    pub(super) fn new(command: &[u8], memory: &mut dyn CallerMemory) -> Self {
        let number = u32::read_from_prefix(command)
            .ok()
            .map(|(number, _)| number);
        let opcode = number.map(Opcode::from_number);
        let left = (opcode == Some(Opcode::PTE_STATUS)).then(|| {
            let mut left = [0; size_of::<PteStatus>()];
            memory.read_response(&mut left).map(|()| left)
        });
        let pinned = pinned(opcode, command);
        Self {
            left,
            backing: pinned.map_or(Backing::Writable, |(va, len)| memory.backing(va, len)),
            is_contiguous: opcode != Some(Opcode::EQ_ALLOC)
                || pinned.is_none_or(|(va, len)| len <= PAGE || memory.is_contiguous(va, len)),
            response: None,
            list: None,
        }
    }

    pub(super) fn backing(&self) -> Backing {
        self.backing
    }

    pub(super) fn is_contiguous(&self) -> bool {
        self.is_contiguous
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
    /// Takes back what a command made whose answer did not arrive, and says what the command
    /// ends with. What is not here stays, as the driver leaves it.
    pub(super) fn undo(
        &mut self,
        opcode: Opcode,
        file: u32,
        answer: &Answer,
        errno: Errno,
    ) -> Result<(), Errno> {
        let (handle, free): (_, Free) = match opcode {
            Opcode::DEV_INFO_GET => return Err(Errno::EOPNOTSUPP),
            Opcode::MAP_CSRS => (Some(0), |device, file, _| device.unmap_csrs(file)),
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
            _ => return Err(errno),
        };
        let _ = handle.map(|handle| free(self, file, handle));
        let success = opcode == Opcode::ATU_MAP && self.rules.undelivered_md_is_success;
        success.then_some(()).ok_or(errno)
    }

    fn unmap_csrs(&mut self, file: u32) -> Result<(), Errno> {
        let file = self.file_mut(file)?;
        if let Some(window) = file.csrs.take() {
            file.windows.free(window);
        }
        Ok(())
    }
}

/// The memory of other commands, which do not look at it.
pub(super) static NOT_HANDED_OVER: LazyLock<Arc<dyn ClientMemory>> =
    LazyLock::new(|| Arc::new(OwnMemory));

/// The memory of the caller's process, for the commands that hand some of it over: to find it
/// costs more than most commands.
pub(super) fn handed_over(
    command: &[u8],
    memory: &dyn CallerMemory,
) -> Option<Arc<dyn ClientMemory>> {
    let number = u32::read_from_prefix(command).map_or(0, |(number, _)| number);
    match Opcode::from_number(number) {
        Opcode::ATU_MAP
        | Opcode::CQ_ALLOC_BUF
        | Opcode::CT_ALLOC
        | Opcode::CT_WB_UPDATE
        | Opcode::EQ_ALLOC
        | Opcode::EQ_RESIZE => Some(memory.process_memory()),
        _ => None,
    }
}

/// What a command pins of the caller's memory: address and length.
fn pinned(opcode: Option<Opcode>, command: &[u8]) -> Option<(u64, u64)> {
    match opcode? {
        Opcode::ATU_MAP => {
            let AtuMapCmd { va, len, flags, .. } = AtuMapCmd::read_from_bytes(command).ok()?;
            (flags & MapFlags::PIN.bits() != 0).then_some((va, len))
        }
        Opcode::EQ_ALLOC => {
            let EqAttr {
                queue,
                queue_len,
                flags,
                ..
            } = EqAllocCmd::read_from_bytes(command).ok()?.attr;
            (flags & EQ_PASSTHROUGH != 0).then_some((queue, queue_len))
        }
        _ => None,
    }
}
