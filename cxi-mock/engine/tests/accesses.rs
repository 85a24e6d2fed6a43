//! Memory that takes its time: its accesses are executed late, in the order of their process, and
//! in any order otherwise.

mod rig;

use std::sync::Arc;

use cxi_engine::{
    ClientMemory, Dma, Effect, EventBuffer, EventFlags, EventQueue, FabricFaults, MemoryFault,
    Thresholds,
};
use cxi_hw::{
    AtomicOp, AtomicType, Class, CommandByte, DmaAtomic, DmaOp, EqState, EventType, FullDma,
    ReturnCode, TargetFlags,
};
use rig::memory::{Memory, Word};
use rig::*;

/// Memory of a process of a user.
#[derive(Debug)]
struct Late(Arc<Memory>, u32);

impl ClientMemory for Late {
    fn owner(&self) -> Option<u32> {
        Some(self.1)
    }

    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.0.read(va, into)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        self.0.write(parts)
    }
}

/// The region of each user's memory, with a different address for each.
fn iova(user: u32) -> u64 {
    0x4000_0000 * u64::from(user)
}

const LEN: usize = 0x40_0000;
/// Where events are.
const EVENTS: u64 = 0x1000;
/// Transmit queues.
const QUEUES: std::ops::Range<u16> = 10..14;

/// A NIC that two users have memory of. Initiators' events go to user 1, targets' events to user 2,
/// and an entry with a user's match bits has all of that user's memory.
struct Users {
    rig: Rig,
    memories: [Arc<Memory>; 2],
}

impl Users {
    fn new() -> Self {
        let mut rig = Rig::matching();
        let memories = [Memory::new(), Memory::new()];
        for (user, eq) in [(1, EQ), (2, TARGET_EQ)] {
            let memory = &memories[user as usize - 1];
            let late: Arc<dyn ClientMemory> = Arc::new(Late(Arc::clone(memory), user));
            memory.map(iova(user), LEN);
            memory.map(EVENTS, 256 * 64);
            let region = region(RGID, iova(user), LEN as u64, Arc::clone(&late));
            rig.engine.add_region(100 + user, region);
            let mut all = TargetFlags::OP_PUT | TargetFlags::OP_GET;
            // Otherwise all that user 1 takes part in would wait for an event of user 2.
            all.set(TargetFlags::EVENT_COMM_DISABLE, user == 1);
            let all = entry(0, iova(user), LEN as u64).with_flags(all);
            rig.append(&all.with_match_bits(user.into()));
            let word = Word::default();
            let queue = EventQueue {
                rgid: RGID,
                buffer: EventBuffer {
                    memory: late,
                    va: EVENTS,
                    len: 256 * 64,
                },
                flags: EventFlags::empty(),
                thresholds: Thresholds::default(),
                reserved: 0,
                event_wait: Some(eq.into()),
                status_wait: None,
                page: Box::new(word.clone()),
            };
            rig.engine.add_event_queue(eq, queue);
            let reader = Reader {
                memory: Arc::clone(memory),
                va: EVENTS,
                blocks: 256,
                read: 1,
                word,
                state: EqState::default(),
            };
            rig.readers.insert(eq, reader);
        }
        rig.engine.take_effects();
        for number in QUEUES {
            rig.add_tx(number, false);
        }
        Self { rig, memories }
    }

    fn memory(&self, user: u32) -> &Memory {
        &self.memories[user as usize - 1]
    }

    fn take(&mut self, user: u32) -> Option<Dma> {
        self.rig.engine.run_until_idle();
        let of_user = |memory: &dyn ClientMemory| memory.owner() == Some(user);
        self.rig.engine.take_dma(of_user)
    }

    /// Executes the accesses of a user.
    fn answer(&mut self, user: u32) -> usize {
        let mut count = 0;
        while let Some(mut dma) = self.take(user) {
            dma.run();
            self.rig.engine.complete_dma(dma);
            count += 1;
        }
        count
    }

