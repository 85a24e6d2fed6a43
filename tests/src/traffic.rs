//! Messages between processes on a node, each with its own open file.

use std::io::{Read, Write};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use cxi::lni::EventQueueOptions;
use cxi::{Device, ServiceId, Vni};
use cxi_hw::{DmaOp, EventType, ReturnCode};

use crate::endpoint::{BUFFER_BYTES, Endpoint, Operation};
use crate::process::Problem;

/// A VNI of the default service.
const VNI: u16 = 10;
/// Another VNI, without a receiver.
const OTHER_VNI: u16 = 1;
/// The default length of a message, in bytes.
pub const MESSAGE: usize = 512;
/// Number of polls for an event without waiting; each later poll waits.
const SPINS: u32 = 2000;
const PAUSE: Duration = Duration::from_micros(100);
/// Time to wait for an event before probing the peer.
const SILENCE: Duration = Duration::from_millis(200);
/// Longest time that the peer may take to start.
const START: Duration = Duration::from_secs(60);

fn endpoint_on(device: &Device, vni: u16, pid: u32) -> Result<Endpoint, Problem> {
    Endpoint::new(device, ServiceId::DEFAULT, Vni::new(vni)?, pid)
}

/// An endpoint that others reach.
///
/// # Errors
///
/// Something could not be allocated.
pub fn endpoint(device: &Device, pid: u32) -> Result<Endpoint, Problem> {
    endpoint_on(device, VNI, pid)
}

/// Line that [`exchange`] prints to standard error when the first message has arrived.
pub const EXCHANGING: &str = "exchanging";

/// Sends a peer messages of some bytes, a multiple of 8 up to [`BUFFER_BYTES`], and gets as many
/// from it, each in response to the one before. Returns `ok`, or that the peer is gone and the NIC's
/// reason.
///
/// # Errors
///
/// A message is not what was sent, or the peer never started.
pub fn exchange(
    device: &Device,
    pid: u32,
    peer: (u32, u32),
    rounds: u64,
    bytes: usize,
) -> Result<String, Problem> {
    let mut exchange = Exchange {
        end: endpoint(device, pid)?,
        peer,
        bytes,
        received: 0,
        unanswered: 0,
        heard: Instant::now(),
        started: Instant::now(),
    };
    let starts = pid < peer.1;
    if starts {
        exchange.send(1)?;
    }
    // An operation without a response may still access this process's memory.
    while exchange.received < rounds || exchange.unanswered > 0 {
        match exchange.next()? {
            (EventType::PUT, ReturnCode::OK) => {
                exchange.received += 1;
                exchange.check()?;
                if exchange.received == 1 {
                    writeln!(std::io::stderr(), "{EXCHANGING}")?;
                }
                let next = exchange.received + u64::from(starts);
                if next <= rounds {
                    exchange.send(next)?;
                }
            }
            (EventType::ACK, ReturnCode::OK) => exchange.unanswered -= 1,
            (EventType::ACK, _) if exchange.received == 0 && exchange.started.elapsed() < START => {
                exchange.unanswered -= 1;
                sleep(PAUSE);
                exchange.send(1)?;
            }
            (EventType::ACK | EventType::REPLY, code)
                if code != ReturnCode::OK && exchange.received > 0 =>
            {
                return Ok(format!("the peer is gone: {code:?}"));
            }
            (EventType::ACK, code) => return Err(format!("no peer: {code:?}").into()),
            _ => {}
        }
    }
    Ok("ok".to_owned())
}

/// Allocates and frees event queues until that fails.
///
/// # Errors
///
/// The failure that ended it.
pub fn make_queues(device: &Device) -> cxi::Result<()> {
    let lni = device.alloc_lni(ServiceId::DEFAULT)?;
    loop {
        drop(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?);
    }
}

struct Exchange {
    end: Endpoint,
    peer: (u32, u32),
    bytes: usize,
    received: u64,
    unanswered: u32,
    heard: Instant,
    started: Instant,
}

