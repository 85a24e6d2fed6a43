//! How a scheduler tests what it does when one of its NICs is full: on the mock, with a fault.
#![allow(clippy::print_stdout)]

use cxi::{Device, DeviceId, Vni};
use cxi_ioctl::{Errno, Fault, Injection, Opcode};
use cxi_job::{JobRequest, Node};
use cxi_mock::{Credentials, MockNode, NicConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mock = MockNode::with_nics(2, &NicConfig::new())?;
    let faulty = mock
        .devices(Credentials::root())?
        .into_iter()
        .map(|(number, file)| {
            let fault = Fault::new(file);
            if number == 1 {
                fault.inject(Injection::errno(Errno::ENOSPC).on(Opcode::SVC_ALLOC));
            }
            Device::with_transport(DeviceId::new(number), fault)
        });
    let node = Node::from_devices(faulty);

    let request = JobRequest::builder()
        .uid(1000)
        .vni(Vni::new(1024)?)
        .build()?;
    let refused = node.allocate(&request).expect_err("cxi1 has no room");
    println!("{refused}");
    // All NICs or none: what cxi0 gave is given back.
    assert_eq!(mock.nics()[0].state().svc_count, 1);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
