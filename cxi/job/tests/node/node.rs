//! Which NICs a job can use.

use std::fs;
use std::sync::Arc;

use cxi::{Device, Host};
use cxi_ioctl::abi::device::PLATFORM_ASIC;
use cxi_ioctl::{Errno, Fault, Faulty};
use cxi_job::{NicProblem, Node};
use cxi_mock::{MockNode, NicConfig};

use crate::support::{cxi, like, open};

#[test]
fn nics_stand_in_numeric_order() {
    let numbers = [10, 0, 2, 1];
    let mock = MockNode::with_nics(4, &NicConfig::new()).unwrap();
    let nics = numbers.into_iter().zip(mock.nics().iter().map(open));
    let node = Node::from_transports(nics);
    let order: Vec<_> = node.nics().iter().map(cxi_job::NodeNic::id).collect();
    assert_eq!(order, [0, 1, 2, 10].map(cxi));
}

#[test]
fn why_a_nic_cannot_be_used() {
    let chip = NicConfig::new().identity(|identity| identity.device_platform = PLATFORM_ASIC);
    let down = chip.clone().identity(|identity| identity.link_up = false);
    let mock = MockNode::new([NicConfig::new(), chip, down, NicConfig::new()]).unwrap();
    let mut devices = crate::support::devices(&mock);
    devices.truncate(3);
    let silent = Faulty::new(open(&mock.nics()[3]));
    silent.inject(Fault::errno(Errno::EIO));
    devices.push(Device::with_transport(cxi(3), Arc::new(silent)));
    let node = Node::from_devices(devices);
    let problems = |nic| node.nic(cxi(nic)).unwrap().problems().to_vec();
    // A simulator needs no retry handler.
    assert_eq!(problems(0), []);
    assert_eq!(problems(1), [NicProblem::NoRetryHandler]);
    assert_eq!(
        problems(2),
        [NicProblem::LinkDown, NicProblem::NoRetryHandler]
    );
    assert_eq!(
        problems(3)[0].to_string(),
        "DEV_INFO_GET: the device has been removed"
    );
    let usable: Vec<_> = node.usable().map(cxi_job::NodeNic::id).collect();
    assert_eq!(usable, [cxi(0)]);
}

#[test]
fn a_node_is_found_by_its_files() {
    let root = tempfile::tempdir().unwrap();
    let (dev, sysfs) = (root.path().join("dev"), root.path().join("sys"));
    let host = Host::with_roots(&dev, &sysfs);
    assert!(Node::discover(&host).unwrap().nics().is_empty());
    for nic in ["cxi1", "cxi10"] {
        fs::create_dir_all(sysfs.join("class/cxi_user").join(nic)).unwrap();
    }
    fs::create_dir_all(&dev).unwrap();
    // It takes no command.
    fs::write(dev.join("cxi10"), "").unwrap();
    let node = Node::discover(&host).unwrap();
    let problems: Vec<String> = node
        .nics()
        .iter()
        .map(|nic| format!("{}: {}", nic.id(), nic.problems()[0]))
        .collect();
    assert_eq!(problems.len(), 2);
    like(&problems[0], "cxi1: cannot open *there is no such device");
    like(&problems[1], "cxi10: *");
}

#[test]
fn problems_of_a_nic_are_said_in_words() {
    let said = [
        NicProblem::VirtualFunction,
        NicProblem::LinkDown,
        NicProblem::NoRetryHandler,
    ];
    let said = said.map(|problem| problem.to_string());
    like(&said[0], "it is a virtual function: *");
    assert_eq!(said[1], "its link is down");
    like(&said[2], "no retry handler (cxi_rh) runs*");
}
