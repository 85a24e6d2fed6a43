//! Conclusions from evidence.

use cxi_ioctl::Errno;

use super::*;

/// Returns the evidence of a physical function without sysfs.
fn shown_by(release: DriverRelease) -> Evidence {
    let from = |since, answer| {
        if release >= since { answer } else { Answer::Refused(Errno::EINVAL) }
    };
    Evidence {
        unknown_command: Answer::Refused(Errno::EINVAL),
        properties: if release < DriverRelease::Shs13_1 {
            PropertiesForm::Short
        } else {
            PropertiesForm::Long
        },
        default_classes: match release {
            DriverRelease::Shs12_0 => DefaultClasses::None,
            _ => DefaultClasses::FirstFour,
        },
        le_usage_not_applicable: Some(release >= DriverRelease::Main2026_07),
        exclusive_cp: from(DriverRelease::Shs13_1, Answer::Done),
        set_netns: from(DriverRelease::Shs14_0_0, Answer::Refused(Errno::EEXIST)),
        is_parent: (release >= DriverRelease::Main2026_07)
            .then(|| from(DriverRelease::Main2026_11, Answer::Done)),
        lni_form: None,
        parameters: None,
        ats_enabled: None,
        virtual_function: None,
    }
}

#[test]
fn guesses_read_well() {
    let between = |oldest, newest| DetectedRelease::Between { oldest, newest }.to_string();
    assert_eq!(
        between(DriverRelease::Shs14_0_0, DriverRelease::Shs14_0_1),
        "shs-14.0.0 or shs-14.0.1"
    );
    assert_eq!(
        between(DriverRelease::Shs13_1, DriverRelease::Main2026_07),
        "shs-13.1 to main-2026-07"
    );
    assert_eq!(DetectedRelease::Release(DriverRelease::Main2026_07).to_string(), "main-2026-07");
    assert_eq!(DetectedRelease::Unknown.to_string(), "unknown");
}

#[test]
fn nothing_relies_on_a_driver_being_12_0() {
    let driver = Driver::of(shown_by(DriverRelease::Shs12_0));
    assert_eq!(driver.detected_release(), DetectedRelease::Release(DriverRelease::Shs12_0));
    assert!(driver.quirks().contains(Quirks::REFUSED_RESERVE));
    assert!(driver.quirks().contains(Quirks::REFUSED_SERVICE_LEAK));
    assert!(!driver.can(Capabilities::SHARED_VNIS));
    let driver = Driver::of(shown_by(DriverRelease::Shs13_0));
    assert!(!driver.quirks().contains(Quirks::REFUSED_SERVICE_LEAK));
    assert!(driver.can(Capabilities::EXCLUSIVE_VNIS));
}

#[test]
fn a_changed_default_service_leaves_two() {
    for release in [DriverRelease::Shs12_0, DriverRelease::Shs13_0] {
        let driver =
            Driver::of(Evidence { default_classes: DefaultClasses::Other, ..shown_by(release) });
        assert_eq!(driver.detected_release().to_string(), "shs-12.0 or shs-13.0");
        assert_eq!(driver.quirks().bits(), {
            let both = Quirks::for_release(DriverRelease::Shs12_0)
                | Quirks::for_release(DriverRelease::Shs13_0);
            both.bits()
        });
    }
    // It says nothing about later ones.
    let main =
        Evidence { default_classes: DefaultClasses::None, ..shown_by(DriverRelease::Main2026_07) };
    assert_eq!(Driver::of(main).detected_release().release(), Some(DriverRelease::Main2026_07));
}

#[test]
fn the_form_of_lni_alloc_counts() {
    let long = Evidence { lni_form: Some(LniForm::Long), ..shown_by(DriverRelease::Shs14_0_1) };
    assert_eq!(Driver::of(long).detected_release(), DetectedRelease::Unknown);
    assert_eq!(Driver::of(shown_by(DriverRelease::Shs13_1)).lni_form(), Some(LniForm::Short));
    assert_eq!(Driver::of(shown_by(DriverRelease::Main2026_07)).lni_form(), Some(LniForm::Long));
}

#[test]
fn a_virtual_function_that_does_not_answer_for_services_rules_nothing_out() {
    let silent = Answer::Refused(Errno::EOPNOTSUPP);
    let function = |virtual_function| {
        Driver::of(Evidence {
            exclusive_cp: silent,
            set_netns: silent,
            le_usage_not_applicable: None,
            default_classes: DefaultClasses::Other,
            virtual_function,
            ..shown_by(DriverRelease::Shs14_0_1)
        })
    };
    let driver = function(Some(true));
    assert_eq!(driver.detected_release().to_string(), "shs-13.1 to main-2026-11");
    assert!(!driver.can(Capabilities::EXCLUSIVE_CPS));
    assert!(!driver.can(Capabilities::NETNS));
    assert_eq!(function(Some(false)).detected_release(), DetectedRelease::Unknown);
}

#[test]
fn every_capability_and_quirk_has_words() {
    for capability in Capabilities::all() {
        assert_ne!(capability.to_string(), "", "{capability:?}");
    }
    for quirk in Quirks::all() {
        assert_ne!(quirk.to_string(), "", "{quirk:?}");
    }
}
