#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod codes;
mod command;
mod event;
mod layout;
pub mod reduction;
mod ring;
mod state;
mod target;
mod transmit;
mod value;

pub use address::{
    ENDPOINT_DEFINED_BITS, FabricAddress, MULTICAST_ID_BITS, MatchId, NID_BITS, StateChange,
};
pub use codes::{
    AtomicOp, AtomicType, Class, CompareOp, CqOp, CtOp, DmaOp, EventSize, EventType, List,
    PtlteState, ReturnCode, StateReason, TargetOp,
};
pub use command::{CommandByte, DmaFlags, MAX_IDC_PAYLOAD, SLOT_BYTES, TargetFlags};
pub use event::{
    CommandFailure, EqSwitch, InitiatorLong, InitiatorShort, TargetLong, TargetShort, Timestamp,
    TriggeredLong, TriggeredShort,
};
use layout::layouts;
pub use layout::{Field, Layout};
pub use ring::{CounterDoorbell, command_ring, event_ring, launch_page};
pub use state::{CqStatus, CtWriteback, EqState, EqStatus, RendezvousMatchBits, RendezvousUserPtr};
pub use target::{SetState, TargetCommand};
pub use transmit::{
    CState, CqCommand, CtCommand, DmaAtomic, FullDma, IdcAtomic, IdcHeader, IdcMessage, NomatchDma,
    SmallAtomic,
};
