//! A long message: a few bytes travel at once, and the NIC of the receiver gets the rest when there is
//! a buffer for it.
#![allow(clippy::print_stdout)]

mod common;

use common::{Node, PATIENCE, Problem};
use cxi::lni::{LeList, PtOptions};
use cxi_data::{Append, Buffer, Event, EventType, Rendezvous, Report, SetState, TargetFlags};

const LEN: usize = 1 << 20;
const TAG: u64 = 1;
/// Tells messages apart that are under way.
const ID: u8 = 7;

fn main() -> Result<(), Problem> {
    let node = Node::new()?;
    let (mut sender, mut receiver) = (node.process()?, node.process()?);

    // A buffer for the message, and a PtlTE of the sender from which NICs get the rest of messages.
    let inbox = Buffer::new(&receiver.lni, LEN)?;
    let entry = Append::new(&receiver.pte, LeList::Priority, inbox.whole());
    let entry = entry.match_bits(TAG).flags(TargetFlags::OP_PUT);
    receiver.target.post(&SetState::enable(&receiver.pte))?;
    receiver.target.post(&entry)?;
    receiver.expect(EventType::LINK, 1)?;
    let queue = Some(sender.events.queue());
    let sources = sender.lni.alloc_pte(PtOptions::IS_MATCHING, queue)?;
    let _mapping = sources.map(&sender.domain, sender.info.rdzv_get_idx)?;
    sender.target.post(&SetState::enable(&sources))?;

    let message = Buffer::new(&sender.lni, LEN)?;
    message.write(LEN - 3, b"end")?;
    let source = Append::source(&sources, message.whole(), ID);
    sender.target.post(&source)?;
    sender.expect(EventType::LINK, 1)?;
    let put = Rendezvous::put(message.whole(), receiver.address.portal(0), ID);
    let put = put.eager(2048).match_bits(TAG);
    let report = Report::event(&sender.events, 1);
    sender.transmit.post(&put.report(report))?;

    loop {
        match receiver.events.wait(PATIENCE)? {
            Event::Arrival(first) => println!("{} bytes at once", first.length),
            Event::Rest(rest) => println!("of {}, by the NIC: {}", rest.requested, rest.is_coming),
            Event::Received(end) => {
                end.result?;
                println!("the other {} have come", end.length);
                break;
            }
            other => return Err(format!("{other:?} came").into()),
        }
    }
    let mut end = [0; 3];
    inbox.read(LEN - 3, &mut end)?;
    assert_eq!(&end, b"end");

    // The sender's buffer is free when the put has ended and the rest was got.
    let (mut ended, mut got) = (false, false);
    while !(ended && got) {
        match sender.events.wait(PATIENCE)? {
            Event::Completion(completion) => {
                completion.result?;
                ended = true;
            }
            Event::Arrival(arrival) => got |= arrival.kind == EventType::GET,
            _ => {}
        }
    }
    println!("the sender's buffer is free");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
