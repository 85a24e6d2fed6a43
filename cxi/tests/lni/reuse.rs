//! Requests that the driver would mix up with earlier objects of an LNI are not sent.

use crate::common::{all, exclusive_lni, lni_with, nic, root, user, vni};
use cxi::driver::Quirks;
use cxi::lni::{EventQueueOptions, LcidChoice, Lni, ProfileOptions, TxqOptions};
use cxi::{DriverRelease, ErrorKind, ServiceId, TrafficClass};
use cxi_mock::{HazardKind, Nic};

fn quirk_of<T>(result: cxi::Result<T>) -> Option<Quirks> {
    match result.map(drop).unwrap_err().kind() {
        ErrorKind::Quirk { quirk, .. } => Some(*quirk),
        _ => None,
    }
}

fn hazards(nic: &Nic) -> Vec<HazardKind> {
    nic.hazards().into_iter().map(|hazard| hazard.kind).collect()
}

/// Allocates and frees event queues until only an unsafe one is left to ask for.
fn with_a_freed_queue_that_waited(lni: &Lni) {
    let wait = lni.alloc_wait().unwrap();
    let plain = EventQueueOptions::new(4096);
    lni.alloc_eq(&plain).unwrap().close().unwrap();
    let waiting = lni.alloc_eq(&plain.event_wait(&wait)).unwrap();
    // While it is there, its number is not given to others.
    drop(lni.alloc_eq(&plain).unwrap());
    drop(waiting);
}

#[test]
fn an_event_queue_does_not_follow_one_with_a_wait_object() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let (_, lni) = lni_with(&nic, 1024, all(100));
        with_a_freed_queue_that_waited(&lni);
        let plain = EventQueueOptions::new(4096);
        let quirk = quirk_of(lni.alloc_eq(&plain));
        assert_eq!(quirk, Some(Quirks::REUSED_EVENT_QUEUE), "{release}");
        let wait = lni.alloc_wait().unwrap();
        let quirk = quirk_of(lni.alloc_eq(&plain.status_wait(&wait)));
        assert_eq!(quirk, Some(Quirks::REUSED_EVENT_QUEUE), "{release}");
        drop(lni.alloc_eq(&plain.event_wait(&wait)).unwrap());
        assert_eq!(hazards(&nic), [], "{release}");
    }
}

#[test]
fn an_event_queue_does_not_follow_one_whose_status_was_waited_for() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1024, all(100));
    let wait = lni.alloc_wait().unwrap();
    let plain = EventQueueOptions::new(4096);
    drop(lni.alloc_eq(&plain.status_wait(&wait)).unwrap());
    let quirk = quirk_of(lni.alloc_eq(&plain.event_wait(&wait)));
    assert_eq!(quirk, Some(Quirks::REUSED_EVENT_QUEUE));
    drop(lni.alloc_eq(&plain.status_wait(&wait)).unwrap());
    assert_eq!(hazards(&nic), []);
}

#[test]
fn another_lni_is_free_to_have_an_event_queue_without_one() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, lni) = lni_with(&nic, 1024, all(100));
    with_a_freed_queue_that_waited(&lni);
    let other = lni.device().alloc_lni(service).unwrap();
    other.alloc_eq(&EventQueueOptions::new(4096)).unwrap();
    assert_eq!(hazards(&nic), []);
}

#[test]
fn whoever_insists_gets_the_null_pointer() {
    let nic = nic(DriverRelease::Main2026_07);
    let (service, _lni) = lni_with(&nic, 1024, all(100));
    let device = user(&nic).allow_quirks(Quirks::REUSED_EVENT_QUEUE);
    let lni = device.alloc_lni(service).unwrap();
    let wait = lni.alloc_wait().unwrap();
    let plain = EventQueueOptions::new(4096);
    drop(lni.alloc_eq(&plain.status_wait(&wait)).unwrap());
    let events = lni.alloc_eq(&plain).unwrap();
    let eq = events.id();
    assert_eq!(hazards(&nic), [HazardKind::StaleCallback { eq }]);
}

#[test]
fn the_same_traffic_again_is_the_same_profile() {
    for release in DriverRelease::ALL {
        let nic = nic(release);
        let number = if release < DriverRelease::Shs14_0_1 { 7 } else { 1 };
        let (_, lni) = lni_with(&nic, number, all(100));
        let class = TrafficClass::BestEffort;
        let one = lni.alloc_cp(vni(number), class).unwrap();
        let other = lni.alloc_cp(vni(number), TrafficClass::LowLatency);
        other.unwrap().close().unwrap();
        // From here on the driver finds another service's profile for VNI 1.
        let services = root(&nic).services();
        services.set_enabled(ServiceId::DEFAULT, true).ok();
        let again = lni.alloc_cp(vni(number), class).unwrap();
        let queue = lni.alloc_txq(&again, &TxqOptions::new(64)).unwrap();
        assert_eq!((one.lcid(), again.lcid()), (0, 0), "{release}");
        one.close().unwrap();
        drop(again);
        assert_eq!(nic.state().cp_used, 1, "{release}");
        let later = lni.alloc_cp(vni(number), class).unwrap();
        drop(queue);
        assert_eq!(nic.state().cp_used, 1, "{release}");
        later.close().unwrap();
        assert_eq!(nic.state().cp_used, 0, "{release}");
        assert_eq!(hazards(&nic), [], "{release}");
    }
}

#[test]
fn lcids_that_are_not_shared_can_be_had_both() {
    let nic = nic(DriverRelease::Main2026_07);
    let (_, lni) = lni_with(&nic, 1, all(100));
    let ask = |choice| {
        let options = ProfileOptions::new(vni(1), TrafficClass::BestEffort).lcid(choice);
        lni.alloc_cp_with(&options).unwrap()
    };
    let triggered = ask(LcidChoice::Triggered);
    let other = ask(LcidChoice::NotTriggered);
    // As above.
    let services = root(&nic).services();
    services.set_enabled(ServiceId::DEFAULT, true).unwrap();
    let both = [ask(LcidChoice::NotTriggered), ask(LcidChoice::Any)];
    assert_eq!((triggered.lcid(), other.lcid()), (0, 1));
    assert_eq!(both.map(|profile| profile.lcid()), [1, 0]);
    assert_eq!(hazards(&nic), []);
}

#[test]
fn a_profile_that_is_moved_is_not_found_under_its_old_vni() {
    let nic = nic(DriverRelease::Main2026_07);
    let lni = exclusive_lni(&root(&nic));
    let class = TrafficClass::BestEffort;
    let moved = lni.alloc_cp(vni(512), class).unwrap();
    moved.modify(vni(513)).unwrap();
    let second = lni.alloc_cp(vni(512), class).unwrap();
    let same = lni.alloc_cp(vni(513), class).unwrap();
    assert_eq!((moved.lcid(), second.lcid(), same.lcid()), (0, 1, 0));
}
