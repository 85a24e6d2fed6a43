//! While a batch is open, its queue has no other writer.

use cxi_data::{Dma, TransmitQueue};

fn both(queue: &mut TransmitQueue, put: &Dma<'_>) {
    let mut batch = queue.batch();
    queue.post(put).unwrap();
    batch.push(put).unwrap();
}

fn main() {}
