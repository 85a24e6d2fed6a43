//! The link to the fabric: operations that wait for their answer, and requests that were answered.

use std::collections::{BTreeMap, VecDeque};

use cxi_hw::{DmaFlags, RendezvousUserPtr};

use crate::packet::{Body, Data, Multicast, Packet, Reply, ReplyTo, Request};
use crate::{Fabric, Telemetry};

/// Ticks after which a packet is sent again. This is many times what a packet and its answer take
/// on a fabric that delays them, so that only lost packets are sent again.
const RETRY_TICKS: u64 = 64;
/// Times that a packet is sent before its operation fails. With half of all packets lost, one
/// operation in ten thousand fails.
const MAX_TRIES: u32 = 32;

/// Waiter for the end of an operation: a number, and the generation of the object with that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A transmit queue, which can then go on.
    Queue(u16, u64),
    /// The transmit queue of a triggered command.
    Triggered(u16, u64),
    /// A PtlTE that has received a rendezvous put.
    Portal(u16, u64),
}

/// Report of the end of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) eq: u16,
    pub(crate) ct: u16,
    pub(crate) flags: DmaFlags,
    pub(crate) user_ptr: u64,
    /// `true` if the event is REPLY; otherwise it is ACK.
    pub(crate) reply: bool,
    /// `true` if the event is marked as part of a rendezvous, such as the REPLY of its get.
    pub(crate) rendezvous: bool,
}

/// Destination of a fetched value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetch {
    pub(crate) lac: u8,
    pub(crate) iova: u64,
    pub(crate) len: usize,
}

/// An operation of this NIC.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) rgid: u16,
    pub(crate) owner: Owner,
    pub(crate) report: Report,
    pub(crate) fetch: Option<Fetch>,
    /// `true` if its answer is counted separately.
    pub(crate) high_rate: bool,
}

/// An operation that gets no answer, with its route and its request.
#[derive(Debug)]
pub(crate) struct Undelivered {
    pub(crate) operation: Operation,
    pub(crate) to: u32,
    pub(crate) request: Request,
}

#[derive(Debug)]
struct Flight {
    operation: Operation,
    retry: Option<Box<Retry>>,
}

/// Request to send again if no answer comes.
#[derive(Debug)]
struct Retry {
    packet: Packet,
    due: u64,
    tries: u32,
}

/// A slot for one operation at a time.
#[derive(Debug, Default)]
struct Slot {
    sequence: u32,
    flight: Option<Flight>,
}

/// All operations of this NIC that wait for an answer.
#[derive(Debug, Default)]
struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Flights that may have to be sent again.
    retries: usize,
    /// The time when retries were last checked.
    checked: u64,
}

impl Flights {
    fn add(&mut self, operation: Operation) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // Queues, triggered commands and PtlTEs hold operations, so there are few.
            #[allow(clippy::cast_possible_truncation)]
            let slot = (self.slots.len() - 1) as u32;
            slot
        });
        let entry = &mut self.slots[slot as usize];
        entry.sequence = entry.sequence.wrapping_add(1);
        entry.flight = Some(Flight { operation, retry: None });
        (slot, entry.sequence)
    }

    fn retry_at(&mut self, due: u64, packet: &Packet) {
        if let Some(flight) = &mut self.slots[packet.slot as usize].flight {
            flight.retry = Some(Box::new(Retry { packet: packet.clone(), due, tries: 1 }));
            self.retries += 1;
        }
    }

    /// The operation that an answer is for; `None` if it has been answered.
    fn take(&mut self, slot: u32, sequence: u32) -> Option<Operation> {
        let entry = self.slots.get_mut(slot as usize)?;
        if entry.sequence != sequence {
            return None;
        }
        let flight = entry.flight.take()?;
        self.free.push(slot);
        self.retries -= usize::from(flight.retry.is_some());
        Some(flight.operation)
    }

    /// The packets without an answer in time: those to send again, and those to give up.
    fn overdue(&mut self, now: u64) -> (Vec<Packet>, Vec<Packet>) {
        let flights = self.slots.iter_mut().filter_map(|it| it.flight.as_mut());
        let retries = flights.filter_map(|flight| flight.retry.as_mut());
        let overdue = retries.filter(|retry| retry.due <= now).map(|retry| {
            retry.due = now + RETRY_TICKS;
            retry.tries += 1;
            (retry.tries <= MAX_TRIES, retry.packet.clone())
        });
        let (again, lost): (Vec<_>, Vec<_>) = overdue.partition(|(again, _)| *again);
        let packets =
            |all: Vec<(bool, Packet)>| all.into_iter().map(|(_, packet)| packet).collect();
        (packets(again), packets(lost))
    }
}

