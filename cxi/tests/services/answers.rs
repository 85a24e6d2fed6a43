//! Rare answers of the driver, and requests that are refused before they are sent.

use crate::common::{FROM_13_1, answering, ask, create, modest, nic, range, refused, root, says};
use cxi::{DriverRelease, Errno, ErrorKind, ServiceId};
use cxi_ioctl::Opcode;

#[test]
fn a_range_is_refused_where_it_cannot_be() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let listed = create(&services, modest(5));
        refused(
            services.set_vni_range(listed, range("64-127")),
            Errno::EINVAL,
            "cxi0: SVC_SET_VNI_RANGE: service 2 lists its VNIs (5): it cannot have a range",
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
    let device = answering(DriverRelease::Main2026_07, |opcode| {
        (opcode == Opcode::SVC_ALLOC).then(|| Ok(vec![0; 24]))
    });
    refused(
        ask(&device.services(), modest(5)),
        Errno::EPROTO,
        "cxi0: SVC_ALLOC: the driver's answer contains a service with ID 0",
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
        assert!(matches!(error.unwrap_err().kind(), ErrorKind::Unsupported { .. }));
    }
}

#[test]
fn a_range_that_is_none_is_not_passed_on() {
    let device = answering(DriverRelease::Main2026_07, |opcode| {
        (opcode == Opcode::SVC_GET_VNI_RANGE).then(|| Ok(vec![5, 0, 0, 0, 9, 0, 0, 0]))
    });
    let error = device.services().vni_range(ServiceId::DEFAULT).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.errno(), Errno::EPROTO, "{text}");
    assert!(
        text.starts_with("cxi0: SVC_GET_VNI_RANGE: the driver answers with an invalid range: "),
        "{text}"
    );
}

#[test]
fn a_namespace_of_all_ones_is_not_sent() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = create(&services, modest(5).enabled(false));
    let error = services.set_netns(id, u32::MAX).unwrap_err();
    let text = error.to_string();
    assert_eq!(error.errno(), Errno::EINVAL);
    assert!(text.starts_with("cxi0: SVC_SET_NETNS: "), "{text}");
    assert_eq!(services.netns(id).unwrap(), None);
}
