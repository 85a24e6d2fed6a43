//! A program that sends and receives: queues, a PtlTE and memory, on any device.

use std::sync::Arc;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueue, EventQueueOptions, MapOptions, Md, Pid, PtOptions,
    Pte, PteMapping, Tgq, TgqOptions, Txq, TxqOptions,
};
use cxi::{Device, DeviceMemory, Lni, ServiceId, TrafficClass, Vni};
use cxi_hw::{
    Class, CommandByte, CqStatus, DmaFlags, DmaOp, EqState, EventSize, EventType, FabricAddress,
    FullDma, InitiatorShort, List, MatchId, PtlteState, ReturnCode, SetState, TargetCommand,
    TargetFlags, TargetOp, command_ring, event_ring, launch_page,
};
use cxi_ioctl::Mapping;

/// What went wrong.
pub type Problem = Box<dyn std::error::Error>;

/// Bytes of the buffer that others reach.
pub const BUFFER_BYTES: usize = 1 << 16;
const PID_BITS: u32 = 9;
const SLOTS: u32 = 64;
const EVENT_BYTES: usize = 1 << 16;
/// The handle of the list entry.
const BUFFER_ID: u16 = 7;

/// One end of a connection.
#[derive(Debug)]
pub struct Endpoint {
    /// What others reach, from offset 0.
    pub buffer: Arc<DeviceMemory>,
    /// Where its messages come from.
    pub local: Arc<DeviceMemory>,
    nid: u32,
    pid: u32,
    md: Md,
    local_md: Md,
    transmit: Txq,
    transmit_slot: u32,
    target: Tgq,
    target_slot: u32,
    pte: Pte,
    events: EventQueue,
    read: u32,
    _mapping: PteMapping,
    _domain: Domain,
    _profile: CommunicationProfile,
    _lni: Lni,
}

/// Where an operation goes and what it moves.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Put or get.
    pub op: DmaOp,
    /// NIC address and PID of the target.
    pub to: (u32, u32),
    /// Offset in the buffer of the target.
    pub offset: u64,
    /// Address in the initiator.
    pub local: u64,
    /// Bytes.
    pub len: u32,
}

impl Endpoint {
    /// An endpoint of a service on a VNI, with its buffer ready.
    ///
    /// # Errors
    ///
    /// Something could not be allocated.
    pub fn new(
        device: &Device,
        service: ServiceId,
        vni: Vni,
        nid: u32,
        pid: u32,
    ) -> Result<Self, Problem> {
        let lni = device.alloc_lni(service)?;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let events = lni.alloc_eq(&EventQueueOptions::new(EVENT_BYTES))?;
        let transmit = lni.alloc_txq(&profile, &TxqOptions::new(SLOTS).event_queue(&events))?;
        let target = lni.alloc_tgq(&TgqOptions::new(SLOTS).event_queue(&events))?;
        let pte = lni.alloc_pte(PtOptions::empty(), Some(&events))?;
        let domain = lni.alloc_domain(vni, Some(Pid::new(pid)?))?;
        let mapping = pte.map(&domain, 0)?;
        let memory = || DeviceMemory::new(BUFFER_BYTES).map(Arc::new);
        let (buffer, local) = (memory()?, memory()?);
        let md = lni.map_memory(&buffer, &MapOptions::new())?;
        let local_md = lni.map_memory(&local, &MapOptions::new())?;
        let status = CqStatus {
            rd_ptr: 4,
            return_code: ReturnCode::OK,
            ..CqStatus::default()
        };
        let status = u64::from_le_bytes(status.encode());
        for ring in [transmit.commands()?, target.commands()?] {
            ring.write_u64(0, status)?;
        }
        let mut endpoint = Self {
            buffer,
            local,
            nid,
            pid,
            md,
            local_md,
            transmit,
            transmit_slot: command_ring::FIRST_SLOT,
            target,
            target_slot: command_ring::FIRST_SLOT,
            pte,
            events,
            read: event_ring::FIRST_BLOCK,
            _mapping: mapping,
            _domain: domain,
            _profile: profile,
            _lni: lni,
        };
        endpoint.expose()?;
        Ok(endpoint)
    }

    /// Enables the PtlTE and appends the buffer, for puts and gets of everybody.
    fn expose(&mut self) -> Result<(), Problem> {
        let index = u16::try_from(self.pte.id())?;
        let state = SetState {
            command: CommandByte::new(Class::CQ, 1, TargetOp::SETSTATE.0),
            ptlte_state: PtlteState::ENABLED,
            ptlte_index: index,
            drop_count: 0xff_ffff,
            ..SetState::default()
        };
        let mut command = [0; 64];
        command[..SetState::BYTES].copy_from_slice(&state.encode());
        self.target(&command)?;
        let append = TargetCommand {
            command: CommandByte::new(Class::CQ, 1, TargetOp::APPEND.0),
            ptl_list: List::PRIORITY,
            ptlte_index: index,
            flags: TargetFlags::OP_PUT | TargetFlags::OP_GET,
            buffer_id: BUFFER_ID,
            lac: self.md.lac(),
            start: self.md.iova(),
            length: BUFFER_BYTES as u64,
            match_id: MatchId::ANY,
            ..TargetCommand::default()
        };
        self.target(&append.encode())
    }

