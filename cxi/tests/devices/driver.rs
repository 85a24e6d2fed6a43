//! Release of the driver, found out without a trace, on every driver release the mock models.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crate::common::{ALL, Answers, answering, create, device, nic, root, through, user};
use cxi::driver::{Capabilities, DetectedRelease, Quirks};
use cxi::{Device, DeviceId, DriverRelease};
use cxi_ioctl::{Errno, Opcode, Record};
use cxi_mock::{Credentials, Nic, NicConfig};

const CALLERS: [Credentials; 2] = [Credentials::root(), Credentials::user(1000, 1000)];

/// Returns the release that can be told without sysfs.
fn expected(release: DriverRelease) -> DetectedRelease {
    match release {
        DriverRelease::Shs14_0_0 | DriverRelease::Shs14_0_1 => DetectedRelease::Between {
            oldest: DriverRelease::Shs14_0_0,
            newest: DriverRelease::Shs14_0_1,
        },
        release => DetectedRelease::Release(release),
    }
}

/// The parts of sysfs that the driver's module makes.
fn sysfs(directory: &Path, release: DriverRelease) {
    let parameters = directory.join("module/cxi_ss1/parameters");
    fs::create_dir_all(&parameters).unwrap();
    for (name, since) in [
        ("disable_default_svc", DriverRelease::Shs12_0),
        ("default_lnis_per_rgid", DriverRelease::Shs13_1),
        ("cass_sl_pml_rec_timeout_ms", DriverRelease::Shs14_0_1),
        ("rmu_pf_max_clients", DriverRelease::Main2026_07),
    ] {
        if release >= since {
            fs::write(parameters.join(name), "1\n").unwrap();
        }
    }
    let properties = directory.join("class/cxi_user/cxi0/device/properties");
    fs::create_dir_all(&properties).unwrap();
    fs::write(properties.join("nid"), "0x1\n").unwrap();
    if release >= DriverRelease::Main2026_07 {
        fs::write(properties.join("ats_enabled"), "0\n").unwrap();
    }
}

#[test]
fn every_release_is_recognised_by_root_and_by_a_user() {
    for release in ALL {
        for caller in CALLERS {
            let nic = nic(release);
            let driver = device(&nic, caller.clone()).driver().unwrap().clone();
            assert_eq!(driver.detected_release(), expected(release), "{release} {caller:?}");
            assert!(driver.detected_release().may_be(release));
        }
    }
}

#[test]
fn sysfs_tells_14_0_0_from_14_0_1() {
    for release in ALL {
        for caller in CALLERS {
            let directory = tempfile::tempdir().unwrap();
            sysfs(directory.path(), release);
            let file = nic(release).open().unwrap().transport(caller);
            let device = Device::with_sysfs(DeviceId::new(0), Arc::new(file), directory.path());
            let driver = device.driver().unwrap();
            assert_eq!(driver.detected_release(), DetectedRelease::Release(release));
            let ats_enabled = driver.evidence().ats_enabled;
            assert_eq!(ats_enabled, Some(release >= DriverRelease::Main2026_07));
        }
    }
}

#[test]
fn sysfs_of_another_driver_is_a_contradiction() {
    let directory = tempfile::tempdir().unwrap();
    sysfs(directory.path(), DriverRelease::Main2026_07);
    let file = nic(DriverRelease::Shs13_0).open().unwrap().transport(Credentials::root());
    let device = Device::with_sysfs(DeviceId::new(0), Arc::new(file), directory.path());
    assert_eq!(device.driver().unwrap().detected_release(), DetectedRelease::Unknown);
}

#[test]
fn neither_what_is_on_the_nic_nor_the_parameters_matter() {
    for release in ALL {
        for (disabled, test_mode) in [(true, false), (false, false), (false, true)] {
            let config = NicConfig::new().release(release).parameters(|params| {
                params.disable_default_svc = disabled;
                params.default_svc_test_mode = test_mode;
            });
            for caller in CALLERS {
                let nic = Nic::new(config.clone()).unwrap();
                let services = root(&nic).services();
                let id = create(&services, crate::common::modest(77));
                let _lni = root(&nic).alloc_lni(id).unwrap();
                let device = device(&nic, caller);
                assert_eq!(device.driver().unwrap().detected_release(), expected(release));
            }
        }
    }
}

#[test]
fn finding_out_changes_nothing_and_is_done_once() {
    for release in ALL {
        for disabled in [true, false] {
            for caller in CALLERS {
                let nic = Nic::new(
                    NicConfig::new()
                        .release(release)
                        .parameters(|params| params.disable_default_svc = disabled),
                )
                .unwrap();
                let state = nic.state();
                let record = Arc::new(Record::new(nic.open().unwrap().transport(caller)));
                let device = Device::cxi0(Arc::clone(&record));
                device.driver().unwrap();
                let asks_for_parents = release >= DriverRelease::Main2026_07;
                let count = 6 + usize::from(asks_for_parents);
                assert_eq!(record.take().opcodes().count(), count, "{release}");
                device.clone().driver().unwrap();
                assert_eq!(record.take().opcodes().count(), 0, "{release}");
                assert_eq!(nic.state(), state, "{release}");
                assert_eq!(nic.hazards(), [], "{release}");
            }
        }
    }
}

