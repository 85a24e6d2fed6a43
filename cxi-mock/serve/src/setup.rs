//! Setup of NICs and nodes: the arguments of `run`, `serve` and `cluster`, and the files that they
//! name.

use std::error::Error;
use std::iter;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use cxi::{Device, DeviceId, ServiceSpec};
use cxi_ioctl::DriverRelease;
use cxi_mock::{Card, Credentials, MockNode, ModuleParameters, NicConfig, UnknownCard};
use cxi_site::excerpt;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, from_multiple_with_options, options};

use super::capture::Capture;
use super::credentials::Authority;
use super::error::ServeError;
use super::input;
use super::server::DRIVER;
use super::state_file::StateFile;
use super::sysfs::{number, switch};
use super::system::System;
use super::topology::{self, Topology};
use super::trace::Trace;

/// Content of a configuration file.
#[derive(Debug)]
pub(crate) enum Setup {
    /// NICs that differ only in their addresses.
    Alike(NicConfig),
    /// Each NIC individually.
    Each(Vec<NicConfig>),
    /// The NICs of each node.
    Nodes(Vec<Vec<NicConfig>>),
}

/// Reads a configuration: an object for NICs that differ only in their addresses, a list of
/// objects, or a list of such lists. Values that are left out are those of `base`.
fn read_config(path: &Path, base: &NicConfig) -> Result<Setup, ServeError> {
    let text = input::read(path)?;
    let parsed = serde_json::from_slice(&text).map_err(|error| {
        let text = String::from_utf8_lossy(&text);
        at_place(&error, Some(excerpt(&text, error.line(), error.column())))
    });
    parsed
        .and_then(|value| from_value(value, base))
        .map_err(|error| ServeError::Input(format!("{}: {error}", path.display())))
}

/// An error with the line of the file that it is about.
fn at_place(error: &dyn Error, excerpt: Option<String>) -> String {
    format!("{error}\n{}", excerpt.unwrap_or_default()).trim_end().replace('\n', "\n  ")
}

fn from_value(value: Value, base: &NicConfig) -> Result<Setup, String> {
    match value {
        Value::Array(all) if all.first().is_some_and(Value::is_array) => {
            let mut before = 0;
            let node = |(index, node)| {
                let nics = match node {
                    Value::Array(nics) => list(nics, base, before),
                    other => Err(format!("{other}: expected a list of NICs")),
                };
                let nics = nics.map_err(|error| format!("node {index}: {error}"))?;
                before += nics.len();
                Ok(nics)
            };
            all.into_iter().enumerate().map(node).collect::<Result<_, _>>().map(Setup::Nodes)
        }
        Value::Array(nics) => list(nics, base, 0).map(Setup::Each),
        value => one(value, base).map(Setup::Alike),
    }
}

/// The NICs of a node, with so many of other nodes before them. Each is on its own bus and has its own
/// address on the fabric, unless these are given.
fn list(nics: Vec<Value>, base: &NicConfig, before: usize) -> Result<Vec<NicConfig>, String> {
    let first = u32::try_from(before).unwrap_or(u32::MAX);
    (0u8..)
        .zip(nics)
        .map(|(index, nic)| {
            let base = base.clone().identity(|identity| {
                identity.nid = identity.nid.wrapping_add(first).wrapping_add(index.into());
                identity.uc_nic = index.into();
                identity.pci_address.bus = identity.pci_address.bus.wrapping_add(index);
            });
            one(nic, &base).map_err(|error| format!("NIC {index}: {error}"))
        })
        .collect()
}

fn one(mut value: Value, base: &NicConfig) -> Result<NicConfig, String> {
    let base = match card_of(&mut value)? {
        Some(card) => base.clone().card(card),
        None => base.clone(),
    };
    let mut config = serde_json::to_value(base).map_err(|error| error.to_string())?;
    merge(&mut config, value, "")?;
    serde_json::from_value(config).map_err(|error| error.to_string())
}

