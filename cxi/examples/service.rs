//! Services by hand: for the processes of a user, and for those of this network namespace.
#![allow(clippy::print_stdout)]

use cxi::{Device, Limit, Limits, Member, Resource, ServiceSpec, Vni};
use cxi_mock::{Nic, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On a node with a NIC: `Device::open("cxi0".parse()?)?`.
    let file = Nic::new(NicConfig::new())?.root()?;
    let device = Device::cxi0(file);

    let limits = Limits::none()
        .with(Resource::Acs, Limit::at_most(2))
        .with(Resource::Txqs, Limit::new(2, 4)?)
        .with(Resource::Eqs, Limit::at_most(4));
    // A network namespace must be a service's only member: hence two services.
    for member in [Member::Uid(1000), Member::own_netns()?] {
        let spec = ServiceSpec::builder()
            .member(member)
            .vnis([Vni::new(1024)?, Vni::new(1025)?])
            .limits(limits)
            .build()?;
        let service = device.services().create_scoped(&spec)?;
        let made = device.services().get(service.id())?;
        println!("{made}; limits: {}", made.limits());
        service.destroy()?;
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
