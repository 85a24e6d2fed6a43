//! One process writes into the memory of another. Neither has an event for each message: the
//! initiator counts what has ended, and the target what has come.
#![allow(clippy::print_stdout)]

mod common;

use common::{Node, PATIENCE, Problem};
use cxi::lni::LeList;
use cxi_data::{
    Append, Buffer, Counter, CounterCommand, Dma, EventType, Report, SetState, TargetFlags,
};

const BLOCK: usize = 4096;
const BLOCKS: u64 = 16;

fn main() -> Result<(), Problem> {
    let node = Node::new()?;
    let (mut writer, mut owner) = (node.process()?, node.process()?);

    // The owner lends a buffer, and counts the puts that come.
    let window = Buffer::new(&owner.lni, BLOCK * 16)?;
    let came = Counter::new(owner.lni.alloc_ct()?)?;
    let flags = TargetFlags::OP_PUT | TargetFlags::EVENT_SUCCESS_DISABLE;
    let entry = Append::new(&owner.pte, LeList::Priority, window.whole());
    owner.target.post(&SetState::enable(&owner.pte))?;
    owner.target.post(&entry.flags(flags).counted(&came))?;
    owner.expect(EventType::LINK, 1)?;

    // The writer puts block after block: many commands, one doorbell.
    let source = Buffer::new(&writer.lni, BLOCK)?;
    source.write(0, &[7; BLOCK])?;
    let ended = Counter::new(writer.lni.alloc_ct()?)?;
    let report = Report::event(&writer.events, 0).failures_only().counted(&ended);
    let mut batch = writer.transmit.batch();
    for block in 0..BLOCKS {
        let put = Dma::put(source.whole(), owner.address.portal(0));
        batch.push(&put.offset(block * BLOCK as u64).report(report))?;
    }
    drop(batch);

    // A counter is asked for its value; triggered commands could wait for it instead.
    for (counter, process) in [(&ended, &mut writer), (&came, &mut owner)] {
        loop {
            counter.clear();
            process.transmit.post(&CounterCommand::read(counter))?;
            let value = counter.wait(PATIENCE)?;
            assert_eq!(value.failure, 0);
            if value.success == BLOCKS {
                break;
            }
        }
    }
    let mut last = [0; BLOCK];
    window.read(window.len() - BLOCK, &mut last)?;
    assert_eq!(last, [7; BLOCK]);
    println!("{BLOCKS} puts of {BLOCK} bytes, counted on both sides");
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
