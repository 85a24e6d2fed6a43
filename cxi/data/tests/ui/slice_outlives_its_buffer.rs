//! A slice does not outlive its buffer.

use cxi_data::{Buffer, Slice};

fn part(buffer: Buffer) -> Slice<'static> {
    buffer.slice(0..8).unwrap()
}

fn main() {}
