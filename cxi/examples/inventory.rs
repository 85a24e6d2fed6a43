//! Prints the NICs of the node, the resources that are left on them, and their services.
#![allow(clippy::print_stdout)]

use cxi::{Device, DeviceId, Resource};
use cxi_mock::{Credentials, MockNode, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On a node with NICs: `for found in cxi::devices()? { let device = found.device()?; … }`.
    let mock = MockNode::with_nics(2, &NicConfig::new())?;
    for (number, file) in mock.devices(&Credentials::root())? {
        let device = Device::with_transport(DeviceId::new(number), file);
        let txqs = device.availability()?.resources[Resource::Txqs].reservable;
        println!("{}: {txqs} TXQs left", device.id());
        for service in device.services().list()? {
            println!("  {service}; limits: {}", service.limits());
        }
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