/// The card that a NIC is to be: as its key `card` says, which is removed, or as the PCI IDs or the
/// version of the chip say.
fn card_of(value: &mut Value) -> Result<Option<Card>, String> {
    let named = value.as_object_mut().and_then(|nic| nic.remove("card"));
    if let Some(named) = named {
        let name = named.as_str().map_or_else(|| named.to_string(), str::to_owned);
        return name.parse().map(Some).map_err(|error: UnknownCard| error.to_string());
    }
    let identity = value.get("identity");
    let number = |name| identity.and_then(|it| u32::try_from(it.get(name)?.as_u64()?).ok());
    let ids = number("vendor_id").zip(number("device_id"));
    let by_ids = ids.and_then(|(vendor, device)| Card::with_ids(vendor, device));
    Ok(by_ids.or_else(|| number("cassini_version").map(Card::with_version)))
}

/// Applies what is given on top of the defaults.
fn merge(to: &mut Value, from: Value, at: &str) -> Result<(), String> {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => {
            for (key, value) in from {
                let path = format!("{at}{key}");
                let known = to.keys().cloned().collect::<Vec<_>>().join(", ");
                let field = to
                    .get_mut(&key)
                    .ok_or_else(|| format!("unknown field {path}: expected one of {known}"))?;
                merge(field, value, &format!("{path}."))?;
            }
            Ok(())
        }
        (Value::Object(_), from) => {
            let at = at.trim_end_matches('.');
            let place = if at.is_empty() { "the NIC" } else { at };
            Err(format!("{place} is {from}: expected an object"))
        }
        (to, from) => {
            *to = from;
            Ok(())
        }
    }
}

/// Sets a module parameter from `name=value`, with a value as `modprobe` takes it.
fn set(params: &mut ModuleParameters, assignment: &str) -> Result<(), ServeError> {
    assign(params, assignment).map_err(|error| ServeError::Input(format!("--set: {error}")))
}

fn assign(params: &mut ModuleParameters, assignment: &str) -> Result<(), String> {
    let (name, text) = assignment
        .split_once('=')
        .ok_or_else(|| format!("'{assignment}' has no value: expected parameter=value"))?;
    let mut all = serde_json::to_value(&*params).map_err(|error| error.to_string())?;
    let known = all
        .as_object()
        .map(|all| all.keys().cloned().collect::<Vec<_>>().join(", "))
        .unwrap_or_default();
    let value = all
        .get_mut(name)
        .ok_or_else(|| format!("the mock knows no parameter '{name}': it knows {known}"))?;
    *value = match value {
        Value::Bool(_) => switch(text)
            .map(Value::Bool)
            .ok_or_else(|| format!("{name} is '{text}': expected Y or N"))?,
        Value::Array(list) => {
            let mut numbers = text
                .split(',')
                .map(|number| integer(name, number))
                .collect::<Result<Vec<_>, _>>()?;
            if numbers.len() > list.len() {
                let most = list.len();
                return Err(format!("{name} has {} values: at most {most}", numbers.len()));
            }
            numbers.resize(list.len(), Value::from(0));
            Value::Array(numbers)
        }
        _ => integer(name, text)?,
    };
    *params = serde_json::from_value(all).map_err(|error| format!("{name}: {error}"))?;
    Ok(())
}

fn integer(name: &str, text: &str) -> Result<Value, String> {
    let number: u32 =
        number(text).map_err(|_| format!("{name} is '{text}': expected a number from 0"))?;
    Ok(Value::from(number))
}

/// Way in which the NIC notices a store to a doorbell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Doorbells {
    /// The program is stopped at each store; polled where that cannot be
    #[default]
    Trap,
    /// The NIC looks, while there is traffic all the time
    Poll,
}

/// Release of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// The one that programs are written for.
    Auto,
    /// This one.
    Is(DriverRelease),
}

/// A release by either of its names, or `auto`.
fn release() -> impl TypedValueParser<Value = Release> {
    let releases = DriverRelease::ALL
        .map(|release| PossibleValue::new(release.name()).alias(release.short_name()));
    let names = iter::once("auto".into()).chain(releases);
    PossibleValuesParser::new(names).map(|name| name.parse().map_or(Release::Auto, Release::Is))
}

