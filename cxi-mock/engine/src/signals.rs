//! The means by which a NIC reports: event queues, counters, wake-ups, telemetry and the observer.

use std::collections::VecDeque;
use std::time::Instant;

use cxi_hw::{
    CtCommand, DmaFlags, EventSize, EventType, InitiatorShort, ReturnCode, TriggeredShort,
};

use crate::counter::{Count, Triggered};
use crate::dma::{After, Dmas};
use crate::event_queue::Events;
use crate::link::Report;
use crate::packet::Reply;
use crate::pools::Store;
use crate::table::Table;
use crate::{
    CounterDoorbell, EventFlags, ObservedOperation, Observer, Settings, Telemetry, WriteBack,
};

/// Event queues, counters, triggered commands and telemetry of one NIC.
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) events: Table<Events>,
    pub(crate) counters: Table<Count>,
    pub(crate) dmas: Dmas,
    pub(crate) observer: Option<Box<dyn Observer>>,
    pub(crate) telemetry: Telemetry,
    /// Entries for triggered commands.
    pub(crate) triggers: Store,
    /// Triggered commands that are due, in order of arrival.
    fired: VecDeque<Triggered>,
    arrivals: u64,
}

/// Bits of the size of an event, next to its type.
const SIZE_MASK: u8 = 3;

/// The type of an event, which is in the same place in all events.
fn event_type(event: &[u8]) -> EventType {
    EventType(event.get(14).map_or(0, |byte| byte >> 2 & 31))
}

impl Signals {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            events: Table::default(),
            counters: Table::default(),
            dmas: Dmas::default(),
            observer: None,
            telemetry: Telemetry::default(),
            triggers: Store::new(settings.triggered_entries),
            fired: VecDeque::new(),
            arrivals: 0,
        }
    }

    /// The observer's time, if there is an observer.
    pub(crate) fn now(&mut self) -> Option<Instant> {
        self.observer.as_mut()?.now()
    }

    /// Shows the observer an operation, if there is an observer.
    pub(crate) fn observe(&mut self, operation: impl FnOnce() -> ObservedOperation) {
        if let Some(observer) = &mut self.observer {
            observer.operation(&operation());
        }
    }
}

/// Event queues.
impl Signals {
    pub(crate) fn remove_events(&mut self, number: u16) {
        if let Some(events) = self.events.remove(number) {
            self.dmas.release(events.memory());
        }
    }

    /// Polls all register words.
    pub(crate) fn poll_events(&mut self) {
        for (_, events) in self.events.iter_mut() {
            events.polled(&mut self.dmas);
        }
    }

    pub(crate) fn awaits_registers(&self) -> bool {
        self.events.iter().any(|(_, it)| it.awaits_unmask())
    }

    /// Returns whether events may go to that queue.
    pub(crate) fn may_report(&self, rgid: u16, eq: u16) -> bool {
        // Rule 1.1: Queue and counter number 0 stands for none.
        eq == 0 || self.events.get(eq).is_some_and(|it| it.is_owned_by(rgid))
    }

    /// Returns whether flow control admits a message. Without an event queue it does.
    pub(crate) fn has_room(&self, eq: u16) -> bool {
        self.events.get(eq).is_none_or(Events::has_room)
    }

    pub(crate) fn is_full(&self, eq: u16) -> bool {
        self.events.get(eq).is_some_and(Events::is_full)
    }

    pub(crate) fn has_flag(&self, eq: u16, flag: EventFlags) -> bool {
        self.events.get(eq).is_some_and(|it| it.has(flag))
    }

    /// Writes an event; to no queue if the number is 0 or the queue is gone.
    pub(crate) fn post(&mut self, eq: u16, event: &[u8]) {
        let Some(events) = self.events.get_mut(eq) else { return };
        let stored = events.post(event, &mut self.dmas);
        if stored {
            self.telemetry.events.add(event_type(event).0);
        }
        if let Some(observer) = &mut self.observer {
            observer.event(eq, event, !stored);
        }
    }

    /// Does something after the events of a queue are in its memory; gives it back if they are.
    pub(crate) fn after_events(&mut self, eq: u16, after: After) -> Option<After> {
        match self.events.get(eq) {
            Some(events) => self.dmas.after_stores(events.memory(), after),
            None => Some(after),
        }
    }

