//! The calls of the safe library, on a served node and in the same process.

use cxi::{Device, DriverRelease};
use cxi_mock::{Nic, NicConfig};
use cxi_tests::calls;

use cxi_tests::node::{client, need_node, printed, run};

#[test]
fn a_served_node_answers_as_the_same_process() {
    need_node!();
    for release in DriverRelease::ALL {
        let nic = Nic::new(NicConfig::new().release(release)).expect("a NIC");
        let open = || Device::cxi0(nic.root().expect("a NIC that is there"));
        let mut expected = calls::said(release, &open);
        let name = release.name();
        let output = run(&["--release", name, "--", client(), "calls", "cxi0", name]);
        let mut said: Vec<String> = printed(&output).lines().map(str::to_owned).collect();
        // Only a served NIC has a sysfs, which describes it and is evidence of its release; how many
        // LE pools are free depends on that.
        let by_sysfs = ["Device::info: ", "Device::driver: ", "Device::availability: "];
        for said in [&mut expected, &mut said] {
            said.retain(|line| !by_sysfs.iter().any(|call| line.starts_with(call)));
        }
        assert!(said.len() > 30, "{said:?}");
        assert_eq!(said, expected, "{name}");
    }
}
