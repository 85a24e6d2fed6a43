//! Allocates the objects that a process needs to communicate: LNI, profile, event queue, command
//! queue.
#![allow(clippy::print_stdout)]

use cxi::lni::{EventQueueOptions, TxqOptions};
use cxi::{Device, Limit, Limits, Member, Resource, ServiceSpec, TrafficClass, Vni};
use cxi_mock::{Credentials, Nic, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On a node with a NIC both are `Device::open("cxi0".parse()?)?`, in two processes.
    let nic = Nic::new(NicConfig::new())?;
    let admin = Device::cxi0(nic.root()?);
    let vni = Vni::new(1024)?;

    let spec = ServiceSpec::builder()
        .member(Member::Uid(1000))
        .vnis([vni, Vni::new(1025)?])
        .limits(
            Limits::none()
                // For the memory of the event queue.
                .with(Resource::Acs, Limit::at_most(2))
                .with(Resource::Txqs, Limit::new(2, 4)?)
                .with(Resource::Eqs, Limit::at_most(4)),
        )
        .build()?;
    let service = admin.services().create_scoped(&spec)?;

    // What a process of the user allocates.
    let user = nic.open()?.transport(Credentials::user(1000, 100));
    let device = Device::cxi0(user);
    let lni = device.alloc_lni(service.id())?;
    let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
    let events = lni.alloc_eq(&EventQueueOptions::new(64 * 1024))?;
    let commands = lni.alloc_txq(&profile, &TxqOptions::new(256).event_queue(&events))?;
    println!(
        "LNI {}, communication profile {}, event queue {}, command queue {}",
        lni.id(),
        profile.lcid(),
        events.id(),
        commands.id(),
    );

    commands.close()?;
    events.close()?;
    profile.close()?;
    lni.close()?;
    service.destroy()?;
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
