//! LNIs and everything below.

use std::fmt::Debug;
use std::sync::Arc;

use cxi::lni::{
    CommunicationProfile, CountingEvent, Domain, EthernetClass, EventQueue, EventQueueFlags,
    EventQueueOptions, LcidChoice, LeList, MapFlags, MapOptions, Md, NotClosed, Pid, PidBlock,
    ProfileOptions, PtOptions, Pte, PteMapping, Tgq, TgqOptions, TrafficClassType, Txq, TxqOptions,
    UpdatePolicy, WaitObject,
};
use cxi::{Device, DeviceMemory, Lni, ServiceId, TrafficClass, Vni};

use super::told;
use crate::input::Input;

/// Handles that are kept.
#[derive(Debug, Default)]
pub(super) struct Objects {
    lnis: Vec<Lni>,
    profiles: Vec<CommunicationProfile>,
    domains: Vec<Domain>,
    pids: Vec<PidBlock>,
    waits: Vec<WaitObject>,
    events: Vec<EventQueue>,
    txqs: Vec<Txq>,
    tgqs: Vec<Tgq>,
    counters: Vec<CountingEvent>,
    ptes: Vec<Pte>,
    mappings: Vec<PteMapping>,
    mds: Vec<Md>,
}

/// One of those that are there.
fn one<'a, T>(from: &'a [T], input: &mut Input<'_>) -> Option<&'a T> {
    let index = usize::from(input.byte());
    from.get(index % from.len().max(1))
}

/// A handle that cannot be closed comes back, and is dropped.
fn closed<T: Debug>(device: &Device, handle: Option<T>, close: fn(T) -> Result<(), NotClosed<T>>) {
    if let Some(handle) = handle {
        let result = close(handle).map_err(|kept| kept.error);
        let _ = told(device, result);
    }
}

const VNI: u16 = 10;

impl Objects {
    pub(super) fn call(&mut self, call: u8, device: &Device, input: &mut Input<'_>) {
        if call == 0 || self.lnis.is_empty() {
            let service = ServiceId::new(u32::from(input.byte() % 3) + 1);
            let service = service.unwrap_or(ServiceId::DEFAULT);
            let _ = told(device, device.services().set_enabled(service, true));
            self.lnis.extend(told(device, device.alloc_lni(service)));
        }
        match call {
            1..=14 => self.alloc(call, device, input),
            15..=21 => self.ask(call, device, input),
            22 => self.close(device, input),
            _ => self.forget(input),
        }
    }

    fn alloc(&mut self, call: u8, device: &Device, input: &mut Input<'_>) {
        let Some(lni) = one(&self.lnis, input) else {
            return;
        };
        let vni = Vni::new(VNI).expect("not zero");
        match call {
            1 => {
                let profile = lni.alloc_cp(vni, TrafficClass::BestEffort);
                self.profiles.extend(told(device, profile));
            }
            2 => {
                let options = if input.flag() {
                    ProfileOptions::ethernet(EthernetClass::Shared, input.byte())
                } else {
                    ProfileOptions::new(vni, TrafficClass::LowLatency)
                        .class_type(TrafficClassType::Restricted)
                        .lcid(input.choose(&[LcidChoice::Any, LcidChoice::Triggered]))
                };
                self.profiles
                    .extend(told(device, lni.alloc_cp_with(&options)));
            }
            3 => {
                let pid = input.flag().then(|| Pid::new(5).ok()).flatten();
                self.domains
                    .extend(told(device, lni.alloc_domain(vni, pid)));
            }
            4 => {
                let count = u16::from(input.byte());
                self.pids
                    .extend(told(device, lni.reserve_pids(vni, None, count)));
            }
            5 => self.waits.extend(told(device, lni.alloc_wait())),
            6 | 7 => {
                let mut options = EventQueueOptions::new(usize::from(input.byte()) * 64)
                    .flags(EventQueueFlags::TARGET_LONG)
                    .reserved_slots(input.byte().into());
                let wait = one(&self.waits, input);
                if let Some(wait) = wait {
                    options = options.event_wait(wait).status_wait(wait);
                }
                self.events.extend(told(device, lni.alloc_eq(&options)));
            }
            8 => {
                let mut options = TxqOptions::new(input.u16().into()).policy(UpdatePolicy::Seldom);
                if let Some(events) = one(&self.events, input) {
                    options = options.event_queue(events);
                }
                if let Some(profile) = one(&self.profiles, input) {
                    self.txqs
                        .extend(told(device, lni.alloc_txq(profile, &options)));
                }
            }
            9 => {
                let options = TgqOptions::new(input.u16().into()).credit_thresholds(1);
                self.tgqs.extend(told(device, lni.alloc_tgq(&options)));
            }
            10 => self.counters.extend(told(device, lni.alloc_ct())),
            11 => {
                let events = one(&self.events, input);
                let options = PtOptions::from_bits_truncate(input.u64());
                self.ptes
                    .extend(told(device, lni.alloc_pte(options, events)));
            }
            12 => {
                if let (Some(pte), Some(domain)) =
                    (one(&self.ptes, input), one(&self.domains, input))
                {
                    let mapping = match input.byte() {
                        byte @ 0..=127 => pte.map(domain, byte.into()),
                        byte => pte.map_multicast(domain, byte.into()),
                    };
                    self.mappings.extend(told(device, mapping));
                }
            }
            _ => {
                let memory = DeviceMemory::new(usize::from(input.byte()) * 32 + 1);
                let mut options = MapOptions::new();
                if input.flag() {
                    options = options
                        .flags(MapFlags::from_bits_truncate(input.u32()))
                        .page_shifts(input.byte(), input.byte());
                }
                if let Ok(memory) = memory {
                    let md = lni.map_memory(&Arc::new(memory), &options);
                    self.mds.extend(told(device, md));
                }
            }
        }
    }

