//! `cxi metrics`: metrics for Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use cxi::{Availability, Device, Resource};
use cxi_job::{AuditOptions, Node, NodeNic};
use cxi_site::NodeName;
use cxi_site::pool::Timestamp;
use cxi_vni_etcd::SitePool;
use serde::Serialize;

use crate::exit::Failure;
use crate::job::epilog::left_over;
use crate::job::list::{Job, last_sweep, of_controller, of_node};
use crate::job::node::JobNode;
use crate::node::{Intent, has_no_nic};
use crate::options::Common;
use crate::output::Report;
use crate::service::found::who;
use crate::service::show::measure;
use crate::{audit, files, settings};

#[derive(Debug, Args)]
pub(crate) struct MetricsArgs {
    /// Write a file, such as /var/lib/node_exporter/cxi.prom, instead of printing. It is replaced
    /// atomically
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// This node's name in the scheduler [default: the name of this machine]
    #[arg(long, value_name = "NODE")]
    node: Option<NodeName>,
}

pub(crate) fn run(arguments: &MetricsArgs, common: &Common) -> Result<Report, Failure> {
    let mut families = recorded(common)?;
    // A controller need not have a NIC.
    if !(common.device.is_none() && has_no_nic(common)) {
        families.extend(on_nics(arguments, common)?);
    }
    families.extend(pool(common)?);
    let mut text: String = families.iter().map(Family::to_string).collect();
    if let Some(path) = &arguments.output {
        files::replace(path, &text)?;
        text.clear();
    }
    Ok(Report::of(text, "metrics", &families))
}

fn on_nics(arguments: &MetricsArgs, common: &Common) -> Result<Vec<Family>, Failure> {
    let node = JobNode::open(common, Intent::Read)?.nics;
    let there = physical(&node);
    let devices: Vec<Device> = there.iter().filter_map(|nic| nic.device().cloned()).collect();
    let mut families = nics(&there)?;
    families.extend(resources(&devices)?);
    families.extend(services(&devices)?);
    families.push(findings(&node, common)?);
    families.push(left(&devices, arguments.node.as_ref(), common)?);
    Ok(families)
}

/// The NICs without their virtual functions, which have the same services and resources, unless there
/// is nothing else.
fn physical(node: &Node) -> Vec<&NodeNic> {
    let physical: Vec<_> = node.nics().iter().filter(|nic| !nic.is_virtual_function()).collect();
    if physical.is_empty() { node.nics().iter().collect() } else { physical }
}

/// Hardware counters that show traffic, and problems of the link or the fabric.
pub(crate) const COUNTERS: [&str; 19] = [
    "hni_sts_tx_ok_octets",
    "hni_sts_rx_ok_octets",
    "hni_sts_tx_bad_octets",
    "hni_sts_rx_bad_octets",
    "hni_pcs_good_cw",
    "hni_pcs_corrected_cw",
    "hni_pcs_uncorrected_cw",
    "hni_llr_tx_replay_event",
    "hni_llr_rx_replay_event",
    "pct_retry_srb_requests",
    "pct_sct_timeouts",
    "pct_spt_timeouts",
    "pct_no_tct_nacks",
    "pct_trs_rsp_nack_drops",
    // One for each processing element: LNIs are spread over them.
    "lpe_net_match_overflow_0",
    "lpe_net_match_overflow_1",
    "lpe_net_match_overflow_2",
    "lpe_net_match_overflow_3",
    "atu_pcie_err_poisoned",
];

