//! The commands for wait objects.

use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitAllocResp, WaitFreeCmd};
use cxi_ioctl::{Errno, Opcode};

use super::Call;
use crate::nic::device::Device;

impl Device {
    pub(super) fn wait_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::WAIT_ALLOC => {
                let WaitAllocCmd { lni, .. } = call.command()?;
                self.lni_of(file, lni)?;
                let owner = self.files.get_mut(file)?;
                let wait = owner.waits.add((file, lni), ())?;
                let client_id = owner.number;
                self.lnis.live.hold(lni);
                call.made(wait, &WaitAllocResp { client_id, wait })
            }
            Opcode::WAIT_FREE => {
                let command: WaitFreeCmd = call.command()?;
                self.wait_free(file, command.wait)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    pub(super) fn wait_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let wait = self.files.get_mut(file)?.waits.remove(file, id)?;
        self.lnis.live.release(wait.lni);
        Ok(())
    }
}
