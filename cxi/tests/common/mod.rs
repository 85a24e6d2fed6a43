//! A mock NIC and devices of several callers on it.
#![allow(dead_code, reason = "every test target uses its part")]

use std::fmt::{Debug, Display};
use std::sync::Arc;

use cxi::{
    Device, Limit, Limits, Lni, Member, Resource, ResourceMap, Result, ServiceId, ServiceSpec,
    ServiceSpecBuilder, Services, Vni,
};
use cxi_ioctl::{DriverRelease, Errno, Intercept, Opcode, Request, Transport};
use cxi_mock::{Credentials, Hazard, HazardKind, InProcess, Nic};
pub(crate) use cxi_test_kit::nic;

/// An open file of the NIC in the hands of a caller.
pub(crate) fn device(nic: &Arc<Nic>, caller: Credentials) -> Device {
    Device::cxi0(nic.open_as(caller).unwrap())
}

pub(crate) fn root(nic: &Arc<Nic>) -> Device {
    device(nic, Credentials::root())
}

pub(crate) fn user(nic: &Arc<Nic>) -> Device {
    device(nic, Credentials::user(1000, 1000))
}

/// The device of root, all commands of which pass through a function.
pub(crate) fn through<F>(nic: &Arc<Nic>, submit: F) -> Device
where
    F: Fn(&InProcess, Request<'_>) -> std::result::Result<(), Errno> + Send + Sync + 'static,
{
    Device::cxi0(Intercept::new(nic.root().unwrap(), submit))
}

/// Function that answers a command; `None` to answer as the NIC does.
pub(crate) type Answers = fn(Opcode) -> Option<std::result::Result<Vec<u8>, Errno>>;

/// A NIC that answers some commands in its own way.
pub(crate) fn answering(release: DriverRelease, answers: Answers) -> Device {
    through(&nic(release), move |file, mut request| {
        let Some(answer) = answers(request.opcode()) else { return file.submit(request) };
        let bytes = answer?;
        let room = request.response().get_mut(..bytes.len());
        room.ok_or(Errno::EFAULT)?.copy_from_slice(&bytes);
        Ok(())
    })
}

pub(crate) fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

/// A service on a VNI that asks for nothing at all, not even a TLE pool.
pub(crate) fn modest(number: u16) -> ServiceSpecBuilder {
    ServiceSpec::builder().vni(vni(number)).limits(Limits::default())
}

/// As [`modest`], on a block of VNIs.
pub(crate) fn modest_range(text: &str) -> ServiceSpecBuilder {
    ServiceSpec::builder().vni_range(range(text)).limits(Limits::default())
}

pub(crate) fn ask(services: &Services, spec: ServiceSpecBuilder) -> Result<ServiceId> {
    services.create(&spec.build().unwrap())
}

pub(crate) fn create(services: &Services, spec: ServiceSpecBuilder) -> ServiceId {
    ask(services, spec).unwrap()
}

/// As [`modest`], with one limit.
pub(crate) fn with(number: u16, resource: Resource, reserved: u16, max: u16) -> ServiceSpecBuilder {
    let limit = Limit::new(reserved, max).unwrap();
    modest(number).limits(Limits::none().with(resource, limit))
}

pub(crate) const ALL: [DriverRelease; DriverRelease::ALL.len()] = DriverRelease::ALL;
/// All but the two oldest, 12.0 and 13.0.
pub(crate) const FROM_13_1: [DriverRelease; ALL.len() - 2] = *ALL.last_chunk().unwrap();

/// An LNI of a new service on a VNI, for whoever has the device.
pub(crate) fn lni_of(device: &Device, number: u16) -> Lni {
    let service = create(&device.services(), modest(number).limits(all(100)));
    device.alloc_lni(service).unwrap()
}

/// An LNI of a service with exclusive profiles and VNIs 512 to 519.
pub(crate) fn exclusive_lni(device: &Device) -> Lni {
    let spec = modest_range("512-519").limits(all(100)).exclusive_cp(true);
    let service = create(&device.services(), spec);
    device.alloc_lni(service).unwrap()
}

/// A service with these limits on a VNI, and an LNI of it that a user has.
pub(crate) fn lni_with(nic: &Arc<Nic>, number: u16, limits: Limits) -> (ServiceId, Lni) {
    let spec = modest(number).member(Member::Uid(1000)).limits(limits);
    let service = create(&root(nic).services(), spec);
    (service, user(nic).alloc_lni(service).unwrap())
}

pub(crate) fn all(max: u16) -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::at_most(max),
    })
}

/// Runs a check on each release; afterward no kernel may have come to harm.
#[expect(clippy::print_stdout, reason = "shown where a check fails")]
pub(crate) fn for_each_release(check: impl Fn(DriverRelease, &Arc<Nic>)) {
    for release in ALL {
        let nic = nic(release);
        println!("{release}");
        check(release, &nic);
        // To ask a service for its range is the only way to find out that it was refused.
        let avoidable =
            |hazard: &Hazard| !matches!(hazard.kind, HazardKind::FreedProfileRead { .. });
        let hazards: Vec<Hazard> = nic.hazards().into_iter().filter(avoidable).collect();
        assert_eq!(hazards, [], "{release}");
    }
}

/// Checks that a call fails with this text; returns the error.
#[track_caller]
pub(crate) fn says<T: Debug, E: Display>(
    result: std::result::Result<T, E>,
    text: impl AsRef<str>,
) -> E {
    match result {
        Ok(made) => panic!("{made:?}: expected {}", text.as_ref()),
        Err(error) => {
            assert_eq!(error.to_string(), text.as_ref());
            error
        }
    }
}

/// As [`says`], with an errno.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T>, errno: Errno, text: &str) {
    assert_eq!(says(result, text).errno(), errno);
}

pub(crate) fn range(text: &str) -> cxi::VniRange {
    text.parse().unwrap()
}