    fn answer_all(&mut self) {
        while self.answer(1) + self.answer(2) > 0 {}
    }
}

/// An operation between the memory of two users, at these offsets.
fn between(op: DmaOp, from: (u32, u64), to: (u32, u64), len: u32) -> FullDma {
    message(op, NID, iova(from.0) + from.1, len)
        .with_match_bits(to.0.into())
        .with_offset(to.1)
}

#[test]
fn a_process_that_does_not_answer_stops_no_other() {
    let mut users = Users::new();
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 0x5_0000);
    users.memory(1).put(iova(1), &vec![7; 0x5_0000]);
    users.rig.store(10, &[&put.encode()]);
    // A piece waits for user 2 now. User 1 gets from itself.
    users.answer(1);
    let own = between(DmaOp::GET, (1, 0x10_0000), (1, 0), 4);
    users.rig.store(11, &[&own.encode()]);
    users.answer(1);
    assert_eq!(users.memory(1).bytes(iova(1) + 0x10_0000, 4), [7; 4]);
    assert_eq!(users.rig.events(EQ), [REPLY]);
    assert!(users.rig.engine.has_dma() && !users.rig.engine.has_work());
    users.answer_all();
    assert!(!users.rig.engine.has_accesses());
    assert!(users.memory(2).bytes(iova(2), 0x5_0000) == vec![7; 0x5_0000]);
    let put = users.rig.events(TARGET_EQ);
    assert_eq!(put, [PUT]);
    users.answer_all();
    assert_eq!(users.rig.events(EQ), [ACK]);
}

/// One access of a process at a time, and what is freed ends at last.
#[test]
fn freed_memory_is_let_go_of() {
    let mut users = Users::new();
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 8);
    for queue in [10, 11] {
        users.rig.store(queue, &[&put.encode()]);
    }
    users.answer(1);
    let mut running = users.take(2).unwrap();
    assert!(users.take(2).is_none());
    assert!(users.rig.engine.take_releases().is_empty());
    users.rig.engine.remove_region(102);
    let releases = users.rig.engine.take_releases();
    assert!(releases.len() == 1 && !users.rig.engine.is_settled(&releases[0]));
    users.rig.engine.abandon(&releases[0]);
    assert!(users.rig.engine.is_settled(&releases[0]));
    users.answer_all();
    let failed = ack(ReturnCode::NO_TRANSLATION);
    assert_eq!(users.rig.events(EQ), [failed, failed]);
    // It is late, and nobody waits for it.
    running.run();
    users.rig.engine.complete_dma(running);
    users.answer_all();
    assert_eq!(users.rig.events(EQ), []);
    // What can be executed is executed.
    users.rig.store(12, &[&put.encode()]);
    users.answer(1);
    users.rig.engine.remove_event_queue(EQ);
    let releases = users.rig.engine.take_releases();
    assert!(releases.is_empty() || users.answer(1) > 0);
    assert!(releases.iter().all(|it| users.rig.engine.is_settled(it)));
}

/// Rule 9.7: the answer and the wake-up follow the event.
#[test]
fn rule_9_7_answers_and_wakes_follow_events() {
    let mut users = Users::new();
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 0);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    assert_eq!(users.rig.events(EQ), []);
    assert_eq!(users.rig.engine.take_effects(), []);
    let mut event = users.take(2).unwrap();
    event.run();
    assert_eq!(
        users.rig.readers[&TARGET_EQ].peek().unwrap().kind(),
        EventType::PUT
    );
    assert_eq!(users.rig.engine.take_effects(), []);
    users.rig.engine.complete_dma(event);
    users.answer(1);
    let wakes = users.rig.engine.take_effects();
    assert_eq!(wakes, [TARGET_EQ, EQ].map(|eq| Effect::Wake(eq.into())));
    assert_eq!(users.rig.events(EQ), [ACK]);
}

