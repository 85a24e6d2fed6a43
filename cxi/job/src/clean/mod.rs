//! Destroying what ended jobs left behind.

mod policy;
mod report;

use std::io;

use super::describe;
use super::node::Node;
use super::parallel;
use super::release::{FailedNic, ReleaseOptions, ReleaseReport, release_chosen};
use cxi::driver::Quirks;
use cxi::{Device, DeviceId, Service};

pub use policy::CleanPolicy;
pub use report::{CleanReport, KeepReason, OrphanReason, Verdict};

impl Node {
    /// Destroys the services that jobs left behind: those with a VNI of the scheduler's pool that
    /// no live job has.
    ///
    /// Services are listed first, and the [live jobs](CleanPolicy::live) after them. Then each
    /// service is checked again under the [lock](Node::with_lock): it is destroyed only if it is
    /// unchanged and still belongs to no live job.
    ///
    /// Waits for busy services as [`Node::release`] does. Needs CAP_SYS_ADMIN, except for a dry
    /// run.
    ///
    /// ```
    /// # use cxi::{Device, Vni};
    /// # use cxi_mock::{MockNode, NicConfig};
    /// # let mock = MockNode::with_nics(1, &NicConfig::new())?;
    /// # let node = cxi_job::Node::from_devices([Device::from(mock.nics()[0].root()?)]);
    /// use cxi_job::{CleanPolicy, JobRequest, ReleaseOptions};
    ///
    /// for (uid, vni) in [(1000, 1024), (1001, 1025)] {
    ///     node.allocate(&JobRequest::builder().uid(uid).vni(Vni::new(vni)?).build()?)?;
    /// }
    /// let policy = CleanPolicy::new("1024-65535".parse()?).keep_vnis(&"1025".parse()?);
    /// let clean = node.clean(&policy, &ReleaseOptions::once())?;
    /// assert_eq!(clean.orphans.len(), 1);
    /// assert_eq!(clean.orphans[0].name, "service 2 (uid 1000, VNI 1024)");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The live jobs cannot be determined, or the lock cannot be acquired: nothing was destroyed.
    pub fn clean(
        &self,
        policy: &CleanPolicy<'_>,
        options: &ReleaseOptions<'_>,
    ) -> io::Result<CleanReport> {
        let (mut orphans, kept, nics) = self.judge(policy)?;
        let unfinished = |found: &Found<OrphanReason>| found.reason == OrphanReason::Unfinished;
        if let Some(pause) = policy.pause(self)
            && orphans.iter().any(unfinished)
        {
            // A service that another process is about to finish is no orphan. A running prolog
            // holds the lock, however long it takes.
            options.sleep(pause);
            let _held = self.acquire().map_err(io::Error::other)?;
            let (again, _, _) = self.judge(policy)?;
            orphans.retain(|orphan| {
                // Any change since, such as a VNI, shows that another process is at work.
                let unchanged =
                    |now: &Found<_>| now.device == orphan.device && now.service == orphan.service;
                !unfinished(orphan) || again.iter().any(unchanged)
            });
        }
        let release = (!policy.dry_run).then(|| {
            let chosen: Vec<(DeviceId, Service)> = orphans
                .iter()
                .map(|orphan| (orphan.device, orphan.service))
                .collect();
            let live = || policy.live_now();
            ReleaseReport {
                services: release_chosen(self, &chosen, &live, options),
                nics,
            }
        });
        Ok(CleanReport {
            orphans: orphans.into_iter().map(Found::verdict).collect(),
            kept: kept.into_iter().map(Found::verdict).collect(),
            release,
        })
    }

    fn judge(&self, policy: &CleanPolicy<'_>) -> io::Result<Judgement> {
        let nics: Vec<&Device> = self.manageable().map(|(_, device)| device).collect();
        let lists = parallel::each(&nics, |device| device.services().list());
        // After the lists: a job that is not yet live has no service in them either.
        let live = policy.live_now()?;
        let unfinished = policy.pause(self).is_some();
        let (mut orphans, mut kept) = (Vec::new(), Vec::new());
        let mut failed = self.unopened();
        for (nic, list) in nics.into_iter().zip(lists) {
            let device = nic.id();
            match list {
                Ok(list) => {
                    for service in list {
                        match policy
                            .judge(device, &service, &live, unfinished)
                            .and_then(|reason| safe(nic, &service, reason))
                        {
                            Ok(reason) => orphans.push(Found {
                                device,
                                service,
                                reason,
                            }),
                            Err(reason) => kept.push(Found {
                                device,
                                service,
                                reason,
                            }),
                        }
                    }
                }
                Err(error) => failed.push(FailedNic {
                    device,
                    reason: error.to_string(),
                }),
            }
        }
        failed.sort_by_key(|nic| nic.device);
        Ok((orphans, kept, failed))
    }
}

/// Keeps a service whose destruction may do harm.
fn safe(nic: &Device, service: &Service, reason: OrphanReason) -> Result<OrphanReason, KeepReason> {
    let lost = || nic.services().has_lost_range(service.id());
    if reason == OrphanReason::Unfinished
        && !nic.allows_quirks(Quirks::REFUSED_RANGE)
        && lost().is_ok_and(|lost| lost)
    {
        return Err(KeepReason::RangeRefused);
    }
    Ok(reason)
}

type Judgement = (
    Vec<Found<OrphanReason>>,
    Vec<Found<KeepReason>>,
    Vec<FailedNic>,
);

struct Found<R> {
    device: DeviceId,
    service: Service,
    reason: R,
}

impl<R> Found<R> {
    fn verdict(self) -> Verdict<R> {
        Verdict {
            device: self.device,
            service: self.service.id(),
            name: describe::service(&self.service),
            reason: self.reason,
        }
    }
}
