//! The CNI plugin `cxi-cni`, as a library for its `main` and for tests: services for the network
//! namespace of a pod, on all NICs or on none.
//!
//! Other programs should build on the crate `cxi-job` instead. The configuration is described in
//! `docs/integration/containers.md`.
#![forbid(unsafe_code)]

mod call;
mod config;
mod error;
mod help;
mod plugin;
mod record;
mod version;
mod vni_source;

use std::io::{self, Write as _};
use std::process::ExitCode;

use cxi::Host;
use cxi_job::Node;
use cxi_job::cluster::keys::node_lock;
use cxi_site::input;
use cxi_site::settings::Settings;

pub use call::{Call, Command};
pub use config::Config;
pub use error::{Code, Error};
pub use plugin::Plugin;
pub use record::Attachment;
pub use version::Version;

/// Far larger than a configuration with a result.
const LONGEST: u64 = 16 << 20;

/// Runs the plugin: parameters from the environment, the configuration from standard input, the
/// result or the error on standard output. A person may ask for help.
#[must_use]
pub fn run() -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let arguments: Vec<String> =
        arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    match help::answer(&arguments) {
        None => {}
        Some(Ok(text)) => {
            // If the stream is closed, there is no reader.
            let _ = writeln!(io::stdout(), "{text}");
            return ExitCode::SUCCESS;
        }
        Some(Err(text)) => {
            let _ = writeln!(io::stderr(), "{text}");
            return ExitCode::from(2);
        }
    }
    let (input, read) = match input::stdin(LONGEST).and_then(input::text) {
        Ok(text) => (text, Ok(())),
        Err(error) => (String::new(), Err(error)),
    };
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let answer = read
        .map_err(|error| Error::new(Code::Io, format!("standard input cannot be read: {error}")))
        .and_then(|()| Call::parse(&variable, &input))
        .and_then(|call| answer(&call));
    let (text, code) = match answer {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => (error.to_json(Version::of(&input)), ExitCode::FAILURE),
    };
    match writeln!(io::stdout(), "{text}") {
        Ok(()) => code,
        // The runtime sees a failure and calls DEL.
        Err(_) => ExitCode::FAILURE,
    }
}

fn answer(call: &Call) -> Result<String, Error> {
    let (command, config) = match call {
        Call::Version(version) => return Ok(version.supported()),
        Call::Network(command, config) => (command, config),
    };
    let lock = Settings::load(None).and_then(|settings| node_lock(&settings));
    let lock = lock.map_err(|error| Error::new(Code::Configuration, error.to_string()))?;
    let node = Node::discover(&Host::system())
        .map_err(|error| Error::new(Code::Nic, error.to_string()))?;
    Plugin::new(node.with_lock(lock), config)?.answer(command)
}
