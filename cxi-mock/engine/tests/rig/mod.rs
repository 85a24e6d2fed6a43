//! A client of the engine for tests: it writes commands and reads events as a program does.

// Each test uses a part.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::must_use_candidate,
    clippy::missing_panics_doc
)]

mod client;
mod command;
pub mod memory;

pub use client::*;
pub use command::*;

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi_engine::{
    CommunicationProfile, Counter, CounterDoorbell, Engine, EntryPool, EventBuffer, EventFlags,
    EventQueue, Fabric, PoolLimits, Portal, PortalOptions, Region, Settings, TargetQueue,
    Thresholds, TransmitQueue, UpdatePolicy, WriteBack,
};
use cxi_hw::{
    CtOp, CtWriteback, EqState, EventType, FullDma, PtlteState, ReturnCode, SetState,
    TargetCommand, TargetOp,
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
/// Options of a PtlTE that matches with flow control.
pub const FLOW: PortalOptions = PortalOptions::IS_MATCHING.union(PortalOptions::EN_FLOWCTRL);
/// Memory of the process that the NIC may use.
pub const BUFFER: u64 = 0x10_0000;
pub const BUFFER_LEN: usize = 0x40_0000;
/// Where a process keeps event rings and write-backs.
const PRIVATE: u64 = 0x1000_0000;

/// A pool of entries without a reservation.
pub const fn up_to(max: u16) -> PoolLimits {
    PoolLimits { reserved: 0, max }
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

    /// A NIC with a PtlTE that matches, without entries.
    pub fn matching() -> Self {
        Self::with_portal(PortalOptions::IS_MATCHING)
    }

    /// A NIC with a PtlTE, without entries.
    pub fn with_portal(options: PortalOptions) -> Self {
        let mut rig = Self::new();
        rig.portal(PORTAL, 0, options);
        rig
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
        let command = SetState {
            command: target(TargetOp::SETSTATE),
            ptlte_state: state,
            ptlte_index: number,
            drop_count,
            ..SetState::default()
        };
        self.submit(TGQ, &[&command.encode()]);
    }

    /// Unexpected messages of [`PORTAL`].
    pub fn unexpected(&self) -> usize {
        let status = self.engine.portal_status(PORTAL).unwrap();
        status.unexpected.len()
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
        self.submit(TXQ, &[&command.encode()]);
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
