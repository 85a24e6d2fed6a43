//! Wait objects.

use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitAllocResp, WaitFreeCmd};
use cxi_ioctl::{Errno, Opcode};

use super::dispatch::Call;
use super::{Caller, Device};

/// A wait object, numbered within its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    lni: u32,
    /// Event queues that use it.
    users: u32,
}

impl Device {
    /// The commands for wait objects.
    pub(super) fn wait_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::WAIT_ALLOC => {
                let command: WaitAllocCmd = call.command()?;
                let wait = self.wait_alloc(&call.caller, command.lni)?;
                let response = WaitAllocResp {
                    client_id: self.file_mut(file)?.number,
                    wait,
                };
                call.made(wait, &response)
            }
            Opcode::WAIT_FREE => {
                let command: WaitFreeCmd = call.command()?;
                self.wait_free(file, command.wait)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// WAIT_ALLOC: the number within the file.
    pub(super) fn wait_alloc(&mut self, caller: &Caller<'_>, lni: u32) -> Result<u32, Errno> {
        self.lni_of(caller.file, lni)?;
        let file = self.file_mut(caller.file)?;
        let id = file.wait_ids.alloc().ok_or(Errno::ENOSPC)?;
        file.waits.put(id, Wait { lni, users: 0 });
        self.hold_lni(lni);
        Ok(id)
    }

    /// WAIT_FREE.
    pub(super) fn wait_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let file = self.file_mut(file)?;
        let wait = *file.waits.get(id).ok_or(Errno::EINVAL)?;
        if wait.users > 0 {
            return Err(Errno::EBUSY);
        }
        file.waits.remove(id);
        file.wait_ids.free(id);
        self.unhold_lni(wait.lni);
        Ok(())
    }

    /// EINVAL if the file has no such wait object; 0 is none.
    pub(super) fn check_wait(&self, file: u32, id: u32) -> Result<(), Errno> {
        let file = self.files.get(file).ok_or(Errno::EIO)?;
        if id == 0 || file.waits.get(id).is_some() {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }

    pub(super) fn hold_wait(&mut self, file: u32, id: u32) {
        if let Ok(file) = self.file_mut(file)
            && let Some(wait) = file.waits.get_mut(id)
        {
            wait.users += 1;
        }
    }

    pub(super) fn unhold_wait(&mut self, file: u32, id: u32) {
        if let Ok(file) = self.file_mut(file)
            && let Some(wait) = file.waits.get_mut(id)
        {
            wait.users = wait.users.saturating_sub(1);
        }
    }
}
