//! A node while it is served: mounts, the file system's thread, and NICs that come and go.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use std::{io, iter, thread};

use cxi_ioctl::Errno;
use cxi_mock::Nic;
use fuser::{Config, Session, SessionACL};

use super::copies::Copies;
use super::error::{Doing, ServeError, say};
use super::fuse::FileSystem;
use super::mount::{self, DEVICES, Places, RETRY_HANDLERS, Stage};
use super::namespaces::{Home, NamespaceKind, Namespaces, Variable};
use super::network::Network;
use super::server::{Common, DRIVER, Function, Server};
use super::setup::Records;
use super::sysfs::{RETRY_HANDLER, bus_path, network_device};
use super::view::View;
use super::watch::Watch;
use super::{data_path, privileges, windows};

/// Interval at which the driver tries again to free LNIs whose queues were busy.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(1);

/// A node that programs in this mount namespace see.
#[derive(Debug)]
pub(crate) struct Node {
    server: Arc<Server>,
    scene: Arc<Scene>,
    namespaces: Arc<Namespaces>,
    watch: Arc<Watch>,
}

/// Places in which programs find functions.
#[derive(Debug)]
struct Scene {
    /// `None` for a node that programs reach through its socket only.
    places: Option<Places>,
    /// Copies of sysfs for programs that do not use the socket.
    copies: Option<Arc<Copies>>,
    network: Option<Network>,
    /// The second name of the driver.
    alias: Option<String>,
}

/// Settings of a node.
#[derive(Debug)]
pub(crate) struct NodeSetup {
    /// Destinations of recorded commands and events, and of operations between processes.
    pub(crate) records: Records,
    /// The node's own network.
    pub(crate) network: Option<Network>,
    /// Content of `/etc/hosts`.
    pub(crate) hosts: Option<String>,
    /// Credentials of a fabric manager, as files.
    pub(crate) credentials: Vec<(&'static str, String)>,
    /// Namespaces that programs have to enter.
    pub(crate) own: &'static [NamespaceKind],
    /// Variables of programs' environment.
    pub(crate) variables: Vec<Variable>,
}

impl Node {
    /// Starts to answer. Where programs are to see a node as files, everything is mounted in the mount
    /// namespace of this thread.
    pub(crate) fn start(
        nics: &[Arc<Nic>],
        common: &Common,
        node_setup: NodeSetup,
        view: &View,
    ) -> Result<Self, ServeError> {
        let NodeSetup {
            records: Records { trace, capture },
            network,
            hosts,
            credentials,
            own,
            variables,
        } = node_setup;
        let server = Arc::new(Server::new(nics, common, trace)?);
        let home = Arc::clone(&common.home);
        let (places, copies) = match view {
            View::Nothing(_) => (None, None),
            view => mount(&server, common, network.is_some(), hosts, &credentials, view)?,
        };
        data_path::start(&server, &home).doing(|| "start the data path".to_owned())?;
        if common.cleanup {
            clean_up_regularly(Arc::clone(&server), home)?;
        }
        let kinds: Vec<_> = own
            .iter()
            .copied()
            .filter(|kind| *kind != NamespaceKind::Net || network.is_some())
            .collect();
        let node = Self {
            watch: Watch::start(Arc::clone(&server), capture, common.traffic.clone())?,
            server,
            scene: Arc::new(Scene { places, copies, network, alias: common.alias.clone() }),
            namespaces: Arc::new(Namespaces::of_this_thread(&kinds)?.with_variables(variables)),
        };
        for function in node.server.functions() {
            node.show(function)?;
        }
        let (server, scene) = (Arc::downgrade(&node.server), Arc::downgrade(&node.scene));
        node.server.virtualization.set(move |number, count| {
            let (server, scene) = (server.upgrade(), scene.upgrade());
            let (server, scene) = server.zip(scene).ok_or(Errno::ENODEV)?;
            scene.virtualize(&server, number, count)
        });
        Ok(node)
    }

    /// Returns the server, once it has noticed which files are closed.
    pub(crate) fn server(&self) -> &Arc<Server> {
        self.server.close_unmapped();
        &self.server
    }

    /// The namespaces in which programs see it.
    pub(crate) fn namespaces(&self) -> &Arc<Namespaces> {
        &self.namespaces
    }

    /// Returns the observers of its data path.
    pub(crate) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Returns whether programs see its files, not copies of them or nothing.
    pub(crate) fn has_files(&self) -> bool {
        self.scene.places.is_some() && self.scene.copies.is_none()
    }

    /// Brings the copies of sysfs up to date, if there are any.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        self.scene.copies.as_ref().map_or(Ok(()), |copies| copies.refresh())
    }

    /// Waits until everything that was recorded is written.
    pub(crate) fn end(&self) {
        self.server.close_all();
        self.watch.finish();
    }

    /// Sets the link of a function, for users of netlink.
    pub(crate) fn set_network_link(&self, function: &Function, up: bool) -> Result<(), ServeError> {
        let network = self.scene.network.as_ref();
        network.map_or(Ok(()), |network| network.set_link(function, up))
    }

    /// Makes a function appear in `/dev`, in the classes and in the network.
    pub(crate) fn show(&self, function: &Function) -> Result<(), ServeError> {
        self.scene.show(function)
    }

    /// Makes it disappear from there.
    pub(crate) fn hide(&self, function: &Function) -> Result<(), ServeError> {
        self.scene.hide(function)
    }
}

impl Scene {
    fn show(&self, function: &Function) -> Result<(), ServeError> {
        if let Some(network) = &self.network {
            network.add(function)?;
        }
        let mut links = self.links(function).into_iter();
        links.try_for_each(|(path, target)| match &self.places {
            Some(places) => places.link(&path, &target),
            None => Ok(()),
        })
    }

