//! The commands, on the NICs of a node.

mod add;
mod check;
mod del;

use std::cell::Cell;

use cxi::{Device, DeviceId, ErrorKind, Member, Service, ServiceId, VniAccess};
use cxi_job::cluster::{ServiceRecord, ServiceRecords};
use cxi_job::{Filter, Node, ReleaseOptions, ReleaseReport, ReleaseStatus};

use crate::call::Command;
use crate::config::Config;
use crate::error::{Code, Error};
use crate::record::{Attachment, Record, Records};

/// The plugin for a network.
#[derive(Debug)]
pub struct Plugin<'a> {
    node: Node,
    records: Records,
    /// Records that tell commands for jobs whose services they have to leave.
    services: ServiceRecords,
    config: &'a Config,
}

impl<'a> Plugin<'a> {
    /// The plugin for a network, on the NICs of a node with its lock.
    ///
    /// # Errors
    ///
    /// The directory of records cannot be made.
    pub fn new(node: Node, config: &'a Config) -> Result<Self, Error> {
        let directory = &config.settings.state_dir;
        let services = ServiceRecords::new(directory.with_file_name("services"));
        Ok(Self { node, records: Records::open(directory)?, services, config })
    }

    /// Executes the command and returns what to print: the result of ADD, otherwise nothing.
    ///
    /// # Errors
    ///
    /// See [`Code`].
    pub fn answer(&self, command: &Command) -> Result<String, Error> {
        match command {
            Command::Add(container) => self.add(container),
            Command::Del(container) => self.del(&container.attachment),
            Command::Check(container) => self.check(container),
            Command::Status => self.status(),
            Command::Gc => self.gc(),
        }
        .map(Option::unwrap_or_default)
    }

    /// The services that a test selects, on all NICs.
    fn services(
        &self,
        selects: impl Fn(&Device, &Service) -> cxi::Result<bool>,
    ) -> Result<Vec<(DeviceId, ServiceId)>, Error> {
        let failed = Cell::new(None);
        let selected = self.node.services(|device, service| match selects(device, service) {
            Ok(selected) => selected,
            // It went since the list was made.
            Err(error) if matches!(error.kind(), ErrorKind::NoSuchService { .. }) => false,
            Err(error) => {
                failed.set(Some(error));
                false
            }
        });
        let selected = selected.and_then(|ids| failed.into_inner().map_or(Ok(ids), Err));
        let ids = selected.map_err(|error| Error::new(Code::Nic, error.to_string()))?.into_iter();
        Ok(ids.map(|(device, service)| (device, service.id())).collect())
    }

    /// Destroys the services of a record, and says no more whose they are. Needs the lock.
    fn take_back(&self, record: &Record) -> Result<(), Error> {
        let grant = record.grant.as_ref();
        let services = match grant {
            Some(grant) if grant.services.is_empty() => Vec::new(),
            Some(grant) => {
                let filter = Filter::for_grant(grant);
                // An administrator may have destroyed it, and another pod's may have its number.
                self.services(|device, service| {
                    Ok(filter.selects(device.id(), service)
                        && Admitted::by(device, service)? == Admitted::NetNs(record.netns))
                })?
            }
            None => self.unrecorded(record)?,
        };
        if !services.is_empty() {
            self.release(&Filter::services(services.iter().copied()), &ReleaseOptions::once())?;
        }
        let granted = grant.iter().flat_map(|grant| &grant.services);
        let granted = granted.map(|entry| (entry.device, entry.service));
        self.unname(&record.attachment, granted.chain(services))
    }

    /// Removes the records that say that an attachment made services.
    fn unname(
        &self,
        attachment: &Attachment,
        services: impl IntoIterator<Item = (DeviceId, ServiceId)>,
    ) -> Result<(), Error> {
        let maker = maker(attachment);
        let mut of_others = self.services.all()?;
        of_others.retain(|record| record.maker != maker);
        for (device, service) in services {
            let is_it = |record: &ServiceRecord| {
                (record.service.device, record.service.service) == (device, service)
            };
            if !of_others.iter().any(is_it) {
                self.services.remove(device, service)?;
            }
        }
        Ok(())
    }

    /// The services that a killed call made for an attachment. Needs the lock.
    fn unrecorded(&self, record: &Record) -> Result<Vec<(DeviceId, ServiceId)>, Error> {
        if record.vnis.is_empty() {
            return Ok(Vec::new());
        }
        let named = self.named(|other| other.netns == record.netns)?;
        let mut of_others = self.services.all()?;
        of_others.retain(|record| !record.maker.starts_with(MAKER));
        let mut vnis = record.vnis.clone();
        vnis.sort_unstable();
        self.services(|device, service| {
            let mut its: Vec<_> = match service.vnis() {
                VniAccess::List(list) => list.iter().collect(),
                _ => Vec::new(),
            };
            its.sort_unstable();
            if service.is_system()
                || its != vnis
                || of_others.iter().any(|record| record.service.is(device.id(), service))
            {
                return Ok(false);
            }
            Ok(match Admitted::by(device, service)? {
                Admitted::NetNs(netns) => {
                    netns == record.netns && !named.contains(&(device.id(), service.id()))
                }
                // Services get their VNIs first and their namespace afterward: a call was killed in
                // between. It can be another one's, and no process can use it.
                Admitted::Nobody => true,
                Admitted::Others => false,
            })
        })
    }

    /// The services that records name.
    fn named(&self, of: impl Fn(&Record) -> bool) -> Result<Vec<(DeviceId, ServiceId)>, Error> {
        let records = self.records.all()?.into_iter().flatten();
        let grants = records.filter(of).filter_map(|record| record.grant);
        Ok(grants
            .flat_map(|grant| grant.services)
            .map(|entry| (entry.device, entry.service))
            .collect())
    }

    /// Destroys services, on all NICs even if one fails.
    fn release(&self, filter: &Filter, options: &ReleaseOptions<'_>) -> Result<(), Error> {
        let report = self.node.release(filter, options);
        let code = match report.status() {
            ReleaseStatus::NothingToDo | ReleaseStatus::Done => return Ok(()),
            ReleaseStatus::StillBusy => Code::TryAgain,
            _ => Code::Nic,
        };
        Err(Error::new(code, "services are left").details(left(&report)))
    }
}

/// Users of a service, as far as pods can be.
#[derive(PartialEq)]
enum Admitted {
    NetNs(u32),
    Nobody,
    Others,
}

impl Admitted {
    /// The list shows a network namespace only if the program that made the service wrote it there.
    fn by(device: &Device, service: &Service) -> cxi::Result<Self> {
        let Some(members) = service.members() else { return Ok(Self::Others) };
        let listed = members.iter().find_map(|member| match member {
            Member::NetNs(netns) => Some(netns),
            _ => None,
        });
        Ok(match listed {
            Some(netns) => Self::NetNs(netns),
            None if !members.is_empty() => Self::Others,
            None => device.services().netns(service.id())?.map_or(Self::Nobody, Self::NetNs),
        })
    }
}

/// Program that records of services name as their maker.
const MAKER: &str = "cxi-cni";

/// The name under which the services of an attachment are recorded for other commands.
fn maker(attachment: &Attachment) -> String {
    format!("{MAKER} (container {})", attachment.container)
}

fn left(report: &ReleaseReport) -> String {
    let services = report.left().map(ToString::to_string);
    let nics = report.nics.iter().map(|nic| nic.reason.clone());
    services.chain(nics).collect::<Vec<_>>().join("\n")
}