impl Exchange {
    fn send(&mut self, round: u64) -> Result<(), Problem> {
        for at in (0..self.bytes).step_by(8) {
            self.end.local.write_u64(at, round)?;
        }
        self.unanswered += 1;
        self.operation(DmaOp::PUT, self.bytes)
    }

    fn operation(&mut self, op: DmaOp, len: usize) -> Result<(), Problem> {
        self.end.send(&Operation {
            op,
            to: self.peer,
            offset: 0,
            local: self.end.local_iova(),
            len: u32::try_from(len)?,
        })
    }

    /// The next event; probes a silent peer with an empty get.
    fn next(&mut self) -> Result<(EventType, ReturnCode), Problem> {
        let mut spins = 0;
        loop {
            if let Some(event) = self.end.event()? {
                self.heard = Instant::now();
                return Ok(event);
            }
            spins += 1;
            if spins < SPINS {
                yield_now();
                continue;
            }
            sleep(PAUSE);
            if self.received > 0 && self.heard.elapsed() > SILENCE {
                self.operation(DmaOp::GET, 0)?;
                self.heard = Instant::now();
            }
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let round = self.received;
        let mut message = vec![0; self.bytes];
        self.end.buffer.read(0, &mut message)?;
        let words = message.chunks_exact(8);
        match words.zip(0..).find(|(word, _)| *word != round.to_le_bytes()) {
            Some((word, at)) => Err(format!("message {round} has {word:?} in word {at}").into()),
            None => Ok(()),
        }
    }
}

/// Exposes a buffer until the standard input ends, and checks that nothing was written there.
///
/// # Errors
///
/// Something was written there.
pub fn hold(device: &Device, pid: u32) -> Result<String, Problem> {
    let end = endpoint(device, pid)?;
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    let mut bytes = vec![0; BUFFER_BYTES];
    end.buffer.read(0, &mut bytes)?;
    match bytes.iter().position(|byte| *byte != 0) {
        Some(at) => Err(format!("byte {at} was written").into()),
        None => Ok("untouched".to_owned()),
    }
}

/// Aims at memory of a victim, and at memory that is not registered, in each way that a command
/// allows. Returns how each attempt ended.
///
/// # Errors
///
/// An attempt did not end.
pub fn intrude(device: &Device, pid: u32, victim: (u32, u32)) -> Result<String, Problem> {
    let mut end = endpoint(device, pid)?;
    let own = end.local_iova();
    end.local.copy_in(0, &vec![0xff; BUFFER_BYTES])?;
    let whole = BUFFER_BYTES as u64;
    // Past the buffer, across its end, around the address space, from and to memory that is not
    // its own, and to a process that does not exist.
    let attempts = [
        (DmaOp::PUT, victim, whole, own),
        (DmaOp::PUT, victim, whole - 32, own),
        (DmaOp::PUT, victim, u64::MAX >> 8, own),
        (DmaOp::GET, victim, whole, own),
        (DmaOp::PUT, victim, 0, 4096),
        (DmaOp::GET, victim, 0, 1 << 46),
        (DmaOp::PUT, (victim.0, victim.1 + 1), 0, own),
    ];
    let mut ends = Vec::new();
    for (op, to, offset, local) in attempts {
        ends.push(attempt(&mut end, op, to, offset, local)?);
    }
    let mut stranger = endpoint_on(device, OTHER_VNI, pid)?;
    let own = stranger.local_iova();
    ends.push(attempt(&mut stranger, DmaOp::PUT, victim, 0, own)?);
    Ok(ends.join(" "))
}

fn attempt(
    end: &mut Endpoint,
    op: DmaOp,
    to: (u32, u32),
    offset: u64,
    local: u64,
) -> Result<String, Problem> {
    const LEN: u32 = 64;
    end.send(&Operation { op, to, offset, local, len: LEN })?;
    let deadline = Instant::now() + START;
    while Instant::now() < deadline {
        match end.event()? {
            Some((EventType::ACK | EventType::REPLY, code)) => return Ok(format!("{code:?}")),
            Some(_) => {}
            None => sleep(PAUSE),
        }
    }
    Err("no answer".into())
}
