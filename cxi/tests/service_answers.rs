//! What is said of answers of the driver that are rare, and what is refused before it is asked.

mod common;

use std::sync::Arc;

use common::{FROM_13_1, modest, nic, range, root};
use cxi::{Device, DeviceId, Errno, Error, ErrorKind, Member, Release, ServiceId, ServiceSpec};
use cxi_ioctl::{Fault, Injection, Mapping, Opcode, Request, Transport};
use cxi_mock::{Credentials, InProcess};

/// A NIC that answers some commands with bytes of the test's choice.
#[derive(Debug)]
struct Answers {
    inner: InProcess,
    opcode: Opcode,
    bytes: &'static [u8],
}

impl Transport for Answers {
    fn submit(&self, request: Request<'_>) -> Result<(), Errno> {
        if request.opcode != self.opcode {
            return self.inner.submit(request);
        }
        let room = request.response.get_mut(..self.bytes.len());
        room.ok_or(Errno::EFAULT)?.copy_from_slice(self.bytes);
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

fn answering(opcode: Opcode, bytes: &'static [u8]) -> Device {
    let inner = nic(Release::Main)
        .open()
        .unwrap()
        .transport(Credentials::root());
    let transport = Answers {
        inner,
        opcode,
        bytes,
    };
    Device::with_transport(DeviceId::new(0), Arc::new(transport))
}

fn faulty(release: Release) -> (Device, Arc<Fault<InProcess>>) {
    let file = nic(release).open().unwrap().transport(Credentials::root());
    let fault = Arc::new(Fault::new(file));
    let device = Device::with_transport(DeviceId::new(0), Arc::<Fault<_>>::clone(&fault) as _);
    (device, fault)
}

fn unrestricted() -> ServiceSpec {
    let spec = ServiceSpec::builder().unrestricted_vnis();
    spec.limits(cxi::Limits::default()).build().unwrap()
}

#[track_caller]
fn said<T: std::fmt::Debug>(result: Result<T, Error>) -> (Errno, String) {
    let error = result.unwrap_err();
    (error.errno(), error.to_string())
}

#[test]
fn a_range_is_refused_where_it_cannot_be() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let listed = services.create(&modest(5).build().unwrap()).unwrap();
        assert_eq!(
            said(services.set_vni_range(listed, range("64-127"))),
            (
                Errno::EINVAL,
                "cxi0: SVC_SET_VNI_RANGE: service 2 lists its VNIs (5): it takes no range"
                    .to_owned()
            ),
            "{release}"
        );
        services.create(&modest(70).build().unwrap()).unwrap();
        let open = services.create(&unrestricted()).unwrap();
        // Sent, it would cost the service its range for ever.
        let error = services.set_vni_range(open, range("64-127")).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::VniTaken(_)), "{error}");
        assert_eq!(services.vni_range(open).unwrap(), None);
        services.set_vni_range(open, range("128-255")).unwrap();
    }
    let services = root(&nic(Release::Shs13_0)).services();
    let error = services.set_vni_range(ServiceId::DEFAULT, range("64-127"));
    assert_eq!(
        error.unwrap_err().to_string(),
        "cxi0: SVC_SET_VNI_RANGE: a range of VNIs is not known to this driver (shs-13.0): it needs \
         SHS 13.1 or later"
    );
}

#[test]
fn a_range_that_was_lost_and_one_that_is_none() {
    let (device, fault) = faulty(Release::Main);
    let services = device.services();
    let id = services.create(&unrestricted()).unwrap();
    let lost = Injection::errno(Errno::ENOENT).on(Opcode::SVC_GET_VNI_RANGE);
    fault.inject(lost.times(1));
    assert_eq!(
        said(services.vni_range(id)),
        (
            Errno::ENOENT,
            "cxi0: SVC_GET_VNI_RANGE: the service lost its VNI range when the driver refused one \
             (ENOENT): destroy it and make another"
                .to_owned()
        )
    );
    fault.inject(Injection::errno(Errno::EIO).on(Opcode::SVC_GET_VNI_RANGE));
    assert_eq!(said(services.vni_range(id)).0, Errno::EIO);
    // A list of services says so too, rather than that the service has no VNIs.
    assert_eq!(said(services.list()).0, Errno::EIO);

    let device = answering(Opcode::SVC_GET_VNI_RANGE, &[5, 0, 0, 0, 9, 0, 0, 0]);
    let (errno, text) = said(device.services().vni_range(ServiceId::DEFAULT));
    assert_eq!(errno, Errno::EPROTO, "{text}");
    assert!(
        text.starts_with("cxi0: SVC_GET_VNI_RANGE: the driver answers what is no range: "),
        "{text}"
    );
}

