//! A client of the engine for tests: it writes commands and reads events as a program does.

// Each test uses a part.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::must_use_candidate,
    clippy::missing_panics_doc
)]

pub mod memory;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use cxi_engine::{
    CommunicationProfile, Counter, CounterDoorbell, Engine, EntryPool, EventBuffer, EventFlags,
    EventQueue, Fabric, Portal, PortalOptions, Region, Settings, TargetQueue, Thresholds,
    TransmitQueue, UpdatePolicy, WriteBack,
};
use cxi_hw::{
    CState, Class, CommandByte, CqStatus, CtCommand, CtOp, CtWriteback, DmaFlags, DmaOp, EqState,
    EventSize, EventType, FabricAddress, FullDma, IdcHeader, IdcMessage, InitiatorShort, List,
    MatchId, PtlteState, ReturnCode, SetState, StateChange, TargetCommand, TargetFlags, TargetLong,
    TargetOp, TargetShort, command_ring,
};

use memory::{Memory, Ring, Word};

pub const NID: u32 = 0x21;
pub const VNI: u16 = 1;
pub const RGID: u16 = 3;
pub const LAC: u8 = 1;
pub const TXQ: u16 = 1;
pub const TRIGQ: u16 = 2;
pub const TGQ: u16 = 1024;
/// Event queue of initiators, and of targets.
pub const EQ: u16 = 1;
pub const TARGET_EQ: u16 = 2;
pub const PORTAL: u16 = 1;
pub const CT: u16 = 1;
/// Memory of the process that the NIC may use.
pub const BUFFER: u64 = 0x10_0000;
pub const BUFFER_LEN: usize = 0x40_0000;
/// Where a process keeps event rings and write-backs.
const PRIVATE: u64 = 0x1000_0000;

/// An event as it was in the ring.
#[derive(Clone, PartialEq, Eq)]
pub struct Event(pub Vec<u8>);

impl Event {
    pub fn kind(&self) -> EventType {
        EventType((self.0[14] >> 2) & 31)
    }

    pub fn code(&self) -> ReturnCode {
        ReturnCode(self.0[self.0.len() - 1] & 63)
    }

