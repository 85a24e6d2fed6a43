//! The command line of `cxi-mock cluster`.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::{Cluster, MOST_NODES, mpi};
use crate::control::{Connection, Control, Served as _};
use crate::error::{ServeError, say};
use crate::launch::{self, DIR_VARIABLE, Launch, NODE_VARIABLE, Program, Signals};
use crate::namespaces::{Namespaces, Variable, variables};
use crate::order::{ClusterOrder, Order, chance};
use crate::setup::{FileArguments, NicArguments};
use crate::view::ViewArguments;

/// The place of a program among those that were started together, from 0.
const RANK_VARIABLE: &str = "CXI_MOCK_RANK";
/// Variable with the number of processes that were started together.
const RANKS_VARIABLE: &str = "CXI_MOCK_RANKS";

/// Options of a cluster.
#[derive(Debug, Args)]
pub(crate) struct ClusterOptions {
    /// Number of nodes [default: 2, or as in the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(MOST_NODES)))]
    pub(super) nodes: Option<u16>,
    #[command(flatten)]
    pub(super) nics: NicArguments,
    #[command(flatten)]
    pub(super) files: FileArguments,
    /// Lose this share of the packets between NICs, such as 1%; NICs retransmit them
    #[arg(long, value_name = "SHARE", value_parser = chance)]
    pub(super) loss: Option<u16>,
    #[command(flatten)]
    pub(super) view: ViewArguments,
    /// Also serve a fabric manager for hardware collectives; FILE configures it, as JSON
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[allow(clippy::option_option, reason = "an option whose value is optional, to clap")]
    pub(super) fabric_manager: Option<Option<PathBuf>>,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArguments {
    #[command(flatten)]
    options: ClusterOptions,
    /// Directory for `run`, `enter` and `ctl`; programs find it in CXI_MOCK_DIR
    #[arg(long, value_name = "DIR", env = DIR_VARIABLE, global = true)]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<ClusterCommand>,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Run a program on every node
    ///
    /// With --nodes or other cluster options before `run`, the cluster exists as long as the program
    /// runs; otherwise it is the one of --dir. Programs find their rank in CXI_MOCK_RANK, from 0 to
    /// CXI_MOCK_RANKS - 1, and their node in CXI_MOCK_NODE. The exit status is the highest of all.
    Run {
        /// Only on these nodes, such as n1,n3
        #[arg(long, value_name = "NODES", value_delimiter = ',')]
        on: Vec<String>,
        /// Print the number of the process before each line
        #[arg(long)]
        label: bool,
        #[command(flatten)]
        program: Program,
    },
}

impl ClusterArguments {
    pub(crate) fn run(self) -> Result<u8, ServeError> {
        match &self.command {
            None => self.serve(),
            Some(ClusterCommand::Run { on, label, program }) => {
                mpi::warn_of_ranks_alone(&program.program);
                match &self.dir {
                    Some(dir) if !self.options.makes_one() => run_there(dir, on, *label, program),
                    _ => self.run_here(on, *label, program),
                }
            }
        }
    }

    fn serve(&self) -> Result<u8, ServeError> {
        let dir = self.dir.as_deref().ok_or_else(|| {
            ServeError::Input(
                "no program could use the cluster: name a directory for it with --dir, or run a program \
                 on it, such as cxi-mock cluster --nodes 4 run -- hostname"
                    .to_owned(),
            )
        })?;
        let signals = Signals::take()?;
        let control = Control::open(dir)?;
        let cluster = Cluster::start(&self.options)?;
        let _guard = control.serve(Arc::<Cluster>::clone(&cluster))?;
        say(format_args!(
            "the cluster is ready: cxi-mock enter --dir {} --node n1 -- PROGRAM",
            dir.display()
        ));
        launch::until_ended(&signals)?;
        cluster.end();
        Ok(0)
    }

