//! Any JSON as a mock node: its saved state, or how one of its NICs is set up.

use std::sync::Arc;

use cxi::{Device, Member, ServiceSpec, Vni};
use cxi_ioctl::DriverRelease;
use cxi_mock::{MockNode, Nic, NicConfig, NodeSnapshot};

use crate::told;

/// Checks that an accepted snapshot works and is saved as the same again.
///
/// # Panics
///
/// When it does not.
pub fn run(data: &[u8]) {
    if let Ok(snapshot) = serde_json::from_slice::<NodeSnapshot>(data) {
        if let Some(node) = told(MockNode::restore(&snapshot)) {
            restored(&node);
        }
    } else if let Ok(config) = serde_json::from_slice::<NicConfig>(data)
        && let Some(nic) = told(Nic::new(config))
    {
        used(&nic);
    }
}

fn restored(node: &MockNode) {
    let saved = node.snapshot();
    match MockNode::restore(&saved) {
        Ok(again) => assert_eq!(again.snapshot(), saved, "saved as it was restored"),
        Err(error) => panic!("a saved state cannot be restored: {error}"),
    }
    for nic in node.nics() {
        used(nic);
    }
}

/// A life on the NIC: what is there is listed, made, used, and destroyed.
fn used(nic: &Arc<Nic>) {
    let Ok(file) = nic.root() else { return };
    let device = Device::cxi0(file);
    let services = device.services();
    let _ = device.info();
    let _ = device.availability();
    let spec = Vni::new(4034).ok().map(|vni| {
        let builder = ServiceSpec::builder().member(Member::Uid(1000));
        builder.vni(vni).build()
    });
    if let Some(Ok(spec)) = spec {
        let _ = services.create(&spec);
    }
    for service in services.list().unwrap_or_default() {
        drop(device.alloc_lni(service.id()));
        let _ = services.usage(service.id());
        let _ = services.set_enabled(service.id(), false);
        let _ = services.destroy(service.id());
    }
    drop((services, device));
    nic.tick();
    assert_eq!(nic.state().stats.lni, 0, "no LNI outlives its file");
}

/// Nodes as they start, and with services; setups.
///
/// # Panics
///
/// When the mock cannot make them.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let seeds = DriverRelease::ALL.into_iter().flat_map(|release| {
        let config = NicConfig::new().release(release);
        let node = MockNode::with_nics(1, &config).expect("a node");
        populate(&node.nics()[0]);
        let node = serde_json::to_vec(&node.snapshot());
        [node, serde_json::to_vec(&config.virtual_functions(2))]
    });
    seeds.map(|seed| seed.expect("JSON")).collect()
}

fn populate(nic: &Arc<Nic>) {
    let file = nic.root().expect("a NIC that is there");
    let services = Device::cxi0(file).services();
    let builder = || ServiceSpec::builder().member(Member::Gid(100));
    let list = (1024..1027).filter_map(|vni| Vni::new(vni).ok());
    let listed = builder().vnis(list).limits(cxi::Limits::default());
    let ranged = builder().vni_range("64-71".parse().expect("a range"));
    for spec in [listed, ranged] {
        // Old releases have no ranges.
        let _ = services.create(&spec.build().expect("a specification"));
    }
}
