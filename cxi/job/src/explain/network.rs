//! Reasons for which a program has no network: the gifts of its scheduler, libfabric's use of them,
//! and the answers of this node's NICs.

use std::collections::BTreeMap;
use std::fmt;

use cxi::{Device, DeviceId, Member, Service, ServiceId, Vni, VniAccess};
use serde::Serialize;

use super::program::{Admission, GivenVni, Program};
use crate::describe;
use crate::environment::{CLEAR, SlingshotEnv};
use crate::node::NicProblem;

/// VNI that libfabric uses where a service does not restrict VNIs.
const DEFAULT_VNI: u16 = 10;

/// A service that a program may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct UsableService {
    service: ServiceId,
    /// The service with its owner and VNIs.
    name: String,
    by: Admission,
    /// A disabled one cannot be used.
    enabled: bool,
}

/// Choice of libfabric on a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Taken {
    /// Any number that the variables contain.
    service: i64,
    vni: u16,
    /// `true` if the variables name it; otherwise libfabric looked for a service itself.
    by_variables: bool,
}

/// A NIC, as a program would use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NicNetwork {
    device: DeviceId,
    /// Choice of libfabric; `None` if it finds no service.
    takes: Option<Taken>,
    usable: Vec<UsableService>,
    problem: Option<String>,
    #[serde(skip)]
    advice: Vec<String>,
    #[serde(skip)]
    severity: Severity,
}

/// The gravest is reported first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Severity {
    #[default]
    None,
    /// It works, with a NIC less or in a way that was hardly meant.
    Some,
    /// The program does not get a network.
    All,
}

/// Verdict on a program's network, and the remedy if it gets none.
///
/// It is displayed with its reasons and the remedies, without the NICs and the VNIs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    verdict: String,
    works: bool,
    reasons: Vec<String>,
    advice: Vec<String>,
    nics: Vec<NicNetwork>,
    #[serde(rename = "vni_roles")]
    vnis: Vec<GivenVni>,
}

const AGAIN: &str = "Start the program in a step of its own (srun, flux run, mpiexec), so that it gets \
                     the variables and the service of that step. Variables that were exported in another \
                     step, by ssh, or on another node, do not fit.";

impl Network {
    /// Looks at the NICs as a program would: reads their services, and changes nothing.
    ///
    /// ```
    /// # use cxi::Device;
    /// # let device = Device::cxi0(cxi_mock::Nic::new(cxi_mock::NicConfig::new())?.root()?);
    /// use cxi_job::explain::{Network, Program};
    ///
    /// // This process is `Program::this(&ProcFs::system())`.
    /// let program = Program::default();
    /// let network = Network::of(&program, &[device])?;
    /// assert!(!network.works());
    /// assert_eq!(network.verdict(), "no scheduler gave you a service");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A NIC does not answer.
    pub fn of(program: &Program, devices: &[Device]) -> cxi::Result<Self> {
        let nics: Vec<NicNetwork> =
            devices.iter().map(|device| nic(program, device)).collect::<cxi::Result<_>>()?;
        let mut network = Self {
            verdict: String::new(),
            works: false,
            reasons: Vec::new(),
            advice: Vec::new(),
            vnis: program.vnis(),
            nics,
        };
        network.judge(program);
        Ok(network)
    }

    /// The answer in one sentence.
    #[must_use]
    pub fn verdict(&self) -> &str {
        &self.verdict
    }

    /// Returns whether nothing is in the way.
    #[must_use]
    pub const fn works(&self) -> bool {
        self.works
    }

    /// The NICs; none where programs on several nodes were compared.
    #[must_use]
    pub fn nics(&self) -> &[NicNetwork] {
        &self.nics
    }

    /// The job's VNIs, as the first program has them.
    #[must_use]
    pub fn vnis(&self) -> &[GivenVni] {
        &self.vnis
    }

