//! The command line.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};

use cxi_ioctl::Release;

use super::credentials::Authority;
use super::error::{Doing, ServeError};
use super::namespaces::{self, Inside};
use super::node::Node;
use super::server::Server;
use super::signals::Signals;
use super::trace::Trace;
use super::{launch, privileges, say};
use crate::{MockNode, NicConfig};

/// A node with mock CXI NICs, for any program.
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
        #[command(flatten)]
        program: Program,
    },
    /// Watch over a program and end everything that it started
    #[command(hide = true)]
    Guard {
        #[arg(long)]
        parent: i32,
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
struct NodeArguments {
    /// Number of NICs
    #[arg(long, value_name = "N", default_value_t = 1)]
    nics: u8,
    /// Configuration of the NICs, as JSON
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Driver release
    #[arg(long, value_name = "RELEASE")]
    release: Option<Release>,
    /// Note every command in this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Count capabilities in the initial user namespace only, as the driver does
    #[arg(long)]
    strict_admin: bool,
    /// Run programs under the own user id, without privileges (ordinary users only)
    #[arg(long)]
    as_user: bool,
}

/// Runs the command.
pub(super) fn main() -> ExitCode {
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
        Command::Run { node, program } => {
            let signals = Signals::take()?;
            launch::adopt_orphans()?;
            let _node = node.start()?;
            launch::run(&program.program, &signals, None)
        }
        Command::Guard { parent, program } => launch::guard(parent, &program.program),
        Command::Start { program } => launch::start(&program.program),
    }
}

impl NodeArguments {
    /// Makes the node and moves this process into it.
    fn start(&self) -> Result<Node, ServeError> {
        let node = self.node()?;
        let trace = self.trace.as_deref().map(Trace::create).transpose()?;
        let route = privileges::check()?;
        let inside = if self.as_user {
            Inside::Oneself
        } else {
            Inside::Root
        };
        namespaces::separate(route, inside)?;
        let fuse = privileges::open_fuse()?;
        let authority = if self.strict_admin {
            Authority::strict()
        } else {
            Authority::of_this_process()
        };
        let server = Arc::new(Server::new(node.nics(), authority, trace));
        Node::start(server, fuse)
    }

    fn node(&self) -> Result<MockNode, ServeError> {
        let mut config: NicConfig = match &self.config {
            Some(path) => {
                let text = fs::read(path).doing(|| format!("read {}", path.display()))?;
                serde_json::from_slice(&text)
                    .map_err(|error| ServeError::Input(format!("{}: {error}", path.display())))?
            }
            None => NicConfig::new(),
        };
        if let Some(release) = self.release {
            config.release = release;
        }
        MockNode::alike(self.nics, &config)
            .map_err(|error| ServeError::Input(format!("the driver does not load: {error}")))
    }
}
