//! The engine and its interface to the control plane.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use cxi_hw::{CommandByte, ReturnCode};

use crate::command_queue::{OutOfRange, Queues};
use crate::counter::Count;
use crate::directory::Place;
use crate::event_queue::Events;
use crate::link::Link;
use crate::portal::{PortalState, Portals};
use crate::signals::Signals;
use crate::translation::Translation;
use crate::{
    ClientMemory, CommandQueue, CommunicationProfile, Counter, CounterDoorbell, Dma, Effect,
    EntryPool, EventBuffer, EventQueue, Fabric, NoTransition, Observer, PoolLimits, Portal,
    PortalSnapshot, PortalStatus, Region, Release, Settings, Telemetry, WriteBack,
};

/// The data path of a NIC.
///
/// Numbers of objects are the driver's. An object that is added under a number in use replaces the
/// one before it. Removing what is not there does nothing.
// Rule 12.3: The engine has no lock and no thread; its caller holds one lock for all of it.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) profiles: BTreeMap<(u16, u8), CommunicationProfile>,
    pub(crate) queues: Queues,
    pub(crate) translation: Translation,
    pub(crate) link: Link,
    pub(crate) portals: Portals,
    pub(crate) signals: Signals,
}

impl Engine {
    /// A NIC without objects, attached to a fabric.
    #[must_use]
    pub fn new(settings: Settings, fabric: Fabric) -> Self {
        Self {
            settings,
            profiles: BTreeMap::new(),
            queues: Queues::default(),
            translation: Translation::default(),
            link: Link::new(fabric, settings.nid),
            portals: Portals::new(&settings),
            signals: Signals::new(&settings),
        }
    }

    /// Returns the settings of the NIC.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes how the NIC is set up. With another address, packets to the old one are lost. The
    /// numbers of entries stay as they were built.
    pub fn set_settings(&mut self, settings: Settings) {
        if settings.nid != self.settings.nid {
            self.link.reattach(None, settings.nid);
        }
        self.settings = settings;
    }

    /// Moves the NIC from its fabric to another one. Packets that wait for it are lost.
    pub fn set_fabric(&mut self, fabric: Fabric) {
        self.link.reattach(Some(fabric), self.settings.nid);
    }

    /// Returns whether operations wait for an answer that may have been lost. They continue after
    /// [`Fabric::tick`].
    #[must_use]
    pub fn awaits_answers(&self) -> bool {
        self.link.awaits_answers()
    }

    /// Sets what an LCID of an RGID sends with; `None` removes it.
    pub fn set_profile(&mut self, rgid: u16, lcid: u8, profile: Option<CommunicationProfile>) {
        match profile {
            Some(profile) => self.profiles.insert((rgid, lcid), profile),
            None => self.profiles.remove(&(rgid, lcid)),
        };
    }

    /// Receives packets of these VNIs for the domains of a receive profile. VNIs may be received
    /// by several.
    pub fn add_receive_profile(&mut self, profile: u32, vnis: RangeInclusive<u16>) {
        self.portals.directory.add(profile, vnis);
    }

    /// Stops receiving them.
    pub fn remove_receive_profile(&mut self, profile: u32) {
        self.portals.directory.remove(profile);
    }

    /// Maps a PtlTE to a portal index of a PID of a receive profile's domain: PTE_MAP.
    pub fn map_portal(&mut self, profile: u32, pid: u16, index: u16, portal: u16) {
        self.portals.directory.map(profile, Place::Index(pid, index), portal);
    }

    /// Removes the mapping: PTE_UNMAP.
    pub fn unmap_portal(&mut self, profile: u32, pid: u16, index: u16) {
        self.portals.directory.unmap(profile, Place::Index(pid, index));
    }

    /// Maps a PtlTE to a multicast address of a receive profile's VNIs: the number of the tree, and
    /// the portal index above its 13 bits.
    pub fn map_multicast(&mut self, profile: u32, address: u32, portal: u16) {
        let place = Place::Multicast(address);
        self.portals.directory.map(profile, place, portal);
    }

    /// Takes the mapping away: PTE_UNMAP.
    pub fn unmap_multicast(&mut self, profile: u32, address: u32) {
        self.portals.directory.unmap(profile, Place::Multicast(address));
    }

    /// Sets the limits of a pool of list entries. Without this call, a pool may take all entries of
    /// its processing element.
    pub fn set_entry_pool(&mut self, pool: EntryPool, limits: PoolLimits) {
        self.portals.pools.limit(pool, limits);
    }

    /// List entries in use in a pool.
    #[must_use]
    pub fn entries_in_use(&self, pool: EntryPool) -> u16 {
        self.portals.pools.used(pool)
    }

    /// Sets the limits of a pool of entries for triggered commands. Without this call, a pool may
    /// take all 2,048.
    pub fn set_triggered_pool(&mut self, pool: u8, limits: PoolLimits) {
        self.signals.triggers.limit(pool, limits);
    }