/// A request that comes again while it is executed is not executed again.
#[test]
fn repeated_requests_count_once() {
    let mut users = Users::new();
    users.rig.fabric.set_faults(FabricFaults {
        duplication: u16::MAX,
        ..FabricFaults::default()
    });
    let sum = DmaAtomic {
        command: CommandByte::new(Class::DMA, 2, DmaOp::ATOMIC.0),
        atomic_op: AtomicOp::SUM,
        atomic_type: AtomicType::UINT64_T,
        ..DmaAtomic::decode(
            &padded(&between(DmaOp::ATOMIC, (1, 0), (2, 8), 8).encode(), 96)
                .try_into()
                .unwrap(),
        )
    };
    users.memory(1).put(iova(1), &5_u64.to_le_bytes());
    users.rig.store(10, &[&padded(&sum.encode(), 128)]);
    users.answer_all();
    assert_eq!(users.memory(2).word(iova(2) + 8), 5);
    assert_eq!(users.rig.events(EQ), [ACK]);
}

/// Operations of the test below.
const TOTAL: u8 = 24;

/// Data is in memory before its event, whatever the order in which processes answer.
#[test]
fn data_comes_before_its_event() {
    let mut random = 1_u64;
    let mut next = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..40 {
        let mut users = Users::new();
        // Of each operation: what it is, and the offset, length and byte of memory of its own.
        let mut issued: Vec<(DmaOp, u64, usize, u8)> = Vec::new();
        let mut ended = 0;
        let mut running: [Option<(Dma, bool)>; 2] = [None, None];
        for round in 0.. {
            assert!(round < 1_000_000, "it never ends");
            if issued.len() < TOTAL.into() && next(8) == 0 {
                let at = u8::try_from(issued.len()).unwrap();
                // A put from user 1 to user 2, or a get from user 2 to user 1.
                let (op, from) = [(DmaOp::PUT, 1), (DmaOp::GET, 2)][usize::from(next(2) == 0)];
                let len = [1, 100, 5000, 0x2_0001][usize::try_from(next(4)).unwrap()];
                let (offset, byte) = (u64::from(at) * 0x2_1000, at + 1);
                users
                    .memory(from)
                    .put(iova(from) + offset, &vec![byte; len]);
                let command = FullDma {
                    user_ptr: at.into(),
                    header_data: at.into(),
                    ..between(op, (1, offset), (2, offset), u32::try_from(len).unwrap())
                };
                let queue = QUEUES.start + u16::from(at) % 4;
                users.rig.store(queue, &[&command.encode()]);
                issued.push((op, offset, len, byte));
            }
            // Accesses are taken, executed and ended in steps of their own.
            let (slot, user) = [(0, 1), (1, 2)][usize::from(next(2) == 0)];
            match running[slot].take() {
                None => running[slot] = users.take(user).map(|dma| (dma, false)),
                Some((mut dma, false)) => {
                    dma.run();
                    running[slot] = Some((dma, true));
                }
                Some((dma, true)) => users.rig.engine.complete_dma(dma),
            }
            for eq in [TARGET_EQ, EQ] {
                while let Some(event) = users.rig.try_event(eq) {
                    let at = if eq == EQ {
                        ended += 1;
                        event.initiator().user_ptr
                    } else {
                        event.short().header_data
                    };
                    let (op, offset, len, byte) = issued[usize::try_from(at).unwrap()];
                    assert_eq!(event.code(), ReturnCode::OK);
                    let user = if op == DmaOp::PUT { 2 } else { 1 };
                    // The event of a get at the target says nothing of the initiator's memory.
                    if eq == EQ || op == DmaOp::PUT {
                        let there = users.memory(user).bytes(iova(user) + offset, len);
                        assert!(there == vec![byte; len], "{at} {op:?} {offset:#x} {len}");
                    }
                }
            }
            if ended == TOTAL {
                break;
            }
        }
        assert!(!users.rig.engine.has_work());
    }
}