    fn judge(&mut self, program: &Program) {
        let here: Vec<DeviceId> = self.nics.iter().map(|nic| nic.device).collect();
        let named = program.list("SLINGSHOT_DEVICES");
        let is_here = |name: &&&str| here.iter().any(|device| device.to_string() == **name);
        let provider = program.get("FI_PROVIDER").filter(|providers| !uses_cxi(providers));
        // libfabric would not even look at the NICs.
        if let Some(provider) = provider {
            self.verdict = format!(
                "FI_PROVIDER={provider} keeps libfabric from using the NICs: its provider cxi is not among them"
            );
            self.advice.push("unset FI_PROVIDER, or FI_PROVIDER=cxi".to_owned());
            return;
        }
        if !named.is_empty() && !named.iter().any(|name| is_here(&name)) {
            self.verdict = format!(
                "SLINGSHOT_DEVICES names {}, and this node has {}: the variables are another node's",
                named.join(", "),
                names(&here)
            );
            self.advice.push(AGAIN.to_owned());
            return;
        }
        if self.nics.iter().all(|nic| nic.takes.is_none()) {
            self.no_service(program, &here);
            return;
        }
        // Those that the variables name; otherwise libfabric uses any.
        let used: Vec<&NicNetwork> = self
            .nics
            .iter()
            .filter(|nic| named.is_empty() || named.contains(&nic.device.to_string().as_str()))
            .collect();
        let mut problems: BTreeMap<(std::cmp::Reverse<Severity>, &str), Vec<DeviceId>> =
            BTreeMap::new();
        for nic in &used {
            if let Some(problem) = &nic.problem {
                let key = (std::cmp::Reverse(nic.severity), problem.as_str());
                problems.entry(key).or_default().push(nic.device);
            }
        }
        let mut found: Vec<String> = problems
            .iter()
            .map(|((_, problem), devices)| format!("{}: {problem}", names(devices)))
            .collect();
        let mut advice: Vec<String> = Vec::new();
        let mut worst: Vec<&&NicNetwork> = used.iter().collect();
        worst.sort_by_key(|nic| std::cmp::Reverse(nic.severity));
        for line in worst.iter().flat_map(|nic| &nic.advice) {
            if !advice.contains(line) {
                advice.push(line.clone());
            }
        }
        let mut vnis: Vec<u16> = used.iter().filter_map(|nic| Some(nic.takes?.vni)).collect();
        vnis.sort_unstable();
        vnis.dedup();
        if let [first, second, ..] = *vnis {
            found.push(format!(
                "libfabric takes VNI {first} on one NIC and VNI {second} on another: ranks on different \
                 NICs cannot talk to each other"
            ));
            advice.push(AGAIN.to_owned());
        }
        if let Err(error) = SlingshotEnv::parse(|name| program.variables.get(name).map(Into::into))
        {
            found.push(error.to_string());
            advice.push(
                "Let the scheduler set all of SLINGSHOT_*, and do not change them.".to_owned(),
            );
        }
        let gone = named.iter().filter(|name| !is_here(name)).copied().collect::<Vec<_>>();
        if !gone.is_empty() {
            found.push(format!(
                "SLINGSHOT_DEVICES names {}, which this node does not have",
                gone.join(", ")
            ));
        }
        let taken = describe_taken(&used);
        if found.is_empty() {
            self.works = true;
            self.verdict = format!("the network is there: libfabric takes {taken}");
        } else {
            self.verdict = found.remove(0);
            self.reasons = found;
        }
        self.advice = advice;
    }

    /// No NIC has a service for the program.
    fn no_service(&mut self, program: &Program, here: &[DeviceId]) {
        let unset: Vec<&str> =
            CLEAR[..3].iter().copied().filter(|name| program.get(name).is_none()).collect();
        let one_node = ["SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_STEP_NUM_NODES"]
            .iter()
            .any(|name| program.get(name) == Some("1"));
        let in_slurm = program.get("SLURM_JOB_ID").is_some();
        let in_job = in_slurm
            || ["FLUX_JOB_ID", "PBS_JOBID", "PALS_APID"]
                .iter()
                .any(|name| program.get(name).is_some());
        let verdict = match (in_job, one_node) {
            (true, true) if in_slurm => {
                "your scheduler gave you no service: single-node jobs get none here; \
                 srun --network=single_node_vni asks for one"
            }
            (true, true) => "your scheduler gave you no service: single-node jobs get none here",
            (true, false) => "your scheduler gave you no service",
            (false, _) => "no scheduler gave you a service",
        };
        verdict.clone_into(&mut self.verdict);
        self.reasons.push(format!("No service of {} admits uid {}.", names(here), program.uid));
        if !unset.is_empty() {
            let verb = if unset.len() == 1 { "is" } else { "are" };
            self.reasons.push(format!("{} {verb} not set.", unset.join(", ")));
        }
        if !in_job {
            self.reasons.push(
                "This is not in a job of Slurm, Flux or PBS: SLURM_JOB_ID, FLUX_JOB_ID and PBS_JOBID are not set."
                    .to_owned(),
            );
        }
        self.reasons.push(
            "libfabric's fi_domain then fails with ENOSYS (-38, Function not implemented): the default \
             service is disabled, as it should be."
                .to_owned(),
        );
        if !in_job || in_slurm {
            self.advice.push(
                "On a single node, Slurm gives a service only if asked: srun --network=single_node_vni \
                 ./program, or SLURM_NETWORK=single_node_vni in the environment."
                    .to_owned(),
            );
        }
        self.advice.push(
            "Start the program by the scheduler (srun, flux run, mpiexec), not by ssh, and pass SLINGSHOT_* \
             on to its processes."
                .to_owned(),
        );
        for nic in &self.nics {
            let disabled =
                nic.usable.iter().filter(|usable| !usable.enabled && !usable.service.is_default());
            self.reasons.extend(disabled.map(|usable| {
                format!("{}: {} would admit you, but is disabled.", nic.device, usable.name)
            }));
        }
    }

