//! Checking a job's environment against its node.

use super::describe;
use super::environment::SlingshotEnv;
use super::node::{NicProblem, Node};
use cxi::{DeviceId, Member, ServiceId, VniAccess};
use serde::Serialize;

/// Reason for which a job cannot use what its environment names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{device}: {text}")]
#[non_exhaustive]
pub struct EnvironmentProblem {
    /// The NIC.
    pub device: DeviceId,
    /// The service named for it.
    pub service: ServiceId,
    /// The problem.
    pub text: String,
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
    /// # let node = cxi_job::Node::from_devices([Device::cxi0(mock.nics()[0].root()?)]);
    /// use cxi_job::JobRequest;
    ///
    /// let request = JobRequest::builder().uid(1000).vni(Vni::new(4034)?).build()?;
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
                let texts = self.check_one(node, *device, *service, who);
                texts.into_iter().map(|text| EnvironmentProblem {
                    device: *device,
                    service: *service,
                    text,
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
    ) -> Vec<String> {
        let Some(nic) = node.nic(device) else {
            return vec!["the node has no such NIC".to_owned()];
        };
        // A virtual function shows the services of its physical function, which is fine for a job.
        let problems = nic.problems().iter();
        let problems = problems.filter(|problem| **problem != NicProblem::VirtualFunction);
        let problems: Vec<String> = problems.map(ToString::to_string).collect();
        let mut found = Vec::new();
        if !problems.is_empty() {
            found.push(problems.join("; "));
        }
        let Some(open) = nic.device() else { return found };
        let service = match open.services().list() {
            Ok(services) => services.into_iter().find(|service| service.id() == id),
            Err(error) => {
                found.push(error.without_device().to_string());
                return found;
            }
        };
        let Some(service) = service else {
            found.push(format!(
                "there is no service {id}: it was released, or the variables are another node's"
            ));
            return found;
        };
        let name = describe::service(&service);
        if !service.is_enabled() {
            found.push(format!("service {id} is disabled"));
        }
        if let Some(members) = service.members()
            && !who.is_empty()
            && !who.iter().any(|one| members.contains(*one))
        {
            found.push(format!("{name} is not for this user: an open gives EPERM"));
        }
        let allowed = service.vnis();
        let restricted = allowed != VniAccess::Unrestricted;
        let foreign = self.vnis().iter().filter(|vni| restricted && !allowed.contains(**vni));
        found.extend(foreign.map(|vni| format!("{name} does not allow VNI {vni}")));
        if let (Some(named), Some(allowed)) = (self.traffic_classes(), service.traffic_classes())
            && !allowed.contains(named)
        {
            found.push(format!("service {id} does not allow traffic class {}", named - allowed));
        }
        found
    }
}
