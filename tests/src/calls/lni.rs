//! Calls that allocate objects below an LNI.

use std::sync::Arc;

use cxi::driver::Quirks;
use cxi::lni::{
    EventQueue, EventQueueOptions, LcidChoice, MapOptions, ProfileOptions, PtOptions, TgqOptions,
    TxqOptions,
};
use cxi::{DeviceMemory, Lni, TrafficClass};

use super::Call;
use crate::stage::{Stage, block, shown, spec, vni};

const CLASS: TrafficClass = TrafficClass::BestEffort;

pub(super) fn events(lni: &Lni) -> EventQueue {
    lni.alloc_eq(&EventQueueOptions::new(4096)).unwrap()
}

pub(super) fn memory() -> Arc<DeviceMemory> {
    Arc::new(DeviceMemory::new(8192).unwrap())
}

/// Objects of all kinds, each of which uses the ones before.
fn tree(stage: &Stage) -> cxi::Result<crate::stage::Value> {
    let service = stage.listed();
    let lni = stage.armed().alloc_lni(service)?;
    let profile = lni.alloc_cp(vni(1024), CLASS)?;
    let wait = lni.alloc_wait()?;
    let events = lni.alloc_eq(&EventQueueOptions::new(4096).event_wait(&wait))?;
    let txq = lni.alloc_txq(&profile, &TxqOptions::new(64).event_queue(&events))?;
    let tgq = lni.alloc_tgq(&TgqOptions::new(64).event_queue(&events))?;
    let counter = lni.alloc_ct()?;
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events))?;
    let domain = lni.alloc_domain(vni(1024), None)?;
    let mapping = pte.map(&domain, 5)?;
    let md = lni.map_memory(&memory(), &MapOptions::new())?;
    Ok(shown((
        (profile.lcid(), wait.id(), events.id(), txq.slots()),
        (tgq.slots(), counter.value(), pte.id(), domain.pid()),
        (mapping.index(), md.id(), md.lac()),
    )))
}

pub(super) const CALLS: &[Call] = &[
    Call::new("a tree of all objects", tree),
    Call::new("Lni::alloc_cp", |stage| {
        let lni = stage.lni();
        stage.arm();
        lni.alloc_cp(vni(1024), CLASS).map(|profile| shown(profile.lcid()))
    })
    .like(&["cxil_alloc_cp"]),
    Call::new("Lni::alloc_cp_with, LCID", |stage| {
        let lni = stage.lni();
        let options = ProfileOptions::new(vni(1024), CLASS).lcid(LcidChoice::Triggered);
        stage.arm();
        lni.alloc_cp_with(&options).map(|profile| shown(profile.lcid()))
    })
    .since_13_1()
    .like(&["cxil_alloc_trig_cp"]),
    Call::new("CommunicationProfile::modify", |stage| {
        let service = stage.ranged();
        let quirk = Quirks::SWITCHED_EXCLUSIVE_CP;
        let upkeep = stage.upkeep.clone().allow_quirks(quirk).services();
        upkeep.set_exclusive_cp(service, true).unwrap();
        upkeep.set_enabled(service, true).unwrap();
        let lni = stage.device.alloc_lni(service).unwrap();
        let profile = lni.alloc_cp(block().first(), CLASS).unwrap();
        stage.arm();
        profile.modify(block().last()).map(shown)
    })
    .since_13_1()
    .like(&["cxil_modify_cp"]),
    Call::new("Lni::alloc_domain", |stage| {
        let lni = stage.lni();
        stage.arm();
        let domain = lni.alloc_domain(vni(1024), None)?;
        Ok(shown((domain.vni(), domain.pid())))
    })
    .like(&["cxil_alloc_domain"]),
    Call::new("Lni::reserve_pids", |stage| {
        let lni = stage.lni();
        stage.arm();
        lni.reserve_pids(vni(1024), None, 8).map(shown)
    })
    .since_13_1()
    .like(&["cxil_reserve_domain"]),
    Call::new("Lni::alloc_txq", |stage| {
        let lni = stage.lni();
        let profile = lni.alloc_cp(vni(1024), CLASS).unwrap();
        stage.arm();
        let queue = lni.alloc_txq(&profile, &TxqOptions::new(64))?;
        Ok(shown((queue.id(), queue.slots())))
    })
    .like(&["cxil_alloc_cmdq"]),
    Call::new("Lni::alloc_tgq", |stage| {
        let lni = stage.lni();
        stage.arm();
        let queue = lni.alloc_tgq(&TgqOptions::new(64))?;
        Ok(shown((queue.id(), queue.slots())))
    }),
    Call::new("Lni::alloc_ct", |stage| {
        let lni = stage.lni();
        stage.arm();
        lni.alloc_ct().map(|counter| shown((counter.id(), counter.value())))
    })
    .like(&["cxil_alloc_ct"]),
    Call::new("Lni::alloc_eq", |stage| {
        let lni = stage.lni();
        stage.arm();
        lni.alloc_eq(&EventQueueOptions::new(4096))
            .map(|events| shown((events.id(), events.memory().len())))
    })
    .like(&["cxil_alloc_evtq"]),
    Call::new("Lni::alloc_pte", |stage| {
        let lni = stage.lni();
        let events = events(&lni);
        stage.arm();
        lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events)).map(|pte| shown(pte.id()))
    })
    .like(&["cxil_alloc_pte"]),
    Call::new("Lni::map_memory", |stage| {
        let lni = stage.lni();
        stage.arm();
        let md = lni.map_memory(&memory(), &MapOptions::new())?;
        Ok(shown((md.id(), md.lac(), md.len())))
    })
    .like(&["cxil_map"]),
    Call::new("Lni::alloc_wait", |stage| {
        let lni = stage.lni();
        stage.arm();
        lni.alloc_wait().map(|wait| shown((wait.id(), wait.path("/sys".as_ref()))))
    })
    .like(&["cxil_alloc_wait_obj"]),
    Call::new("Lni::alloc_cp, a service without that VNI", |stage| {
        // Another service of the caller has the VNI, so all services are searched.
        let lni = stage.lni();
        stage.service(spec().vni(vni(1025)));
        stage.arm();
        lni.alloc_cp(vni(1025), CLASS).map(|profile| shown(profile.lcid()))
    })
    .since_13_1(),
];
