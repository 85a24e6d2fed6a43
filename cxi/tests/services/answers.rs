//! What is said of answers of the driver that are rare, and what is refused before it is asked.

use std::sync::Arc;

use crate::common::{FROM_13_1, create, modest, nic, range, root, says};
use cxi::{Device, DriverRelease, Errno, Error, ErrorKind, ServiceId};
use cxi_ioctl::{Mapping, Opcode, Request, Transport};
use cxi_mock::{Credentials, InProcess};

/// A NIC that answers some commands with bytes of the test's choice.
#[derive(Debug)]
struct Answers {
    inner: InProcess,
    opcode: Opcode,
    bytes: &'static [u8],
}

impl Transport for Answers {
    fn submit(&self, mut request: Request<'_>) -> Result<(), Errno> {
        if request.opcode() != self.opcode {
            return self.inner.submit(request);
        }
        let room = request.response().get_mut(..self.bytes.len());
        room.ok_or(Errno::EFAULT)?.copy_from_slice(self.bytes);
        Ok(())
    }

    fn map(&self, offset: u64, len: usize) -> Result<Mapping, Errno> {
        self.inner.map(offset, len)
    }
}

fn answering(opcode: Opcode, bytes: &'static [u8]) -> Device {
    let inner = nic(DriverRelease::Main)
        .open()
        .unwrap()
        .transport(Credentials::root());
    let transport = Answers {
        inner,
        opcode,
        bytes,
    };
    Device::from(Arc::new(transport))
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
        let listed = create(&services, modest(5));
        assert_eq!(
            said(services.set_vni_range(listed, range("64-127"))),
            (
                Errno::EINVAL,
                "cxi0: SVC_SET_VNI_RANGE: service 2 lists its VNIs (5): it takes no range"
                    .to_owned()
            ),
            "{release}"
        );
    }
    let services = root(&nic(DriverRelease::Shs13_0)).services();
    let error = services.set_vni_range(ServiceId::DEFAULT, range("64-127"));
    says(
        error,
        "cxi0: SVC_SET_VNI_RANGE: a range of VNIs is not known to this driver (shs-13.0): it needs \
         SHS 13.1 or later",
    );
}

#[test]
fn a_service_with_id_0_is_none() {
    let device = answering(Opcode::SVC_ALLOC, &[0; 24]);
    let (errno, text) = said(device.services().create(&modest(5).build().unwrap()));
    assert_eq!(errno, Errno::EPROTO);
    assert_eq!(
        text,
        "cxi0: SVC_ALLOC: the driver's answer holds a service with id 0"
    );
}

#[test]
fn exclusive_profiles_are_unknown_to_old_drivers() {
    for release in [DriverRelease::Shs12_0, DriverRelease::Shs13_0] {
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
fn a_range_that_is_none_is_not_passed_on() {
    let device = answering(Opcode::SVC_GET_VNI_RANGE, &[5, 0, 0, 0, 9, 0, 0, 0]);
    let (errno, text) = said(device.services().vni_range(ServiceId::DEFAULT));
    assert_eq!(errno, Errno::EPROTO, "{text}");
    assert!(
        text.starts_with("cxi0: SVC_GET_VNI_RANGE: the driver answers with an invalid range: "),
        "{text}"
    );
}

#[test]
fn a_namespace_of_all_ones_is_not_sent() {
    let nic = nic(DriverRelease::Main);
    let services = root(&nic).services();
    let id = create(&services, modest(5).enabled(false));
    let (errno, text) = said(services.set_netns(id, u32::MAX));
    assert_eq!(errno, Errno::EINVAL);
    assert!(text.starts_with("cxi0: SVC_SET_NETNS: "), "{text}");
    assert_eq!(services.netns(id).unwrap(), None);
}
