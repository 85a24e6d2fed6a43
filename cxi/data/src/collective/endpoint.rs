//! The link of a group's member to the NIC.

use std::time::Duration;

use cxi::lni::{
    CommunicationProfile, Domain, EventQueueOptions, LeList, Pid, PtOptions, Pte, PteMapping,
    TgqOptions, TxqOptions,
};
use cxi::{Device, DeviceInfo, Lni, ServiceId, TrafficClass, Vni};

use super::{Error, Group, Packet, Pings, Timing};
use crate::{
    Address, Append, Arrival, Buffer, Event, Events, Failure, ImmediatePut, Report, Result,
    SetState, TargetFlags, TargetQueue, TransmitQueue,
};

/// Messages for which there is room at a time. Further ones are lost, and sent again.
const SLOTS: u16 = 128;
const SLOT: usize = Packet::BYTES.next_multiple_of(64);
/// Slots of a queue to a member, to whom one message is under way at a time.
const QUEUE: u32 = 64;
/// The time in which a NIC that works links the entries of the inbox.
const PATIENCE: Duration = Duration::from_secs(5);
/// Index of the portal, which is the only one of the process.
const PORTAL: u16 = 0;

/// Queues, memory and a PID of one process, with which it can join a [`Group`].
///
/// Messages are received from now on, so that a process that joins soon after others misses little.
#[derive(Debug)]
pub struct Endpoint {
    // Fields are dropped in this order: users of an object before the object.
    address: Address,
    target: TargetQueue,
    inbox: Buffer,
    _mapping: PteMapping,
    pte: Pte,
    events: Events,
    domain: Domain,
    profile: CommunicationProfile,
    info: DeviceInfo,
    lni: Lni,
}

/// Something that has happened at an endpoint.
pub(super) enum Incoming {
    /// A message from an address.
    Packet(Address, Packet),
    /// The message to the member of this rank has arrived, or why it has not.
    Sent(u64, Result<(), Failure>),
}

impl Endpoint {
    /// An endpoint on a VNI of a service, with a PID that was agreed on or any.
    ///
    /// # Errors
    ///
    /// The service does not allow the VNI or the traffic class, the PID is taken, or something
    /// cannot be allocated.
    pub fn new(
        device: &Device,
        service: ServiceId,
        vni: Vni,
        class: TrafficClass,
        pid: Option<Pid>,
    ) -> Result<Self> {
        let info = device.info()?;
        let lni = device.alloc_lni(service)?;
        let mut events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?, &info)?;
        let profile = lni.alloc_cp(vni, class)?;
        let domain = lni.alloc_domain(vni, pid)?;
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(events.queue()))?;
        let mapping = pte.map(&domain, PORTAL.into())?;
        let options = TgqOptions::new(512).event_queue(events.queue());
        let mut target = TargetQueue::new(lni.alloc_tgq(&options)?, &info)?;
        let inbox = Buffer::new(&lni, usize::from(SLOTS) * SLOT)?;
        for slot in 0..SLOTS {
            append(&mut target, &pte, &inbox, slot)?;
        }
        target.post(&SetState::enable(&pte))?;
        loop {
            // The last command is reported last.
            match events.wait(PATIENCE)? {
                Event::State(enabled) => break enabled.result.map_err(crate::Error::Stopped)?,
                Event::Entry(linked) => linked.result.map_err(crate::Error::Stopped)?,
                Event::Stopped(stopped) => return Err(crate::Error::Stopped(stopped.failure)),
                _ => {}
            }
        }
        Ok(Self {
            address: Address::new(&info, &domain),
            target,
            inbox,
            _mapping: mapping,
            pte,
            events,
            domain,
            profile,
            info,
            lni,
        })
    }

    /// The address, which the other members need.
    #[must_use]
    pub const fn address(&self) -> Address {
        self.address
    }

    /// Joins a group. All members give the same number, addresses in the same order, and width;
    /// the rank of a member is the position of its address.
    ///
    /// # Errors
    ///
    /// [`Error::Timing`], [`Error::NoMember`] and [`Error::Twice`]; no transmit queue is left for one of the neighbors.
    pub fn join(
        self,
        group: u32,
        members: &[Address],
        width: std::num::NonZeroU32,
        timing: Timing,
    ) -> Result<Group, Error> {
        Group::new(self, group, members, width, timing)
    }

    /// Asks other processes, and answers them. All give the same number, and addresses in the same order.
    ///
    /// # Errors
    ///
    /// [`Error::NoMember`] and [`Error::Twice`].
    pub fn pings(self, session: u32, members: &[Address]) -> Result<Pings, Error> {
        Pings::new(self, session, members)
    }

    /// A queue for messages to one member.
    pub(super) fn queue(&self) -> Result<TransmitQueue> {
        let options = TxqOptions::new(QUEUE).event_queue(self.events.queue());
        let queue = self.lni.alloc_txq(&self.profile, &options)?;
        TransmitQueue::new(queue, &self.info, &self.domain)
    }

    /// Sends a message, and returns `false` if the queue is full.
    pub(super) fn send(
        &self,
        queue: &mut TransmitQueue,
        to: Address,
        rank: u32,
        packet: &Packet,
    ) -> Result<bool> {
        let report = Report::event(&self.events, rank.into());
        let bytes = packet.encode();
        let put = ImmediatePut::new(&bytes, to.portal(PORTAL)).report(report);
        match queue.post(&put) {
            Err(crate::Error::Full { .. }) => Ok(false),
            posted => posted.map(|()| true),
        }
    }

    /// The next thing that has happened, if any.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>> {
        loop {
            let Some(event) = self.events.drain().next() else { return Ok(None) };
            match event {
                // What was lost is sent again.
                Err(crate::Error::Overflow) => {}
                Err(error) => return Err(error),
                Ok(Event::Arrival(arrival)) => {
                    if let Some(packet) = self.take(&arrival)? {
                        return Ok(Some(Incoming::Packet(arrival.initiator, packet)));
                    }
                }
                Ok(Event::Completion(completion)) => {
                    return Ok(Some(Incoming::Sent(completion.token, completion.result)));
                }
                Ok(Event::Entry(linked)) => linked.result.map_err(crate::Error::Stopped)?,
                Ok(Event::Stopped(stopped)) => return Err(crate::Error::Stopped(stopped.failure)),
                Ok(_) => {}
            }
        }
    }

    /// Reads a message and makes its room free again.
    fn take(&mut self, arrival: &Arrival) -> Result<Option<Packet>> {
        let slot = arrival.buffer_id;
        if slot >= SLOTS {
            return Ok(None);
        }
        let mut bytes = [0; Packet::BYTES];
        self.inbox.read(usize::from(slot) * SLOT, &mut bytes)?;
        if arrival.unlinked {
            append(&mut self.target, &self.pte, &self.inbox, slot)?;
        }
        let whole = arrival.result.is_ok() && arrival.length as usize == Packet::BYTES;
        Ok(Packet::decode(&bytes).filter(|_| whole))
    }
}

fn append(target: &mut TargetQueue, pte: &Pte, inbox: &Buffer, slot: u16) -> Result<()> {
    let start = usize::from(slot) * SLOT;
    let memory = inbox.slice(start..start + SLOT)?;
    let entry = Append::new(pte, LeList::Priority, memory).flags(TargetFlags::OP_PUT);
    target.post(&entry.use_once().buffer_id(slot))
}
