//! LNIs and what is allocated below them, through the safe API.

mod common;

use std::sync::Arc;

use common::{ALL, FROM_13_1, modest, nic, root, user, vni};
use cxi::lni::{
    EthernetClass, EventQueueOptions, LcidChoice, LeList, Lni, MapFlags, MapOptions, Pid,
    ProfileOptions, PtOptions, PteState, TgqOptions, TxqOptions,
};
use cxi::{
    Device, DeviceMemory, Errno, ErrorKind, Limit, Limits, Member, Release, Resource, ResourceMap,
    Result, ServiceId, ServiceSpec, TrafficClass,
};
use cxi_mock::Nic;

/// A service with these limits on a VNI, and an LNI of it that a user has.
fn lni_with(nic: &Arc<Nic>, number: u16, limits: Limits) -> (ServiceId, Lni) {
    let spec = modest(number)
        .member(Member::Uid(1000))
        .limits(limits)
        .build()
        .unwrap();
    let service = root(nic).services().create(&spec).unwrap();
    (service, user(nic).alloc_lni(service).unwrap())
}

fn all(max: u16) -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(max),
    })
}

/// Something that was allocated, of whatever type.
type Held = Box<dyn std::any::Any>;

/// Allocates one of a resource.
fn take(lni: &Lni, number: u16, resource: Resource) -> Result<Held> {
    Ok(match resource {
        Resource::Ptes => Box::new(lni.alloc_pte(PtOptions::IS_MATCHING, None)?),
        Resource::Txqs => {
            let profile = lni.alloc_cp(vni(number), TrafficClass::BestEffort)?;
            Box::new(lni.alloc_txq(&profile, &TxqOptions::new(64))?)
        }
        Resource::Tgqs => Box::new(lni.alloc_tgq(&TgqOptions::new(64))?),
        Resource::Eqs => Box::new(lni.alloc_eq(&EventQueueOptions::new(4096))?),
        Resource::Cts => Box::new(lni.alloc_ct()?),
        other => panic!("{other} are not allocated one by one"),
    })
}

const ONE_BY_ONE: [Resource; 5] = [
    Resource::Ptes,
    Resource::Txqs,
    Resource::Tgqs,
    Resource::Eqs,
    Resource::Cts,
];

fn in_use(lni: &Lni, resource: Resource) -> Option<u16> {
    lni.device().services().usage(lni.service()).unwrap().in_use[resource]
}

#[test]
fn limits_bite_and_what_is_freed_can_be_had_again() {
    for release in ALL {
        for resource in ONE_BY_ONE {
            let nic = nic(release);
            let mut limits = all(100);
            limits[resource] = Limit::new(4, 16).unwrap();
            let (service, lni) = lni_with(&nic, 1024, limits);
            let mut held: Vec<_> = (0..16)
                .map(|_| take(&lni, 1024, resource).unwrap())
                .collect();
            assert_eq!(in_use(&lni, resource), Some(16));
            let error = take(&lni, 1024, resource).unwrap_err();
            let command = match resource {
                Resource::Ptes => "PTE_ALLOC",
                Resource::Eqs => "EQ_ALLOC",
                Resource::Cts => "CT_ALLOC",
                _ => "CQ_ALLOC",
            };
            assert_eq!(
                error.to_string(),
                format!(
                    "cxi0: {command}: service {service} has no {resource} left: 16 of at most 16 \
                     are in use, or kept for its LNIs"
                ),
                "{release}"
            );
            assert_eq!(error.errno(), Errno::ENOSPC);

            held.pop();
            if resource == Resource::Cts {
                // A counter gives its share back with the LNI only.
                assert!(take(&lni, 1024, resource).is_err());
                drop(held);
                lni.close().unwrap();
                let lni = user(&nic).alloc_lni(service).unwrap();
                take(&lni, 1024, resource).unwrap();
            } else {
                held.push(take(&lni, 1024, resource).unwrap());
                assert!(take(&lni, 1024, resource).is_err());
            }
        }
    }
}

