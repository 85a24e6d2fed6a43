//! Recorded exchanges between programs and a NIC: the same commands give the same events.
//!
//! `exchanges.txt` has one step a line: a command (queue, bytes without the zeros at their end), an
//! event (queue, bytes), a store to a doorbell of a counter (counter, offset, value), or what a
//! counter wrote back.

mod rig;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use cxi_engine::{ClientMemory, CounterDoorbell, EventFlags, MemoryFault, PortalOptions};
use cxi_hw::{CommandByte, EventType, TargetCommand, TargetOp};
use rig::{RGID, Rig};

/// The PID of all ones and the address of the NIC.
const ANY_PID_HERE: u32 = 511 << 23 | rig::NID;

/// A process whose whole memory is there, and zero.
#[derive(Debug, Default)]
struct Everything(Mutex<HashMap<u64, u8>>);

impl ClientMemory for Everything {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let bytes = self.0.lock().unwrap();
        for (at, byte) in (va..).zip(into) {
            *byte = bytes.get(&at).copied().unwrap_or(0);
        }
        Ok(())
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        let mut bytes = self.0.lock().unwrap();
        for (va, part) in parts {
            bytes.extend((*va..).zip(part.iter().copied()));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
enum Step {
    Command(u16, Vec<u8>),
    Event(u16, Vec<u8>),
    Ring(u16, usize, u64),
    Written(u16, Vec<u8>),
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn step(line: &str) -> Step {
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default();
    let (kind, number) = (word(), word().parse().unwrap());
    match kind {
        "command" => Step::Command(number, bytes(word())),
        "event" => Step::Event(number, bytes(word())),
        "ring" => Step::Ring(number, word().parse().unwrap(), word().parse().unwrap()),
        "written" => Step::Written(number, bytes(word())),
        other => panic!("no such step: {other}"),
    }
}

fn exchanges() -> BTreeMap<&'static str, Vec<Step>> {
    let parts = include_str!("exchanges.txt").split("= ").skip(1);
    parts
        .map(|part| {
            let (name, steps) = part.split_once('\n').unwrap();
            (name, steps.lines().filter(|line| !line.is_empty()).map(step).collect())
        })
        .collect()
}

const MATCHING: PortalOptions = PortalOptions::IS_MATCHING;
const PLAIN: PortalOptions = PortalOptions::empty();

/// PtlTE, options, portal indices.
type Mapped = (u16, PortalOptions, &'static [u16]);

/// Returns the portals that the program of an exchange had set up.
fn portals(name: &str) -> Vec<Mapped> {
    let provider = [
        (1, MATCHING, [117, 228].as_slice()),
        (2, MATCHING, &[255, 127]),
        (3, MATCHING.union(PortalOptions::EN_FLOWCTRL), &[0]),
    ];
    match name {
        "restricted_get_nonmatching"
        | "restricted_put_nonmatching"
        | "atomic_dma_fetch_add"
        | "atomic_idc_fetch_add" => vec![(1, PLAIN, &[0])],
        "matching_put_use_once" | "unexpected_put" => vec![(1, MATCHING, &[0])],
        "rendezvous_long_libcxi" => vec![(1, MATCHING, &[255]), (2, MATCHING, &[5])],
        "rendezvous_matching_eager" => vec![(1, MATCHING, &[255]), (2, MATCHING, &[0])],
        "restricted_put_locally_managed" => {
            let collectives = (4, PortalOptions::EN_RESTRICTED_UNICAST_LM, [6].as_slice());
            [provider.as_slice(), &[collectives]].concat()
        }
        "provider_rma_read" => [provider.as_slice(), &[(4, PLAIN, &[138])]].concat(),
        "match_events" => {
            let mut provider = provider.to_vec();
            provider[0].1 |= PortalOptions::EN_EVENT_MATCH;
            provider
        }
        _ => provider.to_vec(),
    }
}

/// Returns the queue to which the events of each PtlTE go.
fn event_queues(steps: &[Step]) -> BTreeMap<u16, u16> {
    let mut queues = BTreeMap::new();
    for step in steps {
        if let Step::Event(eq, event) = step
            && event.len() == 64
        {
            queues.insert(u16::from_le_bytes([event[12], event[13]]) & 0x7ff, *eq);
        }
    }
    queues
}

fn set_up(name: &str, steps: &[Step]) -> (Rig, BTreeMap<u16, u64>) {
    let mut rig = Rig::new();
    let short = steps.iter().any(|step| {
        matches!(step, Step::Event(_, event)
            if event.len() == 32 && (event[14] >> 2) & 31 <= EventType::FETCH_ATOMIC.0)
    });
    let flags = if short { EventFlags::empty() } else { EventFlags::TARGET_LONG };
    let mut counters: BTreeSet<_> = (1..=6).collect();
    for step in steps {
        match step {
            Step::Command(queue, _) if *queue >= 1024 => rig.add_target(*queue),
            Step::Command(queue, _) => rig.add_tx(*queue, true),
            Step::Ring(ct, ..) | Step::Written(ct, _) => {
                counters.insert(*ct);
            }
            Step::Event(..) => {}
        }
    }
    for eq in 1..=4 {
        rig.add_eq(eq, 256, flags);
    }
    let counters = counters.into_iter().map(|ct| (ct, rig.add_ct(ct))).collect();
    let region = rig::region(RGID, 0, 1 << 57, Arc::new(Everything::default()));
    rig.engine.add_region(1, region);
    let eqs = event_queues(steps);
    for (number, options, indices) in portals(name) {
        let eq = eqs.get(&number).copied().unwrap_or(0);
        rig.portal_at(number, eq, options);
        for index in indices {
            rig.engine.map_portal(1, 0, *index, number);
        }
    }
    (rig, counters)
}

/// Sets up the objects that the recorder did not see.
fn unrecorded(name: &str, rig: &mut Rig, command: &[u8]) {
    let op = CommandByte(command[0]);
    match name {
        // The program counted up to the threshold.
        "provider_triggered_write" if op == CommandByte(0x5a) => {
            rig.ring_counter(4, CounterDoorbell::AddSuccess, 0xd431);
        }
        // A call of the driver.
        "hw_to_sw_managed" if op.opcode() == TargetOp::SEARCH_AND_DELETE.0 => {
            let command = TargetCommand::decode(&rig::padded(command, 64).try_into().unwrap());
            let portal = command.ptlte_index;
            assert_eq!(rig.engine.transition_to_software(portal, 0), Ok(()));
        }
        _ => {}
    }
}

/// Corrects fields that the recorded events do not have right: they come from a prototype.
fn normal(mut event: Vec<u8>) -> Vec<u8> {
    match EventType((event[14] >> 2) & 31) {
        // Entries in use and in the pool were left out.
        EventType::LINK => event[56..60].fill(0),
        // Where the get starts, which is behind the bytes that have come.
        EventType::RENDEZVOUS => event[40..47].fill(0),
        // That the get of a NIC comes from any PID of it.
        EventType::GET if event[8..12] == ANY_PID_HERE.to_le_bytes() => event[8..12].fill(0),
        _ => {}
    }
    event
}

fn replay(name: &str, steps: &[Step]) {
    let (mut rig, counters) = set_up(name, steps);
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Command(queue, command) => {
                let len = CommandByte(command[0]).bytes();
                rig.submit(*queue, &[&rig::padded(command, len)]);
                unrecorded(name, &mut rig, command);
            }
            Step::Event(eq, expected) if expected[14] >> 2 == EventType::EQ_SWITCH.0 => {
                rig.resize(*eq, 64);
                assert_eq!(rig.event(*eq).0, *expected, "{name}: step {number}");
            }
            Step::Event(eq, expected) => {
                let event = rig.event(*eq).0;
                assert_eq!(normal(event), normal(expected.clone()), "{name}: step {number}");
            }
            Step::Ring(ct, offset, value) => {
                rig.memory.put(counters[ct], &[0; 8]);
                rig.ring_counter(*ct, CounterDoorbell::at(*offset).unwrap(), *value);
            }
            Step::Written(ct, expected) => {
                assert_eq!(rig.memory.bytes(counters[ct], 8), *expected, "{name}: step {number}");
                rig.memory.put(counters[ct], &[0; 8]);
            }
        }
    }
    for eq in 1..=4 {
        assert_eq!(rig.events(eq), [], "{name}: more than was recorded in queue {eq}");
    }
}

#[test]
fn recorded_exchanges_replay() {
    let exchanges = exchanges();
    assert_eq!(exchanges.len(), 26);
    for (name, steps) in exchanges {
        replay(name, &steps);
    }
}
