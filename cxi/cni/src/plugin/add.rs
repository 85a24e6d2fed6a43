//! ADD: services for a pod, on all NICs or on none.

use std::path::Path;

use cxi::{Member, Vni};
use cxi_ioctl::Errno;
use cxi_job::JobRequest;
use cxi_job::allocate::{AllocateError, Cause};

use super::{Admitted, Plugin, maker};
use crate::call::Container;
use crate::error::{Code, Error};
use crate::record::{Attachment, Record};

impl Plugin<'_> {
    pub(super) fn add(&self, container: &Container) -> Result<Option<String>, Error> {
        let settings = &self.config.settings;
        let vnis = settings.vnis.wanted(container, &self.config.asked)?;
        if !vnis.is_empty() {
            let netns = netns(container)?;
            let request = self.request(netns, &vnis)?;
            self.end_earlier(&container.attachment, netns)?;
            self.allocate(&container.attachment, netns, vnis, &request)?;
        }
        Ok(Some(match &self.config.previous {
            Some(previous) => previous.get().to_owned(),
            None => serde_json::json!({"cniVersion": self.config.version}).to_string(),
        }))
    }

    fn request(&self, netns: u32, vnis: &[Vni]) -> Result<JobRequest, Error> {
        let settings = &self.config.settings;
        let mut request = JobRequest::builder()
            .member(Member::NetNs(netns))
            .vnis(vnis.iter().copied())
            .limits(settings.limits())
            .nics(settings.nics())
            .default_vnis(settings.allow_default_vnis)
            // Nothing is adopted: a pod may have two interfaces with the same VNIs, and lose one of
            // them.
            .adopt(false);
        if let Some(classes) = settings.traffic_classes {
            request = request.traffic_classes(classes);
        }
        request.build().map_err(|error| Error::new(Code::Configuration, error.to_string()))
    }

    /// Ends what an earlier call left of this attachment, and what is left of containers that are
    /// gone: their namespace had the inode that this one has now, so this pod could use their
    /// services. It could also use services that other programs made for that inode, and that may
    /// still be needed, so there must be none.
    fn end_earlier(&self, attachment: &Attachment, netns: u32) -> Result<(), Error> {
        let not_ended = |error: Error| {
            Error::new(
                error.code(),
                "an earlier attachment with this network namespace cannot be removed",
            )
            .details(error.to_string())
        };
        let mut unreadable = Vec::new();
        for record in self.records.all()? {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    unreadable.push(error.to_string());
                    continue;
                }
            };
            let earlier = record.attachment.container != attachment.container;
            if record.attachment == *attachment || (earlier && record.netns == netns) {
                self.end(&record.attachment).map_err(not_ended)?;
            }
        }
        let _held = self.records.lock()?;
        let own = self.named(|record| record.attachment.container == attachment.container)?;
        let unknown = self.services(|device, service| {
            Ok(!own.contains(&(device.id(), service.id()))
                && Admitted::by(device, service)? == Admitted::NetNs(netns))
        })?;
        if unknown.is_empty() {
            return Ok(());
        }
        let unknown = unknown.iter().map(|(device, service)| {
            format!(
                "{device}: service {service}; cxi service destroy -d {device} {service} destroys it"
            )
        });
        let details: Vec<_> = unknown.chain(unreadable).collect();
        Err(Error::new(
            Code::Nic,
            "services that no record names are for this network namespace: expected none",
        )
        .details(details.join("\n")))
    }

    fn allocate(
        &self,
        attachment: &Attachment,
        netns: u32,
        vnis: Vec<Vni>,
        request: &JobRequest,
    ) -> Result<(), Error> {
        let _held = self.records.lock()?;
        let mut record = Record {
            attachment: attachment.clone(),
            netns,
            vnis,
            boot: self.records.boot.clone(),
            grant: None,
        };
        self.records.write(&record)?;
        let grant = match self.node.allocate(request) {
            Ok(grant) => grant,
            Err(error) => {
                if error.left().is_empty() {
                    self.records.remove(attachment)?;
                }
                return Err(refused(&error));
            }
        };
        let maker = maker(attachment);
        let named = grant.owned().into_iter().map(|service| self.services.add(service, &maker));
        let named = named.collect::<Result<(), _>>().map_err(Error::from);
        record.grant = Some(grant);
        named.and_then(|()| self.records.write(&record)).inspect_err(|_| {
            // If not everything can be taken back, the record of the request covers what is left.
            if self.take_back(&record).is_ok() {
                let _ = self.records.remove(attachment);
            }
        })
    }
}

/// The inode of a pod's network namespace.
pub(super) fn netns(container: &Container) -> Result<u32, Error> {
    let path = container.netns.as_deref().unwrap_or(Path::new(""));
    let invalid = |text: String| Error::new(Code::Environment, format!("CNI_NETNS: {text}"));
    let found = Member::netns_at(path).map_err(|error| invalid(error.to_string()))?;
    let own = Member::own_netns().map_err(|error| invalid(error.to_string()))?;
    match found {
        Member::NetNs(inode) if found != own => Ok(inode),
        // Every process of the node could use its services.
        _ => Err(invalid(format!("{} is the network namespace of the node", path.display()))),
    }
}

fn refused(error: &AllocateError) -> Error {
    let passing = |cause: &Cause| match cause {
        Cause::Plan(_) | Cause::Rgids(_) => true,
        Cause::Service(error) => {
            matches!(error.errno(), Errno::EBUSY | Errno::EAGAIN | Errno::ENOSPC | Errno::EINTR)
        }
        _ => false,
    };
    let taken =
        |cause: &Cause| matches!(cause, Cause::Service(error) if error.errno() == Errno::EEXIST);
    let causes = || error.failures().iter().map(|failure| &failure.cause);
    let code = match error {
        AllocateError::Locked(error) if error.is_busy() => Code::TryAgain,
        AllocateError::Locked(_) => Code::Io,
        _ if causes().len() == 0 => Code::Nic,
        _ if causes().all(passing) => Code::TryAgain,
        _ if causes().all(taken) => Code::Vni,
        _ => Code::Nic,
    };
    Error::new(code, "cannot create services for the pod")
        .details(format!("{error}\n{}", error.remains()))
}
