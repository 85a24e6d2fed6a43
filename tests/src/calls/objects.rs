//! Calls on objects, and closing them.

use cxi::lni::{
    CommunicationProfile, CountingEvent, Domain, EventQueue, LeList, MapFlags, MapOptions, Md,
    NotClosed, PtOptions, Pte, PteMapping, PteStatus, Tgq, TgqOptions, TxqOptions, WaitObject,
};
use cxi::{Lni, TrafficClass};

use super::Call;
use super::lni::{events, memory};
use crate::stage::{Stage, Value, shown, vni};

/// Closes a handle, or drops it if it cannot be closed yet.
fn end<T>(
    stage: &Stage,
    handle: T,
    close: fn(T) -> Result<(), NotClosed<T>>,
) -> cxi::Result<Value> {
    stage.arm();
    close(handle).map(shown).map_err(|refused| refused.error)
}

fn matching(stage: &Stage) -> (Lni, Pte, Domain) {
    let lni = stage.lni();
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None).unwrap();
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    (lni, pte, domain)
}

fn status(stage: &Stage, offsets: u16) -> cxi::Result<PteStatus> {
    let (_lni, pte, _domain) = matching(stage);
    stage.arm();
    pte.status(offsets)
}

pub(super) const CALLS: &[Call] = &[
    Call::new("Txq::ack_counter", |stage| {
        let lni = stage.lni();
        let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
        let queue = lni.alloc_txq(&profile, &TxqOptions::new(64)).unwrap();
        stage.arm();
        queue.ack_counter().map(shown)
    })
    .like(&["cxil_cmdq_ack_counter"]),
    Call::new("CountingEvent::write_back_to", |stage| {
        let counter = stage.lni().alloc_ct().unwrap();
        stage.arm();
        counter.write_back_to(&memory()).map(shown)
    })
    .like(&["cxil_ct_wb_update"]),
    Call::new("EventQueue::resize", |stage| {
        let events = events(&stage.lni());
        stage.arm();
        events.resize(8192).map(|memory| shown(memory.len()))
    })
    .like(&["cxil_evtq_resize"]),
    Call::new("EventQueue::complete_resize", |stage| {
        let events = events(&stage.lni());
        let _next = events.resize(8192).unwrap();
        stage.arm();
        events.complete_resize().map(|()| shown(events.memory().len()))
    })
    .like(&["cxil_evtq_resize_complete"]),
    Call::new("EventQueue::adjust_reserved_slots", |stage| {
        let events = events(&stage.lni());
        stage.arm();
        events.adjust_reserved_slots(3).map(shown)
    })
    .like(&["cxil_evtq_adjust_reserved_fc"]),
    Call::new("Pte::map", |stage| {
        let (_lni, pte, domain) = matching(stage);
        stage.arm();
        pte.map(&domain, 7).map(|mapping| shown(mapping.index()))
    })
    .like(&["cxil_map_pte"]),
    Call::new("Pte::map_multicast", |stage| {
        let (_lni, pte, domain) = matching(stage);
        stage.arm();
        pte.map_multicast(&domain, 7).map(|mapping| shown(mapping.index()))
    }),
    Call::new("Pte::invalidate", |stage| {
        let (_lni, pte, _domain) = matching(stage);
        stage.arm();
        pte.invalidate(LeList::Priority, 1).map(shown)
    })
    .like(&["cxil_invalidate_pte_le"]),
    Call::new("Pte::status", |stage| status(stage, 4).map(shown)).like(&["cxil_pte_status"]),
    Call::new("Pte::transition_to_software", |stage| {
        let (_lni, pte, _domain) = matching(stage);
        stage.arm();
        pte.transition_to_software(0).map(shown)
    })
    .like(&["cxil_pte_transition_sm"]),
    Call::new("Md::update", |stage| {
        let on_demand = MapOptions::new().flags(MapFlags::READ | MapFlags::WRITE);
        let md = stage.lni().map_memory(&memory(), &on_demand).unwrap();
        stage.arm();
        md.update(0..4096).map(shown)
    })
    .like(&["cxil_update_md"]),
    Call::new("Lni::close", |stage| end(stage, stage.lni(), Lni::close))
        .like(&["cxil_destroy_lni"]),
    Call::new("CommunicationProfile::close", |stage| {
        let profile = stage.lni().alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
        end(stage, profile, CommunicationProfile::close)
    })
    .like(&["cxil_destroy_cp"]),
    Call::new("Domain::close", |stage| {
        let domain = stage.lni().alloc_domain(vni(1024), None).unwrap();
        end(stage, domain, Domain::close)
    })
    .like(&["cxil_destroy_domain"]),
    Call::new("Tgq::close", |stage| {
        let queue = stage.lni().alloc_tgq(&TgqOptions::new(64)).unwrap();
        end(stage, queue, Tgq::close)
    })
    .like(&["cxil_destroy_cmdq"]),
    Call::new("CountingEvent::close", |stage| {
        let counter = stage.lni().alloc_ct().unwrap();
        end(stage, counter, CountingEvent::close)
    })
    .like(&["cxil_destroy_ct"]),
    Call::new("EventQueue::close", |stage| {
        let events = events(&stage.lni());
        end(stage, events, EventQueue::close)
    })
    .like(&["cxil_destroy_evtq"]),
    Call::new("Pte::close", |stage| {
        let (_lni, pte, _domain) = matching(stage);
        end(stage, pte, Pte::close)
    })
    .like(&["cxil_destroy_pte"]),
    Call::new("PteMapping::close", |stage| {
        let (_lni, pte, domain) = matching(stage);
        let mapping = pte.map(&domain, 7).unwrap();
        end(stage, mapping, PteMapping::close)
    })
    .like(&["cxil_unmap_pte"]),
    Call::new("Md::close", |stage| {
        let md = stage.lni().map_memory(&memory(), &MapOptions::new()).unwrap();
        end(stage, md, Md::close)
    })
    .like(&["cxil_unmap"]),
    Call::new("WaitObject::close", |stage| {
        let wait = stage.lni().alloc_wait().unwrap();
        end(stage, wait, WaitObject::close)
    })
    .like(&["cxil_destroy_wait_obj"]),
];
