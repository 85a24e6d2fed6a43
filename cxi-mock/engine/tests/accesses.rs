//! Memory that takes its time: its accesses are executed late, in the order of their process, and
//! in any order otherwise.

mod rig;

use std::sync::Arc;

use cxi_engine::{
    ClientMemory, CounterDoorbell, Dma, Effect, EntryPool, EventBuffer, EventFlags, EventQueue,
    FabricFaults, MemoryFault, PortalOptions, Region, Thresholds, WriteBack,
};
use cxi_hw::{
    AtomicOp, AtomicType, Class, CommandByte, CtOp, DmaAtomic, DmaOp, EqState, EqStatus, EventType,
    FullDma, List, ReturnCode, TargetCommand, TargetFlags, TargetOp,
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
/// Address of the events.
const EVENTS: u64 = 0x1000;
/// Transmit queues.
const QUEUES: std::ops::Range<u16> = 10..14;

/// A NIC that two users have memory of. Initiators' events go to user 1, targets' events to user 2,
/// and an entry with a user's match bits has all of that user's memory.
struct Users {
    rig: Rig,
    memories: [Arc<Memory>; 2],
    late: [Arc<dyn ClientMemory>; 2],
}

impl Users {
    fn new() -> Self {
        let mut rig = Rig::matching();
        let memories = [Memory::new(), Memory::new()];
        let late = |user| -> Arc<dyn ClientMemory> {
            Arc::new(Late(Arc::clone(&memories[user as usize - 1]), user))
        };
        let late = [late(1), late(2)];
        for (user, eq) in [(1, EQ), (2, TARGET_EQ)] {
            let memory = &memories[user as usize - 1];
            let late = Arc::clone(&late[user as usize - 1]);
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
                buffer: EventBuffer { memory: late, va: EVENTS, len: 256 * 64 },
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
        Self { rig, memories, late }
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
    message(op, NID, iova(from.0) + from.1, len).with_match_bits(to.0.into()).with_offset(to.1)
}

/// An atomic that adds what user 1 has at its start.
fn sum(to: (u32, u64)) -> DmaAtomic {
    let put = padded(&between(DmaOp::ATOMIC, (1, 0), to, 8).encode(), 96);
    DmaAtomic {
        command: CommandByte::new(Class::DMA, 2, DmaOp::ATOMIC.0),
        atomic_op: AtomicOp::SUM,
        atomic_type: AtomicType::UINT64_T,
        ..DmaAtomic::decode(&put.try_into().unwrap())
    }
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
    assert!(releases.len() == 1 && !users.rig.engine.is_settled(releases[0]));
    users.rig.append(&entry(3, iova(2), 64));
    for _ in 0..11 {
        users.rig.engine.expire_accesses();
    }
    assert!(users.rig.engine.is_settled(releases[0]));
    users.answer_all();
    let failed = ack(ReturnCode::NO_TRANSLATION);
    assert_eq!(users.rig.events(EQ), [failed, failed]);
    // What comes next fails at once.
    users.rig.store(12, &[&put.encode()]);
    users.answer(1);
    assert_eq!(users.rig.events(EQ), [failed]);
    // It is late, and nobody waits for it. Events have waited for it.
    assert_eq!(users.rig.events(TARGET_EQ), []);
    running.run();
    users.rig.engine.complete_dma(running);
    users.answer_all();
    let refused = (EventType::PUT, ReturnCode::NO_TRANSLATION);
    assert_eq!(users.rig.events(TARGET_EQ), [LINK, refused, refused, refused]);
    assert_eq!(users.rig.events(EQ), []);
    // What can be executed is executed.
    users.rig.store(12, &[&put.encode()]);
    users.answer(1);
    users.rig.engine.remove_event_queue(EQ);
    let releases = users.rig.engine.take_releases();
    assert!(releases.is_empty() || users.answer(1) > 0);
    assert!(releases.iter().all(|it| users.rig.engine.is_settled(*it)));
}

/// Nothing is stored to a ring that was freed, even if its process answers late.
#[test]
fn freed_rings_are_left_alone() {
    let mut users = Users::new();
    for _ in 0..2 {
        users.rig.append(&entry(3, iova(2), 64));
    }
    let mut running = users.take(2).unwrap();
    running.run();
    users.rig.append(&entry(3, iova(2), 64));
    users.rig.engine.remove_event_queue(TARGET_EQ);
    users.rig.engine.complete_dma(running);
    users.answer_all();
    assert_eq!(users.rig.events(TARGET_EQ), [LINK, LINK]);
}

/// Nothing is written back to where a counter was written back before.
#[test]
fn former_write_backs_are_left_alone() {
    let mut users = Users::new();
    let memory = Arc::new(Late(Arc::clone(&users.memories[1]), 2));
    let va = iova(2);
    let write_back = WriteBack { memory, va };
    users.rig.engine.set_write_back(CT, Some(write_back));
    users.rig.ring_counter(CT, CounterDoorbell::AddFailure, 1);
    users.rig.engine.set_write_back(CT, None);
    let releases = users.rig.engine.take_releases();
    assert!(releases.len() == 1 && !users.rig.engine.is_settled(releases[0]));
    users.answer_all();
    assert!(users.rig.engine.is_settled(releases[0]));
    assert_eq!(users.memory(2).word(va), 0);
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
    assert_eq!(users.rig.readers[&TARGET_EQ].peek().unwrap().kind(), EventType::PUT);
    assert_eq!(users.rig.engine.take_effects(), []);
    users.rig.engine.complete_dma(event);
    users.answer(1);
    let wakes = users.rig.engine.take_effects();
    assert_eq!(wakes, [TARGET_EQ, EQ].map(|eq| Effect::Wake(eq.into())));
    assert_eq!(users.rig.events(EQ), [ACK]);
}

/// Otherwise a source could reuse the ID of a rendezvous before the target has its REPLY.
#[test]
fn the_event_of_a_get_follows_its_answer() {
    let mut users = Users::new();
    let get = between(DmaOp::GET, (1, 0), (2, 0), 4);
    users.rig.store(10, &[&get.encode()]);
    users.answer(1);
    let mut read = users.take(2).unwrap();
    read.run();
    users.rig.engine.complete_dma(read);
    users.answer(1);
    assert_eq!(users.rig.events(EQ), [REPLY]);
    assert_eq!(users.rig.events(TARGET_EQ), []);
    users.answer_all();
    assert_eq!(users.rig.events(TARGET_EQ), [GET]);
}

/// A request that comes again while it is executed is not executed again.
#[test]
fn repeated_requests_count_once() {
    let mut users = Users::new();
    users.rig.fabric.set_faults(FabricFaults { duplication: u16::MAX, ..FabricFaults::default() });
    users.memory(1).put(iova(1), &5_u64.to_le_bytes());
    users.rig.store(10, &[&padded(&sum((2, 8)).encode(), 128)]);
    users.answer_all();
    assert_eq!(users.memory(2).word(iova(2) + 8), 5);
    assert_eq!(users.rig.events(EQ), [ACK]);
}

/// Operations of the test below.
const TOTAL: u8 = 24;

/// Data is in memory before its event, whatever the order in which processes answer.
#[test]
fn data_comes_before_its_event() {
    let mut random = cxi_engine::SplitMix64::new(1);
    let mut next = move |below: u64| random.draw() % below;
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
                users.memory(from).put(iova(from) + offset, &vec![byte; len]);
                let command = FullDma {
                    user_ptr: at.into(),
                    header_data: at.into(),
                    ..between(op, (1, offset), (2, offset), u32::try_from(len).unwrap())
                };
                let queue = QUEUES.start + u16::from(at) % 4;
                users.rig.store(queue, &[&command.encode()]);
                issued.push((op, offset, len, byte));
            }
            // Taking, executing and ending an access are separate steps.
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

/// User 2 has a buffer for unexpected messages.
fn with_overflow() -> Users {
    let mut users = Users::new();
    users.rig.append(&overflow(5, iova(2) + 0x20_0000, 0x10_0000));
    users.answer_all();
    users.rig.events(TARGET_EQ);
    users
}

/// Rule 8.3: an entry that is appended while the data of an unexpected message is on the way finds
/// it.
#[test]
fn a_message_under_way_is_found() {
    let mut users = with_overflow();
    let entries = users.rig.engine.entries_in_use(EntryPool::default());
    let put = between(DmaOp::PUT, (1, 0), (7, 0), 8);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    let expected = entry(6, iova(2), 64).with_flags(flags).with_match_bits(7);
    users.rig.append(&expected);
    users.answer_all();
    assert_eq!(users.rig.events(TARGET_EQ), [PUT_OVERFLOW, PUT]);
    assert_eq!(users.rig.unexpected(), 0);
    // Without its data, there is no message.
    users.memory(2).unmap(iova(2));
    users.rig.store(11, &[&put.encode()]);
    users.answer(1);
    assert_eq!(users.rig.unexpected(), 1);
    users.answer_all();
    assert_eq!(users.rig.unexpected(), 0);
    assert_eq!(users.rig.events(TARGET_EQ), [(EventType::PUT, ReturnCode::NO_TRANSLATION)]);
    let in_use = users.rig.engine.entries_in_use(EntryPool::default());
    assert_eq!(in_use, entries);
}

/// Rule 8.12: UNLINK says that nothing more comes.
#[test]
fn rule_8_12_unlink_follows_messages_under_way() {
    let mut users = Users::new();
    users.rig.append(&entry(9, iova(2), 64).with_match_bits(9));
    users.answer_all();
    users.rig.events(TARGET_EQ);
    let put = between(DmaOp::PUT, (1, 0), (9, 0), 8);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    for _ in 0..2 {
        users.rig.append(&unlink(List::PRIORITY, 9));
    }
    // Other entries do not wait.
    users.rig.append(&unlink(List::PRIORITY, 8));
    users.answer_all();
    let none = (EventType::UNLINK, ReturnCode::ENTRY_NOT_FOUND);
    assert_eq!(users.rig.events(TARGET_EQ), [none, PUT, UNLINK, none]);
}

/// A rendezvous put of 64 bytes to user 2, of which eight are on the way.
fn rendezvous_under_way() -> Users {
    let mut users = Users::new();
    users.rig.append(&entry(9, iova(2), 64).with_match_bits(9));
    users.answer_all();
    users.rig.events(TARGET_EQ);
    let put = between(DmaOp::RENDEZVOUS_PUT, (1, 0), (9, 0), 64).with_eager(8);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    users
}

/// Rule 8.12: RENDEZVOUS is an event of the message as well.
#[test]
fn rule_8_12_unlink_follows_rendezvous() {
    let mut users = rendezvous_under_way();
    users.rig.append(&unlink(List::PRIORITY, 9));
    users.answer_all();
    let nowhere = (EventType::REPLY, ReturnCode::PTLTE_NOT_FOUND);
    let events = users.rig.events(TARGET_EQ);
    assert_eq!(events, [PUT, RENDEZVOUS, UNLINK, nowhere]);
}

/// Messages from the same page have a region each, of which the first to end takes only its own.
#[test]
fn memory_that_another_region_has_stays() {
    for (others, code) in [(1, ReturnCode::OK), (0, ReturnCode::SRC_ERROR)] {
        let mut users = Users::new();
        for number in 200..200 + others {
            let own = region(RGID, iova(1), 1 << 20, Arc::clone(&users.late[0]));
            users.rig.engine.add_region(number, own);
        }
        let put = between(DmaOp::PUT, (1, 0), (2, 0), 1 << 20);
        users.rig.store(10, &[&put.encode()]);
        users.rig.engine.run_until_idle();
        users.rig.engine.remove_region(101);
        users.answer_all();
        assert_eq!(users.rig.events(TARGET_EQ), [(EventType::PUT, code)]);
    }
}

/// The get of an unexpected rendezvous put ends it at its source, so the first bytes precede it.
#[test]
fn rule_10_5_a_claimed_rendezvous_gets_the_rest_last() {
    let mut users = with_overflow();
    let put = between(DmaOp::RENDEZVOUS_PUT, (1, 0), (9, 0), 64).with_eager(8);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    let flags = TargetFlags::OP_PUT | TargetFlags::USE_ONCE;
    users.rig.append(&entry(9, iova(2), 64).with_match_bits(9).with_flags(flags));
    let offloaded = |users: &Users| users.rig.engine.telemetry().elements[0].offloaded;
    assert_eq!(offloaded(&users), 0);
    users.answer_all();
    assert_eq!(offloaded(&users), 1);
    let nowhere = (EventType::REPLY, ReturnCode::PTLTE_NOT_FOUND);
    let events = users.rig.events(TARGET_EQ);
    assert_eq!(events, [PUT_OVERFLOW, PUT, RENDEZVOUS, nowhere]);
}

/// A PtlTE hears nothing of a message to another that had its number before.
#[test]
fn a_freed_portal_starts_no_rendezvous() {
    let mut users = rendezvous_under_way();
    users.rig.portal_at(PORTAL, TARGET_EQ, PortalOptions::IS_MATCHING);
    users.answer_all();
    assert_eq!(users.rig.events(EQ), [ACK]);
    assert_eq!(users.rig.events(TARGET_EQ), []);
    assert_eq!(users.rig.engine.telemetry().elements[0].offloaded, 0);
}

/// Accesses that wait for a process that does not answer are limited, and their memory too.
#[test]
fn a_process_that_does_not_answer_holds_little() {
    let mut users = Users::new();
    // Without events at the target, which answers would wait for.
    let flags = TargetFlags::OP_PUT | TargetFlags::EVENT_COMM_DISABLE;
    let silent = entry(20, iova(2), LEN as u64).with_flags(flags);
    users.rig.append(&silent.with_match_bits(20));
    users.answer_all();
    let put = between(DmaOp::PUT, (1, 0), (20, 0), 0x2_0000);
    for _ in 0..600 {
        users.rig.submit(TRIGQ, &[&trig_dma(0, &put.encode())]);
        users.answer(1);
    }
    users.answer(1);
    let refused = users.rig.codes(EQ);
    assert!((80..100).contains(&refused.len()), "{}", refused.len());
    assert!(refused.iter().all(|it| *it == ReturnCode::NO_TRANSLATION));
    users.answer_all();
    let rest = std::iter::repeat_with(|| {
        users.answer_all();
        users.rig.codes(EQ)
    });
    let rest: Vec<_> = rest.take_while(|codes| !codes.is_empty()).collect();
    assert!(rest.iter().flatten().any(|it| *it == ReturnCode::OK));
    assert!(!users.rig.engine.has_accesses());
}

/// Nothing is sent for a queue that was freed while its data was read.
#[test]
fn freed_queues_send_nothing() {
    let mut users = Users::new();
    users.memory(1).put(iova(1), &[7; 8]);
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 8);
    users.rig.store(10, &[&put.encode()]);
    let mut read = users.take(1).unwrap();
    users.rig.engine.remove_queue(10);
    read.run();
    users.rig.engine.complete_dma(read);
    users.answer_all();
    assert_eq!(users.rig.events(TARGET_EQ), []);
    assert_eq!(users.memory(2).bytes(iova(2), 8), [0; 8]);
}

/// The end of a triggered command is not reported after its queue was freed, and is no end of a
/// command of the queue that has the number by then.
#[test]
fn freed_queues_hear_nothing_of_triggered_commands() {
    let mut users = Users::new();
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 8);
    users.rig.submit(TRIGQ, &[&trig_dma(0, &put.encode())]);
    users.answer(1);
    users.rig.add_tx(TRIGQ, true);
    let waits = trig(CtOp::TRIG_INC, CT, 9);
    users.rig.submit(TRIGQ, &[&waits.encode()]);
    users.answer_all();
    assert_eq!(users.rig.events(TARGET_EQ), [PUT]);
    assert_eq!(users.rig.events(EQ), []);
    assert_eq!(users.rig.engine.commands_in_flight(TRIGQ), 1);
}

/// A request that was given up and is answered late does not make a later one new again.
#[test]
fn late_answers_leave_later_requests_alone() {
    let mut users = Users::new();
    users.rig.fabric.set_faults(FabricFaults { duplication: 1, ..FabricFaults::default() });
    let pass = |users: &mut Users, ticks| {
        for _ in 0..ticks {
            users.rig.fabric.tick();
            users.rig.engine.run_until_idle();
        }
    };
    let first = between(DmaOp::PUT, (1, 0), (2, 0), 8);
    users.rig.store(10, &[&first.encode()]);
    users.answer(1);
    pass(&mut users, 64 * 40);
    users.answer(1);
    assert_eq!(users.rig.codes(EQ), [ReturnCode::UNDELIVERABLE]);
    users.memory(1).put(iova(1), &5_u64.to_le_bytes());
    users.rig.store(11, &[&padded(&sum((1, 8)).encode(), 128)]);
    // The operand is read, and the update waits.
    let mut operand = users.take(1).unwrap();
    operand.run();
    users.rig.engine.complete_dma(operand);
    users.rig.engine.run_until_idle();
    pass(&mut users, 65);
    users.answer(2);
    pass(&mut users, 65);
    users.answer_all();
    pass(&mut users, 65);
    users.answer_all();
    assert_eq!(users.memory(1).word(iova(1) + 8), 5);
}

/// Memory of which some cannot be written.
#[derive(Debug)]
struct Torn(Arc<Memory>);

impl ClientMemory for Torn {
    fn owner(&self) -> Option<u32> {
        Some(3)
    }

    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.0.read(va, into)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        if parts.iter().any(|(_, part)| part.len() == 64) {
            return Err(MemoryFault);
        }
        self.0.write(parts)
    }
}

