//! A client of the engine for tests: it writes commands and reads events as a program does.

// Each test uses a part.
#![allow(dead_code, unreachable_pub, clippy::must_use_candidate, clippy::missing_panics_doc)]

mod client;
mod command;
pub mod memory;

pub use client::*;
pub use command::*;

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi_engine::{
    ClientMemory, CommandPages, CommandQueue, CommunicationProfile, Counter, CounterDoorbell,
    CounterPages, Engine, EntryPool, EventBuffer, EventFlags, EventQueue, Fabric, PoolLimits,
    Portal, PortalOptions, Region, Settings, Thresholds, Transmit, UpdatePolicy, WriteBack,
};
use cxi_hw::{
    CqStatus, CtOp, CtWriteback, EqState, EventType, FullDma, PtlteState, ReturnCode,
    TargetCommand, TargetFlags,
};

use memory::{Memory, Word};

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
/// Entries that take puts and gets.
pub const PUTS_AND_GETS: TargetFlags = TargetFlags::OP_PUT.union(TargetFlags::OP_GET);
/// Options of a PtlTE that matches with flow control.
pub const FLOW: PortalOptions = PortalOptions::IS_MATCHING.union(PortalOptions::EN_FLOWCTRL);
/// Memory of the process that the NIC may use.
pub const BUFFER: u64 = 0x10_0000;
pub const BUFFER_LEN: usize = 0x40_0000;
/// Address at which a process keeps event rings and write-backs.
const PRIVATE: u64 = 0x1000_0000;

/// Runs NICs until nothing is on the way, with time passing if it must.
pub fn settle(fabric: &Fabric, rigs: &mut [Rig; 2]) {
    for _ in 0..100_000 {
        let worked = rigs.each_mut().map(|rig| rig.engine.run_until_idle());
        if worked != [false; 2] || !fabric.waiting().is_empty() {
            continue;
        }
        if fabric.is_idle() && !rigs.iter().any(|rig| rig.engine.awaits_answers()) {
            return;
        }
        fabric.tick();
    }
    panic!("it never ends");
}

/// A pool of entries without a reservation.
pub const fn up_to(max: u16) -> PoolLimits {
    PoolLimits { reserved: 0, max }
}

/// An event queue without a wait object.
pub fn event_queue(rgid: u16, buffer: EventBuffer) -> EventQueue {
    EventQueue {
        rgid,
        buffer,
        flags: EventFlags::empty(),
        thresholds: Thresholds::default(),
        reserved: 0,
        event_wait: None,
        status_wait: None,
        page: Box::new(Word::default()),
    }
}

