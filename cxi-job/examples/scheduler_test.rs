//! How a scheduler tests what it does when one of its NICs is full: on the mock, with a fault.
#![allow(clippy::print_stdout)]

use cxi::{Device, DeviceId, Limit, Limits, Resource, Vni};
use cxi_ioctl::{Fault, Faulty};
use cxi_job::{JobLimits, JobRequest, Node};
use cxi_mock::{Credentials, MockNode, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mock = MockNode::with_nics(2, &NicConfig::new())?;
    let faulty = mock
        .devices(&Credentials::root())?
        .into_iter()
        .map(|(number, file)| {
            let fault = Faulty::new(file);
            if number == 1 {
                fault.inject(Fault::shortage(Resource::Txqs, 96));
            }
            Device::with_transport(DeviceId::new(number), fault)
        });
    let node = Node::from_devices(faulty);

    let request = JobRequest::builder()
        .uid(1000)
        .vni(Vni::new(1024)?)
        .limits(JobLimits::Fixed(
            Limits::none().with(Resource::Txqs, Limit::exactly(128)),
        ))
        .build()?;
    let refused = node.allocate(&request).expect_err("cxi1 has no room");
    println!("{refused}");
    assert!(
        refused
            .to_string()
            .contains("not enough TXQs: 128 requested, 96 available")
    );
    // All NICs or none: what cxi0 gave is given back.
    assert_eq!(mock.nics()[0].state().svc_count, 1);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
