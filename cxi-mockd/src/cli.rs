//! The command line.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use cxi_ioctl::DriverRelease;

use super::connection::Connection;
use super::control::{Control, ControlGuard};
use super::credentials::Authority;
use super::error::ServeError;
use super::fabric_manager::{self, FabricManagerArguments};
use super::namespaces::{self, Inside};
use super::network::Network;
use super::node::Node;
use super::order_args::OrderArguments;
use super::server::Server;
use super::setup::{self, Setup};
use super::signals::Signals;
use super::state_file::{Saver, StateFile};
use super::trace::Trace;
use super::{launch, preset, privileges, say};
use cxi_mock::{MockNode, NicConfig};

/// Where programs find the directory of the node that they run on.
const DIR_VARIABLE: &str = "CXI_MOCK_DIR";

/// A node with mock CXI NICs, for any program.
///
/// Exit status: that of the program, 128 and the signal's number if a signal ended it; 77 if this
/// machine or user cannot serve a node; 125 if something else went wrong.
#[derive(Debug, Parser)]
#[command(name = "cxi-mock", version, subcommand_required = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program on a node that exists as long as it runs
    Run {
        #[command(flatten)]
        node: NodeArguments,
        /// Directory for `enter` and `ctl`; programs find it in CXI_MOCK_DIR
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        program: Program,
    },
    /// Keep a node until SIGTERM; run programs on it with `enter`
    Serve {
        #[command(flatten)]
        node: NodeArguments,
        /// Directory for `enter` and `ctl`
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
    /// Run a program on a node that is served
    Enter {
        #[command(flatten)]
        node: ServedNode,
        /// Become the program, and leave what it starts behind when it ends
        #[arg(long)]
        outlive: bool,
        #[command(flatten)]
        program: Program,
    },
    /// Look at a node or change it while it runs
    Ctl {
        #[command(flatten)]
        node: ServedNode,
        #[command(subcommand)]
        order: OrderArguments,
    },
    /// Serve a mock fabric manager until SIGTERM; prints where, as JSON
    FabricManager(FabricManagerArguments),
    /// Watch over a program and end everything that it started
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        parent: i32,
        #[arg(long)]
        more: u8,
        #[command(flatten)]
        program: Program,
    },
    /// Become a program
    #[command(hide = true)]
    Start {
        #[command(flatten)]
        program: Program,
    },
}

#[derive(Debug, Args)]
struct Program {
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

#[derive(Debug, Args)]
struct ServedNode {
    /// Directory of the node
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE)]
    dir: PathBuf,
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are switches")]
struct NodeArguments {
    /// Number of NICs [default: 1, or as in the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    nics: Option<u8>,
    /// Configuration as JSON: an object for NICs that are alike, or a list of objects
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a parameter of the driver's module
    #[arg(long, value_name = "PARAMETER=VALUE")]
    set: Vec<String>,
    /// Services that each NIC has from the start: specifications as for `cxi service create --from`,
    /// with --- between them
    #[arg(long, value_name = "FILE")]
    preset: Option<PathBuf>,
    /// Driver release
    #[arg(long, value_name = "RELEASE")]
    release: Option<DriverRelease>,
    /// Let something go wrong, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// Services live on in this file: a node goes on where the last one with it ended
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Note every command in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Freed LNIs are cleaned up by `ctl tick` only, and not every second
    #[arg(long)]
    manual_cleanup: bool,
    /// Count capabilities in the initial user namespace only, as the driver does
    #[arg(long)]
    strict_admin: bool,
    /// Give the node a network namespace of its own, in which netlink shows the NICs as hsn0, hsn1...
    #[arg(long)]
    network: bool,
    /// Run programs under the own user id, without privileges (ordinary users only)
    #[arg(long)]
    as_user: bool,
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            say(format_args!("{error}"));
            ExitCode::from(error.exit_status())
        }
    }
}

