//! Arguments as JSON.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use cxi::{LnisPerRgid, Member, TrafficClass, Vni, VniRange};
use cxi_ioctl::Errno;
use cxi_job::limits::{LimitPolicy, Mode, Multiplier};
use cxi_job::{Filter, Grant, IdSet, JobLimits, JobRequest, NicPolicy, live_vnis};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

pub(crate) fn read<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Failure::invalid(what, &error))
}

pub(crate) fn write<T: Serialize>(value: &T) -> Result<String> {
    let wrong = |error: serde_json::Error| Failure::new(Errno::EIO, error.to_string());
    serde_json::to_string(value).map_err(wrong)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Open {
    pub(crate) lock: Option<PathBuf>,
    lock_wait_ms: Option<u64>,
}

impl Open {
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.lock_wait_ms.map(Duration::from_millis)
    }
}

/// What a job gets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    uid: Option<u32>,
    gid: Option<u32>,
    netns: Option<u32>,
    #[serde(default)]
    vnis: Vec<Vni>,
    vni_range: Option<VniRange>,
    traffic_classes: Option<Vec<TrafficClass>>,
    cores: Option<u32>,
    #[serde(default)]
    policy: Policy,
    scale_back: Option<u32>,
    nics_at_least: Option<usize>,
    lnis_per_rgid: Option<LnisPerRgid>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Policy {
    #[default]
    Hpe,
    Slurm,
}

impl Request {
    pub(crate) fn build(self) -> Result<JobRequest> {
        let mut builder = JobRequest::builder().vnis(self.vnis);
        for member in members(self.uid, self.gid, self.netns) {
            builder = builder.member(member);
        }
        if let Some(range) = self.vni_range {
            builder = builder.vni_range(range);
        }
        if let Some(classes) = self.traffic_classes {
            builder = builder.traffic_classes(classes.into_iter().collect());
        }
        if let Some(cores) = self.cores {
            let policy = match self.policy {
                Policy::Hpe => LimitPolicy::hpe_recommended(),
                Policy::Slurm => LimitPolicy::slurm(),
            };
            let mode = self
                .scale_back
                .map_or(Mode::Strict, |floor| Mode::ScaleBack { floor });
            builder = builder.limits(JobLimits::planned(policy, Multiplier::Cores(cores), mode));
        }
        if let Some(count) = self.nics_at_least {
            builder = builder.nics(NicPolicy::AnyUsable(count));
        }
        if let Some(count) = self.lnis_per_rgid {
            builder = builder.lnis_per_rgid(count);
        }
        builder
            .build()
            .map_err(|error| Failure::invalid("request", &error))
    }
}

fn members(uid: Option<u32>, gid: Option<u32>, netns: Option<u32>) -> impl Iterator<Item = Member> {
    let uid = uid.map(Member::Uid).into_iter();
    uid.chain(gid.map(Member::Gid))
        .chain(netns.map(Member::NetNs))
}

/// What `cxi_job_allocate` wrote, or `cxi --json job prolog`.
#[derive(Deserialize)]
pub(crate) struct Granted {
    pub(crate) grant: Grant,
}

/// The services of a job: those of a grant, or by what they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    grant: Option<Grant>,
    #[serde(rename = "environment")]
    _environment: Option<IgnoredAny>,
    vnis: Option<Vec<Vni>>,
    uid: Option<u32>,
    gid: Option<u32>,
    netns: Option<u32>,
}

impl Job {
    pub(crate) fn filter(self) -> Result<Filter> {
        let wrong = |text: &str| Failure::invalid("job", &text);
        let mut members = members(self.uid, self.gid, self.netns).peekable();
        match (self.grant, self.vnis) {
            (Some(grant), None) if members.peek().is_none() => Ok(Filter::for_grant(&grant)),
            (Some(_), _) => Err(wrong("expected a grant alone, or VNIs and members")),
            (None, Some(vnis)) if vnis.is_empty() => Err(wrong("expected VNIs in vnis")),
            (None, vnis) => Filter::for_job(vnis.unwrap_or_default(), members)
                .ok_or_else(|| wrong("expected a grant, VNIs or members")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Clean {
    pub(crate) pool: IdSet,
    #[serde(default)]
    live: IdSet,
    live_from: Option<PathBuf>,
    #[serde(default)]
    pub(crate) dry_run: bool,
}

impl Clean {
    /// The live jobs, asked for again whenever services have been listed.
    pub(crate) fn live(&self) -> io::Result<IdSet> {
        let recorded = self.live_from.as_deref().map(live_vnis).transpose()?;
        Ok(self.live.union(&recorded.unwrap_or_default()))
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) pool: Option<IdSet>,
}
