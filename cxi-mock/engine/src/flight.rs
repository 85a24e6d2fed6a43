//! Operations that have left the NIC and wait for their answer.

use cxi_hw::{DmaFlags, EventSize, EventType, InitiatorLong, InitiatorShort, ReturnCode};

use crate::packet::{Body, Data, Packet, Reply, Request};
use crate::translation::Access;
use crate::{Engine, EventFlags};

/// Ticks after which a packet is sent again.
const RETRY_TICKS: u64 = 64;
/// Times that a packet is sent before its operation fails.
const MAX_TRIES: u32 = 32;

/// What waits for the end of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A transmit queue, which goes on then.
    Queue(u16, u64),
    /// A transmit queue whose triggered command it was.
    Triggered(u16, u64),
    /// A PtlTE that has received a rendezvous put.
    Portal(u16, u64),
}

/// How the end of an operation is reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) eq: u16,
    pub(crate) ct: u16,
    pub(crate) flags: DmaFlags,
    pub(crate) user_ptr: u64,
    /// REPLY, else ACK.
    pub(crate) reply: bool,
    /// Of a rendezvous, as the reply of its get.
    pub(crate) rendezvous: bool,
    /// Bytes that were moved before, and count as well.
    pub(crate) before: u32,
}

/// Where a fetched value goes.
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
    /// Answers are counted apart.
    pub(crate) high_rate: bool,
}

#[derive(Debug)]
struct Flight {
    operation: Operation,
    retry: Option<Box<Retry>>,
}

/// What to send again if no answer comes.
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
pub(crate) struct Flights {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Flights that may have to be sent again.
    retries: usize,
    checked: u64,
    /// The number of the last packet to a multicast tree.
    multicasts: u32,
}

impl Flights {
    fn add(&mut self, operation: Operation) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.slots[slot as usize];
        entry.sequence = entry.sequence.wrapping_add(1);
        entry.flight = Some(Flight {
            operation,
            retry: None,
        });
        (slot, entry.sequence)
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
}

impl Engine {
    /// Whether operations wait for an answer that may have been lost. They go on with
    /// [`Fabric::tick`](crate::Fabric::tick).
    #[must_use]
    pub fn awaits_answers(&self) -> bool {
        self.flights.retries > 0
    }

    /// Sends an operation.
    pub(crate) fn launch(&mut self, to: u32, operation: Operation, request: Request, data: Data) {
        let (slot, sequence) = self.flights.add(operation);
        let packet = Packet {
            from: self.settings.nid,
            to,
            life: self.life,
            slot,
            sequence,
            body: Body::Request(request, data),
        };
        if self.fabric.is_faulty()
            && let Some(flight) = &mut self.flights.slots[slot as usize].flight
        {
            flight.retry = Some(Box::new(Retry {
                packet: packet.clone(),
                due: self.fabric.now() + RETRY_TICKS,
                tries: 1,
            }));
            self.flights.retries += 1;
        }
        self.send(packet);
    }

    /// Sends a reduction on its way. It has ended then: nobody answers, and nothing is sent again.
    pub(crate) fn multicast(&mut self, operation: &Operation, request: Request, data: Data) {
        let Some(multicast) = request.multicast else {
            return;
        };
        self.flights.multicasts = self.flights.multicasts.wrapping_add(1);
        self.fabric.multicast(Packet {
            from: self.settings.nid,
            to: self.settings.nid,
            life: self.life,
            slot: multicast.slot(),
            sequence: self.flights.multicasts,
            body: Body::Request(request, data),
        });
        let reply = Reply {
            mlength: request.length,
            ..Reply::error(ReturnCode::OK)
        };
        self.complete(operation, &reply);
    }

    /// Sends a packet; to this very NIC without the fabric in between unless it has faults.
    pub(crate) fn send(&mut self, packet: Packet) {
        if packet.to == self.settings.nid && !self.fabric.is_faulty() {
            self.inbox.push_back(packet);
            return;
        }
        if let Some(packet) = self.fabric.send(packet) {
            self.give_up(&packet);
        }
    }

    /// A request that gets no answer.
    fn give_up(&mut self, packet: &Packet) {
        if let Body::Request(request, _) = &packet.body {
            let reply = Reply::error(ReturnCode::UNDELIVERABLE);
            self.observe((packet.from, packet.to), request, &reply);
            self.answered(packet.slot, packet.sequence, &reply);
        }
    }

