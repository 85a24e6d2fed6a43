//! Resources that a NIC has left, on every driver release the mock models.

use crate::common::{ALL, ask, create, modest, nic, root, says, with};
use cxi::Resource;
use cxi_ioctl::DriverRelease;

#[test]
fn pools_that_are_left_are_counted() {
    for release in ALL {
        let nic = nic(release);
        let device = root(&nic);
        let services = device.services();
        let pools = || {
            let have = device.availability().unwrap();
            (have.le_pools, have.tle_pools)
        };
        // The default service has a TLE pool, and no LE pool of those for others.
        assert_eq!(pools(), (15, 3), "{release}");
        create(&services, modest(5));
        create(&services, with(6, Resource::Tles, 0, 1));
        assert_eq!(pools(), (15, 2), "{release}");
        create(&services, with(7, Resource::Les, 1, 1));
        assert_eq!(pools(), (14, 2), "{release}");
        // A maximum takes one too up to 14.0.0, and without sysfs 14.0.1 may be that old.
        create(&services, with(8, Resource::Les, 0, 1));
        let left = if release >= DriverRelease::Main2026_07 { 14 } else { 13 };
        assert_eq!(pools(), (left, 2), "{release}");
        for number in 0..left {
            let number = 100 + u16::try_from(number).unwrap();
            create(&services, with(number, Resource::Les, 1, 1));
        }
        assert_eq!(pools(), (0, 2), "{release}");
        let one_more = ask(&services, with(200, Resource::Les, 1, 1));
        assert_eq!(one_more.is_ok(), release == DriverRelease::Shs14_0_1, "{release}");
    }
}

#[test]
fn availability_is_the_drivers_arithmetic() {
    for release in ALL {
        let nic = nic(release);
        let device = root(&nic);
        let services = device.services();
        let id = create(&services, with(5, Resource::Txqs, 100, 200));
        create(&services, with(6, Resource::Tles, 1, 1));
        let have = device.availability().unwrap();
        let txqs = have.resources[Resource::Txqs];
        assert_eq!((txqs.total, txqs.reserved, txqs.reservable, txqs.in_use), (1024, 100, 924, 0));
        assert!(txqs.in_use_complete);
        assert_eq!(have.tle_pools, 2);
        assert_eq!(have.resources[Resource::Tles].reservable, 2048 - 512 - 8);
        let state = nic.state();
        // What can be reserved fits, and one more does not.
        services.destroy(id).unwrap();
        let have = device.availability().unwrap().resources[Resource::Txqs].reservable;
        create(&services, with(7, Resource::Txqs, have, have));
        says(
            ask(&services, with(8, Resource::Txqs, 1, 1)),
            "cxi0: SVC_ALLOC: not enough TXQs: 1 requested, 0 available",
        );
        drop(state);
    }
}
