//! Errors of services, as text.

use crate::common::{ALL, ask, create, modest, nic, range, refused, root, says, user, vni, with};
use cxi::{Device, ErrorKind, Limit, Member, Resource, ServiceId, ServiceSpec, TrafficClasses};
use cxi_ioctl::{DriverRelease, Errno, Faulty, Opcode};
use cxi_mock::Fault;

#[test]
fn specifications_are_checked_before_anything_is_sent() {
    let spec = ServiceSpec::builder;
    for (builder, message) in [
        (spec(), "no VNIs: name VNIs or a range, or ask for unrestricted VNIs"),
        (
            spec().vnis([1, 2, 3, 4, 5].map(vni)),
            "5 VNIs: a service can list at most 4; more need a VNI range",
        ),
        (spec().vni(vni(7)).vni(vni(7)), "VNI 7 is listed twice: name each VNI once"),
        (
            spec().vni(vni(7)).vni_range(range("8-15")),
            "both 8-15 as VNI range and VNIs are named: a service has one or the other",
        ),
        (
            spec().vni(vni(7)).unrestricted_vnis(),
            "VNIs are named and unrestricted: a service has one or the other",
        ),
        (
            modest(7).members([Member::Uid(1), Member::Uid(2), Member::Uid(3)]),
            "3 members: a service can name at most 2",
        ),
        (
            modest(7).member(Member::Gid(5)).member(Member::Gid(5)),
            "gid 5 is named twice: name each member once",
        ),
        (
            modest(7).traffic_classes(TrafficClasses::empty()),
            "no traffic class: name at least one, or leave them unrestricted",
        ),
        (
            modest(7).traffic_classes(TrafficClasses::from_bits_retain(0x21)),
            "traffic classes 0x21: expected bits below 0x20",
        ),
        (modest(7).counter_pool(4), "counter pool 4: expected 0 to 3"),
    ] {
        says(builder.build(), message);
    }
}

#[test]
fn limits_are_checked_against_the_device() {
    let nic = nic(DriverRelease::Shs14_0_1);
    let services = root(&nic).services();
    let error = says(
        ask(&services, with(5, Resource::Txqs, 0, 2048)),
        "cxi0: SVC_ALLOC: TXQs: the requested maximum, 2048, exceeds the NIC's total, 1024",
    );
    assert_eq!(error.errno(), Errno::EINVAL);
    assert!(matches!(error.kind(), ErrorKind::InvalidSpec(_)));
}

#[test]
fn without_the_capability_services_are_read_only() {
    for release in ALL {
        let nic = nic(release);
        let id = ask(&root(&nic).services(), modest(5));
        let services = user(&nic).services();
        let error = says(
            ask(&services, modest(6)),
            "cxi0: SVC_ALLOC: not permitted: it needs CAP_SYS_ADMIN in the initial user \
             namespace, and a physical function",
        );
        assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::PermissionDenied);
        let error = services.destroy(id.unwrap()).unwrap_err();
        assert_eq!(error.errno(), Errno::EPERM);
    }
}

#[test]
fn ids_that_do_not_exist_are_named() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = ServiceId::new(77).unwrap();
    let spec = modest(5).build().unwrap();
    for (error, command) in [
        (services.get(id).unwrap_err(), "SVC_GET"),
        (services.usage(id).unwrap_err(), "SVC_RSRC_GET"),
        (services.update(id, &spec).unwrap_err(), "SVC_GET"),
        (services.set_enabled(id, true).unwrap_err(), "SVC_ENABLE"),
        (services.set_vni_range(id, range("8-15")).unwrap_err(), "SVC_SET_VNI_RANGE"),
        (services.vni_range(id).unwrap_err(), "SVC_GET_VNI_RANGE"),
        (services.set_lnis_per_rgid(id, 2.try_into().unwrap()).unwrap_err(), "SVC_SET_LPR"),
        (services.lnis_per_rgid(id).unwrap_err(), "SVC_GET_LPR"),
        (services.set_exclusive_cp(id, true).unwrap_err(), "SVC_SET_EXCLUSIVE_CP"),
        (services.exclusive_cp(id).unwrap_err(), "SVC_GET_EXCLUSIVE_CP"),
        (services.set_netns(id, 5).unwrap_err(), "SVC_SET_NETNS"),
        (services.netns(id).unwrap_err(), "SVC_GET_NETNS"),
        (services.destroy(id).unwrap_err(), "SVC_DESTROY"),
    ] {
        assert_eq!(error.to_string(), format!("cxi0: {command}: there is no service 77"));
        assert_eq!(error.errno(), Errno::EINVAL);
    }
}

#[test]
fn the_default_service_stays() {
    let nic = nic(DriverRelease::Main2026_07);
    says(
        root(&nic).services().destroy(ServiceId::DEFAULT),
        "cxi0: SVC_DESTROY: the default service (1) cannot be destroyed; it can be disabled",
    );
}

#[test]
fn updates_that_would_break_a_service_are_refused() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = create(&services, modest(5));
    let unlimited = ServiceSpec::builder().vni(vni(5)).build().unwrap();
    says(
        services.update(id, &unlimited),
        "cxi0: SVC_UPDATE: service 2 has limits and the specification has none: that cannot be \
         changed",
    );
    let two = modest(5).vni(vni(6)).build().unwrap();
    says(
        services.update(id, &two),
        "cxi0: SVC_UPDATE: service 2 has VNIs 5 and the specification 5,6: their number and kind \
         cannot be changed",
    );
    services.update(id, &modest(5).enabled(false).build().unwrap()).unwrap();
    assert!(!services.get(id).unwrap().is_enabled());
}