/// The word that makes an event visible is not stored without what precedes it.
#[test]
fn events_are_never_torn() {
    let mut users = Users::new();
    let memory = Memory::new();
    memory.map(EVENTS, 4096);
    let buffer = EventBuffer { memory: Arc::new(Torn(Arc::clone(&memory))), va: EVENTS, len: 4096 };
    users.rig.engine.add_event_queue(5, event_queue(RGID, buffer));
    users.rig.portal_at(5, 5, PortalOptions::IS_MATCHING);
    let search = TargetCommand { ptlte_index: 5, ..search(TargetOp::SEARCH, 0, 0) };
    users.rig.append(&search);
    assert_eq!(users.answer(3), 1);
    assert!(memory.bytes(EVENTS, 4096).iter().all(|byte| *byte == 0));
    let faults = users.rig.engine.take_effects();
    assert!(matches!(faults[..], [Effect::Fault { rgid: RGID, .. }]));
}

/// Events that must not wait are lost and reported, as in a full queue.
#[test]
fn lost_events_leave_no_hole() {
    const BLOCKS: u64 = 1 << 17;
    let mut users = Users::new();
    let memory = Memory::new();
    memory.map(EVENTS, usize::try_from(BLOCKS * 64).unwrap());
    let buffer = EventBuffer {
        memory: Arc::new(Late(Arc::clone(&memory), 3)),
        va: EVENTS,
        len: BLOCKS * 64,
    };
    users.rig.engine.add_event_queue(5, event_queue(RGID, buffer));
    users.rig.portal_at(5, 5, PortalOptions::IS_MATCHING);
    let search = TargetCommand { ptlte_index: 5, ..search(TargetOp::SEARCH, 0, 0) };
    for _ in 0..70_000 {
        users.rig.append(&search);
    }
    users.answer(3);
    let is_event = |block: u64| memory.bytes(EVENTS + block * 64 + 63, 1) != [0];
    let first = (1..BLOCKS).find(|block| !is_event(*block)).unwrap();
    assert!((60_000..70_000).contains(&first), "{first}");
    let status = EqStatus::decode(memory.bytes(EVENTS, 64)[..].try_into().unwrap());
    assert!(status.unackd_dropped_event);
    users.rig.append(&search);
    users.answer(3);
    assert!(is_event(first) && !is_event(first + 1));
}

