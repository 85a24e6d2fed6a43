//! Several NICs: routing, isolation, and a fabric that loses, repeats, reorders and delays.

mod rig;

use cxi_engine::{Fabric, FabricFaults, PortalOptions, Settings};
use cxi_hw::{
    AtomicOp, AtomicType, Class, CommandByte, DmaAtomic, DmaFlags, DmaOp, EventType, FullDma,
    ReturnCode, TargetFlags,
};
use rig::*;

const HERE: u32 = 0x10;
const THERE: u32 = 0x20;

/// Two NICs on one fabric, the second with a PtlTE that takes everything.
fn pair() -> (Fabric, Rig, Rig) {
    let fabric = Fabric::new();
    let here = Rig::on(fabric.clone(), HERE, Settings::default());
    let mut there = Rig::on(fabric.clone(), THERE, Settings::default());
    there.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    let flags = TargetFlags::OP_PUT | TargetFlags::OP_GET | TargetFlags::EVENT_CT_COMM;
    there.append(&entry(1, BUFFER, 0x10_0000).with_flags(flags).with_ct(CT));
    there.event(TARGET_EQ);
    (fabric, here, there)
}

/// Runs both until nothing is on the way, with time passing if it must.
fn run(fabric: &Fabric, here: &mut Rig, there: &mut Rig) {
    for _ in 0..100_000 {
        let worked = here.engine.run_until_idle() | there.engine.run_until_idle();
        if worked || !fabric.waiting().is_empty() {
            continue;
        }
        if fabric.is_idle() && !here.engine.awaits_answers() && !there.engine.awaits_answers() {
            return;
        }
        fabric.tick();
    }
    panic!("it never ends");
}

fn to(op: DmaOp, len: u32) -> FullDma {
    message(op, THERE, BUFFER, len)
}

#[test]
fn a_put_and_a_get_from_nic_to_nic() {
    let (fabric, mut here, mut there) = pair();
    here.memory.put(BUFFER, b"across the fabric");
    here.store(TXQ, &[&to(DmaOp::PUT, 17).with_offset(64).encode()]);
    here.engine.run_until_idle();
    assert_eq!(fabric.waiting(), [THERE]);
    assert_eq!(here.events(EQ), []);
    run(&fabric, &mut here, &mut there);
    assert_eq!(there.memory.bytes(BUFFER + 64, 17), b"across the fabric");
    assert_eq!(there.events(TARGET_EQ), [PUT]);
    assert_eq!(here.events(EQ), [ACK]);
    there.memory.put(BUFFER, &[7; 3000]);
    here.store(TXQ, &[&to(DmaOp::GET, 3000).encode()]);
    run(&fabric, &mut here, &mut there);
    assert!(here.memory.bytes(BUFFER, 3000) == [7; 3000]);
    assert_eq!(here.events(EQ), [REPLY]);
}

#[test]
fn a_rendezvous_from_nic_to_nic() {
    let (fabric, mut here, mut there) = pair();
    here.portal(5, 255, PortalOptions::IS_MATCHING);
    here.append(
        &entry(9, 0, (1 << 56) - 1)
            .with_portal(5)
            .with_flags(TargetFlags::OP_GET)
            .with_ignore_bits(u64::MAX),
    );
    there.append(
        &entry(2, BUFFER + 0x10_0000, 0x10_0000)
            .with_flags(TargetFlags::OP_PUT | TargetFlags::MANAGE_LOCAL)
            .with_match_bits(4),
    );
    let data: Vec<u8> = (0..50_000_u32).map(|at| at.to_le_bytes()[1]).collect();
    here.memory.put(BUFFER, &data);
    let command = to(DmaOp::RENDEZVOUS_PUT, 50_000)
        .with_flags(DmaFlags::EVENT_SEND_DISABLE | DmaFlags::USE_OFFSET_FOR_GET)
        .with_offset(BUFFER)
        .with_eager(256)
        .with_rendezvous(3)
        .with_match_bits(4);
    here.store(TXQ, &[&command.encode()]);
    run(&fabric, &mut here, &mut there);
    assert!(there.memory.bytes(BUFFER + 0x10_0000, 50_000) == data);
    let reply = there.events(TARGET_EQ).pop();
    assert_eq!(reply, Some(REPLY));
}

