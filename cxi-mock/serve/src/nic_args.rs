//! How NICs and nodes are set up: arguments of `run`, `serve` and `cluster`.

use std::path::PathBuf;

use clap::Args;
use cxi_ioctl::DriverRelease;
use cxi_mock::NicConfig;

use super::credentials::Authority;
use super::error::ServeError;
use super::setup::{self, Setup};
use super::trap::Doorbells;

#[derive(Debug, Args)]
pub(crate) struct NicArguments {
    /// Number of NICs of a node [default: 1, or as in the configuration]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) nics: Option<u8>,
    /// Configuration as JSON: an object for NICs that are alike, or a list of objects; of a
    /// cluster, a list with a list for each node
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Set a parameter of the driver's module
    #[arg(long, value_name = "PARAMETER=VALUE")]
    pub(crate) set: Vec<String>,
    /// Services that each NIC has from the start: specifications as for `cxi service create
    /// --from`, with --- between them
    #[arg(long, value_name = "FILE")]
    pub(crate) preset: Option<PathBuf>,
    /// Driver release
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: Option<DriverRelease>,
    /// Inject a fault, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,
    /// How a NIC notices a store to a doorbell
    #[arg(long, value_enum, default_value_t)]
    pub(crate) doorbells: Doorbells,
    /// Freed LNIs are cleaned up by `ctl tick` only, and not every second
    #[arg(long)]
    pub(crate) manual_cleanup: bool,
    /// Count capabilities in the initial user namespace only, as the driver does
    #[arg(long)]
    strict_admin: bool,
    /// Give a node a network namespace of its own, in which netlink shows the NICs as hsn0, hsn1...
    #[arg(long)]
    pub(crate) network: bool,
}

impl NicArguments {
    /// What the configuration says over `base`, with the other arguments on top.
    pub(crate) fn setup(&self, base: NicConfig) -> Result<Setup, ServeError> {
        let mut setup = match &self.config {
            Some(path) => setup::read(path, &base)?,
            None => Setup::Alike(base),
        };
        match &mut setup {
            Setup::Alike(config) => self.adjust(config)?,
            Setup::Each(configs) => configs
                .iter_mut()
                .try_for_each(|config| self.adjust(config))?,
            Setup::Nodes(nodes) => nodes
                .iter_mut()
                .flatten()
                .try_for_each(|config| self.adjust(config))?,
        }
        if self.nics.is_some() && !matches!(setup, Setup::Alike(_)) {
            return Err(ServeError::Input(
                "the configuration lists its NICs: leave out --nics".to_owned(),
            ));
        }
        Ok(setup)
    }

    /// Whether anything says what the NICs are.
    pub(crate) fn says_what(&self) -> bool {
        self.nics.is_some()
            || self.config.is_some()
            || self.release.is_some()
            || !self.set.is_empty()
    }

    /// Where capabilities count.
    pub(crate) fn authority(&self) -> Authority {
        if self.strict_admin {
            Authority::strict()
        } else {
            Authority::of_this_process()
        }
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
