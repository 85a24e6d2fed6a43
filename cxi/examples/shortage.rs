//! Tests the behavior of a program when a NIC is full: on the mock, with a fault.
#![allow(clippy::print_stdout)]

use cxi::{Device, Errno, ErrorKind, Limit, Limits, Member, Resource, ServiceSpec, Shortage, Vni};
use cxi_mock::{Fault, Nic, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nic = Nic::new(NicConfig::new())?;
    let device = Device::cxi0(nic.root()?);
    let spec = ServiceSpec::builder()
        .member(Member::Uid(1000))
        .vni(Vni::new(1024)?)
        .limits(Limits::none().with(Resource::Txqs, Limit::exactly(128)))
        .build()?;

    nic.faults().inject(Fault::shortage(Resource::Txqs, 96));
    let error = device.services().create(&spec).unwrap_err();

    println!("{error}");
    assert_eq!(error.to_string(), "cxi0: SVC_ALLOC: not enough TXQs: 128 requested, 96 available");
    assert_eq!(error.errno(), Errno::ENOSPC);
    assert!(matches!(
        error.kind(),
        ErrorKind::NotEnough(Shortage::Reservation {
            resource: Resource::Txqs,
            requested: 128,
            available: 96,
            ..
        })
    ));
    assert_eq!(nic.state().svc_count, 1);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