#[test]
fn a_nic_that_is_gone_is_unreachable() {
    let (fabric, mut here, there) = pair();
    drop(there);
    here.put(&to(DmaOp::PUT, 1));
    assert_eq!(here.events(EQ), [ack(ReturnCode::UNDELIVERABLE)]);
    assert!(fabric.is_idle());
}

/// A process is behind its VNI and PID, its objects and memory behind its RGID.
#[test]
fn another_process_is_out_of_reach() {
    let (_, mut here, _there) = pair();
    here.rgid = 99;
    here.profile(0, 77);
    here.add_tx(9, false);
    // Another's event queue and counter.
    for command in [to(DmaOp::PUT, 0), to(DmaOp::PUT, 0).with_eq(0).with_ct(CT)] {
        here.add_tx(9, false);
        here.submit(9, &[&command.encode()]);
        assert_eq!(
            here.queues[&9].status().return_code,
            ReturnCode::CMD_INVALID_ARG
        );
    }
    // Another's memory.
    here.add_tx(9, false);
    here.add_eq(50, 64, cxi_engine::EventFlags::empty());
    here.submit(9, &[&to(DmaOp::PUT, 8).with_eq(50).encode()]);
    assert_eq!(here.events(50), [ack(ReturnCode::NO_TRANSLATION)]);
}

#[test]
fn another_vni_is_another_world() {
    let (fabric, mut here, mut there) = pair();
    here.profile(0, 77);
    here.store(TXQ, &[&to(DmaOp::PUT, 8).encode()]);
    run(&fabric, &mut here, &mut there);
    assert_eq!(here.events(EQ), [ack(ReturnCode::VNI_NOT_FOUND)]);
    assert_eq!(there.events(TARGET_EQ), []);
}

fn add_one() -> DmaAtomic {
    let base = to(DmaOp::PUT, 0);
    DmaAtomic {
        command: CommandByte::new(Class::DMA, 2, DmaOp::FETCHING_ATOMIC.0),
        lac: LAC,
        flags: DmaFlags::EVENT_SEND_DISABLE,
        dfa: base.dfa,
        local_read_addr: BUFFER,
        request_len: 8,
        eq: EQ,
        initiator: base.initiator,
        local_write_addr: BUFFER + 8,
        atomic_op: AtomicOp::SUM,
        atomic_type: AtomicType::UINT64_T,
        write_lac: LAC,
        ..DmaAtomic::default()
    }
}

/// Each operation happens once and in order, whatever the fabric does to packets.
#[test]
fn faults_are_mended() {
    const ROUNDS: u64 = 60;
    for (seed, faults) in [
        FabricFaults {
            loss: 20_000,
            ..FabricFaults::default()
        },
        FabricFaults {
            duplication: 40_000,
            ..FabricFaults::default()
        },
        FabricFaults {
            delay: 9,
            reordering: 30_000,
            ..FabricFaults::default()
        },
        FabricFaults {
            loss: 10_000,
            duplication: 20_000,
            delay: 5,
            reordering: 10_000,
            ..FabricFaults::default()
        },
    ]
    .into_iter()
    .enumerate()
    {
        let (fabric, mut here, mut there) = pair();
        fabric.set_faults(FabricFaults {
            seed: seed as u64,
            ..faults
        });
        here.memory.put(BUFFER, &1_u64.to_le_bytes());
        for round in 0..ROUNDS {
            here.store(TXQ, &[&add_one().encode()]);
            run(&fabric, &mut here, &mut there);
            assert_eq!(here.memory.word(BUFFER + 8), round, "{faults:?}");
        }
        assert_eq!(there.memory.word(BUFFER), ROUNDS);
        assert_eq!(here.events(EQ).len() as u64, ROUNDS);
        assert_eq!(there.events(TARGET_EQ).len() as u64, ROUNDS);
        let (sent, came) = (here.engine.telemetry(), there.engine.telemetry());
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
        let (fabric, mut here, mut there) = pair();
        fabric.set_faults(FabricFaults {
            seed,
            loss: 20_000,
            delay: 20,
            ..FabricFaults::default()
        });
        for _ in 0..20 {
            here.store(TXQ, &[&to(DmaOp::PUT, 8).encode()]);
            run(&fabric, &mut here, &mut there);
        }
        fabric.now()
    };
    assert_eq!(ticks(1), ticks(1));
    assert_ne!(ticks(1), ticks(2));
}

