//! Allocations below an LNI: arguments, refusals, and effects.

use std::sync::Arc;

use crate::common::{
    FROM_13_1, all, create, exclusive_lni, lni_with, modest, nic, root, says, user, vni,
};
use cxi::driver::Quirks;
use cxi::lni::{
    EthernetClass, EventQueueOptions, LcidChoice, LeList, Pid, ProfileOptions, PtOptions,
    PtlteState, StatusThresholds, TgqOptions, TxqOptions,
};
use cxi::{DeviceMemory, DriverRelease, Errno, ErrorKind, Member, Result, TrafficClass};

#[test]
fn profiles_say_what_they_miss() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let service = create(
            &root(&nic).services(),
            modest(1024).traffic_classes(cxi::TrafficClasses::BEST_EFFORT),
        );
        create(&root(&nic).services(), modest(2048).member(Member::Uid(7)));
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
        // The driver says what is found out without it, too.
        let device = user(&nic).allow_quirks(Quirks::ORPHANED_PROFILE);
        let asked = device.alloc_lni(service).unwrap();
        let error = asked.alloc_cp(vni(77), TrafficClass::BestEffort);
        says(error, "cxi0: CP_ALLOC: no enabled service has this VNI (ENOENT)");
        let ethernet = |priority| {
            let options = ProfileOptions::ethernet(EthernetClass::Shared, priority);
            lni.alloc_cp_with(&options).unwrap_err().to_string()
        };
        assert_eq!(ethernet(8), "cxi0: CP_ALLOC: priority code point 8: expected 0 to 7");
        assert_eq!(ethernet(7), "cxi0: CP_ALLOC: not permitted: Ethernet needs CAP_NET_RAW");
    }
}

#[test]
fn old_drivers_are_not_asked_what_they_do_not_know() {
    for release in [DriverRelease::Shs12_0, DriverRelease::Shs13_0] {
        let nic = nic(release);
        let (service, lni) = lni_with(&nic, 1024, all(100));
        let options =
            ProfileOptions::new(vni(1024), TrafficClass::BestEffort).lcid(LcidChoice::Triggered);
        says(
            lni.alloc_cp_with(&options),
            format!(
                "cxi0: TRIG_CP_ALLOC: a choice of LCID is not known to this driver ({release}): \
                 it needs SHS 13.1 or later"
            ),
        );
        let error = lni.reserve_pids(vni(1024), None, 4).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Quirk { .. }));
        let error = lni.alloc_cp(vni(77), TrafficClass::BestEffort).unwrap_err();
        let (errno, why) = if release == DriverRelease::Shs12_0 {
            (
                Errno::EINVAL,
                "service 2 does not allow this VNI or this traffic class, or the NIC has no such \
                 class and type (EINVAL)",
            )
        } else {
            (Errno::ENOENT, "no enabled service has this VNI (ENOENT)")
        };
        assert_eq!(error.errno(), errno);
        assert_eq!(error.to_string(), format!("cxi0: CP_ALLOC: {why}"));
        assert_eq!(lni.service(), service);
        assert!(nic.hazards().is_empty());
    }
}

#[test]
fn pids_are_reserved_and_used_once() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let block = lni.reserve_pids(vni(1024), None, 4).unwrap();
    assert_eq!((block.first.get(), block.count), (0, 4));
    let domain = lni.alloc_domain(vni(1024), Some(block.first)).unwrap();
    assert_eq!((domain.vni(), domain.pid().get()), (vni(1024), 0));
    let error = lni.alloc_domain(vni(1024), Some(block.first)).unwrap_err();
    assert_eq!(error.errno(), Errno::EEXIST);
    assert!(error.to_string().contains("the PID is taken"), "{error}");
    let highest = Some(Pid::new(507).unwrap());
    let block = lni.reserve_pids(vni(1024), highest, 4).unwrap();
    assert_eq!((block.first.get(), block.count), (507, 4));
    says(
        lni.reserve_pids(vni(1024), None, 0),
        "cxi0: DOMAIN_RESERVE: 0 PIDs to reserve: expected 1 to 511",
    );
    says(
        lni.reserve_pids(vni(1024), None, 512),
        "cxi0: DOMAIN_RESERVE: 512 PIDs to reserve: expected 1 to 511",
    );
    says(Pid::new(511), "invalid PID 511: expected 0 to 510");
    says(
        lni.alloc_domain(vni(77), None),
        "cxi0: DOMAIN_ALLOC: no enabled service has this VNI (ENOENT)",
    );
}

