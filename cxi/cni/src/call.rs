//! The call of the runtime: the environment and standard input.

use std::path::PathBuf;

use crate::config::Config;
use crate::error::{Code, Error};
use crate::record::Attachment;
use crate::version::Version;

/// A call of the plugin.
#[derive(Debug)]
pub enum Call {
    /// VERSION, with that of the configuration.
    Version(Version),
    /// Anything else, for a network.
    Network(Command, Box<Config>),
}

/// A command for a network.
#[derive(Debug)]
pub enum Command {
    /// ADD: create services for a pod.
    Add(Container),
    /// DEL: destroy them. The network namespace may already be gone.
    Del(Container),
    /// CHECK: check that the pod still has them.
    Check(Container),
    /// STATUS: check that ADD would succeed.
    Status,
    /// GC: destroy services of attachments that no longer exist.
    Gc,
}

/// The parameters of a container.
#[derive(Debug)]
pub struct Container {
    pub(crate) attachment: Attachment,
    /// The file of the network namespace; DEL may have none.
    pub(crate) netns: Option<PathBuf>,
    /// The pairs of `CNI_ARGS`.
    pub(crate) arguments: Vec<(String, String)>,
}

impl Call {
    /// Parses a call.
    ///
    /// # Errors
    ///
    /// A variable is missing or invalid, the configuration is invalid, or its version is too old
    /// for the command.
    pub fn parse(
        variable: &dyn Fn(&str) -> Option<String>,
        configuration: &str,
    ) -> Result<Self, Error> {
        let name = needed(variable, "CNI_COMMAND")?;
        if name == "VERSION" {
            return Ok(Self::Version(Version::of(configuration)));
        }
        let config = Config::parse(configuration)?;
        let container = |netns| container(variable, &config, netns);
        let (command, since) = match &*name {
            "ADD" => (Command::Add(container(true)?), Version::V0_3_1),
            "DEL" => (Command::Del(container(false)?), Version::V0_3_1),
            "CHECK" => (Command::Check(container(true)?), Version::V0_4_0),
            "STATUS" => (Command::Status, Version::V1_1_0),
            "GC" => (Command::Gc, Version::V1_1_0),
            _ => {
                return Err(Error::new(
                    Code::Environment,
                    format!(
                        "invalid CNI_COMMAND {name:?}: expected ADD, DEL, CHECK, STATUS, GC or \
                         VERSION"
                    ),
                ));
            }
        };
        if config.version < since {
            return Err(Error::new(
                Code::Version,
                format!("the cniVersion of the configuration is too old for {name}"),
            ));
        }
        Ok(Self::Network(command, Box::new(config)))
    }
}

fn needed(variable: &dyn Fn(&str) -> Option<String>, name: &str) -> Result<String, Error> {
    variable(name).ok_or_else(|| {
        Error::new(
            Code::Environment,
            format!("{name} is not set: expected a call from a container runtime, with the variables of CNI"),
        )
    })
}

fn container(
    variable: &dyn Fn(&str) -> Option<String>,
    config: &Config,
    with_netns: bool,
) -> Result<Container, Error> {
    let attachment = Attachment::new(
        &config.network,
        &needed(variable, "CNI_CONTAINERID")?,
        &needed(variable, "CNI_IFNAME")?,
    )?;
    let netns = if with_netns { Some(needed(variable, "CNI_NETNS")?.into()) } else { None };
    let arguments = variable("CNI_ARGS").unwrap_or_default();
    let arguments = arguments
        .split(';')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').ok_or_else(|| {
                let expected = format!("invalid CNI_ARGS {pair:?}: expected KEY=VALUE");
                Error::new(Code::Environment, expected)
            })?;
            Ok((key.to_owned(), value.to_owned()))
        })
        .collect::<Result<_, Error>>()?;
    Ok(Container { attachment, netns, arguments })
}

impl Container {
    /// The value of a key of `CNI_ARGS`.
    pub(crate) fn argument(&self, key: &str) -> Option<&str> {
        let mut pairs = self.arguments.iter();
        pairs.find_map(|(name, value)| (name == key).then_some(&**value))
    }
}
