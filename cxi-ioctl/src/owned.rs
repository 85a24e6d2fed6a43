//! The commands that give memory to the NIC, with memory that lives as long as the NIC may use it.
//!
//! The memory is a [`DeviceMemory`], to which the process has no references, and travels with the
//! request: [`CharDev`](crate::CharDev) keeps it until the driver has taken it from the NIC. It
//! therefore does not matter what the caller does with its `Arc`, or what a transport on the way
//! does.

#![allow(unsafe_code, reason = "commands that carry addresses are unsafe to send")]

use std::ops::Range;
use std::sync::Arc;

use crate::abi::counter::{CtAllocCmd, CtAllocResp, CtWbUpdateCmd};
use crate::abi::memory::{AtuMapCmd, AtuMapResp, AtuUpdateMdCmd, MD_NONE, MapFlags};
use crate::abi::queue::{
    EQ_DROP_STATUS_DISABLE, EQ_EC_DISABLE, EQ_INIT_LONG, EQ_REGISTER_PCT, EQ_TGT_LONG,
    EQ_TIMESTAMP_EVENTS, EQ_USER, EqAllocCmd, EqAllocResp, EqResizeCmd,
};
use crate::command::{Extra, submit};
use crate::{Command, CommandError, DeviceMemory, Errno, Transport};

impl MapFlags {
    /// The flags with which a descriptor reaches only the registered memory. The others translate
    /// any address of the process (ATS), or refer to memory of another device.
    pub const CONFINED: Self = Self::PIN
        .union(Self::WRITE)
        .union(Self::READ)
        .union(Self::FAULT)
        .union(Self::NOCACHE)
        .union(Self::USER_ADDR)
        .union(Self::ALLOC_MD)
        .union(Self::PREFETCH);
}

/// The flags that an event queue accepts; [`EQ_PASSTHROUGH`](crate::abi::queue::EQ_PASSTHROUGH)
/// would make its address a bus address.
const EQ_FLAGS: u64 = EQ_USER
    | EQ_INIT_LONG
    | EQ_TGT_LONG
    | EQ_DROP_STATUS_DISABLE
    | EQ_TIMESTAMP_EVENTS
    | EQ_EC_DISABLE
    | EQ_REGISTER_PCT;

/// Registers memory for the NIC (ATU_MAP, `cxil_map`). Address and length in the command are
/// filled in.
///
/// The NIC may use the memory until ATU_UNMAP has succeeded.
///
/// # Errors
///
/// EINVAL for flags that are not in [`MapFlags::CONFINED`] and for a dma-buf; otherwise as
/// [`execute`](crate::execute).
pub fn atu_map(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    command: &AtuMapCmd,
) -> Result<AtuMapResp, CommandError> {
    let command = AtuMapCmd { va: memory.address(), len: memory.len() as u64, ..*command };
    if !confined(command.flags) || command.hints.dmabuf_valid != 0 {
        return refused::<AtuMapCmd, _>();
    }
    // SAFETY: with such flags the NIC reaches only the range in the command, which is `memory`.
    unsafe { send(transport, &command, Some(memory)) }
}

/// Renews the translation of a part of registered memory (ATU_UPDATE_MD, `cxil_update_md`). Address
/// and length in the command are filled in.
///
/// # Errors
///
/// EINVAL for an empty part, one that is not inside the memory, and flags that are not in
/// [`MapFlags::CONFINED`]; otherwise as [`execute`](crate::execute).
pub fn atu_update_md(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    part: Range<usize>,
    command: &AtuUpdateMdCmd,
) -> Result<(), CommandError> {
    if part.is_empty() || part.end > memory.len() || !confined(command.flags) {
        return refused::<AtuUpdateMdCmd, _>();
    }
    let command = AtuUpdateMdCmd {
        va: memory.address() + part.start as u64,
        len: part.len() as u64,
        ..*command
    };
    // SAFETY: as in `atu_map`, with a part of `memory`.
    unsafe { send(transport, &command, Some(memory)) }
}

/// Allocates a counting event whose value is written back to the start of the memory (CT_ALLOC,
/// `cxil_alloc_ct`). The address in the command is filled in.
///
/// The NIC may write to the memory until CT_FREE has succeeded.
///
/// # Errors
///
/// As [`execute`](crate::execute).
pub fn ct_alloc(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    command: &CtAllocCmd,
) -> Result<CtAllocResp, CommandError> {
    let command = CtAllocCmd { wb: memory.address(), ..*command };
    // SAFETY: a write-back has eight bytes, and `memory` has at least a page.
    unsafe { send(transport, &command, Some(memory)) }
}

/// Makes the NIC write a counting event back to the start of other memory (CT_WB_UPDATE,
/// `cxil_ct_wb_update`). The address in the command is filled in.
///
/// The transport keeps both memories until CT_FREE has succeeded.
///
/// # Errors
///
/// As [`execute`](crate::execute).
pub fn ct_wb_update(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    command: &CtWbUpdateCmd,
) -> Result<(), CommandError> {
    let command = CtWbUpdateCmd { wb: memory.address(), ..*command };
    // SAFETY: as in `ct_alloc`.
    unsafe { send(transport, &command, Some(memory)) }
}

/// Allocates an event queue over registered memory (EQ_ALLOC, `cxil_alloc_evtq`). Address and
/// length in the command are filled in.
///
/// # Errors
///
/// EINVAL without a memory descriptor, for [`EQ_PASSTHROUGH`](crate::abi::queue::EQ_PASSTHROUGH)
/// and for unknown flags; otherwise as [`execute`](crate::execute).
pub fn eq_alloc(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    command: &EqAllocCmd,
) -> Result<EqAllocResp, CommandError> {
    let mut command = *command;
    command.attr.queue = memory.address();
    command.attr.queue_len = memory.len() as u64;
    if command.queue_md == MD_NONE || command.attr.flags & !EQ_FLAGS != 0 {
        return refused::<EqAllocCmd, _>();
    }
    // SAFETY: the driver accepts the address only inside the memory descriptor, and does not unmap
    // one that a queue uses. Registered memory is kept until it is unmapped.
    unsafe { send(transport, &command, None) }
}

/// Starts moving an event queue to other registered memory (EQ_RESIZE, `cxil_evtq_resize`).
/// Address and length in the command are filled in.
///
/// # Errors
///
/// EINVAL without a memory descriptor; otherwise as [`execute`](crate::execute).
pub fn eq_resize(
    transport: &dyn Transport,
    memory: &Arc<DeviceMemory>,
    command: &EqResizeCmd,
) -> Result<(), CommandError> {
    let command =
        EqResizeCmd { queue: memory.address(), queue_len: memory.len() as u64, ..*command };
    if command.queue_md == MD_NONE {
        return refused::<EqResizeCmd, _>();
    }
    // SAFETY: as in `eq_alloc`.
    unsafe { send(transport, &command, None) }
}

fn confined(flags: u32) -> bool {
    MapFlags::CONFINED.contains(MapFlags::from_bits_retain(flags))
}

fn refused<C: Command, T>() -> Result<T, CommandError> {
    Err(CommandError::refused(C::OPCODE, Errno::EINVAL))
}

/// # Safety
///
/// The only address in the command is that of something in `memory`, or of something that is
/// already kept for as long as the NIC may use it.
unsafe fn send<C: Command>(
    transport: &dyn Transport,
    command: &C,
    memory: Option<&Arc<DeviceMemory>>,
) -> Result<C::Response, CommandError> {
    let extra = Extra { memory, ..Extra::default() };
    // SAFETY: the caller vouches for the address; there is no list.
    unsafe { submit(transport, command, extra) }
}
