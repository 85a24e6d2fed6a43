//! The network between the daemons of the nodes: a bridge with an `eth0` for each node.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sched::{CloneFlags, setns, unshare};

use super::names;
use crate::error::{Doing, ServeError};
use crate::namespaces::in_thread;
use crate::network::{Netlink, Network, link, refused};

/// Index of the bridge; the ports of the nodes follow. Kernels may have devices of their own at the
/// lowest numbers of every namespace.
const BRIDGE: u32 = 1001;
/// Index of `eth0` on a node, after those of the NICs' devices.
const ETHERNET: u32 = 2000;
/// The address of the bridge, behind those of the nodes.
const BRIDGE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 254);
/// Addresses of all nodes.
const PREFIX: u8 = 16;

/// A bridge in a network namespace that no program sees.
#[derive(Debug)]
pub(super) struct Lan {
    netlink: Netlink,
    namespace: File,
}

impl Lan {
    pub(super) fn new() -> Result<Self, ServeError> {
        let bridge = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let netlink = Netlink::open()?;
            let mut bridge = link(BRIDGE);
            bridge.attributes = vec![
                LinkAttribute::IfName("nodes".to_owned()),
                hardware_address(BRIDGE_ADDRESS),
                LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
            ];
            let bridge = RouteNetlinkMessage::NewLink(bridge);
            netlink.create(bridge)?;
            netlink.create(address(BRIDGE, BRIDGE_ADDRESS))?;
            netlink.set_up(BRIDGE, true)?;
            let namespace = File::open("/proc/thread-self/ns/net")?;
            Ok(Self { netlink, namespace })
        };
        in_thread(|| bridge().map_err(refused))
    }

    /// Does something at a place where all nodes reach this process, under an address of that
    /// place.
    pub(super) fn inside<T: Send>(
        &self,
        act: impl FnOnce(Ipv4Addr) -> Result<T, ServeError> + Send,
    ) -> Result<T, ServeError> {
        in_thread(|| {
            let entered = setns(&self.namespace, CloneFlags::CLONE_NEWNET);
            entered.doing(|| "enter the network of the bridge".to_owned())?;
            act(BRIDGE_ADDRESS)
        })
    }

    /// Gives a node an `eth0` with its address.
    pub(super) fn attach(&self, number: usize, node: &Network) -> Result<(), ServeError> {
        let at = names::address(number, true);
        let mut ethernet = link(ETHERNET);
        ethernet.attributes = vec![
            LinkAttribute::IfName("eth0".to_owned()),
            hardware_address(at),
            LinkAttribute::NetNsFd(node.namespace().as_raw_fd()),
        ];
        let attributes =
            vec![LinkAttribute::IfName(names::name(number)), LinkAttribute::Controller(BRIDGE)];
        self.netlink
            .add_veth(port(number), attributes, ethernet)
            .and_then(|()| self.netlink.set_up(port(number), true))
            .and_then(|()| node.netlink().create(address(ETHERNET, at)))
            .and_then(|()| node.netlink().set_up(ETHERNET, true))
            .map_err(refused)
    }

    /// Removes a node's `eth0`, so that the node can get a new one right away.
    pub(super) fn detach(&self, number: usize) -> Result<(), ServeError> {
        let port = RouteNetlinkMessage::DelLink(link(port(number)));
        self.netlink
            .request(port, 0)
            .doing(|| format!("take {} from the network", names::name(number)))
    }
}

fn port(number: usize) -> u32 {
    u32::try_from(number).map_or(u32::MAX, |number| BRIDGE + 1 + number)
}

/// The hardware address that goes with an IP address. It stays the same when a node reboots,
/// because other nodes remember it. The bridge needs one, too: without its own, it takes the lowest
/// of its ports'.
fn hardware_address(at: Ipv4Addr) -> LinkAttribute {
    let [a, b, c, d] = at.octets();
    LinkAttribute::Address(vec![2, 0, a, b, c, d])
}

/// A message that gives a device an address.
fn address(device: u32, at: Ipv4Addr) -> RouteNetlinkMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = PREFIX;
    message.header.index = device;
    message.attributes =
        vec![AddressAttribute::Local(IpAddr::V4(at)), AddressAttribute::Address(IpAddr::V4(at))];
    RouteNetlinkMessage::NewAddress(message)
}
