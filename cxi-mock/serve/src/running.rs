//! One node that this process serves and is part of: `run` and `serve`.

use std::sync::Arc;

use clap::Args;
use cxi_mock::{MockNode, NicConfig};

use super::control::{Control, ControlGuard};
use super::error::{Doing, ServeError};
use super::namespaces::{self, Inside, NamespaceKind};
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
}

/// A node that is served by this process.
pub(crate) struct Running {
    node: Arc<Node>,
    _control: Option<ControlGuard>,
}

impl Running {
    /// Waits until everything that was recorded is written.
    pub(crate) fn end(&self) {
        self.node.end();
    }
}

impl NodeArguments {
    /// Makes the node and moves this process into it.
    pub(crate) fn start(&self, control: Option<Control>) -> Result<Running, ServeError> {
        let state = self.files.state()?;
        let model = self.node(state.as_ref())?;
        let records = self.files.records()?;
        let route = privileges::check()?;
        namespaces::separate(route, Inside::new(self.as_user))?;
        let node_setup = NodeSetup {
            records,
            network: self.nics.network.then(Network::separate).transpose()?,
            hosts: None,
            credentials: Vec::new(),
            own: &[NamespaceKind::User, NamespaceKind::Net, NamespaceKind::Mnt],
        };
        let common = Common::new(&self.nics)?;
        let node = Arc::new(Node::start(model.nics(), &common, node_setup)?);
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
        let serve = |control: Control| control.serve(Arc::<Node>::clone(&node));
        Ok(Running { _control: control.map(serve).transpose()?, node })
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