#[test]
fn a_limit_of_zero_is_said() {
    let nic = nic(Release::Main);
    for resource in ONE_BY_ONE {
        let number = 1024 + u16::try_from(resource.index()).unwrap();
        let mut limits = all(100);
        limits[resource] = Limit::NONE;
        let (service, lni) = lni_with(&nic, number, limits);
        let error = take(&lni, number, resource).unwrap_err();
        assert_eq!(error.errno(), Errno::EBADR);
        assert!(
            error.to_string().ends_with(&format!(
                "service {service} may have no {resource}: its limit is 0"
            )),
            "{error}"
        );
    }
}

#[test]
fn sharers_can_use_up_what_is_reserved_for_another() {
    // A reservation is safe from other reservations, not from services that share.
    let nic = Nic::new(
        cxi_mock::NicConfig::new()
            .release(Release::Main)
            .totals(|totals| totals.cts = 32),
    )
    .unwrap();
    let mut limits = all(1);
    limits[Resource::Cts] = Limit::exactly(8);
    let (reserving, first) = lni_with(&nic, 1024, limits);
    limits[Resource::Cts] = Limit::at_most(32);
    let (sharing, second) = lni_with(&nic, 1025, limits);
    let taken: Vec<_> = (0..32).map(|_| second.alloc_ct().unwrap()).collect();
    let error = first.alloc_ct().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cxi0: CT_ALLOC: the NIC has no CTs left: service {reserving} has 0 of at most 8 in use"
        )
    );
    let have = root(&nic).availability().unwrap().resources[Resource::Cts];
    assert_eq!(
        (have.in_use, have.shared_in_use, have.reservable),
        (32, 32, 24)
    );
    assert_eq!(in_use(&second, Resource::Cts), Some(32));
    assert_ne!(reserving, sharing);
    drop((taken, second));
    first.alloc_ct().unwrap();
}

#[test]
fn address_contexts_are_counted_by_kind_and_rgid() {
    let nic = nic(Release::Main);
    let mut limits = all(100);
    limits[Resource::Acs] = Limit::at_most(1);
    let (service, lni) = lni_with(&nic, 1024, limits);
    let memory = Arc::new(DeviceMemory::new(1 << 16).unwrap());
    let pinned = MapOptions::new();
    let md = lni.map_memory(&memory, &pinned).unwrap();
    // The same kind again costs nothing.
    let again = lni.map_memory(&memory, &pinned).unwrap();
    assert_eq!((md.lac(), again.lac()), (0, 0));
    assert_eq!(md.len(), 1 << 16);
    let other = pinned.flags(MapFlags::READ | MapFlags::WRITE);
    let error = lni.map_memory(&memory, &other).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cxi0: ATU_MAP: service {service} has no ACs left: 1 of at most 1 are in use, or kept \
             for its LNIs"
        )
    );
    md.update(0..4096).unwrap();
    assert_eq!(
        md.update(4096..1 << 17).unwrap_err().to_string(),
        "cxi0: ATU_UPDATE_MD: bytes 4096 to 131072: expected a part of the 65536 that are \
         registered"
    );
    assert_eq!(
        lni.map_memory(&memory, &pinned.flags(MapFlags::ATS))
            .unwrap_err()
            .to_string(),
        "cxi0: ATU_MAP: the node has no address translation services (EOPNOTSUPP)"
    );
    assert_eq!(
        lni.map_memory(&memory, &pinned.flags(MapFlags::UNUSED))
            .unwrap_err()
            .errno(),
        Errno::EINVAL
    );
}

