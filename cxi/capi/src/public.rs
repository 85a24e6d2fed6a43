//! The parts of handles that C reads and writes, as HPE's headers lay them out.

use std::ptr::null_mut;

use zerocopy::FromZeros;

use crate::ffi::Memory;

/// `struct cxi_cp`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CpPublic {
    pub(crate) vni: u32,
    pub(crate) tc: u32,
    pub(crate) tc_type: u32,
    pub(crate) lcid: u32,
}

/// `struct cxil_domain`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct DomainPublic {
    pub(crate) vni: u32,
    pub(crate) pid: u32,
}

/// `struct cxi_ct`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CtPublic {
    pub(crate) doorbell: *mut u8,
    pub(crate) ctn: u32,
    pub(crate) wb: Memory,
}

/// `struct cxi_cq`, which the inline functions of HPE's headers use constantly.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CmdqPublic {
    size: u32,
    wp_addr: *mut u8,
    ll_64: *mut u8,
    ll_128a: *mut u8,
    ll_128u: *mut u8,
    cmds32: *mut u8,
    rp32: u64,
    idx: u32,
    size32: u32,
    wp32: u64,
    hw_wp32: u64,
}

/// Offset of the low-latency windows in the page of the write pointer.
const LL_64: usize = 1024;
const LL_128A: usize = 2048;
const LL_128U: usize = 3072;

/// The first command, in units of 32 bytes. The NIC's status word and padding precede it.
const FIRST_COMMAND: u64 = 8;

impl CmdqPublic {
    /// A queue in which nothing has been written.
    pub(crate) fn new(number: u32, slots: u32, write_pointer: *mut u8, commands: *mut u8) -> Self {
        Self {
            size: slots,
            wp_addr: write_pointer,
            ll_64: write_pointer.wrapping_add(LL_64),
            ll_128a: write_pointer.wrapping_add(LL_128A),
            ll_128u: write_pointer.wrapping_add(LL_128U),
            cmds32: commands,
            rp32: FIRST_COMMAND,
            idx: number,
            size32: slots.wrapping_mul(2),
            wp32: FIRST_COMMAND,
            hw_wp32: FIRST_COMMAND,
        }
    }
}

/// `struct cxi_eq`, which the inline functions of HPE's headers use constantly.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct EvtqPublic {
    byte_size: u32,
    sw_state: u64,
    sw_state_addr: *mut u8,
    last_ts_sec: u64,
    last_ts_ns: u64,
    rd_offset: u32,
    prev_rd_offset: u32,
    pub(crate) eqn: u32,
    context: *mut u8,
    events: Memory,
}

/// The first event. The NIC's status precedes it.
const FIRST_EVENT: u32 = 64;

/// Bit that selects the buffer of a resized queue that is read.
const READING_BUFFER_B: u64 = 1 << 31;

impl EvtqPublic {
    /// A queue without events.
    pub(crate) fn new(number: u32, queue: Memory, len: u64, registers: *mut u8) -> Self {
        Self {
            // The field has half the width.
            byte_size: len as u32,
            sw_state: 0,
            sw_state_addr: registers,
            last_ts_sec: 0,
            last_ts_ns: 0,
            rd_offset: FIRST_EVENT,
            prev_rd_offset: FIRST_EVENT,
            eqn: number,
            context: null_mut(),
            events: queue,
        }
    }

    /// The same queue, read from its other buffer.
    pub(crate) fn resized(self, queue: Memory, len: usize) -> Self {
        Self {
            byte_size: len as u32,
            sw_state: self.sw_state ^ READING_BUFFER_B,
            rd_offset: FIRST_EVENT,
            prev_rd_offset: FIRST_EVENT,
            events: queue,
            ..self
        }
    }
}

/// `struct timespec`.
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C)]
pub(crate) struct Timespec {
    pub(crate) sec: i64,
    pub(crate) nsec: i64,
}

const _: () = {
    assert!(size_of::<CpPublic>() == 16);
    assert!(size_of::<CtPublic>() == 24);
    assert!(size_of::<CmdqPublic>() == 80);
    assert!(size_of::<EvtqPublic>() == 72);
};
