//! A command cannot be posted when its buffer is gone.

use cxi_data::{Buffer, Dma, Target, TransmitQueue};

fn post(queue: &mut TransmitQueue, buffer: Buffer, to: Target) {
    let put = Dma::put(buffer.whole(), to);
    drop(buffer);
    queue.post(&put).unwrap();
}

fn main() {}