fn run(command: Command) -> Result<u8, ServeError> {
    match command {
        Command::Run { node, dir, program } => {
            let signals = Signals::take()?;
            launch::adopt_orphans()?;
            let control = dir.as_deref().map(Control::open).transpose()?;
            let variable = control
                .as_ref()
                .map(|control| (DIR_VARIABLE, control.dir().as_os_str().to_owned()));
            let running = node.start(control)?;
            let status = launch::run(&program.program, &signals, variable, None)?;
            running.save()?;
            Ok(status)
        }
        Command::Serve { node, dir } => {
            let signals = Signals::take()?;
            let control = Control::open(&dir)?;
            let running = node.start(Some(control))?;
            launch::until_ended(&signals)?;
            running.save()?;
            Ok(0)
        }
        Command::Enter {
            node,
            outlive,
            program,
        } => {
            let connection = Connection::open(&node.dir)?;
            let dir = std::path::absolute(&node.dir).unwrap_or(node.dir);
            connection.namespaces()?.join()?;
            let variable = Some((DIR_VARIABLE, dir.into_os_string()));
            if outlive {
                return Ok(launch::become_program(&program.program, variable));
            }
            let signals = Signals::take()?;
            launch::adopt_orphans()?;
            let lifeline = Some(connection.lifeline());
            launch::run(&program.program, &signals, variable, lifeline)
        }
        Command::Ctl { node, order } => {
            let answer = Connection::open(&node.dir)?.send(&order.into())?;
            if !answer.is_null() {
                print(&answer);
            }
            Ok(0)
        }
        Command::FabricManager(arguments) => fabric_manager::run(&arguments),
        Command::Guard {
            parent,
            more,
            program,
        } => launch::guard(parent, more, &program.program),
        Command::Start { program } => launch::start(&program.program),
    }
}

/// Prints for whoever still reads.
pub(crate) fn print(answer: &serde_json::Value) {
    let _ = writeln!(io::stdout(), "{answer:#}");
}

/// A node that is served by this process.
struct Running {
    node: Arc<Node>,
    _control: Option<ControlGuard>,
}

impl Running {
    /// Writes the state where it lives on.
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
    fn start(&self, control: Option<Control>) -> Result<Running, ServeError> {
        let state = self.state.as_deref().map(StateFile::take).transpose()?;
        let model = self.node(state.as_ref())?;
        let state = state.map(|file| Saver::new(file, &model));
        let trace = self.trace.as_deref().map(Trace::create).transpose()?;
        let route = privileges::check()?;
        let inside = if self.as_user {
            Inside::Oneself
        } else {
            Inside::Root
        };
        namespaces::separate(route, inside)?;
        let network = self.network.then(Network::separate).transpose()?;
        let fuse = privileges::open_fuse()?;
        let authority = if self.strict_admin {
            Authority::strict()
        } else {
            Authority::of_this_process()
        };
        let server = Arc::new(Server::new(model.nics(), authority, trace, state));
        let node = Arc::new(Node::start(server, fuse, !self.manual_cleanup, network)?);
        for fault in &self.fault {
            node.inject(fault).map_err(ServeError::Input)?;
        }
        let running = Running {
            _control: control.map(|control| control.serve(&node)).transpose()?,
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
            if let Some(path) = &self.preset {
                preset::make(&node, path)?;
            }
            return Ok(node);
        };
        if self.nics.is_some()
            || self.config.is_some()
            || self.release.is_some()
            || !self.set.is_empty()
        {
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
        let setup = match &self.config {
            Some(path) => setup::read(path)?,
            None => Setup::Alike(NicConfig::new()),
        };
        let node = match setup {
            Setup::Alike(mut config) => {
                self.adjust(&mut config)?;
                MockNode::with_nics(self.nics.unwrap_or(1), &config)
            }
            Setup::Each(mut configs) => {
                if self.nics.is_some() {
                    return Err(ServeError::Input(
                        "the configuration lists its NICs: leave out --nics".to_owned(),
                    ));
                }
                for config in &mut configs {
                    self.adjust(config)?;
                }
                MockNode::new(configs)
            }
        };
        node.map_err(|error| ServeError::Input(format!("the driver does not load: {error}")))
    }

    fn adjust(&self, config: &mut NicConfig) -> Result<(), ServeError> {
        if let Some(release) = self.release {
            config.release = release;
        }
        self.set
            .iter()
            .try_for_each(|assignment| setup::set(&mut config.params, assignment))
    }
}