#[test]
fn exclusive_profiles_move_to_another_vni() {
    let nic = nic(DriverRelease::Main2026_07);
    let lni = exclusive_lni(&root(&nic));
    let profile = lni.alloc_cp(vni(512), TrafficClass::BestEffort).unwrap();
    profile.modify(vni(513)).unwrap();
    says(
        profile.modify(vni(99)),
        "cxi0: CP_MODIFY: the profile is not of a service with exclusive communication profiles, \
         or the caller may not use the VNI (EINVAL)",
    );
}

#[test]
fn queues_are_checked_before_they_are_asked_for() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let any = ProfileOptions::new(vni(1024), TrafficClass::BestEffort);
    let plain = lni.alloc_cp_with(&any.lcid(LcidChoice::NotTriggered)).unwrap();
    let triggered = lni.alloc_cp_with(&any.lcid(LcidChoice::Triggered)).unwrap();
    let text = |result: Result<_>| result.map(|_: cxi::lni::Txq| ()).unwrap_err().to_string();
    assert_eq!(
        text(lni.alloc_txq(&plain, &TxqOptions::new(64).triggered())),
        "cxi0: CQ_ALLOC: a queue for triggered commands needs a profile with LCID 0, this one has \
         1: ask for LcidChoice::Triggered"
    );
    lni.alloc_txq(&triggered, &TxqOptions::new(64).triggered()).unwrap();
    let error = says(
        lni.alloc_txq(&plain, &TxqOptions::new(65_537)),
        "cxi0: CQ_ALLOC: a queue of 65537 commands: expected at most 65536",
    );
    assert_eq!(error.errno(), Errno::E2BIG);
    assert_eq!(
        text(lni.alloc_txq(&plain, &TxqOptions::new(64).ethernet())),
        "cxi0: CQ_ALLOC: not permitted: Ethernet needs CAP_NET_RAW"
    );
    says(
        lni.alloc_tgq(&TgqOptions::new(64).credit_thresholds(4)),
        "cxi0: CQ_ALLOC: credit threshold set 4: expected 0 to 3",
    );
    let queue = lni.alloc_txq(&plain, &TxqOptions::new(65)).unwrap();
    assert_eq!((queue.slots(), queue.ack_counter().unwrap()), (128, 0));
    queue.commands().unwrap().write_u64(64, 7).unwrap();
    queue.write_pointer().unwrap().ring(0, 1).unwrap();
    let largest = lni.alloc_txq(&plain, &TxqOptions::new(65_536)).unwrap();
    assert_eq!(largest.slots(), 65_536);
}

#[test]
fn event_queues_are_checked_and_resized() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    says(
        lni.alloc_eq(&EventQueueOptions::new(0)),
        "cxi0: EQ_ALLOC: an event queue of 0 bytes: expected room for at least one event",
    );
    says(
        lni.alloc_eq(&EventQueueOptions::new(4096).reserved_slots(64)),
        "cxi0: EQ_ALLOC: a fill level is above 100 or below 0 percent, or there are more than \
         four, or no fewer slots are reserved than the queue has, or more than 16383 (EINVAL)",
    );
    let falling = StatusThresholds { base: 95, delta: 15, count: 4 };
    let watched = EventQueueOptions::new(4096).thresholds(falling);
    lni.alloc_eq(&watched).unwrap().close().unwrap();
    let events = lni.alloc_eq(&EventQueueOptions::new(4096).reserved_slots(2)).unwrap();
    assert_eq!(events.adjust_reserved_slots(3).unwrap(), 5);
    assert_eq!(events.adjust_reserved_slots(-6).unwrap_err().errno(), Errno::EINVAL);
    let larger = events.resize(16384).unwrap();
    assert_eq!(larger.len(), 16384);
    assert_eq!(events.memory().len(), 4096);
    let again = events.resize(8192).unwrap_err();
    assert_eq!(again.errno(), Errno::EBUSY);
    assert_eq!(
        again.to_string(),
        "cxi0: EQ_RESIZE: an earlier resize is not complete: the event queue is still in use"
    );
    events.complete_resize().unwrap();
    assert_eq!(events.memory().address(), larger.address());
    says(
        events.complete_resize(),
        "cxi0: EQ_RESIZE_COMPLETE: no resize is in progress: resize first (EINVAL)",
    );
    events.registers().unwrap();
    events.close().unwrap();
}

