//! Grants: the services of a job.

use super::environment::{EnvironmentError, SlingshotEnv};
use super::limits::Cut;
use super::node::NicProblem;
use super::owners::OwnedService;
use cxi::{DeviceId, Limits, LnisPerRgid, Members, ServiceId, TrafficClasses, VniAccess};
use serde::{Deserialize, Serialize};

/// Services of a job on a node: plain data, which a scheduler keeps until it releases the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// Users and groups that may use the services.
    pub members: Members,
    /// One service for each NIC, by NIC number.
    pub services: Vec<GrantedService>,
    /// NICs that the job did not get.
    pub left_out: Vec<LeftOut>,
}

/// Service of a job on one NIC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrantedService {
    /// The NIC.
    pub device: DeviceId,
    /// The service.
    pub service: ServiceId,
    /// Its VNIs, the application's first.
    pub vnis: VniAccess,
    /// Its traffic classes.
    pub traffic_classes: TrafficClasses,
    /// The limits that were asked for, before any cut; `None` for none.
    pub asked: Option<Limits>,
    /// The limits in force; `None` for none.
    pub granted: Option<Limits>,
    /// Limits that are less than requested, and the services that hold the rest.
    pub cuts: Vec<Cut>,
    /// LNIs per RGID, if that was requested.
    pub lnis_per_rgid: Option<LnisPerRgid>,
    /// `true` if the service already existed, made by an earlier run.
    pub adopted: bool,
}

/// A NIC that a job did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// The NIC.
    pub device: DeviceId,
    /// The reasons; empty for a NIC that was not asked for.
    pub problems: Vec<NicProblem>,
}

impl Grant {
    /// The service on a NIC.
    #[must_use]
    pub fn service_on(&self, device: DeviceId) -> Option<ServiceId> {
        let entry = self.services.iter().find(|entry| entry.device == device);
        entry.map(|entry| entry.service)
    }

    /// The services as records name them.
    #[must_use]
    pub fn owned(&self) -> Vec<OwnedService> {
        let owned = |entry: &GrantedService| OwnedService {
            device: entry.device,
            service: entry.service,
            members: Some(self.members),
            vnis: entry.vnis,
            // A driver may store what was granted in other words.
            terms: None,
        };
        self.services.iter().map(owned).collect()
    }

    /// The job's environment: the `SLINGSHOT_*` variables. The NICs are in order, and the traffic
    /// classes are those that all services allow.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::NoService`] for a grant without services, or any other error of an
    /// environment, such as [`EnvironmentError::VnisDiffer`], if the grant was not made by an
    /// allocation.
    pub fn env(&self) -> Result<SlingshotEnv, EnvironmentError> {
        let mut services: Vec<&GrantedService> = self.services.iter().collect();
        services.sort_by_key(|service| service.device);
        let first = services.first().ok_or(EnvironmentError::NoService)?;
        if let Some(other) = services.iter().find(|other| other.vnis != first.vnis) {
            return Err(EnvironmentError::VnisDiffer { first: first.device, device: other.device });
        }
        let all = TrafficClasses::from_bits_truncate(0xf);
        let classes =
            services.iter().fold(all, |classes, service| classes & service.traffic_classes);
        let entries = services.iter().map(|service| (service.device, service.service));
        SlingshotEnv::new(first.vnis.iter(), entries, Some(classes))
    }

    /// Everything that was cut, on any NIC.
    pub fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.services.iter().flat_map(|entry| &entry.cuts)
    }
}
