//! Whatever a client writes, the engine neither panics nor hangs, and touches no other memory.

mod rig;

use cxi_engine::EventFlags;
use cxi_hw::{Class, CommandByte, CtOp, DmaOp, PtlteState, TargetOp};
use proptest::prelude::*;
use rig::*;

/// Memory of another process, in the same NIC.
const OTHER_RGID: u16 = 44;
const OTHER: u64 = 0x7000_0000;
const OTHER_LEN: usize = 8192;

fn rig() -> Rig {
    let mut rig = Rig::new();
    rig.memory.map(OTHER, OTHER_LEN);
    rig.memory.put(OTHER, &[0xa5; OTHER_LEN]);
    let rgid = std::mem::replace(&mut rig.rgid, OTHER_RGID);
    rig.region_with(99, OTHER, OTHER_LEN, true, true);
    rig.add_eq(40, 64, EventFlags::empty());
    rig.add_ct(40);
    rig.rgid = rgid;
    rig.portal(PORTAL, 0, FLOW);
    rig.append(&entry(1, 0, (1 << 56) - 1));
    rig.append(&overflow(2, BUFFER, 65_536));
    rig
}

/// Bytes that begin as a command of a kind does, and are small numbers more often than not.
fn command(class: Class) -> impl Strategy<Value = Vec<u8>> {
    let names = match class {
        Class::CT => CtOp::NAMES,
        Class::CQ => TargetOp::NAMES,
        _ => DmaOp::NAMES,
    };
    let opcode = 0..=names.iter().map(|(_, number)| *number).max().unwrap_or(0);
    let byte = prop_oneof![3 => Just(0_u8), 1 => 0..4_u8, 1 => any::<u8>()];
    (0..4_u8, opcode, proptest::collection::vec(byte, 256)).prop_map(
        move |(size, opcode, mut bytes)| {
            bytes[0] = CommandByte::new(class, size, opcode).0;
            bytes
        },
    )
}

fn any_command() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![command(Class::IDC), command(Class::DMA), command(Class::CT), command(Class::CQ)]
}

/// Steps until there is nothing to do; a bound stands for "does not hang".
fn run(rig: &mut Rig) {
    for _ in 0..200_000 {
        if !rig.engine.step() {
            return;
        }
    }
    panic!("it never ends");
}

fn unharmed(rig: &Rig) {
    assert!(
        rig.memory.bytes(OTHER, OTHER_LEN) == [0xa5; OTHER_LEN],
        "another's memory was written"
    );
    assert_eq!(rig.readers[&40].peek(), None, "another's event queue was written");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn commands_of_a_kind(commands in proptest::collection::vec((any_command(), 0..3_usize), 1..20)) {
        let mut rig = rig();
        for (command, queue) in commands {
            let queue = [TXQ, TRIGQ, TGQ][queue];
            let len = CommandByte(command[0]).bytes();
            rig.store(queue, &[&command[..len]]);
            run(&mut rig);
            rig.events(EQ);
            rig.events(TARGET_EQ);
            // A queue that has stopped is made anew.
            match queue {
                TGQ => rig.add_target(TGQ),
                queue => rig.add_tx(queue, queue == TRIGQ),
            }
        }
        unharmed(&rig);
    }

    #[test]
    fn rings_full_of_anything(
        bytes in proptest::collection::vec(any::<u8>(), 64 * 16),
        pointers in proptest::collection::vec(any::<u64>(), 1..8),
        queue in 0..3_usize,
    ) {
        let mut rig = rig();
        let queue = [TXQ, TRIGQ, TGQ][queue];
        rig.queues[&queue].ring.0.lock().unwrap()[256..256 + bytes.len()].copy_from_slice(&bytes);
        for pointer in pointers {
            rig.engine.ring_queue(queue, pointer % 300);
            rig.engine.ring_window(queue, usize::try_from(pointer % 8192).unwrap());
            run(&mut rig);
        }
        unharmed(&rig);
    }

    /// Register words and doorbells of anything.
    #[test]
    fn registers_of_anything(words in proptest::collection::vec(any::<u64>(), 1..20)) {
        let mut rig = rig();
        for word in words {
            rig.readers[&EQ].word.0.store(word, std::sync::atomic::Ordering::Release);
            rig.engine.ring_event_queue(EQ);
            for doorbell in cxi_engine::CounterDoorbell::ALL {
                rig.engine.ring_counter(CT, doorbell, word);
            }
            rig.store(TXQ, &[&put(1).encode()]);
            run(&mut rig);
            rig.set_state(PORTAL, PtlteState(word.to_le_bytes()[0] & 7), 0xff_ffff);
        }
        unharmed(&rig);
    }
}