    /// Who it is for others.
    #[must_use]
    pub const fn address(&self) -> (u32, u32) {
        (self.nid, self.pid)
    }

    /// The address of `local` for the NIC.
    #[must_use]
    pub fn local_iova(&self) -> u64 {
        self.local_md.iova()
    }

    fn target(&mut self, command: &[u8; 64]) -> Result<(), Problem> {
        let (ring, page) = (self.target.commands()?, self.target.write_pointer()?);
        submit(
            ring,
            page,
            &mut self.target_slot,
            self.target.slots(),
            command,
        )
    }

    /// Rings the target queue for a command without effect and without an event.
    ///
    /// # Errors
    ///
    /// Windows cannot be mapped.
    pub fn ring_target(&mut self) -> Result<(), Problem> {
        let mut command = [0; 64];
        command[0] = CommandByte::new(Class::CQ, 1, 0).0;
        self.target(&command)
    }

    /// Whether the NIC has executed all commands of the target queue.
    ///
    /// # Errors
    ///
    /// Windows cannot be mapped.
    pub fn target_is_idle(&self) -> Result<bool, Problem> {
        let status = self.target.commands()?.read_u64(0)?.to_le_bytes();
        let unit = CqStatus::decode(&status).rd_ptr;
        Ok(u32::from(unit) * command_ring::UNIT_SLOTS == self.target_slot)
    }

    /// Sends an operation.
    ///
    /// # Errors
    ///
    /// Windows cannot be mapped.
    pub fn send(&mut self, operation: &Operation) -> Result<(), Problem> {
        let (nid, pid) = operation.to;
        let (dfa, index_ext) = FabricAddress::unicast(nid, pid, 0, PID_BITS);
        let command = FullDma {
            command: CommandByte::new(Class::DMA, 1, operation.op.0),
            index_ext,
            lac: self.local_md.lac(),
            flags: DmaFlags::EVENT_SEND_DISABLE,
            dfa,
            remote_offset: operation.offset,
            local_addr: operation.local,
            request_len: operation.len,
            eq: u16::try_from(self.events.id())?,
            initiator: MatchId::new(self.pid, self.nid, PID_BITS),
            user_ptr: 0xfeed,
            ..FullDma::default()
        };
        let (ring, page) = (self.transmit.commands()?, self.transmit.write_pointer()?);
        let slots = self.transmit.slots();
        submit(
            ring,
            page,
            &mut self.transmit_slot,
            slots,
            &command.encode(),
        )
    }

    /// The next event, if there is one: what it reports and its result.
    ///
    /// # Errors
    ///
    /// The event queue cannot be read.
    pub fn event(&mut self) -> Result<Option<(EventType, ReturnCode)>, Problem> {
        let memory = self.events.memory();
        let at = self.read as usize * 64;
        let mut block = [0; 64];
        memory.copy_out(at, &mut block)?;
        let short = InitiatorShort::decode(block.first_chunk().ok_or("no block")?);
        let len = match short.event_size {
            EventSize::BYTES_16 => 16,
            EventSize::BYTES_32 => 32,
            EventSize::BYTES_64 => 64,
            _ => return Ok(None),
        };
        // The last byte comes last.
        let code = ReturnCode(block[len - 1] & 0x3f);
        if code == ReturnCode::default() {
            return Ok(None);
        }
        memory.copy_in(at, &[0; 64])?;
        self.read += 1;
        if self.read as usize * 64 == EVENT_BYTES {
            self.read = event_ring::FIRST_BLOCK;
        }
        let state = EqState {
            rd_ptr: self.read,
            ..EqState::default()
        };
        let state = u64::from_le_bytes(state.encode());
        self.events.registers()?.ring(0, state)?;
        Ok(Some((short.event_type, code)))
    }
}

/// Writes a command of 64 bytes and rings.
fn submit(
    ring: &Mapping,
    page: &Mapping,
    slot: &mut u32,
    slots: u32,
    command: &[u8; 64],
) -> Result<(), Problem> {
    ring.write_slot(*slot as usize * 32, command)?;
    *slot += command_ring::UNIT_SLOTS;
    if *slot >= slots * command_ring::UNIT_SLOTS {
        *slot = command_ring::FIRST_SLOT;
    }
    let unit = *slot / command_ring::UNIT_SLOTS;
    Ok(page.ring(launch_page::WRITE_POINTER, unit.into())?)
}
