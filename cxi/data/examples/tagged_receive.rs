//! Messages with tags, one of which arrives before there is a receive for it.
#![allow(clippy::print_stdout)]

mod common;

use common::{Node, Problem};
use cxi::lni::LeList;
use cxi_data::{Append, Arrival, Buffer, EventType, Message, Report, SetState, TargetFlags};

/// The bytes of a message, wherever they are.
fn text(buffer: &Buffer, arrival: &Arrival) -> Result<String, Problem> {
    let start = arrival.start.and_then(|start| buffer.position(start));
    let mut bytes = vec![0; arrival.length as usize];
    buffer.read(start.unwrap_or(0), &mut bytes)?;
    Ok(String::from_utf8(bytes)?)
}

fn main() -> Result<(), Problem> {
    let node = Node::new()?;
    let (mut sender, mut receiver) = (node.process()?, node.process()?);

    // Messages without a receive go into the overflow list, one after the other.
    let overflow = Buffer::new(&receiver.lni, 1 << 16)?;
    let entry = Append::new(&receiver.pte, LeList::Overflow, overflow.whole());
    let entry = entry.ignore(u64::MAX).managed(1024);
    receiver.target.post(&SetState::enable(&receiver.pte))?;
    receiver.target.post(&entry.flags(TargetFlags::OP_PUT))?;
    receiver.expect(EventType::LINK, 1)?;

    let to = receiver.address.portal(0);
    let early = Message::new(b"early", to).match_bits(1);
    sender.transmit.post(&early.report(Report::event(&sender.events, 1)))?;
    let unexpected = receiver.arrival(EventType::PUT)?;
    println!("tag {}: unexpected, {} bytes", unexpected.match_bits, unexpected.length);

    // A receive with its tag finds the message, and says where its bytes are.
    let inbox = Buffer::new(&receiver.lni, 4096)?;
    let receive = |tag: u16| {
        let receive = Append::new(&receiver.pte, LeList::Priority, inbox.whole());
        let receive = receive.match_bits(tag.into()).buffer_id(tag);
        receive.use_once().flags(TargetFlags::OP_PUT)
    };
    let (first, second) = (receive(1), receive(2));
    receiver.target.post(&first)?;
    let found = receiver.arrival(EventType::PUT_OVERFLOW)?;
    assert_eq!((found.buffer_id, text(&overflow, &found)?.as_str()), (1, "early"));
    println!("tag 1: found in the overflow list");

    // One that waits gets its message straight into its buffer.
    receiver.target.post(&second)?;
    sender.transmit.post(&Message::new(b"in time", to).match_bits(2))?;
    let expected = receiver.arrival(EventType::PUT)?;
    assert_eq!((expected.buffer_id, text(&inbox, &expected)?.as_str()), (2, "in time"));
    println!("tag 2: straight into its buffer");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