/// A card by its name.
fn card() -> impl TypedValueParser<Value = Card> {
    PossibleValuesParser::new(Card::ALL.map(Card::name))
        .map(|name| name.parse().unwrap_or_default())
}

/// The name of a driver, which becomes the name of directories.
fn driver_name(text: &str) -> Result<String, String> {
    let is_name = text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    if text.is_empty() || !is_name || text == DRIVER {
        return Err(format!("expected letters, digits and _, and another name than {DRIVER}"));
    }
    Ok(text.to_owned())
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct NicArguments {
    /// Number of NICs of a node [default: 1, or as in the configuration or the topology]
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
    /// Driver release, or auto: shs-14.0.1 until a program allocates an LNI, then the one that the
    /// program's libcxi is for [default: auto, or as in the configuration]
    #[arg(long, value_name = "RELEASE", value_parser = release())]
    pub(crate) release: Option<Release>,
    /// Inject a fault, such as SVC_DESTROY:EBUSY:times=3 or cxi0:delay=20ms
    #[arg(long, value_name = "FAULT")]
    pub(crate) fault: Vec<String>,
    /// Place the NICs as on a blade: near NUMA nodes, which are shown if the machine has fewer
    #[arg(long, value_enum)]
    pub(crate) topology: Option<Topology>,
    /// The card of each NIC [default: cassini-2]
    #[arg(long, value_name = "CARD", value_parser = card())]
    pub(crate) card: Option<Card>,
    /// Make the node look like one of this system: its cards, their addresses, the NUMA nodes, and
    /// the retry handler
    #[arg(long, value_enum, conflicts_with_all = ["topology", "card", "nics", "config"])]
    pub(crate) system: Option<System>,
    /// Let HPE's retry handler run: its event queue, and its files in /run/cxi
    #[arg(long)]
    retry_handler: bool,
    /// Show the driver and its module under a second name, such as cxi_core, which older releases had
    #[arg(long, value_name = "NAME", value_parser = driver_name)]
    pub(crate) alias: Option<String>,
    /// Way in which NICs notice stores to doorbells
    #[arg(long, value_enum, default_value_t)]
    pub(crate) doorbells: Doorbells,
    /// Clean up freed LNIs only on `ctl tick`, not every second
    #[arg(long)]
    pub(crate) manual_cleanup: bool,
    /// Count capabilities in the initial user namespace only, as the driver does
    #[arg(long)]
    strict_admin: bool,
    /// Give each node its own network namespace, in which netlink shows the NICs as hsn0, hsn1...
    #[arg(long)]
    pub(crate) network: bool,
}

impl NicArguments {
    /// Returns the configuration over `base`, with the other arguments on top.
    pub(crate) fn setup(&self, base: NicConfig) -> Result<Setup, ServeError> {
        let base = match self.card {
            Some(card) => base.card(card),
            None => base,
        };
        let mut setup = match (self.system, &self.config) {
            (Some(system), _) => Setup::Each(system.nics(&base)),
            (None, Some(path)) => read_config(path, &base)?,
            (None, None) => Setup::Alike(base),
        };
        let mut configs: Vec<&mut NicConfig> = match &mut setup {
            Setup::Alike(config) => vec![config],
            Setup::Each(configs) => configs.iter_mut().collect(),
            Setup::Nodes(nodes) => nodes.iter_mut().flatten().collect(),
        };
        for config in &mut configs {
            self.adjust(config)?;
        }
        if self.nics.is_some() && !matches!(setup, Setup::Alike(_)) {
            return Err(ServeError::Input(
                "the configuration lists its NICs: leave out --nics".to_owned(),
            ));
        }
        Ok(setup)
    }

    /// Returns the places of the NICs.
    pub(crate) fn topology(&self) -> Option<Topology> {
        self.topology.or(self.system.map(System::topology))
    }

    /// NICs of a node whose configuration does not list them.
    pub(crate) fn count(&self) -> u8 {
        let of_topology = self.topology().map(|_| topology::NICS);
        self.nics.or(of_topology).unwrap_or(1)
    }

    /// Returns whether anything says what the NICs are.
    pub(crate) fn says_what(&self) -> bool {
        self.nics.is_some()
            || self.config.is_some()
            || matches!(self.release, Some(Release::Is(_)))
            || self.topology().is_some()
            || self.card.is_some()
            || self.retry_handler
            || !self.set.is_empty()
    }

    /// Returns whether the release is the one that programs are written for.
    pub(crate) fn release_follows(&self) -> bool {
        match self.release {
            Some(release) => release == Release::Auto,
            None => self.config.is_none(),
        }
    }

    /// Returns whether capabilities count as for the driver.
    pub(crate) fn is_strict(&self) -> bool {
        self.strict_admin
    }

    /// Returns the namespace in which capabilities count.
    pub(crate) fn authority(&self) -> Authority {
        if self.strict_admin { Authority::strict() } else { Authority::of_this_process() }
    }

    fn adjust(&self, config: &mut NicConfig) -> Result<(), ServeError> {
        if let Some(Release::Is(release)) = self.release {
            config.release = release;
        }
        config.retry_handler |= self.retry_handler;
        self.set.iter().try_for_each(|assignment| set(&mut config.params, assignment))
    }
}

#[derive(Debug, Default, Args)]
pub(crate) struct FileArguments {
    /// Keep services in this file: nodes continue where the last ones with this file ended
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Record every command and event in this file, one JSON object per line
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Record every operation between processes in this file: as a timeline for Perfetto if it ends
    /// in .json, as packets for Wireshark if in .pcapng, otherwise one JSON object per line
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

impl FileArguments {
    /// Returns whether anything is recorded.
    pub(crate) fn any(&self) -> bool {
        self.state.is_some() || self.trace.is_some() || self.capture.is_some()
    }

    /// Takes the file of the state.
    pub(crate) fn state(&self) -> Result<Option<StateFile>, ServeError> {
        self.state.as_deref().map(StateFile::take).transpose()
    }

    /// Creates the other files.
    pub(crate) fn records(&self) -> Result<Records, ServeError> {
        Ok(Records {
            trace: self.trace.as_deref().map(Trace::create).transpose()?,
            capture: self.capture.as_deref().map(Capture::create).transpose()?,
        })
    }
}

/// Destinations of recorded commands, events and operations.
#[derive(Debug)]
pub(crate) struct Records {
    /// Commands and events.
    pub(crate) trace: Option<Trace>,
    /// Operations between processes.
    pub(crate) capture: Option<Capture>,
}

impl Records {
    /// The same files, for one node of several.
    pub(crate) fn on_node(&self, name: &str) -> Self {
        Self {
            trace: self.trace.as_ref().map(|trace| trace.on_node(name)),
            capture: self.capture.as_ref().map(|capture| capture.on_node(name)),
        }
    }
}

/// Makes the services of a file on each NIC, in its order.
pub(crate) fn make_presets(node: &MockNode, path: &Path) -> Result<(), ServeError> {
    let text = input::read(path)?;
    make_services(node, text)
        .map_err(|error| ServeError::Input(format!("--preset: {}: {error}", path.display())))
}

fn make_services(node: &MockNode, text: Vec<u8>) -> Result<(), Box<dyn Error>> {
    let text = String::from_utf8(text)?;
    // HPE's templates repeat keys for lists.
    let options = options! { with_snippet: false, duplicate_keys: DuplicateKeyPolicy::PassThrough };
    let specs: Vec<ServiceSpec> = from_multiple_with_options(&text, options).map_err(|error| {
        let line = error.location().map(|at| excerpt(&text, at.line(), at.column()));
        at_place(&error, line)
    })?;
    for (number, file) in node.devices(&Credentials::root())? {
        let device = Device::with_transport(DeviceId::new(number), file);
        for spec in &specs {
            device.services().create(spec)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<Setup, String> {
        from_value(serde_json::from_str(text).unwrap(), &NicConfig::new())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let text = r#"{"release": "main", "params": {"pid_bits": 8}, "totals": {"txqs": 16}}"#;
        let Ok(Setup::Alike(config)) = config(text) else { panic!("one configuration") };
        assert_eq!(config.release, DriverRelease::Main2026_07);
        assert_eq!((config.params.pid_bits, config.totals.txqs), (8, 16));
        assert_eq!(config.totals.tgqs, 512);
    }

    #[test]
    fn a_list_says_each_nic() {
        let Ok(Setup::Each(nics)) = config(r#"[{}, {"identity": {"nid": 7}}]"#) else {
            panic!("a list");
        };
        assert_eq!((nics.len(), nics[1].identity.nid), (2, 7));
        let Ok(Setup::Each(nics)) = config("[{}, {}, {}]") else { panic!("a list") };
        assert_eq!([0, 1, 2].map(|nic| nics[nic].identity.nid), [0x100, 0x101, 0x102]);
        assert_eq!([0, 1, 2].map(|nic| nics[nic].identity.uc_nic), [0, 1, 2]);
    }

    #[test]
    fn a_list_of_lists_says_each_node() {
        let Ok(Setup::Nodes(nodes)) = config(r#"[[{}, {}], [{"identity": {"nid": 7}}]]"#) else {
            panic!("nodes");
        };
        assert_eq!((nodes[0].len(), nodes[1][0].identity.nid), (2, 7));
        let Ok(Setup::Nodes(nodes)) = config("[[{}, {}], [{}]]") else { panic!("nodes") };
        assert_eq!((nodes[0][1].identity.nid, nodes[1][0].identity.nid), (0x101, 0x102));
        let error = config("[[{}], {}]").unwrap_err();
        assert_eq!(error, "node 1: {}: expected a list of NICs");
    }

    #[test]
    fn a_card_is_named_or_has_its_ids() {
        for text in
            [r#"{"card": "cassini-1"}"#, r#"{"identity": {"vendor_id": 6107, "device_id": 1281}}"#]
        {
            let Ok(Setup::Alike(config)) = config(text) else { panic!("one configuration") };
            assert_eq!(config, NicConfig::new().card(Card::Cassini1), "{text}");
        }
        // A first version of the chip is on no other card.
        let Ok(Setup::Alike(config_)) = config(r#"{"identity": {"cassini_version": 17}}"#) else {
            panic!("one configuration");
        };
        let mut expected = NicConfig::new().card(Card::Cassini1);
        expected.identity.cassini_version = 17;
        assert_eq!(config_, expected);
        let error = config(r#"[{}, {"card": "x"}]"#).unwrap_err();
        assert_eq!(error, "NIC 1: unknown card 'x': expected cassini-1 or cassini-2");
    }

    #[test]
    fn errors_say_where() {
        let error = config(r#"{"params": {"pidbits": 8}}"#).unwrap_err();
        assert!(error.starts_with("unknown field params.pidbits: expected one of"), "{error}");
        let error = config(r#"[{}, {"totals": 5}]"#).unwrap_err();
        assert_eq!(error, "NIC 1: totals is 5: expected an object");
    }

    #[test]
    fn parameters_are_set_as_for_modprobe() {
        let mut params = ModuleParameters::default();
        assign(&mut params, "disable_default_svc=N").unwrap();
        assign(&mut params, "default_vnis=7,8").unwrap();
        assign(&mut params, "pid_bits=8").unwrap();
        assert!(!params.disable_default_svc);
        assert_eq!((params.default_vnis, params.pid_bits), ([7, 8, 0, 0], 8));
        assign(&mut params, "default_vnis=0x10,020").unwrap();
        assert_eq!(params.default_vnis, [16, 16, 0, 0]);
        assert!(assign(&mut params, "pid_bits").is_err());
        assert!(assign(&mut params, "pid_bits=-1").is_err());
        assert!(assign(&mut params, "disable_default_svc=2").is_err());
        assert!(assign(&mut params, "default_vnis=1,2,3,4,5").is_err());
        let error = assign(&mut params, "nonsense=1").unwrap_err();
        assert!(error.contains("default_vnis"), "{error}");
    }
}