#[test]
fn handles_may_be_dropped_in_any_order() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    for order in 0..8_usize {
        let wait = lni.alloc_wait().unwrap();
        let events = lni
            .alloc_eq(&EventQueueOptions::new(4096).event_wait(&wait))
            .unwrap();
        let profile = lni.alloc_cp(vni(1024), TrafficClass::LowLatency).unwrap();
        let queue = lni
            .alloc_txq(&profile, &TxqOptions::new(64).events(&events))
            .unwrap();
        let pte = lni
            .alloc_pte(PtOptions::IS_MATCHING, Some(&events))
            .unwrap();
        let domain = lni.alloc_domain(vni(1024), None).unwrap();
        let mapping = pte.map(&domain, 3).unwrap();
        let counter = lni.alloc_ct().unwrap();
        let mut handles: Vec<Held> = vec![
            Box::new(wait),
            Box::new(events),
            Box::new(profile),
            Box::new(queue),
            Box::new(pte),
            Box::new(domain),
            Box::new(mapping),
            Box::new(counter),
        ];
        handles.rotate_left(order);
        handles.into_iter().for_each(drop);
        let left = nic.state().stats;
        assert_eq!((left.domain, left.md), (0, 0), "order {order}");
    }
    // With anything left of it the LNI would be busy.
    lni.close().unwrap();
    root(&nic).services().destroy(service).unwrap();
}

#[test]
fn closing_reports_and_gives_the_handle_back() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    let refused = lni.close().unwrap_err();
    assert_eq!(refused.error.errno(), Errno::EBUSY);
    assert!(refused.error.is_busy());
    assert_eq!(
        refused.error.to_string(),
        "cxi0: LNI_FREE: the LNI is still in use"
    );
    let lni = refused.handle;
    domain.close().unwrap();
    lni.close().unwrap();
    root(&nic).services().destroy(service).unwrap();
}

#[test]
fn an_lni_lives_until_its_last_object_is_gone() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let counter = lni.alloc_ct().unwrap();
    drop(lni);
    let services = root(&nic).services();
    assert!(services.destroy(service).unwrap_err().is_busy());
    drop(counter);
    services.destroy(service).unwrap();
}

#[test]
fn a_process_that_dies_leaves_nothing() {
    for release in ALL {
        let nic = nic(release);
        let (service, lni) = lni_with(&nic, 1024, all(100));
        let held: Vec<_> = ONE_BY_ONE
            .into_iter()
            .map(|resource| take(&lni, 1024, resource).unwrap())
            .collect();
        let services = root(&nic).services();
        assert!(services.destroy(service).unwrap_err().is_busy());
        // What a killed process does not do is free anything one by one.
        drop((held, lni));
        services.destroy(service).unwrap();
    }
}

#[test]
fn who_may_allocate_an_lni() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = modest(1024).member(Member::Uid(7)).build().unwrap();
        let id = services.create(&spec).unwrap();
        let device = user(&nic);
        let error = device.alloc_lni(id).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "cxi0: LNI_ALLOC: not permitted: the caller's effective uid, effective gid and \
                 network namespace are no members of service {id}"
            )
        );
        services.set_enabled(id, false).unwrap();
        assert_eq!(
            device.alloc_lni(id).unwrap_err().to_string(),
            format!("cxi0: LNI_ALLOC: service {id} is disabled")
        );
        let error = device.alloc_lni(ServiceId::DEFAULT).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cxi0: LNI_ALLOC: service 1 is disabled: the default service is, unless the \
             administrator enables it; use a service of your own"
        );
        assert_eq!(error.errno(), Errno::EKEYREVOKED);
        let unknown = ServiceId::new(99).unwrap();
        assert_eq!(
            device.alloc_lni(unknown).unwrap_err().to_string(),
            "cxi0: LNI_ALLOC: there is no service 99"
        );
    }
}

