//! The source of a rendezvous put cannot be gone when it is exposed or sent.

use cxi::lni::Pte;
use cxi_data::{Append, Buffer, Rendezvous, Target, TargetQueue, TransmitQueue};

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
