//! An engine that a program puts to: what the data path costs without a front end.

use std::sync::{Arc, Mutex, PoisonError};

use cxi_engine::{
    ClientMemory, CommandPages, CommunicationProfile, Engine, EntryPool, Fabric, MemoryFault,
    Portal, PortalOptions, Region, Settings, TargetQueue, TransmitQueue, UpdatePolicy,
};
use cxi_hw::{
    Class, CommandByte, DmaFlags, DmaOp, FabricAddress, FullDma, List, MatchId, PtlteState,
    SetState, TargetCommand, TargetFlags, TargetOp, command_ring,
};

const VNI: u16 = 1024;
const RGID: u16 = 1;
const TRANSMIT: u16 = 0;
const TARGET: u16 = 1024;
const PORTAL: u16 = 1;
const PID_BITS: u32 = 9;
const UNITS: u32 = 1024;
/// Bytes that are put from, and behind them those that are put to.
const HALF: usize = 1 << 21;

/// Memory of one process, or a ring.
#[derive(Clone, Debug)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn new(len: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![0; len])))
    }

    fn with<T>(
        &self,
        at: usize,
        len: usize,
        use_part: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T, MemoryFault> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let part = bytes.get_mut(at..at + len).ok_or(MemoryFault)?;
        Ok(use_part(part))
    }
}

impl ClientMemory for Bytes {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let at = usize::try_from(va).map_err(|_| MemoryFault)?;
        self.with(at, into.len(), |part| into.copy_from_slice(part))
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        parts.iter().try_for_each(|(va, from)| {
            let at = usize::try_from(*va).map_err(|_| MemoryFault)?;
            self.with(at, from.len(), |part| part.copy_from_slice(from))
        })
    }
}

impl CommandPages for Bytes {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.with(offset, into.len(), |part| into.copy_from_slice(part))
    }

    fn write_status(&self, status: u64) {
        let _ = self.with(0, 8, |part| part.copy_from_slice(&status.to_le_bytes()));
    }
}

/// A program that puts the same bytes again and again, without events.
#[derive(Debug)]
pub struct Program {
    engine: Engine,
    memory: Arc<dyn ClientMemory>,
    regions: u32,
    ring: Bytes,
    slot: u32,
    put: [u8; 64],
}

impl Program {
    /// One that puts bytes to a PtlTE whose list has a number of entries, of which the last one
    /// takes them; without matching if there is one only.
    #[must_use]
    pub fn new(bytes: u32, entries: u16) -> Self {
        Self::with(bytes, entries, |_| 0)
    }

    /// The same where each entry ignores other bits, so that the list has to be walked.
    #[must_use]
    pub fn with_wildcards(bytes: u32, entries: u16) -> Self {
        Self::with(bytes, entries, |entry| (u64::from(entry) + 1) << 32)
    }

    fn with(bytes: u32, entries: u16, ignored: fn(u16) -> u64) -> Self {
        let mut engine = Engine::new(Settings::default(), Fabric::new());
        let profile = CommunicationProfile {
            vni: VNI,
            traffic_class: 0,
            high_rate: false,
        };
        engine.set_profile(RGID, 0, Some(profile));
        engine.add_receive_profile(1, VNI..=VNI);
        let memory: Arc<dyn ClientMemory> = Arc::new(Bytes::new(2 * HALF));
        engine.add_region(0, region(&memory, 0));
        let options = if entries > 1 {
            PortalOptions::IS_MATCHING
        } else {
            PortalOptions::empty()
        };
        let portal = Portal {
            rgid: RGID,
            eq: 0,
            options,
            pool: EntryPool::default(),
        };
        engine.add_portal(PORTAL, portal);
        engine.map_portal(1, 0, 0, PORTAL);
        let ring = Bytes::new(UNITS as usize * 64);
        let queue = TransmitQueue {
            rgid: RGID,
            lcid: 0,
            triggered: false,
            eq: 0,
            count: UNITS,
            policy: UpdatePolicy::WhenEmpty,
            pages: Box::new(ring.clone()),
            tle_pool: 0,
        };
        engine.add_transmit_queue(TRANSMIT, queue);
        expose(&mut engine, entries, ignored);
        Self {
            engine,
            memory,
            regions: 1,
            ring,
            slot: command_ring::FIRST_SLOT,
            put: put(bytes, u64::from(entries) - 1),
        }
    }