    /// Reports SEND, and counts it.
    pub(crate) fn report_send(&mut self, report: &Report, length: u32) {
        let suppress = DmaFlags::EVENT_SEND_DISABLE | DmaFlags::EVENT_SUCCESS_DISABLE;
        if !report.flags.intersects(suppress) {
            self.post_initiator(
                report.eq,
                InitiatorShort {
                    user_ptr: report.user_ptr,
                    mlength: length,
                    event_type: EventType::SEND,
                    return_code: ReturnCode::OK,
                    ..InitiatorShort::default()
                },
            );
        }
        if report.flags.contains(DmaFlags::EVENT_CT_SEND) {
            let bytes = report.flags.contains(DmaFlags::EVENT_CT_BYTES);
            self.count(report.ct, if bytes { length.into() } else { 1 }, 0);
        }
    }

    /// Reports ACK or REPLY, and counts it afterward.
    pub(crate) fn report_end(&mut self, report: &Report, reply: &Reply) {
        let success = reply.code == ReturnCode::OK;
        let (event_type, counts) = if report.reply {
            (EventType::REPLY, DmaFlags::EVENT_CT_REPLY)
        } else {
            (EventType::ACK, DmaFlags::EVENT_CT_ACK)
        };
        // Rule 9.1: A command may suppress the events of successes, never those of failures;
        // without an event queue there are none.
        if !(success && report.flags.contains(DmaFlags::EVENT_SUCCESS_DISABLE)) {
            // Rule 9.3: An ACK has the user pointer, the bytes delivered, the list, whether the
            // target found the error, and the code.
            let event = InitiatorShort {
                user_ptr: report.user_ptr,
                mlength: reply.mlength,
                ptl_list: reply.list,
                // Rule 10.3: The ACK of a rendezvous put is marked as one.
                rendezvous: reply.rendezvous || report.rendezvous,
                tgt_error: reply.target_error,
                event_type,
                return_code: reply.code,
                ..InitiatorShort::default()
            };
            self.post_initiator(report.eq, event);
        }
        // Rule 9.2: At the initiator a counter counts the event kinds that the flags name, by one
        // or by bytes, even if the event is suppressed.
        if !report.flags.contains(counts) {
            return;
        }
        let amount =
            if report.flags.contains(DmaFlags::EVENT_CT_BYTES) { reply.mlength.into() } else { 1 };
        if success {
            self.count(report.ct, amount, 0);
        } else {
            self.count(report.ct, 0, 1);
        }
    }

    fn post_initiator(&mut self, eq: u16, event: InitiatorShort) {
        let event_size = EventSize::BYTES_16;
        self.post_short(eq, InitiatorShort { event_size, ..event }.encode());
    }

    /// Writes an event of 16 bytes, or of 32 if its queue wants that. Both have their fields in the
    /// same places, except for the code, which is in the last byte. Times are 0.
    fn post_short(&mut self, eq: u16, event: [u8; 16]) {
        // Rule 3.7: One flag of the queue makes initiator events 32 bytes long, another makes target
        // events 64 bytes long.
        if self.has_flag(eq, EventFlags::INITIATOR_LONG) {
            let mut long = [0; 32];
            long[..15].copy_from_slice(&event[..15]);
            long[14] = event[14] & !SIZE_MASK | EventSize::BYTES_32.0;
            long[31] = event[15];
            self.post(eq, &long);
        } else {
            self.post(eq, &event);
        }
    }
}

/// Counters, and commands that wait for them.
impl Signals {
    /// Removes a counter. The commands that wait for it never run.
    pub(crate) fn remove_counter(&mut self, number: u16) -> Vec<Triggered> {
        let cancelled = self.cancel(number);
        self.set_write_back(number, None);
        self.counters.remove(number);
        cancelled
    }

    pub(crate) fn set_write_back(&mut self, number: u16, write_back: Option<WriteBack>) {
        if let Some(counter) = self.counters.get_mut(number) {
            counter.set_write_back(write_back, &mut self.dmas);
        }
    }

    /// Returns whether an RGID may use a counter; number 0 stands for none.
    pub(crate) fn may_count(&self, rgid: u16, ct: u16) -> bool {
        let counter = self.counters.get(ct);
        ct == 0 || counter.is_some_and(|it| it.config.rgid == rgid)
    }

    /// Changes a counter, and fires the commands that have waited for its new value. Does nothing
    /// for number 0 or a counter that is gone.
    fn change(&mut self, ct: u16, change: impl FnOnce(&mut Count, &mut Dmas)) {
        if let Some(counter) = self.counters.get_mut(ct) {
            change(counter, &mut self.dmas);
            // Rule 12.2: Commands that fire are queued rather than run at once, as a command may
            // change the counter that fired it.
            self.fired.extend(counter.take_reached());
        }
    }

