#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod atomic;
mod buffer;
pub mod collective;
mod counter;
mod dma;
mod error;
mod event;
mod events;
mod immediate;
pub mod kind;
mod list;
mod options;
mod queue;
mod rendezvous;
mod report;
mod rest;
mod ring;
mod trigger;
mod wait;

pub use address::{Address, Target};
pub use atomic::{Atomic, DmaAtomic, Operand};
pub use buffer::{Buffer, Slice};
pub use counter::{Counter, CounterCommand};
pub use cxi_hw::reduction::{REDUCTIONS, ReduceOp, ReductionPacket, ResultCode, Sequence};
pub use cxi_hw::{
    AtomicOp, AtomicType, CompareOp, EventType, List, PtlteState, ReturnCode, StateReason,
    TargetFlags,
};
pub use dma::{Dma, Nomatch};
pub use error::{Error, Failure, Result};
pub use event::{Arrival, Completion, EntryChange, Event, StateChanged, Stopped};
pub use events::{Drain, Events};
pub use immediate::{ImmediatePut, Message, Reduce};
pub use list::{Append, Search, SetState, Unlink};
pub use queue::{Batch, Command, Queue, TargetQueue, TransmitQueue, TriggeredQueue};
pub use rendezvous::Rendezvous;
pub use report::Report;
pub use rest::{Received, Rest};
pub use trigger::Trigger;
