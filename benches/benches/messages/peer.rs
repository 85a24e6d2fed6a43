//! Processes that answer each other.

use std::fmt::Display;
use std::io::{BufRead, BufReader, IoSlice, Write, stdin, stdout};
use std::process::{Child, ChildStdout, Command, Stdio};

use cxi::{Device, DeviceId, DeviceMemory, ServiceId, Vni};
use cxi_data::{Address, Buffer, Dma, Error, Event, EventType, Report, Target, TargetFlags};
use cxi_tests::process::{PATIENCE, Process};
use nix::sys::uio::{RemoteIoVec, process_vm_writev};
use nix::unistd::Pid;

use crate::PART;

pub(crate) type Problem = Box<dyn std::error::Error>;

/// A VNI of the default service.
const VNI: u16 = 10;
/// Puts under way at a time.
const WINDOW: u64 = 16;
/// Messages behind one doorbell, of a process that sends to itself.
const BATCH: u64 = 32;
pub(crate) const WORD: usize = size_of::<u64>();

/// Another process of this program, which ends with this.
#[derive(Debug)]
pub(crate) struct Peer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts one with a role, and waits for the line that it prints when it is ready.
    pub(crate) fn start(part: &str, arguments: &[&dyn Display]) -> Result<(Self, String), Problem> {
        let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let mut process = Command::new(std::env::current_exe()?)
            .env(PART, format!("{part} {}", words.join(" ")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let mut peer = Self { process, output: BufReader::new(output) };
        let greeting = peer.hear()?;
        Ok((peer, greeting))
    }

    /// Sends it a number.
    pub(crate) fn say(&mut self, number: impl Display) -> Result<(), Problem> {
        let input = self.process.stdin.as_mut().ok_or("no input")?;
        Ok(writeln!(input, "{number}")?)
    }

    /// The next line that it prints.
    pub(crate) fn hear(&mut self) -> Result<String, Problem> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("the peer has ended".into()),
            _ => Ok(line.trim().to_owned()),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends a line to the process that started this one.
fn tell(text: impl Display) -> Result<(), Problem> {
    writeln!(stdout(), "{text}")?;
    Ok(stdout().flush()?)
}

/// The part of a peer.
pub(crate) fn run(part: &str) -> Result<(), Problem> {
    let words: Vec<&str> = part.split_whitespace().collect();
    match words.as_slice() {
        ["writes", bytes, pid, address] => {
            let mut writes = Memory::new(bytes.parse()?)?;
            writes.peer = Some((Pid::from_raw(pid.parse()?), address.parse()?));
            tell(writes.here.address())?;
            loop {
                writes.receive();
                writes.send();
            }
        }
        ["puts", bytes, nid, pid] => {
            let to = Address { nid: nid.parse()?, pid: pid.parse()? };
            let mut end = End::new(bytes.parse()?, TargetFlags::empty())?;
            tell(end.name())?;
            loop {
                end.process.expect(EventType::PUT, 1)?;
                end.send(to.portal(0))?;
            }
        }
        ["sink", bytes, ..] => {
            let end = End::new(bytes.parse()?, TargetFlags::EVENT_SUCCESS_DISABLE)?;
            tell(end.name())?;
            Ok(stdin().lines().try_for_each(|line| line.map(drop))?)
        }
        ["alone", bytes] => {
            let mut end = End::new(bytes.parse()?, TargetFlags::EVENT_SUCCESS_DISABLE)?;
            tell(end.name())?;
            let to = end.process.address.portal(0);
            for line in stdin().lines() {
                end.stream(to, line?.parse()?, BATCH)?;
                tell("sent")?;
            }
            Ok(())
        }
        _ => Err(format!("{part}: expected the part of a peer").into()),
    }
}

/// Memory that another process writes into: a word that says how often, and bytes.
#[derive(Debug)]
struct Memory {
    here: DeviceMemory,
    from: Vec<u8>,
    round: u64,
    peer: Option<(Pid, u64)>,
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, Problem> {
        Ok(Self {
            here: DeviceMemory::new(WORD + bytes)?,
            from: vec![1; bytes],
            round: 0,
            peer: None,
        })
    }

    /// The bytes, then the word.
    fn send(&self) {
        let Some((pid, address)) = self.peer else { return };
        let remote =
            |at: u64, len| RemoteIoVec { base: usize::try_from(address + at).unwrap_or(0), len };
        let round = self.round.to_ne_bytes();
        let local = [IoSlice::new(&self.from), IoSlice::new(&round)];
        let remote = [remote(WORD as u64, self.from.len()), remote(0, WORD)];
        let _ = process_vm_writev(pid, &local, &remote);
    }

    fn receive(&mut self) {
        self.round += 1;
        while self.here.read_u64(0) != Ok(self.round) {
            std::hint::spin_loop();
        }
    }
}

/// Two processes that write into each other's memory.
#[derive(Debug)]
pub(crate) struct Writes {
    memory: Memory,
    _peer: Peer,
}

impl Writes {
    pub(crate) fn new(bytes: usize) -> Result<Self, Problem> {
        let mut memory = Memory::new(bytes)?;
        let own: [&dyn Display; 3] = [&bytes, &Pid::this(), &memory.here.address()];
        let (peer, address) = Peer::start("writes", &own)?;
        let pid = Pid::from_raw(peer.process.id().try_into()?);
        memory.peer = Some((pid, address.parse()?));
        Ok(Self { memory, _peer: peer })
    }

    pub(crate) fn exchange(&mut self) {
        self.memory.round += 1;
        self.memory.send();
        self.memory.round -= 1;
        self.memory.receive();
    }

    /// One way, to a peer that does not answer what it has already seen.
    pub(crate) fn write(&self) {
        self.memory.send();
    }
}

/// A process on a NIC, what it sends and where others put.
#[derive(Debug)]
struct End {
    process: Process,
    from: Buffer,
    _to: Buffer,
}

impl End {
    fn new(bytes: usize, flags: TargetFlags) -> Result<Self, Problem> {
        let device = Device::open(DeviceId::new(0))?;
        let mut process = Process::new(&device, ServiceId::DEFAULT, Vni::new(VNI)?, None)?;
        let to = Buffer::new(&process.lni, bytes)?;
        process.expose(&to, flags)?;
        let from = Buffer::new(&process.lni, bytes)?;
        from.write(0, &vec![1; bytes])?;
        Ok(Self { process, from, _to: to })
    }

    fn name(&self) -> String {
        let Address { nid, pid } = self.process.address;
        format!("{nid} {pid}")
    }

    fn send(&mut self, to: Target) -> Result<(), Error> {
        let put = Dma::put(self.from.whole(), to);
        self.process.transmit.post(&put)
    }

    /// A number of puts, in batches that share a doorbell.
    fn stream(&mut self, to: Target, mut count: u64, batch: u64) -> Result<(), Error> {
        let last = Report::event(&self.process.events, 0);
        let put = Dma::put(self.from.whole(), to);
        while count > 0 {
            let together = count.min(batch);
            let mut batch = self.process.transmit.batch();
            for _ in 1..together {
                batch.push(&put.report(last.failures_only()))?;
            }
            batch.push(&put.report(last))?;
            drop(batch);
            match self.process.events.wait(PATIENCE)? {
                Event::Completion(completion) => completion.result.map_err(Error::Stopped)?,
                other => panic!("{other:?} came first"),
            }
            count -= together;
        }
        Ok(())
    }
}

/// Two processes of which one puts into the other's memory, or both do in turn.
#[derive(Debug)]
pub(crate) struct Puts {
    end: End,
    to: Target,
    _peer: Peer,
}

impl Puts {
    /// With a peer that answers each put (`puts`), or none (`sink`).
    pub(crate) fn new(part: &str, bytes: usize) -> Result<Self, Problem> {
        let end = End::new(bytes, TargetFlags::empty())?;
        let Address { nid, pid } = end.process.address;
        let (peer, name) = Peer::start(part, &[&bytes, &nid, &pid])?;
        let (nid, pid) = name.split_once(' ').ok_or("no address")?;
        let to = Address { nid: nid.parse()?, pid: pid.parse()? };
        Ok(Self { end, to: to.portal(0), _peer: peer })
    }

    pub(crate) fn exchange(&mut self) -> Result<(), Error> {
        self.end.send(self.to)?;
        self.end.process.expect(EventType::PUT, 1)
    }

    pub(crate) fn stream(&mut self, count: u64) -> Result<(), Error> {
        self.end.stream(self.to, count, WINDOW)
    }
}
