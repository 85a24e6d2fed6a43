//! 15: memory.

use cxi_engine::{Effect, EntryPool, PortalOptions};
use cxi_hw::{DmaFlags, FullDma, ReturnCode, TargetFlags};

use crate::rig::*;

/// Two pages that may only be read and only be written, side by side, and one of both.
const READ_ONLY: u64 = 0x100_0000;
const WRITE_ONLY: u64 = READ_ONLY + 4096;
const BOTH: u64 = WRITE_ONLY + 4096;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.memory.map(READ_ONLY, 3 * 4096);
    rig.region_with(2, READ_ONLY, 4096, true, false);
    rig.region_with(3, WRITE_ONLY, 4096, false, true);
    rig.region_with(4, BOTH, 4096, true, true);
    rig.portal(PORTAL, 0, PortalOptions::IS_MATCHING);
    let flags = TargetFlags::OP_PUT | TargetFlags::OP_GET | TargetFlags::EVENT_COMM_DISABLE;
    rig.link(&entry(1, 0, (1 << 56) - 1).with_flags(flags));
    rig
}

#[test]
fn rule_15_1_the_nic_reads_and_writes_what_it_may() {
    let mut rig = rig();
    let from = |local_addr| put(8).with_local_addr(local_addr).with_offset(BUFFER);
    let to = |remote_offset| put(8).with_offset(remote_offset);
    let into = |local_addr| get(8).with_local_addr(local_addr).with_offset(BUFFER);
    let of = |remote_offset| get(8).with_offset(remote_offset);
    for (command, expected) in [
        (from(READ_ONLY), ReturnCode::OK),
        (from(WRITE_ONLY), ReturnCode::PAGE_PERM_ERROR),
        (from(0x9000_0000), ReturnCode::NO_TRANSLATION),
        (to(WRITE_ONLY), ReturnCode::OK),
        (to(READ_ONLY), ReturnCode::PAGE_PERM_ERROR),
        (to(0x9000_0000), ReturnCode::NO_TRANSLATION),
        (into(WRITE_ONLY), ReturnCode::OK),
        (into(READ_ONLY), ReturnCode::PAGE_PERM_ERROR),
        (of(READ_ONLY), ReturnCode::OK),
        (of(WRITE_ONLY), ReturnCode::PAGE_PERM_ERROR),
        // Several regions side by side.
        (get(200).with_local_addr(WRITE_ONLY + 4000).with_offset(BUFFER), ReturnCode::OK),
        (get(200).with_local_addr(BOTH + 4000).with_offset(BUFFER), ReturnCode::NO_TRANSLATION),
        // Nothing needs nothing.
        (put(0).with_local_addr(5).with_offset(5), ReturnCode::OK),
    ] {
        assert_eq!(rig.outcome(&command), expected, "{command:x?}");
    }
}

#[test]
fn rule_15_1_other_contexts_are_out_of_reach() {
    let mut rig = rig();
    let lac = put(8).with_lac(LAC + 1).with_offset(BUFFER);
    assert_eq!(rig.outcome(&lac), ReturnCode::NO_TRANSLATION);
    // Another group's memory at the same addresses is another group's.
    rig.rgid = RGID + 1;
    rig.region_with(9, 0x9000_0000, 4096, true, true);
    rig.rgid = RGID;
    let other = put(8).with_local_addr(0x9000_0000).with_offset(BUFFER);
    assert_eq!(rig.outcome(&other), ReturnCode::NO_TRANSLATION);
}

#[test]
fn rule_15_1_regions_may_overlap() {
    let mut rig = rig();
    rig.region_with(10, READ_ONLY, 8192, true, true);
    assert_eq!(rig.outcome(&put(200).with_offset(READ_ONLY + 4000)), ReturnCode::OK);
    rig.engine.remove_region(10);
    let again = put(200).with_offset(READ_ONLY + 4000);
    assert_eq!(rig.outcome(&again), ReturnCode::PAGE_PERM_ERROR);
}

#[test]
fn rule_15_4_memory_that_is_gone_is_an_error() {
    let mut rig = rig();
    rig.memory.unmap(BUFFER);
    assert_eq!(rig.outcome(&put(8).with_offset(WRITE_ONLY)), ReturnCode::NO_TRANSLATION);
    let long = put(4096).with_offset(WRITE_ONLY);
    assert_eq!(rig.outcome(&long), ReturnCode::SRC_ERROR);
    let get = get(4096).with_local_addr(BOTH).with_offset(BUFFER);
    assert_eq!(rig.outcome(&get), ReturnCode::NO_TRANSLATION);
}

/// An event ring that is gone is a hint for people, and nothing else.
#[test]
fn rule_15_4_event_rings_that_are_gone() {
    let mut rig = rig();
    rig.memory.unmap(rig.readers[&EQ].va);
    rig.put(&put(8).with_offset(WRITE_ONLY));
    let effects = rig.engine.take_effects();
    let faults = effects.iter().filter(|effect| matches!(effect, Effect::Fault { rgid: RGID, .. }));
    assert_eq!(faults.count(), 1);
}