    fn ask(&self, call: u8, device: &Device, input: &mut Input<'_>) {
        match call {
            15 => {
                if let Some(events) = one(&self.events, input) {
                    let _ = told(device, events.resize(usize::from(input.byte()) * 64 + 1));
                    let _ = told(device, events.complete_resize());
                }
            }
            16 => {
                if let Some(events) = one(&self.events, input) {
                    let change = i32::from_le_bytes(input.u32().to_le_bytes());
                    let _ = told(device, events.adjust_reserved_slots(change));
                    let _ = told(device, events.registers());
                    let _ = events.memory().read_u64(0);
                }
            }
            17 => {
                if let Some(queue) = one(&self.txqs, input) {
                    let _ = told(device, queue.ack_counter());
                    let _ = told(device, queue.commands());
                    let _ = told(device, queue.write_pointer());
                    let _ = (queue.slots(), queue.id());
                }
            }
            18 => {
                if let Some(queue) = one(&self.tgqs, input) {
                    let _ = told(device, queue.ack_counter());
                    let _ = told(device, queue.commands());
                }
            }
            19 => {
                if let Some(counter) = one(&self.counters, input) {
                    let _ = (counter.value(), counter.id());
                    let _ = told(device, counter.doorbell());
                    if let Ok(memory) = DeviceMemory::new(usize::from(input.byte())) {
                        let _ = told(device, counter.write_back_to(&Arc::new(memory)));
                    }
                }
            }
            20 => {
                if let Some(pte) = one(&self.ptes, input) {
                    if let Some(status) = told(device, pte.status(input.byte().into())) {
                        let (offsets, count) = (status.unexpected_offsets, status.unexpected);
                        assert!(offsets.len() <= count.into(), "{offsets:?} of {count}");
                    }
                    let _ = told(device, pte.invalidate(LeList::Overflow, 7));
                    let _ = told(device, pte.transition_to_software(0));
                }
            }
            _ => {
                if let Some(profile) = one(&self.profiles, input) {
                    let vni = Vni::new(u16::from(input.byte()) + 1).expect("not zero");
                    let _ = told(device, profile.modify(vni));
                }
                if let Some(md) = one(&self.mds, input) {
                    let half = md.len() / 2;
                    let _ = told(device, md.update(0..half));
                    let _ = (md.iova(), md.lac(), md.id());
                }
                if let Some(domain) = one(&self.domains, input) {
                    let _ = (domain.pid(), domain.vni());
                }
            }
        }
    }

    fn close(&mut self, device: &Device, input: &mut Input<'_>) {
        match input.byte() % 11 {
            0 => closed(device, self.lnis.pop(), Lni::close),
            1 => closed(device, self.profiles.pop(), CommunicationProfile::close),
            2 => closed(device, self.domains.pop(), Domain::close),
            3 => closed(device, self.waits.pop(), WaitObject::close),
            4 => closed(device, self.events.pop(), EventQueue::close),
            5 => closed(device, self.txqs.pop(), Txq::close),
            6 => closed(device, self.tgqs.pop(), Tgq::close),
            7 => closed(device, self.counters.pop(), CountingEvent::close),
            8 => closed(device, self.ptes.pop(), Pte::close),
            9 => closed(device, self.mappings.pop(), PteMapping::close),
            _ => closed(device, self.mds.pop(), Md::close),
        }
    }

    /// Handles go in any order.
    fn forget(&mut self, input: &mut Input<'_>) {
        match input.byte() % 11 {
            0 => drop(self.lnis.pop()),
            1 => drop(self.profiles.pop()),
            2 => drop(self.domains.pop()),
            3 => drop(self.waits.pop()),
            4 => drop(self.events.pop()),
            5 => drop(self.txqs.pop()),
            6 => drop(self.tgqs.pop()),
            7 => drop(self.counters.pop()),
            8 => drop(self.ptes.pop()),
            9 => drop(self.mappings.pop()),
            _ => drop(self.mds.pop()),
        }
    }
}
