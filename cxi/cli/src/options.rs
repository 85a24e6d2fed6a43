//! Options of every command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anstream::ColorChoice;
use clap::{Args, ValueEnum};
use cxi::Host;
use cxi::environment;
use cxi_ioctl::DriverRelease;
use cxi_mock::FaultSpec;
use cxi_site::settings::Directories;
use tempfile::TempDir;

use crate::args::{NicChoice, interval, release};
use crate::exit::Failure;
use crate::output::log::{self, LogFormat};
use crate::output::{Format, nic_names};
use crate::settings::{self, Settings};

/// Options of every command.
#[derive(Clone, Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option")]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// NICs to work on: cxi0, cxi0-3, a list of these, or all [default: all]
    #[arg(short, long, global = true, value_name = "NICS")]
    pub(crate) device: Option<NicChoice>,
    /// Print JSON; errors too, one object per line on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Format of the result [default: table]
    #[arg(short = 'o', long, global = true, value_name = "FORMAT", conflicts_with = "json")]
    format: Option<Format>,
    /// Suppress warnings and progress messages
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Rerun a read-only command every 2s, or every TIME, until Ctrl-C
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        value_parser = interval,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s"
    )]
    pub(crate) watch: Option<Duration>,
    /// Print each command that is sent to a NIC, and its answer, on standard error, as with RUST_LOG=debug
    #[arg(long, global = true)]
    trace: bool,
    /// Colors on standard output and standard error [default: auto]
    #[arg(long, global = true, value_name = "WHEN")]
    color: Option<Color>,
    /// Format of messages on standard error; the environment variable CXI_LOG_FORMAT can also name
    /// it [default: text, or objects without a time with --json]
    #[arg(long, global = true, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Settings file; the environment variable CXI_CONFIG can also name it [default:
    /// /etc/cxi/cxi.toml, if it exists]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[arg(skip)]
    pub(crate) settings: Settings,
    /// Work as root on a mock node. A file preserves its services between calls; the environment
    /// variable CXI_MOCK can also name it. Records, lock and pool are in STATE.json.d
    #[arg(
        long,
        global = true,
        value_name = "STATE.json",
        num_args = 0..=1,
        require_equals = true,
    )]
    #[allow(clippy::option_option, reason = "how clap expresses an optional value")]
    pub(crate) mock: Option<Option<PathBuf>>,
    /// `true` if the variable names the mock node.
    #[arg(skip)]
    pub(crate) mock_by_variable: bool,
    /// The records of a mock node without a file.
    #[arg(skip)]
    scratch: Option<Arc<TempDir>>,
    /// Number of NICs of a new mock node [default: 2]
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) mock_nics: Option<u8>,
    /// Driver of a new mock node [default: shs-14.0.1]
    #[arg(long, global = true, value_name = "RELEASE", value_parser = release())]
    pub(crate) mock_release: Option<DriverRelease>,
    /// Make the mock node fail, such as SVC_DESTROY:EBUSY:times=3, cxi1:EIO:after=100,
    /// SVC_ALLOC:short=TXQ:96 or cxi1:unplug; the environment variable CXI_MOCK_FAULT can also name
    /// faults
    #[arg(long, global = true, value_name = "FAULT", value_delimiter = ',')]
    pub(crate) mock_fault: Vec<FaultSpec>,
}

/// When to print colors.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    Always,
    Never,
}

impl Common {
    /// Chooses the form of results and messages.
    pub(crate) fn choose_forms(&mut self) -> Result<(), Failure> {
        self.json |= self.format == Some(Format::Json);
        if self.json {
            Format::Json.choose();
        } else if let Some(format) = self.format {
            format.choose();
        }
        if self.quiet {
            log::be_quiet();
        }
        match self.color {
            Some(Color::Always) => ColorChoice::Always.write_global(),
            Some(Color::Never) => ColorChoice::Never.write_global(),
            Some(Color::Auto) | None => {}
        }
        let format = match (self.log_format, variable(LOG_FORMAT)) {
            (None, Some(word)) => Some(parse_format(&word)?),
            (option, _) => option,
        };
        if let Some(format) = format {
            log::choose(format);
        }
        Ok(())
    }

