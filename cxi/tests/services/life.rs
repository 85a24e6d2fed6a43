//! Services through the safe API, on every driver release the mock models.

use crate::common::{ALL, FROM_13_1, create, modest, nic, range, root, says, user, vni, with};
use cxi::driver::Quirks;
use cxi::lni::{EventQueueOptions, PtOptions, TxqOptions};
use cxi::{
    ErrorKind, Limit, Limits, LnisPerRgid, Member, Resource, ServiceId, ServiceSpec, TrafficClass,
    TrafficClasses, VniAccess,
};
use cxi_ioctl::DriverRelease;
use cxi_mock::Credentials;

#[test]
fn what_was_made_is_read_back() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = modest(1024)
            .vni(vni(77))
            .member(Member::Uid(1000))
            .member(Member::Gid(200))
            .traffic_classes(TrafficClasses::LOW_LATENCY | TrafficClasses::BEST_EFFORT)
            .limits(Limits::none().with(Resource::Txqs, Limit::new(4, 16).unwrap()))
            .counter_pool(2)
            .build()
            .unwrap();
        let id = services.create(&spec).unwrap();
        assert_eq!(id.get(), 2);

        // Reading takes no privilege.
        let service = user(&nic).services().get(id).unwrap();
        assert!(service.is_enabled() && !service.is_system() && service.is_limited());
        assert_eq!(service.members(), spec.members().copied());
        assert_eq!(service.vnis(), spec.vnis());
        assert_eq!(service.traffic_classes(), spec.traffic_classes());
        assert_eq!(Some(&service.limits()), spec.limits());
        assert_eq!(service.counter_pool(), 2);
        assert_eq!(ServiceSpec::try_from(&service), Ok(spec), "{release}");

        services.destroy(id).unwrap();
        says(services.get(id), "cxi0: SVC_GET: there is no service 2");
    }
}

#[test]
fn unlimited_services_show_what_they_get() {
    let nic = nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let spec = ServiceSpec::builder().vni(vni(5)).build().unwrap();
    let id = services.create(&spec).unwrap();
    let service = services.get(id).unwrap();
    assert!(!service.is_limited());
    assert_eq!(service.limits()[Resource::Tles], Limit::exactly(8));
    assert_eq!(service.limits()[Resource::Txqs], Limit::at_most(1024));
    assert_eq!(service.members(), None);
    assert_eq!(service.traffic_classes(), None);
    assert_eq!(ServiceSpec::try_from(&service), Ok(spec));
}

#[test]
fn ranges_are_set_and_enabled() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let range = range("1024-1039");
        let spec = ServiceSpec::builder()
            .vni_range(range)
            .limits([Limit::NONE; 8].into())
            .build()
            .unwrap();
        let id = services.create(&spec).unwrap();
        let service = services.get(id).unwrap();
        assert!(service.is_enabled(), "{release}");
        assert_eq!(service.vnis(), VniAccess::Range(range));
        assert_eq!(services.vni_range(id).unwrap(), Some(range));
        assert_eq!(ServiceSpec::try_from(&service), Ok(spec));
        assert_eq!(
            services.list().unwrap().last().map(cxi::Service::vnis),
            Some(VniAccess::Range(range))
        );
        assert_eq!(services.vni_range(ServiceId::DEFAULT).unwrap(), None);

        says(
            services.set_vni_range(id, "2048-2063".parse().unwrap()),
            "cxi0: SVC_SET_VNI_RANGE: service 2 already has VNI range 1024-1039: it cannot have \
             another",
        );

        // Disabled and enabled again, and updated, the range stays.
        services.set_enabled(id, false).unwrap();
        assert!(!services.get(id).unwrap().is_enabled());
        services.update(id, &spec).unwrap();
        assert!(services.get(id).unwrap().is_enabled());
        assert_eq!(services.vni_range(id).unwrap(), Some(range));
        services.destroy(id).unwrap();
        assert_eq!(services.create(&spec).unwrap(), id, "{release}");
    }
}

#[test]
fn namespaces_are_the_only_member() {
    for release in [DriverRelease::Shs14_0_0, DriverRelease::Shs14_0_1, DriverRelease::Main2026_07]
    {
        for is_range in [false, true] {
            let nic = nic(release);
            let services = root(&nic).services();
            let builder = ServiceSpec::builder()
                .member(Member::NetNs(4_026_532_000))
                .limits([Limit::NONE; 8].into());
            let builder = if is_range {
                builder.vni_range(range("1024-1027"))
            } else {
                builder.vni(vni(1024))
            };
            let spec = builder.build().unwrap();
            let id = services.create(&spec).unwrap();
            assert_eq!(services.netns(id).unwrap(), Some(4_026_532_000));
            let service = services.get(id).unwrap();
            assert!(service.is_enabled(), "{release}");
            assert_eq!(ServiceSpec::try_from(&service), Ok(spec), "{release}");

            let lni = |netns| {
                let mut caller = Credentials::user(1000, 1000);
                caller.netns = netns;
                super::lni(&nic, caller, id)
            };
            assert_eq!(lni(4_026_532_000), Ok(()));
            assert_eq!(lni(0), Err(cxi::Errno::EPERM));
            assert_eq!(lni(4_026_531_840), Err(cxi::Errno::EPERM));
            services.destroy(id).unwrap();
        }
    }
}

