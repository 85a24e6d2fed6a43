//! An event as a line of the trace.

use serde::Serialize;

use cxi_hw::{
    CommandFailure, EventSize, EventType, InitiatorShort, ReturnCode, StateChange, TargetLong,
    TargetShort, TriggeredShort,
};

use super::tap::SeenEvent;

/// An event, with those of its fields that its type has.
#[derive(Debug, Default, Serialize)]
pub(super) struct EventLine<'a> {
    device: &'a str,
    /// Name of its type, or the number.
    event: String,
    /// Number of the event queue.
    queue: u16,
    /// `OK`, or why not.
    result: String,
    /// The queue was full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    lost: bool,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Debug, Default, Serialize)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    user_pointer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    portal: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffer_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_bits: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_queue: Option<u16>,
}

fn head<const N: usize>(event: &[u8; 64]) -> [u8; N] {
    std::array::from_fn(|at| event[at])
}

fn hexadecimal(value: u64) -> String {
    format!("{value:#x}")
}

impl<'a> EventLine<'a> {
    pub(super) fn new(device: &'a str, seen: &SeenEvent) -> Self {
        let event = &seen.bytes;
        let short = InitiatorShort::decode(&head(event));
        let last = short.event_size.bytes().max(1) - 1;
        Self {
            device,
            event: short.event_type.to_string(),
            queue: seen.queue,
            result: ReturnCode(event[last] & 0x3f).to_string(),
            lost: seen.lost,
            fields: Fields::new(&short, event),
        }
    }
}

impl Fields {
    fn new(short: &InitiatorShort, event: &[u8; 64]) -> Self {
        match short.event_type {
            EventType::SEND | EventType::ACK | EventType::REPLY => Self {
                user_pointer: Some(hexadecimal(short.user_ptr)),
                length: Some(short.mlength),
                ..Self::default()
            },
            EventType::TRIGGERED_OP => {
                let event = TriggeredShort::decode(&head(event));
                Self {
                    counter: Some(event.ct_handle),
                    threshold: Some(event.threshold),
                    ..Self::default()
                }
            }
            EventType::COMMAND_FAILURE => Self {
                command_queue: Some(CommandFailure::decode(&head(event)).cq_id),
                ..Self::default()
            },
            EventType::STATE_CHANGE => {
                let event = TargetLong::decode(event);
                let change = StateChange::decode(event.initiator.0);
                Self {
                    portal: Some(event.ptlte_index),
                    state: Some(change.state.to_string()),
                    ..Self::default()
                }
            }
            _ if short.event_size == EventSize::BYTES_64 => {
                let event = TargetLong::decode(event);
                Self {
                    portal: Some(event.ptlte_index),
                    list: Some(event.ptl_list.to_string()),
                    buffer_id: Some(event.buffer_id),
                    match_bits: Some(hexadecimal(event.match_bits)),
                    length: Some(event.mlength),
                    ..Self::default()
                }
            }
            _ if short.event_size == EventSize::BYTES_32 => {
                let event = TargetShort::decode(&head(event));
                Self {
                    portal: Some(event.ptlte_index),
                    list: Some(event.ptl_list.to_string()),
                    buffer_id: Some(event.buffer_id),
                    match_bits: Some(hexadecimal(event.match_bits)),
                    length: Some(event.length),
                    ..Self::default()
                }
            }
            _ => Self::default(),
        }
    }
}