fn nics(of: &[&NodeNic]) -> Result<Vec<Family>, Failure> {
    let mut usable = Family::new("cxi_nic_usable", "Whether jobs can use the NIC.");
    let mut link = Family::new("cxi_nic_link_up", "Whether the link is up.");
    let mut counters =
        Family::new("cxi_nic_telemetry_total", "A counter of the hardware, by its name.");
    counters.kind = "counter";
    let help = "How often the network device has lost its carrier since the driver was loaded.";
    let mut losses = Family::new("cxi_nic_carrier_losses_total", help);
    losses.kind = "counter";
    let help = "Restarts of the link within the last 1h and 10h: at most 10, as the driver keeps.";
    let mut restarts = Family::new("cxi_nic_link_restarts", help);
    let help = "When the link restarted last: 0 if it has not.";
    let mut last = Family::new("cxi_nic_last_link_restart_timestamp_seconds", help);
    let now = SystemTime::now();
    for nic in of {
        let id = nic.id().to_string();
        usable.add([("device", id.clone())], nic.is_usable());
        if let Some(info) = nic.info() {
            link.add([("device", id.clone())], info.link_up);
        }
        // A virtual function has no link of its own, and without sysfs nothing is known.
        let of_link = nic.device().filter(|_| !nic.is_virtual_function());
        let history = of_link.map(Device::link_history).unwrap_or_default();
        let of = || [("device", id.clone())];
        if let Some(count) = history.carrier_losses {
            losses.add(of(), count);
            for (within, hours) in [("1h", 1), ("10h", 10)] {
                let count = history.restarts_within(Duration::from_secs(hours * 3600), now);
                let labels = [("device", id.clone()), ("within", within.to_owned())];
                restarts.add(labels, count);
            }
            let latest = history.restarts.first();
            let since = latest.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            last.add(of(), since.unwrap_or_default().as_secs());
        }
        // Only the counters that this driver has; a NIC without sysfs has none.
        let device = nic.device();
        let names = device.and_then(|device| device.telemetry_counters().ok()).unwrap_or_default();
        for counter in COUNTERS {
            if let Some(device) = device
                && names.iter().any(|name| name == counter)
            {
                let labels = [("device", id.clone()), ("counter", counter.to_owned())];
                counters.add(labels, device.telemetry(counter)?.value);
            }
        }
    }
    Ok(vec![usable, link, losses, restarts, last, counters])
}

fn resources(devices: &[Device]) -> Result<Vec<Family>, Failure> {
    let mut total = Family::new("cxi_resource_capacity", "Total amount of the resource.");
    let mut reserved = Family::new("cxi_resource_reserved", "Amount that services have reserved.");
    let mut reservable =
        Family::new("cxi_resource_reservable", "Amount that can still be reserved.");
    let mut in_use = Family::new("cxi_resource_in_use", "Amount in use.");
    let mut pools = Family::new("cxi_pools_free", "Number of LE and TLE pools left for services.");
    for device in devices {
        let id = device.id().to_string();
        let Availability { resources, le_pools, tle_pools, .. } = device.availability()?;
        for (resource, level) in resources.iter() {
            let labels = || [("device", id.clone()), ("resource", label(resource))];
            total.add(labels(), level.total);
            reserved.add(labels(), level.reserved);
            reservable.add(labels(), level.reservable);
            in_use.add(labels(), level.in_use);
        }
        for (pool, left) in [("le", le_pools), ("tle", tle_pools)] {
            pools.add([("device", id.clone()), ("pool", pool.to_owned())], left);
        }
    }
    Ok(vec![total, reserved, reservable, in_use, pools])
}

fn services(devices: &[Device]) -> Result<Vec<Family>, Failure> {
    let mut info = Family::new("cxi_service_info", "Who may use the service: always 1.");
    let mut enabled = Family::new("cxi_service_enabled", "Whether the service is enabled.");
    let mut in_use = Family::new("cxi_service_in_use", "Amount that the service has in use.");
    let mut reserved = Family::new("cxi_service_reserved", "Amount that the service has reserved.");
    let mut max = Family::new("cxi_service_max", "Maximum amount that the service may use.");
    for (device, measured) in measure(devices, &[])? {
        let service = &measured.found.service;
        let of = [("device", device.to_string()), ("service", service.id().to_string())];
        let described = [
            ("members", who(&measured.found)),
            ("vnis", service.vnis().to_string()),
            ("system", service.is_system().to_string()),
        ];
        info.add(of.iter().cloned().chain(described), true);
        enabled.add(of.clone(), service.is_enabled());
        for (resource, amounts) in measured.resources.iter() {
            let labels = || of.iter().cloned().chain([("resource", label(resource))]);
            if let Some(count) = amounts.in_use {
                in_use.add(labels(), count);
            }
            reserved.add(labels(), amounts.reserved);
            max.add(labels(), amounts.max);
        }
    }
    Ok(vec![info, enabled, in_use, reserved, max])
}