    /// Compares the variables of a job on several nodes, by the names of these.
    #[must_use]
    pub fn between(nodes: &[(String, Program)]) -> Self {
        let mut network = Self {
            verdict: String::new(),
            works: false,
            reasons: Vec::new(),
            advice: Vec::new(),
            nics: Vec::new(),
            vnis: nodes.first().map(|(_, program)| program.vnis()).unwrap_or_default(),
        };
        let mut found = Vec::new();
        let lists: Vec<(&str, Vec<&str>)> = nodes
            .iter()
            .map(|(name, program)| (name.as_str(), program.list("SLINGSHOT_VNIS")))
            .collect();
        for (name, _) in lists.iter().filter(|(_, vnis)| vnis.is_empty()) {
            found.push(format!("SLINGSHOT_VNIS is not set on {name}"));
        }
        for (index, (one, vnis)) in lists.iter().enumerate() {
            let others = lists.iter().enumerate().filter(|(other, _)| *other != index);
            let Some(first) = vnis.first() else { continue };
            for (other_index, (other, theirs)) in others {
                let Some(their_first) = theirs.first() else { continue };
                if !theirs.contains(first) {
                    found.push(format!(
                        "VNI {first} of {one} is not among {other}'s ({})",
                        theirs.join(", ")
                    ));
                } else if first != their_first && index < other_index {
                    found.push(format!(
                        "{one} takes VNI {first} and {other} VNI {their_first}, because libfabric takes the first of each list"
                    ));
                }
            }
        }
        if found.is_empty() {
            let first =
                lists.first().and_then(|(_, vnis)| vnis.first()).copied().unwrap_or_default();
            let names: Vec<&str> = lists.iter().map(|(name, _)| *name).collect();
            network.works = true;
            network.verdict = format!(
                "{} can talk to each other: libfabric takes VNI {first} on each",
                names.join(", ")
            );
        } else {
            network.verdict =
                format!("{}: their processes cannot talk to each other", found.remove(0));
            network.reasons = found;
            network.advice.push(
                "Start all ranks in one step, so that they have the same VNIs in the same order."
                    .to_owned(),
            );
        }
        network
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.verdict)?;
        for reason in &self.reasons {
            writeln!(f, "  {reason}")?;
        }
        if !self.advice.is_empty() {
            writeln!(f, "  What to do:")?;
        }
        for advice in &self.advice {
            writeln!(f, "    - {advice}")?;
        }
        Ok(())
    }
}

/// Returns whether a list of providers has the NIC's, or excludes others than it.
fn uses_cxi(providers: &str) -> bool {
    let (excludes, list) = match providers.strip_prefix('^') {
        Some(list) => (true, list),
        None => (false, providers),
    };
    let named = list.split([',', ';', '+']).any(|name| matches!(name.trim(), "cxi" | "lnx"));
    named != excludes
}

fn names(devices: &[DeviceId]) -> String {
    let names: Vec<String> = devices.iter().map(ToString::to_string).collect();
    if names.is_empty() { "no NIC".to_owned() } else { names.join(", ") }
}

/// `service 5 and VNI 1036 on cxi0, cxi1`.
fn describe_taken(nics: &[&NicNetwork]) -> String {
    let mut taken: Vec<((i64, u16), Vec<DeviceId>)> = Vec::new();
    for nic in nics {
        let Some(Taken { service, vni, .. }) = nic.takes else { continue };
        match taken.iter_mut().find(|(pair, _)| *pair == (service, vni)) {
            Some((_, devices)) => devices.push(nic.device),
            None => taken.push(((service, vni), vec![nic.device])),
        }
    }
    let parts = taken.iter().map(|((service, vni), devices)| {
        format!("service {service} and VNI {vni} on {}", names(devices))
    });
    parts.collect::<Vec<_>>().join("; ")
}

