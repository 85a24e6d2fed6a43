//! The commands for registers and the link.

use cxi_ioctl::{Errno, Opcode};

use super::Call;
use crate::Identity;
use crate::nic::device::Device;

/// Bytes of the register window that MAP_CSRS hands out.
const CSR_BYTES: u64 = 640 << 20;
/// The page of the register C_MB_STS_REV, and where in it that is. All others read as zero until they
/// are written.
const REVISION: (u64, usize) = (0x1000_4000, 8);

/// What the chip says that it is: revision, device, vendor, protocol and platform, lowest bits first.
fn revision(identity: &Identity) -> u64 {
    let field = |value: u32, bits: u32, shift: u32| (u64::from(value) & ((1 << bits) - 1)) << shift;
    field(identity.device_rev, 16, 0)
        | field(identity.device_id, 16, 16)
        | field(identity.vendor_id, 16, 32)
        | field(identity.device_proto, 12, 48)
        | field(identity.device_platform, 4, 60)
}

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
                let revision = revision(&call.nic.config().identity);
                let page = file.windows.map(window.offset + REVISION.0, 4096);
                let set = page.and_then(|page| page.write_u64(REVISION.1, revision));
                set.inspect_err(|_| file.windows.free(window))?;
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