    /// Counts successes or failures.
    pub(crate) fn count(&mut self, ct: u16, success: u64, failure: u64) {
        self.change(ct, |counter, dmas| {
            counter.add(success, failure, dmas);
        });
    }

    /// Handles a store to a doorbell.
    pub(crate) fn ring_counter(&mut self, ct: u16, doorbell: CounterDoorbell, value: u64) {
        self.telemetry.doorbells += u64::from(self.counters.get(ct).is_some());
        self.change(ct, |counter, dmas| {
            counter.ring(doorbell, value, dmas);
        });
    }

    /// Takes what was stored to the polled doorbells. Returns whether there was anything.
    pub(crate) fn poll_counters(&mut self) -> bool {
        let mut stores = Vec::new();
        for (number, counter) in self.counters.iter_mut() {
            let Some(page) = &counter.config.page else { continue };
            // Rule 4.5: When doorbells are polled, resets are taken before additions, because
            // programs add after they reset.
            for doorbell in CounterDoorbell::ALL {
                let value = page.take_doorbell(doorbell);
                stores.extend(value.map(|value| (number, doorbell, value)));
            }
        }
        let any = !stores.is_empty();
        for (number, doorbell, value) in stores {
            self.ring_counter(number, doorbell, value);
        }
        any
    }

    /// Executes SET and TRIG_SET.
    pub(crate) fn set(&mut self, command: &CtCommand) {
        self.change(command.ct, |counter, dmas| counter.set(command, dmas));
    }

    /// Executes INC and TRIG_INC.
    pub(crate) fn increment(&mut self, command: &CtCommand) {
        self.count(command.ct, command.ct_success, command.ct_failure.into());
    }

    /// Writes a counter back, for GET and TRIG_EVENT.
    pub(crate) fn write_back(&mut self, ct: u16) {
        if let Some(counter) = self.counters.get(ct) {
            counter.write_back(&mut self.dmas);
        }
    }

    /// Fires a command, or lets it wait. Returns whether its pool has an entry for it.
    pub(crate) fn trigger(&mut self, triggered: Triggered) -> bool {
        // Rule 14.5: A waiting triggered command occupies an entry of its queue's pool.
        if !self.triggers.take(triggered.pool) {
            return false;
        }
        self.arrivals += 1;
        let CtCommand { trig_ct, threshold, .. } = triggered.command;
        match self.counters.get_mut(trig_ct) {
            Some(counter) if !counter.has_reached(threshold) => {
                counter.wait(self.arrivals, triggered);
            }
            _ => self.fired.push_back(triggered),
        }
        true
    }

    pub(crate) fn has_fired(&self) -> bool {
        !self.fired.is_empty()
    }

    /// Takes the next command that is due.
    pub(crate) fn next_fired(&mut self) -> Option<Triggered> {
        let triggered = self.fired.pop_front()?;
        self.triggers.give(triggered.pool, 1);
        Some(triggered)
    }

    /// CANCEL: takes the commands that wait for a counter.
    pub(crate) fn cancel(&mut self, ct: u16) -> Vec<Triggered> {
        let counter = self.counters.get_mut(ct);
        let cancelled = counter.map_or_else(Vec::new, |counter| counter.take_waiting(|_| true));
        self.give_back(&cancelled);
        cancelled
    }

    /// Forgets the commands of a queue that still wait.
    pub(crate) fn cancel_of_queue(&mut self, queue: u16, generation: u64) {
        let of_queue = |it: &Triggered| (it.queue, it.generation) == (queue, generation);
        let counters = self.counters.iter_mut();
        let cancelled: Vec<_> =
            counters.flat_map(|(_, counter)| counter.take_waiting(of_queue)).collect();
        self.give_back(&cancelled);
    }

    fn give_back(&mut self, cancelled: &[Triggered]) {
        for triggered in cancelled {
            self.triggers.give(triggered.pool, 1);
        }
    }

    /// Posts the TRIGGERED_OP of a TRIG_EVENT.
    pub(crate) fn post_triggered(&mut self, command: &CtCommand) {
        let event = TriggeredShort {
            threshold: command.threshold,
            ct_handle: command.trig_ct,
            event_size: EventSize::BYTES_16,
            event_type: EventType::TRIGGERED_OP,
            return_code: ReturnCode::OK,
        };
        self.post_short(command.eq, event.encode());
    }
}