#[test]
fn profiles_say_what_they_miss() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let spec = modest(1024)
            .traffic_classes(cxi::TrafficClasses::BEST_EFFORT)
            .build()
            .unwrap();
        let service = root(&nic).services().create(&spec).unwrap();
        let other = modest(2048).member(Member::Uid(7)).build().unwrap();
        root(&nic).services().create(&other).unwrap();
        let lni = user(&nic).alloc_lni(service).unwrap();
        let profile = |number, class| {
            lni.alloc_cp(vni(number), class)
                .map(|profile| profile.lcid())
                .map_err(|error| error.to_string())
        };
        assert_eq!(profile(1024, TrafficClass::BestEffort), Ok(0));
        for (number, class, message) in [
            (
                1024,
                TrafficClass::LowLatency,
                "cxi0: CP_ALLOC: the service that has the VNI does not allow this traffic class, \
                 or the NIC has no such class and type (EINVAL)",
            ),
            (
                77,
                TrafficClass::BestEffort,
                "cxi0: CP_ALLOC: no enabled service has this VNI (ENOENT)",
            ),
            (
                2048,
                TrafficClass::BestEffort,
                "cxi0: CP_ALLOC: not permitted: the services that have this VNI do not have the \
                 caller as a member",
            ),
        ] {
            assert_eq!(profile(number, class), Err(message.to_owned()), "{release}");
        }
        let ethernet = |priority| {
            let options = ProfileOptions::ethernet(EthernetClass::Shared, priority);
            lni.alloc_cp_with(&options).unwrap_err().to_string()
        };
        assert_eq!(
            ethernet(8),
            "cxi0: CP_ALLOC: priority code point 8: expected 0 to 7"
        );
        assert_eq!(
            ethernet(7),
            "cxi0: CP_ALLOC: not permitted: Ethernet takes CAP_NET_RAW"
        );
    }
}

#[test]
fn old_drivers_are_not_asked_what_they_do_not_know() {
    for release in [Release::Shs12_0, Release::Shs13_0] {
        let nic = nic(release);
        let (service, lni) = lni_with(&nic, 1024, all(100));
        let options =
            ProfileOptions::new(vni(1024), TrafficClass::BestEffort).lcid(LcidChoice::Triggered);
        assert_eq!(
            lni.alloc_cp_with(&options).unwrap_err().to_string(),
            "cxi0: TRIG_CP_ALLOC: asking for an LCID is not known to this driver: it needs SHS \
             13.1 or later"
        );
        let error = lni.reserve_pids(vni(1024), None, 4).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
        assert_eq!(
            lni.alloc_cp(vni(77), TrafficClass::BestEffort)
                .unwrap_err()
                .errno(),
            if release == Release::Shs12_0 {
                Errno::EINVAL
            } else {
                Errno::ENOENT
            }
        );
        assert_eq!(lni.service(), service);
        assert!(nic.events().is_empty());
    }
}

#[test]
fn pids_are_reserved_and_used_once() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let block = lni.reserve_pids(vni(1024), None, 4).unwrap();
    assert_eq!((block.first.get(), block.count), (0, 4));
    let domain = lni.alloc_domain(vni(1024), Some(block.first)).unwrap();
    assert_eq!((domain.vni(), domain.pid()), (1024, 0));
    let error = lni.alloc_domain(vni(1024), Some(block.first)).unwrap_err();
    assert_eq!(error.errno(), Errno::EEXIST);
    assert_eq!(
        lni.reserve_pids(vni(1024), None, 0)
            .unwrap_err()
            .to_string(),
        "cxi0: DOMAIN_RESERVE: 0 PIDs to reserve: expected 1 to 511"
    );
    assert_eq!(
        Pid::new(511).unwrap_err().to_string(),
        "511 is no PID: expected a number from 0 to 510"
    );
    assert_eq!(
        lni.alloc_domain(vni(77), None).unwrap_err().to_string(),
        "cxi0: DOMAIN_ALLOC: no enabled service has this VNI (ENOENT)"
    );
}