/// Returns the variables' choice for a NIC as libfabric reads it: the first VNI, and the service at
/// the NIC's place. It takes as a number whatever starts as one.
fn by_variables(program: &Program, device: DeviceId) -> Option<Taken> {
    let name = device.to_string();
    let vni = *program.list("SLINGSHOT_VNIS").first()?;
    let place = program.list("SLINGSHOT_DEVICES").iter().position(|entry| *entry == name)?;
    let ids = program.list("SLINGSHOT_SVC_IDS");
    let service = leading_number(ids.get(place)?);
    // A negative number is a failure to libfabric, and it looks for a service itself.
    (service >= 0).then_some(Taken {
        service,
        vni: u16::try_from(leading_number(vni) & 0xffff).unwrap_or_default(),
        by_variables: true,
    })
}

fn leading_number(text: &str) -> i64 {
    let text = text.trim();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    digits
        .get(..end)
        .and_then(|digits| digits.parse::<i64>().ok())
        .map_or(0, |number| sign * number)
}

/// A NIC, as a program would use it.
fn nic(program: &Program, device: &Device) -> cxi::Result<NicNetwork> {
    let services = device.services();
    // A list does not show network namespaces.
    let with_netns = |service: Service| {
        let is_empty = service.members().is_some_and(|members| members.is_empty());
        let netns = if is_empty { services.netns(service.id()).ok().flatten() } else { None };
        (service, netns)
    };
    let all: Vec<(Service, Option<u32>)> = services.list()?.into_iter().map(with_netns).collect();
    let usable: Vec<UsableService> = all
        .iter()
        .filter(|(service, _)| !service.is_system())
        .filter_map(|(service, netns)| {
            Some(UsableService {
                service: service.id(),
                name: describe::service(service),
                by: program.admits(service, *netns)?,
                enabled: service.is_enabled(),
            })
        })
        .collect();
    let mut nic = NicNetwork {
        device: device.id(),
        takes: by_variables(program, device.id()).or_else(|| by_itself(program, &all, &usable)),
        usable,
        problem: None,
        advice: Vec::new(),
        severity: Severity::None,
    };
    nic.check(program, &all);
    if nic.problem.is_none() {
        let problems = device.info().map(|info| crate::node::problems(&info)).unwrap_or_default();
        // A virtual function has the services of its physical one, and can be used.
        let problem = problems.into_iter().find(|problem| *problem != NicProblem::VirtualFunction);
        if let Some(problem) = problem {
            nic.problem = Some(problem.to_string());
            nic.severity = Severity::Some;
            nic.advice
                .push("See cxi devices -v, and tell the administrator of the node.".to_owned());
        }
    }
    Ok(nic)
}

/// The service that libfabric finds by itself: of the last that admit the program, that of the best
/// kind.
fn by_itself(
    program: &Program,
    all: &[(Service, Option<u32>)],
    usable: &[UsableService],
) -> Option<Taken> {
    let enabled = usable.iter().rev().filter(|usable| usable.enabled);
    let best = enabled.min_by_key(|usable| usable.by)?;
    let (service, _) = all.iter().find(|(service, _)| service.id() == best.service)?;
    let default = program.get("FI_CXI_DEFAULT_VNI").map(leading_number);
    let default = default.and_then(|vni| u16::try_from(vni).ok()).unwrap_or(DEFAULT_VNI);
    let vni = match service.vnis() {
        VniAccess::Unrestricted => default,
        vnis => vnis.iter().next().map_or(0, Vni::get),
    };
    Some(Taken { service: best.service.get().into(), vni, by_variables: false })
}

impl NicNetwork {
    /// The NIC.
    #[must_use]
    pub const fn device(&self) -> DeviceId {
        self.device
    }

    /// The service that libfabric takes, if it is the ID of one.
    #[must_use]
    pub fn service(&self) -> Option<ServiceId> {
        ServiceId::new(u32::try_from(self.takes?.service).ok()?).ok()
    }

    /// The VNI that libfabric takes, if it is one.
    #[must_use]
    pub fn vni(&self) -> Option<Vni> {
        Vni::new(self.takes?.vni).ok()
    }

