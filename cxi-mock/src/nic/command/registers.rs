//! The commands for registers and the link.

use cxi_ioctl::{Errno, Opcode};

use super::Call;
use crate::nic::device::Device;

/// Bytes of the register window that MAP_CSRS hands out.
const CSR_BYTES: u64 = 640 << 20;

impl Device {
    /// The commands for registers and the link; the mock has no SBUS and no SERDES.
    pub(super) fn register_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        match opcode {
            Opcode::MAP_CSRS => {
                let file = self.files.get_mut(call.caller.file)?;
                if file.csrs.is_some() {
                    return Err(Errno::EALREADY);
                }
                let window = file.windows.alloc(CSR_BYTES)?;
                file.csrs = Some(window);
                call.made(0, &window)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// Takes back what MAP_CSRS handed out.
    pub(super) fn unmap_csrs(&mut self, file: u32) -> Result<(), Errno> {
        let file = self.files.get_mut(file)?;
        if let Some(window) = file.csrs.take() {
            file.windows.free(window);
        }
        Ok(())
    }
}
