//! The commands for command queues.

use std::sync::Arc;

use cxi_engine::{CommandQueue, Transmit, UpdatePolicy};
use cxi_ioctl::Errno;
use cxi_ioctl::abi::queue::{
    CQ_IS_TX, CQ_TX_ETHERNET, CQ_TX_WITH_TRIG_CMDS, CQ_UPDATE_ALWAYS, CQ_UPDATE_LOW_FREQ,
    CqAckCounterCmd, CqAckCounterResp, CqAllocBufCmd, CqAllocCmd, CqAllocOptsBuf, CqAllocResp,
};
use zerocopy::FromZeros;

use super::{Call, Caller};
use crate::data_path::{Commands, Doorbell, Purpose, QueuePages, page_bytes, small};
use crate::nic::device::Device;
use crate::nic::parts::accounting::Slot;
use crate::nic::parts::lnis::{FreedCq, Lni};
use crate::nic::parts::queues::{Cq, FIRST_TGQ};

/// A target queue names one of four thresholds of credits.
const MAX_THRESHOLD_ID: u32 = 3;
/// Smaller queues are made this large, and all are rounded up to a power of two, because the
/// hardware stores only the logarithm.
const MIN_COMMANDS: u32 = 64;
const MAX_COMMANDS: u32 = 65536;
const COMMAND_BYTES: u64 = 64;
const NO_DMABUF: i32 = -1;

const fn slot(transmit: bool) -> Slot {
    if transmit { Slot::Txq } else { Slot::Tgq }
}

pub(super) fn cq_alloc(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let CqAllocCmd { lni, eq, opts, .. } = call.command()?;
    let mut no_buffer = CqAllocOptsBuf::new_zeroed();
    no_buffer.opts = opts;
    let queue = device.cq_alloc(&call.caller, lni, eq, &no_buffer)?;
    call.made(queue.cq, &queue)
}

pub(super) fn cq_alloc_buf(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let CqAllocBufCmd { lni, eq, opts, .. } = call.command()?;
    let queue = device.cq_alloc(&call.caller, lni, eq, &opts)?;
    call.made(queue.cq, &queue)
}

pub(super) fn cq_ack_counter(device: &mut Device, call: &mut Call<'_>) -> Result<(), Errno> {
    let file = call.caller.file;
    let command: CqAckCounterCmd = call.command()?;
    let ack_counter = device.cq_ack_counter(file, command.cq)?;
    call.respond(&CqAckCounterResp { ack_counter })
}

impl Device {
    /// CQ_ALLOC, and CQ_ALLOC_BUF, which differs only if it brings a buffer.
    fn cq_alloc(
        &mut self,
        caller: &Caller<'_>,
        lni: u32,
        eq: u32,
        buffer: &CqAllocOptsBuf,
    ) -> Result<CqAllocResp, Errno> {
        let opts = &buffer.opts;
        let owner = self.lni_of(caller.file, lni)?;
        // With a wrong RGID, the driver searches where nothing is registered.
        let (svc, rgid) = (owner.svc, owner.wrong_rgid.unwrap_or(owner.rgid));
        if eq != 0 {
            self.eqs.queues.of(caller.file, eq)?;
        }
        // The relay of a virtual function checks this before the other options.
        if self.files.is_virtual(caller.file) && opts.count > MAX_COMMANDS {
            return Err(Errno::E2BIG);
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
            let lcid = usize::try_from(opts.lcid).map_err(|_| Errno::EINVAL)?;
            // Triggered commands need LCID 0.
            if (trigger && lcid != 0) || self.rgids.lcid(rgid, lcid).is_none() {
                return Err(Errno::EINVAL);
            }
        }
        if opts.flags & CQ_TX_ETHERNET != 0 && !caller.credentials.net_raw {
            return Err(Errno::EPERM);
        }
        // Open doorbells belong to known queues, so they are closed before there is a new one.
        if !transmit && !self.data_path.close_doorbells(caller.file) {
            return Err(Errno::ENOMEM);
        }
        self.make_room_for_cq(lni, svc, transmit)?;
        // The driver checks the buffer after it has charged for the queue, so a lack of credit
        // wins.
        let count = opts.count.max(MIN_COMMANDS).next_power_of_two();
        self.check_command_buffer(buffer, count)?;
        let windows = &mut self.files.get_mut(caller.file)?.windows;
        let cmds = windows.alloc(u64::from(count) * COMMAND_BYTES)?;
        let wp_addr = windows.alloc_doorbell(caller.traps_stores, !transmit);
        let wp_addr = wp_addr.inspect_err(|_| windows.free(cmds))?;
        self.services.charge(svc, slot(transmit))?;
        let cq = Cq { eq, cmds, wp_addr };
        let id = self.cqs.of_kind(transmit).add((caller.file, lni), cq)?;
        self.eqs.queues.hold(eq);
        self.lnis.live.hold(lni);
        let new = CqAllocResp { cq: id, count, cmds, wp_addr };
        if let Err(errno) = self.wire_queue(caller, (lni, eq), &new, buffer) {
            self.cq_free(caller.file, id)?;
            return Err(errno);
        }
        Ok(new)
    }

