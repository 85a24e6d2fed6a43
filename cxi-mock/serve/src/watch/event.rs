//! An event as a line of the trace.

use cxi_hw::{
    CommandFailure, EventSize, EventType, InitiatorShort, ReturnCode, StateChange, TargetLong,
    TargetShort, TriggeredShort,
};

use serde_json::{Value, json};

use super::tap::SeenEvent;
use crate::trace::merge;

/// An event as an object: type, queue and result, and the fields that its type has.
pub(super) fn line(device: &str, seen: &SeenEvent) -> Value {
    let event = &seen.bytes;
    let short = InitiatorShort::decode(&head(event));
    let last = short.event_size.bytes().max(1) - 1;
    let mut line = json!({
        "device": device,
        // The name of its type, or the number.
        "event": short.event_type.to_string(),
        "queue": seen.queue,
        // `OK`, or the error.
        "result": ReturnCode(event[last] & 0x3f).to_string(),
    });
    if seen.lost {
        // The queue was full.
        merge(&mut line, json!({"lost": true}));
    }
    merge(&mut line, fields(&short, event));
    line
}

fn head<const N: usize>(event: &[u8; 64]) -> [u8; N] {
    std::array::from_fn(|at| event[at])
}

fn hexadecimal(value: u64) -> String {
    format!("{value:#x}")
}

fn fields(short: &InitiatorShort, event: &[u8; 64]) -> Value {
    match short.event_type {
        EventType::SEND | EventType::ACK | EventType::REPLY => json!({
            "user_pointer": hexadecimal(short.user_ptr),
            "length": short.mlength,
        }),
        EventType::TRIGGERED_OP => {
            let event = TriggeredShort::decode(&head(event));
            json!({"counter": event.ct_handle, "threshold": event.threshold})
        }
        EventType::COMMAND_FAILURE => {
            json!({"command_queue": CommandFailure::decode(&head(event)).cq_id})
        }
        EventType::STATE_CHANGE => {
            let event = TargetLong::decode(event);
            let change = StateChange::decode(event.initiator.0);
            json!({"portal": event.ptlte_index, "state": change.state.to_string()})
        }
        _ if short.event_size == EventSize::BYTES_64 => {
            let event = TargetLong::decode(event);
            json!({
                "portal": event.ptlte_index,
                "list": event.ptl_list.to_string(),
                "buffer_id": event.buffer_id,
                "match_bits": hexadecimal(event.match_bits),
                "length": event.mlength,
            })
        }
        _ if short.event_size == EventSize::BYTES_32 => {
            let event = TargetShort::decode(&head(event));
            json!({
                "portal": event.ptlte_index,
                "list": event.ptl_list.to_string(),
                "buffer_id": event.buffer_id,
                "match_bits": hexadecimal(event.match_bits),
                "length": event.length,
            })
        }
        _ => Value::Null,
    }
}
