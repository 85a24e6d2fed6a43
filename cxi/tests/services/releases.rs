//! One suite on every driver release the mock models: the same specification gives the same
//! protection or an error.

use super::lni;
use crate::common::{ask, create, for_each_release, modest, range, root, says, user, vni};
use cxi::driver::Quirks;
use cxi::{DriverRelease, ErrorKind, Member, ServiceId, ServiceSpec, TrafficClass, VniAccess};
use cxi_ioctl::Errno;
use cxi_mock::Credentials;

/// On old drivers a free slot for a member would open the service.
#[test]
fn members_alone_get_in() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        for (number, members) in [
            (20, vec![Member::Uid(1000)]),
            (21, vec![Member::Gid(1000)]),
            (22, vec![Member::Uid(1000), Member::Gid(7)]),
        ] {
            let spec = modest(number).members(members.clone()).build().unwrap();
            let id = services.create(&spec).unwrap();
            assert_eq!(
                lni(nic, Credentials::user(1000, 1000), id),
                Ok(()),
                "{release} {members:?}"
            );
            for stranger in [Credentials::user(1001, 1001), Credentials::root()] {
                assert_eq!(lni(nic, stranger, id), Err(Errno::EPERM), "{release} {members:?}");
            }
            // What was asked for is what is read back.
            let read = services.get(id).unwrap();
            assert_eq!(read.members(), spec.members().copied(), "{release}");
            assert_eq!(ServiceSpec::try_from(&read), Ok(spec));
            services.destroy(id).unwrap();
        }
    });
}

#[test]
fn a_member_of_another_service_gets_no_profile_on_the_vni() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        create(&services, modest(30).member(Member::Uid(1)));
        let mine = create(&services, modest(31).member(Member::Uid(1000)));
        let lni = user(nic).alloc_lni(mine).unwrap();
        let refused = lni.alloc_cp(vni(30), TrafficClass::BestEffort);
        assert!(refused.is_err(), "{release}");
        lni.alloc_cp(vni(31), TrafficClass::BestEffort).unwrap();
    });
}

#[test]
fn no_member_admits_no_process_or_is_an_error() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let spec = modest(40).members([]).build().unwrap();
        match services.create(&spec) {
            Ok(id) => {
                assert!(release >= DriverRelease::Shs13_1);
                let caller = Credentials::user(1000, 1000);
                assert_eq!(lni(nic, caller, id), Err(Errno::EPERM), "{release}");
            }
            Err(error) => {
                assert!(release < DriverRelease::Shs13_1, "{error}");
                assert!(matches!(
                    error.kind(),
                    ErrorKind::Unsupported {
                        needs: DriverRelease::Shs13_1,
                        has,
                        ..
                    } if has.may_be(release)
                ));
            }
        }
    });
}

/// Newer drivers keep it: `namespaces_are_the_only_member`.
#[test]
fn a_network_namespace_is_an_error_before_14_0_0() {
    for_each_release(|release, nic| {
        if release >= DriverRelease::Shs14_0_0 {
            return;
        }
        let services = root(nic).services();
        let before = nic.state();
        let spec = modest(41).member(Member::NetNs(77)).build().unwrap();
        let error = services.create(&spec).unwrap_err();
        let ErrorKind::Unsupported { needs, .. } = error.kind() else { panic!("{error}") };
        assert_eq!(*needs, DriverRelease::Shs14_0_0);
        let set = services.set_netns(ServiceId::DEFAULT, 77).unwrap_err();
        assert!(matches!(set.kind(), ErrorKind::Unsupported { .. }));
        assert_eq!(nic.state(), before, "{release}");
    });
}

#[test]
fn exclusive_vnis_are_exclusive_or_an_error() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let spec = modest(50).exclusive_vnis(true).build().unwrap();
        match services.create(&spec) {
            Ok(_) => {
                let second = ask(&services, modest(50)).unwrap_err();
                assert!(matches!(second.kind(), ErrorKind::VniTaken(_)), "{release}");
            }
            Err(error) => {
                assert!(
                    !matches!(release, DriverRelease::Shs13_0 | DriverRelease::Shs13_1),
                    "{error}"
                );
                assert!(matches!(error.kind(), ErrorKind::NotGuaranteed { .. }));
                let text = error.to_string();
                assert!(
                    text.contains("cannot promise that no other service gets VNI 50"),
                    "{text}"
                );
                // It is taken already: then that is what the error is about.
                let holder = create(&services, modest(50));
                let error = services.create(&spec).unwrap_err();
                let ErrorKind::VniTaken(conflict) = error.kind() else { panic!("{error}") };
                assert_eq!(conflict.holder, Some(holder));
            }
        }
    });
}

