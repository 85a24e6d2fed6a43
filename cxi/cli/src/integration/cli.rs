//! The command line of `cxi integration`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use crate::exit::Failure;
use crate::options::Common;

#[derive(Debug, Subcommand)]
pub(crate) enum IntegrationCommand {
    /// Write the scripts and settings for a scheduler, which nothing runs yet
    ///
    /// Existing settings are not changed, and neither is a script that somebody has edited.
    Install {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        /// Replace scripts that somebody has edited, too
        #[arg(long)]
        force: bool,
    },
    /// Let systemd run the scripts for a scheduler on this machine
    ///
    /// Writes the scripts like install, and units and drop-ins for systemd, which then reads them.
    /// Without --yes, prints the differences instead. Refuses on a node that has services of which no
    /// record says who made them.
    Enable {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        /// Directory of systemd's units [default: /etc/systemd/system]
        #[arg(long, value_name = "DIR")]
        systemd: Option<PathBuf>,
        /// Only what a machine of this role runs
        #[arg(long)]
        role: Option<Role>,
        /// Enable although there are services of which no record says who made them
        #[arg(long)]
        despite_services: bool,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Remove what install and enable have written
    ///
    /// Stops its units. Files that somebody has edited are kept and named. Refuses while the
    /// scheduler's settings name one of the files.
    Disable {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Show what install and enable have written, what somebody has edited since, and what this version
    /// of cxi would write otherwise
    #[command(visible_aliases = ["show", "list", "ls"])]
    Status {
        /// The scheduler
        scheduler: Scheduler,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Directory for scripts and settings [default: /etc/cxi]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Work on the image of a machine whose root directory is DIR: all paths are below it, and are
    /// written without it
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Place {
    pub(super) fn machine(&self, common: &Common) -> Result<Machine, Failure> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| Failure::unwritten(path, &error))
        };
        let root = self.root.as_deref().map(absolute).transpose()?;
        let machine = Machine { root, prefix: PathBuf::new() };
        let prefix = machine.path(common, "--prefix", self.prefix.as_ref(), PREFIX)?;
        Ok(Machine { prefix, ..machine })
    }
}

/// The directory in the templates.
pub(super) const PREFIX: &str = "/etc/cxi";

/// Places of the files of a machine.
pub(super) struct Machine {
    root: Option<PathBuf>,
    /// The directory for scripts and settings.
    pub(super) prefix: PathBuf,
}

impl Machine {
    /// A directory of the machine.
    pub(super) fn path(
        &self,
        common: &Common,
        option: &'static str,
        named: Option<&PathBuf>,
        usual: &'static str,
    ) -> Result<PathBuf, Failure> {
        let path = match named {
            // That of an image does not belong to this machine.
            None if self.root.is_some() => usual.into(),
            _ => common.machine_path(option, named, usual)?,
        };
        std::path::absolute(&path).map_err(|error| Failure::unwritten(&path, &error))
    }

    /// Returns whether it is the image of another machine.
    pub(super) fn is_image(&self) -> bool {
        self.root.is_some()
    }

    /// Path here of a file of the machine.
    pub(super) fn here(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    /// Path on the machine of a file that is here.
    pub(super) fn there(&self, path: PathBuf) -> PathBuf {
        let below = self.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
        below.map(|below| Path::new("/").join(below)).unwrap_or(path)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Scheduler {
    Slurm,
    Flux,
}

impl Scheduler {
    pub(super) const ALL: [Self; 2] = [Self::Slurm, Self::Flux];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::Flux => "flux",
        }
    }
}

/// Part of a machine in the cluster.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Role {
    Controller,
    Node,
}

impl Role {
    /// Returns whether only a machine of the other role runs this unit.
    pub(super) fn is_without(self, unit: &str) -> bool {
        let others: &[&str] = match self {
            Self::Controller => &["slurmd.service.d/", "cxi-flux-clean."],
            Self::Node => &["slurmctld.service.d/", "cxi-slurm-sweep.", "cxi-flux-sweep."],
        };
        others.iter().any(|other| unit.starts_with(other))
    }
}
