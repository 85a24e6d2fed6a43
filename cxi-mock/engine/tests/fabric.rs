//! Several NICs: routing, isolation, and a fabric that loses, repeats, reorders and delays.

mod rig;

use cxi_engine::{CounterDoorbell, Fabric, FabricFaults, PortalOptions, Settings};
use cxi_hw::{
    AtomicOp, AtomicType, DmaAtomic, DmaFlags, DmaOp, EventType, FullDma, ReturnCode, TargetFlags,
};
use rig::*;

const HERE: u32 = 0x10;
const THERE: u32 = 0x20;

/// Two NICs on one fabric.
struct Pair {
    fabric: Fabric,
    rigs: [Rig; 2],
}

impl Pair {
    /// The second one has a PtlTE that takes everything.
    fn new() -> Self {
        Self::on(Fabric::new())
    }

    fn on(fabric: Fabric) -> Self {
        let nic = |nid| Rig::on(fabric.clone(), nid, Settings::default());
        let [here, mut there] = [HERE, THERE].map(nic);
        there.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
        let flags = PUTS_AND_GETS | TargetFlags::EVENT_CT_COMM;
        there.link(&entry(1, BUFFER, 0x10_0000).with_flags(flags).with_ct(CT));
        let rigs = [here, there];
        Self { fabric, rigs }
    }

    fn here(&mut self) -> &mut Rig {
        &mut self.rigs[0]
    }

    fn there(&mut self) -> &mut Rig {
        &mut self.rigs[1]
    }

    fn run(&mut self) {
        settle(&self.fabric, &mut self.rigs);
    }

    /// Runs a command of the first NIC to its end.
    fn send(&mut self, command: &[u8]) {
        self.here().store(TXQ, &[command]);
        self.run();
    }

    /// Sends a message and says how it ended.
    fn outcome(&mut self) -> ReturnCode {
        self.send(&to(DmaOp::PUT, 8).encode());
        let [(EventType::ACK, code)] = self.here().events(EQ)[..] else { panic!("one answer") };
        let arrived = usize::from(code == ReturnCode::OK);
        assert_eq!(self.there().events(TARGET_EQ).len(), arrived, "{code:?}");
        code
    }
}

fn to(op: DmaOp, len: u32) -> FullDma {
    message(op, THERE, BUFFER, len)
}

#[test]
fn a_put_and_a_get_from_nic_to_nic() {
    let mut pair = Pair::new();
    pair.here().memory.put(BUFFER, b"across the fabric");
    pair.here().store(TXQ, &[&to(DmaOp::PUT, 17).with_offset(64).encode()]);
    pair.here().engine.run_until_idle();
    assert_eq!(pair.fabric.waiting(), [THERE]);
    assert_eq!(pair.here().events(EQ), []);
    pair.run();
    assert_eq!(pair.there().memory.bytes(BUFFER + 64, 17), b"across the fabric");
    assert_eq!(pair.there().events(TARGET_EQ), [PUT]);
    assert_eq!(pair.here().events(EQ), [ACK]);
    pair.there().memory.put(BUFFER, &[7; 3000]);
    pair.send(&to(DmaOp::GET, 3000).encode());
    assert!(pair.here().memory.bytes(BUFFER, 3000) == [7; 3000]);
    assert_eq!(pair.here().events(EQ), [REPLY]);
}

/// A rendezvous put of 50,000 bytes, and the entries for it and for the get of its rest.
fn rendezvous(pair: &mut Pair) -> FullDma {
    pair.here().portal(5, 255, PortalOptions::IS_MATCHING);
    pair.here().append(
        &entry(9, 0, (1 << 56) - 1)
            .with_portal(5)
            .with_flags(TargetFlags::OP_GET)
            .with_ignore_bits(u64::MAX),
    );
    pair.there().link(
        &entry(2, BUFFER + 0x10_0000, 0x10_0000)
            .with_flags(TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL)
            .with_match_bits(4),
    );
    to(DmaOp::RENDEZVOUS_PUT, 50_000)
        .with_flags(DmaFlags::EVENT_SEND_DISABLE | DmaFlags::USE_OFFSET_FOR_GET)
        .with_offset(BUFFER)
        .with_eager(256)
        .with_rendezvous(3)
        .with_match_bits(4)
}