#[test]
fn exclusive_profiles_move_to_another_vni() {
    let nic = nic(Release::Main);
    let services = root(&nic).services();
    let spec = ServiceSpec::builder()
        .vni_range("1024-1039".parse().unwrap())
        .limits(all(10))
        .enabled(false)
        .build()
        .unwrap();
    let id = services.create(&spec).unwrap();
    services.set_exclusive_cp(id, true).unwrap();
    services.set_enabled(id, true).unwrap();
    let lni = user(&nic).alloc_lni(id).unwrap();
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    profile.modify(vni(1030)).unwrap();
    assert_eq!(
        profile.modify(vni(99)).unwrap_err().to_string(),
        "cxi0: CP_MODIFY: the profile is not of a service with exclusive communication profiles, \
         or the caller may not use the VNI (EINVAL)"
    );
}

#[test]
fn queues_are_checked_before_they_are_asked_for() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let any = ProfileOptions::new(vni(1024), TrafficClass::BestEffort);
    let plain = lni
        .alloc_cp_with(&any.lcid(LcidChoice::NotTriggered))
        .unwrap();
    let triggered = lni.alloc_cp_with(&any.lcid(LcidChoice::Triggered)).unwrap();
    let text = |result: Result<_>| result.map(|_: cxi::lni::Txq| ()).unwrap_err().to_string();
    assert_eq!(
        text(lni.alloc_txq(&plain, &TxqOptions::new(64).triggered())),
        "cxi0: CQ_ALLOC: a queue for triggered commands needs a profile with LCID 0, this one has \
         1: ask for LcidChoice::Triggered"
    );
    lni.alloc_txq(&triggered, &TxqOptions::new(64).triggered())
        .unwrap();
    let error = lni.alloc_txq(&plain, &TxqOptions::new(65_537)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cxi0: CQ_ALLOC: a queue of 65537 commands: expected at most 65536"
    );
    assert_eq!(error.errno(), Errno::E2BIG);
    assert_eq!(
        text(lni.alloc_txq(&plain, &TxqOptions::new(64).ethernet())),
        "cxi0: CQ_ALLOC: not permitted: Ethernet takes CAP_NET_RAW"
    );
    assert_eq!(
        lni.alloc_tgq(&TgqOptions::new(64).credit_thresholds(4))
            .unwrap_err()
            .to_string(),
        "cxi0: CQ_ALLOC: credit threshold set 4: expected 0 to 3"
    );
    let queue = lni.alloc_txq(&plain, &TxqOptions::new(65)).unwrap();
    assert_eq!((queue.slots(), queue.ack_counter().unwrap()), (128, 0));
    queue.commands().unwrap().write_slot(64, &[7; 64]).unwrap();
    queue.write_pointer().unwrap().ring(0, 1).unwrap();
}

#[test]
fn event_queues_are_checked_and_resized() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    assert_eq!(
        lni.alloc_eq(&EventQueueOptions::new(0))
            .unwrap_err()
            .to_string(),
        "cxi0: EQ_ALLOC: an event queue of 0 bytes: expected room for at least one event"
    );
    let error = lni
        .alloc_eq(&EventQueueOptions::new(4096).reserved_slots(64))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cxi0: EQ_ALLOC: the fill levels go beyond 100 percent, or there are more than four, or \
         no fewer slots are reserved than the queue has (EINVAL)"
    );
    let events = lni
        .alloc_eq(&EventQueueOptions::new(4096).reserved_slots(2))
        .unwrap();
    assert_eq!(events.adjust_reserved_slots(3).unwrap(), 5);
    assert_eq!(
        events.adjust_reserved_slots(-6).unwrap_err().errno(),
        Errno::EINVAL
    );
    let larger = events.resize(16384).unwrap();
    assert_eq!(larger.len(), 16384);
    assert_eq!(events.memory().len(), 4096);
    assert_eq!(events.resize(8192).unwrap_err().errno(), Errno::EBUSY);
    events.complete_resize().unwrap();
    assert_eq!(events.memory().address(), larger.address());
    assert_eq!(events.complete_resize().unwrap_err().errno(), Errno::EINVAL);
    events.registers().unwrap();
    events.close().unwrap();
}

