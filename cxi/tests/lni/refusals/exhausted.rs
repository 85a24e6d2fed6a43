//! Objects of which a NIC, a VNI or an RGID has no more.

use super::*;

#[test]
fn the_256th_rgid_is_refused() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, first) = lni_with(&nic, 1024, all(0));
    let others: Vec<_> = (1..255).map(|_| user(&nic).alloc_lni(service).unwrap()).collect();
    refused(
        user(&nic).alloc_lni(service),
        Errno::ENOSPC,
        "cxi0: LNI_ALLOC: all 255 RGIDs of the NIC are in use",
    );
    drop(others);
    user(&nic).alloc_lni(service).unwrap();
    first.close().unwrap();
}

#[test]
fn communication_profiles_run_out() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let (_, lni) = lni_with(&nic, 1024, all(100));
        let triggered = |class| {
            let options = ProfileOptions::new(vni(1024), class);
            lni.alloc_cp_with(&options.lcid(LcidChoice::Triggered))
        };
        let first = triggered(TrafficClass::BestEffort).unwrap();
        assert_eq!(first.lcid(), 0);
        // There is one LCID for triggered commands, and it has another class.
        refused(
            triggered(TrafficClass::LowLatency),
            Errno::ENOSPC,
            "cxi0: TRIG_CP_ALLOC: the NIC's 255 communication profiles are in use, or all \
             suitable LCIDs of the RGID",
        );
        let any = ProfileOptions::new(vni(1024), TrafficClass::LowLatency).lcid(LcidChoice::Any);
        assert_eq!(lni.alloc_cp_with(&any).unwrap().lcid(), 1);
    }
}

#[test]
fn there_is_one_queue_for_the_retry_handler() {
    let nic = nic(DriverRelease::Main2026_07);
    let options = EventQueueOptions::new(4096).flags(EventQueueFlags::RETRY_HANDLER);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    refused(
        lni.alloc_eq(&options),
        Errno::EPERM,
        "cxi0: EQ_ALLOC: not permitted: the retry handler's queue needs CAP_SYS_ADMIN",
    );
    let lni = lni_of(&root(&nic), 1025);
    let events = lni.alloc_eq(&options).unwrap();
    refused(
        lni.alloc_eq(&options),
        Errno::EEXIST,
        "cxi0: EQ_ALLOC: the device already has a retry handler's queue (EEXIST)",
    );
    events.close().unwrap();
    lni.alloc_eq(&options).unwrap();

    // One that runs has it from the start.
    let nic = Nic::new(NicConfig::new().retry_handler()).unwrap();
    assert!(root(&nic).info().unwrap().is_retry_handler_running());
    let refusal = lni_of(&root(&nic), 1024).alloc_eq(&options).unwrap_err();
    assert_eq!(refusal.errno(), Errno::EEXIST);
}

#[test]
fn pids_of_a_vni_run_out() {
    let nic = Nic::new(
        NicConfig::new()
            .release(DriverRelease::Main2026_07)
            .parameters(|parameters| parameters.pid_bits = 8),
    )
    .unwrap();
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let block = lni.reserve_pids(vni(1024), None, 250).unwrap();
    refused(
        lni.reserve_pids(vni(1024), None, 6),
        Errno::ENOSPC,
        "cxi0: DOMAIN_RESERVE: this VNI has no free run of that many PIDs",
    );
    refused(
        lni.reserve_pids(vni(1024), Some(block.first), 1),
        Errno::EEXIST,
        "cxi0: DOMAIN_RESERVE: there is no free run of that many PIDs from there on (EEXIST)",
    );
    refused(
        lni.reserve_pids(vni(77), None, 1),
        Errno::EINVAL,
        "cxi0: DOMAIN_RESERVE: no enabled service that admits the caller has this VNI (EINVAL)",
    );
    let domain = lni.alloc_domain(vni(1024), Some(Pid::new(254).unwrap()));
    assert_eq!(domain.unwrap().pid().get(), 254);
    let rest: Vec<_> = (250..254).map(|_| lni.alloc_domain(vni(1024), None).unwrap()).collect();
    drop(rest);
    let rest: Vec<_> = std::iter::from_fn(|| lni.alloc_domain(vni(1024), None).ok()).collect();
    assert!((4..=5).contains(&rest.len()), "{}", rest.len());
    refused(
        lni.alloc_domain(vni(1024), None),
        Errno::ENOSPC,
        "cxi0: DOMAIN_ALLOC: no PID of this VNI is free",
    );
}

#[test]
fn address_contexts_of_an_rgid_run_out_before_those_of_the_service() {
    let nic = nic(DriverRelease::Main2026_07);
    let spec = modest(1024).limits(all(100)).enabled(false).build();
    let services = root(&nic).services();
    let service = services.create(&spec.unwrap()).unwrap();
    services.set_lnis_per_rgid(service, LnisPerRgid::new(8).unwrap()).unwrap();
    services.set_enabled(service, true).unwrap();
    let device = root(&nic);
    let memory = Arc::new(DeviceMemory::new(4096).unwrap());
    let kinds = [MapOptions::default(), MapOptions::new().flags(MapFlags::READ | MapFlags::WRITE)];
    let lnis: Vec<_> = (0..5).map(|_| device.alloc_lni(service).unwrap()).collect();
    let mut mapped = Vec::new();
    let mut refused = None;
    for (lni, kind) in lnis.iter().flat_map(|lni| kinds.iter().map(move |kind| (lni, kind))) {
        match lni.map_memory(&memory, kind) {
            Ok(md) => mapped.push(md),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let contexts: Vec<_> = mapped.iter().map(cxi::lni::Md::lac).collect();
    assert_eq!(contexts, [0, 1, 2, 3, 4, 5, 6, 7]);
    let refused = refused.unwrap();
    assert_eq!(
        (refused.errno(), refused.to_string()),
        (
            Errno::ENOSPC,
            "cxi0: ATU_MAP: all 8 address contexts of the LNI's RGID are in use".to_owned()
        )
    );
    let used = services.usage(service).unwrap();
    assert_eq!(used.in_use(Resource::Acs), 8);
}
