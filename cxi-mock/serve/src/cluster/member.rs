//! A node of a cluster while it runs.

use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use cxi::environment::{NODE_VARIABLE as NODE_SOCKET, WINDOWS_VARIABLE};
use cxi_mock::MockNode;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::Pid;
use rustix::thread::{
    CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
};
use serde_json::Value;

use super::{Cluster, names};
use crate::agent::READY;
use crate::control::send;
use crate::door::{Door, DoorGuard};
use crate::error::{Doing, ServeError};
use crate::launch::SELF;
use crate::namespaces::{NamespaceKind, Namespaces, Variable, in_thread, separate_node};
use crate::network::Network;
use crate::node::{Node, NodeSetup};
use crate::procfs;

/// A running node. Its processes end when it is dropped.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) node: Arc<Node>,
    pub(super) namespaces: Arc<Namespaces>,
    init: Init,
    _door: Option<DoorGuard>,
}

impl Member {
    /// Makes a node's namespaces, and serves it there.
    pub(super) fn start(cluster: &Cluster, number: usize) -> Result<Self, ServeError> {
        let door = Door::of_node(&cluster.view, None)?;
        let own = door.as_ref().map(|door| door.variable(&cluster.view));
        let (node, init) = in_thread(|| make(cluster, number, own.as_ref()))?;
        let manager = cluster.manager.as_ref();
        let variables = manager.into_iter().flat_map(|manager| manager.variables()).chain(own);
        let namespaces = node.namespaces().with_pids_of(init.pid(), variables.collect())?;
        let door = door.map(|door| door.serve(node.server())).transpose()?;
        Ok(Self { namespaces: Arc::new(namespaces), node: Arc::new(node), init, _door: door })
    }

    /// A socket to its process 1, which starts programs.
    pub(super) fn shell(&self) -> io::Result<OwnedFd> {
        let (shell, theirs) = UnixStream::pair()?;
        send(&self.init.input, &Ok(Value::Null), &[theirs.as_fd()])?;
        Ok(shell.into())
    }

    /// The number of its process 1.
    pub(super) fn pid(&self) -> Pid {
        self.init.pid()
    }
}

fn make(
    cluster: &Cluster,
    number: usize,
    door: Option<&Variable>,
) -> Result<(Node, Init), ServeError> {
    let name = names::name(number);
    separate_node(&name)?;
    // Before the mounts: sysfs and the node's `/sys/class/net` follow the namespace of this thread.
    let network = cluster.lan.as_ref().map(|lan| {
        let network = Network::separate()?;
        lan.attach(number, &network)?;
        Ok::<_, ServeError>(network)
    });
    let manager = cluster.manager.as_ref();
    let credentials = manager.map(|manager| manager.credentials());
    let node_setup = NodeSetup {
        records: cluster.records.on_node(&name),
        network: network.transpose()?,
        hosts: Some(names::hosts(cluster.members.len(), cluster.lan.is_some())),
        credentials: credentials.unwrap_or_default(),
        own: &[
            NamespaceKind::User,
            NamespaceKind::Net,
            NamespaceKind::Uts,
            NamespaceKind::Ipc,
            NamespaceKind::Mnt,
        ],
        variables: Vec::new(),
    };
    let model = cluster.model.node(number);
    let nics = model.as_deref().map(MockNode::nics).unwrap_or_default();
    let node = Node::start(nics, &cluster.common, node_setup, &cluster.view)?;
    Ok((node, Init::start(door)?))
}

/// Process 1 of a node.
#[derive(Debug)]
struct Init {
    process: Child,
    /// Its standard input: it ends when this is closed.
    input: UnixStream,
}

impl Init {
    /// Starts it in its own PID namespace and waits until it is ready.
    fn start(door: Option<&Variable>) -> Result<Self, ServeError> {
        unshare(CloneFlags::CLONE_NEWPID).doing(|| "make a PID namespace".to_owned())?;
        keep_mounting().doing(|| "let process 1 of a node mount /proc".to_owned())?;
        let what = || "start process 1 of a node".to_owned();
        let (input, theirs) = UnixStream::pair().doing(what)?;
        let mut process = Command::new(SELF)
            .arg0("cxi-mock")
            .arg("init")
            .env_remove(NODE_SOCKET)
            .env_remove(WINDOWS_VARIABLE)
            .envs(door.map(|(name, value)| (name, value)))
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .spawn()
            .doing(what)?;
        let mut said = Vec::new();
        if let Some(output) = process.stdout.take() {
            let _ = BufReader::new(output).read_until(b'\n', &mut said);
        }
        let init = Self { process, input };
        if said == READY {
            return Ok(init);
        }
        Err(ServeError::missing(
            "a node cannot have its own processes (process 1 said why)",
            "In a container, allow mounts of proc (docker run --security-opt systempaths=unconfined, \
             podman run --security-opt unmask=ALL).",
        ))
    }

    fn pid(&self) -> Pid {
        procfs::pid(self.process.id())
    }
}

/// Lets this thread's children mount in its namespaces, even if the user is not 0 there.
fn keep_mounting() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(())
}

impl Drop for Init {
    fn drop(&mut self) {
        // The kernel ends all processes of the node before this one is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