    /// The enabled services that admit the program.
    pub fn usable(&self) -> impl Iterator<Item = ServiceId> {
        self.usable.iter().filter(|usable| usable.enabled).map(|usable| usable.service)
    }

    /// Checks the answer of the driver to libfabric's choice.
    fn check(&mut self, program: &Program, all: &[(Service, Option<u32>)]) {
        let Some(taken) = self.takes else {
            self.severity = Severity::All;
            self.problem = Some(format!("no service admits uid {}", program.uid));
            self.advice.push(AGAIN.to_owned());
            return;
        };
        let source = if taken.by_variables { "SLINGSHOT_SVC_IDS names" } else { "libfabric takes" };
        let id = taken.service;
        let found = all.iter().find(|(service, _)| i64::from(service.id().get()) == id);
        let Some((service, netns)) = found else {
            self.fail(format!("{source} service {id}, which is gone"));
            return;
        };
        let name = describe::service(service);
        if program.admits(service, *netns).is_none() {
            let by_group = service
                .members()
                .into_iter()
                .flat_map(|members| members.iter().collect::<Vec<_>>());
            let by_group = by_group.into_iter().find_map(|member| match member {
                Member::Gid(gid) if program.groups.contains(&gid) => Some(gid),
                _ => None,
            });
            self.fail(format!(
                "{source} {name}, which does not admit uid {} and gid {}",
                program.uid, program.gid
            ));
            if let Some(gid) = by_group {
                self.advice.insert(
                    0,
                    format!("Group {gid} is a supplementary one, which the driver does not look at: start the program with newgrp or sg."),
                );
            }
        } else if !service.is_enabled() {
            self.fail(format!("{source} {name}, and a disabled service cannot be used"));
        } else if taken.by_variables && !has_vni(service, taken.vni) {
            self.fail(format!(
                "VNI {}, the first of SLINGSHOT_VNIS, is not one of {name}",
                taken.vni
            ));
        } else if !taken.by_variables && service.members().is_none() {
            self.severity = Severity::Some;
            self.problem = Some(format!(
                "libfabric takes {name} with VNI {}, because no service is this job's own: every user of the \
                 node shares it",
                taken.vni
            ));
            self.advice.push(
                "Start the program by the scheduler, so that it gets a service of its own."
                    .to_owned(),
            );
        }
    }

    /// The program gets no network on this NIC.
    fn fail(&mut self, problem: String) {
        self.severity = Severity::All;
        self.problem = Some(problem);
        self.advice.push(AGAIN.to_owned());
        let taken = self.takes.map(|taken| taken.service);
        let mut own =
            self.usable.iter().filter(|usable| usable.enabled && usable.by < Admission::Everyone);
        let other = own.rfind(|usable| Some(i64::from(usable.service.get())) != taken);
        if let Some(other) = other {
            self.advice.push(format!("On {}, {} admits this user.", self.device, other.name));
        }
    }
}

/// The choice of libfabric and the services, without the name of the NIC.
impl fmt::Display for NicNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.takes {
            None => write!(f, "libfabric finds no service")?,
            Some(Taken { service, vni, by_variables }) => write!(
                f,
                "libfabric takes service {service} and VNI {vni}{}",
                if by_variables { "" } else { ", which it finds by itself" }
            )?,
        }
        if self.usable().next().is_none() {
            write!(f, "\n  no enabled service admits this user")?;
        }
        for usable in &self.usable {
            let admits = if usable.enabled { "admits" } else { "would admit" };
            write!(f, "\n  {} {admits} this user", usable.name)?;
        }
        Ok(())
    }
}

fn has_vni(service: &Service, vni: u16) -> bool {
    Vni::new(vni).is_ok_and(|vni| match service.vnis() {
        VniAccess::Unrestricted => true,
        vnis => vnis.iter().any(|own| own == vni),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_libfabric_reads_them() {
        for (text, number) in [("12", 12), ("-1", -1), (" 7x", 7), ("x", 0), ("", 0), ("-", 0)] {
            assert_eq!(leading_number(text), number, "{text:?}");
        }
    }

    #[test]
    fn a_provider_is_chosen_or_excluded() {
        for (providers, uses) in [
            ("cxi", true),
            ("tcp", false),
            ("^cxi", false),
            ("^tcp", true),
            ("tcp,cxi", true),
            ("lnx", true),
            ("verbs;ofi_rxm", false),
        ] {
            assert_eq!(uses_cxi(providers), uses, "{providers}");
        }
    }
}
