//! Reasons for refusals of the driver, in sentences that an administrator can act on.
//!
//! An [`Error`] states in one line what went wrong. An [`Explanation`] adds which check failed,
//! which services hold what is wanted, and what to do. To find out, it queries the NIC and reads
//! `/proc`.
//!
//! ```
//! # use cxi::Device;
//! # use cxi_mock::{Nic, NicConfig};
//! # let nic = Nic::new(NicConfig::new())?;
//! # let device = Device::cxi0(nic.root()?);
//! use cxi::{Limit, Limits, Member, Resource, ServiceSpec, Vni};
//! use cxi_job::explain::Inquiry;
//!
//! let spec = |vni| {
//!     let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni);
//!     spec.limits(Limits::none().with(Resource::Txqs, Limit::exactly(600))).build()
//! };
//! device.services().create(&spec(Vni::new(1024)?)?)?;
//! let second = spec(Vni::new(1025)?)?;
//! let error = device.services().create(&second).unwrap_err();
//! let text = Inquiry::new(&error).device(&device).spec(&second).explain().to_string();
//! assert!(text.starts_with("cxi0: SVC_ALLOC: not enough TXQs: 600 requested, 424 available"));
//! assert!(text.contains("service 2 (uid 1000, VNI 1024): 600 TXQs reserved, nothing in use"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;

use cxi::error::{Error, ErrorKind, VniConflict};
use cxi::{Device, DeviceId, ServiceId, ServiceSpec};
use cxi_ioctl::{Errno, Opcode};

use crate::describe;
use crate::limits::PlanError;
use crate::view::NicView;
use cxi_site::proc::ProcFs;

mod memory;
mod network;
mod program;
mod resources;

pub use memory::ContiguousMemory;
pub use network::{Network, NicNetwork};
pub use program::{GivenVni, Program};
pub(super) use resources::is_idle;

/// Explanation of a failure: its reasons, the services that are in the way, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The NIC, if the error names one.
    pub device: Option<DeviceId>,
    /// The failure, in one line.
    pub problem: String,
    /// The reasons, one or two sentences each.
    pub reasons: Vec<String>,
    /// Services that hold what is wanted.
    pub holders: Vec<HoldingService>,
    /// The remedies, one in each entry.
    pub advice: Vec<String>,
}

/// A service that holds what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HoldingService {
    /// The service.
    pub service: ServiceId,
    /// The service with its owner and VNIs: `service 5 (uid 5588, VNI 1024)`.
    pub name: String,
    /// Share of the resource that it holds: `96 PTEs reserved`.
    pub holds: String,
    /// `true` if none of the service's resources are in use, as far as the driver reports.
    pub idle: bool,
}

impl fmt::Display for HoldingService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.holds)?;
        if self.idle {
            f.write_str(", nothing in use")?;
        }
        Ok(())
    }
}

impl Explanation {
    fn new(device: Option<DeviceId>, problem: impl Into<String>) -> Self {
        Self {
            device,
            problem: problem.into(),
            reasons: Vec::new(),
            holders: Vec::new(),
            advice: Vec::new(),
        }
    }

    fn because(mut self, reason: impl Into<String>) -> Self {
        self.reasons.push(reason.into());
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    fn held_by(mut self, holders: Vec<HoldingService>) -> Self {
        self.holders = holders;
        self
    }

    /// Everything without the NIC's name, to be said once where several NICs say it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = vec![self.problem.clone()];
        lines.extend(self.reasons.iter().map(|reason| format!("  {reason}")));
        if !self.holders.is_empty() {
            lines.push("  Held by:".to_owned());
        }
        lines.extend(self.holders.iter().map(|holder| format!("    {holder}")));
        if !self.advice.is_empty() {
            lines.push("  What to do:".to_owned());
        }
        lines.extend(self.advice.iter().map(|advice| format!("    - {advice}")));
        lines.join("\n")
    }