#[test]
fn portal_entries_are_mapped_and_asked() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None).unwrap();
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    let mapping = pte.map(&domain, 255).unwrap();
    assert_eq!(
        pte.map(&domain, 256).unwrap_err().to_string(),
        "cxi0: PTE_MAP: offset 256: expected 0 to 255"
    );
    assert_eq!(
        pte.map(&domain, 255).unwrap_err().to_string(),
        "cxi0: PTE_MAP: offset 255 of the domain is taken (EEXIST)"
    );
    let refused = domain.close().unwrap_err();
    assert!(refused.error.is_busy());
    mapping.close().unwrap();
    refused.handle.close().unwrap();

    pte.invalidate(LeList::Priority, 7).unwrap();
    let status = pte.status(4).unwrap();
    assert_eq!(status.state, PteState::Disabled);
    assert_eq!((status.les_max, status.unexpected), (100, 0));
    pte.transition_to_software(0).unwrap();
    assert_eq!(pte.status(0).unwrap().state, PteState::SoftwareManaged);
    let error = lni.alloc_pte(PtOptions::ETHERNET, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cxi0: PTE_ALLOC: not permitted: Ethernet takes CAP_NET_RAW"
    );
}

#[test]
fn objects_of_another_open_file_are_refused() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let stranger = user(&nic).alloc_lni(service).unwrap();
    let events = stranger.alloc_eq(&EventQueueOptions::new(4096)).unwrap();
    let domain = stranger.alloc_domain(vni(1024), None).unwrap();
    let wait = stranger.alloc_wait().unwrap();
    let profile = stranger
        .alloc_cp(vni(1024), TrafficClass::BestEffort)
        .unwrap();
    let pte = lni.alloc_pte(PtOptions::empty(), None).unwrap();
    for (error, message) in [
        (
            pte.map(&domain, 0).unwrap_err(),
            "PTE_MAP: the domain belongs to another open file than the LNI",
        ),
        (
            lni.alloc_pte(PtOptions::empty(), Some(&events))
                .unwrap_err(),
            "PTE_ALLOC: the event queue belongs to another open file than the LNI",
        ),
        (
            lni.alloc_eq(&EventQueueOptions::new(4096).status_wait(&wait))
                .unwrap_err(),
            "EQ_ALLOC: the wait object belongs to another open file than the LNI",
        ),
        (
            lni.alloc_txq(&profile, &TxqOptions::new(64)).unwrap_err(),
            "CQ_ALLOC: the profile belongs to another open file than the LNI",
        ),
        (
            lni.alloc_tgq(&TgqOptions::new(64).events(&events))
                .unwrap_err(),
            "CQ_ALLOC: the event queue belongs to another open file than the LNI",
        ),
    ] {
        assert_eq!(error.to_string(), format!("cxi0: {message}"));
    }
}

#[test]
fn counters_have_their_own_memory() {
    let nic = nic(Release::Main);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let counter = lni.alloc_ct().unwrap();
    assert_eq!(counter.value().success, 0);
    let memory = Arc::new(DeviceMemory::new(8).unwrap());
    memory.write_u64(0, (1 << 63) | (3 << 48) | 0xc).unwrap();
    counter.write_back_to(&memory).unwrap();
    let value = counter.value();
    assert_eq!(
        (value.success, value.failure, value.written_back),
        (12, 3, true)
    );
    counter.doorbell().unwrap().ring(0, 1).unwrap();
}

#[test]
fn a_removed_nic_does_not_make_handles_panic() {
    let nic = nic(Release::Main);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let counter = lni.alloc_ct().unwrap();
    nic.faults().remove_nic();
    assert_eq!(
        lni.alloc_ct().unwrap_err().to_string(),
        "cxi0: CT_ALLOC: the device has been removed"
    );
    let refused = counter.close().unwrap_err();
    assert_eq!(refused.error.errno(), Errno::EIO);
    drop((refused, lni));
    nic.faults().plug();
    let device: Device = root(&nic);
    device.services().destroy(service).unwrap();
}