    fn hide(&self, function: &Function) -> Result<(), ServeError> {
        if let Some(network) = &self.network {
            network.remove(function)?;
        }
        let mut links = self.links(function).into_iter();
        links.try_for_each(|(path, _)| match &self.places {
            Some(places) => places.unlink(&path),
            None => Ok(()),
        })
    }

    /// Changes how many virtual functions a NIC has: they appear or disappear.
    fn virtualize(&self, server: &Server, number: u16, count: u32) -> Result<(), Errno> {
        let failed = |error: ServeError| {
            say(format_args!("virtual functions of cxi{number}: {error}"));
            Errno::EIO
        };
        let before = server.virtual_functions_of(number);
        server.set_virtual_functions(number, count)?;
        let after = server.virtual_functions_of(number);
        if after.is_empty() {
            before.into_iter().try_for_each(|function| self.hide(function)).map_err(failed)
        } else if before.is_empty() {
            after.into_iter().try_for_each(|function| self.show(function)).map_err(failed)
        } else {
            Ok(())
        }
    }

    /// The links by which programs find a function, and their targets.
    fn links(&self, function: &Function) -> Vec<(String, String)> {
        let mut links = links(function);
        if self.copies.is_some() {
            // No file would be behind it.
            links.retain(|(path, _)| !path.starts_with("/dev/"));
        }
        let (name, address) = (function.device_name(), function.address);
        if let Some(alias) = &self.alias {
            let target = format!("../../../../devices/pci-cxi-mock/{address}");
            links.push((format!("/sys/bus/pci/drivers/{alias}/{address}"), target));
        }
        if function.nic.config().retry_handler && function.vf.is_none() {
            let target = format!("{DEVICES}/{address}/{RETRY_HANDLER}");
            links.push((format!("{RETRY_HANDLERS}/{name}"), target));
        }
        links
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.server.end();
    }
}

/// Mounts everything that programs see of a node.
fn mount(
    server: &Arc<Server>,
    common: &Common,
    own_network: bool,
    hosts: Option<String>,
    credentials: &[(&'static str, String)],
    view: &View,
) -> Result<(Option<Places>, Option<Arc<Copies>>), ServeError> {
    let stage = Stage::new()?;
    if !credentials.is_empty() {
        mount::prepare_credentials(&stage, credentials)?;
    }
    let drivers: Vec<&str> = iter::once(DRIVER).chain(common.alias.as_deref()).collect();
    mount::extend_sysfs(&stage, &common.machine.files(), &drivers)?;
    let copies = if view.is_behind_socket() {
        let root = mount::mount_copies(&stage)?;
        let copies = Arc::new(Copies::write(Arc::clone(server), &root)?);
        Arc::clone(&copies).keep_fresh(Arc::clone(&common.home))?;
        Some(copies)
    } else {
        mount_files(server, common)?;
        None
    };
    mount::mount_records(&stage)?;
    let places = Places::mount(&stage, &drivers, own_network)?;
    if let Some(hosts) = hosts {
        mount::cover_hosts(&stage, &hosts)?;
        mount::mount_shared_memory()?;
    }
    // The stage is dropped here: what was bound from it stays, and the directory below it becomes visible
    // again.
    Ok((Some(places), copies))
}

/// Mounts the file system, and starts to answer it.
fn mount_files(server: &Arc<Server>, common: &Common) -> Result<(), ServeError> {
    let fuse = privileges::open_fuse()?;
    mount::mount_fuse(&fuse)?;
    if let Some((mounted, _)) = windows::opened(DEVICES) {
        server.mounted.get_or_init(|| mounted);
    } else {
        say(format_args!(
            "doorbells are polled: name_to_handle_at(2) does not tell what a program has mapped"
        ));
    }
    // The threads start before anything is bound from the file system, because binding makes the
    // kernel ask it, and wait.
    answer(Arc::clone(server), fuse, Arc::clone(&common.home))
}

/// The links that every node has. `/dev/cxiN` is a link, too. A
/// node mounted there would be a single inode for all who open it, whereas each open file needs its
/// own.
pub(crate) fn links(function: &Function) -> Vec<(String, String)> {
    let (name, net) = (function.device_name(), network_device(function.number));
    let (address, bus) = (function.address, bus_path(function.address));
    let up = |levels: usize| "../".repeat(levels) + &format!("devices/pci-cxi-mock/{address}");
    vec![
        (format!("/sys/class/cxi/{name}"), up(2) + "/cxi/" + &name),
        (format!("/sys/class/cxi_user/{name}"), up(2) + "/cxi_user/" + &name),
        (format!("/sys/class/net/{net}"), up(2) + "/net/" + &net),
        (format!("/sys/class/{bus}"), format!("../../devices/pci-cxi-mock/{bus}")),
        (format!("/sys/bus/pci/devices/{address}"), up(3)),
        (format!("/sys/bus/pci/drivers/cxi_ss1/{address}"), up(4)),
        (format!("/dev/{name}"), format!("..{DEVICES}/nodes/{name}")),
    ]
}

fn answer(server: Arc<Server>, fuse: OwnedFd, home: Arc<Home>) -> Result<(), ServeError> {
    let start = || "start the file system".to_owned();
    let files = FileSystem::new(server);
    let session = Session::from_fd(files, fuse, SessionACL::All, Config::default()).doing(start)?;
    thread::Builder::new()
        .name("files".to_owned())
        .spawn(move || {
            // In another mount namespace, the thread would keep the very mounts whose end it waits
            // for.
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
                server.close_unmapped();
                for function in server.physical() {
                    function.nic.tick();
                }
            }
        })
        .doing(|| "start the cleanup".to_owned())?;
    Ok(())
}
