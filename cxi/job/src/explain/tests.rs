//! Errors that a mock NIC does not give.

use std::io;

use cxi_ioctl::{CommandError, DriverRelease, Errno, Opcode};

use super::Inquiry;
use cxi::driver::DetectedRelease;
use cxi::error::{Error, ErrorKind};
use cxi::{DeviceId, ServiceId};

fn explained(kind: ErrorKind, opcode: Opcode) -> Vec<String> {
    let error = Error::new(kind, Errno::EINVAL).during(opcode).on(DeviceId::new(0));
    let text = Inquiry::new(&error).explain().to_string();
    text.lines().skip(1).map(str::to_owned).collect()
}

fn says(kind: ErrorKind, opcode: Opcode, words: &str) {
    let lines = explained(kind, opcode);
    assert!(lines.iter().any(|line| line.contains(words)), "{lines:?}");
}

#[test]
fn what_to_do_about_a_service_that_is_not_there() {
    let service = ServiceId::DEFAULT;
    let kind = ErrorKind::NoSuchService { service };
    let lines = explained(kind, Opcode::SVC_DESTROY);
    let advice =
        |lines: &[String]| lines.iter().position(|line| line.contains("What to do")).unwrap();
    assert!(lines[advice(&lines) + 1].contains("List the services"), "{lines:?}");
    let lines = explained(ErrorKind::NoSuchService { service }, Opcode::LNI_ALLOC);
    assert!(lines[advice(&lines) + 1].contains("SLINGSHOT_SVC_IDS"), "{lines:?}");
    assert!(lines.iter().all(|line| !line.contains("destroy it")), "{lines:?}");
}

#[test]
fn what_to_do_about_a_driver_that_does_not_fit() {
    let unsupported = ErrorKind::Unsupported {
        what: "a range of VNIs".into(),
        needs: DriverRelease::Shs13_1,
        has: DetectedRelease::Unknown,
    };
    says(unsupported, Opcode::SVC_ALLOC, "Update the driver");
    let protocol = ErrorKind::Protocol(CommandError::AbiMismatch {
        opcode: Opcode::SVC_GET,
        expected: 68,
        written: 70,
    });
    says(protocol, Opcode::SVC_GET, "Use a release of this library");
}

#[test]
fn what_to_do_about_a_node_that_cannot_be_opened() {
    for (errno, words) in [
        (Errno::ENOENT, "Check whether the driver is loaded"),
        (Errno::EACCES, "the udev rules"),
        (Errno::EPERM, "the udev rules"),
        (Errno::EIO, "was removed"),
    ] {
        let error = io::Error::from_raw_os_error(errno.raw());
        let path = "/dev/cxi0".into();
        says(ErrorKind::Open { path, error }, Opcode::SVC_GET, words);
    }
}

#[test]
fn the_capability_is_spoken_of_where_it_is_what_counts() {
    let refused = || ErrorKind::NotPermitted("no".into());
    says(refused(), Opcode::SVC_ALLOC, "CAP_SYS_ADMIN");
    assert_eq!(explained(refused(), Opcode::CP_ALLOC), [""; 0]);
}
