//! Command queues.

use std::sync::Arc;

use cxi_ioctl::abi::memory::Mminfo;
use cxi_ioctl::abi::queue::{
    CQ_IS_TX, CQ_TX_ETHERNET, CQ_TX_WITH_TRIG_CMDS, CQ_UPDATE_LOW_FREQ, CqAckCounterCmd,
    CqAckCounterResp, CqAllocBufCmd, CqAllocCmd, CqAllocOptsBuf, CqAllocResp, CqFreeCmd,
};
use cxi_ioctl::{Errno, Opcode};
use zerocopy::FromZeros;

use super::dispatch::Call;
use super::ids::Ids;
use super::lni::Lni;
use super::table::Table;
use super::window::{Doorbell, PAGE};
use super::{Caller, Device, Slot};
use crate::Totals;
use crate::data_path::{NewQueue, Ring};

/// Number of the first target queue.
const FIRST_TGQ: u32 = 1024;
const MAX_THRESHOLD_ID: u32 = 3;
const MIN_COMMANDS: u32 = 64;
const MAX_COMMANDS: u32 = 65536;
const COMMAND_BYTES: u64 = 64;

/// A command queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cq {
    file: u32,
    lni: u32,
    svc: u32,
    eq: u32,
    transmit: bool,
    cmds: Mminfo,
    wp_addr: Mminfo,
    /// Freed, and waiting to be quiet.
    freed: bool,
}

/// All command queues.
#[derive(Debug)]
pub(crate) struct Cqs {
    txq_ids: Ids,
    tgq_ids: Ids,
    table: Table<Cq>,
}

impl Cqs {
    pub(crate) fn new(totals: &Totals) -> Self {
        Self {
            txq_ids: Ids::new(0, totals.txqs.into()),
            tgq_ids: Ids::new(FIRST_TGQ, FIRST_TGQ + u32::from(totals.tgqs)),
            table: Table::default(),
        }
    }

    /// Transmit and target queues whose numbers are in use.
    pub(crate) fn used(&self) -> (u32, u32) {
        (self.txq_ids.used(), self.tgq_ids.used())
    }

    fn ids(&mut self, transmit: bool) -> &mut Ids {
        if transmit {
            &mut self.txq_ids
        } else {
            &mut self.tgq_ids
        }
    }
}

/// What a new queue is.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewCq {
    pub(super) id: u32,
    pub(super) count: u32,
    pub(super) cmds: Mminfo,
    pub(super) wp_addr: Mminfo,
}

