//! Traffic between two processes, for tests of what shows it.

use std::process::Command;

use cxi::lni::LeList;
use cxi::{Device, DeviceId, Errno, ServiceId, Vni};
use cxi_data::{
    Append, Buffer, Error, Event, EventType, Message, Report, ReturnCode, SetState, TargetFlags,
};

use crate::client::Problem;
use crate::process::{PATIENCE, Process};

/// A VNI of the default service.
const VNI: u16 = 10;
/// Tags of the message that is expected, and of the one that is not.
const EXPECTED: u64 = 5;
const UNEXPECTED: u64 = 0x1_0000_0000;
/// A portal index without a PtlTE.
const NOWHERE: u16 = 7;

/// Sends a message that is expected, one that is not, and one to a portal without a PtlTE, then runs a program and
/// returns its output, or the errno of `mmap(2)` where windows cannot be mapped.
///
/// # Errors
///
/// The unexpected result.
pub fn send(id: DeviceId, program: &[&str]) -> Result<String, Problem> {
    match exchange(id, program) {
        Err(Error::Device(error)) if error.errno() == Errno::ENODEV => Ok("ENODEV".to_owned()),
        done => done.map_err(|error| error.to_string()),
    }
}

fn exchange(id: DeviceId, program: &[&str]) -> Result<String, Error> {
    let device = Device::open(id)?;
    let vni = Vni::new(VNI).map_err(cxi::Error::from)?;
    let process = || Process::new(&device, ServiceId::DEFAULT, vni, None);
    let (mut one, mut two) = (process()?, process()?);
    let buffer = Buffer::new(&two.lni, 8192)?;
    let puts = TargetFlags::OP_PUT;
    let priority = Append::new(&two.pte, LeList::Priority, buffer.slice(0..4096)?);
    let overflow = Append::new(&two.pte, LeList::Overflow, buffer.slice(4096..8192)?);
    two.target.post(&SetState::enable(&two.pte))?;
    let priority = priority.match_bits(EXPECTED).buffer_id(21);
    two.target.post(&priority.flags(puts))?;
    let overflow = overflow.ignore(u64::MAX).managed(64).buffer_id(22);
    two.target.post(&overflow.flags(puts))?;
    two.expect(EventType::LINK, 2)?;

    let here = two.address.portal(0);
    let mut batch = one.transmit.batch();
    batch.push(&Message::new(&[1; 100], here).match_bits(EXPECTED))?;
    batch.push(&Message::new(&[2; 24], here).match_bits(UNEXPECTED))?;
    let lost = Message::new(b"", two.address.portal(NOWHERE));
    batch.push(&lost.report(Report::event(&one.events, 0xfeed)))?;
    drop(batch);
    two.expect(EventType::PUT, 2)?;
    match one.events.wait(PATIENCE)? {
        Event::Completion(it)
            if it.result.err().map(|it| it.0) == Some(ReturnCode::PTLTE_NOT_FOUND) => {}
        _ => return Err(Error::TimedOut(PATIENCE)),
    }
    let Some((program, arguments)) = program.split_first() else { return Ok("sent".to_owned()) };
    let output = Command::new(program).args(arguments).output();
    let printed = output.map_or_else(|error| error.to_string().into(), |output| output.stdout);
    Ok(String::from_utf8_lossy(&printed).into_owned())
}
