//! While a batch is open, nobody else writes into its queue.

use cxi_data::{Dma, TransmitQueue};

fn both(queue: &mut TransmitQueue, put: &Dma<'_>) {
    let mut batch = queue.batch();
    queue.post(put).unwrap();
    batch.push(put).unwrap();
}

fn main() {}