#[test]
fn a_service_with_id_0_is_none() {
    let device = answering(Opcode::SVC_ALLOC, &[0; 24]);
    let (errno, text) = said(device.services().create(&modest(5).build().unwrap()));
    assert_eq!(errno, Errno::EPROTO);
    assert!(
        text.ends_with("the driver made a service with id 0"),
        "{text}"
    );
}

#[test]
fn namespaces_are_checked_and_refusals_explained() {
    let (device, fault) = faulty(Release::Main);
    let services = device.services();
    let spec = modest(5).enabled(false).build().unwrap();
    let id = services.create(&spec).unwrap();
    let (errno, text) = said(services.set_netns(id, u32::MAX));
    assert_eq!(errno, Errno::EINVAL);
    assert!(text.starts_with("cxi0: SVC_SET_NETNS: "), "{text}");
    fault.inject(
        Injection::errno(Errno::ENODATA)
            .on(Opcode::SVC_SET_NETNS)
            .times(1),
    );
    assert_eq!(
        said(services.set_netns(id, 4_026_532_000)),
        (
            Errno::ENODATA,
            "cxi0: SVC_SET_NETNS: the VNIs that the service is said to have are not there \
             (ENODATA); LNIs can be allocated in the namespace all the same"
                .to_owned()
        )
    );
    fault.inject(
        Injection::errno(Errno::EIO)
            .on(Opcode::SVC_GET_NETNS)
            .times(1),
    );
    assert_eq!(said(services.netns(id)).0, Errno::EIO);
    let member = modest(6).member(Member::Uid(1)).enabled(false);
    let id = services.create(&member.build().unwrap()).unwrap();
    assert_eq!(said(services.set_netns(id, 4_026_532_000)).0, Errno::EEXIST);
}

#[test]
fn exclusive_profiles_are_unknown_to_old_drivers() {
    for release in [Release::Shs12_0, Release::Shs13_0] {
        let services = root(&nic(release)).services();
        assert!(!services.exclusive_cp(ServiceId::DEFAULT).unwrap());
        let unknown = ServiceId::new(99).unwrap();
        let error = services.exclusive_cp(unknown).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoSuchService { .. }));
        let error = services.set_exclusive_cp(ServiceId::DEFAULT, true);
        assert!(matches!(
            error.unwrap_err().kind(),
            ErrorKind::Unsupported { .. }
        ));
    }
}

#[test]
fn a_virtual_function_is_told_that_it_is_one() {
    let config = cxi_mock::NicConfig::new().virtual_functions(1);
    let nic = cxi_mock::Nic::new(config.release(Release::Main)).unwrap();
    let physical = root(&nic).services();
    let id = physical.create(&unrestricted()).unwrap();
    let file = nic.open_vf(0).or_else(|_| nic.open_vf(1)).unwrap();
    let file = Arc::new(file.transport(Credentials::root()));
    let services = Device::with_transport(DeviceId::new(1), file).services();
    for result in [
        services.set_vni_range(id, range("64-127")),
        services.set_netns(id, 4_026_532_000),
        services.set_exclusive_cp(id, true),
        services.set_enabled(id, true),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.errno(), Errno::EPERM, "{error}");
        assert!(
            matches!(error.kind(), ErrorKind::NotPermitted(_)),
            "{error}"
        );
    }
    assert_eq!(physical.vni_range(id).unwrap(), None);
}
