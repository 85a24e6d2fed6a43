//! One node that this process serves and is part of: `run` and `serve`.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use cxi_mock::{MockNode, NicConfig};
use nix::unistd::geteuid;

use super::control::{Control, ControlGuard};
use super::door::{Door, DoorGuard};
use super::error::{Doing, ServeError, say};
use super::namespaces::{self, Inside, NamespaceKind, Variable};
use super::network::Network;
use super::node::{Node, NodeSetup};
use super::server::Common;
use super::setup::{FileArguments, NicArguments, Setup};
use super::state_file::{Saver, StateFile, another_configuration};
use super::{data_path, privileges, setup};

#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    nics: NicArguments,
    #[command(flatten)]
    files: FileArguments,
    /// Run programs under your own user ID, without privileges (ordinary users only)
    #[arg(long)]
    as_user: bool,
    /// Way in which programs reach the node [default: fuse, and socket where FUSE cannot be had]
    #[arg(long, value_enum)]
    door: Option<DoorKind>,
}

/// A way to reach a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoorKind {
    /// As files, which any program sees
    Fuse,
    /// Through a socket, which this project's libraries know: no privileges, namespaces or FUSE
    Socket,
}

/// A node that is served by this process.
pub(crate) struct Running {
    node: Arc<Node>,
    variables: Vec<Variable>,
    _control: Option<ControlGuard>,
    _door: Option<DoorGuard>,
}

impl Running {
    /// The node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Waits until everything that was recorded is written.
    pub(crate) fn end(&self) {
        self.node.end();
    }

    /// Variables of programs' environment.
    pub(crate) fn variables(&self) -> Vec<Variable> {
        self.variables.clone()
    }
}

impl NodeArguments {
    /// A node of which nothing is kept or recorded.
    pub(crate) fn plain(nics: NicArguments, as_user: bool) -> Self {
        Self { nics, files: FileArguments::default(), as_user, door: None }
    }

    /// Makes the node and, where programs see it as files, moves this process into it.
    pub(crate) fn start(&self, control: Option<Control>) -> Result<Running, ServeError> {
        let state = self.files.state()?;
        let model = self.node(state.as_ref())?;
        let records = self.files.records()?;
        let seen = self.separate()?;
        let door = match (seen, &control) {
            (true, _) => None,
            (false, Some(control)) => Some(Door::in_directory(control.dir())?),
            (false, None) => Some(Door::somewhere()?),
        };
        let mut variables: Vec<_> = door.iter().map(Door::variable).collect();
        let node_setup = NodeSetup {
            records,
            network: (seen && self.nics.network).then(Network::separate).transpose()?,
            hosts: None,
            credentials: Vec::new(),
            own: if seen {
                &[NamespaceKind::User, NamespaceKind::Net, NamespaceKind::Mnt]
            } else {
                &[]
            },
            variables: variables.clone(),
        };
        let mut common = Common::new(&self.nics)?;
        if !seen && !self.as_user && !self.nics.is_strict() && !privileges::is_privileged() {
            common.authority = common.authority.owned_by(geteuid().as_raw());
        }
        let node = Arc::new(Node::start(model.nics(), &common, node_setup, seen)?);
        data_path::start_clock(model.clock()).doing(|| "start the clock".to_owned())?;
        for fault in &self.nics.fault {
            node.inject(fault).map_err(ServeError::Input)?;
        }
        if let Some(file) = state {
            let saver = Saver::of_node(file, &model);
            saver.watch(0, &model)?;
            // It is better to notice a file that cannot be written before the program runs than
            // afterward.
            saver.save()?;
        }
        variables.extend(control.iter().map(Control::variable));
        let serve = |control: Control| control.serve(Arc::<Node>::clone(&node));
        Ok(Running {
            _door: door.map(|door| door.serve(node.server())).transpose()?,
            _control: control.map(serve).transpose()?,
            variables,
            node,
        })
    }

    /// Moves this process to where programs see the node as files. Returns false if they reach it through
    /// a socket instead, because that was chosen or because files cannot be had here.
    fn separate(&self) -> Result<bool, ServeError> {
        if self.door == Some(DoorKind::Socket) {
            if self.nics.network {
                return Err(ServeError::Input(
                    "--network shows NICs to any program, which --door socket does not: leave out \
                     one of them"
                        .to_owned(),
                ));
            }
            return Ok(false);
        }
        let separated = privileges::check()
            .and_then(|route| namespaces::separate(route, Inside::new(self.as_user)));
        match separated {
            Ok(()) => Ok(true),
            Err(ServeError::Missing { what, .. }) if self.door.is_none() && !self.nics.network => {
                say(format_args!(
                    "programs reach the node through this project's libraries only, and see no \
                     /dev/cxiN: {what}"
                ));
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn node(&self, state: Option<&StateFile>) -> Result<MockNode, ServeError> {
        let restored = state.map(StateFile::read_node).transpose()?;
        let Some(node) = restored.flatten() else {
            let node = self.fresh_node()?;
            if let Some(path) = &self.nics.preset {
                setup::make_presets(&node, path)?;
            }
            return Ok(node);
        };
        if self.nics.says_what() && node.configs() != self.fresh_node()?.configs() {
            return Err(another_configuration("a node"));
        }
        Ok(node)
    }

    fn fresh_node(&self) -> Result<MockNode, ServeError> {
        let node = match self.nics.setup(NicConfig::new())? {
            Setup::Alike(config) => MockNode::with_nics(self.nics.count(), &config),
            Setup::Each(configs) => MockNode::new(configs),
            Setup::Nodes(_) => {
                return Err(ServeError::Input(
                    "the configuration lists nodes: expected NICs of one node, or cxi-mock cluster"
                        .to_owned(),
                ));
            }
        };
        node.map_err(|error| ServeError::Input(format!("cannot load the driver: {error}")))
    }
}
