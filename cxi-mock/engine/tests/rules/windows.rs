//! 2.16: low-latency windows whose stores are not trapped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use cxi_engine::{CommandPages, MemoryFault, unwritten};
use cxi_hw::{CommandByte, DmaFlags, command_ring, launch_page};
use proptest::prelude::*;

use crate::matching;
use crate::rig::*;

const UNITS: u32 = 256;
const NOT_RUNG: u64 = u64::MAX;
const NUMBER: u16 = 9;

/// The ring and the launch page as a program and the NIC have them.
#[derive(Clone, Debug)]
struct Shared {
    ring: Arc<Mutex<Vec<u64>>>,
    launch: Arc<Mutex<Vec<u64>>>,
}

impl Shared {
    fn new() -> Self {
        let mut ring: Vec<u64> = (0..UNITS * 2).flat_map(|slot| [unwritten(slot); 4]).collect();
        ring[0] = 4;
        let mut launch = vec![0; 512];
        launch[0] = NOT_RUNG;
        Self { ring: Arc::new(Mutex::new(ring)), launch: Arc::new(Mutex::new(launch)) }
    }
}

fn copy(from: &[u64], offset: usize, into: &mut [u8]) {
    for (word, from) in into.as_chunks_mut::<8>().0.iter_mut().zip(&from[offset / 8..]) {
        *word = from.to_ne_bytes();
    }
}

impl CommandPages for Shared {
    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), MemoryFault> {
        copy(&self.ring.lock().unwrap(), offset, into);
        Ok(())
    }

    fn write_status(&self, status: u64) {
        self.ring.lock().unwrap()[0] = status;
    }

    fn take_doorbell(&self) -> Option<u64> {
        let mut launch = self.launch.lock().unwrap();
        Some(std::mem::replace(&mut launch[0], NOT_RUNG)).filter(|value| *value != NOT_RUNG)
    }

    fn polls_windows(&self) -> bool {
        true
    }

    fn read_window(&self, offset: usize, into: &mut [u8]) -> bool {
        copy(&self.launch.lock().unwrap(), offset, into);
        true
    }

    fn erase(&self, slot: usize, word: u64) {
        self.ring.lock().unwrap()[slot * 4..slot * 4 + 4].fill(word);
    }
}

/// A store of a program.
#[derive(Clone, Copy, Debug)]
enum Store {
    Ring(usize, u64),
    Launch(usize, u64),
    /// A copy of a word of the ring to the launch page.
    Copy(usize, usize),
}

/// A program that rings as libcxi's inline functions do.
struct Program {
    pages: Shared,
    /// Position behind what was written, and behind what was rung.
    written: u32,
    rung: u32,
    /// The first bytes of the slots.
    slots: Vec<u8>,
    stores: VecDeque<Store>,
}

fn after(slot: u32, slots: u32) -> u32 {
    match slot + slots {
        slot if slot < UNITS * 2 => slot,
        _ => command_ring::FIRST_SLOT,
    }
}

impl Program {
    fn emit(&mut self, command: &[u8]) {
        let slots = u32::try_from(CommandByte(command[0]).slots()).unwrap();
        for _ in 0..command_ring::padding(self.written, slots) {
            self.noop();
        }
        self.slots[self.written as usize] = command[0];
        for (at, word) in command.as_chunks().0.iter().enumerate() {
            let at = self.written as usize * 4 + at;
            self.stores.push_back(Store::Ring(at, u64::from_ne_bytes(*word)));
        }
        self.written = after(self.written, slots);
    }

    fn noop(&mut self) {
        self.slots[self.written as usize] = 0;
        self.stores.push_back(Store::Ring(self.written as usize * 4, 0));
        self.written = after(self.written, 1);
    }

    fn align(&mut self) {
        if !self.written.is_multiple_of(2) {
            self.noop();
        }
    }

    fn ring(&mut self) {
        self.align();
        if self.written != self.rung {
            self.rung = self.written;
            self.stores.push_back(Store::Launch(0, u64::from(self.written / 2)));
        }
    }

