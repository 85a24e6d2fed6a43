//! There are no references to bytes that the NIC may change.

use cxi_data::Buffer;

fn bytes(buffer: &Buffer) -> &[u8] {
    &buffer[..]
}

fn main() {}