#[test]
fn a_rendezvous_from_nic_to_nic() {
    let mut pair = Pair::new();
    let data: Vec<u8> = (0..50_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    pair.here().memory.put(BUFFER, &data);
    let command = rendezvous(&mut pair);
    pair.send(&command.encode());
    assert!(pair.there().memory.bytes(BUFFER + 0x10_0000, 50_000) == data);
    let events = pair.there().events(TARGET_EQ);
    assert_eq!(events, [PUT, RENDEZVOUS, REPLY]);
}

/// The source has done its part and may reuse the ID, but its answer to the get is lost.
#[test]
fn a_rendezvous_with_the_id_of_an_earlier_one_waits_for_its_reply() {
    let mut pair = Pair::on(Fabric::unreliable());
    let command = rendezvous(&mut pair).encode();
    pair.here().store(TXQ, &[&command]);
    pair.here().engine.run_until_idle();
    pair.there().engine.run_until_idle();
    pair.fabric.set_port_loss(THERE, u16::MAX);
    pair.here().engine.run_until_idle();
    pair.fabric.set_port_loss(THERE, 0);
    assert_eq!(pair.here().events(EQ), [ACK]);
    pair.here().store(TXQ, &[&command]);
    pair.here().engine.run_until_idle();
    pair.there().engine.run_until_idle();
    assert_eq!(pair.there().events(TARGET_EQ), [PUT, RENDEZVOUS]);
    pair.run();
    let events = pair.there().events(TARGET_EQ);
    assert_eq!(events, [REPLY, PUT, RENDEZVOUS, REPLY]);
    assert_eq!(pair.here().events(EQ), [ACK]);
}

#[test]
fn a_nic_that_is_gone_is_unreachable() {
    let Pair { fabric, rigs } = Pair::new();
    let [mut here, there] = rigs;
    drop(there);
    here.put(&to(DmaOp::PUT, 1));
    assert_eq!(here.events(EQ), [ack(ReturnCode::UNDELIVERABLE)]);
    assert!(fabric.is_idle());
}

/// A process is behind its VNI and PID, its objects and memory behind its RGID.
#[test]
fn another_process_is_out_of_reach() {
    let mut pair = Pair::new();
    let here = pair.here();
    here.rgid = 99;
    here.profile(0, 77);
    here.add_tx(9, false);
    // Another's event queue and counter.
    for command in [to(DmaOp::PUT, 0), to(DmaOp::PUT, 0).with_eq(0).with_ct(CT)] {
        here.add_tx(9, false);
        here.submit(9, &[&command.encode()]);
        assert_eq!(here.queues[&9].status().return_code, ReturnCode::CMD_INVALID_ARG);
    }
    // Another's memory.
    here.add_tx(9, false);
    here.add_eq(50, 64, cxi_engine::EventFlags::empty());
    here.submit(9, &[&to(DmaOp::PUT, 8).with_eq(50).encode()]);
    assert_eq!(here.events(50), [ack(ReturnCode::NO_TRANSLATION)]);
}

#[test]
fn another_vni_is_another_world() {
    let mut pair = Pair::new();
    pair.here().profile(0, 77);
    pair.send(&to(DmaOp::PUT, 8).encode());
    assert_eq!(pair.here().events(EQ), [ack(ReturnCode::VNI_NOT_FOUND)]);
    assert_eq!(pair.there().events(TARGET_EQ), []);
}

fn add_one() -> DmaAtomic {
    atomic(DmaOp::FETCHING_ATOMIC, AtomicOp::SUM, AtomicType::UINT64_T, 8)
        .with_dfa(to(DmaOp::PUT, 0).dfa)
        .with_initiator(to(DmaOp::PUT, 0).initiator)
        .with_read_addr(BUFFER)
        .with_write_addr(BUFFER + 8)
}

/// Each operation happens once and in order, whatever the fabric does to packets.
#[test]
fn faults_are_mended() {
    const ROUNDS: u64 = 60;
    for (seed, loss, duplication, reordering, delay) in [
        (0, 20_000, 0, 0, 0),
        (1, 0, 40_000, 0, 0),
        (2, 0, 0, 30_000, 9),
        (3, 10_000, 20_000, 10_000, 5),
    ] {
        let mut pair = Pair::new();
        let faults = FabricFaults { seed, loss, duplication, reordering, delay };
        pair.fabric.set_faults(faults);
        pair.here().memory.put(BUFFER, &1_u64.to_le_bytes());
        for round in 0..ROUNDS {
            pair.send(&add_one().encode());
            assert_eq!(pair.here().memory.word(BUFFER + 8), round, "{faults:?}");
        }
        assert_eq!(pair.there().memory.word(BUFFER), ROUNDS);
        assert_eq!(pair.here().events(EQ).len() as u64, ROUNDS);
        assert_eq!(pair.there().events(TARGET_EQ).len() as u64, ROUNDS);
        let (sent, came) = (pair.here().engine.telemetry(), pair.there().engine.telemetry());
        assert_eq!((came.requests, sent.retries), (ROUNDS, sent.timeouts));
        assert_eq!(sent.retries > 0, faults.loss > 0, "{faults:?}");
        let comes_again = faults.loss > 0 || faults.duplication > 0;
        assert_eq!(came.repetitions > 0, comes_again, "{faults:?}");
    }
}

/// The same seed does the same.
#[test]
fn faults_repeat() {
    let ticks = |seed| {
        let mut pair = Pair::new();
        pair.fabric.set_faults(FabricFaults {
            seed,
            loss: 20_000,
            delay: 20,
            ..FabricFaults::default()
        });
        for _ in 0..20 {
            pair.send(&to(DmaOp::PUT, 8).encode());
        }
        pair.fabric.now()
    };
    assert_eq!(ticks(1), ticks(1));
    assert_ne!(ticks(1), ticks(2));
}

/// A target that never answers: the operation fails.
#[test]
fn what_is_always_lost_is_given_up() {
    let mut pair = Pair::new();
    pair.fabric.set_faults(FabricFaults { loss: u16::MAX, ..FabricFaults::default() });
    let [one, two] = [8, 4].map(|len| to(DmaOp::PUT, len).encode());
    pair.here().store(TXQ, &[&one, &two]);
    pair.run();
    assert_eq!(pair.here().events(EQ), [ack(ReturnCode::UNDELIVERABLE); 2]);
    // Each was sent 32 times.
    let counted = pair.here().engine.telemetry();
    assert_eq!((counted.timeouts, counted.retries), (2 * 32, 2 * 31));
}

/// A late answer reaches neither memory nor objects that have changed hands.
#[test]
fn late_answers_are_dropped() {
    let mut pair = Pair::new();
    let there_memory: Vec<u8> = vec![9; 4096];
    pair.there().memory.put(BUFFER, &there_memory);
    let get = to(DmaOp::GET, 4096);
    let fetch = add_one();
    pair.here().add_tx(7, false);
    pair.here().store(TXQ, &[&get.encode()]);
    pair.here().store(7, &[&fetch.encode()]);
    pair.here().engine.run_until_idle();
    pair.here().engine.remove_queue(TXQ);
    pair.here().engine.remove_queue(7);
    pair.here().engine.remove_region(1);
    // Another one has the numbers now.
    pair.here().add_tx(TXQ, false);
    pair.here().add_tx(7, false);
    pair.here().region_with(1, BUFFER, 4096, true, true);
    pair.run();
    assert!(pair.here().memory.bytes(BUFFER, 4096) == [0; 4096]);
    assert_eq!(pair.here().events(EQ), []);
    assert_eq!(pair.here().engine.commands_in_flight(TXQ), 0);
}

/// The answer to a triggered command counts for its own queue alone.
#[test]
fn late_answers_to_triggered_commands_are_dropped() {
    let mut pair = Pair::new();
    let command = trig_dma(1, &to(DmaOp::PUT, 8).encode());
    pair.here().store(TRIGQ, &[&command]);
    pair.here().ring_counter(CT, CounterDoorbell::AddSuccess, 1);
    assert_eq!(pair.here().engine.commands_in_flight(TRIGQ), 1);
    // The queue that has the number now has its own command in flight.
    pair.here().add_tx(TRIGQ, true);
    pair.here().submit(TRIGQ, &[&trig_dma(9, &put(1).encode())]);
    pair.run();
    assert_eq!(pair.there().events(TARGET_EQ), [PUT]);
    assert_eq!(pair.here().events(EQ), []);
    assert_eq!(pair.here().engine.commands_in_flight(TRIGQ), 1);
}

#[test]
fn links_and_partitions_stand_between_nics() {
    const LOST: ReturnCode = ReturnCode::UNDELIVERABLE;
    let mut pair = Pair::new();
    for side in [HERE, THERE] {
        pair.fabric.set_link(side, false);
        assert!(!pair.fabric.reaches(HERE, THERE) && pair.fabric.reaches(HERE, HERE));
        assert_eq!(pair.outcome(), LOST);
        pair.fabric.set_link(side, true);
        assert_eq!(pair.outcome(), ReturnCode::OK);
    }
    pair.fabric.partition([HERE, 0x30], [0x40]);
    assert_eq!(pair.outcome(), ReturnCode::OK);
    pair.fabric.partition([THERE], [HERE, 0x30]);
    assert_eq!(pair.outcome(), LOST);
    pair.fabric.heal();
    assert_eq!(pair.outcome(), ReturnCode::OK);
}

#[test]
fn a_port_that_drops_is_overcome_unless_it_drops_all() {
    let mut pair = Pair::new();
    pair.fabric.set_port_loss(THERE, 20_000);
    for _ in 0..20 {
        assert_eq!(pair.outcome(), ReturnCode::OK);
    }
    assert!(pair.fabric.now() > 0, "nothing was sent again");
    pair.fabric.set_port_loss(THERE, u16::MAX);
    let code = pair.outcome();
    assert_eq!(code, ReturnCode::UNDELIVERABLE);
}

#[test]
fn a_port_that_delays_does_so_both_ways_and_nothing_is_sent_again() {
    let mut pair = Pair::new();
    pair.fabric.set_port_delay(THERE, 20);
    for round in 1..=3 {
        assert_eq!(pair.outcome(), ReturnCode::OK);
        assert_eq!(pair.fabric.now(), round * 40);
    }
    pair.fabric.set_port_delay(THERE, 0);
    assert_eq!(pair.outcome(), ReturnCode::OK);
    assert_eq!(pair.fabric.now(), 120);
}

/// On an unreliable fabric an operation ends even if it was under way when the target went.
#[test]
fn an_operation_under_way_ends_when_its_target_dies() {
    let Pair { fabric, rigs } = Pair::on(Fabric::unreliable());
    let [mut here, there] = rigs;
    here.put(&to(DmaOp::PUT, 8));
    assert_eq!(fabric.waiting(), [THERE]);
    drop(there);
    while here.engine.awaits_answers() {
        fabric.tick();
        here.engine.run_until_idle();
    }
    assert_eq!(here.events(EQ), [ack(ReturnCode::UNDELIVERABLE)]);
}

/// A NIC that comes back counts its operations from the start, under an address whose answers
/// others still keep.
#[test]
fn a_nic_that_comes_back_is_another_one() {
    let mut pair = Pair::new();
    pair.fabric.set_link(0x99, false);
    for life in 1..=2 {
        pair.here().memory.put(BUFFER, &[life; 8]);
        assert_eq!(pair.outcome(), ReturnCode::OK);
        assert_eq!(pair.there().memory.bytes(BUFFER, 8), [life; 8]);
        let fabric = pair.fabric.clone();
        // The first one goes before the second one comes.
        pair.rigs[0] = Rig::on(Fabric::new(), HERE, Settings::default());
        pair.rigs[0] = Rig::on(fabric, HERE, Settings::default());
    }
}
