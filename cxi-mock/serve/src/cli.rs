//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, iter};

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use super::cluster::{ClusterArguments, MpiArguments};
use super::control::{Connection, Control};
use super::error::{ServeError, print, say};
use super::fabric_manager::{self, FabricManagerArguments};
use super::launch::{self, DIR_VARIABLE, Launch, NODE_VARIABLE, Program, Signals};
use super::namespaces::{Inside, variables};
use super::order::Order;
use super::running::NodeArguments;
use super::sweep::SweepArguments;
use super::{agent, generate, packets, privileges};

/// A node with mock CXI NICs, for any program.
///
/// Exit status: that of the program, or 128 plus the signal's number if a signal ended it; 77 if
/// this machine or user cannot serve a node; 125 if something else went wrong.
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
    /// Serve a node until SIGTERM; run programs on it with `enter`
    Serve {
        #[command(flatten)]
        node: NodeArguments,
        /// Directory for `enter` and `ctl`
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
    /// Serve several nodes on one fabric until SIGTERM, or run a program on each of them
    Cluster(ClusterArguments),
    /// Run an MPI launcher on a cluster, as a scheduler's job
    Mpi(MpiArguments),
    /// Run a program with every failure of every command, each time on another node
    ///
    /// The program runs once without a failure, to count its commands to each NIC, and then once for
    /// each command and each way in which it can fail. What it leaves on the NICs, or a success that
    /// it claims although something was not done, is a finding; so is what --check says.
    ///
    /// Exit status: 0 without findings; 1 with findings; 77 if this machine or user cannot serve a
    /// node; 125 if there is no report, for one because the program fails without any failure.
    Sweep(Box<SweepArguments>),
    /// Run a program on a running node
    Enter {
        #[command(flatten)]
        node: ServedNode,
        /// Become the program, and leave the processes that it starts running when it ends
        #[arg(long)]
        outlive: bool,
        #[command(flatten)]
        program: Program,
    },
    /// Inspect or change a running node
    Ctl {
        #[command(flatten)]
        node: ServedNode,
        #[command(subcommand)]
        order: Order,
    },
    /// Serve a mock fabric manager until SIGTERM; prints its URLs, as JSON
    FabricManager(FabricManagerArguments),
    /// Print a completion script
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write manual pages to a directory
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
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
    /// Run a command on another node of the cluster, as ssh does
    ///
    /// Works on the nodes of a cluster, where launchers also find it as `ssh`. A shell on the other
    /// node runs the command, with this environment and directory. Options of ssh other than -n are
    /// ignored.
    Rsh {
        /// Options, the node, and the command
        #[arg(
            value_name = "HOST COMMAND",
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        words: Vec<OsString>,
    },
    /// Be process 1 of a node
    #[command(hide = true)]
    Init,
    /// Try whether programs can see a node
    #[command(hide = true)]
    Probe {
        #[arg(long)]
        as_user: bool,
    },
}

#[derive(Debug, Args)]
struct ServedNode {
    /// Directory of the node, or of its cluster
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE)]
    dir: PathBuf,
    /// The node of a cluster, such as n2
    #[arg(long, value_name = "NODE", env = NODE_VARIABLE)]
    node: Option<String>,
}

/// Runs the command.
pub(crate) fn main() -> ExitCode {
    let mut words = env::args_os();
    let name = words.next().map(PathBuf::from).unwrap_or_default();
    let done = match name.file_name() {
        // On the nodes of a job it has this name, too.
        Some(name) if name == "ssh" => agent::ssh(&words.collect::<Vec<_>>()),
        _ => run(Arguments::parse().command),
    };
    match done {
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
            let running = node.start(control)?;
            let launch = Launch {
                program: &program.program,
                variables: running.variables(),
                place: None,
                label: None,
            };
            let status = launch::run(&[launch], &signals, None)?;
            running.end();
            Ok(status)
        }
        Command::Serve { node, dir } => {
            let signals = Signals::take()?;
            let control = Control::open(&dir)?;
            let running = node.start(Some(control))?;
            say(format_args!(
                "the node is ready: cxi-mock enter --dir {} -- PROGRAM",
                dir.display()
            ));
            launch::until_ended(&signals)?;
            running.end();
            Ok(0)
        }
        Command::Cluster(arguments) => arguments.run(),
        Command::Mpi(arguments) => arguments.run(),
        Command::Sweep(arguments) => arguments.run(),
        Command::Enter { node: ServedNode { dir, node }, outlive, program } => {
            let connection = Connection::open(&dir)?;
            let place = connection.namespaces(node.as_deref())?;
            place.join_user()?;
            let dir = std::path::absolute(&dir).unwrap_or(dir).into_os_string();
            let node = node.map(|node| (NODE_VARIABLE, node.into()));
            let launch = Launch {
                program: &program.program,
                variables: variables(iter::once((DIR_VARIABLE, dir)).chain(node)),
                place: Some(Arc::new(place)),
                label: None,
            };
            if outlive {
                return launch::outlive(&launch);
            }
            let signals = Signals::take()?;
            launch::adopt_orphans()?;
            launch::run(&[launch], &signals, Some(connection.lifeline()))
        }
        Command::Ctl { node: ServedNode { dir, node }, order: Order::Packets { count, json } } => {
            packets::show(&Connection::open(&dir)?, node.as_deref(), count, json)
        }
        Command::Ctl { node, order } => {
            let answer = Connection::open(&node.dir)?.send(node.node.as_deref(), order)?;
            if !answer.is_null() {
                print(&answer);
            }
            Ok(0)
        }
        Command::FabricManager(arguments) => fabric_manager::run(&arguments),
        Command::Completions { shell } => {
            generate::completions(Arguments::command(), shell);
            Ok(0)
        }
        Command::Man { directory } => {
            generate::man(&Arguments::command(), &directory)?;
            Ok(0)
        }
        Command::Guard { parent, more, program } => launch::guard(parent, more, &program.program),
        Command::Start { program } => launch::start(&program.program),
        Command::Rsh { words } => agent::ssh(&words),
        Command::Init => agent::init(),
        Command::Probe { as_user } => privileges::probe(Inside::new(as_user)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_pages_are_written_for_what_users_call() {
        let directory = tempfile::tempdir().expect("a directory");
        generate::man(&Arguments::command(), directory.path()).expect("pages");
        let page = |name: &str| std::fs::read_to_string(directory.path().join(name));
        let main = page("cxi-mock.1").expect("the page of the command");
        for part in [".SH NAME", ".SH EXIT STATUS", ".SH EXAMPLES", "cxi\\-mock\\-cluster(1)"] {
            assert!(main.contains(part), "{part} in {main}");
        }
        let below = page("cxi-mock-ctl-fault.1").expect("the page of a subcommand");
        assert!(below.contains(".SH EXAMPLES"), "{below}");
        assert!(page("cxi-mock-guard.1").is_err(), "it is hidden");
        let nowhere = generate::man(&Arguments::command(), "/nowhere".as_ref()).unwrap_err();
        let message = nowhere.to_string();
        assert!(message.starts_with("cannot write manual pages to /nowhere: "), "{message}");
    }
}
