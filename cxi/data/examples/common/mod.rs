//! Surroundings of the examples: a mock node that works by itself, and processes on it.
#![allow(dead_code, unreachable_pub, reason = "not every example uses everything")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueueOptions, LeList, Pid, PtOptions, Pte, PteMapping,
    TgqOptions, TxqOptions,
};
use cxi::{Device, DeviceInfo, Lni, ServiceId, ServiceSpec, TrafficClass, Vni};
use cxi_data::{
    Address, Append, Arrival, Buffer, Error, Event, EventType, Events, SetState, TargetFlags,
    TargetQueue, TransmitQueue,
};
use cxi_mock::{MockNode, NicConfig};

/// Anything that can go wrong.
pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// Longest time that anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The VNI of the service.
pub const VNI: u16 = 1024;

/// A node with a NIC. A real one works by itself; this one has a thread for that.
#[derive(Debug)]
pub struct Node {
    nics: Arc<MockNode>,
    service: ServiceId,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// A node with a service for its processes.
    ///
    /// # Errors
    ///
    /// The mock does not start.
    pub fn new() -> Result<Self, Problem> {
        let nics = Arc::new(MockNode::with_nics(1, &NicConfig::new())?);
        let service = service(&device(&nics)?)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (works, until) = (Arc::clone(&nics), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                if !works.nics()[0].run_until_idle() {
                    thread::yield_now();
                }
            }
        });
        Ok(Self { nics, service, ended, thread: Some(thread) })
    }

    /// A process with everything that it needs to communicate.
    ///
    /// # Errors
    ///
    /// As [`Process::new`].
    pub fn process(&self) -> Result<Process, Problem> {
        Ok(Process::new(&device(&self.nics)?, self.service, Vni::new(VNI)?, None)?)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// On a node with a NIC: `Device::open(DeviceId::new(0))`.
///
/// # Errors
///
/// The NIC cannot be opened.
pub fn device(nics: &MockNode) -> Result<Device, Problem> {
    Ok(Device::cxi0(nics.nics()[0].root()?))
}

/// A service that lets processes use the NIC.
///
/// # Errors
///
/// It cannot be created.
pub fn service(device: &Device) -> Result<ServiceId, Problem> {
    let spec = ServiceSpec::builder().vni(Vni::new(VNI)?).build()?;
    Ok(device.services().create(&spec)?)
}

/// Queues, and a PtlTE with matching that others reach at portal index 0.
#[derive(Debug)]
pub struct Process {
    /// Its address on the fabric.
    pub address: Address,
    /// For its operations.
    pub transmit: TransmitQueue,
    /// For its lists.
    pub target: TargetQueue,
    /// Queue in which everything is reported.
    pub events: Events,
    /// Its PtlTE, which is not enabled yet.
    pub pte: Pte,
    /// Its NIC.
    pub info: DeviceInfo,
    /// For its memory.
    pub lni: Lni,
    /// Its VNI and PID.
    pub domain: Domain,
    _mapping: PteMapping,
    _profile: CommunicationProfile,
}

impl Process {
    /// A process on a VNI of a service, with this PID or any.
    ///
    /// # Errors
    ///
    /// Something cannot be allocated, or its windows cannot be mapped.
    pub fn new(
        device: &Device,
        service: ServiceId,
        vni: Vni,
        pid: Option<Pid>,
    ) -> Result<Self, Error> {
        let info = device.info()?;
        let lni = device.alloc_lni(service)?;
        let events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?, &info)?;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let domain = lni.alloc_domain(vni, pid)?;
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(events.queue()))?;
        let options = TxqOptions::new(256).event_queue(events.queue());
        let transmit = TransmitQueue::new(lni.alloc_txq(&profile, &options)?, &info, &domain)?;
        let options = TgqOptions::new(256).event_queue(events.queue());
        let target = TargetQueue::new(lni.alloc_tgq(&options)?, &info)?;
        Ok(Self {
            address: Address::new(&info, &domain),
            transmit,
            target,
            events,
            _mapping: pte.map(&domain, 0)?,
            pte,
            info,
            lni,
            domain,
            _profile: profile,
        })
    }

    /// Lets others put into a buffer and get from it, and whatever else the flags say.
    ///
    /// # Errors
    ///
    /// The NIC refuses that, or does not work.
    pub fn expose(&mut self, buffer: &Buffer, flags: TargetFlags) -> Result<(), Error> {
        let flags = flags | TargetFlags::OP_PUT | TargetFlags::OP_GET;
        let entry = Append::new(&self.pte, LeList::Priority, buffer.whole()).flags(flags);
        self.target.post(&SetState::enable(&self.pte))?;
        self.target.post(&entry)?;
        self.expect(EventType::LINK, 1)
    }

    /// Waits for an arrival of a kind, and reads the events that come before it.
    ///
    /// # Errors
    ///
    /// It has failed, or does not come.
    pub fn arrival(&mut self, kind: EventType) -> Result<Arrival, Error> {
        loop {
            match self.events.wait(PATIENCE)? {
                Event::Arrival(arrival) if arrival.kind == kind => {
                    return arrival.result.map(|()| arrival).map_err(Error::Stopped);
                }
                Event::Stopped(stopped) => return Err(Error::Stopped(stopped.failure)),
                _ => {}
            }
        }
    }

    /// Waits for a number of events of a kind at its PtlTEs, and reads those that come before them.
    ///
    /// # Errors
    ///
    /// One has failed, or does not come.
    pub fn expect(&mut self, kind: EventType, mut count: u32) -> Result<(), Error> {
        while count > 0 {
            let (found, result) = match self.events.wait(PATIENCE)? {
                Event::State(change) => (EventType::STATE_CHANGE, change.result),
                Event::Entry(change) => (change.kind, change.result),
                Event::Arrival(arrival) => (arrival.kind, arrival.result),
                _ => continue,
            };
            result.map_err(Error::Stopped)?;
            count -= u32::from(found == kind);
        }
        Ok(())
    }
}
