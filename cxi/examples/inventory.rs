//! What NICs the node has, what is left of them, and which services they have.
#![allow(clippy::print_stdout)]

fn main() -> cxi::Result<()> {
    for nic in cxi::devices()? {
        let (device, info) = (nic.device()?, nic.info()?);
        let free = device.availability()?.resources[cxi::Resource::Txqs].reservable;
        println!(
            "{}: {}, link up: {}, {free} TXQs",
            device.id(),
            info.cassini_version,
            info.link_up
        );
        for service in device.services().list()? {
            println!("  {service}");
        }
    }
    Ok(())
}
