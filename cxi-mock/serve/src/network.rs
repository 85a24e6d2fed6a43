//! A network namespace of the node's own, in which netlink shows the NICs' network devices.
//!
//! Each device is one end of a veth pair. The other ends are in a second namespace, the switch,
//! which no program sees. The devices therefore have a carrier, and lose it when the link goes
//! down.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use parking_lot::Mutex;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::error::{Doing, ServeError};
use super::server::Function;
use super::sysfs::{MTU, mac_address, network_device, network_index};

/// `NETLINK_ROUTE`, whose number is 0.
const ROUTE: Option<Protocol> = None;
/// Index of the loopback device in every namespace.
const LOOPBACK: u32 = 1;

/// The node's network.
#[derive(Debug)]
pub(crate) struct Network {
    namespace: File,
    node: Netlink,
    switch: Netlink,
}

impl Network {
    /// Moves this thread into a network namespace with loopback alone.
    pub(crate) fn separate() -> Result<Self, ServeError> {
        let unshare_network = || unshare(CloneFlags::CLONE_NEWNET).map_err(|e| refused(e.into()));
        unshare_network()?;
        let switch = Netlink::open().map_err(refused)?;
        unshare_network()?;
        let namespace = "/proc/thread-self/ns/net";
        let network = Self {
            namespace: File::open(namespace).doing(|| format!("open {namespace}"))?,
            node: Netlink::open().map_err(refused)?,
            switch,
        };
        network.node.set_up(LOOPBACK, true).map_err(refused)?;
        Ok(network)
    }

    /// The node's namespace.
    pub(crate) fn namespace(&self) -> &File {
        &self.namespace
    }

    /// A socket of the node's namespace.
    pub(crate) fn netlink(&self) -> &Netlink {
        &self.node
    }

    /// Makes the network device of a function.
    pub(crate) fn add(&self, function: &Function) -> Result<(), ServeError> {
        let name = network_device(function.number);
        let index = network_index(function.number);
        let mut device = link(index);
        device.attributes = vec![
            LinkAttribute::IfName(name.clone()),
            LinkAttribute::Address(mac_address(&function.nic).to_vec()),
            LinkAttribute::Mtu(MTU),
            LinkAttribute::NetNsFd(self.namespace.as_raw_fd()),
        ];
        let port = vec![LinkAttribute::IfName(name), LinkAttribute::Mtu(MTU)];
        self.switch
            .add_veth(index, port, device)
            .and_then(|()| self.node.set_up(index, true))
            .and_then(|()| self.switch.set_up(index, function.nic.hardware().is_link_up()))
            .map_err(refused)
    }

    /// Removes the network device of a function.
    pub(crate) fn remove(&self, function: &Function) -> Result<(), ServeError> {
        let port = RouteNetlinkMessage::DelLink(link(network_index(function.number)));
        match self.switch.request(port, 0) {
            Err(error) if error.raw_os_error() != Some(Errno::ENODEV as i32) => Err(error),
            _ => Ok(()),
        }
        .doing(|| format!("remove {}", network_device(function.number)))
    }

    /// Gives the network device of a function a carrier, or takes it away.
    pub(crate) fn set_link(&self, function: &Function, up: bool) -> Result<(), ServeError> {
        self.switch
            .set_up(network_index(function.number), up)
            .doing(|| format!("set the link of {}", network_device(function.number)))
    }
}

/// A message about the device of an index.
pub(crate) fn link(index: u32) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message
}

/// Returns the error for a network that was refused.
pub(crate) fn refused(error: io::Error) -> ServeError {
    let how = match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM) => {
            "In a container, allow it (docker run --cap-add SYS_ADMIN --cap-add NET_ADMIN)"
        }
        Some(Errno::EOPNOTSUPP) => "Load the driver of pairs of network devices (modprobe veth)",
        Some(Errno::ENOSPC) => "Raise the limit (sysctl user.max_net_namespaces)",
        _ => {
            return Err::<(), _>(error).doing(|| "make the network".to_owned()).unwrap_err();
        }
    };
    ServeError::missing(
        format!("making a network namespace with network devices is refused ({error})"),
        format!("{how}, or leave out --network."),
    )
}

/// A socket for requests about the network devices of one namespace. It keeps the namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Mutex<OwnedFd>,
}

impl Netlink {
    /// A socket of the namespace of this thread.
    pub(crate) fn open() -> io::Result<Self> {
        let socket =
            socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, ROUTE)?;
        Ok(Self { socket: Mutex::new(socket) })
    }

    /// Sets a device up or down.
    pub(crate) fn set_up(&self, index: u32, up: bool) -> io::Result<()> {
        let mut message = link(index);
        message.header.change_mask = LinkFlags::Up;
        message.header.flags.set(LinkFlags::Up, up);
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Makes a pair of devices, one of them here.
    pub(crate) fn add_veth(
        &self,
        index: u32,
        mut attributes: Vec<LinkAttribute>,
        peer: LinkMessage,
    ) -> io::Result<()> {
        attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        let mut device = link(index);
        device.attributes = attributes;
        self.create(RouteNetlinkMessage::NewLink(device))
    }

    /// Makes something that must not exist yet.
    pub(crate) fn create(&self, what: RouteNetlinkMessage) -> io::Result<()> {
        self.request(what, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for its outcome.
    pub(crate) fn request(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let socket = self.socket.lock();
        send(&*socket, &bytes, SendFlags::empty())?;
        let mut answer = [0; 4096];
        let (received, _) = recv(&*socket, &mut answer, RecvFlags::empty())?;
        drop(socket);
        let answer = answer.get(..received).unwrap_or_default();
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer).map(|all| all.payload) {
            Ok(NetlinkPayload::Error(error)) if error.code.is_some() => Err(error.to_io()),
            Ok(NetlinkPayload::Error(_)) => Ok(()),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