/// The link of a NIC to its fabric.
#[derive(Debug)]
pub(crate) struct Link {
    fabric: Fabric,
    nid: u32,
    /// Number of the NIC among those that have had its address. Packets to an earlier one are not
    /// for it.
    incarnation: u32,
    /// Packets of this NIC to itself.
    inbox: VecDeque<Packet>,
    flights: Flights,
    /// The last request of each slot of each initiator and its answer, while packets may come twice.
    answers: BTreeMap<(u32, u32), (ReplyTo, Option<Reply>)>,
    /// The number of the last packet to a multicast tree.
    multicasts: u32,
}

impl Link {
    pub(crate) fn new(fabric: Fabric, nid: u32) -> Self {
        Self {
            incarnation: fabric.attach(nid),
            fabric,
            nid,
            inbox: VecDeque::new(),
            flights: Flights::default(),
            answers: BTreeMap::new(),
            multicasts: 0,
        }
    }

    /// Moves the NIC to another fabric or address. Packets that wait for it there are lost.
    pub(crate) fn reattach(&mut self, fabric: Option<Fabric>, nid: u32) {
        self.fabric.detach(self.nid);
        self.fabric = fabric.unwrap_or_else(|| self.fabric.clone());
        self.nid = nid;
        self.incarnation = self.fabric.attach(nid);
    }

    pub(crate) fn awaits_answers(&self) -> bool {
        self.flights.retries > 0
    }

    pub(crate) fn has_packets(&self) -> bool {
        !self.inbox.is_empty() || self.fabric.has_packets(self.nid)
    }

    /// Sends an operation. Gives it back if there is no such NIC.
    pub(crate) fn launch(
        &mut self,
        to: u32,
        operation: Operation,
        request: Request,
        data: Data,
    ) -> Option<Undelivered> {
        let (slot, sequence) = self.flights.add(operation);
        let packet = Packet {
            from: self.nid,
            to,
            incarnation: self.incarnation,
            slot,
            sequence,
            body: Body::Request(request, data),
        };
        if self.fabric.is_faulty() {
            let due = self.fabric.now() + RETRY_TICKS;
            self.flights.retry_at(due, &packet);
        }
        self.send(packet)
    }

    /// Sends a packet to a multicast tree: nothing answers it, and it is not sent again.
    pub(crate) fn multicast(&mut self, to: Multicast, request: Request, data: Data) {
        self.multicasts = self.multicasts.wrapping_add(1);
        self.fabric.multicast(Packet {
            from: self.nid,
            to: self.nid,
            incarnation: self.incarnation,
            slot: to.slot(),
            sequence: self.multicasts,
            body: Body::Request(request, data),
        });
    }

    /// Sends a packet. A packet to this NIC itself bypasses the fabric, unless the fabric has
    /// faults.
    fn send(&mut self, packet: Packet) -> Option<Undelivered> {
        if packet.to == self.nid && !self.fabric.is_faulty() {
            self.inbox.push_back(packet);
            return None;
        }
        let packet = self.fabric.send(packet)?;
        self.give_up(&packet)
    }

    /// Ends the operation of a packet that gets no answer.
    fn give_up(&mut self, packet: &Packet) -> Option<Undelivered> {
        let Body::Request(request, _) = &packet.body else { return None };
        Some(Undelivered {
            operation: self.flights.take(packet.slot, packet.sequence)?,
            to: packet.to,
            request: *request,
        })
    }

    /// Takes the next packet.
    pub(crate) fn receive(&mut self) -> Option<Packet> {
        match self.inbox.pop_front() {
            None => self.fabric.receive(self.nid),
            packet => packet,
        }
    }