#[test]
fn lists_and_usage_name_every_service() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        for number in 0..40 {
            create(&services, with(100 + number, Resource::Txqs, 1, 2));
        }
        let list = services.list().unwrap();
        let ids: Vec<u32> = list.iter().map(|service| service.id().get()).collect();
        assert_eq!(ids, (1..=41).collect::<Vec<_>>());
        let usage = services.usage_all().unwrap();
        assert_eq!(usage.len(), 41);
        assert_eq!(usage[7], services.usage(usage[7].service).unwrap());
        assert_eq!(usage[7].in_use(Resource::Txqs), 0);
        let not_applicable = (release < DriverRelease::Main2026_07).then_some(0);
        assert_eq!(usage[7].reported[Resource::Les], not_applicable, "{release}");
        let rest =
            if not_applicable.is_none() { "; LEs not reported; TLEs not reported" } else { "" };
        assert_eq!(
            usage[7].to_string(),
            format!("service {} uses nothing{rest}", usage[7].service)
        );
    }
}

#[test]
fn sharing_of_rgids_is_set_and_read() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let id = create(&services, modest(5));
        assert_eq!(services.lnis_per_rgid(id).unwrap().get(), 1);
        // Up to 13.0 the kernel may crash on it, and it is sent only to who insists.
        let hazard = Quirks::SHARED_RGID;
        let eight = LnisPerRgid::new(8).unwrap();
        let refused = services.set_lnis_per_rgid(id, eight).is_err();
        assert_eq!(refused, release <= DriverRelease::Shs13_0, "{release}");
        let insisting = root(&nic).allow_quirks(hazard).services();
        insisting.set_lnis_per_rgid(id, eight).unwrap();
        assert_eq!(services.lnis_per_rgid(id).unwrap().get(), 8);
        let unknown = ServiceId::new(99).unwrap();
        says(services.lnis_per_rgid(unknown), "cxi0: SVC_GET_LPR: there is no service 99");
    }
}

#[test]
fn a_specification_says_how_rgids_and_profiles_are_shared() {
    for release in FROM_13_1 {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = ServiceSpec::builder()
            .vni_range(range("1024-1039"))
            .lnis_per_rgid(LnisPerRgid::new(8).unwrap())
            .exclusive_cp(true);
        let id = services.create(&spec.build().unwrap()).unwrap();
        assert!(services.get(id).unwrap().is_enabled());
        assert!(services.exclusive_cp(id).unwrap());
        assert_eq!(services.lnis_per_rgid(id).unwrap().get(), 8);
    }
    says(
        modest(5).exclusive_cp(true).build(),
        "exclusive CPs are requested, which only a service with a VNI range has",
    );
    // Where sharing may crash the kernel nothing is made.
    let nic = nic(DriverRelease::Shs13_0);
    let eight = modest(5).lnis_per_rgid(LnisPerRgid::new(8).unwrap());
    let refused = root(&nic).services().create(&eight.build().unwrap());
    assert!(matches!(refused.unwrap_err().kind(), ErrorKind::Quirk { .. }));
    assert_eq!(nic.state().svc_count, 1);
}

#[test]
fn the_service_of_the_front_page_can_be_used() {
    let nic = nic(DriverRelease::Main2026_07);
    let info = root(&nic).info().unwrap();
    let limits = Limits::all_of(&info).with(Resource::Txqs, Limit::new(8, 16).unwrap());
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni(1024)).limits(limits);
    let id = root(&nic).services().create(&spec.build().unwrap()).unwrap();
    let lni = user(&nic).alloc_lni(id).unwrap();
    let events = lni.alloc_eq(&EventQueueOptions::new(4096)).unwrap();
    let profile = lni.alloc_cp(vni(1024), TrafficClass::BestEffort).unwrap();
    let options = TxqOptions::new(64).event_queue(&events);
    lni.alloc_txq(&profile, &options).unwrap();
    lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events)).unwrap();
}

#[test]
fn as_many_vnis_as_a_service_can_have() {
    for release in ALL {
        let nic = nic(release);
        let services = root(&nic).services();
        let spec = modest(5).vnis([6, 7, 8].map(vni));
        let id = services.create(&spec.clone().build().unwrap()).unwrap();
        let disabled = spec.enabled(false).counter_pool(3).build().unwrap();
        services.update(id, &disabled).unwrap();
        let service = services.get(id).unwrap();
        assert_eq!(service.vnis().to_string(), "5,6,7,8");
        assert_eq!(service.counter_pool(), 3, "{release}");
        services.destroy(id).unwrap();
    }
}
