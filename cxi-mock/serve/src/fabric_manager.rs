//! `cxi-mock fabric-manager`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use cxi_fabric_manager::{Config, MockFabricManager};
use serde_json::{Value, json};

use super::error::{Doing, ServeError, print};
use super::input;
use super::launch::{self, Signals};

#[derive(Debug, Args)]
pub(crate) struct FabricManagerArguments {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Address of the control port: faults, restarts, the journal
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    control: SocketAddr,
    /// Configuration as JSON: prefix, access, settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Serves until a signal ends it.
pub(crate) fn run(arguments: &FabricManagerArguments) -> Result<u8, ServeError> {
    let config = arguments.config.as_deref().map(read).transpose()?;
    // Signals are taken before there are threads, so that all threads inherit the mask.
    let signals = Signals::take()?;
    let manager = serve(config.unwrap_or_default(), arguments.listen, arguments.control)?;
    print(&urls(&manager));
    launch::until_ended(&signals)?;
    Ok(0)
}

/// Serves a fabric manager at an address, and takes orders at another.
pub(crate) fn serve(
    config: Config,
    listen: SocketAddr,
    control: SocketAddr,
) -> Result<MockFabricManager, ServeError> {
    MockFabricManager::bind(config, listen)
        .doing(|| format!("serve a fabric manager on {listen}"))?
        .with_control(control)
        .doing(|| format!("listen on the control port {control}"))
}

/// Returns the addresses of a fabric manager.
pub(crate) fn urls(manager: &MockFabricManager) -> Value {
    let control = manager.control_address();
    json!({
        "url": manager.url(),
        "multicasts_url": manager.multicasts_url(),
        "token_url": manager.token_url(),
        "control_url": control.map(|address| format!("http://{address}")),
    })
}

/// Reads a configuration.
pub(crate) fn read(path: &Path) -> Result<Config, ServeError> {
    serde_json::from_slice(&input::read(path)?)
        .map_err(|error| ServeError::Input(format!("{}: {error}", path.display())))
}