/// A long copy goes on piece by piece, and sees what is unmapped in between.
#[test]
fn long_copies_are_several_steps() {
    let mut rig = rig();
    let len = 0x40_0000;
    let there = 0x2000_0000;
    rig.memory.map(there, len);
    rig.region_with(20, there, len, true, true);
    let data: Vec<u8> = (0..len).map(|at| at.to_le_bytes()[1]).collect();
    rig.memory.put(BUFFER, &data);
    let command = put(u32::try_from(len).unwrap()).with_offset(there);
    rig.store(TXQ, &[&command.encode()]);
    while rig.memory.bytes(there, 0x20_0000) != data[..0x20_0000] {
        assert!(rig.engine.step());
    }
    assert_eq!(rig.memory.bytes(there + 0x20_0000, 8), [0; 8]);
    rig.engine.run_until_idle();
    assert!(rig.memory.bytes(there, len) == data);
    assert_eq!(rig.events(EQ), [ACK]);
    rig.memory.put(there, &vec![0; len]);
    rig.store(TXQ, &[&command.encode()]);
    while rig.memory.bytes(there, 0x20_0000) != data[..0x20_0000] {
        assert!(rig.engine.step());
    }
    rig.engine.remove_region(20);
    rig.engine.run_until_idle();
    assert_eq!(rig.events(EQ), [ack(ReturnCode::NO_TRANSLATION)]);
    assert_eq!(rig.memory.bytes(there + 0x20_0000, 8), [0; 8]);
}

/// A portal that disappears while a message is copied gets no event, and the sender gets one.
#[test]
fn a_portal_that_goes_during_a_copy() {
    let mut rig = rig();
    rig.store(
        TXQ,
        &[&put(0x20_0000)
            .with_flags(DmaFlags::EVENT_SEND_DISABLE)
            .with_offset(BUFFER + 0x20_0000)
            .encode()],
    );
    assert!(rig.engine.step() && rig.engine.step());
    rig.engine.remove_portal(PORTAL);
    rig.engine.run_until_idle();
    assert_eq!(rig.events(EQ), [ACK]);
    assert_eq!(rig.events(TARGET_EQ), []);
}

/// The place that was kept for the header of its message is free again.
#[test]
fn a_portal_that_goes_during_a_copy_keeps_no_entry() {
    let mut rig = rig();
    rig.append(&unlink(cxi_hw::List::PRIORITY, 1));
    rig.append(&overflow(2, BUFFER + 0x20_0000, 0x20_0000));
    rig.events(TARGET_EQ);
    rig.store(TXQ, &[&put(0x18_0000).encode()]);
    assert!(rig.engine.step() && rig.engine.step());
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 2);
    rig.engine.remove_portal(PORTAL);
    rig.engine.run_until_idle();
    assert_eq!(rig.engine.entries_in_use(EntryPool::default()), 0);
}

/// Bytes that differ from piece to piece.
fn pattern(len: u32) -> Vec<u8> {
    let hash = |at: u32| at.wrapping_mul(2_654_435_761) >> 13;
    (0..len).map(|at| hash(at).to_le_bytes()[0]).collect()
}

/// A copy of several steps, of which none lies on a boundary.
#[test]
fn rule_15_4_a_long_copy_is_exact() {
    const LONG: u32 = (1 << 20) + 2 * (1 << 17) + 5;
    let data = pattern(LONG);
    let (from, to) = (BUFFER + 3, BUFFER + 0x20_0001);
    for gets in [false, true] {
        let mut rig = Rig::matching();
        rig.memory.put(from, &data);
        let (remote, local, command) =
            if gets { (from, to, get(LONG)) } else { (to, from, put(LONG)) };
        rig.append(
            &entry(1, remote, LONG.into()).with_flags(TargetFlags::OP_PUT | TargetFlags::OP_GET),
        );
        assert_eq!(rig.outcome(&command.with_local_addr(local)), ReturnCode::OK);
        assert!(rig.memory.bytes(to, LONG as usize) == data, "get: {gets}");
        // Nothing before it or after it.
        assert_eq!(rig.memory.bytes(to - 1, 1), [0]);
        assert_eq!(rig.memory.bytes(to + u64::from(LONG), 1), [0]);
    }
}

/// The memory of the initiator is several regions, and several steps go to and from each.
#[test]
fn rule_15_1_a_long_copy_of_several_regions() {
    const REGION: usize = 300_000;
    const LEN: u32 = 900_000;
    let regions = 0x2000_0000;
    let mut rig = rig();
    rig.memory.map(regions, LEN as usize);
    for (number, va) in (20..).zip((regions..).step_by(REGION)).take(3) {
        rig.region_with(number, va, REGION, true, true);
    }
    let data = pattern(LEN);
    rig.memory.put(BUFFER, &data);
    let local = |command: FullDma| command.with_local_addr(regions);
    let into = local(get(LEN)).with_offset(BUFFER);
    assert_eq!(rig.outcome(&into), ReturnCode::OK);
    assert!(rig.memory.bytes(regions, LEN as usize) == data);
    let from = local(put(LEN)).with_offset(BUFFER + 0x20_0000);
    assert_eq!(rig.outcome(&from), ReturnCode::OK);
    assert!(rig.memory.bytes(BUFFER + 0x20_0000, LEN as usize) == data);
}
