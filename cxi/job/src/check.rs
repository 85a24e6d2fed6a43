//! Checking a job's environment against its node.

use std::fmt;

use super::describe;
use super::environment::SlingshotEnv;
use super::node::{NicProblem, Node};
use cxi::{DeviceId, Member, ServiceId, TrafficClasses, Vni, VniAccess};

/// Why a job cannot use what its environment names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EnvironmentProblem {
    /// The NIC.
    pub device: DeviceId,
    /// The service named for it.
    pub service: ServiceId,
    /// What is wrong.
    pub kind: EnvironmentProblemKind,
}

/// What is wrong with one entry of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum EnvironmentProblemKind {
    /// The node has no such NIC.
    NoNic,
    /// The NIC cannot be used.
    Unusable(Vec<NicProblem>),
    /// The NIC does not answer.
    Unreadable(String),
    /// The NIC has no such service.
    NoService,
    /// The service is disabled.
    Disabled,
    /// The service does not admit the job's processes.
    NotAMember {
        /// The service in words.
        name: String,
    },
    /// The service does not allow a VNI.
    Vni {
        /// The VNI.
        vni: Vni,
        /// The service in words.
        name: String,
    },
    /// The service does not allow all the traffic classes.
    TrafficClasses {
        /// Those in the environment that are not allowed.
        classes: TrafficClasses,
    },
}

impl fmt::Display for EnvironmentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EnvironmentProblemKind as Kind;
        let Self {
            device, service, ..
        } = self;
        match &self.kind {
            Kind::NoNic => write!(f, "{device}: the node has no such NIC"),
            Kind::Unusable(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                write!(f, "{device}: {}", problems.join("; "))
            }
            Kind::Unreadable(reason) => f.write_str(reason),
            Kind::NoService => write!(
                f,
                "{device}: there is no service {service}: it was released, or the variables are \
                 another node's"
            ),
            Kind::Disabled => write!(f, "{device}: service {service} is disabled"),
            Kind::NotAMember { name } => {
                write!(
                    f,
                    "{device}: {name} is not for this user: an open gives EPERM"
                )
            }
            Kind::Vni { vni, name } => write!(f, "{device}: {name} does not allow VNI {vni}"),
            Kind::TrafficClasses { classes } => write!(
                f,
                "{device}: service {service} does not allow traffic class {classes}"
            ),
        }
    }
}

impl SlingshotEnv {
    /// Compares the variables with the node: whether each NIC and service exists, is enabled, and
    /// allows the VNIs and traffic classes. Returns nothing if all is well.
    ///
    /// `who` lists what identifies the job's processes: effective uid, effective gid, network
    /// namespace. The service has to admit at least one of them; with an empty `who` this is not
    /// checked.
    ///
    /// Needs no privilege.
    ///
    /// ```
    /// # use cxi::{Device, Member, Vni};
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let node = cxi_job::Node::from_devices([Device::from(mock.nics()[0].root()?)]);
    /// use cxi_job::JobRequest;
    ///
    /// let request = JobRequest::builder()
    ///     .uid(1000)
    ///     .vni(Vni::new(4034)?)
    ///     .build()?;
    /// let env = node.allocate(&request)?.env()?;
    /// assert!(env.check(&node, &[Member::Uid(1000)]).is_empty());
    /// let other = env.check(&node, &[Member::Uid(1001)]);
    /// assert_eq!(
    ///     other[0].to_string(),
    ///     "cxi0: service 2 (uid 1000, VNI 4034) is not for this user: an open gives EPERM"
    /// );
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn check(&self, node: &Node, who: &[Member]) -> Vec<EnvironmentProblem> {
        let entries = self.services().iter();
        entries
            .flat_map(|(device, service)| {
                let kinds = self.check_one(node, *device, *service, who);
                kinds.into_iter().map(|kind| EnvironmentProblem {
                    device: *device,
                    service: *service,
                    kind,
                })
            })
            .collect()
    }

    fn check_one(
        &self,
        node: &Node,
        device: DeviceId,
        id: ServiceId,
        who: &[Member],
    ) -> Vec<EnvironmentProblemKind> {
        use EnvironmentProblemKind as Kind;
        let Some(nic) = node.nic(device) else {
            return vec![Kind::NoNic];
        };
        let mut found = Vec::new();
        // A virtual function shows the services of its physical function, which is fine for a job.
        let problems = nic.problems().iter();
        let problems: Vec<NicProblem> = problems
            .filter(|problem| **problem != NicProblem::VirtualFunction)
            .cloned()
            .collect();
        if !problems.is_empty() {
            found.push(Kind::Unusable(problems));
        }
        let Some(open) = nic.device() else {
            return found;
        };
        let service = match open.services().list() {
            Ok(services) => services.into_iter().find(|service| service.id() == id),
            Err(error) => {
                found.push(Kind::Unreadable(error.to_string()));
                return found;
            }
        };
        let Some(service) = service else {
            found.push(Kind::NoService);
            return found;
        };
        let name = describe::service(&service);
        if !service.is_enabled() {
            found.push(Kind::Disabled);
        }
        if let Some(members) = service.members()
            && !who.is_empty()
            && !who.iter().any(|one| members.contains(*one))
        {
            found.push(Kind::NotAMember { name: name.clone() });
        }
        let allowed = service.vnis();
        let restricted = allowed != VniAccess::Unrestricted;
        let foreign = self
            .vnis()
            .iter()
            .filter(|vni| restricted && !allowed.contains(**vni));
        found.extend(foreign.map(|vni| Kind::Vni {
            vni: *vni,
            name: name.clone(),
        }));
        if let (Some(named), Some(allowed)) = (self.traffic_classes(), service.traffic_classes())
            && !allowed.contains(named)
        {
            found.push(Kind::TrafficClasses {
                classes: named - allowed,
            });
        }
        found
    }
}
