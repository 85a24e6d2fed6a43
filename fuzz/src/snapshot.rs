//! Any JSON as a mock node: its saved state, or how one of its NICs is set up.

use std::sync::Arc;

use cxi::{Device, Member, ServiceSpec, Vni};
use cxi_ioctl::DriverRelease;
use cxi_mock::{MockNode, Nic, NicConfig, NodeSnapshot};

use crate::told;

/// What is accepted must work and be saved as the same again.
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
    let device = Device::from(file);
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
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let config = |release| NicConfig::new().release(release);
    let nodes = DriverRelease::ALL.into_iter().filter_map(|release| {
        let node = MockNode::with_nics(1, &config(release)).ok()?;
        if let Some(nic) = node.nic(0) {
            populate(nic);
        }
        serde_json::to_vec(&node.snapshot()).ok()
    });
    let setups = DriverRelease::ALL
        .into_iter()
        .filter_map(|release| serde_json::to_vec(&config(release).virtual_functions(2)).ok());
    nodes.chain(setups).collect()
}

fn populate(nic: &Arc<Nic>) {
    let Ok(file) = nic.root() else { return };
    let services = Device::from(file).services();
    let builder = || ServiceSpec::builder().member(Member::Gid(100));
    let list = (1024..1027).filter_map(|vni| Vni::new(vni).ok());
    let limits = cxi::Limits::default();
    let specs = [
        builder().vnis(list).limits(limits).build(),
        "64-71".parse().map_or_else(
            |_| builder().unrestricted_vnis().build(),
            |range| builder().vni_range(range).build(),
        ),
    ];
    for spec in specs.into_iter().flatten() {
        let _ = services.create(&spec);
    }
}
