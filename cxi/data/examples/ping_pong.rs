//! Two processes send each other a message in turn, and measure how long it is under way.
#![allow(clippy::print_stdout)]

mod common;

use std::thread;
use std::time::Instant;

use common::{Node, Problem, Process};
use cxi_data::{Address, Buffer, EventType, ImmediatePut, TargetFlags};

const ROUNDS: u32 = 200;

/// Waits for the message of a round, which is its number.
fn receive(process: &mut Process, inbox: &Buffer, round: u32) -> Result<(), Problem> {
    process.arrival(EventType::PUT)?;
    let mut message = [0; 4];
    inbox.read(0, &mut message)?;
    assert_eq!(u32::from_le_bytes(message), round);
    Ok(())
}

fn send(process: &mut Process, to: Address, round: u32) -> Result<(), Problem> {
    let message = round.to_le_bytes();
    Ok(process.transmit.post(&ImmediatePut::new(&message, to.portal(0)))?)
}

fn main() -> Result<(), Problem> {
    let node = Node::new()?;
    let (mut near, mut far) = (node.process()?, node.process()?);
    let inboxes = [Buffer::new(&near.lni, 4)?, Buffer::new(&far.lni, 4)?];
    near.expose(&inboxes[0], TargetFlags::empty())?;
    far.expose(&inboxes[1], TargetFlags::empty())?;
    let (here, there) = (near.address, far.address);

    thread::scope(|scope| {
        let answers = scope.spawn(|| {
            for round in 0..ROUNDS {
                receive(&mut far, &inboxes[1], round)?;
                send(&mut far, here, round)?;
            }
            Ok::<_, Problem>(())
        });
        let start = Instant::now();
        for round in 0..ROUNDS {
            send(&mut near, there, round)?;
            receive(&mut near, &inboxes[0], round)?;
        }
        let each = start.elapsed() / (2 * ROUNDS);
        println!("{ROUNDS} rounds, {each:?} for a message of 4 bytes");
        answers.join().map_err(|_| "the other process has failed")?
    })
}

#[test]
fn it_runs() {
    main().unwrap();
}