    /// Takes what the command line leaves out from environment variables, which scripts that call
    /// `cxi` inherit, and from the settings of this machine. An empty variable counts as unset, and
    /// faults are ignored unless the node is a mock.
    pub(crate) fn complete(&mut self) -> Result<(), Failure> {
        if self.mock.is_none() {
            self.mock = variable(MOCK).map(|file| Some(file.into()));
            self.mock_by_variable = self.mock.is_some();
        }
        let directories = match &self.mock {
            None => None,
            Some(Some(state)) => Some(Directories::of_mock(state)),
            Some(None) => {
                let scratch = tempfile::Builder::new().prefix("cxi-mock-").tempdir();
                let scratch = scratch.map_err(|error| {
                    Failure::failed(format!(
                        "cannot create a directory for the mock node's records: {error}"
                    ))
                })?;
                let path = scratch.path().to_owned();
                self.scratch = Some(Arc::new(scratch));
                Some(Directories::Mock(path))
            }
        };
        self.settings = settings::load(self.config.as_deref(), directories)?;
        self.warn_of_forgotten_mock();
        if self.mock.is_some()
            && self.mock_fault.is_empty()
            && let Some(faults) = variable(FAULTS)
        {
            self.mock_fault = parse_faults(&faults)?;
        }
        Ok(())
    }

    /// If the variable was set for a test and forgotten, every command would succeed without changing
    /// this machine's NICs.
    fn warn_of_forgotten_mock(&self) {
        let (true, Some(Some(state))) = (self.mock_by_variable, &self.mock) else { return };
        let ids = Host::system().device_ids().unwrap_or_default();
        if !ids.is_empty() {
            let warning = format!(
                "{MOCK} names the mock node {}: this machine's {} is not used",
                state.display(),
                nic_names(&ids)
            );
            log::print_warnings(&[warning], self.json);
        }
    }

    /// Returns whether commands to NICs are printed.
    pub(crate) fn is_traced(&self) -> bool {
        let asks = |word: &str| {
            let level = word.strip_prefix("cxi_ioctl=").unwrap_or(word);
            matches!(level, "debug" | "trace")
        };
        let logged = variable("RUST_LOG").unwrap_or_default();
        self.trace || logged.to_string_lossy().split(',').any(asks)
    }

    /// The file or directory of this machine that an option names, or else the usual one. A command
    /// for a mock node has to name it.
    pub(crate) fn machine_path(
        &self,
        option: &'static str,
        named: Option<&PathBuf>,
        usual: &'static str,
    ) -> Result<PathBuf, Failure> {
        match named {
            Some(path) => Ok(path.clone()),
            None if self.mock.is_none() => Ok(usual.into()),
            None => Err(Failure::bad_input(format!(
                "{usual} belongs to this machine, and the command is for a mock node: name \
                 another path with {option}"
            ))),
        }
    }
}

fn variable(name: &str) -> Option<OsString> {
    environment::var_os(name).filter(|value| !value.is_empty())
}

/// The variable that names a mock node.
pub(crate) const MOCK: &str = "CXI_MOCK";
const LOG_FORMAT: &str = "CXI_LOG_FORMAT";

fn parse_format(word: &OsString) -> Result<LogFormat, Failure> {
    let word = word.to_string_lossy();
    LogFormat::from_str(&word, false).map_err(|_| {
        Failure::bad_input(format!(
            "{LOG_FORMAT}: invalid value '{word}': expected text, json or journal"
        ))
    })
}

const FAULTS: &str = "CXI_MOCK_FAULT";

fn parse_faults(faults: &OsString) -> Result<Vec<FaultSpec>, Failure> {
    let faults = faults.to_string_lossy();
    faults
        .split(',')
        .map(|fault| {
            fault.parse().map_err(|error| Failure::bad_input(format!("{FAULTS}: {error}")))
        })
        .collect()
}
