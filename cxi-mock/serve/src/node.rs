//! A node while it is served: mounts, the file system's thread, and NICs that come and go.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fuser::{Config, Session, SessionACL};

use super::data_path;
use super::error::{Doing, ServeError};
use super::files::Files;
use super::mount::{self, LinkDirectory, Places, Stage};
use super::namespaces::{Home, Kind, Namespaces};
use super::network::Network;
use super::server::{Function, Server};
use super::sysfs::network_device;
use super::trace::Trace;
use super::watch::Watch;

/// How often the driver tries again to free LNIs whose queues were busy.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);

/// A node that programs in this mount namespace see.
#[derive(Debug)]
pub(crate) struct Node {
    server: Arc<Server>,
    places: Places,
    network: Option<Network>,
    namespaces: Arc<Namespaces>,
    watch: Arc<Watch>,
}

/// How a node is set up.
#[derive(Debug)]
pub(crate) struct Furniture {
    /// Freed LNIs whose queues were busy are cleaned up every second.
    pub(crate) cleanup: bool,
    /// Where operations between processes are recorded.
    pub(crate) capture: Option<Trace>,
    /// A network of its own.
    pub(crate) network: Option<Network>,
    /// What `/etc/hosts` says.
    pub(crate) hosts: Option<String>,
    /// Credentials of a fabric manager, as files.
    pub(crate) credentials: Vec<(&'static str, String)>,
    /// Where threads look at processes.
    pub(crate) home: Arc<Home>,
    /// Which namespaces programs have to enter.
    pub(crate) own: &'static [Kind],
}

impl Node {
    /// Mounts everything in the mount namespace of this thread and starts to answer.
    pub(crate) fn start(
        server: Arc<Server>,
        fuse: OwnedFd,
        furniture: Furniture,
    ) -> Result<Self, ServeError> {
        let Furniture {
            cleanup,
            capture,
            network,
            hosts,
            credentials,
            home,
            own,
        } = furniture;
        let stage = Stage::new()?;
        if !credentials.is_empty() {
            mount::prepare_credentials(&stage, &credentials)?;
        }
        mount::extend_sysfs(&stage)?;
        mount::mount_fuse(&fuse)?;
        answer(Arc::clone(&server), fuse, Arc::clone(&home))?;
        let places = Places::lay(&stage, network.is_some())?;
        mount::lay_records(&stage)?;
        if let Some(hosts) = hosts {
            mount::lay_hosts(&stage, &hosts)?;
            mount::lay_shared_memory()?;
        }
        drop(stage);
        data_path::start(&server, &home).doing(|| "start the data path".to_owned())?;
        if cleanup {
            clean_up_regularly(Arc::clone(&server), home)?;
        }
        let kinds: Vec<_> = own
            .iter()
            .copied()
            .filter(|kind| *kind != Kind::Net || network.is_some())
            .collect();
        let node = Self {
            watch: Watch::start(Arc::clone(&server), capture)?,
            server,
            places,
            network,
            namespaces: Arc::new(Namespaces::of_this_thread(&kinds)?),
        };
        for function in &node.server.functions {
            node.show(function)?;
        }
        Ok(node)
    }

    /// What is served, once it has noticed which files are closed.
    pub(crate) fn server(&self) -> &Arc<Server> {
        self.server.settle();
        &self.server
    }

    /// The namespaces in which programs see it.
    pub(crate) fn namespaces(&self) -> &Arc<Namespaces> {
        &self.namespaces
    }

    /// What is watched of its data path.
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Waits until all that was watched is written.
    pub(crate) fn end(&self) {
        self.watch.finish();
    }

    /// Sets the link of a function, for users of netlink.
    pub(crate) fn set_network_link(&self, function: &Function, up: bool) -> Result<(), ServeError> {
        let network = self.network.as_ref();
        network.map_or(Ok(()), |network| network.set_link(function, up))
    }

    /// Makes a function appear in `/dev`, in the classes and in the network.
    pub(crate) fn show(&self, function: &Function) -> Result<(), ServeError> {
        if let Some(network) = &self.network {
            network.add(function)?;
        }
        for (directory, name, target) in links(function) {
            self.places.link(directory, &name, &target)?;
        }
        self.places.add_device(&function.device_name())
    }

    /// Makes it disappear from there.
    pub(crate) fn hide(&self, function: &Function) -> Result<(), ServeError> {
        if let Some(network) = &self.network {
            network.remove(function)?;
        }
        for (directory, name, _) in links(function) {
            self.places.unlink(directory, &name)?;
        }
        self.places.remove_device(&function.device_name())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.end();
    }
}

fn links(function: &Function) -> [(LinkDirectory, String, String); 5] {
    let name = function.device_name();
    let net = network_device(function.number);
    let address = function.address.to_string();
    let devices = format!("devices/cxi-mock/{address}");
    [
        (
            LinkDirectory::ClassCxi,
            name.clone(),
            format!("../../{devices}/cxi/{name}"),
        ),
        (
            LinkDirectory::ClassCxiUser,
            name.clone(),
            format!("../../{devices}/cxi_user/{name}"),
        ),
        (
            LinkDirectory::ClassNet,
            net.clone(),
            format!("../../{devices}/net/{net}"),
        ),
        (
            LinkDirectory::PciDevices,
            address.clone(),
            format!("../../../{devices}"),
        ),
        (
            LinkDirectory::Driver,
            address,
            format!("../../../../{devices}"),
        ),
    ]
}

fn answer(server: Arc<Server>, fuse: OwnedFd, home: Arc<Home>) -> Result<(), ServeError> {
    let start = || "start the file system".to_owned();
    let files = Files::new(server);
    let session = Session::from_fd(files, fuse, SessionACL::All, Config::default()).doing(start)?;
    thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || {
            // Elsewhere it would keep the mounts that it waits for.
            home.enter().map_err(io::Error::other)?;
            session.run()
        })
        .doing(start)?;
    Ok(())
}

fn clean_up_regularly(server: Arc<Server>, home: Arc<Home>) -> Result<(), ServeError> {
    thread::Builder::new()
        .name("cleanup".to_owned())
        .spawn(move || {
            let _ = home.enter();
            while !server.has_ended() {
                thread::sleep(CLEANUP_INTERVAL);
                server.settle();
                for function in &server.functions {
                    if function.vf.is_none() {
                        function.nic.tick();
                    }
                }
            }
        })
        .doing(|| "start the cleanup".to_owned())?;
    Ok(())
}
