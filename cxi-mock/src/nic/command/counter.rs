//! The commands for counters.

use std::sync::Arc;

use cxi_engine::WriteBack;
use cxi_ioctl::Errno;
use cxi_ioctl::abi::counter::{CtAllocCmd, CtAllocResp, CtWbUpdateCmd};
use cxi_ioctl::abi::memory::Mminfo;
use zerocopy::FromZeros;

use super::{Call, Caller};
use crate::caller_memory::USER_SPACE;
use crate::data_path::{Doorbell, small};
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::lnis::Lni;

/// Write-backs are eight bytes.
const WRITE_BACK_BYTES: u64 = 8;

/// EOPNOTSUPP for an address that no process has: the driver cannot pin its page.
fn write_back(caller: &Caller<'_>, va: u64) -> Result<WriteBack, Errno> {
    let end = va.checked_add(WRITE_BACK_BYTES).filter(|end| *end <= USER_SPACE);
    let memory = end.map(|_| Arc::clone(caller.memory)).ok_or(Errno::EOPNOTSUPP)?;
    Ok(WriteBack { memory, va })
}

pub(super) fn ct_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let CtAllocCmd { lni, wb, .. } = call.command()?;
    let (ctn, doorbell) = device.ct_alloc(&call.caller, lni, wb)?;
    let mut response = CtAllocResp::new_zeroed();
    response.ctn = ctn;
    response.doorbell = doorbell;
    call.made(ctn, &response)
}

pub(super) fn ct_wb_update(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let CtWbUpdateCmd { ctn, wb, .. } = call.command()?;
    device.cts.of(call.caller.file, ctn)?;
    // Unlike CT_ALLOC the driver requires an address here, and does not check its
    // alignment.
    if wb == 0 {
        return Err(Errno::EINVAL);
    }
    let to = Some(write_back(&call.caller, wb)?);
    let engine = &mut device.data_path.state().engine;
    engine.set_write_back(small(ctn), to);
    Ok(())
}

impl Device {
    /// Returns the number and the window of the doorbell.
    fn ct_alloc(&mut self, caller: &Caller<'_>, lni: u32, wb: u64) -> Result<(u32, Mminfo), Errno> {
        let Lni { svc, rgid, .. } = **self.lni_of(caller.file, lni)?;
        if !wb.is_multiple_of(WRITE_BACK_BYTES) {
            return Err(Errno::EINVAL);
        }
        self.services.may_charge(svc, Slot::Ct)?;
        if !self.cts.has_number() {
            return Err(Errno::ENOSPC);
        }
        let to = (wb != 0).then(|| write_back(caller, wb)).transpose()?;
        let windows = &mut self.files.get_mut(caller.file)?.windows;
        let doorbell = windows.alloc_doorbell(caller.traps_stores, false)?;
        self.services.charge(svc, Slot::Ct)?;
        let id = self.cts.add((caller.file, lni), doorbell)?;
        self.lnis.live.hold(lni);
        let windows = &mut self.files.get_mut(caller.file)?.windows;
        match windows.map_doorbell(doorbell, Doorbell::Counter(id)) {
            Ok(page) => {
                let polled = windows.is_polled(page.as_ref());
                self.data_path.add_counter(id, rgid, to, (page, polled));
            }
            Err(errno) => {
                self.ct_free(caller.file, id)?;
                return Err(errno);
            }
        }
        Ok((id, doorbell))
    }

    /// Frees a counter. Number and credit stay with the LNI until it ends, unused.
    pub(super) fn ct_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let ct = self.cts.take(file, id)?;
        self.data_path.remove_counter(id);
        self.files.get_mut(file)?.windows.free(*ct);
        self.lnis.live.release(ct.lni);
        if let Some(lni) = self.lnis.live.get_mut(ct.lni) {
            lni.dead_cts.push(id);
        }
        Ok(())
    }
}
