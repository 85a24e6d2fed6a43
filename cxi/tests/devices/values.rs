//! Conversion and text of values.

use std::num::{NonZeroU16, NonZeroU32};
use std::path::Path;

use crate::common::{create, modest, nic, range, root, says, vni};
use cxi::service::{Contradiction, InvalidSpec};
use cxi::{
    CassiniVersion, Clock, Device, DeviceId, Driver, DriverRelease, Errno, Error, Host, Limit,
    Limits, Member, Members, PciAddress, Platform, Resource, ScopedService, Service, ServiceId,
    ServiceSpec, Services, SystemClock, TrafficClass, TrafficClasses, Vni, VniAccess, VniList,
};
use cxi_mock::{Nic, NicConfig};

#[test]
fn chips_have_a_generation_and_a_name() {
    for (number, generation, name) in [
        (0x10, Some(1), "Cassini 1"),
        (0x11, Some(1), "Cassini 1.0"),
        (0x12, Some(1), "Cassini 1.1"),
        (0x13, Some(1), "Cassini version 0x13"),
        (0x20, Some(2), "Cassini 2"),
        (0x21, Some(2), "Cassini 2.0"),
        (0x30, None, "Cassini version 0x30"),
    ] {
        let version = CassiniVersion(number);
        assert_eq!(version.generation(), generation, "{number:#x}");
        assert_eq!(version.to_string(), name);
    }
}

#[test]
fn an_unknown_platform_keeps_its_number() {
    let config = NicConfig::new().identity(|identity| identity.device_platform = 99);
    let nic = Nic::new(config).unwrap();
    let device = Device::cxi0(nic.root().unwrap());
    let platform = device.info().unwrap().platform;
    assert_eq!(platform, Platform::Other(99));
    assert_eq!(
        [Platform::Asic, Platform::Netsim, platform].map(|platform| platform.to_string()),
        ["ASIC", "NETSIM", "platform 99"]
    );
}

#[test]
fn vnis_and_service_ids_come_from_integers_that_are_not_zero() {
    assert_eq!(Vni::from(NonZeroU16::new(7).unwrap()), vni(7));
    let id = NonZeroU32::new(2).unwrap();
    assert_eq!(ServiceId::from(id), ServiceId::new(2).unwrap());
}

#[test]
fn a_specification_says_what_was_asked_for() {
    let plain = ServiceSpec::builder().vni(vni(5)).build().unwrap();
    assert!(plain.is_enabled() && !plain.is_system() && !plain.exclusive_vnis());
    assert_eq!(plain.counter_pool(), 0);
    let spec = ServiceSpec::builder()
        .vni(vni(5))
        .enabled(false)
        .system(true)
        .exclusive_vnis(true)
        .counter_pool(3)
        .build()
        .unwrap();
    assert!(!spec.is_enabled() && spec.is_system() && spec.exclusive_vnis());
    assert_eq!(spec.counter_pool(), 3);
    let nothing = ServiceSpec::builder().unrestricted_vnis();
    says(nothing.exclusive_vnis(true).build(), "exclusive VNIs are requested, but none are named");
    for access in [VniAccess::Unrestricted, plain.vnis(), VniAccess::Range(range("64-127"))] {
        let spec = ServiceSpec::builder().vni_access(access).build().unwrap();
        assert_eq!(spec.vnis(), access);
    }
}

#[test]
fn values_print_as_people_write_them() {
    assert_eq!(TrafficClass::BestEffort.to_string(), "best-effort");
    assert_eq!(VniAccess::Unrestricted.to_string(), "any");
    let other = Member::Other { kind: 9, id: 7 };
    assert_eq!(other.to_string(), "member of kind 9 with id 7");
    let address: PciAddress = "0000:41:00.0".parse().unwrap();
    assert_eq!(String::from(address), "0000:41:00.0");
    assert_eq!(PciAddress::try_from("0000:41:00.0".to_owned()), Ok(address));
    assert!(PciAddress::try_from("41".to_owned()).is_err());
}

#[test]
fn debug_forms_are_short() {
    let list = VniList::new([vni(5), vni(9)]).unwrap();
    assert_eq!(format!("{list:?}"), "[5, 9]");
    let members = Members::new([Member::Uid(7)]).unwrap();
    assert_eq!(format!("{members:?}"), "[Uid(7)]");
    let classes = TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT;
    assert_eq!(format!("{classes:?}"), format!("TrafficClasses({classes})"));
}

