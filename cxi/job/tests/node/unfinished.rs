//! Services that a prolog is still making, and such as no prolog makes, are left alone.

use std::thread;
use std::time::Duration;

use cxi::{Device, Member, ServiceSpec};
use cxi_job::ReleaseOptions;
use cxi_job::clean::{KeepReason, OrphanReason};
use cxi_mock::MockNode;

use crate::support::{FakeClock, devices, id, lock, mock, node, pool, user_services, vni};

fn unfinished(mock: &MockNode) -> Device {
    let device = devices(mock).remove(0);
    let spec = ServiceSpec::builder().member(Member::Uid(1000));
    let spec = spec.unrestricted_vnis().build().unwrap();
    let service = device.services().create(&spec).unwrap();
    device.services().set_enabled(service, false).unwrap();
    device
}

#[test]
fn a_slow_prolog_with_a_range_keeps_its_service() {
    let (_directory, lock) = lock();
    let mock = mock(1);
    let slow = unfinished(&mock);
    let held = lock.acquire().unwrap();
    let cleaning = node(&mock).with_lock(lock);
    thread::scope(|scope| {
        let clean = scope.spawn(|| {
            let clock = FakeClock::default();
            let options = ReleaseOptions::once().clock(&clock);
            let clean = cleaning.clean(&pool(), &options).unwrap();
            assert_eq!(clock.pauses(), [Duration::from_secs(1)]);
            clean
        });
        // Far longer than the pause, on the clock of the one that cleans.
        thread::sleep(Duration::from_millis(50));
        let range = "2048-2063".parse().unwrap();
        slow.services().set_vni_range(id(2), range).unwrap();
        slow.services().set_enabled(id(2), true).unwrap();
        drop(held);
        assert_eq!(clean.join().unwrap().orphans, []);
    });
    assert_eq!(user_services(&mock).len(), 1);
}

#[test]
fn without_a_lock_an_unfinished_service_may_be_on_its_way() {
    let mock = mock(1);
    unfinished(&mock);
    let clean = node(&mock).clean(&pool(), &ReleaseOptions::once()).unwrap();
    assert_eq!(clean.orphans, []);
    assert_eq!(clean.kept[1].reason, KeepReason::Unfinished);

    let (_directory, lock) = lock();
    let clock = FakeClock::default();
    let options = ReleaseOptions::once().clock(&clock);
    let clean = node(&mock).with_lock(lock).clean(&pool(), &options);
    assert_eq!(clean.unwrap().orphans[0].reason, OrphanReason::Unfinished);
    assert!(user_services(&mock).is_empty());
}

#[test]
fn what_no_prolog_makes_is_left_alone() {
    let user = ServiceSpec::builder().member(Member::Uid(1000));
    for (what, spec) in [
        ("enabled with all VNIs", user.clone().unrestricted_vnis()),
        ("disabled with a VNI outside the pool", user.vni(vni(9)).enabled(false)),
    ] {
        let mock = mock(1);
        let services = devices(&mock)[0].services();
        let spec = spec.build().unwrap();
        let service = services.create(&spec).unwrap();
        // The driver does not enable one without VNIs itself.
        services.set_enabled(service, spec.is_enabled()).unwrap();
        let policy = pool().unfinished(Some(Duration::ZERO));
        let clean = node(&mock).clean(&policy, &ReleaseOptions::once());
        let clean = clean.unwrap();
        assert_eq!(clean.orphans, [], "{what}");
        assert_eq!(clean.kept[1].reason, KeepReason::OutsidePool, "{what}");
        assert_eq!(user_services(&mock).len(), 1, "{what}");
    }
}