/// Memory that the NIC may read and write at its own addresses.
pub fn region(rgid: u16, va: u64, len: u64, memory: Arc<dyn ClientMemory>) -> Region {
    Region { rgid, lac: LAC, iova: va, len, va, readable: true, writable: true, memory }
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

    /// A NIC with other settings, and with a PtlTE without entries.
    pub fn with_settings(settings: Settings, options: PortalOptions) -> Self {
        let mut rig = Self::on(Fabric::new(), NID, settings);
        rig.portal(PORTAL, 0, options);
        rig
    }

    /// A NIC with a PtlTE that matches, without entries.
    pub fn matching() -> Self {
        Self::with_portal(PortalOptions::IS_MATCHING)
    }

    /// A NIC with a PtlTE, without entries.
    pub fn with_portal(options: PortalOptions) -> Self {
        Self::with_settings(Settings::default(), options)
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
        let profile = CommunicationProfile { vni, traffic_class: 0, high_rate: false };
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

    /// Limits the number of entries of the shared pool.
    pub fn limit_entries(&mut self, max: u16) {
        self.engine.set_entry_pool(EntryPool::default(), up_to(max));
    }

    /// Another buffer for an event queue, and where it is.
    pub fn resize(&mut self, number: u16, blocks: u64) -> u64 {
        let len = blocks * 64;
        let va = self.private(usize::try_from(len).unwrap());
        let memory = Arc::clone(&self.memory) as _;
        let buffer = EventBuffer { memory, va, len };
        self.engine.resize_event_queue(number, buffer);
        va
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
        let memory = Arc::clone(&self.memory) as _;
        let queue = EventQueue {
            flags,
            thresholds,
            reserved,
            event_wait: Some(number.into()),
            status_wait: Some(1000 + u64::from(number)),
            page: Box::new(word.clone()),
            ..event_queue(self.rgid, EventBuffer { memory, va, len })
        };
        self.engine.add_event_queue(number, queue);
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
        self.add_tx_at(number, triggered, commands.ring.clone());
        self.queues.insert(number, commands);
    }

    /// A transmit queue whose commands are elsewhere.
    pub fn add_tx_at(&mut self, number: u16, triggered: bool, pages: impl CommandPages + 'static) {
        let transmit = Transmit { lcid: 0, triggered, tle_pool: 0 };
        let queue = CommandQueue {
            transmit: Some(transmit),
            rgid: self.rgid,
            eq: EQ,
            count: 256,
            policy: UpdatePolicy::Always,
            pages: Box::new(pages),
        };
        self.engine.add_queue(number, queue);
    }

    pub fn add_target(&mut self, number: u16) {
        let commands = Commands::new(256);
        self.add_target_at(number, commands.ring.clone());
        self.queues.insert(number, commands);
    }

    pub fn add_target_at(&mut self, number: u16, pages: impl CommandPages + 'static) {
        let queue = CommandQueue {
            transmit: None,
            rgid: self.rgid,
            eq: EQ,
            count: 256,
            policy: UpdatePolicy::WhenEmpty,
            pages: Box::new(pages),
        };
        self.engine.add_queue(number, queue);
    }

    /// Adds a counter, and returns the address to which it writes back.
    pub fn add_ct(&mut self, number: u16) -> u64 {
        self.add_ct_at(number, None)
    }

    pub fn add_ct_at(&mut self, number: u16, page: Option<Box<dyn CounterPages>>) -> u64 {
        let va = self.private(8);
        let memory = Arc::clone(&self.memory) as _;
        let counter = Counter { rgid: self.rgid, write_back: Some(WriteBack { memory, va }), page };
        self.engine.add_counter(number, counter);
        va
    }

    pub fn region(&mut self, number: u32, va: u64, len: usize) {
        self.memory.map(va, len);
        self.region_with(number, va, len, true, true);
    }

    pub fn region_with(&mut self, number: u32, va: u64, len: usize, read: bool, write: bool) {
        let region = Region {
            readable: read,
            writable: write,
            ..region(self.rgid, va, len as u64, Arc::clone(&self.memory) as _)
        };
        self.engine.add_region(number, region);
    }

    /// A PtlTE that is mapped at PID 0 and enabled, its STATE_CHANGE taken.
    pub fn portal(&mut self, number: u16, index: u16, options: PortalOptions) {
        self.portal_disabled(number, index, options);
        self.set_state(number, PtlteState::ENABLED, 0xff_ffff);
        assert_eq!(self.event(TARGET_EQ).kind(), EventType::STATE_CHANGE);
    }

    pub fn portal_disabled(&mut self, number: u16, index: u16, options: PortalOptions) {
        self.portal_at(number, TARGET_EQ, options);
        self.engine.map_portal(1, 0, index, number);
    }

    /// A PtlTE that is not mapped yet.
    pub fn portal_at(&mut self, number: u16, eq: u16, options: PortalOptions) {
        let portal = Portal { rgid: self.rgid, eq, options, pool: EntryPool::default() };
        self.engine.add_portal(number, portal);
    }

    /// Writes commands and rings the doorbell.
    pub fn submit(&mut self, queue: u16, commands: &[&[u8]]) {
        self.store(queue, commands);
        self.engine.run_until_idle();
    }

    /// The same, without running the NIC.
    pub fn store(&mut self, queue: u16, commands: &[&[u8]]) {
        let Some(ring) = self.queues.get_mut(&queue) else { panic!("no queue {queue}") };
        for command in commands {
            ring.push(command);
        }
        self.engine.ring_queue(queue, ring.write_pointer());
    }

    pub fn status(&self, queue: u16) -> CqStatus {
        self.queues[&queue].status()
    }

    pub fn event(&mut self, eq: u16) -> Event {
        self.try_event(eq).unwrap_or_else(|| panic!("no event in queue {eq}"))
    }

    pub fn try_event(&mut self, eq: u16) -> Option<Event> {
        let event = self.readers.get_mut(&eq)?.next(&mut self.engine, eq);
        self.engine.run_until_idle();
        event
    }

    /// All events of a queue, by kind and code.
    pub fn events(&mut self, eq: u16) -> Vec<What> {
        std::iter::from_fn(|| self.try_event(eq).map(|event| event.what())).collect()
    }

    pub fn kinds(&mut self, eq: u16) -> Vec<EventType> {
        self.events(eq).into_iter().map(|event| event.0).collect()
    }

    pub fn codes(&mut self, eq: u16) -> Vec<ReturnCode> {
        self.events(eq).into_iter().map(|event| event.1).collect()
    }

    pub fn set_state(&mut self, number: u16, state: PtlteState, drop_count: u32) {
        self.submit(TGQ, &[&set_state(number, state, drop_count).encode()]);
    }

    /// Unexpected messages of [`PORTAL`].
    pub fn unexpected(&self) -> usize {
        let status = self.engine.portal_status(PORTAL).unwrap();
        status.unexpected.len()
    }

    pub fn append(&mut self, command: &TargetCommand) {
        self.submit(TGQ, &[&command.encode()]);
    }

    /// As [`append`](Self::append), of an entry that is linked.
    pub fn link(&mut self, command: &TargetCommand) {
        self.append(command);
        assert_eq!(self.event(TARGET_EQ).what(), LINK);
    }

    /// The code of the one event that the initiator of a command gets next.
    pub fn outcome(&mut self, command: &FullDma) -> ReturnCode {
        self.put(command);
        self.event(EQ).code()
    }

    pub fn put(&mut self, command: &FullDma) {
        self.submit(TXQ, &[&command.encode()]);
    }

    /// Returns the count of a counter, after a GET.
    pub fn count(&mut self, ct: u16, va: u64) -> (u64, u8) {
        self.memory.put(va, &[0; 8]);
        let command = counter(CtOp::GET, ct);
        self.submit(TXQ, &[&command.encode()]);
        self.written_back(va).unwrap()
    }

    /// Returns the value that a counter has written back, if it has.
    pub fn written_back(&self, va: u64) -> Option<(u64, u8)> {
        let word = CtWriteback::decode(&self.memory.word(va).to_le_bytes());
        word.ct_writeback.then_some((word.ct_success, word.ct_failure))
    }

    pub fn ring_counter(&mut self, ct: u16, doorbell: CounterDoorbell, value: u64) {
        self.engine.ring_counter(ct, doorbell, value);
        self.engine.run_until_idle();
    }
}