    /// Explains why the limits of a job could not be planned: one explanation for each shortage.
    /// `device` is the NIC that they were planned for.
    #[must_use]
    pub fn from_plan(error: &PlanError, device: &Device) -> Vec<Self> {
        let view = NicView::read(device).ok();
        error.short.iter().map(|cut| resources::planned(cut, view.as_ref())).collect()
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device {
            write!(f, "{device}: ")?;
        }
        f.write_str(&self.text())
    }
}

/// An error to explain, and what is known about the call that failed.
///
/// The more is known, the more the explanation says.
#[derive(Debug, Clone)]
#[must_use]
pub struct Inquiry<'a> {
    error: &'a Error,
    device: Option<&'a Device>,
    spec: Option<&'a ServiceSpec>,
    service: Option<ServiceId>,
    proc: ProcFs,
}

impl<'a> Inquiry<'a> {
    /// An error of this library.
    pub fn new(error: &'a Error) -> Self {
        Self { error, device: None, spec: None, service: None, proc: ProcFs::system() }
    }

    /// Sets the NIC, which is queried for who holds what.
    pub fn device(mut self, device: &'a Device) -> Self {
        self.device = Some(device);
        self
    }

    /// Sets the specification of the service that was to be made.
    pub fn spec(mut self, spec: &'a ServiceSpec) -> Self {
        self.spec = Some(spec);
        self
    }

    /// Sets the service that was to be destroyed, changed or opened.
    pub fn service(mut self, service: ServiceId) -> Self {
        self.service = Some(service);
        self
    }

    /// Sets the `/proc` in which to look for processes.
    pub fn proc(mut self, proc: ProcFs) -> Self {
        self.proc = proc;
        self
    }

    /// Explains the error.
    #[must_use]
    pub fn explain(self) -> Explanation {
        let explanation =
            Explanation::new(self.error.device(), self.error.clone().without_device().to_string());
        match self.error.kind() {
            ErrorKind::NotEnough(shortage) => {
                resources::refused(explanation, shortage, self.spec, self.view().as_ref())
            }
            ErrorKind::VniTaken(conflict) => vni_taken(explanation, conflict, self.view().as_ref()),
            ErrorKind::NotPermitted(_) if self.error.command() == Some(Opcode::LNI_ALLOC) => {
                not_a_member(explanation, &self)
            }
            ErrorKind::NotPermitted(_) if self.error.command().is_some_and(Opcode::needs_admin) => {
                not_permitted(explanation, &self)
            }
            ErrorKind::ServiceDisabled { service } => disabled(explanation, *service, &self),
            ErrorKind::Busy { .. } => busy(explanation, &self),
            ErrorKind::NoSuchService { .. } => gone(explanation, self.error.command()),
            ErrorKind::Removed => explanation
                .because(
                    "The driver returns EIO for a NIC that was removed, or whose driver is being \
                     unloaded. Its services are gone too.",
                )
                .advise("The kernel log says why. Drain the node if the NIC does not come back."),
            ErrorKind::Open { error, .. } => unopened(explanation, error),
            ErrorKind::InvalidSpec(_) | ErrorKind::InvalidInput(_) => {
                explanation.because("This was found before anything was sent to the driver.")
            }
            ErrorKind::Unsupported { .. } => {
                explanation.advise("Update the driver, or do without it on this node.")
            }
            ErrorKind::Protocol(_) => explanation
                .because("This library does not know the driver's interface.")
                .advise("Use a release of this library that supports this driver."),
            _ => explanation,
        }
    }

    fn view(&self) -> Option<NicView> {
        NicView::read(self.device?).ok()
    }
}

/// There is no such service.
fn gone(explanation: Explanation, command: Option<Opcode>) -> Explanation {
    let explanation =
        explanation.because("A service's ID can be reused as soon as the service is destroyed.");
    let by_vnis = "List the services, and look for the job's by its VNIs.";
    match command {
        Some(Opcode::SVC_DESTROY) => explanation.advise(by_vnis).advise(
            "If the job has ended, there is nothing to do: another process has destroyed it.",
        ),
        _ => explanation
            .advise(
                "If a job's variable SLINGSHOT_SVC_IDS names it, start the program in a step of its \
                 own: the variables are another step's or another node's.",
            )
            .advise(by_vnis),
    }
}

