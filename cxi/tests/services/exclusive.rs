//! Communication profiles that LNIs do not share.

use cxi::driver::Quirks;
use cxi::{ErrorKind, Limits, ServiceSpec, TrafficClass};

use crate::common::{FROM_13_1, create, modest, nic, range, root, says};

#[test]
fn exclusive_profiles_belong_to_ranges() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let range =
            ServiceSpec::builder().vni_range(range("1024-1039")).enabled(false).build().unwrap();
        let id = services.create(&range).unwrap();
        assert!(!services.get(id).unwrap().is_enabled());
        assert!(!services.exclusive_cp(id).unwrap());
        let accepting = root(&nic).allow_quirks(Quirks::SWITCHED_EXCLUSIVE_CP);
        accepting.services().set_exclusive_cp(id, true).unwrap();
        assert!(services.exclusive_cp(id).unwrap());
        services.set_enabled(id, true).unwrap();
        says(
            services.set_exclusive_cp(id, false),
            "cxi0: SVC_SET_EXCLUSIVE_CP: service 2 is enabled: it is still in use",
        );
        let list = create(&services, modest(5));
        assert!(!services.exclusive_cp(list).unwrap());
        says(
            services.set_exclusive_cp(list, true),
            "cxi0: SVC_SET_EXCLUSIVE_CP: only a service with a VNI range has exclusive CPs (EINVAL)",
        );
        let bare = create(&services, ServiceSpec::builder().unrestricted_vnis());
        assert!(!services.exclusive_cp(bare).unwrap());
    }
}

/// Switched under a profile of another service's LNI, the kernel would use freed memory.
#[test]
fn exclusive_profiles_are_not_switched_later() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = ServiceSpec::builder()
            .vni_range(range("1024-1039"))
            .limits(Limits::all_of(&root(&nic).info().unwrap()));
        let id = services.create(&spec.build().unwrap()).unwrap();
        let foreign = create(&services, modest(5));
        let lni = root(&nic).alloc_lni(foreign).unwrap();
        let class = TrafficClass::BestEffort;
        let profile = lni.alloc_cp("1024".parse().unwrap(), class).unwrap();
        services.set_enabled(id, false).unwrap();
        let error = services.set_exclusive_cp(id, true).unwrap_err();
        let quirk = Quirks::SWITCHED_EXCLUSIVE_CP;
        assert!(matches!(error.kind(), ErrorKind::Quirk { quirk: found, .. } if *found == quirk));
        assert!(!services.exclusive_cp(id).unwrap());
        // Setting what is set already is not a switch.
        services.set_exclusive_cp(id, false).unwrap();
        drop((profile, lni));
        assert_eq!(nic.hazards(), []);
    }
}