/// Nobody answers for ever: the operation fails.
#[test]
fn what_is_always_lost_is_given_up() {
    let (fabric, mut here, mut there) = pair();
    fabric.set_faults(FabricFaults {
        loss: u16::MAX,
        ..FabricFaults::default()
    });
    here.store(
        TXQ,
        &[&to(DmaOp::PUT, 8).encode(), &to(DmaOp::PUT, 4).encode()],
    );
    run(&fabric, &mut here, &mut there);
    assert_eq!(here.events(EQ), [ack(ReturnCode::UNDELIVERABLE); 2]);
    // Each was sent 32 times.
    let counted = here.engine.telemetry();
    assert_eq!((counted.timeouts, counted.retries), (2 * 32, 2 * 31));
}

/// What comes back late reaches neither memory nor objects that have changed hands.
#[test]
fn late_answers_are_dropped() {
    let (fabric, mut here, mut there) = pair();
    let there_memory: Vec<u8> = vec![9; 4096];
    there.memory.put(BUFFER, &there_memory);
    let get = to(DmaOp::GET, 4096);
    let fetch = add_one();
    here.add_tx(7, false);
    here.store(TXQ, &[&get.encode()]);
    here.store(7, &[&fetch.encode()]);
    here.engine.run_until_idle();
    here.engine.remove_queue(TXQ);
    here.engine.remove_queue(7);
    here.engine.remove_region(1);
    // Another one has the numbers now.
    here.add_tx(TXQ, false);
    here.add_tx(7, false);
    here.region_with(1, BUFFER, 4096, true, true);
    run(&fabric, &mut here, &mut there);
    assert!(here.memory.bytes(BUFFER, 4096) == [0; 4096]);
    assert_eq!(here.events(EQ), []);
    assert_eq!(here.engine.commands_in_flight(TXQ), 0);
}

/// Sends a message and says how it ended.
fn outcome(fabric: &Fabric, here: &mut Rig, there: &mut Rig) -> ReturnCode {
    here.store(TXQ, &[&to(DmaOp::PUT, 8).encode()]);
    run(fabric, here, there);
    let [(EventType::ACK, code)] = here.events(EQ)[..] else {
        panic!("one answer");
    };
    let arrived = usize::from(code == ReturnCode::OK);
    assert_eq!(there.events(TARGET_EQ).len(), arrived, "{code:?}");
    code
}

#[test]
fn links_and_partitions_stand_between_nics() {
    const LOST: ReturnCode = ReturnCode::UNDELIVERABLE;
    let (fabric, mut here, mut there) = pair();
    for side in [HERE, THERE] {
        fabric.set_link(side, false);
        assert!(!fabric.reaches(HERE, THERE) && fabric.reaches(HERE, HERE));
        assert_eq!(outcome(&fabric, &mut here, &mut there), LOST);
        fabric.set_link(side, true);
        assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
    }
    fabric.partition([HERE, 0x30], [0x40]);
    assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
    fabric.partition([THERE], [HERE, 0x30]);
    assert_eq!(outcome(&fabric, &mut here, &mut there), LOST);
    fabric.heal();
    assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
}

#[test]
fn a_port_that_drops_is_overcome_unless_it_drops_all() {
    let (fabric, mut here, mut there) = pair();
    fabric.set_port_loss(THERE, 20_000);
    for _ in 0..20 {
        assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
    }
    assert!(fabric.now() > 0, "nothing was sent again");
    fabric.set_port_loss(THERE, u16::MAX);
    let code = outcome(&fabric, &mut here, &mut there);
    assert_eq!(code, ReturnCode::UNDELIVERABLE);
}

/// On an unreliable fabric an operation ends even if it was under way when the target went.
#[test]
fn an_operation_under_way_ends_when_its_target_dies() {
    let fabric = Fabric::unreliable();
    let mut here = Rig::on(fabric.clone(), HERE, Settings::default());
    let there = Rig::on(fabric.clone(), THERE, Settings::default());
    here.store(TXQ, &[&to(DmaOp::PUT, 8).encode()]);
    here.engine.run_until_idle();
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
    let (fabric, mut here, mut there) = pair();
    fabric.set_link(0x99, false);
    here.memory.put(BUFFER, &[1; 8]);
    assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
    drop(here);
    let mut here = Rig::on(fabric.clone(), HERE, Settings::default());
    here.memory.put(BUFFER, &[2; 8]);
    assert_eq!(outcome(&fabric, &mut here, &mut there), ReturnCode::OK);
    assert_eq!(there.memory.bytes(BUFFER, 8), [2; 8]);
}
