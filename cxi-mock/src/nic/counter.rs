//! Counting events.

use cxi_ioctl::abi::counter::{CtAllocCmd, CtAllocResp, CtFreeCmd, CtWbUpdateCmd};
use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromZeros;

use super::dispatch::Call;
use super::ids::Ids;
use super::lni::Lni;
use super::table::Table;
use super::window::Doorbell;
use super::{Caller, Device, Slot};

/// Write-backs are eight bytes.
const WRITE_BACK_ALIGN: u64 = 8;

/// A counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ct {
    file: u32,
    lni: u32,
    doorbell: Mminfo,
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Cts {
    ids: Ids,
    table: Table<Ct>,
}

impl Cts {
    pub(crate) fn new(total: u16) -> Self {
        Self {
            ids: Ids::new(1, u32::from(total) + 1),
            table: Table::default(),
        }
    }

    /// Counters whose numbers are in use.
    pub(crate) fn used(&self) -> u32 {
        self.ids.used()
    }
}

impl Device {
    /// The commands for counters.
    pub(super) fn counter_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::CT_ALLOC => {
                let CtAllocCmd { lni, wb, .. } = call.command()?;
                let (ctn, doorbell) = self.ct_alloc(&call.caller, lni, wb)?;
                let mut response = CtAllocResp::new_zeroed();
                response.ctn = ctn;
                response.doorbell = doorbell;
                call.made(ctn, &response)
            }
            Opcode::CT_FREE => {
                let command: CtFreeCmd = call.command()?;
                self.ct_free(file, command.ctn)
            }
            Opcode::CT_WB_UPDATE => {
                let command: CtWbUpdateCmd = call.command()?;
                self.ct_wb_update(&call.caller, command.ctn, command.wb)
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    /// CT_ALLOC: the number and the window of the doorbell.
    pub(super) fn ct_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        wb: u64,
    ) -> Result<(u32, Mminfo), Errno> {
        let Lni { svc, rgid, .. } = *self.lni_of(caller.file, lni)?;
        if !wb.is_multiple_of(WRITE_BACK_ALIGN) {
            return Err(Errno::EINVAL);
        }
        self.charge(svc, Slot::Ct)?;
        let doorbell = self
            .file_mut(caller.file)
            .and_then(|file| file.windows.alloc_doorbell(caller.traps_stores, false));
        let id = doorbell.is_ok().then(|| self.cts.ids.alloc()).flatten();
        let (Ok(doorbell), Some(id)) = (doorbell, id) else {
            self.refund(svc, Slot::Ct);
            if let Ok(doorbell) = doorbell {
                self.file_mut(caller.file)?.windows.free(doorbell);
            }
            return Err(doorbell.err().unwrap_or(Errno::ENOSPC));
        };
        let ct = Ct {
            file: caller.file,
            lni,
            doorbell,
        };
        self.cts.table.put(id, ct);
        self.hold_lni(lni);
        let file = self.file_mut(caller.file)?;
        file.cts.insert(id);
        match file.windows.map_doorbell(doorbell, Doorbell::Counter(id)) {
            Ok(page) => self
                .data_path
                .add_counter((id, rgid), caller.memory, wb, page),
            Err(errno) => {
                self.ct_free(caller.file, id)?;
                return Err(errno);
            }
        }
        Ok((id, doorbell))
    }

    fn ct_of(&self, file: u32, id: u32) -> Result<&Ct, Errno> {
        let ct = self.cts.table.get(id).filter(|ct| ct.file == file);
        ct.ok_or(Errno::EINVAL)
    }

    /// CT_FREE: number and credit stay with the LNI until it ends, unused.
    pub(super) fn ct_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let Ct { lni, doorbell, .. } = *self.ct_of(file, id)?;
        self.cts.table.remove(id);
        self.data_path.remove_counter(id);
        self.unhold_lni(lni);
        let file = self.file_mut(file)?;
        file.cts.remove(&id);
        file.windows.free(doorbell);
        if let Some(lni) = self.lnis.get_mut(lni) {
            lni.dead_cts.push(id);
        }
        Ok(())
    }

    /// CT_WB_UPDATE: unlike CT_ALLOC it requires an address, and does not check its alignment.
    pub(super) fn ct_wb_update(&self, caller: &Caller<'_>, id: u32, wb: u64) -> Result<(), Errno> {
        self.ct_of(caller.file, id)?;
        if wb == 0 {
            return Err(Errno::EINVAL);
        }
        self.data_path.set_write_back(id, caller.memory, wb);
        Ok(())
    }

    /// Gives back what an LNI holds of counters.
    pub(super) fn end_cts(&mut self, lni: &Lni) {
        for id in &lni.dead_cts {
            self.cts.ids.free(*id);
            self.refund(lni.svc, Slot::Ct);
        }
    }
}
