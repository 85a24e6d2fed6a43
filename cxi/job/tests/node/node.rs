//! NICs that a job can use, and those that are near.

use std::fs;
use std::sync::Arc;

use cxi::{Device, Host};
use cxi_ioctl::abi::device::PLATFORM_ASIC;
use cxi_ioctl::{Errno, Fault, Faulty};
use cxi_job::{NicProblem, Node};
use cxi_mock::{MockNode, NicConfig};
use cxi_site::IdSet;

use crate::support::{cxi, like, open};

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

/// Eight NICs, two on each of four NUMA nodes with 8 CPUs; cxi10 behind cxi2.
fn numa() -> (tempfile::TempDir, Node) {
    let sysfs = tempfile::tempdir().unwrap();
    let numbers = [10, 0, 1, 2, 3, 4, 5, 6];
    let mock = cxi_test_kit::node(8);
    let devices: Vec<Device> = mock
        .nics()
        .iter()
        .zip(numbers)
        .map(|(nic, number)| {
            let directory = sysfs.path().join(format!("class/cxi_user/cxi{number}/device"));
            fs::create_dir_all(&directory).unwrap();
            let numa = if number == 10 { 3 } else { number / 2 };
            fs::write(directory.join("numa_node"), format!("{numa}\n")).unwrap();
            let cpus = format!("{}-{}\n", numa * 8, numa * 8 + 7);
            fs::write(directory.join("local_cpulist"), cpus).unwrap();
            Device::with_sysfs(cxi(number), Arc::new(open(nic)), sysfs.path())
        })
        .collect();
    let node = Node::from_devices(devices);
    (sysfs, node)
}

#[test]
fn nics_stand_in_numeric_order_with_their_place() {
    let (_sysfs, node) = numa();
    let order: Vec<String> = node.nics().iter().map(|nic| nic.id().to_string()).collect();
    assert_eq!(order, ["cxi0", "cxi1", "cxi2", "cxi3", "cxi4", "cxi5", "cxi6", "cxi10"]);
    let last = node.nic(cxi(10)).unwrap();
    assert_eq!((last.numa_node(), last.cpus()), (Some(3), &set("24-31")));
}

#[test]
fn the_closest_nics() {
    let (_sysfs, node) = numa();
    assert_eq!(node.closest(&set("8-11")), [cxi(2), cxi(3)]);
    // Those next to most of the CPUs.
    assert_eq!(node.closest(&set("7,24-26")), [cxi(6), cxi(10)]);
    let all = [0, 1, 2, 3, 4, 5, 6, 10].map(cxi);
    assert_eq!(node.closest(&set("100-120")), all);
    assert_eq!(node.closest(&IdSet::new()), all);
}

#[test]
fn nics_for_ranks() {
    let (_sysfs, node) = numa();
    let round: Vec<u32> = node.round_robin(10).into_iter().map(cxi::DeviceId::number).collect();
    assert_eq!(round, [0, 1, 2, 3, 4, 5, 6, 10, 0, 1]);
    let ranks = ["0-3", "4-7", "0-3", "24-31", "16", "17", "18"].map(set);
    let near = node.closest_for_ranks(&ranks);
    let near: Vec<u32> = near.into_iter().map(cxi::DeviceId::number).collect();
    assert_eq!(near, [0, 1, 0, 6, 4, 5, 4]);
    let empty = Node::from_devices([]);
    assert!(empty.round_robin(3).is_empty() && empty.closest_for_ranks(&ranks).is_empty());
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
    assert_eq!(problems(2), [NicProblem::LinkDown, NicProblem::NoRetryHandler]);
    assert_eq!(problems(3)[0].to_string(), "DEV_INFO_GET: the device has been removed");
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
    let problems: Vec<String> =
        node.nics().iter().map(|nic| format!("{}: {}", nic.id(), nic.problems()[0])).collect();
    assert_eq!(problems.len(), 2);
    like(&problems[0], "cxi1: cannot open *there is no such device");
    like(&problems[1], "cxi10: *");
}

#[test]
fn problems_of_a_nic_are_said_in_words() {
    let said = [NicProblem::VirtualFunction, NicProblem::LinkDown, NicProblem::NoRetryHandler];
    let said = said.map(|problem| problem.to_string());
    like(&said[0], "it is a virtual function: *");
    assert_eq!(said[1], "its link is down");
    like(&said[2], "no retry handler (cxi_rh) runs*");
}
