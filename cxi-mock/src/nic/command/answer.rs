//! The response to a command. It is delivered after the NIC is unlocked, because a write to a
//! caller's memory may block, forever if the caller wants it to (userfaultfd, FUSE). If it cannot
//! be delivered, everything that the command made is freed again.

use std::sync::{Arc, LazyLock};

use cxi_ioctl::abi::memory::{AtuMapCmd, MapFlags};
use cxi_ioctl::abi::portal::PteStatus;
use cxi_ioctl::abi::queue::{EQ_PASSTHROUGH, EqAllocCmd, EqAttr};
use cxi_ioctl::{Effect, Errno, Object, Opcode};
use zerocopy::FromBytes;

use crate::data_path::{OwnMemory, page_bytes};
use crate::nic::device::Device;
use crate::{Backing, CallerMemory, ClientMemory};

/// The answer of one command.
#[derive(Debug)]
pub(super) struct Answer {
    /// Bytes that the caller left in the response buffer, for the command that reads it.
    left: Option<Result<[u8; size_of::<PteStatus>()], Errno>>,
    /// Kind of the memory that the command pins: its pages, and whether it is contiguous.
    pub(super) backing: Backing,
    pub(super) is_contiguous: bool,
    /// Handle of the object that was made.
    pub(super) made: Option<u32>,
    pub(super) response: Option<Vec<u8>>,
    pub(super) list: Option<Vec<u8>>,
}

impl Answer {
    /// No answer yet.
    pub(super) fn new(
        opcode: Option<Opcode>,
        command: &[u8],
        memory: &mut dyn CallerMemory,
    ) -> Self {
        let left = (opcode == Some(Opcode::PTE_STATUS)).then(|| {
            let mut left = [0; size_of::<PteStatus>()];
            memory.read_response(&mut left).map(|()| left)
        });
        let pinned = pinned(opcode, command);
        Self {
            left,
            backing: pinned.map_or(Backing::Writable, |(va, len)| memory.backing(va, len)),
            is_contiguous: opcode != Some(Opcode::EQ_ALLOC)
                || pinned
                    .is_none_or(|(va, len)| len <= page_bytes() || memory.is_contiguous(va, len)),
            made: None,
            response: None,
            list: None,
        }
    }

    /// Reads the bytes that the caller left in the response buffer.
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
}

impl Device {
    /// Frees everything that a command made whose response could not be delivered, and returns the
    /// command's result. Services and reservations stay, because the driver leaves them.
    pub(super) fn undo(
        &mut self,
        opcode: Opcode,
        file: u32,
        answer: &Answer,
        errno: Errno,
    ) -> Result<(), Errno> {
        let object = match opcode.effect() {
            Some(Effect::Makes(object)) => object,
            _ if opcode == Opcode::DEV_INFO_GET => return Err(Errno::EOPNOTSUPP),
            _ => return Err(errno),
        };
        let Some(handle) = answer.made else { return Err(errno) };
        if object == Object::Service {
            return Err(errno);
        }
        let _ = self.free(object, file, handle);
        let success = object == Object::Memory && self.rules.undelivered_md_is_success;
        success.then_some(()).ok_or(errno)
    }
}

/// The memory of all other commands, which do not access it.
pub(super) static NOT_HANDED_OVER: LazyLock<Arc<dyn ClientMemory>> =
    LazyLock::new(|| Arc::new(OwnMemory));

/// The memory of the caller's process, for the commands that hand some of it over. Finding it costs
/// more than most commands.
pub(super) fn handed_over(
    opcode: Opcode,
    memory: &dyn CallerMemory,
) -> Option<Arc<dyn ClientMemory>> {
    opcode.handler()?.memory.then(|| memory.process_memory())
}

/// Returns the caller's memory that a command pins: address and length.
fn pinned(opcode: Option<Opcode>, command: &[u8]) -> Option<(u64, u64)> {
    match opcode? {
        Opcode::ATU_MAP => {
            let AtuMapCmd { va, len, flags, .. } = AtuMapCmd::read_from_bytes(command).ok()?;
            (flags & MapFlags::PIN.bits() != 0).then_some((va, len))
        }
        Opcode::EQ_ALLOC => {
            let EqAttr { queue, queue_len, flags, .. } =
                EqAllocCmd::read_from_bytes(command).ok()?.attr;
            (flags & EQ_PASSTHROUGH != 0).then_some((queue, queue_len))
        }
        _ => None,
    }
}