#[test]
fn capabilities_are_those_of_the_release() {
    for release in ALL {
        let nic = nic(release);
        let device = user(&nic);
        let driver = device.driver().unwrap();
        let since = |first| release >= first;
        for (capability, there) in [
            (Capabilities::SERVICE_ENABLE, since(DriverRelease::Shs13_1)),
            (Capabilities::VNI_RANGES, since(DriverRelease::Shs13_1)),
            (Capabilities::EXCLUSIVE_CPS, since(DriverRelease::Shs13_1)),
            (Capabilities::NID_CONFIGURED, since(DriverRelease::Shs13_1)),
            (Capabilities::NETNS, since(DriverRelease::Shs14_0_0)),
            (Capabilities::CQ_ALLOC_BUF, since(DriverRelease::Main2026_07)),
            (Capabilities::USAGE_NOT_APPLICABLE, since(DriverRelease::Main2026_07)),
        ] {
            assert_eq!(driver.can(capability), there, "{release} {capability:?}");
        }
        // Nothing is promised that the other of two look-alikes does not do.
        assert!((Capabilities::for_release(release)).contains(driver.capabilities()));
        assert!(driver.quirks().contains(Quirks::for_release(release)), "{release}");
    }
}

#[test]
fn on_a_virtual_function_nothing_wrong_is_said() {
    for release in ALL {
        for caller in CALLERS {
            let config = NicConfig::new().release(release).virtual_functions(1);
            let nic = Nic::new(config).unwrap();
            let file = nic.open_vf(0).unwrap().transport(caller);
            let device = Device::cxi0(Arc::new(file));
            let driver = device.driver().unwrap();
            assert!(driver.detected_release().may_be(release), "{release} {driver}");
            assert!(Capabilities::for_release(release).contains(driver.capabilities()));
            assert!(driver.quirks().contains(Quirks::for_release(release)));
        }
    }
}

#[test]
fn an_unknown_driver_gets_no_promise() {
    let strangers: [(&str, Answers); 8] = [
        ("longer properties", |opcode| {
            (opcode == Opcode::GET_DEV_PROPERTIES).then(|| Ok(vec![7; 96]))
        }),
        ("empty properties", |opcode| {
            (opcode == Opcode::GET_DEV_PROPERTIES).then(|| Ok(Vec::new()))
        }),
        ("no properties", |opcode| {
            (opcode == Opcode::GET_DEV_PROPERTIES).then_some(Err(Errno::EOPNOTSUPP))
        }),
        ("everything succeeds", |_| Some(Ok(Vec::new()))),
        ("unknown commands are ENOTTY", |opcode| {
            opcode.info().is_none().then_some(Err(Errno::from_raw(25)))
        }),
        ("a namespace of all ones is fine", |opcode| {
            (opcode == Opcode::SVC_SET_NETNS).then(|| Ok(Vec::new()))
        }),
        ("an errno that no one has seen", |opcode| {
            (opcode == Opcode::SVC_GET_EXCLUSIVE_CP).then_some(Err(Errno::from_raw(4000)))
        }),
        ("everything is EPERM", |_| Some(Err(Errno::EPERM))),
    ];
    for (what, answers) in strangers {
        for release in ALL {
            let device = answering(release, answers);
            let driver = device.driver().unwrap();
            assert_eq!(driver.detected_release(), DetectedRelease::Unknown, "{what} {release}");
            assert_eq!(driver.quirks(), Quirks::all(), "{what} {release}");
            let promised = driver.capabilities();
            assert!(Capabilities::for_release(release).contains(promised), "{what} {release}");
            assert_eq!(driver.lni_form(), None);
        }
    }
}

#[test]
fn a_newer_driver_keeps_what_it_proves() {
    let device = answering(DriverRelease::Main2026_07, |opcode| {
        (opcode == Opcode::GET_DEV_PROPERTIES).then(|| Ok(vec![7; 88]))
    });
    let driver = device.driver().unwrap();
    assert_eq!(driver.detected_release(), DetectedRelease::Unknown);
    assert_eq!(
        driver.capabilities(),
        Capabilities::EXCLUSIVE_CPS | Capabilities::NETNS | Capabilities::USAGE_NOT_APPLICABLE
    );
}

#[test]
fn garbage_of_any_length_does_not_panic() {
    for len in 0..200 {
        for byte in [0, 0x5A, 0xFF] {
            let device = through(&nic(DriverRelease::Main2026_07), move |_, mut request| {
                let len = len.min(request.response().len());
                request.response()[..len].fill(byte);
                Ok(())
            });
            assert_eq!(device.driver().unwrap().detected_release(), DetectedRelease::Unknown);
        }
    }
}

#[test]
fn an_error_of_the_moment_is_not_remembered() {
    let nic = nic(DriverRelease::Main2026_07);
    let device = root(&nic);
    nic.faults().unplug();
    assert_eq!(device.driver().unwrap_err().errno(), Errno::EIO);
    nic.faults().plug();
    let guess = device.driver().unwrap().detected_release();
    assert_eq!(guess, DetectedRelease::Release(DriverRelease::Main2026_07));
}