    /// Entries for triggered commands in use in a pool.
    #[must_use]
    pub fn triggered_in_use(&self, pool: u8) -> u16 {
        self.signals.triggers.used(pool)
    }

    /// Takes the most entries for triggered commands of a pool that were in use at once since it was last
    /// asked.
    #[must_use]
    pub fn take_most_triggered(&mut self, pool: u8) -> u16 {
        self.signals.triggers.take_most(pool)
    }

    /// CQ_ALLOC.
    pub fn add_queue(&mut self, number: u16, queue: CommandQueue) {
        self.remove_queue(number);
        self.queues.add(number, queue);
    }

    /// Executes what was rung on a queue, as far as memory answers at once. Returns whether all of it
    /// has ended.
    pub fn finish_queue(&mut self, number: u16) -> bool {
        // Rule 12.4: Freeing a queue first executes what was rung on it and, if anything was, what
        // was rung before on others.
        if let Some(rung) = self.queues.take_rung(number) {
            self.take_up(number, rung);
            self.poll();
        }
        while self.queues.has_work(number) && self.step() {}
        !self.queues.has_work(number)
    }

    /// CQ_FREE: [finishes](Self::finish_queue) a queue, then forgets it with the triggered commands
    /// that still wait. What has not been answered by then is no longer reported.
    pub fn remove_queue(&mut self, number: u16) {
        self.finish_queue(number);
        if let Some(generation) = self.queues.remove(number, &mut self.signals.dmas) {
            self.signals.cancel_of_queue(number, generation);
        }
    }

    /// CQ_ACK_COUNTER: commands of a queue that have not ended, triggered ones that wait included.
    #[must_use]
    pub fn commands_in_flight(&self, number: u16) -> u32 {
        self.queues.pending(number)
    }

    /// A store of a write pointer to the doorbell of a command queue.
    pub fn ring_queue(&mut self, number: u16, value: u64) {
        if self.queues.ring(number, value).is_err() {
            self.fail(number, CommandByte(0), ReturnCode::ADDR_OUT_OF_RANGE);
        }
    }

    /// Takes up a doorbell that was rung on a queue that is polled.
    fn take_up(&mut self, number: u16, rung: Result<u32, OutOfRange>) {
        match rung {
            Ok(slot) => self.queues.set_write(number, slot),
            Err(OutOfRange) => self.fail(number, CommandByte(0), ReturnCode::ADDR_OUT_OF_RANGE),
        }
    }

    /// Handles a store to a low-latency window, at an offset in the launch page. The command is in
    /// the ring as well, and its place there determines which part of the window it goes to. A
    /// store anywhere but to the start of that part does nothing.
    pub fn ring_window(&mut self, number: u16, offset: usize) {
        self.queues.ring_window(number, offset);
    }

    /// A store to a doorbell of a counter.
    pub fn ring_counter(&mut self, number: u16, doorbell: CounterDoorbell, value: u64) {
        self.signals.ring_counter(number, doorbell, value);
    }