    pub fn initiator(&self) -> InitiatorShort {
        InitiatorShort::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn long(&self) -> TargetLong {
        TargetLong::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn short(&self) -> TargetShort {
        TargetShort::decode(self.0.as_slice().try_into().unwrap())
    }

    pub fn state(&self) -> StateChange {
        StateChange::decode(self.long().initiator.0)
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {:?} ({})", self.kind(), self.code(), self.0.len())
    }
}

/// A program's side of a command queue.
pub struct Commands {
    pub ring: Ring,
    slot: u32,
    count: u32,
}

impl Commands {
    fn new(count: u32) -> Self {
        let ring = Ring(Arc::new(Mutex::new(vec![0; count as usize * 64])));
        let status = CqStatus {
            rd_ptr: 4,
            return_code: ReturnCode::OK,
            ..CqStatus::default()
        };
        ring.0.lock().unwrap()[..8].copy_from_slice(&status.encode());
        Self {
            ring,
            slot: command_ring::FIRST_SLOT,
            count,
        }
    }

    /// Appends a command, with no-ops before it up to a boundary of its size.
    pub fn push(&mut self, command: &[u8]) {
        let bytes = match command[0] {
            0 => 32,
            first => CommandByte(first).bytes(),
        };
        for _ in 0..command_ring::padding(self.slot, u32::try_from(bytes / 32).unwrap()) {
            self.store(&[0; 32], 32);
        }
        self.store(command, bytes);
    }

    fn store(&mut self, command: &[u8], bytes: usize) {
        let at = self.slot as usize * 32;
        let mut ring = self.ring.0.lock().unwrap();
        ring[at..at + bytes].fill(0);
        ring[at..at + command.len()].copy_from_slice(command);
        self.slot += u32::try_from(bytes / 32).unwrap();
        if self.slot >= self.count * 2 {
            self.slot = command_ring::FIRST_SLOT;
        }
    }

    pub fn write_pointer(&mut self) -> u64 {
        if !self.slot.is_multiple_of(2) {
            self.store(&[0; 32], 32);
        }
        u64::from(self.slot / 2)
    }

    pub fn status(&self) -> CqStatus {
        CqStatus::decode(self.ring.0.lock().unwrap()[..8].try_into().unwrap())
    }
}

/// A program's side of an event queue.
pub struct Reader {
    pub memory: Arc<Memory>,
    pub va: u64,
    pub blocks: u64,
    pub read: u64,
    pub word: Word,
    pub state: EqState,
}

impl Reader {
    /// The event at the read pointer, without taking it.
    pub fn peek(&self) -> Option<Event> {
        let block = self.memory.bytes(self.va + self.read * 64, 64);
        let size = EventSize(block[14] & 3).bytes();
        (size > 0).then(|| Event(block[..size].to_vec()))
    }

    /// Takes an event, clears its block and acknowledges it.
    pub fn next(&mut self, engine: &mut Engine, number: u16) -> Option<Event> {
        let event = self.peek()?;
        self.memory.put(self.va + self.read * 64, &[0; 64]);
        self.read += 1;
        if self.read >= self.blocks {
            self.read = 1;
        }
        self.state.rd_ptr = u32::try_from(self.read).unwrap();
        self.store(engine, number);
        Some(event)
    }

    pub fn store(&self, engine: &mut Engine, number: u16) {
        let word = u64::from_le_bytes(self.state.encode());
        self.word.0.store(word, Ordering::Release);
        engine.ring_event_queue(number);
    }
}

/// A NIC and the process that uses it.
pub struct Rig {
    pub engine: Engine,
    pub fabric: Fabric,
    pub memory: Arc<Memory>,
    pub queues: BTreeMap<u16, Commands>,
    pub readers: BTreeMap<u16, Reader>,
    private: u64,
    pub rgid: u16,
    pub nid: u32,
}

impl Rig {
    /// A NIC with a transmit queue, a triggered queue, a target queue, two event queues, a counter
    /// and a buffer; no PtlTE yet.
    pub fn new() -> Self {
        Self::on(Fabric::new(), NID, Settings::default())
    }

    pub fn on(fabric: Fabric, nid: u32, settings: Settings) -> Self {
        let settings = Settings { nid, ..settings };
        let engine = Engine::new(settings, fabric.clone());
        let mut rig = Self {
            engine,
            fabric,
            memory: Memory::new(),
            queues: BTreeMap::new(),
            readers: BTreeMap::new(),
            private: PRIVATE,
            rgid: RGID,
            nid,
        };
        rig.profile(0, VNI);
        rig.engine.add_receive_profile(1, VNI..=VNI);
        rig.add_eq(EQ, 256, EventFlags::empty());
        rig.add_eq(TARGET_EQ, 256, EventFlags::empty());
        rig.add_tx(TXQ, false);
        rig.add_tx(TRIGQ, true);
        rig.add_target(TGQ);
        rig.add_ct(CT);
        rig.region(1, BUFFER, BUFFER_LEN);
        rig
    }

    pub fn profile(&mut self, lcid: u8, vni: u16) {
        let profile = CommunicationProfile {
            vni,
            traffic_class: 0,
            high_rate: false,
        };
        self.engine.set_profile(self.rgid, lcid, Some(profile));
    }

    pub fn private(&mut self, len: usize) -> u64 {
        let va = self.private;
        self.memory.map(va, len);
        self.private += len as u64;
        va
    }

    pub fn add_eq(&mut self, number: u16, blocks: u64, flags: EventFlags) {
        let thresholds = Thresholds::default();
        self.add_eq_with(number, blocks, flags, thresholds, 0);
    }

    pub fn add_eq_with(
        &mut self,
        number: u16,
        blocks: u64,
        flags: EventFlags,
        thresholds: Thresholds,
        reserved: u32,
    ) {
        let len = blocks * 64;
        let va = self.private(usize::try_from(len).unwrap());
        let word = Word::default();
        self.engine.add_event_queue(
            number,
            EventQueue {
                rgid: self.rgid,
                buffer: EventBuffer {
                    memory: Arc::clone(&self.memory) as _,
                    va,
                    len,
                },
                flags,
                thresholds,
                reserved,
                event_wait: Some(number.into()),
                status_wait: Some(1000 + u64::from(number)),
                page: Box::new(word.clone()),
            },
        );
        let reader = Reader {
            memory: Arc::clone(&self.memory),
            va,
            blocks,
            read: 1,
            word,
            state: EqState::default(),
        };
        self.readers.insert(number, reader);
    }

    pub fn add_tx(&mut self, number: u16, triggered: bool) {
        let commands = Commands::new(256);
        self.engine.add_transmit_queue(
            number,
            TransmitQueue {
                rgid: self.rgid,
                lcid: 0,
                triggered,
                eq: EQ,
                count: 256,
                policy: UpdatePolicy::Always,
                pages: Box::new(commands.ring.clone()),
                tle_pool: 0,
            },
        );
        self.queues.insert(number, commands);
    }

    pub fn add_target(&mut self, number: u16) {
        let commands = Commands::new(256);
        self.engine.add_target_queue(
            number,
            TargetQueue {
                rgid: self.rgid,
                eq: EQ,
                count: 256,
                policy: UpdatePolicy::WhenEmpty,
                pages: Box::new(commands.ring.clone()),
            },
        );
        self.queues.insert(number, commands);
    }

    /// Where the counter writes back to.
    pub fn add_ct(&mut self, number: u16) -> u64 {
        let va = self.private(8);
        self.engine.add_counter(
            number,
            Counter {
                rgid: self.rgid,
                write_back: Some(WriteBack {
                    memory: Arc::clone(&self.memory) as _,
                    va,
                }),
                page: None,
            },
        );
        va
    }

    pub fn region(&mut self, number: u32, va: u64, len: usize) {
        self.memory.map(va, len);
        self.region_with(number, va, len, true, true);
    }

    pub fn region_with(&mut self, number: u32, va: u64, len: usize, read: bool, write: bool) {
        self.engine.add_region(
            number,
            Region {
                rgid: self.rgid,
                lac: LAC,
                iova: va,
                len: len as u64,
                va,
                readable: read,
                writable: write,
                memory: Arc::clone(&self.memory) as _,
            },
        );
    }

    /// A PtlTE that is mapped at PID 0 and enabled, its STATE_CHANGE taken.
    pub fn portal(&mut self, number: u16, index: u16, options: PortalOptions) {
        self.portal_disabled(number, index, options);
        self.set_state(number, PtlteState::ENABLED, 0xff_ffff);
        assert_eq!(self.event(TARGET_EQ).kind(), EventType::STATE_CHANGE);
    }

    pub fn portal_disabled(&mut self, number: u16, index: u16, options: PortalOptions) {
        self.engine.add_portal(
            number,
            Portal {
                rgid: self.rgid,
                eq: TARGET_EQ,
                options,
                pool: EntryPool::default(),
            },
        );
        self.engine.map_portal(1, 0, index, number);
    }

    /// Writes commands and rings the doorbell.
    pub fn submit(&mut self, queue: u16, commands: &[&[u8]]) {
        self.store(queue, commands);
        self.engine.run_until_idle();
    }

    /// The same, without running the NIC.
    pub fn store(&mut self, queue: u16, commands: &[&[u8]]) {
        let Some(ring) = self.queues.get_mut(&queue) else {
            panic!("no queue {queue}");
        };
        for command in commands {
            ring.push(command);
        }
        self.engine.ring_queue(queue, ring.write_pointer());
    }

    pub fn event(&mut self, eq: u16) -> Event {
        self.try_event(eq)
            .unwrap_or_else(|| panic!("no event in queue {eq}"))
    }

    pub fn try_event(&mut self, eq: u16) -> Option<Event> {
        let event = self.readers.get_mut(&eq)?.next(&mut self.engine, eq);
        self.engine.run_until_idle();
        event
    }

    /// All events of a queue, by kind and code.
    pub fn events(&mut self, eq: u16) -> Vec<(EventType, ReturnCode)> {
        std::iter::from_fn(|| self.try_event(eq).map(|event| (event.kind(), event.code())))
            .collect()
    }

    pub fn set_state(&mut self, number: u16, state: PtlteState, drop_count: u32) {
        let command = SetState {
            command: target(TargetOp::SETSTATE),
            ptlte_state: state,
            ptlte_index: number,
            drop_count,
            ..SetState::default()
        };
        self.submit(TGQ, &[&command.encode()]);
    }

    pub fn append(&mut self, command: &TargetCommand) {
        self.submit(TGQ, &[&command.encode()]);
    }

    pub fn put(&mut self, command: &FullDma) {
        self.submit(TXQ, &[&command.encode()]);
    }

    /// What a counter holds, after a GET.
    pub fn count(&mut self, ct: u16, va: u64) -> (u64, u8) {
        self.memory.put(va, &[0; 8]);
        let command = counter(CtOp::GET, ct);
        self.submit(TXQ, &[&padded(&command.encode(), 64)]);
        self.written_back(va).unwrap()
    }

    /// What a counter has written back, if it has.
    pub fn written_back(&self, va: u64) -> Option<(u64, u8)> {
        let word = CtWriteback::decode(&self.memory.word(va).to_le_bytes());
        word.ct_writeback
            .then_some((word.ct_success, word.ct_failure))
    }

    pub fn ring_counter(&mut self, ct: u16, doorbell: CounterDoorbell, value: u64) {
        self.engine.ring_counter(ct, doorbell, value);
        self.engine.run_until_idle();
    }
}

pub fn target(op: TargetOp) -> CommandByte {
    CommandByte::new(Class::CQ, 1, op.0)
}

pub fn dma(op: DmaOp) -> CommandByte {
    CommandByte::new(Class::DMA, 1, op.0)
}

pub fn counter(op: CtOp, ct: u16) -> CtCommand {
    CtCommand {
        command: CommandByte::new(Class::CT, 1, op.0),
        ct,
        ..CtCommand::default()
    }
}

pub fn padded(command: &[u8], bytes: usize) -> Vec<u8> {
    let mut padded = command.to_vec();
    padded.resize(bytes, 0);
    padded
}

/// An entry of the priority list of [`PORTAL`] that takes puts from anybody.
pub fn entry(buffer_id: u16, start: u64, length: u64) -> TargetCommand {
    TargetCommand {
        command: target(TargetOp::APPEND),
        ptl_list: List::PRIORITY,
        ptlte_index: PORTAL,
        flags: TargetFlags::OP_PUT,
        buffer_id,
        lac: LAC,
        start,
        length,
        match_id: MatchId::ANY,
        ..TargetCommand::default()
    }
}

pub fn unlink(list: List, buffer_id: u16) -> TargetCommand {
    TargetCommand {
        command: target(TargetOp::UNLINK),
        ptl_list: list,
        ptlte_index: PORTAL,
        buffer_id,
        ..TargetCommand::default()
    }
}

pub fn search(op: TargetOp, buffer_id: u16, match_bits: u64) -> TargetCommand {
    TargetCommand {
        command: target(op),
        ptl_list: List::UNEXPECTED,
        ptlte_index: PORTAL,
        buffer_id,
        match_id: MatchId::ANY,
        match_bits,
        length: 0xffff_ffff,
        ..TargetCommand::default()
    }
}

/// A DMA command to portal index 0 of PID 0 of a NIC.
pub fn message(op: DmaOp, nid: u32, local_addr: u64, len: u32) -> FullDma {
    let (dfa, index_ext) = FabricAddress::unicast(nid, 0, 0, 9);
    FullDma {
        command: dma(op),
        index_ext,
        lac: LAC,
        flags: DmaFlags::EVENT_SEND_DISABLE,
        dfa,
        local_addr,
        request_len: len,
        eq: EQ,
        initiator: MatchId::new(0, nid, 9),
        user_ptr: 0xfeed,
        ..FullDma::default()
    }
}

pub fn put(len: u32) -> FullDma {
    message(DmaOp::PUT, NID, BUFFER, len)
}

pub fn get(len: u32) -> FullDma {
    message(DmaOp::GET, NID, BUFFER, len)
}

/// An immediate command of the smallest size that holds head and payload.
pub fn immediate(op: DmaOp, head: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut command = [head, payload].concat();
    let len = command.len();
    let least = if op == DmaOp::SMALL_MESSAGE { 64 } else { 32 };
    let bytes = len.next_power_of_two().max(least);
    command.resize(bytes, 0);
    command[0] = CommandByte::new(Class::IDC, u8::try_from(bytes.ilog2() - 5).unwrap(), op.0).0;
    command[1] = u8::try_from(len).unwrap();
    command
}

pub fn idc_put(payload: &[u8]) -> Vec<u8> {
    let (dfa, _) = FabricAddress::unicast(NID, 0, 0, 9);
    let head = IdcHeader {
        dfa,
        ..IdcHeader::default()
    };
    immediate(DmaOp::PUT, &head.encode(), payload)
}

pub fn idc_message(match_bits: u64, payload: &[u8]) -> Vec<u8> {
    let (dfa, _) = FabricAddress::unicast(NID, 0, 0, 9);
    let head = IdcMessage {
        dfa,
        match_bits,
        header_data: 0xdada,
        user_ptr: 0xbeef,
        ..IdcMessage::default()
    };
    immediate(DmaOp::SMALL_MESSAGE, &head.encode(), payload)
}

pub fn c_state(flags: DmaFlags) -> CState {
    CState {
        command: CommandByte::new(Class::IDC, 0, DmaOp::CSTATE.0),
        length: 32,
        write_lac: LAC,
        flags,
        initiator: MatchId::new(0, NID, 9),
        user_ptr: 0xcafe,
        eq: EQ,
        ..CState::default()
    }
}

/// An entry of the overflow list that takes what nobody asked for.
pub fn overflow(buffer_id: u16, start: u64, length: u64) -> TargetCommand {
    TargetCommand {
        ptl_list: List::OVERFLOW,
        flags: TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL | TargetFlags::NO_TRUNCATE,
        ignore_bits: u64::MAX,
        ..entry(buffer_id, start, length)
    }
}

/// Changes of a command.
pub trait With {
    #[must_use]
    fn with_match_bits(self, match_bits: u64) -> Self;
}

impl With for TargetCommand {
    fn with_match_bits(self, match_bits: u64) -> Self {
        Self { match_bits, ..self }
    }
}

impl With for FullDma {
    fn with_match_bits(self, match_bits: u64) -> Self {
        Self { match_bits, ..self }
    }
}
