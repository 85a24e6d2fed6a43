//! Long messages, which the memory of a process may copy itself.

use std::sync::{Arc, Mutex};

use cxi_engine::{ClientMemory, MemoryFault, Region};
use cxi_hw::{DmaFlags, FullDma, ReturnCode, TargetFlags};

use crate::rig::memory::Memory;
use crate::rig::{get as get_of, *};

const FROM: u64 = 0x200_0000;
const TO: u64 = 0x300_0000;
const LEN: u32 = 8192;

/// Memory that copies, or says that it cannot, and notes what it was asked for.
#[derive(Debug)]
struct Copying {
    memory: Arc<Memory>,
    copies: bool,
    asked: Mutex<Vec<(u64, u64, usize)>>,
}

impl ClientMemory for Copying {
    fn read(&self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        assert!(!self.copies || into.len() < LEN as usize);
        self.memory.read(va, into)
    }

    fn write(&self, parts: &[(u64, &[u8])]) -> Result<(), MemoryFault> {
        self.memory.write(parts)
    }

    fn copy(&self, va: u64, (to, there): (&dyn ClientMemory, u64), len: usize) -> bool {
        self.asked.lock().unwrap().push((va, there, len));
        self.copies && to.write(&[(there, &self.memory.bytes(va, len))]).is_ok()
    }
}

#[test]
fn rule_15_4_memory_copies_what_it_can() {
    for (copies, get) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut rig = Rig::matching();
        let memory = Arc::new(Copying {
            memory: Arc::clone(&rig.memory),
            copies,
            asked: Mutex::default(),
        });
        for (number, va) in [(2, FROM), (3, TO)] {
            rig.memory.map(va, LEN as usize);
            rig.engine.add_region(
                number,
                Region {
                    rgid: RGID,
                    lac: LAC,
                    iova: va,
                    len: LEN.into(),
                    va,
                    readable: true,
                    writable: true,
                    memory: Arc::clone(&memory) as _,
                },
            );
        }
        rig.memory.put(FROM, &[7; LEN as usize]);
        let (remote, local, command) = if get {
            (FROM, TO, get_of(LEN))
        } else {
            (TO, FROM, put(LEN))
        };
        rig.append(
            &entry(1, remote, LEN.into()).with_flags(TargetFlags::OP_PUT | TargetFlags::OP_GET),
        );
        rig.put(&FullDma {
            local_addr: local,
            flags: command.flags | DmaFlags::EVENT_SEND_DISABLE,
            ..command
        });
        assert_eq!(rig.event(EQ).code(), ReturnCode::OK);
        assert_eq!(rig.memory.bytes(TO, LEN as usize), [7; LEN as usize]);
        let asked = std::mem::take(&mut *memory.asked.lock().unwrap());
        assert_eq!(asked, [(FROM, TO, LEN as usize)]);
    }
}

/// A copy of several steps, each of several parts, of which none lies on a boundary.
#[test]
fn rule_15_4_a_long_copy_is_exact() {
    const LONG: u32 = (1 << 20) + 2 * (1 << 17) + 5;
    let data: Vec<u8> = (0..LONG)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
        .collect();
    let (from, to) = (BUFFER + 3, BUFFER + 0x20_0001);
    for get in [false, true] {
        let mut rig = Rig::matching();
        rig.memory.put(from, &data);
        let (remote, local, command) = if get {
            (from, to, get_of(LONG))
        } else {
            (to, from, put(LONG))
        };
        rig.append(
            &entry(1, remote, LONG.into()).with_flags(TargetFlags::OP_PUT | TargetFlags::OP_GET),
        );
        rig.put(&FullDma {
            local_addr: local,
            ..command
        });
        assert_eq!(rig.event(EQ).code(), ReturnCode::OK);
        assert!(rig.memory.bytes(to, LONG as usize) == data, "get: {get}");
        // Nothing before it or after it.
        assert_eq!(rig.memory.bytes(to - 1, 1), [0]);
        assert_eq!(rig.memory.bytes(to + u64::from(LONG), 1), [0]);
    }
}