    /// A store to the register word of an event queue.
    pub fn ring_event_queue(&mut self, number: u16) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.rung(&mut self.signals.dmas);
        }
    }

    /// Polls all pages for doorbells, in an order that preserves the order of a thread's stores:
    /// transmit queues, target queues, counters. What is polled later is at least as new. Returns
    /// whether any was rung.
    pub fn poll(&mut self) -> bool {
        // Rule 12.1: Transmit doorbells are sampled first and executed last, so that a command sees
        // all that its thread stored before its doorbell.
        let rung = self.queues.take_all_rung();
        // Rule 4.6: Counter doorbells are applied before commands that were rung after them.
        let mut any = self.signals.poll_counters();
        for (number, rung) in rung {
            self.take_up(number, rung);
            any = true;
        }
        self.signals.poll_events();
        any
    }

    /// Returns whether an event queue waits for a store to its register word that only
    /// [`poll`](Self::poll) sees: it has events, and its interrupt is masked.
    #[must_use]
    pub fn awaits_registers(&self) -> bool {
        self.signals.awaits_registers()
    }

    /// EQ_ALLOC.
    pub fn add_event_queue(&mut self, number: u16, queue: EventQueue) {
        self.signals.events.put(number, Events::new(queue));
    }

    /// EQ_FREE.
    pub fn remove_event_queue(&mut self, number: u16) {
        self.signals.remove_events(number);
    }

    /// EQ_RESIZE: posts an EQ_SWITCH event, after which events go to the other buffer. The old
    /// buffer is no longer used after EQ_RESIZE_COMPLETE, which needs no call.
    pub fn resize_event_queue(&mut self, number: u16, buffer: EventBuffer) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.resize(buffer, &mut self.signals.dmas);
        }
    }

    /// EQ_ADJUST_RESERVED_FC: sets the slots that are kept for flow control.
    pub fn set_reserved_slots(&mut self, number: u16, reserved: u32) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.set_reserved(reserved);
        }
    }

    /// CT_ALLOC.
    pub fn add_counter(&mut self, number: u16, counter: Counter) {
        self.remove_counter(number);
        self.signals.counters.put(number, Count::new(counter));
    }

    /// CT_WB_UPDATE.
    pub fn set_write_back(&mut self, number: u16, write_back: Option<WriteBack>) {
        self.signals.set_write_back(number, write_back);
    }

    /// CT_FREE: commands that wait for it never run.
    pub fn remove_counter(&mut self, number: u16) {
        let cancelled = self.signals.remove_counter(number);
        self.forget(&cancelled);
    }

    /// PTE_ALLOC: disabled, with empty lists.
    pub fn add_portal(&mut self, number: u16, portal: Portal) {
        self.portals.add(number, portal);
    }

    /// PTE_FREE: list entries and unexpected messages go without events.
    pub fn remove_portal(&mut self, number: u16) {
        self.portals.remove(number);
    }

    /// PTE_STATUS; `None` for no such PtlTE.
    #[must_use]
    pub fn portal_status(&self, number: u16) -> Option<PortalStatus> {
        self.portals.status(number)
    }

    /// All PtlTEs with their lists, by number.
    #[must_use]
    pub fn portals(&self) -> Vec<PortalSnapshot> {
        self.portals.iter().map(PortalState::snapshot).collect()
    }

    /// PTE_TRANSITION_SM: without an event.
    ///
    /// # Errors
    ///
    /// The PtlTE is not disabled, or messages have been dropped since. It is not an error if
    /// software already manages the lists: nothing happens then.
    pub fn transition_to_software(
        &mut self,
        number: u16,
        drop_count: u32,
    ) -> Result<(), NoTransition> {
        self.portals.transition_to_software(number, drop_count)
    }

    /// ATU_MAP and ATU_UPDATE_MD, under the number of the memory descriptor.
    pub fn add_region(&mut self, number: u32, region: Region) {
        self.translation.add(number, region);
    }

    /// ATU_UNMAP.
    pub fn remove_region(&mut self, number: u32) {
        if let Some(memory) = self.translation.remove(number) {
            // Accesses through it check that it is there.
            self.signals.dmas.release(&memory);
        }
    }

    /// Takes the next access to memory of processes whose [owner](crate::ClientMemory::owner) is
    /// known, if it is one that the caller may execute. Of each process there is one at a time.
    pub fn take_dma(&mut self, may: impl FnMut(&dyn ClientMemory) -> bool) -> Option<Dma> {
        self.signals.dmas.take(may)
    }

    /// An access has been executed; [`step`](Self::step) goes on with what it was for.
    pub fn complete_dma(&mut self, dma: Dma) {
        self.signals.dmas.complete(dma);
    }

    /// Returns whether [`take_dma`](Self::take_dma) would find one.
    #[must_use]
    pub fn has_dma(&self) -> bool {
        self.signals.dmas.any_waits()
    }

    /// Returns whether accesses have not ended.
    #[must_use]
    pub fn has_accesses(&self) -> bool {
        self.signals.dmas.any()
    }

    /// Accesses that had begun to memory that has been taken from the NIC since the last call. The
    /// process may use the memory again when they have [ended](Self::is_settled).
    pub fn take_releases(&mut self) -> Vec<Release> {
        self.signals.dmas.take_releases()
    }

    /// Returns whether the accesses of a release have ended.
    #[must_use]
    pub fn is_settled(&self, release: Release) -> bool {
        self.signals.dmas.is_settled(release)
    }

    /// Lets accesses fail that have been running for ten calls: their process does not answer. Call
    /// it every second.
    pub fn expire_accesses(&mut self) {
        self.signals.dmas.tick();
    }

    /// Returns the tasks of the front end, oldest first; do them without holding a lock on the
    /// engine.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.signals.dmas.take_effects()
    }

    /// Returns whether the front end has something to do.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        self.signals.dmas.has_effects()
    }

    /// Events that were written so far.
    #[must_use]
    pub fn events_written(&self) -> u64 {
        self.signals.telemetry.events.total()
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn telemetry(&self) -> Telemetry {
        let mut telemetry = self.signals.telemetry;
        for (element, counts) in telemetry.elements.iter_mut().zip(self.portals.pools.counts()) {
            element.entries = counts;
        }
        for (pool, used) in (0..).zip(&mut telemetry.triggered_in_use) {
            *used = self.signals.triggers.used(pool);
        }
        telemetry
    }

    /// Sets the observer, or removes it.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) {
        self.signals.observer = observer;
    }
}