    /// The same with that many regions, one behind the other.
    #[must_use]
    pub fn with_regions(mut self, count: u32) -> Self {
        while self.regions < count {
            self.add_region();
        }
        self
    }

    fn add_region(&mut self) {
        let region = region(&self.memory, self.regions);
        self.engine.add_region(self.regions, region);
        self.regions += 1;
    }

    /// Adds one more region, and removes it.
    pub fn add_and_remove_region(&mut self) {
        self.add_region();
        self.regions -= 1;
        self.engine.remove_region(self.regions);
    }

    /// Puts once.
    pub fn put(&mut self) {
        submit(
            &mut self.engine,
            TRANSMIT,
            &self.ring,
            &mut self.slot,
            &self.put,
        );
    }
}

impl Drop for Program {
    /// A measurement of puts that were refused is none.
    fn drop(&mut self) {
        let refused = self.engine.telemetry().refusals.total();
        assert!(
            refused == 0 || std::thread::panicking(),
            "a put was refused"
        );
    }
}

/// One of the regions of the program's memory.
fn region(memory: &Arc<dyn ClientMemory>, number: u32) -> Region {
    let len = 2 * HALF as u64;
    Region {
        rgid: RGID,
        lac: 0,
        iova: u64::from(number) * len,
        len,
        va: 0,
        readable: true,
        writable: true,
        memory: Arc::clone(memory),
    }
}

/// Enables the PtlTE and appends its entries.
fn expose(engine: &mut Engine, entries: u16, ignored: fn(u16) -> u64) {
    let ring = Bytes::new(UNITS as usize * 64);
    let queue = TargetQueue {
        rgid: RGID,
        eq: 0,
        count: UNITS,
        policy: UpdatePolicy::WhenEmpty,
        pages: Box::new(ring.clone()),
    };
    engine.add_target_queue(TARGET, queue);
    let mut slot = command_ring::FIRST_SLOT;
    let state = SetState {
        command: CommandByte::new(Class::CQ, 1, TargetOp::SETSTATE.0),
        ptlte_state: PtlteState::ENABLED,
        ptlte_index: PORTAL,
        drop_count: 0xff_ffff,
        ..SetState::default()
    };
    let mut command = [0; 64];
    command[..SetState::BYTES].copy_from_slice(&state.encode());
    submit(engine, TARGET, &ring, &mut slot, &command);
    for entry in 0..entries {
        let append = TargetCommand {
            command: CommandByte::new(Class::CQ, 1, TargetOp::APPEND.0),
            ptl_list: List::PRIORITY,
            ptlte_index: PORTAL,
            flags: TargetFlags::OP_PUT | TargetFlags::EVENT_COMM_DISABLE,
            buffer_id: entry,
            start: HALF as u64,
            length: HALF as u64,
            match_id: MatchId::ANY,
            match_bits: entry.into(),
            ignore_bits: ignored(entry),
            ..TargetCommand::default()
        };
        submit(engine, TARGET, &ring, &mut slot, &append.encode());
    }
}

fn put(bytes: u32, match_bits: u64) -> [u8; 64] {
    let (dfa, index_ext) = FabricAddress::unicast(Settings::default().nid, 0, 0, PID_BITS);
    let command = FullDma {
        command: CommandByte::new(Class::DMA, 1, DmaOp::PUT.0),
        index_ext,
        flags: DmaFlags::EVENT_SEND_DISABLE | DmaFlags::EVENT_SUCCESS_DISABLE,
        dfa,
        request_len: bytes,
        match_bits,
        ..FullDma::default()
    };
    command.encode()
}

/// Writes a command, rings and runs the engine.
fn submit(engine: &mut Engine, queue: u16, ring: &Bytes, slot: &mut u32, command: &[u8; 64]) {
    let at = *slot as usize * 32;
    let stored = ring.with(at, command.len(), |part| part.copy_from_slice(command));
    stored.expect("the command lies within the ring");
    *slot += command_ring::UNIT_SLOTS;
    if *slot >= UNITS * command_ring::UNIT_SLOTS {
        *slot = command_ring::FIRST_SLOT;
    }
    engine.ring_queue(queue, u64::from(*slot / command_ring::UNIT_SLOTS));
    engine.run_until_idle();
}
