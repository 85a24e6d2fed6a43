//! Events.

use cxi_hw::{
    CommandFailure, EventSize, EventType, InitiatorShort, List, PtlteState, ReturnCode,
    StateChange, StateReason, TargetLong, TargetShort, TriggeredShort,
};

use crate::{Address, Failure, Received, Rest};

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// SEND, ACK or REPLY: an operation of this process has ended.
    Completion(Completion),
    /// PUT, GET, ATOMIC or FETCH_ATOMIC, one of them with OVERFLOW, MATCH or SEARCH: an operation at a
    /// PtlTE of this process.
    Arrival(Arrival),
    /// RENDEZVOUS: the rest of a [`Rendezvous`](crate::Rendezvous) put can be fetched.
    Rest(Rest),
    /// REPLY of a get that the NIC has issued: the rest of a rendezvous put has arrived.
    Received(Received),
    /// LINK or UNLINK: a list entry was added or removed.
    Entry(EntryChange),
    /// STATE_CHANGE.
    State(StateChanged),
    /// TRIGGERED_OP: a counter has reached a threshold.
    Triggered {
        /// Number of the counter.
        counter: u16,
        /// The threshold.
        threshold: u64,
    },
    /// COMMAND_FAILURE: a command queue has stopped.
    Stopped(Stopped),
    /// An event of another type.
    Other(EventType),
}

/// End of an operation at its initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// SEND, ACK or REPLY.
    pub kind: EventType,
    /// The token of the [`Report`](crate::Report).
    pub token: u64,
    /// Bytes that were moved.
    pub length: u32,
    /// The list that it matched.
    pub list: List,
    /// Result of the operation.
    pub result: Result<(), Failure>,
}

/// An operation at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Arrival {
    /// Kind of the event.
    pub kind: EventType,
    /// The initiator.
    pub initiator: Address,
    /// Number of the PtlTE.
    pub pte: u16,
    /// The list that it matched.
    pub list: List,
    /// The buffer id of the list entry; for SEARCH, that of the command.
    pub buffer_id: u16,
    /// Match bits of the operation.
    pub match_bits: u64,
    /// Header data of the initiator.
    pub header_data: u64,
    /// The VNI.
    pub vni: u16,
    /// Bytes that were moved.
    pub length: u32,
    /// Bytes that were requested; short events lack this.
    pub requested: Option<u32>,
    /// The address of the bytes, for [`Buffer::position`](crate::Buffer::position); short events
    /// lack this.
    pub start: Option<u64>,
    /// The id of the [`Rendezvous`](crate::Rendezvous) put of which these bytes are the first; the
    /// others follow.
    pub rendezvous: Option<u8>,
    /// `true` if the operation has used up the list entry.
    pub unlinked: bool,
    /// Result of the operation.
    pub result: Result<(), Failure>,
}

/// A change of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryChange {
    /// LINK or UNLINK.
    pub kind: EventType,
    /// Number of the PtlTE.
    pub pte: u16,
    /// The list.
    pub list: List,
    /// The buffer id of the list entry.
    pub buffer_id: u16,
    /// `true` if the NIC unlinked it because it was used up.
    pub used_up: bool,
    /// Result of the operation.
    pub result: Result<(), Failure>,
}

/// The state of a PtlTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateChanged {
    /// Number of the PtlTE.
    pub pte: u16,
    /// The current state.
    pub state: PtlteState,
    /// The reason, if the NIC changed it.
    pub reason: Option<StateReason>,
    /// Result: whether the state is the requested one.
    pub result: Result<(), Failure>,
}

/// A command queue that has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Number of the queue among those of its kind.
    pub queue: u16,
    /// `true` if it is a target queue.
    pub is_target: bool,
    /// Its position in the ring, in units of 64 bytes.
    pub unit: u16,
    /// Failure of the command.
    pub failure: Failure,
}

