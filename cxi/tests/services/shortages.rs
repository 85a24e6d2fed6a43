//! The culprit of ENOSPC, in every case.

use std::sync::Arc;

use crate::common::{ALL, ask, create, for_each_release, modest, nic, root, says, vni, with};
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
    for resource in Resource::ALL {
        for_each_release(|_, nic| {
            let device = root(nic);
            let services = device.services();
            // Everything that can be reserved but five.
            let reservable = device.availability().unwrap().resources[resource].reservable;
            let most = reservable - 5;
            create(&services, with(100, resource, most, most));
            says(
                ask(&services, with(101, resource, 9, 9)),
                format!("cxi0: SVC_ALLOC: not enough {resource}: 9 requested, 5 available"),
            );
        });
    }
}

#[test]
fn only_the_first_short_resource_is_named() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let most = Limits::from([Limit::exactly(400); 8]);
        create(&services, modest(100).limits(most));
        // TGQs, EQs, CTs and ACs are short: TGQs come first. PTEs and TXQs are not.
        let wanted = [100, 100, 400, 2000, 2000, 1, 8, 1000].map(Limit::exactly);
        let error = ask(&services, modest(101).limits(wanted.into())).unwrap_err();
        assert_eq!(
            shortage(&error),
            &Shortage::Reservation { resource: Resource::Tgqs, requested: 400, available: 112 },
            "{release}"
        );
    });
}

#[test]
fn what_runs_out_is_named() {
    let (ptes, les, tles) = (Resource::Ptes, Resource::Les, Resource::Tles);
    // What services have, each in turn, and what is asked for then.
    for (taken, (resource, units), text) in [
        (vec![(ptes, 2048, 2048)], (ptes, 7), "not enough PTEs: 7 requested, 0 available"),
        // The driver reserves at least 8 TLEs, and reserves no more than that for the second.
        (
            vec![(tles, 1500, 1500), (tles, 0, 37)],
            (tles, 100),
            "not enough TLEs: 100 requested, 28 available",
        ),
        (vec![(tles, 1530, 1530)], (tles, 1), "not enough TLEs: 8 requested, 6 available"),
        (
            vec![(tles, 8, 8); 3],
            (tles, 1),
            "no TLE pool is left: 4 services, including the default service, have one each; a \
             service limited to 0 TLEs needs none",
        ),
        (
            vec![(les, 1, 1); 15],
            (les, 1),
            "no LE pool is left: 15 services have one each; from SHS 14.0.1 on a service that \
             reserves no LEs needs none",
        ),
    ] {
        for_each_release(|_, nic| {
            let services = root(nic).services();
            for (number, (resource, reserved, max)) in (100..).zip(&taken) {
                create(&services, with(number, *resource, *reserved, *max));
            }
            let error = ask(&services, with(200, resource, units, units));
            says(error, format!("cxi0: SVC_ALLOC: {text}"));
            create(&services, modest(201));
            // What has no TLEs needs no pool of them.
            if resource == tles {
                create(&services, with(202, les, 0, 1));
            }
        });
    }
}

#[test]
fn a_service_without_limits_wants_a_tle_pool() {
    for_each_release(|_, nic| {
        let services = root(nic).services();
        for number in 0..3 {
            create(&services, with(100 + number, Resource::Tles, 8, 8));
        }
        let unlimited = ask(&services, ServiceSpec::builder().vni(vni(201)));
        assert_eq!(shortage(&unlimited.unwrap_err()), &Shortage::TlePools);
    });
}

#[test]
fn le_pools_come_before_tle_pools() {
    for_each_release(|_, nic| {
        let services = root(nic).services();
        let with = |number, tles| {
            let les = Limits::none().with(Resource::Les, Limit::exactly(1));
            modest(number).limits(les.with(Resource::Tles, Limit::exactly(tles)))
        };
        for number in 0..15 {
            let tles = if number < 3 { 8 } else { 0 };
            create(&services, with(100 + number, tles));
        }
        let error = ask(&services, with(200, 8)).unwrap_err();
        assert_eq!(shortage(&error), &Shortage::LePools);
    });
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
    for release in ALL.into_iter().filter(|release| *release > DriverRelease::Shs12_0) {
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
                 entries",
                "{release}"
            );
        }
    }
}

#[test]
fn enabling_finds_the_table_of_vnis_full_too() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    for number in 0..256 {
        create(&services, modest(100 + number));
    }
    says(
        services.set_enabled(cxi::ServiceId::DEFAULT, true),
        "cxi0: SVC_ENABLE: the table of VNIs is full: enabled services hold 256 of its 256 entries",
    );
}
