//! Behavior of a scheduler on a node whose first NIC lies.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use cxi::{Device, DeviceId, Member, Vni, VniRange};
use cxi_job::audit::Observation;
use cxi_job::clean::CleanPolicy;
use cxi_job::limits::{LimitPolicy, Mode, NicUsage};
use cxi_job::{
    AuditOptions, Filter, Grant, JobLimits, JobRequest, NicPolicy, Node, ReleaseOptions,
};
use cxi_mock::{Nic, NicConfig};
use cxi_site::IdSet;
use cxi_site::pool::Timestamp;

use super::{Hurry, no_processes, told};
use crate::input::Input;

fn request(input: &mut Input<'_>) -> JobRequest {
    let choice = input.byte();
    let mut builder = JobRequest::builder();
    builder = match choice & 3 {
        0 => builder.uid(1000),
        1 => builder.uid(1000).member(Member::Gid(100)),
        2 => builder.member(Member::NetNs(4_026_532_000)),
        _ => builder.uid(u32::from(input.byte())),
    };
    builder = if choice & 4 == 0 {
        builder.vni(Vni::new(4034).expect("not zero"))
    } else {
        builder.vni_range(VniRange::from_bounds(64, 71).expect("a block"))
    };
    let mode = input.choose(&[Mode::Strict, Mode::BestEffort, Mode::ScaleBack { floor: 1 }]);
    let size = input.u16().into();
    let policy = match choice >> 3 & 3 {
        0 => None,
        1 => Some(LimitPolicy::slurm()),
        _ => Some(LimitPolicy::hpe_recommended()),
    };
    if let Some(policy) = policy {
        builder = builder.limits(JobLimits::planned(policy, size, mode));
    }
    if choice & 32 != 0 {
        builder = builder.nics(NicPolicy::AnyUsable(1));
    }
    builder.adopt(choice & 64 != 0).build().expect("a request")
}

/// The lying NIC and an honest one.
fn node(device: &Device) -> Option<Node> {
    let honest = Nic::new(NicConfig::new()).ok()?.root().ok()?;
    let honest = Device::with_transport(DeviceId::new(1), Arc::new(honest));
    Some(Node::from_devices([device.clone(), honest]).with_proc(no_processes()))
}

fn said(what: &impl Display) {
    assert!(what.to_string().len() < 1 << 20, "a text has an end");
}

fn allocated(node: &Node, input: &mut Input<'_>) -> Option<Grant> {
    match node.allocate(&request(input)) {
        Ok(grant) => {
            let json = serde_json::to_string(&grant).expect("a grant as JSON");
            assert_eq!(serde_json::from_str(&json).ok().as_ref(), Some(&grant), "{json}");
            Some(grant)
        }
        Err(error) => {
            said(&error);
            let failures = error.failures().len() + error.left().len();
            assert!(failures > 0 || !error.to_string().is_empty());
            None
        }
    }
}

/// Number of calls.
pub(super) const CALLS: usize = 8;

pub(super) fn call(call: usize, device: &Device, input: &mut Input<'_>) {
    let Some(node) = node(device) else { return };
    let clock = Hurry::default();
    let options = || ReleaseOptions::until(Duration::from_secs(3)).clock(&clock);
    match call {
        0 => {
            for nic in node.nics() {
                nic.problems().iter().for_each(said);
            }
        }
        1 => drop(allocated(&node, input)),
        2 | 3 => {
            if let Some(grant) = allocated(&node, input) {
                if let Ok(environment) = grant.env() {
                    for problem in environment.check(&node, &[Member::Uid(1000)]) {
                        said(&problem);
                    }
                }
                said(&node.release(&Filter::for_grant(&grant), &options()));
            }
        }
        4 => {
            let vnis = (64..=80).filter_map(|id| Vni::new(id).ok());
            said(&node.release(&Filter::vnis(vnis), &options()));
            said(&node.release(&Filter::member(Member::Uid(1000)), &options()));
        }
        5 => {
            let pool: IdSet = (1..=5000).collect();
            let policy = CleanPolicy::new(pool)
                .dry_run(input.flag())
                .unfinished(input.flag().then_some(Duration::from_secs(1)));
            let clean = node.clean(&policy, &options()).expect("no list of live jobs is read");
            let json = serde_json::to_string(&clean).expect("a clean-up as JSON");
            assert!(json.len() < 1 << 24);
        }
        6 => {
            let earlier = Observation::default();
            let now = Timestamp::from_millis(1_700_000_000_000);
            let mut options = AuditOptions::default();
            options.pool = Some((64..=80).collect());
            options.user_exists = Some(|uid| uid != 1000);
            options.earlier = Some(&earlier);
            options.now = now;
            options.idle_after = Duration::ZERO;
            let audit = node.audit(&options);
            audit.findings.iter().for_each(said);
            let mut again = AuditOptions::default();
            again.earlier = Some(&audit.observation);
            again.now = now + Duration::from_secs(100_000_000);
            again.idle_after = Duration::ZERO;
            node.audit(&again).findings.iter().for_each(said);
        }
        _ => {
            if let Some(usage) = told(device, NicUsage::read(device)) {
                let _ = serde_json::to_string(&usage).expect("usage as JSON");
            }
        }
    }
}
