//! The few registers of the hardware that the driver reads.

use std::collections::BTreeMap;

use cxi_ioctl::{Errno, Opcode};

use super::Device;
use super::dispatch::Call;

/// Bytes of the register window that MAP_CSRS hands out.
const CSR_BYTES: u64 = 640 << 20;

/// What the hardware reports.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    /// Commands in flight by command queue number; absent for a quiet queue.
    pub(crate) in_flight: BTreeMap<u32, u32>,
    /// TLEs in use by pool.
    pub(crate) tles_in_use: [u16; 4],
    /// LEs allocated by processing element and pool.
    pub(crate) les_allocated: [[u16; 16]; 4],
    /// The link, if it changed since the driver was loaded.
    pub(crate) link_up: Option<bool>,
    /// The NIC address, if it changed since the driver was loaded.
    pub(crate) nid: Option<u32>,
    /// Whether rendezvous gets are on, if that was changed.
    pub(crate) rdzv_get_en: Option<bool>,
    /// The fetching atomic that is mapped to a PCIe fetch-add, if that was changed.
    pub(crate) amo_remap_to_pcie_fadd: Option<i32>,
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
                let file = self.file_mut(call.caller.file)?;
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
        let file = self.file_mut(file)?;
        if let Some(window) = file.csrs.take() {
            file.windows.free(window);
        }
        Ok(())
    }
}