#[test]
fn portal_entries_are_mapped_and_asked() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None).unwrap();
    let [_unmapped, domain] = [(); 2].map(|()| lni.alloc_domain(vni(1024), None).unwrap());
    let mapping = pte.map(&domain, 255).unwrap();
    says(pte.map(&domain, 256), "cxi0: PTE_MAP: offset 256: expected 0 to 255");
    pte.map(&domain, 255).unwrap().close().unwrap();
    let multicast = pte.map_multicast(&domain, (1 << 18) - 1).unwrap();
    says(
        pte.map_multicast(&domain, 7),
        "cxi0: PTE_MAP: the entry has a multicast address, or the domain belongs to another LNI \
         (EINVAL)",
    );
    let other = lni.alloc_pte(PtOptions::IS_MATCHING, None).unwrap();
    says(
        other.map_multicast(&domain, (1 << 18) - 1),
        "cxi0: PTE_MAP: multicast address 262143 is taken (ENOSPC)",
    );
    says(
        other.map_multicast(&domain, 1 << 18),
        "cxi0: PTE_MAP: offset 262144: expected 0 to 262143",
    );
    multicast.close().unwrap();
    let refused = domain.close().unwrap_err();
    assert!(refused.error.is_busy());
    mapping.close().unwrap();
    refused.handle.close().unwrap();

    pte.invalidate(LeList::Priority, 7).unwrap();
    let status = pte.status(4).unwrap();
    assert_eq!(status.state, PtlteState::DISABLED);
    assert_eq!((status.les_max, status.unexpected), (16384, 0));
    says(
        pte.transition_to_software(1),
        "cxi0: PTE_TRANSITION_SM: the PtlTE has dropped another number of messages: read it again \
         (EAGAIN)",
    );
    pte.transition_to_software(0).unwrap();
    assert_eq!(pte.status(0).unwrap().state, PtlteState::SOFTWARE_MANAGED);
    says(
        lni.alloc_pte(PtOptions::ETHERNET, None),
        "cxi0: PTE_ALLOC: not permitted: Ethernet needs CAP_NET_RAW",
    );
}

#[test]
fn objects_of_another_open_file_are_refused() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    let stranger = user(&nic).alloc_lni(service).unwrap();
    let events = stranger.alloc_eq(&EventQueueOptions::new(4096)).unwrap();
    let domain = stranger.alloc_domain(vni(1024), None).unwrap();
    let wait = stranger.alloc_wait().unwrap();
    let profile = stranger.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    let pte = lni.alloc_pte(PtOptions::empty(), None).unwrap();
    for (error, message) in [
        (
            pte.map(&domain, 0).unwrap_err(),
            "PTE_MAP: the domain belongs to another open file than the LNI",
        ),
        (
            lni.alloc_pte(PtOptions::empty(), Some(&events)).unwrap_err(),
            "PTE_ALLOC: the event queue belongs to another open file than the LNI",
        ),
        (
            lni.alloc_eq(&EventQueueOptions::new(4096).status_wait(&wait)).unwrap_err(),
            "EQ_ALLOC: the wait object belongs to another open file than the LNI",
        ),
        (
            lni.alloc_txq(&profile, &TxqOptions::new(64)).unwrap_err(),
            "CQ_ALLOC: the profile belongs to another open file than the LNI",
        ),
        (
            lni.alloc_tgq(&TgqOptions::new(64).event_queue(&events)).unwrap_err(),
            "CQ_ALLOC: the event queue belongs to another open file than the LNI",
        ),
    ] {
        assert_eq!(error.to_string(), format!("cxi0: {message}"));
    }
}

#[test]
fn counters_have_their_own_memory() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let counter = lni.alloc_ct().unwrap();
    assert_eq!(counter.value().success, 0);
    assert_ne!(counter.id(), lni.alloc_ct().unwrap().id());
    let memory = Arc::new(DeviceMemory::new(8).unwrap());
    memory.write_u64(0, (1 << 63) | (3 << 48) | 0xc).unwrap();
    counter.write_back_to(&memory).unwrap();
    let value = counter.value();
    assert_eq!((value.success, value.failure, value.written_back), (12, 3, true));
    // Failures have seven bits; the eight above are reserved.
    memory.write_u64(0, (0xff << 55) | (0x7f << 48)).unwrap();
    let value = counter.value();
    assert_eq!((value.success, value.failure), (0, 127));
    counter.clear();
    assert_eq!(memory.read_u64(0).unwrap(), 0);
    counter.doorbell().unwrap().ring(0, 1).unwrap();
}
