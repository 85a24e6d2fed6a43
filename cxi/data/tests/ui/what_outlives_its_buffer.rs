//! Neither a slice of a buffer nor a command with one outlives the buffer.

use cxi::lni::{LeList, Pte};
use cxi_data::{Append, Buffer, Dma, Rendezvous, Slice, Target, TargetQueue, TransmitQueue};

fn part(buffer: Buffer) -> Slice<'static> {
    buffer.slice(0..8).unwrap()
}

fn post(queue: &mut TransmitQueue, buffer: Buffer, to: Target) {
    let put = Dma::put(buffer.whole(), to);
    drop(buffer);
    queue.post(&put).unwrap();
}

fn append(queue: &mut TargetQueue, pte: &Pte, buffer: Buffer) {
    let entry = Append::new(pte, LeList::Priority, buffer.whole());
    buffer.close().unwrap();
    queue.post(&entry).unwrap();
}

fn send(queue: &mut TransmitQueue, buffer: Buffer, to: Target) {
    let put = Rendezvous::put(buffer.whole(), to, 1);
    drop(buffer);
    queue.post(&put).unwrap();
}

fn expose(queue: &mut TargetQueue, pte: &Pte, buffer: Buffer) {
    let entry = Append::source(pte, buffer.whole(), 1);
    drop(buffer);
    queue.post(&entry).unwrap();
}

fn main() {}
