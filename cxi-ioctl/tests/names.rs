//! Errnos, releases and opcodes as text and numbers.

#![allow(missing_docs, reason = "a test has no users")]

use std::io;

use cxi_ioctl::{DriverRelease, Errno, Opcode, RequestLen};

#[test]
fn an_errno_is_a_number_with_a_name() {
    assert_eq!(Errno::EKEYREVOKED.raw(), 128);
    assert_eq!(Errno::EKEYREVOKED.to_string(), "EKEYREVOKED");
    assert_eq!(format!("{:>8}|{:?}", Errno::EIO, Errno::EIO), "     EIO|Errno(EIO)");
    assert_eq!("ENODATA".parse(), Ok(Errno::ENODATA));
    for wrong in ["", "enodata", "61", "EWRONG"] {
        let error = wrong.parse::<Errno>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unknown errno name '{wrong}': expected a name such as EINVAL")
        );
    }
}

#[test]
fn an_errno_without_a_name_survives() {
    let errno = Errno::from_raw(4095);
    assert_eq!((errno.raw(), errno.name()), (4095, None));
    assert_eq!(errno.to_string(), "errno 4095");
    assert_eq!(io::Error::from(errno).raw_os_error(), Some(4095));
}

#[test]
fn every_named_errno_is_the_systems() {
    let mut named = 0;
    for number in 1..=200 {
        let errno = Errno::from_raw(number);
        let Some(name) = errno.name() else { continue };
        named += 1;
        assert_eq!(name.parse(), Ok(errno));
        assert_eq!(Errno::from(nix::errno::Errno::from_raw(number)), errno);
    }
    assert!(named > 120, "{named}");
}

#[test]
fn an_io_error_becomes_an_errno() {
    let missing = std::fs::File::open("/nowhere/at/all").unwrap_err();
    assert_eq!(Errno::from_io(&missing), Errno::ENOENT);
    assert_eq!(Errno::from_io(&io::Error::other("own")), Errno::EIO);
}

#[test]
fn a_release_is_read_by_its_name() {
    for release in DriverRelease::ALL {
        assert_eq!(release.to_string().parse(), Ok(release));
        assert_eq!(release.short_name().parse(), Ok(release));
        let others = DriverRelease::ALL.into_iter().filter(|other| *other != release);
        for other in others {
            assert!(![other.name(), other.short_name()].contains(&release.short_name()));
        }
    }
    // A snapshot of a branch says when it was taken.
    assert_eq!(DriverRelease::Main2026_07.name(), "main-2026-07");
    assert_eq!("14.0.1".parse(), Ok(DriverRelease::Shs14_0_1));
    assert_eq!("main".parse(), Ok(DriverRelease::Main2026_07));
    for wrong in ["", "shs-", "14.0", "shs-99.0", "shs-main ", "Main"] {
        let error = wrong.parse::<DriverRelease>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("unknown driver release '{wrong}'")), "{error}");
        assert!(error.contains("shs-14.0.0"), "{error}");
    }
    assert!(DriverRelease::ALL.is_sorted());
}

#[test]
fn an_opcode_is_known_by_number_or_kept() {
    let opcode = Opcode::from_number(28);
    assert_eq!(opcode, Opcode::SVC_ALLOC);
    assert_eq!(format!("{opcode} {opcode:?}"), "SVC_ALLOC Opcode(SVC_ALLOC)");
    let first_unknown = u32::try_from(Opcode::all().len() + 1).unwrap();
    for number in [0, first_unknown, u32::MAX] {
        let opcode = Opcode::from_number(number);
        assert_eq!((opcode.number(), opcode.info()), (number, None));
        assert_eq!(opcode.to_string(), format!("opcode {number}"));
        assert_eq!(opcode.request_len(DriverRelease::NEWEST), None);
        assert_eq!(opcode.response_len(DriverRelease::NEWEST), None);
    }
}

#[test]
fn lengths_follow_the_release() {
    let lni = |release| Opcode::LNI_ALLOC.request_len(release);
    assert_eq!(lni(DriverRelease::Shs12_0), Some(RequestLen::Exact(16)));
    assert_eq!(lni(DriverRelease::Shs14_0_1), Some(RequestLen::Exact(16)));
    assert_eq!(lni(DriverRelease::Main2026_07), Some(RequestLen::Exact(24)));
    let properties = |release| Opcode::GET_DEV_PROPERTIES.response_len(release);
    assert_eq!(properties(DriverRelease::Shs13_0), Some(80));
    assert_eq!(properties(DriverRelease::Shs13_1), Some(84));
    assert_eq!(Opcode::SVC_ENABLE.request_len(DriverRelease::Shs13_0), None);
    assert_eq!(Opcode::MAP_TELEMETRY.request_len(DriverRelease::NEWEST), None);
}