/// The first bytes of a block.
fn head<const N: usize>(block: &[u8; 64]) -> [u8; N] {
    std::array::from_fn(|at| block[at])
}

impl Event {
    /// The event in the first bytes of a block.
    pub(crate) fn decode(block: &[u8; 64], size: EventSize, pid_bits: u32) -> Self {
        let short = InitiatorShort::decode(&head(block));
        let kind = short.event_type;
        // The code is in the last byte of every event.
        let code = ReturnCode(block[size.bytes().max(1) - 1] & 0x3f);
        let result = Failure::check(code);
        match kind {
            EventType::REPLY if short.rendezvous => {
                Self::Received(Received::decode(&short, result))
            }
            EventType::SEND | EventType::ACK | EventType::REPLY => Self::Completion(Completion {
                kind,
                token: short.user_ptr,
                length: short.mlength,
                list: short.ptl_list,
                result,
            }),
            EventType::TRIGGERED_OP => {
                let event = TriggeredShort::decode(&head(block));
                Self::Triggered { counter: event.ct_handle, threshold: event.threshold }
            }
            EventType::COMMAND_FAILURE => {
                let event = CommandFailure::decode(&head(block));
                Self::Stopped(Stopped {
                    queue: event.cq_id,
                    is_target: event.is_target,
                    unit: event.fail_loc,
                    failure: Failure(code),
                })
            }
            _ if size == EventSize::BYTES_64 => Self::of_target(block, pid_bits, result),
            EventType::PUT | EventType::GET | EventType::ATOMIC | EventType::FETCH_ATOMIC => {
                Self::Arrival(Arrival::decode(block, pid_bits, result))
            }
            _ => Self::Other(kind),
        }
    }

    fn of_target(block: &[u8; 64], pid_bits: u32, result: Result<(), Failure>) -> Self {
        let event = TargetLong::decode(block);
        let kind = event.event_type;
        let pte = event.ptlte_index;
        match kind {
            EventType::LINK | EventType::UNLINK => Self::Entry(EntryChange {
                kind,
                pte,
                list: event.ptl_list,
                buffer_id: event.buffer_id,
                used_up: event.auto_unlinked,
                result,
            }),
            EventType::STATE_CHANGE => {
                let change = StateChange::decode(event.initiator.0);
                Self::State(StateChanged {
                    pte,
                    state: change.state,
                    reason: change.by_nic.then_some(change.reason),
                    result,
                })
            }
            EventType::PUT
            | EventType::GET
            | EventType::ATOMIC
            | EventType::FETCH_ATOMIC
            | EventType::PUT_OVERFLOW
            | EventType::GET_OVERFLOW
            | EventType::ATOMIC_OVERFLOW
            | EventType::FETCH_ATOMIC_OVERFLOW
            | EventType::MATCH
            | EventType::SEARCH => Self::Arrival(Arrival {
                length: event.mlength,
                requested: Some(event.rlength),
                start: Some(event.start),
                rendezvous: event.rendezvous.then_some(event.rendezvous_id),
                ..Arrival::decode(block, pid_bits, result)
            }),
            EventType::RENDEZVOUS => Self::Rest(Rest::decode(&event, pid_bits)),
            _ => Self::Other(kind),
        }
    }
}

impl Arrival {
    /// Decodes a short event. A long one begins in the same way, except for the length.
    fn decode(block: &[u8; 64], pid_bits: u32, result: Result<(), Failure>) -> Self {
        let event = TargetShort::decode(&head(block));
        Self {
            kind: event.event_type,
            initiator: Address::of_initiator(event.initiator, pid_bits),
            pte: event.ptlte_index,
            list: event.ptl_list,
            buffer_id: event.buffer_id,
            match_bits: event.match_bits,
            header_data: event.header_data,
            vni: event.vni,
            length: event.length,
            requested: None,
            start: None,
            rendezvous: None,
            unlinked: event.auto_unlinked,
            result,
        }
    }
}
