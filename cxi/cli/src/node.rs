//! The node that a command works on: this machine or a mock.

use std::path::Path;
use std::sync::{Arc, Once};

use cxi::environment::NODE_VARIABLE;
use cxi::{Device, DeviceId, Host};
use cxi_ioctl::Trace;
use cxi_mock::{Credentials, FaultSpec, MockNode, Nic, NicConfig, NodeSnapshot};
use cxi_site::{NodeName, ProcFs};

use crate::args::NicChoice;
use crate::exit::{Exit, Failure};
use crate::files::{self, MOCK_NODE, StateFile};
use crate::options::Common;
use crate::output::{Report, joined, log, nic_names};

const DEFAULT_MOCK_NICS: u8 = 2;

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    Read,
    Change,
}

/// The NICs that a command works on, at least one, by number.
#[derive(Debug)]
pub(crate) struct Node {
    devices: Vec<Device>,
    /// Virtual functions, unless the command line names NICs, or there are no others: their services
    /// and resources are those of the physical functions.
    virtual_functions: Vec<Device>,
    /// `true` if the command line names them.
    named: bool,
    unusable: Vec<Failure>,
    mock: Option<Mock>,
}

#[derive(Debug)]
struct Mock {
    node: MockNode,
    save_to: Option<StateFile>,
}

/// The same NIC, with its commands printed to standard error.
fn traced(device: &Device) -> Device {
    let id = device.id();
    let transport = Arc::clone(device.transport());
    device.behind(Trace::new(transport, move |exchange| {
        log::print_debug(&format!("{id}: {exchange}"));
    }))
}

/// Runs a command that only reads.
pub(crate) fn reading(
    common: &Common,
    command: impl FnOnce(&Node) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let node = Node::open(common, Intent::Read)?;
    Ok(command(&node)?.with_failures(node.unusable))
}

/// Runs a command that changes something, and saves what it did to a mock node, even if only some of
/// it worked.
pub(crate) fn changing(
    common: &Common,
    command: impl FnOnce(&Node) -> Result<Report, Failure>,
) -> Result<Report, Failure> {
    let node = Node::open(common, Intent::Change)?;
    let report = command(&node);
    node.save()?;
    report
}

impl Node {
    /// Opens the NICs that the options name.
    pub(crate) fn open(common: &Common, intent: Intent) -> Result<Self, Failure> {
        let mut node = Self::open_untraced(common, intent)?;
        if common.is_traced() {
            for devices in [&mut node.devices, &mut node.virtual_functions] {
                *devices = devices.iter().map(traced).collect();
            }
        }
        Ok(node)
    }

    fn open_untraced(common: &Common, intent: Intent) -> Result<Self, Failure> {
        no_stray_option(common)?;
        let Some(file) = &common.mock else { return Self::open_real(common, intent) };
        let mock = match file {
            None => Mock { node: new_node(common)?, save_to: None },
            Some(path) => Mock::open(path, common, intent)?,
        };
        inject(&mock.node, &common.mock_fault)?;
        let nics = (0..).map(DeviceId::new).zip(mock.node.nics());
        let there: Vec<_> = nics.filter(|(_, nic)| !nic.faults().is_unplugged()).collect();
        if there.is_empty() {
            return Err(Failure::new(
                Exit::NoDevice,
                "the mock node has no NIC: all are unplugged",
            ));
        }
        let ids: Vec<_> = there.iter().map(|(id, _)| *id).collect();
        let wanted = named(common).unwrap_or(&ids);
        if let Some(missing) = wanted.iter().find(|id| !ids.contains(id)) {
            return Err(no_such_nic(*missing, &ids));
        }
        let devices = there
            .into_iter()
            .filter(|(id, _)| wanted.contains(id))
            .map(|(id, nic)| open_mock(id, nic))
            .collect::<Result<_, Failure>>()?;
        let (named, virtual_functions) = (common.device.is_some(), Vec::new());
        Ok(Self { devices, virtual_functions, named, unusable: Vec::new(), mock: Some(mock) })
    }

