//! One suite for the safe library, on every transport: in the same process, on a served node, and
//! on a NIC if `CXI_TEST_DEVICE` names one.

mod node;

use std::sync::Arc;

use cxi::{Device, DeviceId};
use cxi_ioctl::DriverRelease;
use cxi_mock::{Credentials, Nic, NicConfig};
use cxi_tests::library::{CHECKS, run_all};
use node::{CLIENT, printed, run};

#[test]
fn in_the_same_process() {
    for release in DriverRelease::ALL {
        let nic = Nic::new(NicConfig::new().release(release)).expect("a NIC");
        let open = || {
            let file = nic.open().expect("a NIC that is there");
            let transport = Arc::new(file.transport(Credentials::root()));
            Ok(Device::from(transport))
        };
        let checks = run_all(&open).unwrap_or_else(|wrong| panic!("{release}: {wrong}"));
        assert_eq!(checks, CHECKS.len());
    }
}

#[test]
fn on_a_served_node() {
    need_node!();
    for release in DriverRelease::ALL {
        let output = run(&["--release", release.name(), "--", CLIENT, "library", "cxi0"]);
        assert_eq!(
            printed(&output),
            format!("{} checks", CHECKS.len()),
            "{release}"
        );
    }
}

#[test]
#[ignore = "needs a NIC: CXI_TEST_DEVICE=cxi0 cargo test -p cxi-tests --test library -- --ignored"]
fn on_hardware() {
    let device =
        std::env::var("CXI_TEST_DEVICE").expect("CXI_TEST_DEVICE names a NIC, such as cxi0");
    let id: DeviceId = device
        .parse()
        .expect("CXI_TEST_DEVICE names a NIC, such as cxi0");
    run_all(&|| Device::open(id)).unwrap_or_else(|wrong| panic!("{id}: {wrong}"));
}
