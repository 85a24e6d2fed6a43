//! Meaning of the driver's errno for each command that changes a service, and requests that are not
//! sent.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use crate::common::{ask, create, modest, nic, range, root, says, user, with};
use cxi::{
    Device, DeviceId, Error, ErrorKind, Limit, LnisPerRgid, Member, Refusal, Resource, Result,
    ServiceId, ServiceSpec, Services,
};
use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::{Credentials, Fault, Nic, NicConfig};

/// The error of a call while the driver answers a command with this errno.
fn refused<T: std::fmt::Debug>(
    nic: &Nic,
    opcode: Opcode,
    errno: Errno,
    call: impl FnOnce() -> Result<T>,
) -> Error {
    nic.faults().inject(Fault::errno(errno).on(opcode));
    let error = call().unwrap_err();
    nic.faults().clear();
    assert_eq!(error.errno(), errno);
    error
}

type Change = fn(&Services, ServiceId) -> Result<()>;

/// Calls that change service 2, and the command each fails with.
const CHANGES: [(&str, Change); 8] = [
    ("SVC_ALLOC", |services, _| ask(services, modest(9)).map(drop)),
    ("SVC_UPDATE", |services, id| {
        services.update(id, &with(5, Resource::Txqs, 0, 1).build().unwrap())
    }),
    ("SVC_ENABLE", |services, id| services.set_enabled(id, false)),
    ("SVC_SET_LPR", |services, id| services.set_lnis_per_rgid(id, LnisPerRgid::new(2).unwrap())),
    ("SVC_SET_EXCLUSIVE_CP", |services, id| services.set_exclusive_cp(id, true)),
    ("SVC_SET_NETNS", |services, id| services.set_netns(id, 77)),
    ("SVC_SET_VNI_RANGE", |services, _| {
        // The default service lists its VNIs; one that does not is service 3.
        services.set_vni_range(ServiceId::new(3).unwrap(), range("64-127"))
    }),
    ("SVC_DESTROY", Services::destroy),
];

/// A NIC with a service on VNI 5, and one that waits for its range.
fn two_services() -> (Arc<Nic>, ServiceId) {
    let config = NicConfig::new().release(DriverRelease::Main2026_07).virtual_functions(1);
    let nic = Nic::new(config).unwrap();
    let services = root(&nic).services();
    let id = create(&services, with(5, Resource::Txqs, 0, 1));
    create(&services, ServiceSpec::builder().unrestricted_vnis());
    (nic, id)
}

#[test]
fn every_change_takes_the_capability() {
    let (nic, id) = two_services();
    let services = user(&nic).services();
    for (command, change) in CHANGES {
        says(
            change(&services, id),
            format!(
                "cxi0: {command}: not permitted: it needs CAP_SYS_ADMIN in the initial user \
                 namespace, and a physical function"
            ),
        );
    }
}

#[test]
fn on_a_virtual_function_every_change_says_so() {
    let (nic, id) = two_services();
    let sysfs = tempfile::tempdir().unwrap();
    let directory = sysfs.path().join("class/cxi_user/cxi0/device");
    fs::create_dir_all(&directory).unwrap();
    symlink("../pf", directory.join("physfn")).unwrap();
    let file = nic.open_vf(0).unwrap().transport(Credentials::root());
    let device = Device::with_sysfs(DeviceId::new(0), Arc::new(file), sysfs.path());
    for (command, change) in CHANGES {
        says(
            change(&device.services(), id),
            format!(
                "cxi0: {command}: not permitted: this is a virtual function; services are changed \
                 on the physical one"
            ),
        );
    }
}

#[test]
fn a_busy_service_is_named() {
    let (nic, id) = two_services();
    let services = root(&nic).services();
    let _lni = user(&nic).alloc_lni(id).unwrap();
    for (command, change) in CHANGES {
        if ["SVC_UPDATE", "SVC_ENABLE", "SVC_SET_LPR", "SVC_DESTROY"].contains(&command) {
            let error =
                says(change(&services, id), format!("cxi0: {command}: service 2 is still in use"));
            assert!(error.is_busy());
        }
    }
}