    /// Runs a program on a cluster that exists for as long as the program runs.
    fn run_here(&self, on: &[String], label: bool, program: &Program) -> Result<u8, ServeError> {
        let signals = Signals::take()?;
        launch::adopt_orphans()?;
        let control = self.dir.as_deref().map(Control::open).transpose()?;
        let dir = control.as_ref().map(|control| control.variable().1);
        let cluster = Cluster::start(&self.options)?;
        let place = |node: &str| cluster.namespaces(Some(node)).map_err(ServeError::Input);
        let places = places(on, cluster.nodes_up(), place)?;
        let serve = |control: Control| control.serve(Arc::<Cluster>::clone(&cluster));
        let _guard = control.map(serve).transpose()?;
        let job = cluster.start_job().unwrap_or_else(|error| {
            without_collectives(&error);
            None
        });
        let job_variables = job.as_ref().map(|job| job.variables()).unwrap_or_default();
        let launches = launches(&places, label, program, dir, job_variables);
        let status = launch::run(&launches, &signals, None)?;
        cluster.end();
        Ok(status)
    }
}

impl ClusterOptions {
    /// A cluster of which nothing is kept or recorded.
    pub(crate) fn plain(nodes: u16, nics: NicArguments, as_user: bool) -> Self {
        let files = FileArguments::default();
        let view = ViewArguments { as_user, door: None };
        Self { nodes: Some(nodes), nics, files, loss: None, view, fabric_manager: None }
    }

    /// Returns whether anything is said of a cluster to make.
    fn makes_one(&self) -> bool {
        self.says_what()
            || self.files.any()
            || self.loss.is_some()
            || self.fabric_manager.is_some()
            || self.view.as_user
            || self.view.door.is_some()
    }

    /// Returns whether anything says what the nodes are.
    pub(super) fn says_what(&self) -> bool {
        self.nodes.is_some() || self.nics.says_what()
    }
}

/// Runs a program on a cluster that is served.
fn run_there(dir: &Path, on: &[String], label: bool, program: &Program) -> Result<u8, ServeError> {
    let connection = Connection::open(dir)?;
    let up = connection.send(None, Order::Cluster(ClusterOrder::Nodes))?;
    let up: Vec<String> = serde_json::from_value(up).unwrap_or_default();
    let place = |node: &str| connection.namespaces(Some(node)).map(Arc::new);
    let places = places(on, up, place)?;
    if let Some((_, place)) = places.first() {
        place.join_user()?;
    }
    let signals = Signals::take()?;
    launch::adopt_orphans()?;
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let job = connection.send(None, Order::Job).unwrap_or_else(|error| {
        without_collectives(&error);
        Value::Null
    });
    let job_variables: Vec<Variable> = serde_json::from_value(job).unwrap_or_default();
    let launches = launches(&places, label, program, Some(dir.into_os_string()), &job_variables);
    launch::run(&launches, &signals, Some(connection.lifeline()))
}

/// Says that the fabric manager refused a job. Its programs run, as on a machine without one.
pub(super) fn without_collectives(why: &dyn fmt::Display) {
    say(format_args!("the programs run without hardware collectives: {why}"));
}

/// The nodes to run on, with their namespaces; those that run, if none is named.
fn places(
    on: &[String],
    up: Vec<String>,
    place: impl Fn(&str) -> Result<Arc<Namespaces>, ServeError>,
) -> Result<Vec<(String, Arc<Namespaces>)>, ServeError> {
    let names = if on.is_empty() { up } else { on.to_vec() };
    let placed = names.into_iter().map(|name| {
        let place = place(&name)?;
        Ok((name, place))
    });
    placed.collect()
}

fn launches<'a>(
    places: &[(String, Arc<Namespaces>)],
    label: bool,
    program: &'a Program,
    dir: Option<OsString>,
    of_job: &[Variable],
) -> Vec<Launch<'a>> {
    let dir = dir.map(|dir| (DIR_VARIABLE.into(), dir));
    let launch = |(rank, (node, place)): (usize, &(String, Arc<Namespaces>))| Launch {
        program: &program.program,
        variables: variables([
            (NODE_VARIABLE, node.clone()),
            (RANK_VARIABLE, rank.to_string()),
            (RANKS_VARIABLE, places.len().to_string()),
        ])
        .into_iter()
        .chain(dir.clone())
        .chain(of_job.iter().cloned())
        .collect(),
        place: Some(Arc::clone(place)),
        label: label.then(|| rank.to_string()),
    };
    places.iter().enumerate().map(launch).collect()
}