    fn ring_window(&mut self) {
        let has_256_bytes =
            |program: &Self, slot: u32| CommandByte(program.slots[slot as usize]).slots() == 8;
        let start = self.rung;
        if self.written == start {
            return;
        }
        if has_256_bytes(self, start) {
            return self.ring();
        }
        self.align();
        let end = self.written;
        let count = if end > start { end - start } else { UNITS * 2 - start };
        if count == 2 {
            self.store(launch_page::WINDOW_64, start, 1);
        } else if start.is_multiple_of(4) {
            self.store(launch_page::WINDOW_128_ALIGNED, start, 2);
        } else if self.slots[start as usize] != 0 {
            self.store(launch_page::WINDOW_64, start, 1);
        } else if has_256_bytes(self, start + 2) {
            return self.ring();
        } else {
            self.store(launch_page::WINDOW_128_UNALIGNED, after(start, 2), 2);
        }
        self.ring();
    }

    fn store(&mut self, window: usize, start: u32, units: u32) {
        let place = window + launch_page::window_offset(start) as usize;
        for word in 0..units as usize * 8 {
            self.stores.push_back(Store::Copy(start as usize * 4 + word, place / 8 + word));
        }
        self.rung = after(start, units * 2);
    }

    /// Executes stores.
    fn go_on(&mut self, count: usize) {
        for store in self.stores.drain(..count.min(self.stores.len())) {
            let (mut ring, mut launch) =
                (self.pages.ring.lock().unwrap(), self.pages.launch.lock().unwrap());
            match store {
                Store::Ring(at, word) => ring[at] = word,
                Store::Launch(at, word) => launch[at] = word,
                Store::Copy(from, to) => launch[to] = ring[from],
            }
        }
    }
}

/// Doorbell that a program rings after a command.
#[derive(Clone, Copy, Debug)]
enum How {
    More,
    Pointer,
    Window,
}

/// Each command runs once and in order, whatever the NIC sees of the stores: many commands are alike,
/// and many stores pass between two looks.
fn runs_each_command_once(commands: &[(u8, How, usize)], mode: Option<How>) {
    let mut rig = matching();
    let pages = Shared::new();
    rig.add_tx_at(NUMBER, false, pages.clone());
    let (slots, stores) = (vec![0; UNITS as usize * 2], VecDeque::new());
    let mut program = Program { pages, written: 8, rung: 8, slots, stores };
    let state = c_state(DmaFlags::EVENT_SEND_DISABLE).encode();
    program.emit(&state);
    program.ring();
    let (mut expected, mut seen) = (Vec::new(), Vec::new());
    let mut look = |rig: &mut Rig| {
        rig.engine.poll();
        rig.engine.run_until_idle();
        while let Some(event) = rig.try_event(EQ) {
            seen.push(event.initiator().mlength);
        }
        rig.events(TARGET_EQ);
    };
    for (kind, how, stores) in commands {
        let (command, length) = match kind {
            0 => (put(1).encode().to_vec(), 1),
            1 => (put(2).encode().to_vec(), 2),
            2 => (idc_message(0, &[2; 80]), 80),
            3 => (idc_message(0, &[3; 20]), 20),
            _ => (idc_message(0, &[4; 180]), 180),
        };
        expected.push(length);
        program.emit(&command);
        match (how, mode) {
            (How::More, _) => {}
            (How::Pointer, None) | (_, Some(How::Pointer)) => program.ring(),
            _ => program.ring_window(),
        }
        // A program has looked for room.
        program.go_on(*stores);
        if *stores % 3 != 0 || program.stores.len() > 400 {
            look(&mut rig);
        }
        if program.stores.len() > 600 {
            program.go_on(usize::MAX);
            look(&mut rig);
        }
    }
    program.ring();
    // The last stores, too, with a look after each.
    while !program.stores.is_empty() {
        program.go_on(1);
        look(&mut rig);
    }
    look(&mut rig);
    assert_eq!(seen, expected);
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![1 => Just(How::More), 2 => Just(How::Pointer), 4 => Just(How::Window)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_command_runs_once(
        commands in prop::collection::vec((0..5_u8, how(), 0..60_usize), 1..400),
        mode in prop_oneof![Just(None), Just(Some(How::Window)), Just(Some(How::Pointer))],
    ) {
        runs_each_command_once(&commands, mode);
    }
}

/// A program that waits for one message before it sends the next, which is always the same.
#[test]
fn rule_2_16_commands_that_are_alike_run_once_each() {
    for kind in 0..5 {
        runs_each_command_once(&vec![(kind, How::Window, 1001); 700], None);
    }
}