/// The findings of `cxi audit`, such as services that were left behind or that no process can use.
fn findings(node: &Node, common: &Common) -> Result<Family, Failure> {
    let vnis = common.settings.get(&settings::POOL_VNIS)?;
    let mut options = AuditOptions::default();
    options.nics = common.settings.get(&settings::NODE_NICS)?.map(NonZeroU32::get);
    options.without_driver = audit::without_driver(common);
    let wanted = common.settings.get(&settings::NODE_DEFAULT_SERVICE)?;
    options.default_service = wanted.should_be_enabled();
    options.pool = Some(vnis);
    let found = node.audit(&options);
    let mut counts: BTreeMap<_, u32> = BTreeMap::new();
    for finding in &found.findings {
        // The codes are those in the JSON output of cxi audit.
        let code = serde_json::to_value(finding.code).unwrap_or_default();
        let code = code.as_str().unwrap_or_default().to_owned();
        let key = (finding.device, code, finding.severity.to_string());
        *counts.entry(key).or_default() += 1;
    }
    let mut findings = Family::new("cxi_findings", "Problems that cxi audit finds.");
    for ((device, code, severity), count) in counts {
        let labels = [("device", device.to_string()), ("code", code), ("severity", severity)];
        findings.add(labels, count);
    }
    Ok(findings)
}

/// Nothing if this machine has no pool.
fn pool(common: &Common) -> Result<Vec<Family>, Failure> {
    let store = SitePool::of(&common.settings)?;
    if !store.is_here()? {
        return Ok(Vec::new());
    }
    let pool = store.look()?;
    let counts = pool.metrics(Timestamp::now());
    let mut vnis = Family::new("cxi_vni_pool_vnis", "VNIs of the pool, by state.");
    for (state, number) in [
        ("free", counts.free),
        ("reserved", counts.reserved),
        ("draining", counts.draining),
        ("resting", counts.resting),
        ("outside", counts.outside),
    ] {
        vnis.add([("state", state.to_owned())], number);
    }
    let mut holders = Family::new("cxi_vni_pool_jobs", "Jobs that have VNIs of the pool.");
    holders.add([], pool.jobs().count());
    let mut oldest = Family::new(
        "cxi_vni_pool_oldest_draining_seconds",
        "How long the oldest draining job has been draining.",
    );
    let seconds = counts.oldest_draining.map_or(0, |(_, age)| age.as_secs());
    oldest.add([], seconds);
    let mut families = vec![vnis, holders, oldest];
    if common.settings.get(&settings::CONTROLLER_RECORDS)?.is_some() {
        families.extend(decided(common)?);
    }
    Ok(families)
}

fn label(resource: Resource) -> String {
    resource.to_string().to_ascii_lowercase()
}

/// A job with a record is running or has ended; a job without one is clean.
const STATES: [&str; 2] = ["running", "ended"];

fn by_state(name: &'static str, help: &'static str, jobs: &[Job]) -> Family {
    let mut family = Family::new(name, help);
    for state in STATES {
        let jobs = jobs.iter().filter(|job| job.state == state);
        family.add([("state", state.to_owned())], jobs.count());
    }
    family
}

