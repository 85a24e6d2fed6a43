//! One node that this process serves and is part of: `run` and `serve`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use cxi_mock::{MockNode, NicConfig};

use super::control::{Control, ControlGuard};
use super::data_path;
use super::error::{Doing, ServeError};
use super::namespaces::{self, Home, Inside, Kind};
use super::network::Network;
use super::nic_args::NicArguments;
use super::node::{Furniture, Node};
use super::server::Server;
use super::setup::Setup;
use super::state_file::{Saver, StateFile};
use super::trace::Trace;
use super::{preset, privileges};

#[derive(Debug, Args)]
pub(crate) struct NodeArguments {
    #[command(flatten)]
    nics: NicArguments,
    /// Keep services in this file: a node continues where the last one with this file ended
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Record every command and event in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record every operation between processes in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Run programs under the own user id, without privileges (ordinary users only)
    #[arg(long)]
    as_user: bool,
}

/// A node that is served by this process.
pub(crate) struct Running {
    node: Arc<Node>,
    _control: Option<ControlGuard>,
}

impl Running {
    /// Writes everything that outlives the node.
    pub(crate) fn end(&self) -> Result<(), ServeError> {
        self.node.watch().finish();
        self.save()
    }

    /// Writes the state file.
    fn save(&self) -> Result<(), ServeError> {
        self.node
            .server()
            .state
            .as_ref()
            .map_or(Ok(()), Saver::save)
    }
}

impl NodeArguments {
    /// Makes the node and moves this process into it.
    pub(crate) fn start(&self, control: Option<Control>) -> Result<Running, ServeError> {
        let state = self.state.as_deref().map(StateFile::take).transpose()?;
        let model = self.node(state.as_ref())?;
        let state = state.map(|file| Saver::new(file, &model));
        let create = |path: &Option<PathBuf>| path.as_deref().map(Trace::create).transpose();
        let (trace, capture) = (create(&self.trace)?, create(&self.capture)?);
        let route = privileges::check()?;
        let inside = if self.as_user {
            Inside::Oneself
        } else {
            Inside::Root
        };
        namespaces::separate(route, inside)?;
        let furniture = Furniture {
            cleanup: !self.nics.manual_cleanup,
            capture,
            network: self.nics.network.then(Network::separate).transpose()?,
            hosts: None,
            home: Home::here()?,
            own: &[Kind::User, Kind::Net, Kind::Mnt],
        };
        let fuse = privileges::open_fuse()?;
        let (authority, doorbells) = (self.nics.authority(), self.nics.doorbells);
        let server = Server::new(model.nics(), authority, trace, state, doorbells);
        let node = Arc::new(Node::start(Arc::new(server), fuse, furniture)?);
        data_path::start_clock(model.clock()).doing(|| "start the clock".to_owned())?;
        for fault in &self.nics.fault {
            node.inject(fault).map_err(ServeError::Input)?;
        }
        let serve = |control: Control| control.serve(Arc::<Node>::clone(&node));
        let running = Running {
            _control: control.map(serve).transpose()?,
            node,
        };
        // A file that cannot be written is better noticed before than after the program.
        running.save()?;
        Ok(running)
    }

    fn node(&self, state: Option<&StateFile>) -> Result<MockNode, ServeError> {
        let restored = state.map(StateFile::read).transpose()?;
        let Some(node) = restored.flatten() else {
            let node = self.fresh_node()?;
            if let Some(path) = &self.nics.preset {
                preset::make(&node, path)?;
            }
            return Ok(node);
        };
        if self.nics.says_what() {
            let configs = |node: &MockNode| -> Vec<NicConfig> {
                let nics = node.nics().iter();
                nics.map(|nic| nic.config().clone()).collect()
            };
            if configs(&node) != configs(&self.fresh_node()?) {
                return Err(ServeError::Input(
                    "the state file holds a node of another configuration: leave out --nics, \
                     --config, --release and --set, or take another file"
                        .to_owned(),
                ));
            }
        }
        Ok(node)
    }

    fn fresh_node(&self) -> Result<MockNode, ServeError> {
        let node = match self.nics.setup()? {
            Setup::Alike(config) => MockNode::with_nics(self.nics.nics.unwrap_or(1), &config),
            Setup::Each(configs) => MockNode::new(configs),
            Setup::Nodes(_) => {
                return Err(ServeError::Input(
                    "the configuration lists nodes: expected NICs of one node, or cxi-mock cluster"
                        .to_owned(),
                ));
            }
        };
        node.map_err(|error| ServeError::Input(format!("the driver does not load: {error}")))
    }
}
