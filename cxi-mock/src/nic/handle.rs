//! Handlers of the commands for queues, counters, portal table entries and memory.

use cxi_ioctl::abi::counter::{CtAllocCmd, CtAllocResp, CtFreeCmd, CtWbUpdateCmd};
use cxi_ioctl::abi::memory::{AtuMapCmd, AtuMapResp, AtuUnmapCmd, AtuUpdateMdCmd};
use cxi_ioctl::abi::portal::{
    PteAllocCmd, PteAllocResp, PteFreeCmd, PteLeInvalidateCmd, PteMapCmd, PteMapResp, PteStatus,
    PteStatusCmd, PteTransitionSmCmd, PteUnmapCmd,
};
use cxi_ioctl::abi::queue::{
    CqAckCounterCmd, CqAckCounterResp, CqAllocBufCmd, CqAllocCmd, CqAllocOptsBuf, CqAllocResp,
    CqFreeCmd, EqAdjustReservedFcCmd, EqAdjustReservedFcCmdV1, EqAdjustReservedFcResp, EqAllocCmd,
    EqAllocResp, EqFreeCmd, EqResizeCmd, EqResizeCompleteCmd,
};
use cxi_ioctl::abi::wait::{WaitAllocCmd, WaitAllocResp, WaitFreeCmd};
use cxi_ioctl::{Errno, Opcode};
use zerocopy::{FromZeros, IntoBytes};

use super::Device;
use super::atu::NewMd;
use super::dispatch::Call;
use super::event_queue::NewEq;

/// Bytes of the register window that MAP_CSRS hands out.
const CSR_BYTES: u64 = 640 << 20;

/// Where PHYS_LAC_ALLOC, which has no layout, has its LNI.
const LNI_OF_LAC: usize = 16;
/// No Ethernet priority was asked for.
const NO_PRIORITY: i32 = -1;

impl Device {
    pub(super) fn handle_queue(
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
            Opcode::CT_ALLOC => {
                let CtAllocCmd { lni, wb, .. } = call.command()?;
                let (ctn, doorbell) = self.ct_alloc(&call.caller, lni, wb)?;
                let mut response = CtAllocResp::new_zeroed();
                response.ctn = ctn;
                response.doorbell = doorbell;
                call.respond(&response)
            }
            Opcode::CT_FREE => {
                let command: CtFreeCmd = call.command()?;
                self.ct_free(file, command.ctn)
            }
            Opcode::CT_WB_UPDATE => {
                let command: CtWbUpdateCmd = call.command()?;
                self.ct_wb_update(&call.caller, command.ctn, command.wb)
            }
            Opcode::WAIT_ALLOC => {
                let command: WaitAllocCmd = call.command()?;
                let wait = self.wait_alloc(&call.caller, command.lni)?;
                let response = WaitAllocResp {
                    client_id: self.file_mut(file)?.number,
                    wait,
                };
                call.respond(&response)
            }
            Opcode::WAIT_FREE => {
                let command: WaitFreeCmd = call.command()?;
                self.wait_free(file, command.wait)
            }
            _ => self.handle_event_queue(opcode, call),
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
        call.respond(&response)
    }

