//! The culprit of ENOSPC, in every case.

use std::sync::Arc;

use crate::common::{ALL, create, modest, nic, root, says, vni, with};
use cxi::error::Shortage;
use cxi::{Error, ErrorKind, Limit, Limits, Resource, ResourceMap, ServiceSpec};
use cxi_ioctl::{DriverRelease, Errno};
use cxi_mock::{Nic, NicConfig};

fn shortage(error: &Error) -> &Shortage {
    assert_eq!(error.errno(), Errno::ENOSPC, "{error}");
    match error.kind() {
        ErrorKind::NotEnough(shortage) => shortage,
        other => panic!("{other}"),
    }
}

#[test]
fn each_resource_is_named_when_it_is_the_one() {
    for release in ALL {
        for resource in Resource::ALL {
            let nic = nic(release);
            let device = root(&nic);
            let services = device.services();
            let total = device.totals().unwrap()[resource];
            // Everything that can be reserved but five.
            let reservable = device.availability().unwrap().resources[resource].reservable;
            let most = reservable - 5;
            services.create(&with(100, resource, most, most)).unwrap();
            let error = services.create(&with(101, resource, 9, 9)).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("cxi0: SVC_ALLOC: not enough {resource}: 9 requested, 5 available"),
                "{release}, total {total}"
            );
        }
    }
}

#[test]
fn only_the_first_short_resource_is_named() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let most = Limits::from([Limit::exactly(400); 8]);
        create(&services, modest(100).limits(most));
        // TGQs, EQs, CTs and ACs are short: TGQs come first. PTEs and TXQs are not.
        let wanted = [100, 100, 400, 2000, 2000, 1, 8, 1000].map(Limit::exactly);
        let error = services
            .create(&modest(101).limits(wanted.into()).build().unwrap())
            .unwrap_err();
        assert_eq!(
            shortage(&error),
            &Shortage::Reservation {
                resource: Resource::Tgqs,
                requested: 400,
                available: 112,
            },
            "{release}"
        );
    }
}

#[test]
fn nothing_left_at_all_is_named_too() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        services
            .create(&with(100, Resource::Ptes, 2048, 2048))
            .unwrap();
        let error = services
            .create(&with(101, Resource::Ptes, 7, 7))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cxi0: SVC_ALLOC: not enough PTEs: 7 requested, 0 available",
            "{release}"
        );
    }
}

#[test]
fn tle_pools_run_out() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        for number in 0..3 {
            services
                .create(&with(100 + number, Resource::Tles, 8, 8))
                .unwrap();
        }
        let mut errors = vec![
            services
                .create(&with(200, Resource::Tles, 1, 1))
                .unwrap_err(),
        ];
        // Without limits a pool is wanted as well.
        let unlimited = ServiceSpec::builder().vni(vni(201)).build().unwrap();
        errors.push(services.create(&unlimited).unwrap_err());
        for error in errors {
            assert_eq!(
                error.to_string(),
                "cxi0: SVC_ALLOC: no TLE pool is left: 4 services, the default service among \
                 them, have one each; a service limited to 0 TLEs needs none",
                "{release}"
            );
        }
        create(&services, modest(202));
    }
}

#[test]
fn le_pools_run_out() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        for number in 0..15 {
            services
                .create(&with(100 + number, Resource::Les, 1, 1))
                .unwrap();
        }
        let error = services
            .create(&with(200, Resource::Les, 1, 1))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cxi0: SVC_ALLOC: no LE pool is left: 15 services have one each; from SHS 14.0.1 on a \
             service that reserves no LEs needs none",
            "{release}"
        );
    }
}

#[test]
fn le_pools_come_before_tle_pools() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        for number in 0..15 {
            let tles = if number < 3 { 8 } else { 0 };
            let spec = modest(100 + number)
                .limits(
                    Limits::none()
                        .with(Resource::Les, Limit::exactly(1))
                        .with(Resource::Tles, Limit::exactly(tles)),
                )
                .build()
                .unwrap();
            services.create(&spec).unwrap();
        }
        let both = modest(200)
            .limits(
                Limits::none()
                    .with(Resource::Les, Limit::exactly(1))
                    .with(Resource::Tles, Limit::exactly(8)),
            )
            .build()
            .unwrap();
        let error = services.create(&both).unwrap_err();
        assert_eq!(shortage(&error), &Shortage::LePools, "{release}");
    }
}

#[test]
fn tles_themselves_run_out_without_a_number_of_the_drivers() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        services
            .create(&with(100, Resource::Tles, 1500, 1500))
            .unwrap();
        let spec = modest(101)
            .limits(
                Limits::none()
                    .with(Resource::Ptes, Limit::exactly(10))
                    .with(Resource::Tles, Limit::at_most(37))
                    .with(Resource::Acs, Limit::exactly(10)),
            )
            .build()
            .unwrap();
        // The driver reserves at least 8, and reserves no more than that here.
        services.create(&spec).unwrap();
        let error = services
            .create(&with(102, Resource::Tles, 100, 100))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cxi0: SVC_ALLOC: not enough TLEs: 100 requested, 28 available",
            "{release}"
        );
    }
}

#[test]
fn fewer_tles_than_the_driver_reserves_are_asked_for() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        services
            .create(&with(100, Resource::Tles, 1530, 1530))
            .unwrap();
        let error = services
            .create(&with(101, Resource::Tles, 1, 1))
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "cxi0: SVC_ALLOC: not enough TLEs: 8 requested, 6 available",
            "{release}"
        );
        // None are wanted, so none are missing.
        services.create(&with(102, Resource::Les, 0, 1)).unwrap();
    }
}

/// Fills the table of VNIs and asks for one more.
fn full_vni_table(release: DriverRelease, spec: &dyn Fn(u16) -> ServiceSpec) -> Error {
    let nic: Arc<Nic> = Nic::new(NicConfig::new().release(release)).unwrap();
    let services = root(&nic).services();
    services.set_enabled(cxi::ServiceId::DEFAULT, true).unwrap();
    for number in 0..254 {
        create(&services, modest(100 + number));
    }
    services.create(&spec(999)).unwrap_err()
}

#[test]
fn the_table_of_vnis_is_named_although_the_driver_shows_numbers() {
    // SHS 12.0 has no such table.
    for release in ALL
        .into_iter()
        .filter(|release| *release > DriverRelease::Shs12_0)
    {
        for reserve in [0, 5] {
            let spec = |number| {
                let limits: Limits = ResourceMap::from_fn(|resource| match resource {
                    Resource::Les | Resource::Tles => Limit::NONE,
                    _ => Limit::exactly(reserve),
                });
                modest(number).limits(limits).build().unwrap()
            };
            let error = full_vni_table(release, &spec);
            assert_eq!(
                error.to_string(),
                "cxi0: SVC_ALLOC: the table of VNIs is full: enabled services hold 256 of its 256 \
                 places",
                "{release}"
            );
        }
    }
}

#[test]
fn enabling_finds_the_table_of_vnis_full_too() {
    let nic = nic(DriverRelease::Main);
    let services = root(&nic).services();
    for number in 0..256 {
        create(&services, modest(100 + number));
    }
    says(
        services.set_enabled(cxi::ServiceId::DEFAULT, true),
        "cxi0: SVC_ENABLE: the table of VNIs is full: enabled services hold 256 of its 256 places",
    );
}