#[test]
fn an_einval_that_nothing_explains() {
    let (nic, id) = two_services();
    let services = root(&nic).services();
    let error = refused(&nic, Opcode::SVC_ALLOC, Errno::EINVAL, || ask(&services, modest(9)));
    assert_eq!(
        error.to_string(),
        "cxi0: SVC_ALLOC: the driver rejects the specification (EINVAL), although all that is \
         known to be wrong was checked"
    );
    assert!(matches!(error.kind(), ErrorKind::Refused(Refusal::Specification)));
    let error =
        refused(&nic, Opcode::SVC_ENABLE, Errno::EINVAL, || services.set_enabled(id, false));
    assert_eq!(
        error.to_string(),
        "cxi0: SVC_ENABLE: the VNIs that the service is said to have are not there (EINVAL): \
         setting its range, or an update, went wrong; destroy it and create another"
    );
    assert!(matches!(error.kind(), ErrorKind::Refused(Refusal::VnisLost)));
    // The service is there: the driver does not know the command in this form.
    let waiting = ServiceId::new(3).unwrap();
    let error = refused(&nic, Opcode::SVC_SET_VNI_RANGE, Errno::EINVAL, || {
        services.set_vni_range(waiting, range("64-127"))
    });
    assert_eq!(
        error.to_string(),
        "cxi0: SVC_SET_VNI_RANGE: service 3 exists, and the driver refuses the command \
         nevertheless (EINVAL): it does not know the command, or not in this form, or the service \
         was created just now under the ID of one that is gone"
    );
    let is_it = |kind: &ErrorKind| matches!(kind, ErrorKind::Refused(Refusal::Nevertheless(id)) if *id == waiting);
    assert!(is_it(error.kind()));
}

#[test]
fn a_namespace_that_a_service_does_not_take() {
    let (nic, id) = two_services();
    let services = root(&nic).services();
    let other = modest(71).member(Member::NetNs(77)).build().unwrap();
    let other = services.create(&other).unwrap();
    says(
        services.set_netns(other, 78),
        "cxi0: SVC_SET_NETNS: service 4 is enabled: it is still in use",
    );
    services.set_enabled(id, false).unwrap();
    says(
        services.set_netns(id, 77),
        "cxi0: SVC_SET_NETNS: the service has a uid or gid or this namespace as a member, or is \
         open to everyone (EEXIST)",
    );
    let error = refused(&nic, Opcode::SVC_SET_NETNS, Errno::ENODATA, || services.set_netns(id, 77));
    assert_eq!(
        error.to_string(),
        "cxi0: SVC_SET_NETNS: the VNIs that the service is said to have are not there; LNIs can \
         still be allocated in the namespace (ENODATA)"
    );
}

#[test]
fn an_answer_that_is_no_refusal_is_not_taken_for_none() {
    let (nic, id) = two_services();
    let services = root(&nic).services();
    for opcode in [Opcode::SVC_GET_NETNS, Opcode::SVC_GET_VNI_RANGE] {
        let error = refused(&nic, opcode, Errno::ENOMEM, || match opcode {
            Opcode::SVC_GET_NETNS => services.netns(id),
            _ => services.vni_range(id).map(|_| None),
        });
        assert_eq!(
            error.to_string(),
            format!("cxi0: {opcode}: the driver refused with ENOMEM (Cannot allocate memory)")
        );
    }
    nic.faults().inject(Fault::errno(Errno::EOPNOTSUPP).on(Opcode::SVC_GET_VNI_RANGE));
    assert_eq!(services.vni_range(id).unwrap(), None);
    nic.faults().clear();
    let error = refused(&nic, Opcode::SVC_GET_VNI_RANGE, Errno::ENOENT, || services.vni_range(id));
    assert_eq!(
        error.to_string(),
        "cxi0: SVC_GET_VNI_RANGE: the service lost its VNI range when the driver refused one: \
         destroy it and create another (ENOENT)"
    );
}

#[test]
fn a_list_is_whole_or_an_error() {
    let (nic, _) = two_services();
    let services = root(&nic).services();
    let before = services.list().unwrap();
    // A service that is destroyed while it is listed was there when it was listed.
    nic.faults().inject(Fault::errno(Errno::EINVAL).on(Opcode::SVC_GET_VNI_RANGE));
    assert_eq!(services.list().unwrap(), before);
    nic.faults().clear();
    let error = refused(&nic, Opcode::SVC_GET_VNI_RANGE, Errno::ENOMEM, || services.list());
    assert_eq!(error.command(), Some(Opcode::SVC_GET_VNI_RANGE));
}

#[test]
fn a_range_that_overlaps_is_not_sent() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let waiting = || {
        let spec = ServiceSpec::builder().unrestricted_vnis();
        let spec = spec.limits([Limit::NONE; 8].into()).build().unwrap();
        services.create(&spec).unwrap()
    };
    create(&services, modest(70));
    let (first, second) = (waiting(), waiting());
    services.set_vni_range(first, range("128-255")).unwrap();
    for (wanted, text) in [
        ("64-127", "VNIs 64-127 are taken: service 2 has VNI 70"),
        ("130-130", "VNI 130 is taken: service 3 has VNIs 128-255"),
        ("128-255", "VNIs 128-255 are taken by service 3"),
    ] {
        let error = says(
            services.set_vni_range(second, range(wanted)),
            format!("cxi0: SVC_SET_VNI_RANGE: {text}"),
        );
        assert!(matches!(error.kind(), ErrorKind::VniTaken(_)));
        // The driver would have lost track of the service.
        assert_eq!(services.vni_range(second).unwrap(), None);
    }
    // Single VNIs this driver lets several services have.
    services.set_vni_range(second, range("70-70")).unwrap();
}