    /// A caller's buffer for commands must be page-aligned memory of the host; other memory would
    /// need the driver of a GPU. Without a buffer, the driver allocates one.
    fn check_command_buffer(&self, opts: &CqAllocOptsBuf, count: u32) -> Result<(), Errno> {
        if !opts.buf.is_multiple_of(page_bytes()) {
            return Err(Errno::EINVAL);
        }
        if opts.buf == 0 || opts.is_host_mem != 0 {
            return Ok(());
        }
        self.check_range(opts.buf, u64::from(count) * COMMAND_BYTES)?;
        match opts.dmabuf_fd {
            NO_DMABUF => Err(Errno::EOPNOTSUPP),
            // The mock cannot see the caller's descriptors, and none of them is for a GPU's memory.
            _ => Err(Errno::EBADF),
        }
    }

    /// Tells the data path of a new queue.
    fn wire_queue(
        &mut self,
        caller: &Caller<'_>,
        (lni, eq): (u32, u32),
        new: &CqAllocResp,
        buffer: &CqAllocOptsBuf,
    ) -> Result<(), Errno> {
        let Lni { rgid, svc, .. } = **self.lnis.live.get(lni).ok_or(Errno::EINVAL)?;
        let pool = self.services.get(svc)?.reserved.tle_pool;
        let windows = &mut self.files.get_mut(caller.file)?.windows;
        let commands = if buffer.buf == 0 {
            let polls_windows = buffer.opts.flags & CQ_IS_TX != 0 && !caller.traps_stores;
            let purpose = if polls_windows { Purpose::Ring } else { Purpose::Plain };
            Commands::Window(windows.map_for_nic(new.cmds, purpose)?)
        } else {
            Commands::Client(Arc::clone(caller.memory), buffer.buf)
        };
        let opts = &buffer.opts;
        let transmit = (opts.flags & CQ_IS_TX != 0).then_some(Transmit {
            // There are 16 LCIDs, and a larger one has no profile.
            lcid: u8::try_from(opts.lcid).unwrap_or(u8::MAX),
            triggered: opts.flags & CQ_TX_WITH_TRIG_CMDS != 0,
            tle_pool: pool.unwrap_or(0),
        });
        let doorbell = match transmit {
            Some(_) => Doorbell::Queue(new.cq),
            None => Doorbell::Target(new.cq),
        };
        let launch = windows.map_doorbell(new.wp_addr, doorbell)?;
        let polled = windows.is_polled(launch.as_ref());
        let queue = CommandQueue {
            transmit,
            rgid: small(rgid),
            eq: small(eq),
            count: new.count,
            policy: match opts.policy {
                CQ_UPDATE_ALWAYS => UpdatePolicy::Always,
                _ => UpdatePolicy::WhenEmpty,
            },
            pages: Box::new(QueuePages { commands, launch }),
        };
        self.data_path.add_queue(new.cq, queue, polled);
        Ok(())
    }

    /// Makes room for a queue. A freed queue keeps its number and credit, because the hardware may
    /// still be executing its commands. If there is no credit, the LNI's own freed queues are
    /// finalized; if there is no number, those of LNIs that wait for their cleanup are.
    fn make_room_for_cq(&mut self, lni: u32, svc: u32, transmit: bool) -> Result<(), Errno> {
        if self.services.may_charge(svc, slot(transmit)).is_err() {
            let owner = self.lnis.live.get_mut(lni);
            let freed = owner.map(|lni| std::mem::take(&mut lni.freed_cqs));
            let busy = self.finalize_cqs(svc, freed.unwrap_or_default());
            if let Some(owner) = self.lnis.live.get_mut(lni) {
                owner.freed_cqs = busy;
            }
            self.services.may_charge(svc, slot(transmit))?;
        }
        if !self.cqs.of_kind(transmit).has_number() {
            self.end_pending_lnis();
        }
        self.cqs.of_kind(transmit).has_number().then_some(()).ok_or(Errno::ENOSPC)
    }

    /// Frees a queue. Number and credit stay until it is finalized, which may be after the file is
    /// closed.
    pub(super) fn cq_free(&mut self, file: u32, id: u32) -> Result<(), Errno> {
        let cq = self.cqs.of_number(id).take(file, id)?;
        self.data_path.remove_queue(id);
        self.eqs.queues.release(cq.eq);
        self.lnis.live.release(cq.lni);
        let windows = &mut self.files.get_mut(file)?.windows;
        windows.free(cq.cmds);
        windows.free(cq.wp_addr);
        if let Some(lni) = self.lnis.live.get_mut(cq.lni) {
            let transmit = id < FIRST_TGQ;
            lni.freed_cqs.push(FreedCq { id, transmit });
        }
        Ok(())
    }

    /// Returns the numbers and credits of freed queues that are quiet. The result has the other
    /// queues.
    pub(super) fn finalize_cqs(&mut self, svc: u32, freed: Vec<FreedCq>) -> Vec<FreedCq> {
        let in_flight = &self.registers.in_flight;
        let (busy, quiet): (Vec<_>, Vec<_>) =
            freed.into_iter().partition(|cq| in_flight.contains_key(&cq.id));
        for FreedCq { id, transmit } in quiet {
            self.services.refund(svc, slot(transmit));
            self.cqs.of_kind(transmit).give_number(id);
        }
        busy
    }

    /// Commands in flight.
    fn cq_ack_counter(&self, file: u32, id: u32) -> Result<u32, Errno> {
        self.cqs.check(file, id)?;
        let set = self.registers.in_flight.get(&id).copied();
        Ok(set.unwrap_or_default() + self.data_path.state().engine.commands_in_flight(small(id)))
    }
}
