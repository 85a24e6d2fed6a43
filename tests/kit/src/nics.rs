//! Mock NICs in the process of a test.

use std::sync::Arc;

use cxi::{Device, DeviceId, DriverRelease};
use cxi_mock::{Credentials, MockNode, Nic, NicConfig};

/// A NIC with the driver of a release.
pub fn nic(release: DriverRelease) -> Arc<Nic> {
    Nic::new(NicConfig::new().release(release)).expect("a NIC")
}

/// A node with this many NICs.
pub fn node(nics: u8) -> MockNode {
    MockNode::with_nics(nics, &NicConfig::new()).expect("a node")
}

/// The NICs of a node in the hands of root.
pub fn devices(node: &MockNode) -> Vec<Device> {
    let files = node.devices(&Credentials::root()).expect("all NICs are there").into_iter();
    files.map(|(number, file)| Device::with_transport(DeviceId::new(number), file)).collect()
}
