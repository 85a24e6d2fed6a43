//! The shape of things that several commands print: who may use something, on which VNIs, with which
//! limits. Those of services are in the library, in the form of HPE's templates; these are the same for
//! what records and reports say.

use std::fmt;

use cxi::{Limits, Members, Resource, TrafficClasses, Vni, VniAccess, VniRange};
use cxi_job::limits::Cut;
use cxi_job::release::{Outcome, ReleaseReport, Released};
use cxi_job::{Grant, LeftOut};
use cxi_site::IdSet;
use cxi_site::pool::Allotment;
use serde::{Serialize, Serializer};

use super::joined;

/// VNIs: a list, or a block; neither where they are not restricted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Vnis {
    pub(crate) vnis: Vec<Vni>,
    pub(crate) vni_range: Option<VniRange>,
}

impl From<VniAccess> for Vnis {
    fn from(access: VniAccess) -> Self {
        match access {
            VniAccess::List(list) => Self { vnis: list.iter().collect(), vni_range: None },
            VniAccess::Range(range) => Self { vnis: Vec::new(), vni_range: Some(range) },
            VniAccess::Unrestricted => Self { vnis: Vec::new(), vni_range: None },
        }
    }
}

impl From<&Allotment> for Vnis {
    fn from(allotment: &Allotment) -> Self {
        match allotment {
            Allotment::Block(range) => Self { vnis: Vec::new(), vni_range: Some(*range) },
            other => Self { vnis: other.iter().collect(), vni_range: None },
        }
    }
}

impl From<&IdSet> for Vnis {
    fn from(set: &IdSet) -> Self {
        Self { vnis: each(set), vni_range: None }
    }
}

impl Vnis {
    /// Returns whether the VNI is named.
    pub(crate) fn contains(&self, vni: Vni) -> bool {
        self.vnis.contains(&vni) || self.vni_range.is_some_and(|range| range.contains(vni))
    }
}

/// In the form of options.
impl fmt::Display for Vnis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vni_range {
            Some(range) => range.fmt(f),
            None => joined(&self.vnis, ",").fmt(f),
        }
    }
}

/// The VNIs of a set, one by one.
pub(crate) fn each(set: &IdSet) -> Vec<Vni> {
    set.iter().filter_map(|id| Vni::new(id).ok()).collect()
}

/// Members and VNIs of something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Access {
    restricted_members: bool,
    members: Members,
    restricted_vnis: bool,
    #[serde(flatten)]
    pub(crate) vnis: Vnis,
}

impl Access {
    /// Everyone without members.
    pub(crate) fn of(members: Option<Members>, vnis: VniAccess) -> Self {
        Self {
            restricted_members: members.is_some(),
            members: members.unwrap_or_default(),
            restricted_vnis: matches!(vnis, VniAccess::List(_)),
            vnis: vnis.into(),
        }
    }
}

/// The limits of a list.
pub(crate) fn limits<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Named {
        name: Resource,
        max: u16,
        res: u16,
    }
    serializer.collect_seq(limits.iter().map(|(name, limit)| Named {
        name,
        max: limit.max(),
        res: limit.reserved(),
    }))
}

#[derive(Debug, Serialize)]
struct ListedLimits(#[serde(serialize_with = "limits")] Limits);

/// Services that a job got.
#[derive(Debug, Serialize)]
pub(crate) struct Granted<'a> {
    restricted_members: bool,
    members: Members,
    services: Vec<GrantedService<'a>>,
    left_out: &'a [LeftOut],
}

#[derive(Debug, Serialize)]
struct GrantedService<'a> {
    device: cxi::DeviceId,
    service: cxi::ServiceId,
    #[serde(flatten)]
    vnis: Vnis,
    tcs: TrafficClasses,
    asked: Option<ListedLimits>,
    granted: Option<ListedLimits>,
    cuts: &'a [Cut],
    lnis_per_rgid: Option<cxi::LnisPerRgid>,
    adopted: bool,
}

impl<'a> From<&'a Grant> for Granted<'a> {
    fn from(grant: &'a Grant) -> Self {
        let services = grant.services.iter().map(|service| GrantedService {
            device: service.device,
            service: service.service,
            vnis: service.vnis.into(),
            tcs: service.traffic_classes,
            asked: service.asked.map(ListedLimits),
            granted: service.granted.map(ListedLimits),
            cuts: &service.cuts,
            lnis_per_rgid: service.lnis_per_rgid,
            adopted: service.adopted,
        });
        Self {
            restricted_members: true,
            members: grant.members,
            services: services.collect(),
            left_out: &grant.left_out,
        }
    }
}

/// Outcome for each service of a release.
#[derive(Debug, Serialize)]
pub(crate) struct Release<'a> {
    services: Vec<Gone<'a>>,
    nics: &'a [cxi_job::release::FailedNic],
    /// True if another job has one of the VNIs.
    shared: bool,
}

#[derive(Debug, Serialize)]
struct Gone<'a> {
    device: cxi::DeviceId,
    service: cxi::ServiceId,
    #[serde(flatten)]
    access: Access,
    #[serde(flatten)]
    outcome: Became<'a>,
}

/// The outcome, with times in seconds.
#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Became<'a> {
    Destroyed,
    AlreadyGone,
    Kept,
    Foreign { reason: &'a str },
    StillBusy { waited: f64, attempts: u32, users: &'a cxi_site::proc::Users },
    Failed { reason: &'a str, errno: i32 },
}

impl<'a> From<&'a Released> for Gone<'a> {
    fn from(released: &'a Released) -> Self {
        let outcome = match &released.outcome {
            Outcome::Destroyed => Became::Destroyed,
            Outcome::AlreadyGone => Became::AlreadyGone,
            Outcome::Kept => Became::Kept,
            Outcome::Foreign { reason } => Became::Foreign { reason },
            Outcome::StillBusy { waited, attempts, users } => {
                Became::StillBusy { waited: waited.as_secs_f64(), attempts: *attempts, users }
            }
            Outcome::Failed { reason, errno } => Became::Failed { reason, errno: *errno },
            _ => Became::Failed { reason: "unknown", errno: 0 },
        };
        Self {
            device: released.device,
            service: released.service,
            access: Access::of(released.members, released.vnis),
            outcome,
        }
    }
}

impl<'a> From<&'a ReleaseReport> for Release<'a> {
    fn from(report: &'a ReleaseReport) -> Self {
        let services = report.services.iter().map(Gone::from).collect();
        Self { services, nics: &report.nics, shared: report.shared }
    }
}
