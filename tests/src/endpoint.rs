//! A process that sends commands with any address in them.

use std::sync::Arc;

use cxi::lni::{LeList, MapOptions, Md, Pid, Txq, TxqOptions};
use cxi::{Device, DeviceMemory, ServiceId, TrafficClass, Vni};
use cxi_data::{Append, Buffer, Event, SetState, TargetFlags};
use cxi_hw::{
    Class, CommandByte, CqStatus, DmaFlags, DmaOp, EventType, FabricAddress, FullDma, MatchId,
    ReturnCode, command_ring, launch_page,
};

use crate::process::{Problem, Process};

/// Size of the buffer that others can access, in bytes.
pub const BUFFER_BYTES: usize = 1 << 16;
const UNITS: u32 = 64;

/// A process with its own queue for commands that [`cxi_data`] does not make.
#[derive(Debug)]
pub struct Endpoint {
    /// Its events and its address.
    pub process: Process,
    /// The buffer that others can access, from offset 0.
    pub buffer: Buffer,
    /// The buffer that its messages are sent from.
    pub local: Arc<DeviceMemory>,
    local_md: Md,
    queue: Txq,
    slot: u32,
}

/// The target and the data of an operation.
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
    /// An endpoint of a service on a VNI. Its buffer is ready when the NIC has run.
    ///
    /// # Errors
    ///
    /// Something could not be allocated.
    pub fn new(device: &Device, service: ServiceId, vni: Vni, pid: u32) -> Result<Self, Problem> {
        let mut process = Process::new(device, service, vni, Some(Pid::new(pid)?))?;
        let lni = &process.lni;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let options = TxqOptions::new(UNITS).event_queue(process.events.queue());
        let queue = lni.alloc_txq(&profile, &options)?;
        let status = CqStatus { rd_ptr: 4, return_code: ReturnCode::OK, ..CqStatus::default() };
        let commands = queue.commands()?;
        commands.write_u64(0, u64::from_le_bytes(status.encode()))?;
        let local = Arc::new(DeviceMemory::new(BUFFER_BYTES)?);
        let local_md = lni.map_memory(&local, &MapOptions::new())?;
        let buffer = Buffer::new(lni, BUFFER_BYTES)?;
        let entry = Append::new(&process.pte, LeList::Priority, buffer.whole());
        let entry = entry.flags(TargetFlags::OP_PUT | TargetFlags::OP_GET);
        process.target.post(&SetState::enable(&process.pte))?;
        process.target.post(&entry)?;
        Ok(Self { process, buffer, local, local_md, queue, slot: command_ring::FIRST_SLOT })
    }

    /// Its address on the fabric.
    #[must_use]
    pub fn address(&self) -> (u32, u32) {
        let address = self.process.address;
        (address.nid, address.pid.into())
    }

    /// The address of `local` for the NIC.
    #[must_use]
    pub fn local_iova(&self) -> u64 {
        self.local_md.iova()
    }

    /// Sends an operation.
    ///
    /// # Errors
    ///
    /// Windows cannot be mapped.
    pub fn send(&mut self, operation: &Operation) -> Result<(), Problem> {
        let process = &self.process;
        let ((nid, pid), own) = (operation.to, self.address());
        let pid_bits = process.info.pid_bits;
        let (dfa, index_ext) = FabricAddress::unicast(nid, pid, 0, pid_bits);
        let command = FullDma {
            command: CommandByte::new(Class::DMA, 1, operation.op.0),
            index_ext,
            lac: self.local_md.lac(),
            flags: DmaFlags::EVENT_SEND_DISABLE,
            dfa,
            remote_offset: operation.offset,
            local_addr: operation.local,
            request_len: operation.len,
            eq: u16::try_from(process.events.queue().id())?,
            initiator: MatchId::new(own.1, own.0, pid_bits),
            user_ptr: 0xfeed,
            ..FullDma::default()
        };
        let commands = self.queue.commands()?;
        let at = self.slot as usize * 32;
        for (word, at) in command.encode().as_chunks().0.iter().zip((at..).step_by(8)) {
            commands.write_u64(at, u64::from_ne_bytes(*word))?;
        }
        self.slot += command_ring::UNIT_SLOTS;
        if self.slot >= self.queue.slots() * command_ring::UNIT_SLOTS {
            self.slot = command_ring::FIRST_SLOT;
        }
        let unit = self.slot / command_ring::UNIT_SLOTS;
        let page = self.queue.write_pointer()?;
        Ok(page.ring(launch_page::WRITE_POINTER, unit.into())?)
    }

    /// The next event, if there is one: what it reports and its result.
    ///
    /// # Errors
    ///
    /// The event queue cannot be read.
    pub fn event(&mut self) -> Result<Option<(EventType, ReturnCode)>, Problem> {
        let Some(event) = self.process.events.drain().next() else { return Ok(None) };
        let (kind, result) = match event? {
            Event::Completion(it) => (it.kind, it.result),
            Event::Arrival(it) => (it.kind, it.result),
            Event::Entry(it) => (it.kind, it.result),
            Event::State(it) => (EventType::STATE_CHANGE, it.result),
            other => return Err(format!("{other:?} came").into()),
        };
        Ok(Some((kind, result.map_or_else(|it| it.0, |()| ReturnCode::OK))))
    }
}
