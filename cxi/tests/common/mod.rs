//! A mock NIC and devices of several callers on it.
#![allow(dead_code, reason = "every test target uses its part")]

use std::fmt::{Debug, Display};
use std::sync::Arc;

use cxi::{
    Device, Limit, Limits, Lni, Member, Resource, ResourceMap, ServiceId, ServiceSpec,
    ServiceSpecBuilder, Services, Vni,
};
use cxi_ioctl::DriverRelease;
use cxi_mock::{Credentials, Nic, NicConfig};

pub(crate) fn nic(release: DriverRelease) -> Arc<Nic> {
    Nic::new(NicConfig::new().release(release)).unwrap()
}

/// An open file of the NIC in the hands of a caller.
pub(crate) fn device(nic: &Arc<Nic>, caller: Credentials) -> Device {
    let file = nic.open().unwrap().transport(caller);
    Device::from(Arc::new(file))
}

pub(crate) fn root(nic: &Arc<Nic>) -> Device {
    device(nic, Credentials::root())
}

pub(crate) fn user(nic: &Arc<Nic>) -> Device {
    device(nic, Credentials::user(1000, 1000))
}

pub(crate) fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

/// A service on a VNI that asks for nothing at all, not even a TLE pool.
pub(crate) fn modest(number: u16) -> ServiceSpecBuilder {
    ServiceSpec::builder()
        .vni(vni(number))
        .limits(Limits::default())
}

/// As [`modest`], on a block of VNIs.
pub(crate) fn modest_range(text: &str) -> ServiceSpecBuilder {
    ServiceSpec::builder()
        .vni_range(range(text))
        .limits(Limits::default())
}

pub(crate) fn create(services: &Services, spec: ServiceSpecBuilder) -> ServiceId {
    services.create(&spec.build().unwrap()).unwrap()
}

/// As [`modest`], with one limit.
pub(crate) fn with(number: u16, resource: Resource, reserved: u16, max: u16) -> ServiceSpec {
    modest(number)
        .limits(Limits::none().with(resource, Limit::new(reserved, max).unwrap()))
        .build()
        .unwrap()
}

pub(crate) const ALL: [DriverRelease; 6] = DriverRelease::ALL;
pub(crate) const FROM_13_1: [DriverRelease; 4] = [
    DriverRelease::Shs13_1,
    DriverRelease::Shs14_0_0,
    DriverRelease::Shs14_0_1,
    DriverRelease::Main,
];

/// A service with these limits on a VNI, and an LNI of it that a user has.
pub(crate) fn lni_with(nic: &Arc<Nic>, number: u16, limits: Limits) -> (ServiceId, Lni) {
    let spec = modest(number)
        .member(Member::Uid(1000))
        .limits(limits)
        .build()
        .unwrap();
    let service = root(nic).services().create(&spec).unwrap();
    (service, user(nic).alloc_lni(service).unwrap())
}

pub(crate) fn all(max: u16) -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(max),
    })
}

/// Runs a check on each release; afterwards no kernel may have come to harm.
pub(crate) fn for_each_release(check: impl Fn(DriverRelease, &Arc<Nic>)) {
    for release in ALL {
        let nic = nic(release);
        check(release, &nic);
        assert_eq!(nic.hazards(), [], "{release}");
    }
}

/// Checks that a call fails with this text; returns the error.
#[track_caller]
pub(crate) fn says<T: Debug, E: Display>(result: Result<T, E>, text: impl AsRef<str>) -> E {
    match result {
        Ok(made) => panic!("{made:?}: expected {}", text.as_ref()),
        Err(error) => {
            assert_eq!(error.to_string(), text.as_ref());
            error
        }
    }
}

pub(crate) fn range(text: &str) -> cxi::VniRange {
    text.parse().unwrap()
}
