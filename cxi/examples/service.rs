//! A service by hand: for the processes of this network namespace, with limits, on one VNI.
#![allow(clippy::print_stdout)]

use cxi::{Device, DeviceId, Limit, Limits, Member, Resource, ServiceSpec, TrafficClasses, Vni};
use cxi_mock::{Credentials, Nic, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On a node with a NIC: `Device::open("cxi0".parse()?)?`.
    let file = Nic::new(NicConfig::new())?
        .open()?
        .transport(Credentials::root());
    let device = Device::with_transport(DeviceId::new(0), file);

    let limits = Limits::all_of(&device.info()?)
        .with(Resource::Txqs, Limit::new(16, 64)?)
        .with(Resource::Tles, Limit::NONE);
    let spec = ServiceSpec::builder()
        .member(Member::own_netns()?)
        .vni(Vni::new(1024)?)
        .traffic_classes(TrafficClasses::BEST_EFFORT)
        .limits(limits)
        .build()?;
    let service = device.services().create_scoped(&spec)?;
    println!("{}", device.services().get(service.id())?);
    service.destroy().map_err(|(_, error)| error)?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
