//! What is done with objects, and their end.

use cxi::TrafficClass;
use cxi::lni::{
    LeList, MapFlags, MapOptions, NotClosed, PtOptions, PteStatus, TgqOptions, TxqOptions,
};

use super::Call;
use super::lni::{events, memory};
use crate::stage::{Stage, Value, shown, vni};

/// The end of a handle; one that cannot be closed yet is dropped.
fn ended<T>(result: Result<(), NotClosed<T>>) -> cxi::Result<Value> {
    result.map(shown).map_err(|refused| refused.error)
}

fn matching(stage: &Stage) -> (cxi::Lni, cxi::lni::Pte, cxi::lni::Domain) {
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
        events
            .complete_resize()
            .map(|()| shown(events.memory().len()))
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
        pte.map_multicast(&domain, 7)
            .map(|mapping| shown(mapping.index()))
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
    Call::new("Lni::close", |stage| {
        let lni = stage.lni();
        stage.arm();
        ended(lni.close())
    })
    .like(&["cxil_destroy_lni"]),
    Call::new("CommunicationProfile::close", |stage| {
        let profile = stage
            .lni()
            .alloc_cp(vni(1024), TrafficClass::BestEffort)
            .unwrap();
        stage.arm();
        ended(profile.close())
    })
    .like(&["cxil_destroy_cp"]),
    Call::new("Domain::close", |stage| {
        let domain = stage.lni().alloc_domain(vni(1024), None).unwrap();
        stage.arm();
        ended(domain.close())
    })
    .like(&["cxil_destroy_domain"]),
    Call::new("Tgq::close", |stage| {
        let queue = stage.lni().alloc_tgq(&TgqOptions::new(64)).unwrap();
        stage.arm();
        ended(queue.close())
    })
    .like(&["cxil_destroy_cmdq"]),
    Call::new("CountingEvent::close", |stage| {
        let counter = stage.lni().alloc_ct().unwrap();
        stage.arm();
        ended(counter.close())
    })
    .like(&["cxil_destroy_ct"]),
    Call::new("EventQueue::close", |stage| {
        let events = events(&stage.lni());
        stage.arm();
        ended(events.close())
    })
    .like(&["cxil_destroy_evtq"]),
    Call::new("Pte::close", |stage| {
        let (_lni, pte, _domain) = matching(stage);
        stage.arm();
        ended(pte.close())
    })
    .like(&["cxil_destroy_pte"]),
    Call::new("PteMapping::close", |stage| {
        let (_lni, pte, domain) = matching(stage);
        let mapping = pte.map(&domain, 7).unwrap();
        stage.arm();
        ended(mapping.close())
    })
    .like(&["cxil_unmap_pte"]),
    Call::new("Md::close", |stage| {
        let md = stage
            .lni()
            .map_memory(&memory(), &MapOptions::new())
            .unwrap();
        stage.arm();
        ended(md.close())
    })
    .like(&["cxil_unmap"]),
    Call::new("WaitObject::close", |stage| {
        let wait = stage.lni().alloc_wait().unwrap();
        stage.arm();
        ended(wait.close())
    })
    .like(&["cxil_destroy_wait_obj"]),
];
