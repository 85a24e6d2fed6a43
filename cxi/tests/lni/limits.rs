//! Limits of a service, and the return of its resources.

use std::sync::Arc;

use crate::common::{ALL, all, create, lni_with, modest, nic, root, says, user, vni};
use cxi::lni::{
    EventQueueOptions, Lni, MapFlags, MapOptions, NotClosed, PtOptions, TgqOptions, TxqOptions,
};
use cxi::{
    Device, DeviceMemory, DriverRelease, Errno, Limit, Member, Resource, Result, ServiceId,
    TrafficClass,
};
use cxi_mock::{Credentials, Nic, NicConfig};

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

const ONE_BY_ONE: [Resource; 5] =
    [Resource::Ptes, Resource::Txqs, Resource::Tgqs, Resource::Eqs, Resource::Cts];

fn in_use(lni: &Lni, resource: Resource) -> Option<u16> {
    lni.device().services().usage(lni.service()).unwrap().reported[resource]
}

#[test]
fn limits_bite_and_what_is_freed_can_be_had_again() {
    for release in ALL {
        for resource in ONE_BY_ONE {
            let nic = nic(release);
            let mut limits = all(100);
            limits[resource] = Limit::new(4, 16).unwrap();
            let (service, lni) = lni_with(&nic, 1024, limits);
            let mut held: Vec<_> = (0..16).map(|_| take(&lni, 1024, resource).unwrap()).collect();
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
fn an_event_queue_needs_an_address_context() {
    let nic = nic(DriverRelease::Main2026_07);
    let mut limits = all(100);
    limits[Resource::Acs] = Limit::NONE;
    let (service, lni) = lni_with(&nic, 1024, limits);
    let error = lni.alloc_eq(&EventQueueOptions::new(4096)).unwrap_err();
    assert_eq!(error.errno(), Errno::EBADR);
    let text = format!("service {service} may have no ACs: its limit is 0");
    assert!(error.to_string().ends_with(&text), "{error}");
}

#[test]
fn a_limit_of_zero_is_said() {
    let nic = nic(DriverRelease::Main2026_07);
    for resource in ONE_BY_ONE {
        let number = 1024 + u16::try_from(resource.index()).unwrap();
        let mut limits = all(100);
        limits[resource] = Limit::NONE;
        let (service, lni) = lni_with(&nic, number, limits);
        let error = take(&lni, number, resource).unwrap_err();
        assert_eq!(error.errno(), Errno::EBADR);
        assert!(
            error
                .to_string()
                .ends_with(&format!("service {service} may have no {resource}: its limit is 0")),
            "{error}"
        );
    }
}

#[test]
fn sharers_can_use_up_what_is_reserved_for_another() {
    // A reservation is safe from other reservations, not from services that share.
    let nic = Nic::new(
        NicConfig::new()
            .release(DriverRelease::Main2026_07)
            .totals(|totals| (totals.cts, totals.acs) = (32, 1)),
    )
    .unwrap();
    let mut limits = all(1);
    limits[Resource::Cts] = Limit::exactly(8);
    let (reserving, first) = lni_with(&nic, 1024, limits);
    limits[Resource::Cts] = Limit::at_most(32);
    let (sharing, second) = lni_with(&nic, 1025, limits);
    let taken: Vec<_> = (0..32).map(|_| second.alloc_ct().unwrap()).collect();
    says(
        first.alloc_ct(),
        format!(
            "cxi0: CT_ALLOC: the NIC has no CTs left: service {reserving} has 0 of at most 8 in use"
        ),
    );
    let have = root(&nic).availability().unwrap().resources[Resource::Cts];
    assert_eq!((have.in_use, have.shared_in_use, have.reservable), (32, 32, 24));
    assert_eq!(in_use(&second, Resource::Cts), Some(32));
    assert_ne!(reserving, sharing);
    drop(taken);
    let memory = Arc::new(DeviceMemory::new(4096).unwrap());
    let md = second.map_memory(&memory, &MapOptions::new()).unwrap();
    says(
        first.map_memory(&memory, &MapOptions::new()),
        format!(
            "cxi0: ATU_MAP: the NIC has no ACs left: service {reserving} has 0 of at most 1 in use"
        ),
    );
    drop((md, second));
    first.alloc_ct().unwrap();
}

#[test]
fn address_contexts_are_counted_by_kind_and_rgid() {
    let nic = nic(DriverRelease::Main2026_07);
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
    says(
        lni.map_memory(&memory, &other),
        format!(
            "cxi0: ATU_MAP: service {service} has no ACs left: 1 of at most 1 are in use, or kept \
             for its LNIs"
        ),
    );
    says(
        lni.map_memory(&memory, &pinned.flags(MapFlags::ATS)),
        "cxi0: ATU_MAP: MapFlags(ATS): expected flags of MapFlags::CONFINED, the others let the \
         NIC reach more than the memory",
    );
    let paging = pinned.flags(MapFlags::PIN | MapFlags::FAULT);
    says(
        lni.map_memory(&memory, &paging),
        "cxi0: ATU_MAP: the flags or page sizes contradict each other (EINVAL)",
    );
}

#[test]
fn pages_that_are_not_pinned_are_faulted_in() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let memory = Arc::new(DeviceMemory::new(1 << 16).unwrap());
    let on_demand = MapOptions::new().flags(MapFlags::READ | MapFlags::ALLOC_MD);
    let md = lni.map_memory(&memory, &on_demand).unwrap();
    md.update(0..4096).unwrap();
    md.update(4096..1 << 16).unwrap();

    let config = NicConfig::new().release(DriverRelease::Main2026_07);
    let nic = Nic::new(config.virtual_functions(1)).unwrap();
    let service = create(&root(&nic).services(), modest(1024).limits(all(100)));
    let file = nic.open_vf(0).unwrap().transport(Credentials::root());
    let device = Device::cxi0(Arc::new(file));
    let lni = device.alloc_lni(service).unwrap();
    let unpinned = MapOptions::new().flags(MapFlags::READ);
    says(
        lni.map_memory(&memory, &unpinned),
        "cxi0: ATU_MAP: this is a virtual function: the memory must be pinned (EOPNOTSUPP)",
    );
    lni.map_memory(&memory, &on_demand).unwrap();
}

#[test]
fn handles_may_be_dropped_in_any_order() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    for order in 0..8_usize {
        let wait = lni.alloc_wait().unwrap();
        let events = lni.alloc_eq(&EventQueueOptions::new(4096).event_wait(&wait)).unwrap();
        let profile = lni.alloc_cp(vni(1024), TrafficClass::LowLatency).unwrap();
        let queue = lni.alloc_txq(&profile, &TxqOptions::new(64).event_queue(&events)).unwrap();
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events)).unwrap();
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
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let domain = lni.alloc_domain(vni(1024), None).unwrap();
    let refused = lni.close().unwrap_err();
    let converted = cxi::Error::from(NotClosed { handle: (), error: refused.error.clone() });
    assert!(converted.is_busy());
    assert_eq!(refused.error.errno(), Errno::EBUSY);
    assert!(refused.error.is_busy());
    assert_eq!(refused.error.to_string(), "cxi0: LNI_FREE: the LNI is still in use");
    let lni = refused.handle;
    domain.close().unwrap();
    lni.close().unwrap();
    root(&nic).services().destroy(service).unwrap();
}

