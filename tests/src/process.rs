//! A program with everything that it needs to communicate, on any device.

use std::time::Duration;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueueOptions, LeList, Pid, PtOptions, Pte, PteMapping,
    TgqOptions, TxqOptions,
};
use cxi::{Device, Lni, ServiceId, TrafficClass, Vni};
use cxi_data::{
    Address, Append, Buffer, Error, Event, EventType, Events, SetState, TargetFlags, TargetQueue,
    TransmitQueue,
};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Units of its transmit queue.
const UNITS: u32 = 1024;

/// Queues, and a PtlTE with matching that others reach at portal index 0.
#[derive(Debug)]
pub struct Process {
    /// Where everything is reported.
    pub events: Events,
    /// For what it sends.
    pub transmit: TransmitQueue,
    /// For its lists.
    pub target: TargetQueue,
    /// Its PtlTE, which is not enabled yet.
    pub pte: Pte,
    /// Who it is for others.
    pub address: Address,
    /// For its memory.
    pub lni: Lni,
    _mapping: PteMapping,
    _domain: Domain,
    _profile: CommunicationProfile,
}

impl Process {
    /// One on a VNI of a service, with a PID of its own choice or the NIC's.
    ///
    /// # Errors
    ///
    /// Something could not be allocated, or windows cannot be mapped.
    pub fn new(
        device: &Device,
        service: ServiceId,
        vni: Vni,
        pid: Option<Pid>,
    ) -> Result<Self, Error> {
        let info = device.info()?;
        let lni = device.alloc_lni(service)?;
        let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
        let events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 20))?, &info)?;
        let domain = lni.alloc_domain(vni, pid)?;
        let options = TxqOptions::new(UNITS).event_queue(events.queue());
        let txq = lni.alloc_txq(&profile, &options)?;
        let tgq = lni.alloc_tgq(&TgqOptions::new(64).event_queue(events.queue()))?;
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(events.queue()))?;
        Ok(Self {
            transmit: TransmitQueue::new(txq, &info, &domain)?,
            target: TargetQueue::new(tgq, &info)?,
            address: Address::new(&info, &domain),
            _mapping: pte.map(&domain, 0)?,
            events,
            pte,
            lni,
            _domain: domain,
            _profile: profile,
        })
    }

    /// Lets others put into a buffer, get from it and change numbers in it, by match bits 0.
    ///
    /// # Errors
    ///
    /// The NIC refuses that.
    pub fn expose(&mut self, buffer: &Buffer, flags: TargetFlags) -> Result<(), Error> {
        let entry = Append::new(&self.pte, LeList::Priority, buffer.whole());
        let flags = flags | TargetFlags::OP_PUT | TargetFlags::OP_GET;
        self.target.post(&SetState::enable(&self.pte))?;
        self.target.post(&entry.flags(flags))?;
        self.expect(EventType::LINK, 1)
    }

    /// Waits for so many events of a kind, at its own PtlTE.
    ///
    /// # Errors
    ///
    /// One has failed, or does not come.
    pub fn expect(&mut self, kind: EventType, mut count: u32) -> Result<(), Error> {
        while count > 0 {
            let (found, result) = match self.events.wait(PATIENCE)? {
                Event::Arrival(arrival) => (arrival.kind, arrival.result),
                Event::Entry(change) => (change.kind, change.result),
                _ => continue,
            };
            result.map_err(Error::Stopped)?;
            count -= u32::from(found == kind);
        }
        Ok(())
    }
}
