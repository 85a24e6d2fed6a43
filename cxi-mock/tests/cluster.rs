//! Several nodes on one fabric: nodes that die and boot, and NICs that cannot reach each other.

use cxi_ioctl::abi::service::{SvcAllocCmd, SvcFlags, SvcGetCmd};
use cxi_ioctl::{Errno, execute};
use cxi_mock::{ClusterError, Credentials, InProcess, MockCluster, MockNode, NicConfig};

fn open(node: &MockNode, nic: usize) -> InProcess {
    let file = node.nics()[nic].open().unwrap();
    file.transport(Credentials::root())
}

/// Makes a service and returns its id.
fn service(device: &InProcess) -> u32 {
    let mut command = SvcAllocCmd::new();
    command.svc_desc.flags = SvcFlags::RESTRICTED_VNIS.bits();
    command.svc_desc.num_vld_vnis = 1;
    command.svc_desc.vnis[0] = 100;
    execute(device, &command).unwrap().svc_id
}

#[test]
fn each_nic_has_an_address_of_its_own() {
    let cluster = MockCluster::with_nics(256, 2, &NicConfig::new()).unwrap();
    let nodes = (0..cluster.len()).map(|node| cluster.node(node).unwrap());
    let addresses: Vec<_> = nodes.flat_map(|node| node.addresses()).collect();
    assert_eq!(addresses, (0x100..0x300).collect::<Vec<_>>());
    let first = |nid| NicConfig::new().identity(|identity| identity.nid = nid);
    assert!(MockCluster::with_nics(2, 2, &first(0xf_fffc)).is_ok());
    let error = MockCluster::with_nics(2, 2, &first(0xf_fffd)).unwrap_err();
    assert!(matches!(error, ClusterError::TooManyNics { .. }), "{error}");
    let error = MockCluster::new([vec![first(5)], vec![first(6), first(5)]]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "NIC 1 of node 1 has the fabric address 0x5, which NIC 0 of node 0 has: \
         expected a different address for each NIC"
    );
}

#[test]
fn a_node_that_dies_closes_all_and_comes_back_empty() {
    let cluster = MockCluster::with_nics(3, 2, &NicConfig::new()).unwrap();
    let node = cluster.node(1).unwrap();
    let device = open(&node, 1);
    let elsewhere = open(&cluster.node(2).unwrap(), 1);
    let id = service(&device);
    assert_eq!(service(&elsewhere), id);

    cluster.kill(1);
    assert!(!cluster.is_up(1) && cluster.is_up(2));
    let nic = &node.nics()[1];
    assert!(nic.clients_of(None).is_empty());
    let get = SvcGetCmd::new();
    assert_eq!(execute(&device, &get).unwrap_err().errno(), Errno::EIO);
    assert_eq!(nic.open().unwrap_err(), Errno::EIO);
    // Neither clearing the faults nor plugging the NIC brings a dead node back.
    nic.faults().clear();
    nic.faults().plug();
    assert_eq!(nic.open().unwrap_err(), Errno::EIO);

    let booted = cluster.boot(1).unwrap();
    assert!(cluster.is_up(1));
    assert_eq!(booted.addresses(), node.addresses());
    assert_eq!(booted.nics()[1].state().svc_count, 1);
    assert_eq!(service(&open(&booted, 1)), id);
    assert_eq!(execute(&device, &get).unwrap_err().errno(), Errno::EIO);
    drop(device);
    assert_eq!(cluster.node(2).unwrap().nics()[1].state().svc_count, 2);
    let error = cluster.boot(3).unwrap_err();
    assert_eq!(error.to_string(), "no node 3: the cluster has 3, counted from 0");
}

#[test]
fn what_goes_wrong_is_seen_on_the_fabric() {
    let cluster = MockCluster::with_nics(4, 2, &NicConfig::new()).unwrap();
    let reaches = |from: usize, to: usize| {
        let address = |node: usize| cluster.node(node).unwrap().addresses()[0];
        cluster.fabric().reaches(address(from), address(to))
    };
    assert!(reaches(0, 3));
    cluster.partition(&[0, 1, 99], &[2, 3]);
    assert!(!reaches(0, 3) && !reaches(2, 1) && reaches(0, 1) && reaches(2, 3));
    cluster.fabric().heal();
    assert!(reaches(0, 3));
    let node = cluster.node(3).unwrap();
    node.nics()[0].hardware().set_link(false);
    assert!(!reaches(0, 3) && !reaches(3, 0));
    node.nics()[0].faults().unplug();
    node.nics()[0].hardware().set_link(true);
    assert!(!reaches(0, 3));
    node.nics()[0].faults().plug();
    assert!(reaches(0, 3));
    cluster.kill(3);
    assert!(!reaches(0, 3));
    cluster.boot(3).unwrap();
    assert!(reaches(0, 3));
}