#[test]
fn a_service_shows_what_it_is_and_no_padding() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let id = create(&services, modest(1024).member(Member::Uid(1000)));
    let shown = format!("{:?}", services.get(id).unwrap());
    for part in [
        "id: ServiceId(2)",
        "enabled: true",
        "system: false",
        "members: Some([Uid(1000)])",
        "limited: true",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.ends_with(", .. }"), "{shown}");
    let error = services.get(ServiceId::new(99).unwrap()).unwrap_err();
    let shown = format!("{error:?}");
    for part in ["device: Some(DeviceId(0))", "SVC_GET", "EINVAL", "NoSuchService"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn handles_know_where_they_belong() {
    let nic = nic(DriverRelease::Main2026_07);
    let device = root(&nic);
    assert_eq!(device.services().device().id(), device.id());
    let spec = modest(1024).build().unwrap();
    let scoped = device.services().create_scoped(&spec).unwrap();
    assert!(scoped.services().get(scoped.id()).is_ok());
    let id = ScopedService::keep(scoped);
    assert!(device.services().get(id).is_ok());
    let driver = device.driver().unwrap();
    assert_eq!(driver.to_string(), driver.detected_release().to_string());
    assert!(!format!("{:?}", driver.evidence()).is_empty());

    let host = Host::default();
    assert_eq!((host.dev(), host.sysfs()), (Path::new("/dev"), Path::new("/sys")));
    let clock = SystemClock;
    assert!(clock.now() <= clock.now());
    assert_eq!(Resource::ALL.len(), 8);
}

#[test]
fn wrong_values_become_errors_by_question_mark() {
    fn made() -> cxi::Result<ServiceSpec> {
        let id: DeviceId = "cxi7".parse()?;
        let limit = Limit::new(1, u32::from(id).try_into().unwrap_or(0))?;
        let spec = ServiceSpec::builder()
            .vni(Vni::try_from(65536_u32)?)
            .limits(Limits::none().with(Resource::Acs, limit));
        Ok(spec.build()?)
    }
    let error = says(made(), "invalid VNI 65536: expected 1 to 65535");
    assert_eq!(error.errno(), Errno::EINVAL);
    let cause = std::error::Error::source(&error).unwrap();
    let wrong = cxi::InvalidValue::Number { what: cxi::ValueKind::Vni, number: 65536 };
    assert_eq!(cause.downcast_ref(), Some(&wrong));
    assert!(matches!(error.kind(), cxi::ErrorKind::InvalidValue(value) if *value == wrong));
}

#[test]
fn a_contradiction_can_be_told_from_others() {
    let vnis = || ServiceSpec::builder().vni(Vni::new(1024).unwrap());
    for (builder, wrong) in [
        (vnis().unrestricted_vnis(), Contradiction::NamedAndUnrestricted),
        (vnis().exclusive_cp(true), Contradiction::ExclusiveCpsWithoutRange),
        (vnis().parent(true).member(Member::Uid(7)), Contradiction::MembersOfParent),
    ] {
        assert_eq!(builder.build().unwrap_err(), InvalidSpec::Contradiction(wrong), "{wrong}");
    }
    assert!(vnis().parent(true).members([]).build().is_ok(), "it names no member");
}

#[test]
fn what_the_driver_refused_has_its_errno_as_source() {
    let nic = nic(DriverRelease::Main2026_07);
    let error = root(&nic).services().destroy(ServiceId::new(9).unwrap()).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap();
    assert_eq!(cause.downcast_ref::<Errno>(), Some(&Errno::EINVAL));
}

#[test]
fn a_service_is_shown_in_one_line() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let spec = ServiceSpec::builder()
        .member(Member::Uid(1000))
        .vni_range(range("1024-1039"))
        .traffic_classes(TrafficClasses::LOW_LATENCY)
        .enabled(false);
    services.create(&spec.build().unwrap()).unwrap();
    let list = services.list().unwrap();
    let shown: Vec<_> = list.iter().map(ToString::to_string).collect();
    assert_eq!(shown[1], "service 2: uid 1000; VNIs 1024-1039; low-latency; disabled");
    let vnis = list[1].vnis();
    assert!(vnis.contains(vni(1039)) && !vnis.contains(vni(1040)));
    assert_eq!(vnis.iter().count(), 16);
    let list = VniAccess::List(VniList::new([vni(5), vni(1030)]).unwrap());
    assert!(list.overlaps(&vnis) && vnis.overlaps(&list));
    assert!(!vnis.overlaps(&VniAccess::Unrestricted));
}

#[test]
fn everything_can_be_used_from_any_thread() {
    fn check<T: Send + Sync + 'static>() {}
    check::<(Error, Driver, Device)>();
    check::<(Services, Service, ServiceSpec)>();
    check::<ScopedService>();
}
