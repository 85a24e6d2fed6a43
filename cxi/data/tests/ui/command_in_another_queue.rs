//! A queue takes commands of its kind only.

use cxi_data::{Dma, SetState, TargetQueue, TransmitQueue, TriggeredQueue};

fn put_into_a_target_queue(queue: &mut TargetQueue, put: &Dma<'_>) {
    let _ = queue.post(put);
}

fn put_into_a_triggered_queue(queue: &mut TriggeredQueue, put: &Dma<'_>) {
    let _ = queue.post(put);
}

fn set_state_in_a_transmit_queue(queue: &mut TransmitQueue, state: &SetState) {
    let _ = queue.post(state);
}

fn main() {}