    /// The operation that an answer is for; `None` if nothing waits for it.
    pub(crate) fn answered(&mut self, place: ReplyTo) -> Option<Operation> {
        // Otherwise the answer is for a NIC that had the address before.
        (place.incarnation == self.incarnation)
            .then(|| self.flights.take(place.slot, place.sequence))?
    }

    /// Returns whether a rendezvous put has an ID that its source may not use yet, because the
    /// answer to the get of an earlier one was lost. The put comes again.
    pub(crate) fn is_too_early(&self, from: u32, request: &Request, pid_bits: u32) -> bool {
        let id = request.rendezvous_id;
        let same = |user_ptr: u64| {
            let it = RendezvousUserPtr::decode(&user_ptr.to_le_bytes());
            let source = (it.src_nid, u32::from(it.src_pid));
            source == (from, request.initiator.pid(pid_bits)) && it.rendezvous_id == id
        };
        let flights = self.flights.slots.iter().flat_map(|slot| &slot.flight);
        let mut reports = flights.map(|flight| flight.operation.report);
        request.is_rendezvous()
            && self.fabric.is_faulty()
            && reports.any(|it| it.rendezvous && same(it.user_ptr))
    }

    /// Returns whether a request is new. One that came before is answered again if it has been
    /// answered.
    pub(crate) fn admit(&mut self, back: ReplyTo, telemetry: &mut Telemetry) -> bool {
        if let Some((last, reply)) = self.answers.get(&(back.nid, back.slot)).copied() {
            // Incarnations of an address and sequences of a slot only grow.
            let incarnation = back.incarnation.wrapping_sub(last.incarnation);
            let sequence = back.sequence.wrapping_sub(last.sequence);
            let age = (incarnation.cast_signed(), sequence.cast_signed());
            if age == (0, 0)
                && let Some(reply) = reply
            {
                telemetry.repetitions += 1;
                self.send_reply(back, reply);
            }
            if age <= (0, 0) {
                return false;
            }
        }
        self.note(back, None);
        true
    }

    /// Answers a request.
    pub(crate) fn reply(&mut self, back: ReplyTo, reply: Reply) {
        let key = (back.nid, back.slot);
        // The slot may be in use for a later request by now, whose note must stay.
        if self.answers.get(&key).is_none_or(|(last, _)| *last == back) {
            self.note(back, Some(reply));
        }
        self.send_reply(back, reply);
    }

    /// Notes how a request was answered, while it may come again.
    fn note(&mut self, back: ReplyTo, reply: Option<Reply>) {
        let key = (back.nid, back.slot);
        if self.fabric.is_faulty() {
            self.answers.insert(key, (back, reply));
        } else if !self.answers.is_empty() {
            self.answers.remove(&key);
        }
    }

    fn send_reply(&mut self, back: ReplyTo, reply: Reply) {
        if back.awaited {
            // If an answer reaches no NIC, no operation waits for it.
            let _ = self.send(Packet {
                from: self.nid,
                to: back.nid,
                incarnation: back.incarnation,
                slot: back.slot,
                sequence: back.sequence,
                body: Body::Reply(reply),
            });
        }
    }

    /// Sends packets without an answer again; `None` if there were none. Returns the operations that
    /// it gives up.
    pub(crate) fn retry(&mut self, telemetry: &mut Telemetry) -> Option<Vec<Undelivered>> {
        if self.flights.retries == 0 {
            return None;
        }
        let now = self.fabric.now();
        // Time stands still between ticks, so one check per tick finds everything.
        if std::mem::replace(&mut self.flights.checked, now) == now {
            return None;
        }
        let (again, lost) = self.flights.overdue(now);
        if again.is_empty() && lost.is_empty() {
            return None;
        }
        telemetry.timeouts += (again.len() + lost.len()) as u64;
        telemetry.retries += again.len() as u64;
        let mut undelivered = Vec::new();
        for packet in again {
            undelivered.extend(self.send(packet));
        }
        for packet in lost {
            undelivered.extend(self.give_up(&packet));
        }
        Some(undelivered)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.fabric.detach(self.nid);
    }
}
