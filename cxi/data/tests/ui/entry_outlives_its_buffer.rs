//! A list entry cannot be appended when its buffer was given back.

use cxi::lni::{LeList, Pte};
use cxi_data::{Append, Buffer, TargetQueue};

fn append(queue: &mut TargetQueue, pte: &Pte, buffer: Buffer) {
    let entry = Append::new(pte, LeList::Priority, buffer.whole());
    buffer.close().unwrap();
    queue.post(&entry).unwrap();
}

fn main() {}
