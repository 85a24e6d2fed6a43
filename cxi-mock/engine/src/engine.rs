//! The engine and its interface to the control plane.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use cxi_hw::PtlteState;

use crate::arrival::Answer;
use crate::command_queue::{Kind, Queue, Queues};
use crate::counter::{Count, Signals};
use crate::directory::{Directory, Place};
use crate::event_queue::Events;
use crate::flight::Flights;
use crate::packet::Packet;
use crate::pools::Pools;
use crate::portal::Portals;
use crate::transfer::Transfer;
use crate::translation::Translation;
use crate::{
    CommunicationProfile, Counter, Effect, EntryPool, EventBuffer, EventQueue, Fabric,
    NoTransition, PoolLimits, Portal, PortalStatus, Region, Settings, TargetQueue, Telemetry,
    TransmitQueue, WriteBack,
};

/// The data path of a NIC.
///
/// Numbers of objects are the driver's. An object that is added under a number in use replaces the
/// one before it. Removing what is not there does nothing.
#[derive(Debug)]
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) fabric: Fabric,
    /// Which NIC of its address this is.
    pub(crate) life: u32,
    pub(crate) profiles: BTreeMap<(u16, u8), CommunicationProfile>,
    pub(crate) directory: Directory,
    pub(crate) translation: Translation,
    pub(crate) pools: Pools,
    pub(crate) portals: Portals,
    pub(crate) queues: Queues,
    pub(crate) signals: Signals,
    pub(crate) flights: Flights,
    /// Packets of this NIC to itself.
    pub(crate) inbox: VecDeque<Packet>,
    /// The last answer to each slot of each initiator, while packets may come twice.
    pub(crate) answers: BTreeMap<(u32, u32), Answer>,
    /// A copy that is longer than one step.
    pub(crate) transfer: Option<Transfer>,
    /// Where bytes are between two processes.
    pub(crate) bounce: Vec<u8>,
    pub(crate) telemetry: Telemetry,
}

impl Engine {
    /// A NIC without objects, attached to a fabric.
    #[must_use]
    pub fn new(settings: Settings, fabric: Fabric) -> Self {
        let life = fabric.attach(settings.nid);
        Self {
            pools: Pools::new(&settings),
            settings,
            fabric,
            life,
            profiles: BTreeMap::new(),
            directory: Directory::default(),
            translation: Translation::default(),
            portals: Portals::default(),
            queues: Queues::default(),
            signals: Signals::default(),
            flights: Flights::default(),
            inbox: VecDeque::new(),
            answers: BTreeMap::new(),
            transfer: None,
            bounce: Vec::new(),
            telemetry: Telemetry::default(),
        }
    }

    /// How the NIC is set up.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Changes how the NIC is set up. With another address, packets to the old one are lost. The
    /// numbers of entries stay as they were built.
    pub fn set_settings(&mut self, settings: Settings) {
        if settings.nid != self.settings.nid {
            self.fabric.detach(self.settings.nid);
            self.fabric.attach(settings.nid);
        }
        self.settings = settings;
    }

    /// Takes the NIC from its fabric to another one. Packets that wait for it are lost.
    pub fn set_fabric(&mut self, fabric: Fabric) {
        self.fabric.detach(self.settings.nid);
        self.life = fabric.attach(self.settings.nid);
        self.fabric = fabric;
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
        self.directory.add(profile, vnis);
    }

    /// Stops receiving them.
    pub fn remove_receive_profile(&mut self, profile: u32) {
        self.directory.remove(profile);
    }

    /// Maps a PtlTE to a portal index of a PID of a receive profile's domain: PTE_MAP.
    pub fn map_portal(&mut self, profile: u32, pid: u16, index: u16, portal: u16) {
        self.directory
            .map(profile, Place::Index(pid, index), portal);
    }

    /// Removes the mapping: PTE_UNMAP.
    pub fn unmap_portal(&mut self, profile: u32, pid: u16, index: u16) {
        self.directory.unmap(profile, Place::Index(pid, index));
    }

    /// Maps a PtlTE to a multicast address of a receive profile's VNIs: the number of the tree, and
    /// the portal index above its 13 bits.
    pub fn map_multicast(&mut self, profile: u32, address: u32, portal: u16) {
        let place = Place::Multicast(address);
        self.directory.map(profile, place, portal);
    }

    /// Takes the mapping away: PTE_UNMAP.
    pub fn unmap_multicast(&mut self, profile: u32, address: u32) {
        self.directory.unmap(profile, Place::Multicast(address));
    }

    /// What a pool of list entries may take: all of its processing element if never called.
    pub fn set_entry_pool(&mut self, pool: EntryPool, limits: PoolLimits) {
        self.pools.limit(pool, limits);
    }

    /// List entries in use in a pool.
    #[must_use]
    pub fn entries_in_use(&self, pool: EntryPool) -> u16 {
        self.pools.used(pool)
    }

    /// What a pool of entries for triggered commands may take: 2,048 if never called.
    pub fn set_triggered_pool(&mut self, pool: u8, limits: PoolLimits) {
        self.pools.limit_triggered(pool, limits);
    }

    /// Entries for triggered commands in use in a pool.
    #[must_use]
    pub fn triggered_in_use(&self, pool: u8) -> u16 {
        self.pools.used_triggered(pool)
    }

    /// CQ_ALLOC of a transmit queue, under its number from 0 on.
    pub fn add_transmit_queue(&mut self, number: u16, queue: TransmitQueue) {
        let kind = Kind::Transmit {
            lcid: queue.lcid,
            triggered: queue.triggered,
            pool: queue.tle_pool,
            state: Box::default(),
        };
        self.remove_queue(number);
        let owner = (queue.rgid, queue.eq);
        self.queues.add(
            number,
            Queue::new(kind, owner, queue.count, queue.policy, queue.pages),
        );
    }