    /// Opens only the requested NICs. A command that only reads continues without the NICs that cannot
    /// be opened, and reports them.
    fn open_real(common: &Common, intent: Intent) -> Result<Self, Failure> {
        let host = Host::system();
        if intent == Intent::Change {
            warn_of_mock(&host, common);
        }
        let ids = match named(common) {
            Some(ids) => ids.to_vec(),
            None => host.device_ids()?,
        };
        if ids.is_empty() {
            return Err(no_device());
        }
        let mut devices = Vec::new();
        let mut unusable: Vec<Failure> = Vec::new();
        for id in ids {
            match host.open(id) {
                Ok(device) => devices.push(device),
                Err(error) => match host.device_ids()? {
                    there if there.is_empty() => return Err(no_device()),
                    there if !there.contains(&id) => return Err(no_such_nic(id, &there)),
                    _ => unusable.push(error.into()),
                },
            }
        }
        match unusable.first() {
            Some(failure) if intent != Intent::Read || devices.is_empty() => Err(failure.clone()),
            _ => {
                let is_apart = |device: &Device| {
                    named(common).is_none() && device.is_virtual_function() == Some(true)
                };
                let (mut devices, mut virtual_functions): (Vec<_>, _) =
                    devices.into_iter().partition(|device| !is_apart(device));
                // A virtual machine has no other.
                if devices.is_empty() {
                    std::mem::swap(&mut devices, &mut virtual_functions);
                }
                let named = common.device.is_some();
                Ok(Self { devices, virtual_functions, named, unusable, mock: None })
            }
        }
    }

    /// The NICs, by number.
    pub(crate) fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The NICs and their virtual functions, by number.
    pub(crate) fn functions(&self) -> Vec<&Device> {
        let mut functions: Vec<_> = self.devices.iter().chain(&self.virtual_functions).collect();
        functions.sort_by_key(|device| device.id());
        functions
    }

    /// The NICs of a mock node; none on a real one.
    pub(crate) fn mock_nics(&self) -> &[Arc<Nic>] {
        self.mock.as_ref().map_or(&[], |mock| mock.node.nics())
    }

    /// Returns whether the command line names the NICs.
    pub(crate) fn are_named(&self) -> bool {
        self.named
    }

    /// Returns whether it is a mock node.
    pub(crate) fn is_mock(&self) -> bool {
        self.mock.is_some()
    }

    /// Saves the changes of a mock node with a state file.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        match &self.mock {
            Some(Mock { node, save_to: Some(file) }) => file.save(&node.snapshot()),
            _ => Ok(()),
        }
    }

    /// Returns the `/proc` of processes that may have its NICs open; no process of this machine can
    /// open the NICs of a mock node.
    pub(crate) fn proc(&self) -> ProcFs {
        match self.mock {
            Some(_) => ProcFs::none(),
            None => ProcFs::system(),
        }
    }

    /// Returns whether it is a mock node with a state file.
    pub(crate) fn has_file(&self) -> bool {
        self.mock.as_ref().is_some_and(|mock| mock.save_to.is_some())
    }
}

impl Mock {
    fn open(path: &Path, common: &Common, intent: Intent) -> Result<Self, Failure> {
        if intent == Intent::Read
            && let Some(state) = files::load(MOCK_NODE, path)?
        {
            return Ok(Self { node: restored(&state, path, common)?, save_to: None });
        }
        let file = StateFile::lock(MOCK_NODE, path)?;
        let node = if let Some(state) = files::load(MOCK_NODE, file.path())? {
            restored(&state, path, common)?
        } else {
            let node = new_node(common)?;
            file.save(&node.snapshot())?;
            node
        };
        Ok(Self { node, save_to: (intent != Intent::Read).then_some(file) })
    }
}

/// An open file of root.
fn open_mock(id: DeviceId, nic: &Arc<Nic>) -> Result<Device, Failure> {
    let file = nic.open().map_err(|errno| {
        Failure::failed(format!("{id}: the mock NIC cannot be opened")).errno(errno)
    })?;
    let transport = Arc::new(file.transport(Credentials::root()));
    Ok(Device::with_transport(id, transport))
}

fn new_node(common: &Common) -> Result<MockNode, Failure> {
    let mut config = NicConfig::new();
    if let Some(release) = common.mock_release {
        config = config.release(release);
    }
    MockNode::with_nics(common.mock_nics.unwrap_or(DEFAULT_MOCK_NICS), &config)
        .map_err(|error| Failure::bad_input(format!("cannot create the mock node: {error}")))
}