/// The jobs of this node.
fn recorded(common: &Common) -> Result<Vec<Family>, Failure> {
    let (jobs, unusable) = of_node(common)?;
    let help = "Records of jobs that cannot be used: cxi job clean puts them aside.";
    let mut broken = Family::new("cxi_job_records_broken", help);
    broken.add([], unusable.len());
    let help =
        "Jobs with a record on this node. Those that have ended have not been cleaned up yet.";
    let by_state = by_state("cxi_jobs", help, &jobs);
    let mut info = Family::new("cxi_job_info", "The VNIs of a job: always 1.");
    let mut cut = Family::new(
        "cxi_job_scaled_back",
        "Number of resources of which a job has less than its size asks for.",
    );
    for job in jobs {
        let id = job.id.to_string();
        cut.add([("cxi_job", id.clone())], job.scaled_back.len());
        let labels =
            [("cxi_job", id), ("state", job.state.to_owned()), ("vnis", job.vnis.to_string())];
        info.add(labels, true);
    }
    Ok(vec![by_state, info, cut, broken])
}

/// The services that a cleanup would destroy.
fn left(devices: &[Device], name: Option<&NodeName>, common: &Common) -> Result<Family, Failure> {
    let help = "Services that cxi job clean would destroy.";
    let mut family = Family::new("cxi_services_left", help);
    let left = left_over(name, common)?;
    for device in devices {
        let here = left.iter().filter(|verdict| verdict.device == device.id());
        let labels = [("device", device.id().to_string())];
        family.add(labels, here.count());
    }
    Ok(family)
}

/// The jobs of the controller. Nodes could report them too, but each node would read all of them.
fn decided(common: &Common) -> Result<Vec<Family>, Failure> {
    let jobs = of_controller(common)?;
    let help = "Jobs that the controller has given VNIs. Those that have ended wait for nodes.";
    let by_state = by_state("cxi_controller_jobs", help, &jobs);
    let mut missing = Family::new(
        "cxi_controller_confirmations_missing",
        "Nodes that have not confirmed the end of a job, over all jobs.",
    );
    let nodes = jobs.iter().map(|job| job.waits_for.len());
    missing.add([], nodes.sum::<usize>());
    let mut swept = Family::new(
        "cxi_controller_last_sweep_timestamp_seconds",
        "When cxi job sweep last ended the jobs that the scheduler has lost.",
    );
    if let Some(at) = last_sweep(common)? {
        swept.add([], Timestamp::from(at).as_millis() / 1000);
    }
    Ok(vec![by_state, missing, swept])
}

/// Numbers of one name.
#[derive(Serialize)]
struct Family {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

#[derive(Serialize)]
struct Sample {
    labels: BTreeMap<&'static str, String>,
    value: u64,
}

impl Family {
    fn new(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: "gauge", help, samples: Vec::new() }
    }

    fn add(
        &mut self,
        labels: impl IntoIterator<Item = (&'static str, String)>,
        value: impl TryInto<u64>,
    ) {
        self.samples.push(Sample {
            labels: labels.into_iter().collect(),
            value: value.try_into().unwrap_or(u64::MAX),
        });
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, help, samples } = self;
        writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
        for Sample { labels, value } in samples {
            let labels: Vec<_> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            if labels.is_empty() {
                writeln!(f, "{name} {value}")?;
            } else {
                writeln!(f, "{name}{{{}}} {value}", labels.join(","))?;
            }
        }
        Ok(())
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_break_out_of_its_label() {
        let mut family = Family::new("cxi_test", "A test.");
        family.add([("b", "a\"b\\c\nd".to_owned()), ("a", String::new())], 7_u16);
        family.add([], true);
        assert_eq!(
            family.to_string(),
            "# HELP cxi_test A test.\n# TYPE cxi_test gauge\n\
             cxi_test{a=\"\",b=\"a\\\"b\\\\c\\nd\"} 7\ncxi_test 1\n"
        );
    }
}
