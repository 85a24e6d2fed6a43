//! The data path of the mock in one process: what one client sends arrives at another, and
//! nowhere else.

use std::sync::Arc;

use cxi::{
    Device, DeviceMemory, DriverRelease, Limit, Resource, ResourceMap, ServiceId, ServiceSpec, Vni,
};
use cxi_hw::{DmaOp, EventType, ReturnCode};
use cxi_mock::{Credentials, FabricFaults, MockCluster, MockNode, NicConfig};
use cxi_tests::endpoint::{BUFFER_BYTES, Endpoint, Operation};

const HELLO: &[u8] = b"hello from the other side";

fn device(node: &MockNode, nic: usize) -> Device {
    let file = node.nics()[nic].open().unwrap();
    let transport = Arc::new(file.transport(Credentials::root()));
    Device::cxi0(transport)
}

fn service(node: &MockNode, nic: usize, vni: u16) -> ServiceId {
    let spec = ServiceSpec::builder().vni(Vni::new(vni).unwrap());
    let spec = spec.build().unwrap();
    device(node, nic).services().create(&spec).unwrap()
}

/// An endpoint with its own open file.
fn endpoint(node: &MockNode, nic: usize, service: ServiceId, vni: u16, pid: u32) -> Endpoint {
    let vni = Vni::new(vni).unwrap();
    let mut endpoint = Endpoint::new(&device(node, nic), service, vni, pid).unwrap();
    run(node);
    let ready = [EventType::STATE_CHANGE, EventType::LINK];
    for event in ready {
        assert_eq!(endpoint.event().unwrap(), Some((event, ReturnCode::OK)));
    }
    endpoint
}

fn run(node: &MockNode) {
    while node.nics().iter().fold(false, |any, nic| nic.run_until_idle() | any) {}
}

fn operation(op: DmaOp, from: &Endpoint, to: &Endpoint) -> Operation {
    Operation {
        op,
        to: to.address(),
        offset: 64,
        local: from.local_iova(),
        len: u32::try_from(HELLO.len()).unwrap(),
    }
}

/// The bytes at offset 64 of what others reach.
fn arrived(at: &Endpoint) -> [u8; HELLO.len()] {
    let mut bytes = [0; HELLO.len()];
    at.buffer.read(64, &mut bytes).unwrap();
    bytes
}

fn bytes(memory: &DeviceMemory, offset: usize) -> [u8; HELLO.len()] {
    let mut bytes = [0; HELLO.len()];
    memory.copy_out(offset, &mut bytes).unwrap();
    bytes
}

fn word(at: &Endpoint, offset: usize) -> u64 {
    let mut word = [0; 8];
    at.buffer.read(offset, &mut word).unwrap();
    u64::from_le_bytes(word)
}

/// Two endpoints on NICs of a node, with a VNI each.
fn pair(vnis: [u16; 2], nics: [usize; 2]) -> (MockNode, [Endpoint; 2]) {
    let node = cxi_test_kit::node(2);
    let here = service(&node, nics[0], vnis[0]);
    let shared = vnis[0] == vnis[1] && nics[0] == nics[1];
    let there = if shared { here } else { service(&node, nics[1], vnis[1]) };
    let one = endpoint(&node, nics[0], here, vnis[0], 3);
    let two = endpoint(&node, nics[1], there, vnis[1], 4);
    (node, [one, two])
}

/// The module parameter says how many list entries there are on each of the four processing
/// elements. The first PtlTE of an LNI is on the element that its RGID selects, so that the LNIs
/// fill the elements in turn.
#[test]
fn a_nic_has_as_many_list_entries_as_its_driver_was_told() {
    let config = NicConfig::new().parameters(|params| params.pe_total_les = 4);
    let node = MockNode::with_nics(1, &config).unwrap();
    let service = service(&node, 0, 1024);
    let device = device(&node, 0);
    let vni = Vni::new(1024).unwrap();
    let mut endpoints = Vec::new();
    for pid in 3..20 {
        let mut endpoint = Endpoint::new(&device, service, vni, pid).unwrap();
        run(&node);
        assert_eq!(endpoint.event().unwrap().unwrap().0, EventType::STATE_CHANGE);
        let code = if pid < 3 + 4 * 4 { ReturnCode::OK } else { ReturnCode::NO_SPACE };
        assert_eq!(endpoint.event().unwrap(), Some((EventType::LINK, code)), "{pid}");
        endpoints.push(endpoint);
    }
}