#[test]
fn a_block_of_vnis_is_always_exclusive() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let spec = ServiceSpec::builder()
            .vni_range(range("64-65"))
            .exclusive_vnis(true)
            .limits(cxi::Limits::default())
            .build()
            .unwrap();
        if release < DriverRelease::Shs13_1 {
            let error = services.create(&spec).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }));
            return;
        }
        services.create(&spec).unwrap();
        for taken in [64, 65] {
            let error = ask(&services, modest(taken)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::VniTaken(_)), "{release}");
        }
    });
}

#[test]
fn an_unrestricted_service_waits_or_is_an_error() {
    for_each_release(|release, nic| {
        let spec = ServiceSpec::builder().unrestricted_vnis().build().unwrap();
        let services = root(nic).services();
        match services.create(&spec) {
            Ok(id) => {
                assert!(release >= DriverRelease::Shs13_1);
                assert!(!services.get(id).unwrap().is_enabled());
                assert_eq!(services.vni_range(id).unwrap(), None);
                assert_eq!(services.get(id).unwrap().vnis(), VniAccess::Unrestricted);
                services.set_vni_range(id, range("64-127")).unwrap();
                services.set_enabled(id, true).unwrap();
                assert_eq!(services.get(id).unwrap().vnis(), VniAccess::Range(range("64-127")));
            }
            Err(error) => {
                assert!(release < DriverRelease::Shs13_1, "{error}");
                assert!(matches!(error.kind(), ErrorKind::Quirk { quirk: Quirks::OPEN_VNIS, .. }));
                let insisting = root(nic).allow_quirks(Quirks::OPEN_VNIS).services();
                let id = insisting.create(&spec).unwrap();
                assert!(services.get(id).unwrap().is_enabled());
                let lni = user(nic).alloc_lni(id).unwrap();
                let any = lni.alloc_cp(vni(4242), TrafficClass::BestEffort);
                assert_eq!(any.is_ok(), release == DriverRelease::Shs12_0);
            }
        }
    });
}

#[test]
fn a_disabled_service_without_vnis_is_disabled() {
    for_each_release(|release, nic| {
        let spec = ServiceSpec::builder().unrestricted_vnis().enabled(false);
        let services = root(nic).allow_quirks(Quirks::OPEN_VNIS).services();
        let id = services.create(&spec.build().unwrap()).unwrap();
        assert!(!services.get(id).unwrap().is_enabled(), "{release}");
    });
}

#[test]
fn a_block_of_one_vni_is_as_exclusive_as_a_single_one() {
    let nic = crate::common::nic(DriverRelease::Main2026_07);
    let services = root(&nic).services();
    let spec =
        ServiceSpec::builder().vni_range(range("64-64")).exclusive_vnis(true).build().unwrap();
    says(
        services.create(&spec),
        "cxi0: SVC_ALLOC: this driver (main-2026-07) cannot promise that no other service gets \
         VNI 64-64; a block of two VNIs or more would be exclusive",
    );
}

#[test]
fn disabled_is_disabled() {
    for_each_release(|release, nic| {
        let services = root(nic).services();
        let id = create(&services, modest(60).enabled(false));
        let enabled = || services.get(id).unwrap().is_enabled();
        let caller = || Credentials::user(1000, 1000);
        assert!(!enabled(), "{release}");
        assert_eq!(lni(nic, caller(), id), Err(Errno::EKEYREVOKED), "{release}");
        services.set_enabled(id, true).unwrap();
        assert!(enabled(), "{release}");
        assert_eq!(lni(nic, caller(), id), Ok(()), "{release}");
        services.set_enabled(id, false).unwrap();
        assert!(!enabled(), "{release}");
        assert_eq!(services.get(id).unwrap().members(), None);
    });
}
