//! Random traffic between processes that come and go.

use std::time::{Duration, Instant};

use cxi::lni::Pid;
use cxi::{Device, Errno, ServiceId, Vni};
use cxi_data::{
    Address, Atomic, AtomicOp, Buffer, Dma, Error, Event, Message, Report, TargetFlags,
};
use cxi_test_kit::Random;

use crate::process::{PATIENCE, Process};

/// A VNI of the default service.
const VNI: u16 = 10;
/// PID of the first place.
const FIRST: u16 = 100;
/// Bytes that each place owns in the memory of every other one: two counters and a block.
const SHARE: usize = 1 << 17;
const COUNTED: usize = 16;
const LONGEST: usize = SHARE - COUNTED;

/// A process in one of several places.
#[derive(Debug)]
struct Roamer {
    process: Process,
    own: Buffer,
    place: u16,
    random: Random,
    /// Numbers of operations that succeeded, and of those that did not reach a peer.
    done: u64,
    lost: u64,
}

/// Takes a place on a NIC and for some time exchanges data with the processes in the others, on all
/// NICs with these addresses. Returns how often that succeeded and failed.
///
/// # Errors
///
/// The bytes that came back are not those that were sent, or the NIC does not respond.
pub fn roam(
    device: &Device,
    nids: &[u32],
    (place, places): (u16, u16),
    time: Duration,
) -> Result<String, Error> {
    let start = Instant::now();
    let mut process = take_place(device, place)?;
    let here = Buffer::new(&process.lni, SHARE * usize::from(places))?;
    let flags = TargetFlags::EVENT_SUCCESS_DISABLE;
    process.expose(&here, flags)?;
    let mut roamer = Roamer {
        own: Buffer::new(&process.lni, 2 * SHARE)?,
        process,
        place,
        random: Random::new(u64::from(std::process::id()) << 16 | u64::from(place)),
        done: 0,
        lost: 0,
    };
    while start.elapsed() < time {
        let nid = nids[roamer.random.below(nids.len())];
        let other = roamer.random.below(places);
        let peer = Address { nid, pid: FIRST + other };
        roamer.visit(peer)?;
    }
    Ok(format!("{} {}", roamer.done, roamer.lost))
}

/// The process that had the place before may not be gone yet.
fn take_place(device: &Device, place: u16) -> Result<Process, Error> {
    let start = Instant::now();
    let vni = Vni::new(VNI).map_err(cxi::Error::from)?;
    let pid = Pid::new((FIRST + place).into()).ok();
    loop {
        match Process::new(device, ServiceId::DEFAULT, vni, pid) {
            Err(Error::Device(error))
                if error.errno() == Errno::EEXIST && start.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            made => return made,
        }
    }
}

impl Roamer {
    /// Puts a block into its share at a peer, gets it back and counts there. Between any two of
    /// these another process may have taken the place, with memory of zeros.
    fn visit(&mut self, peer: Address) -> Result<(), Error> {
        let to = peer.portal(0);
        let share = usize::from(self.place) * SHARE;
        let len = 8 + self.random.below(LONGEST / 8 - 1) * 8;
        // Most messages are small.
        let len = if self.random.below(4) > 0 { 8 + len % 512 / 8 * 8 } else { len };
        let value = u8::try_from(1 + self.random.below(255)).unwrap_or(1);
        let offset = (share + COUNTED) as u64;
        let report = Report::event(&self.process.events, 0);
        self.own.write(0, &vec![value; len])?;
        let put = Dma::put(self.own.slice(0..len)?, to).offset(offset);
        self.process.transmit.post(&put.report(report))?;
        if !self.ended()? {
            return Ok(());
        }
        let back = self.own.slice(SHARE..SHARE + len)?;
        let get = Dma::get(back, to).offset(offset);
        self.process.transmit.post(&get.report(report))?;
        if self.ended()? {
            let mut bytes = vec![0; len];
            self.own.read(SHARE, &mut bytes)?;
            let same = bytes.iter().all(|byte| *byte == bytes[0]);
            if !same || ![0, value].contains(&bytes[0]) {
                return Err(Error::Operands("what came back is not what was sent"));
            }
        }
        let atomic = Atomic::new(AtomicOp::SUM, 1_u64, to).offset(share as u64);
        self.process.transmit.post(&atomic.report(report))?;
        self.ended()?;
        // Nothing matches tag 1.
        let bytes = [value; 64];
        let lost = Message::new(&bytes, to).match_bits(1);
        self.process.transmit.post(&lost.report(report))?;
        self.ended().map(drop)
    }

    /// Waits for the end of an operation. Returns whether it reached a peer.
    fn ended(&mut self) -> Result<bool, Error> {
        loop {
            match self.process.events.wait(PATIENCE)? {
                Event::Completion(completion) => {
                    let taken = completion.result.is_ok();
                    self.done += u64::from(taken);
                    self.lost += u64::from(!taken);
                    return Ok(taken);
                }
                Event::Stopped(stopped) => return Err(Error::Stopped(stopped.failure)),
                _ => {}
            }
        }
    }
}