#[test]
fn an_lni_lives_until_its_last_object_is_gone() {
    for release in ALL {
        let nic = nic(release);
        let (service, lni) = lni_with(&nic, 1024, all(100));
        let counter = lni.alloc_ct().unwrap();
        drop(lni);
        let services = root(&nic).services();
        assert!(services.destroy(service).unwrap_err().is_busy(), "{release}");
        drop(counter);
        services.destroy(service).unwrap();
    }
}

#[test]
fn who_may_allocate_an_lni() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let id = create(&services, modest(1024).member(Member::Uid(7)));
        let device = user(&nic);
        says(
            device.alloc_lni(id),
            format!(
                "cxi0: LNI_ALLOC: not permitted: the caller's effective uid, effective gid and \
                 network namespace are not members of service {id}"
            ),
        );
        services.set_enabled(id, false).unwrap();
        says(device.alloc_lni(id), format!("cxi0: LNI_ALLOC: service {id} is disabled"));
        let error = says(
            device.alloc_lni(ServiceId::DEFAULT),
            "cxi0: LNI_ALLOC: service 1 is disabled: the default service is, unless the \
             administrator enables it; use your own service",
        );
        assert_eq!(error.errno(), Errno::EKEYREVOKED);
        let unknown = ServiceId::new(99).unwrap();
        says(device.alloc_lni(unknown), "cxi0: LNI_ALLOC: there is no service 99");
    }
}

#[test]
fn a_removed_nic_does_not_make_handles_panic() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let counter = lni.alloc_ct().unwrap();
    nic.faults().unplug();
    says(lni.alloc_ct(), "cxi0: CT_ALLOC: the device has been removed");
    let refused = counter.close().unwrap_err();
    assert_eq!(refused.error.errno(), Errno::EIO);
    drop((refused, lni));
    nic.faults().plug();
    let device: Device = root(&nic);
    device.services().destroy(service).unwrap();
}