/// Nodes of a cluster, with a partition between them and one that dies while packets are under way.
#[test]
fn puts_go_from_node_to_node_or_end() {
    let cluster = MockCluster::with_nics(2, 1, &NicConfig::new()).unwrap();
    let nodes = [0, 1].map(|node| cluster.node(node).unwrap());
    let [mut one, two] =
        [0, 1].map(|at| endpoint(&nodes[at], 0, service(&nodes[at], 0, 1024), 1024, 3));
    let put = operation(DmaOp::PUT, &one, &two);
    one.local.copy_in(0, HELLO).unwrap();
    one.send(&put).unwrap();
    cluster.run_until_idle();
    assert_eq!(arrived(&two), HELLO);
    assert_eq!(one.event().unwrap(), Some((EventType::ACK, ReturnCode::OK)));
    let lost = Some((EventType::ACK, ReturnCode::UNDELIVERABLE));
    cluster.partition(&[0], &[1]);
    one.send(&put).unwrap();
    cluster.run_until_idle();
    assert_eq!(one.event().unwrap(), lost);
    cluster.fabric().heal();
    // The answer is lost with the node.
    cluster.fabric().set_faults(FabricFaults { delay: 50, seed: 1, ..FabricFaults::default() });
    one.send(&put).unwrap();
    nodes[0].nics()[0].run_until_idle();
    assert!(cluster.clock().is_busy());
    cluster.kill(1);
    cluster.run_until_idle();
    assert_eq!(one.event().unwrap(), lost);
}

#[test]
fn a_nic_reaches_registered_memory_only() {
    let (node, [mut one, mut two]) = pair([1024, 1024], [0, 0]);
    let secret = DeviceMemory::new(4096).unwrap();
    secret.copy_in(0, HELLO).unwrap();
    let put = operation(DmaOp::PUT, &one, &two);
    // Memory of the process that is not registered, what another client registered, no memory.
    for local in [secret.address(), two.local_iova(), 1 << 40] {
        one.send(&Operation { local, ..put }).unwrap();
        run(&node);
        let refused = Some((EventType::ACK, ReturnCode::NO_TRANSLATION));
        assert_eq!(one.event().unwrap(), refused, "{local:#x}");
        assert_eq!(arrived(&two), [0; HELLO.len()]);
    }
    let get = operation(DmaOp::GET, &one, &two);
    let local = secret.address();
    one.send(&Operation { local, ..get }).unwrap();
    run(&node);
    assert_eq!(bytes(&secret, 0), HELLO);
    let beyond = Operation { offset: BUFFER_BYTES as u64 - 8, ..put };
    while two.event().unwrap().is_some() {}
    one.send(&beyond).unwrap();
    run(&node);
    assert_eq!(word(&two, BUFFER_BYTES - 8), 0);
}

#[test]
fn packets_of_another_vni_find_no_target() {
    let (node, [mut one, mut two]) = pair([1024, 2048], [0, 0]);
    one.local.copy_in(0, HELLO).unwrap();
    one.send(&operation(DmaOp::PUT, &one, &two)).unwrap();
    run(&node);
    let refused = one.event().unwrap();
    assert_eq!(refused, Some((EventType::ACK, ReturnCode::PTLTE_NOT_FOUND)));
    assert_eq!(two.event().unwrap(), None);
    assert_eq!(arrived(&two), [0; HELLO.len()]);
}

#[test]
fn a_client_that_dies_is_not_found() {
    let (node, [mut one, two]) = pair([1024, 1024], [0, 1]);
    let put = operation(DmaOp::PUT, &one, &two);
    one.local.copy_in(0, HELLO).unwrap();
    one.send(&put).unwrap();
    drop(two);
    run(&node);
    let (kind, code) = one.event().unwrap().unwrap();
    assert_eq!(kind, EventType::ACK);
    assert_ne!(code, ReturnCode::OK);
    for nic in node.nics() {
        assert_eq!(nic.hazards(), []);
    }
    drop(one);
    for nic in node.nics() {
        let stats = nic.state().stats;
        assert_eq!((stats.lni, stats.md), (0, 0));
    }
}

#[test]
fn list_entries_in_use_are_counted() {
    let config = NicConfig::new().release(DriverRelease::Main2026_07);
    let node = MockNode::with_nics(1, &config).unwrap();
    let limits = ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        Resource::Les => Limit::new(8, 64).unwrap(),
        _ => Limit::at_most(64),
    });
    let spec = ServiceSpec::builder().vni(Vni::new(1024).unwrap());
    let spec = spec.limits(limits).build().unwrap();
    let service = device(&node, 0).services().create(&spec).unwrap();
    let les = || {
        let usage = device(&node, 0).services().usage(service).unwrap();
        usage.in_use(Resource::Les)
    };
    assert_eq!(les(), 0);
    let endpoint = endpoint(&node, 0, service, 1024, 3);
    assert_eq!(les(), 1);
    drop(endpoint);
    assert_eq!(les(), 0);
}