fn disabled(
    mut explanation: Explanation,
    service: ServiceId,
    inquiry: &Inquiry<'_>,
) -> Explanation {
    if service.is_default() {
        return explanation
            .because(
                "The default service is disabled by default. A process that asks for it was not \
                 given its own service: SLINGSHOT_SVC_IDS and SLINGSHOT_DEVICES are not set, or \
                 were not passed on to it.",
            )
            .advise(
                "Let the scheduler create services for the job, and pass the SLINGSHOT_* \
                 variables on to its processes.",
            )
            .advise(
                "Enabling the default service works too, but then every user of the node shares \
                 its VNIs.",
            );
    }
    let name = inquiry.view().and_then(|view| view.service(service).map(describe::service));
    let reason = name.map(|name| format!("It is {name}."));
    explanation.reasons.extend(reason);
    explanation.advise("Enable it (SVC_ENABLE), or create another one.")
}

fn busy(explanation: Explanation, inquiry: &Inquiry<'_>) -> Explanation {
    let is_parent =
        inquiry.service.and_then(|id| inquiry.device?.services().is_parent(id).ok()) == Some(true);
    if is_parent {
        return explanation
            .because(
                "It is a parent service: it is busy as long as a virtual function has it, and while \
                 services below it exist, which the virtual function has made.",
            )
            .advise("Destroy these services on the virtual function.")
            .advise(
                "Then take the parent from the function: write 0 to vf/N/svc_id in the NIC's \
                 directory in sysfs, or to sriov_numvfs if no function is needed any more.",
            );
    }
    let explanation = explanation.because(
        "A service cannot be changed while it has an LNI: destroying, enabling, disabling and \
         updating it all fail with EBUSY. An LNI ends with the process that allocated it, after \
         its transfers have ended. Reading a service's usage also makes it busy for a moment.",
    );
    let members = inquiry.service.and_then(|id| inquiry.device?.services().get(id).ok()?.members());
    let device = inquiry.error.device();
    let Some(device) = device.or_else(|| inquiry.device.map(Device::id)) else {
        return explanation.advise("Try again, with pauses of a millisecond to a second.");
    };
    let users = inquiry.proc.users_of(device).among(members.as_ref());
    let explanation = explanation.because(format!("On {device}, {users}."));
    if users.processes.is_empty() {
        return explanation.advise(
            "Try again, with pauses of a millisecond to a second: the NIC may still be ending the \
             transfers of a process that is gone. If that takes minutes, drain the node.",
        );
    }
    let pids: Vec<String> = users.processes.iter().map(|p| p.pid.to_string()).collect();
    explanation
        .advise(format!(
            "If the job has ended, kill the processes that it left behind: kill -KILL {}",
            pids.join(" ")
        ))
        .advise("Then try again for some minutes. If the service stays busy, drain the node.")
}

fn unopened(explanation: Explanation, error: &std::io::Error) -> Explanation {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => explanation
            .because("The driver (cxi_ss1; cxi_core in old releases) creates the device node.")
            .advise("Check whether the driver is loaded, and whether the NIC is on the PCI bus.")
            .advise("In a container, pass in the device node."),
        Some(Errno::EACCES | Errno::EPERM) => explanation
            .because("By default, every user may open a NIC for reading and writing.")
            .advise(
                "Check the mode and owner of the device node, the udev rules, and the device rules of a container.",
            ),
        Some(Errno::EIO) => {
            explanation.advise("The NIC was removed: the kernel log says why.")
        }
        _ => explanation,
    }
}

