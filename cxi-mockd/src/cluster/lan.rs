//! The network between the daemons of the nodes: a bridge with an `eth0` for each
//! node.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::thread;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkInfo};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::sched::{CloneFlags, unshare};

use super::names;
use crate::error::{Doing, ServeError};
use crate::network::{Netlink, Network, link, refused};

/// Index of the bridge; the ports of the nodes follow. Kernels may have devices of their own at the
/// lowest numbers of every namespace.
const BRIDGE: u32 = 1001;
/// Index of `eth0` on a node, after those of the NICs' devices.
const ETHERNET: u32 = 2000;
/// Addresses of all nodes.
const PREFIX: u8 = 16;

/// A bridge in a network namespace that no program sees.
#[derive(Debug)]
pub(super) struct Lan(Netlink);

impl Lan {
    pub(super) fn new() -> Result<Self, ServeError> {
        let bridge = || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let netlink = Netlink::open()?;
            let mut bridge = link(BRIDGE);
            bridge.attributes = vec![
                LinkAttribute::IfName("nodes".to_owned()),
                LinkAttribute::LinkInfo(vec![LinkInfo::Kind(InfoKind::Bridge)]),
            ];
            let bridge = RouteNetlinkMessage::NewLink(bridge);
            netlink.request(bridge, NLM_F_CREATE | NLM_F_EXCL)?;
            netlink.set_up(BRIDGE, true)?;
            Ok(netlink)
        };
        // The thread ends, and its namespace stays.
        let bridge = thread::spawn(bridge).join();
        let panicked = |_| Err(io::Error::other("a thread panicked"));
        bridge.unwrap_or_else(panicked).map(Self).map_err(refused)
    }

    /// Gives a node an `eth0` with its address.
    pub(super) fn attach(&self, number: usize, node: &Network) -> Result<(), ServeError> {
        let mut ethernet = link(ETHERNET);
        ethernet.attributes = vec![
            LinkAttribute::IfName("eth0".to_owned()),
            LinkAttribute::NetNsFd(node.namespace().as_raw_fd()),
        ];
        let mut port = link(port(number));
        port.attributes = vec![
            LinkAttribute::IfName(names::name(number)),
            LinkAttribute::Controller(BRIDGE),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(ethernet))),
            ]),
        ];
        let at = names::address(number, true);
        let create = NLM_F_CREATE | NLM_F_EXCL;
        self.0
            .request(RouteNetlinkMessage::NewLink(port), create)
            .and_then(|()| self.0.set_up(self::port(number), true))
            .and_then(|()| node.netlink().request(address(at), create))
            .and_then(|()| node.netlink().set_up(ETHERNET, true))
            .map_err(refused)
    }

    /// Takes a node's `eth0` away, so that the node can have one again at once.
    pub(super) fn detach(&self, number: usize) -> Result<(), ServeError> {
        let port = RouteNetlinkMessage::DelLink(link(port(number)));
        self.0
            .request(port, 0)
            .doing(|| format!("take {} from the network", names::name(number)))
    }
}

fn port(number: usize) -> u32 {
    u32::try_from(number).map_or(u32::MAX, |number| BRIDGE + 1 + number)
}

fn address(at: Ipv4Addr) -> RouteNetlinkMessage {
    let mut message = AddressMessage::default();
    message.header.family = AddressFamily::Inet;
    message.header.prefix_len = PREFIX;
    message.header.index = ETHERNET;
    message.attributes = vec![
        AddressAttribute::Local(IpAddr::V4(at)),
        AddressAttribute::Address(IpAddr::V4(at)),
    ];
    RouteNetlinkMessage::NewAddress(message)
}