    fn handle_event_queue(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::EQ_ALLOC => {
                let command: EqAllocCmd = call.command()?;
                let new = NewEq {
                    lni: command.lni,
                    md: command.queue_md,
                    waits: [command.event_wait, command.status_wait],
                    attr: command.attr,
                };
                let (eq, csr) = self.eq_alloc(&call.caller, &new, call.memory)?;
                let mut response = EqAllocResp::new_zeroed();
                response.eq = eq;
                response.csr = csr;
                call.respond(&response)
            }
            Opcode::EQ_FREE => {
                let command: EqFreeCmd = call.command()?;
                self.eq_free(file, command.eq)
            }
            Opcode::EQ_RESIZE => {
                let EqResizeCmd {
                    eq_hndl,
                    queue,
                    queue_len,
                    queue_md,
                    ..
                } = call.command()?;
                self.eq_resize(&call.caller, eq_hndl, queue_md, queue, queue_len)
            }
            Opcode::EQ_RESIZE_COMPLETE => {
                let command: EqResizeCompleteCmd = call.command()?;
                self.eq_resize_complete(file, command.eq_hndl)
            }
            Opcode::EQ_ADJUST_RESERVED_FC => {
                let (eq, change) = if self.rules.eq_adjust_behind {
                    let command: EqAdjustReservedFcCmd = call.command()?;
                    (command.eq_hndl, command.value)
                } else {
                    let command: EqAdjustReservedFcCmdV1 = call.command()?;
                    (command.eq_hndl, command.value)
                };
                let reserved_fc = self.eq_adjust_reserved(file, eq, change)?;
                call.respond(&EqAdjustReservedFcResp { reserved_fc })
            }
            _ => self.handle_portal(opcode, call),
        }
    }

    fn handle_portal(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::PTE_ALLOC => {
                let PteAllocCmd {
                    lni_hndl,
                    evtq_hndl,
                    opts,
                    ..
                } = call.command()?;
                let pte_number = self.pte_alloc(&call.caller, lni_hndl, evtq_hndl, opts.bits)?;
                call.respond(&PteAllocResp { pte_number })
            }
            Opcode::PTE_FREE => {
                let command: PteFreeCmd = call.command()?;
                self.pte_free(file, command.pte_number)
            }
            Opcode::PTE_MAP => {
                let command: PteMapCmd = call.command()?;
                let pte_index = self.pte_map(
                    file,
                    command.pte_number,
                    command.domain_hndl,
                    command.pid_offset,
                    command.is_multicast != 0,
                )?;
                call.respond(&PteMapResp { pte_index })
            }
            Opcode::PTE_UNMAP => {
                let command: PteUnmapCmd = call.command()?;
                self.pte_unmap(file, command.pte_index)
            }
            Opcode::PTE_LE_INVALIDATE => {
                let command: PteLeInvalidateCmd = call.command()?;
                self.pte_le_invalidate(file, command.pte_index)
            }
            Opcode::PTE_STATUS => {
                let command: PteStatusCmd = call.command()?;
                let read =
                    |status: &mut PteStatus| call.memory.read_response(status.as_mut_bytes());
                let (status, offsets) = self.pte_status(file, command.pte_index, read)?;
                if status.ule_offsets != 0 && !offsets.is_empty() {
                    call.memory.write_list(offsets.as_bytes());
                }
                call.respond(&status)
            }
            Opcode::PTE_TRANSITION_SM => {
                let command: PteTransitionSmCmd = call.command()?;
                self.pte_transition(file, command.pte_index, command.drop_count)
            }
            _ => self.handle_memory(opcode, call),
        }
    }

    fn handle_memory(&mut self, opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
        let file = call.caller.file;
        match opcode {
            Opcode::ATU_MAP => {
                let AtuMapCmd {
                    lni,
                    va,
                    len,
                    flags,
                    hints,
                    ..
                } = call.command()?;
                let new = NewMd {
                    lni,
                    va,
                    len,
                    flags,
                    hints,
                };
                let md = self.atu_map(&call.caller, &new, call.memory.backing())?;
                let mut response = AtuMapResp::new_zeroed();
                response.id = md.id;
                response.md = md;
                call.respond(&response)
            }
            Opcode::ATU_UNMAP => {
                let command: AtuUnmapCmd = call.command()?;
                self.atu_unmap(file, command.id)
            }
            Opcode::ATU_UPDATE_MD => {
                let AtuUpdateMdCmd {
                    id, va, len, flags, ..
                } = call.command()?;
                self.atu_update_md(file, id, va, len, flags)
            }
            Opcode::MAP_CSRS => self.map_csrs(call),
            // Traffic that is on its way in has arrived: there is none.
            Opcode::INBOUND_WAIT => Ok(()),
            Opcode::PHYS_LAC_ALLOC => {
                let lni = call.word(LNI_OF_LAC)?;
                // It takes a virtual function, which gets its context with the LNI.
                self.lni_of(file, lni)?;
                Err(Errno::EOPNOTSUPP)
            }
            _ => handle_ethernet(opcode, call),
        }
    }

    fn map_csrs(&mut self, call: &mut Call<'_>) -> Result<(), Errno> {
        let file = self.file_mut(call.caller.file)?;
        if file.csrs.is_some() {
            return Err(Errno::EALREADY);
        }
        let window = file.windows.alloc(CSR_BYTES)?;
        file.csrs = Some(window);
        call.respond(&window)
    }
}

/// What Ethernet drivers of virtual functions ask for. Of Ethernet the mock has the link
/// alone: no pause frames, no receive hashing.
fn handle_ethernet(opcode: Opcode, call: &mut Call<'_>) -> Result<(), Errno> {
    let identity = &call.nic.config().identity;
    match opcode {
        Opcode::ETH_LINK_STATE_GET => call.respond(&u8::from(identity.link_up)),
        Opcode::ETH_MAX_RXSIZE_GET => {
            call.respond(&u32::try_from(identity.link_mtu).unwrap_or(u32::MAX))
        }
        Opcode::ETH_PAUSE_GET => call.respond(&[0u8; 8]),
        Opcode::RMU_ETH_HASH_KEY_GET => call.respond(&[0u8; 44]),
        Opcode::VF_GET_TOKEN => call.respond(&0u32),
        Opcode::ETH_TC_REQ_PCP_GET => call.respond(&NO_PRIORITY),
        // No handle exists: nothing was allocated.
        Opcode::PHYS_LAC_FREE
        | Opcode::RMU_ETH_FREE
        | Opcode::RMU_ETH_ADD_MAC_FILTER
        | Opcode::RMU_ETH_REMOVE_FILTER
        | Opcode::RMU_ETH_ADD_PROMISC_FILTER
        | Opcode::RMU_ETH_SET_RSS_QUEUES
        | Opcode::RMU_ETH_SET_INDIR_TABLE
        | Opcode::RMU_ETH_ADD_ALL_MCAST_FILTER => Err(Errno::EINVAL),
        _ => Err(Errno::EOPNOTSUPP),
    }
}