/// A caller's buffer for commands is page-aligned memory of the host: other memory takes the
/// driver of a GPU. Without one the driver allocates it.
fn check_buffer(opts: &CqAllocOptsBuf) -> Result<(), Errno> {
    match opts.buf {
        0 => Ok(()),
        _ if opts.is_host_mem == 0 => Err(Errno::EOPNOTSUPP),
        buf if buf.is_multiple_of(PAGE) => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

const fn slot(transmit: bool) -> Slot {
    if transmit { Slot::Txq } else { Slot::Tgq }
}

impl Device {
    /// The commands for command queues.
    pub(super) fn command_queue_command(
        &mut self,
        opcode: Opcode,
        call: &mut Call<'_>,
    ) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::CQ_ALLOC => {
                let CqAllocCmd { lni, eq, opts, .. } = call.command()?;
                let mut no_buffer = CqAllocOptsBuf::new_zeroed();
                no_buffer.opts = opts;
                self.handle_cq_alloc(call, lni, eq, &no_buffer)
            }
            Opcode::CQ_ALLOC_BUF => {
                let CqAllocBufCmd { lni, eq, opts, .. } = call.command()?;
                self.handle_cq_alloc(call, lni, eq, &opts)
            }
            Opcode::CQ_FREE => {
                let command: CqFreeCmd = call.command()?;
                self.cq_free(file, command.cq)
            }
            Opcode::CQ_ACK_COUNTER => {
                let command: CqAckCounterCmd = call.command()?;
                let ack_counter = self.cq_ack_counter(file, command.cq)?;
                call.respond(&CqAckCounterResp { ack_counter })
            }
            _ => Err(Errno::EOPNOTSUPP),
        }
    }

    fn handle_cq_alloc(
        &mut self,
        call: &mut Call<'_>,
        lni: u32,
        eq: u32,
        opts: &CqAllocOptsBuf,
    ) -> Result<(), Errno> {
        let cq = self.cq_alloc(&call.caller, lni, eq, opts)?;
        let response = CqAllocResp {
            cq: cq.id,
            count: cq.count,
            cmds: cq.cmds,
            wp_addr: cq.wp_addr,
        };
        call.made(cq.id, &response)
    }

    /// CQ_ALLOC and CQ_ALLOC_BUF, which is the same unless it brings a buffer.
    pub(super) fn cq_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        eq: u32,
        buffer: &CqAllocOptsBuf,
    ) -> Result<NewCq, Errno> {
        let opts = &buffer.opts;
        let owner = self.lni_of(caller.file, lni)?;
        if self.is_virtual(caller.file) && opts.count > MAX_COMMANDS {
            return Err(Errno::E2BIG);
        }
        // With a wrong RGID the driver looks where nothing is registered.
        let (svc, rgid) = (owner.svc, owner.wrong_rgid.unwrap_or(owner.rgid));
        if eq != 0 {
            self.eq_of(caller.file, eq)?;
        }
        let transmit = opts.flags & CQ_IS_TX != 0;
        if opts.policy > CQ_UPDATE_LOW_FREQ
            || (!transmit && opts.lpe_cdt_thresh_id > MAX_THRESHOLD_ID)
        {
            return Err(Errno::EINVAL);
        }
        if opts.count > MAX_COMMANDS {
            return Err(Errno::E2BIG);
        }
        if transmit {
            let trigger = opts.flags & CQ_TX_WITH_TRIG_CMDS != 0;
            if (trigger && opts.lcid != 0) || !self.has_lcid(rgid, opts.lcid) {
                return Err(Errno::EINVAL);
            }
        }
        if opts.flags & CQ_TX_ETHERNET != 0 && !caller.credentials.net_raw {
            return Err(Errno::EPERM);
        }
        check_buffer(buffer)?;
        // Its doorbell is none of those that are open.
        if !transmit && !self.data_path.close_doorbells(caller.file) {
            return Err(Errno::ENOMEM);
        }
        let id = self.take_cq(lni, svc, transmit)?;
        let count = opts.count.max(MIN_COMMANDS).next_power_of_two();
        let windows = self.file_mut(caller.file).and_then(|file| {
            let cmds = file.windows.alloc(u64::from(count) * COMMAND_BYTES)?;
            let wp_addr = file
                .windows
                .alloc_doorbell(caller.traps_stores, !transmit)?;
            Ok((cmds, wp_addr))
        });
        let (cmds, wp_addr) = match windows {
            Ok(windows) => windows,
            Err(errno) => {
                self.cqs.ids(transmit).free(id);
                self.refund(svc, slot(transmit));
                return Err(errno);
            }
        };
        self.cqs.table.put(
            id,
            Cq {
                file: caller.file,
                lni,
                svc,
                eq,
                transmit,
                cmds,
                wp_addr,
                freed: false,
            },
        );
        self.hold_eq(eq);
        self.hold_lni(lni);
        self.file_mut(caller.file)?.cqs.insert(id);
        let new = NewCq {
            id,
            count,
            cmds,
            wp_addr,
        };
        if let Err(errno) = self.wire_queue(caller, (lni, eq), &new, buffer) {
            self.cq_free(caller.file, id)?;
            return Err(errno);
        }
        Ok(new)
    }

    /// Tells the data path of a new queue.
    fn wire_queue(
        &mut self,
        caller: &Caller<'_>,
        (lni, eq): (u32, u32),
        new: &NewCq,
        buffer: &CqAllocOptsBuf,
    ) -> Result<(), Errno> {
        let Lni { rgid, svc, .. } = *self.lnis.get(lni).ok_or(Errno::EINVAL)?;
        let pool = self.groups.get(svc).and_then(|group| group.tle_pool);
        let windows = &mut self.file_mut(caller.file)?.windows;
        let ring = if buffer.buf == 0 {
            Ring::Window(windows.map_for_nic(new.cmds, None)?)
        } else {
            Ring::Client(Arc::clone(caller.memory), buffer.buf)
        };
        let opts = &buffer.opts;
        let doorbell = if opts.flags & CQ_IS_TX == 0 {
            Doorbell::Target(new.id)
        } else {
            Doorbell::Queue(new.id)
        };
        let launch = windows.map_doorbell(new.wp_addr, doorbell)?;
        let triggered = opts.flags & CQ_TX_WITH_TRIG_CMDS != 0;
        self.data_path.add_queue(NewQueue {
            id: new.id,
            rgid,
            eq,
            count: new.count,
            policy: opts.policy,
            transmit: (opts.flags & CQ_IS_TX != 0).then_some((
                opts.lcid,
                triggered,
                pool.unwrap_or(0),
            )),
            ring,
            launch,
        });
        Ok(())
    }

    /// A number and a credit. When there is no credit, for whatever reason, the LNI's own freed
    /// queues are finalized; when there is no number, LNIs that wait for their cleanup are.
    fn take_cq(&mut self, lni: u32, svc: u32, transmit: bool) -> Result<u32, Errno> {
        if self.charge(svc, slot(transmit)).is_err() {
            self.finalize_cqs(lni);
            self.charge(svc, slot(transmit))?;
        }
        let id = self.cqs.ids(transmit).alloc().or_else(|| {
            self.end_pending_lnis();
            self.cqs.ids(transmit).alloc()
        });
        id.ok_or_else(|| {
            self.refund(svc, slot(transmit));
            Errno::ENOSPC
        })
    }

    fn cq_of(&self, file: u32, id: u32) -> Result<&Cq, Errno> {
        self.cqs
            .table
            .get(id)
            .filter(|cq| cq.file == file && !cq.freed)
            .ok_or(Errno::EINVAL)
    }

    /// CQ_FREE: number and credit stay until the queue is finalized, which may be after the file
    /// was closed.
    pub(super) fn cq_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let Cq {
            lni,
            eq,
            cmds,
            wp_addr,
            ..
        } = *self.cq_of(file, id)?;
        if let Some(cq) = self.cqs.table.get_mut(id) {
            cq.freed = true;
        }
        self.data_path.remove_queue(id);
        self.unhold_eq(eq);
        self.unhold_lni(lni);
        let file = self.file_mut(file)?;
        file.cqs.remove(&id);
        file.windows.free(cmds);
        file.windows.free(wp_addr);
        if let Some(lni) = self.lnis.get_mut(lni) {
            lni.freed_cqs.push(id);
        }
        Ok(())
    }

    /// Gives back number and credit of an LNI's freed queues that are quiet.
    pub(super) fn finalize_cqs(&mut self, lni: u32) {
        let Some(freed) = self
            .lnis
            .get_mut(lni)
            .map(|lni| std::mem::take(&mut lni.freed_cqs))
        else {
            return;
        };
        let (busy, quiet): (Vec<_>, Vec<_>) = freed
            .into_iter()
            .partition(|id| self.registers.in_flight.contains_key(id));
        for id in quiet {
            if let Some(cq) = self.cqs.table.remove(id) {
                self.refund(cq.svc, slot(cq.transmit));
                self.cqs.ids(cq.transmit).free(id);
            }
        }
        if let Some(lni) = self.lnis.get_mut(lni) {
            lni.freed_cqs = busy;
        }
    }

    /// CQ_ACK_COUNTER: commands in flight.
    pub(super) fn cq_ack_counter(&self, file: u32, id: u32) -> Result<u32, Errno> {
        self.cq_of(file, id)?;
        Ok(self
            .registers
            .in_flight
            .get(&id)
            .copied()
            .unwrap_or_default()
            + self.data_path.commands_in_flight(id))
    }
}