    /// CQ_ALLOC of a target queue, under its number from 1024 on.
    pub fn add_target_queue(&mut self, number: u16, queue: TargetQueue) {
        self.remove_queue(number);
        let owner = (queue.rgid, queue.eq);
        let queue = Queue::new(Kind::Target, owner, queue.count, queue.policy, queue.pages);
        self.queues.add(number, queue);
    }

    /// CQ_FREE: executes what was rung, then forgets the queue with the triggered commands that
    /// still wait. What has not been answered by then is no longer reported.
    pub fn remove_queue(&mut self, number: u16) {
        let queue = self.queues.table.get(number);
        if let Some(value) = queue.and_then(|queue| queue.pages.take_doorbell()) {
            self.ring_queue(number, value);
            // What was rung before that comes before it.
            self.poll();
        }
        while self.queues.has_work(number) && self.step() {}
        let queue = self.queues.table.remove(number);
        let Some(queue) = queue.filter(|queue| queue.pending > 0) else {
            return;
        };
        for triggered in self.signals.cancel_of_queue(number, queue.generation) {
            self.pools.give_triggered(triggered.pool);
        }
    }

    /// CQ_ACK_COUNTER: commands of a queue that have not ended, triggered ones that wait included.
    #[must_use]
    pub fn commands_in_flight(&self, number: u16) -> u32 {
        self.queues
            .table
            .get(number)
            .map_or(0, |queue| queue.pending)
    }

    /// EQ_ALLOC.
    pub fn add_event_queue(&mut self, number: u16, queue: EventQueue) {
        self.signals.events.put(number, Events::new(queue));
    }

    /// EQ_FREE.
    pub fn remove_event_queue(&mut self, number: u16) {
        self.signals.events.remove(number);
    }

    /// EQ_RESIZE: an EQ_SWITCH event, then events go to the other buffer. The old one is not used
    /// any more after EQ_RESIZE_COMPLETE, which needs no call.
    pub fn resize_event_queue(&mut self, number: u16, buffer: EventBuffer) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.resize(buffer, &mut self.signals.effects);
        }
    }

    /// EQ_ADJUST_RESERVED_FC: sets the slots that are kept for flow control.
    pub fn set_reserved_slots(&mut self, number: u16, reserved: u32) {
        if let Some(events) = self.signals.events.get_mut(number) {
            events.config.reserved = reserved;
        }
    }

    /// CT_ALLOC.
    pub fn add_counter(&mut self, number: u16, counter: Counter) {
        self.remove_counter(number);
        self.signals.counters.put(number, Count::new(counter));
    }

    /// CT_WB_UPDATE.
    pub fn set_write_back(&mut self, number: u16, write_back: Option<WriteBack>) {
        if let Some(counter) = self.signals.counters.get_mut(number) {
            counter.config.write_back = write_back;
        }
    }

    /// CT_FREE: commands that wait for it never run.
    pub fn remove_counter(&mut self, number: u16) {
        for triggered in self.signals.cancel(number) {
            self.forget_triggered(&triggered);
        }
        self.signals.counters.remove(number);
    }

    /// PTE_ALLOC: disabled, with empty lists.
    pub fn add_portal(&mut self, number: u16, portal: Portal) {
        self.remove_portal(number);
        self.portals.add(number, portal);
    }

    /// PTE_FREE: list entries and unexpected messages go without events.
    pub fn remove_portal(&mut self, number: u16) {
        if let Some(portal) = self.portals.table.remove(number) {
            self.pools.give(portal.config.pool, portal.entries());
        }
    }

    /// PTE_STATUS; `None` for no such PtlTE.
    #[must_use]
    pub fn portal_status(&self, number: u16) -> Option<PortalStatus> {
        let portal = self.portals.table.get(number)?;
        Some(PortalStatus {
            les_allocated: self.pools.used(portal.config.pool),
            ..portal.status()
        })
    }

    /// PTE_TRANSITION_SM: without an event.
    ///
    /// # Errors
    ///
    /// The PtlTE is not disabled, or messages have been dropped since. If software has the lists
    /// already, nothing happens.
    pub fn transition_to_software(
        &mut self,
        number: u16,
        drop_count: u32,
    ) -> Result<(), NoTransition> {
        let portal = self.portals.table.get_mut(number);
        let portal = portal.ok_or(NoTransition::NotDisabled)?;
        match portal.state {
            PtlteState::SOFTWARE_MANAGED => Ok(()),
            PtlteState::DISABLED if portal.drops != drop_count => Err(NoTransition::Drops),
            PtlteState::DISABLED => {
                portal.state = PtlteState::SOFTWARE_MANAGED;
                portal.drops = 0;
                Ok(())
            }
            _ => Err(NoTransition::NotDisabled),
        }
    }

    /// ATU_MAP and ATU_UPDATE_MD, under the number of the memory descriptor.
    pub fn add_region(&mut self, number: u32, region: Region) {
        self.translation.add(number, region);
    }

    /// ATU_UNMAP.
    pub fn remove_region(&mut self, number: u32) {
        self.translation.remove(number);
    }

    /// What the front end has to do, oldest first; do it without holding a lock on the engine.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.signals.effects)
    }

    /// Whether the front end has something to do.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !self.signals.effects.is_empty()
    }

    /// Events that were written so far.
    #[must_use]
    pub fn events_written(&self) -> u64 {
        self.signals.written.total()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.fabric.detach(self.settings.nid);
    }
}