/// A change of services was refused.
fn not_permitted(explanation: Explanation, inquiry: &Inquiry<'_>) -> Explanation {
    let virtual_function = inquiry.device.and_then(|device| device.info().ok()?.virtual_function);
    if virtual_function == Some(true) {
        return explanation
            .because(
                "The NIC is a virtual function. Services belong to the physical function, whatever \
                 privileges the caller has.",
            )
            .advise("Run it on the host, on the physical function.");
    }
    if inquiry.proc.in_user_namespace() == Some(true) {
        return explanation
            .because(
                "This process is in a user namespace (/proc/self/uid_map). The driver requires \
                 CAP_SYS_ADMIN in the initial one, which root of a rootless container lacks.",
            )
            .advise("Run it on the host, or in a container without a user namespace.");
    }
    let explanation = match inquiry.proc.has_sys_admin() {
        Some(false) => explanation.because(
            "This process does not have CAP_SYS_ADMIN. The user ID does not matter: root is refused \
             without the capability, and another user is not refused with it.",
        ),
        Some(true) => explanation.because(
            "This process has CAP_SYS_ADMIN and is in the initial user namespace. The remaining \
             causes are a virtual function, which sysfs would show, or a security module.",
        ),
        None => explanation.because(
            "The driver requires CAP_SYS_ADMIN in the initial user namespace, and a physical \
             function.",
        ),
    };
    explanation.advise("Run it as root, from the scheduler's daemon or its prolog.")
}

/// An LNI was refused.
fn not_a_member(mut explanation: Explanation, inquiry: &Inquiry<'_>) -> Explanation {
    let service = inquiry.service.and_then(|id| inquiry.device?.services().get(id).ok());
    explanation.reasons.extend(service.map(|service| {
        let service = describe::service(&service);
        format!(
            "It is {service}: only its members may use it, not even root or a process with a \
             capability."
        )
    }));
    explanation.reasons.extend(inquiry.proc.caller().map(|caller| {
        let netns = caller.netns;
        let has = [
            caller.uid.map(|uid| format!("effective uid {uid}")),
            caller.gid.map(|gid| format!("effective gid {gid}")),
            netns.map(|netns| format!("network namespace {netns}")),
        ];
        let has: Vec<String> = has.into_iter().flatten().collect();
        format!("This process has {}.", has.join(", "))
    }));
    explanation
        .because("The driver checks effective IDs only; supplementary groups do not count.")
        .advise("Run it as a member of the service, or use the service of this job.")
}

fn vni_taken(
    explanation: Explanation,
    conflict: &VniConflict,
    view: Option<&NicView>,
) -> Explanation {
    let single = |range: Option<cxi::VniRange>| range.is_none_or(|range| range.size() == 1);
    let exact = single(Some(conflict.wanted)) && single(conflict.held);
    let explanation = if exact {
        explanation.because(
            "Both are single VNIs. The drivers of SHS 13.0 to 14.0.0 allow a VNI in one service \
             only, even a disabled one; SHS 12.0, 14.0.1 and later allow the same VNI in several.",
        )
    } else {
        explanation.because(
            "One of them is a range of VNIs. With every driver, a range may not overlap any other \
             VNI on the NIC, even of a disabled service.",
        )
    };
    let holder = conflict.holder.and_then(|id| view.and_then(|view| view.service(id)));
    let Some(service) = holder else {
        return explanation
            .because(
                "No service on the NIC has it. A process of root takes a VNI that no service has \
                 simply by using it, and the VNI of a destroyed service stays taken while a \
                 process still uses it.",
            )
            .advise("Find the processes that have the NIC open, and end those of old jobs.");
    };
    let held = conflict.held.map_or_else(
        || describe::vnis(service.vnis()),
        |held| describe::vnis(cxi::VniAccess::Range(held)),
    );
    let explanation = explanation.held_by(vec![HoldingService {
        service: service.id(),
        name: describe::service(service),
        holds: held,
        idle: false,
    }]);
    if service.id().is_default() {
        return explanation.advise(
            "The VNIs of the default service (by default 1 and 10) are not for jobs: remove them \
             from the pool.",
        );
    }
    explanation
        .advise("Reuse a VNI only after its services are destroyed on every node.")
        .advise(format!(
            "If the job of service {} has ended, release it; otherwise give the new job other VNIs.",
            service.id()
        ))
}

#[cfg(test)]
mod tests;
