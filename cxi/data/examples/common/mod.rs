//! What the examples run on: a mock node that works by itself, and processes on it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "not every example uses everything"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueueOptions, LeList, PtOptions, Pte, PteMapping,
    TgqOptions, TxqOptions,
};
use cxi::{Device, DeviceInfo, Lni, ServiceId, ServiceSpec, TrafficClass, Vni};
use cxi_data::{
    Address, Append, Buffer, Event, Events, SetState, TargetFlags, TargetQueue, TransmitQueue,
};
use cxi_mock::{MockNode, NicConfig};

pub type Problem = Box<dyn std::error::Error + Send + Sync>;

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const VNI: u16 = 1024;

/// A node with a NIC. A real one works by itself; this one has a thread for that.
pub struct Node {
    nics: Arc<MockNode>,
    service: ServiceId,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    pub fn new() -> Result<Self, Problem> {
        let nics = Arc::new(MockNode::with_nics(1, &NicConfig::new())?);
        let service = service(&device(&nics)?)?;
        let ended = Arc::new(AtomicBool::new(false));
        let (works, until) = (Arc::clone(&nics), Arc::clone(&ended));
        let thread = thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                if !works.nics()[0].step() {
                    thread::yield_now();
                }
            }
        });
        Ok(Self {
            nics,
            service,
            ended,
            thread: Some(thread),
        })
    }

    /// A process with everything that it needs to communicate.
    pub fn process(&self) -> Result<Process, Problem> {
        Process::new(&device(&self.nics)?, self.service, VNI)
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
pub fn device(nics: &MockNode) -> Result<Device, Problem> {
    Ok(Device::from(nics.nics()[0].root()?))
}

/// A service that lets processes use the NIC.
pub fn service(device: &Device) -> Result<ServiceId, Problem> {
    let spec = ServiceSpec::builder().vni(Vni::new(VNI)?).build()?;
    Ok(device.services().create(&spec)?)
}

/// Queues, and a PtlTE that others reach at portal index 0.
pub struct Process {
    pub address: Address,
    pub transmit: TransmitQueue,
    pub target: TargetQueue,
    pub events: Events,
    pub pte: Pte,
    pub info: DeviceInfo,
    pub lni: Lni,
    pub domain: Domain,
    _mapping: PteMapping,
    _profile: CommunicationProfile,
}

impl Process {
    pub fn new(device: &Device, service: ServiceId, vni: u16) -> Result<Self, Problem> {
        let (info, vni) = (device.info()?, Vni::new(vni)?);
        let lni = device.alloc_lni(service)?;
        let events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?, &info)?;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let domain = lni.alloc_domain(vni, None)?;
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

    /// Lets others put into a buffer and get from it.
    pub fn expose(&mut self, buffer: &Buffer) -> Result<(), Problem> {
        let flags = TargetFlags::OP_PUT | TargetFlags::OP_GET;
        let entry = Append::new(&self.pte, LeList::Priority, buffer.whole()).flags(flags);
        self.target.post(&SetState::enable(&self.pte))?;
        self.target.post(&entry)?;
        self.expect(2)
    }

    /// Takes note that PtlTE and list entries are ready.
    pub fn expect(&mut self, events: usize) -> Result<(), Problem> {
        for _ in 0..events {
            match self.events.wait(PATIENCE)? {
                Event::State(change) => change.result?,
                Event::Entry(change) => change.result?,
                other => return Err(format!("{other:?} came first").into()),
            }
        }
        Ok(())
    }
}