/// An access is to memory of one process.
#[test]
fn memory_of_two_processes() {
    let mut users = Users::new();
    let end = iova(1) + LEN as u64;
    let second: Arc<dyn ClientMemory> = Arc::new(Late(Arc::clone(&users.memories[1]), 2));
    let region = Region { va: iova(2), ..region(RGID, end, 0x1000, second) };
    users.rig.engine.add_region(103, region);
    users.memory(1).put(end - 100, &[1; 100]);
    let put = between(DmaOp::PUT, (1, LEN as u64 - 100), (1, 0), 1000);
    users.rig.store(10, &[&put.encode()]);
    users.answer_all();
    assert_eq!(users.rig.events(EQ), [ack(ReturnCode::NO_TRANSLATION)]);
    assert_eq!(users.memory(1).bytes(iova(1), 1), [0]);
}

/// A process that does not answer for ten seconds is given up.
#[test]
fn accesses_do_not_run_for_ever() {
    let mut users = Users::new();
    let put = between(DmaOp::PUT, (1, 0), (2, 0), 8);
    users.rig.store(10, &[&put.encode()]);
    users.answer(1);
    let running = users.take(2).unwrap();
    for _ in 0..10 {
        users.rig.engine.expire_accesses();
    }
    users.answer(1);
    assert_eq!(users.rig.events(EQ), []);
    users.rig.engine.expire_accesses();
    users.answer(1);
    // The answer does not wait for an event that cannot be stored for the time being.
    assert_eq!(users.rig.events(EQ), [ack(ReturnCode::NO_TRANSLATION)]);
    users.rig.engine.complete_dma(running);
    users.rig.store(10, &[&put.encode()]);
    users.answer_all();
    assert_eq!(users.rig.events(EQ), [ACK]);
}
