//! The form of messages on the wire.

use cxi_data::collective::{Cause, Combine, Failure, Message, Operation, Packet, State};
use proptest::prelude::*;

#[test]
fn a_packet_is_what_it_was() {
    let failure = Failure { rank: 3, cause: Cause::OutOfStep };
    for message in [
        Message::Ready(Operation::Barrier, [0; 8]),
        Message::Ping,
        Message::Pong,
        Message::Ready(Operation::Allreduce(Combine::Or), [u64::MAX, 1, 2, 3, 4, 5, 6, 7]),
        Message::Release([7; 8]),
        Message::Released,
        Message::Ask,
        Message::Status(State::Exiting, 12),
        Message::Failed(failure),
    ] {
        let packet = Packet { group: 1, from: 2, transaction: u32::MAX, message };
        assert_eq!(Packet::decode(&packet.encode()), Some(packet));
    }
}

proptest! {
    #[test]
    fn bytes_that_are_no_packet_are_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        start in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if start && bytes.len() >= 4 {
            bytes[..4].copy_from_slice(b"cxC1");
        }
        if let Some(packet) = Packet::decode(&bytes) {
            prop_assert_eq!(bytes.len(), Packet::BYTES);
            prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
        }
    }
}
