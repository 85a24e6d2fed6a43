//! CHECK and STATUS: whether a pod still has its services, and whether pods can get services.

use cxi::Member;
use cxi::driver::Capabilities;
use cxi_job::audit::{Code as Found, Severity};
use cxi_job::{AuditOptions, NicPolicy};

use super::Plugin;
use super::add::netns;
use crate::call::Container;
use crate::error::{Code, Error};

impl Plugin<'_> {
    /// Checks that the pod still has its services.
    pub(super) fn check(&self, container: &Container) -> Result<Option<String>, Error> {
        let changed = |text: String| Err(Error::new(Code::Changed, text));
        let Some(record) = self.records.read(&container.attachment)? else {
            let source = &self.config.settings.vnis;
            if source.wanted(container, &self.config.asked)?.is_empty() {
                return Ok(None);
            }
            return changed("the pod has no services".to_owned());
        };
        let netns = netns(container)?;
        if netns != record.netns {
            let before = record.netns;
            return changed(format!(
                "the pod's network namespace is {netns}: expected {before}, which its services are \
                 for"
            ));
        }
        let Some(grant) = &record.grant else { return changed("ADD was interrupted".to_owned()) };
        let environment = match grant.env() {
            Ok(environment) => environment,
            Err(error) => return changed(error.to_string()),
        };
        let problems = environment.check(&self.node, &[Member::NetNs(netns)]);
        if problems.is_empty() {
            return Ok(None);
        }
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        changed(problems.join("\n"))
    }

    /// Checks that ADD would succeed.
    pub(super) fn status(&self) -> Result<Option<String>, Error> {
        let settings = &self.config.settings;
        let not_serving = |problems: Vec<String>| {
            let error = Error::new(Code::NotServing, "pods cannot be given services");
            Err(error.details(problems.join("\n")))
        };
        settings.vnis.is_ready()?;
        let wanted = settings.nics();
        let chosen: Vec<_> = self.node.nics().iter().filter(|nic| wanted.includes(nic)).collect();
        let mut problems = Vec::new();
        match &wanted {
            NicPolicy::Listed(listed) => {
                let missing = listed.iter().filter(|id| self.node.nic(**id).is_none());
                problems.extend(missing.map(|id| format!("{id}: the node has no such NIC")));
            }
            _ if chosen.is_empty() => problems.push("the node has no NIC".to_owned()),
            _ => {}
        }
        for nic in &chosen {
            let reasons = nic.problems().iter();
            problems.extend(reasons.map(|problem| format!("{}: {problem}", nic.id())));
            let Some(device) = nic.device() else { continue };
            match device.driver() {
                Ok(driver) if driver.can(Capabilities::NETNS) => {}
                Ok(_) => problems.push(format!(
                    "{}: its driver cannot have network namespaces as members: expected SHS 14.0.0 \
                     or later",
                    nic.id()
                )),
                Err(error) => problems.push(error.to_string()),
            }
        }
        let mut options = AuditOptions::default();
        options.job = settings.limits();
        let audit = self.node.audit(&options);
        let full = audit.findings.iter().filter(|finding| {
            finding.code == Found::NearlyExhausted
                && finding.severity == Severity::Error
                && chosen.iter().any(|nic| nic.id() == finding.device)
        });
        problems.extend(full.map(|finding| format!("{}: {}", finding.device, finding.text)));
        if problems.is_empty() { Ok(None) } else { not_serving(problems) }
    }
}
