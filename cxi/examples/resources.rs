//! What a process allocates to communicate: LNI, profile, domain, event queue, command queues.
#![allow(clippy::print_stdout)]

use cxi::lni::{EventQueueOptions, PtOptions, TgqOptions, TxqOptions};
use cxi::{Device, DeviceId, ServiceId, TrafficClass, Vni};
use cxi_mock::{Credentials, Nic, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // On a node with a NIC: `Device::open("cxi0".parse()?)?`, and a service that the scheduler made.
    let config = NicConfig::new().parameters(|parameters| parameters.disable_default_svc = false);
    let file = Nic::new(config)?
        .open()?
        .transport(Credentials::user(1000, 1000));
    let device = Device::with_transport(DeviceId::new(0), file);

    let vni = Vni::new(10)?;
    let lni = device.alloc_lni(ServiceId::DEFAULT)?;
    let events = lni.alloc_eq(&EventQueueOptions::new(64 * 1024))?;
    let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
    let _sends = lni.alloc_txq(&profile, &TxqOptions::new(256).event_queue(&events))?;
    let _appends = lni.alloc_tgq(&TgqOptions::new(256).event_queue(&events))?;
    let domain = lni.alloc_domain(vni, None)?;
    let receives = lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events))?;
    let _mapped = receives.map(&domain, 0)?;
    println!("PID {} on VNI {vni} of {}", domain.pid(), device.id());
    // Everything is given back as it goes out of scope.
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