#[test]
fn updates_that_would_only_be_noted_are_refused() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = || modest(5).member(Member::Uid(1000));
        let id = create(&services, spec());
        let before = services.get(id).unwrap();
        for (other, what) in [
            (modest(5).member(Member::Uid(1001)), "members"),
            (modest(6).member(Member::Uid(1000)), "VNIs"),
            (spec().traffic_classes(TrafficClasses::BULK_DATA), "traffic classes"),
        ] {
            let error = services.update(id, &other.build().unwrap()).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::NotGuaranteed { .. }), "{release}: {error}");
            let expected = format!(
                "cannot promise other {what} for service {id}, which drivers from shs-13.0 on \
                 store but do not apply: destroy it and create another"
            );
            assert!(error.to_string().ends_with(&expected), "{release}: {error}");
            assert_eq!(services.get(id).unwrap(), before, "{release}");
        }
        services.update(id, &spec().enabled(false).build().unwrap()).unwrap();
        assert!(!services.get(id).unwrap().is_enabled(), "{release}");
    }
}

#[test]
fn old_drivers_are_told_from_new_ones() {
    for release in [DriverRelease::Shs12_0, DriverRelease::Shs13_0] {
        let nic = nic(release);
        let services = root(&nic).services();
        let before = services.list().unwrap();
        let spec = ServiceSpec::builder;
        let range = range("8-15");
        for (builder, what, needs) in [
            (spec().vni_range(range), "a range of VNIs", "13.1"),
            (spec().vnis([]), "a service without any VNI", "13.1"),
            (modest(5).members([]), "a service without any member", "13.1"),
            (modest(5).member(Member::NetNs(7)), "a network namespace as member", "14.0.0"),
        ] {
            says(
                services.create(&builder.build().unwrap()),
                format!(
                    "cxi0: SVC_ALLOC: {what} is not known to this driver ({release}): it needs \
                     SHS {needs} or later"
                ),
            );
        }
        assert_eq!(services.list().unwrap(), before);
    }
    let nic = nic(DriverRelease::Shs13_1);
    let services = root(&nic).services();
    let before = services.list().unwrap();
    let spec = modest(5).member(Member::NetNs(7)).build().unwrap();
    says(
        services.create(&spec),
        "cxi0: SVC_ALLOC: a network namespace as member is not known to this driver (shs-13.1): \
         it needs SHS 14.0.0 or later",
    );
    assert_eq!(services.list().unwrap(), before);
}

#[test]
fn taken_vnis_are_named_with_their_holder() {
    for release in [DriverRelease::Shs13_0, DriverRelease::Shs13_1, DriverRelease::Shs14_0_0] {
        let nic = nic(release);
        let services = root(&nic).services();
        let first = create(&services, modest(1024));
        let error = says(
            ask(&services, modest(7).vni(vni(1024))),
            format!("cxi0: SVC_ALLOC: VNI 1024 is taken by service {first}"),
        );
        assert_eq!(error.errno(), Errno::EEXIST);
        says(ask(&services, modest(10)), "cxi0: SVC_ALLOC: VNI 10 is taken by service 1");
    }
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    create(&services, ServiceSpec::builder().vni_range(range("1024-1039")));
    says(
        ask(&services, modest(1030)),
        "cxi0: SVC_ALLOC: VNI 1030 is taken: service 2 has VNIs 1024-1039",
    );
}

#[test]
fn an_undo_that_fails_names_what_is_left() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    nic.faults().inject(Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ENABLE).once());
    nic.faults().inject(Fault::errno(Errno::EPERM).on(Opcode::SVC_DESTROY).once());
    let spec = ServiceSpec::builder().vni_range(range("64-127")).build().unwrap();
    let error = says(
        services.create(&spec),
        "cxi0: SVC_ENABLE: the driver refused with ENOMEM (Cannot allocate memory); service 2 is \
         left behind, because destroying it failed too: not permitted: it needs CAP_SYS_ADMIN in \
         the initial user namespace, and a physical function",
    );
    let leftover = error.leftover().unwrap();
    services.destroy(leftover.service).unwrap();
}

#[test]
fn a_removed_nic_says_so() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    nic.faults().unplug();
    let error = says(services.list(), "cxi0: SVC_LIST_GET: the device has been removed");
    assert_eq!(error.errno(), Errno::EIO);
}

#[test]
fn unlimited_and_limited_differ() {
    let limits = cxi::Limits::from([Limit::at_most(1); 8]);
    let spec = modest(5).limits(limits).build().unwrap();
    assert_eq!(spec.limits().unwrap()[Resource::Acs].max(), 1);
    assert_eq!(spec.with_limits(None).limits(), None);
}

#[test]
fn an_injected_shortage_says_what_is_short() {
    let wanted = || with(5, Resource::Txqs, 128, 128);
    let is_short = |device: Device| {
        let text = "cxi0: SVC_ALLOC: not enough TXQs: 128 requested, 96 available";
        refused(ask(&device.services(), wanted()), Errno::ENOSPC, text);
    };
    let mock = nic(DriverRelease::Main2026_07);
    let file = Faulty::new(mock.root().unwrap());
    file.inject(Fault::shortage(Resource::Txqs, 96));
    is_short(Device::cxi0(file));
    mock.faults().inject(Fault::shortage(Resource::Txqs, 96).once());
    is_short(root(&mock));
    create(&root(&mock).services(), wanted());

    // What fits is made.
    mock.faults().inject(Fault::shortage(Resource::Txqs, 96));
    create(&root(&mock).services(), with(5, Resource::Txqs, 96, 128));
    is_short(root(&mock));
}