fn restored(state: &NodeSnapshot, path: &Path, common: &Common) -> Result<MockNode, Failure> {
    let node = MockNode::restore(state).map_err(|error| {
        Failure::bad_input(format!("{}: the state file is damaged: {error}", path.display()))
    })?;
    let there = node.nics();
    if let Some(wanted) = common.mock_nics.filter(|wanted| usize::from(*wanted) != there.len()) {
        return Err(Failure::bad_input(format!(
            "{}: the mock node in this file has {} NICs, not {wanted}",
            path.display(),
            there.len()
        ))
        .hint("--mock-nics describes a new node; leave it out, or name another file."));
    }
    let other = |wanted: &cxi_ioctl::DriverRelease| {
        there
            .iter()
            .map(|nic| nic.config().release)
            .find(|release| release != wanted)
            .map(|release| (release, *wanted))
    };
    if let Some((is, wanted)) = common.mock_release.as_ref().and_then(other) {
        return Err(Failure::bad_input(format!(
            "{}: the mock node in this file has the driver of {is}, not of {wanted}",
            path.display()
        ))
        .hint("--mock-release describes a new node; leave it out, or name another file."));
    }
    Ok(node)
}

/// Refuses options that describe a mock node if there is none.
pub(crate) fn no_stray_option(common: &Common) -> Result<(), Failure> {
    let option = match common {
        Common { mock: Some(_), .. } => None,
        Common { mock_nics: Some(_), .. } => Some("--mock-nics"),
        Common { mock_release: Some(_), .. } => Some("--mock-release"),
        Common { mock_fault, .. } if !mock_fault.is_empty() => Some("--mock-fault"),
        _ => None,
    };
    option.map_or(Ok(()), |option| {
        Err(Failure::bad_input(format!("{option} describes a mock node: add --mock")))
    })
}

/// Makes the NICs of a mock node fail as requested.
fn inject(node: &MockNode, faults: &[FaultSpec]) -> Result<(), Failure> {
    let there: Vec<_> = (0..).map(DeviceId::new).take(node.nics().len()).collect();
    for fault in faults {
        if let Some(device) = fault.device().filter(|nic| usize::from(*nic) >= there.len()) {
            let there = nic_names(&there);
            return Err(Failure::bad_input(format!(
                "a fault is for cxi{device}, but the mock node has {there}"
            )));
        }
        for (number, nic) in (0..).zip(node.nics()) {
            if fault.concerns(number) {
                fault.inject(nic);
            }
        }
    }
    Ok(())
}

/// Says once that what a command changes is not this machine's: with a variable that was set for a test
/// and forgotten, every command would succeed.
pub(crate) fn warn_of_mock(host: &Host, common: &Common) {
    static SAID: Once = Once::new();
    let Some(socket) = host.socket() else { return };
    SAID.call_once(|| {
        let warning = format!(
            "{NODE_VARIABLE} names the mock node at {}: nothing is changed on this machine",
            socket.display()
        );
        log::print_warnings(&[warning], common.json);
    });
}

/// The NICs to work on; `None` for all.
pub(crate) fn named(common: &Common) -> Option<&[DeviceId]> {
    match &common.device {
        Some(NicChoice::These(ids)) => Some(ids),
        Some(NicChoice::All) | None => None,
    }
}

/// The host name of this machine.
pub(crate) fn this_node() -> Result<NodeName, Failure> {
    NodeName::of_this_machine()
        .map_err(|error| Failure::bad_input(error).hint("Name the node with --node."))
}

/// Returns whether this node has no NIC at all.
pub(crate) fn has_no_nic(common: &Common) -> bool {
    let ids = Host::system().device_ids();
    common.mock.is_none() && ids.is_ok_and(|ids| ids.is_empty())
}

pub(crate) fn no_such_nic(missing: DeviceId, there: &[DeviceId]) -> Failure {
    let names = joined(there, ", ");
    let failure =
        Failure::new(Exit::NoDevice, format!("{missing}: no such NIC; this node has {names}"));
    match there.first() {
        Some(first) => {
            failure.hint(format!("Choose with --device, such as --device {first} or --device all."))
        }
        None => failure,
    }
}

pub(crate) fn no_device() -> Failure {
    Failure::new(
        Exit::NoDevice,
        "no CXI device on this machine: expected /dev/cxi0 or another /dev/cxiN",
    )
    .hint("On a node with a Slingshot NIC: load its driver (modprobe cxi_ss1).")
    .hint("Without a NIC: add --mock to work on a mock node, such as cxi --mock devices.")
}