    /// Sends again what was not answered in time. Says whether anything was.
    pub(crate) fn step_retries(&mut self) -> bool {
        if self.flights.retries == 0 {
            return false;
        }
        let now = self.fabric.now();
        if std::mem::replace(&mut self.flights.checked, now) == now {
            return false;
        }
        let mut again = Vec::new();
        let mut lost = Vec::new();
        for entry in &mut self.flights.slots {
            let retry = entry
                .flight
                .as_mut()
                .and_then(|flight| flight.retry.as_mut());
            let Some(retry) = retry.filter(|retry| retry.due <= now) else {
                continue;
            };
            self.telemetry.timeouts += 1;
            retry.due = now + RETRY_TICKS;
            retry.tries += 1;
            if retry.tries > MAX_TRIES {
                lost.push(retry.packet.clone());
            } else {
                again.push(retry.packet.clone());
            }
        }
        let worked = !again.is_empty() || !lost.is_empty();
        for packet in again {
            self.telemetry.retries += 1;
            self.send(packet);
        }
        for packet in lost {
            self.give_up(&packet);
        }
        worked
    }

    /// Ends the operation that an answer is for.
    pub(crate) fn answered(&mut self, slot: u32, sequence: u32, reply: &Reply) {
        let Some(operation) = self.flights.take(slot, sequence) else {
            return;
        };
        self.telemetry.high_rate_acks += u64::from(operation.high_rate);
        self.complete(&operation, reply);
    }

    /// Reports the end of an operation and lets its queue go on.
    pub(crate) fn complete(&mut self, operation: &Operation, reply: &Reply) {
        if !self.is_there(operation.owner) {
            // Its numbers may belong to another queue by now.
            return;
        }
        let mut reply = *reply;
        if let Some(fetch) = operation.fetch
            && reply.code == ReturnCode::OK
        {
            let context = (operation.rgid, fetch.lac);
            let len = fetch.len as u64;
            let to = self
                .translation
                .translate(context, fetch.iova, len, Access::Write);
            let stored = to.and_then(|to| {
                let value = &reply.fetched[..fetch.len];
                to.write(0, value).map_err(|_| ReturnCode::NO_TRANSLATION)
            });
            if let Err(code) = stored {
                reply.code = code;
            }
        }
        self.report(&operation.report, &reply);
        match operation.owner {
            Owner::Queue(number, _) => {
                if let Some(queue) = self.queues.table.get_mut(number) {
                    queue.busy = false;
                    queue.pending = queue.pending.saturating_sub(1);
                    self.queues.list(number);
                }
            }
            Owner::Triggered(number, generation) => self.end_triggered(number, generation),
            Owner::Portal(..) => {}
        }
    }

    fn is_there(&self, owner: Owner) -> bool {
        match owner {
            Owner::Queue(number, generation) | Owner::Triggered(number, generation) => {
                let queue = self.queues.table.get(number);
                queue.is_some_and(|queue| queue.generation == generation)
            }
            Owner::Portal(number, generation) => {
                let portal = self.portals.table.get(number);
                portal.is_some_and(|portal| portal.generation == generation)
            }
        }
    }

    /// ACK or REPLY, and the counter after it.
    pub(crate) fn report(&mut self, report: &Report, reply: &Reply) {
        let success = reply.code == ReturnCode::OK;
        if !(success && report.flags.contains(DmaFlags::EVENT_SUCCESS_DISABLE)) {
            let event_type = if report.reply {
                EventType::REPLY
            } else {
                EventType::ACK
            };
            let event = InitiatorShort {
                user_ptr: report.user_ptr,
                mlength: reply.mlength,
                ptl_list: reply.list,
                rendezvous: reply.rendezvous || report.rendezvous,
                tgt_error: reply.target_error,
                event_size: EventSize::BYTES_16,
                event_type,
                return_code: reply.code,
                ..InitiatorShort::default()
            };
            self.post_initiator(report.eq, &event);
        }
        let flag = if report.reply {
            DmaFlags::EVENT_CT_REPLY
        } else {
            DmaFlags::EVENT_CT_ACK
        };
        if !report.flags.contains(flag) {
            return;
        }
        let amount = if report.flags.contains(DmaFlags::EVENT_CT_BYTES) {
            u64::from(reply.mlength) + u64::from(report.before)
        } else {
            1
        };
        if success {
            self.signals.count(report.ct, amount, 0);
        } else {
            self.signals.count(report.ct, 0, 1);
        }
    }

    /// Writes an event at the initiator, long if its queue wants that.
    pub(crate) fn post_initiator(&mut self, eq: u16, event: &InitiatorShort) {
        let events = self.signals.events.get(eq);
        let long = events.is_some_and(|it| it.config.flags.contains(EventFlags::INITIATOR_LONG));
        if long {
            let event = InitiatorLong {
                user_ptr: event.user_ptr,
                mlength: event.mlength,
                ptl_list: event.ptl_list,
                rendezvous: event.rendezvous,
                retry: event.retry,
                tgt_error: event.tgt_error,
                event_size: EventSize::BYTES_32,
                event_type: event.event_type,
                return_code: event.return_code,
                ..InitiatorLong::default()
            };
            self.signals.post(eq, &event.encode());
        } else {
            self.signals.post(eq, &event.encode());
        }
    }
}
