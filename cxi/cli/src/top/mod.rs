//! `cxi top`: live resource usage by job.

mod screen;

use std::cmp::Ordering;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, SystemTime};

use clap::Args;
use cxi::{Device, DeviceId, Resource, ResourceLevel, ResourceMap, Vni};
use cxi_site::{IdSet, JobId};
use cxi_vni_etcd::SitePool;
use serde::Serialize;

use crate::args::interval;
use crate::devices::{self, Counted, counted};
use crate::exit::Failure;
use crate::job::list::records;
use crate::node::{Intent, Node, reading};
use crate::options::Common;
use crate::output::shapes::Access;
use crate::output::{Columns, Format, Report, fullness, nic_names, or_dash, percent};
use crate::service::found::{Found, who};
use crate::service::show::measure;
use screen::View;

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print it once, which is the default if standard output is not a terminal
    #[arg(long)]
    once: bool,
    /// Interval at which the screen is refreshed
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "2s")]
    interval: Duration,
}

/// Usage of a node at one moment.
#[derive(Serialize)]
struct Usage {
    nics: Vec<NicUsage>,
    users: Vec<User>,
}

#[derive(Serialize)]
struct NicUsage {
    device: DeviceId,
    link_up: bool,
    /// Number of times that the link restarted within the last hour.
    link_restarts: usize,
    #[serde(skip)]
    link: String,
    resources: ResourceMap<ResourceLevel>,
    /// In the order of [`RATES`]; `None` if the NIC does not have the counters.
    #[serde(skip)]
    counters: [Option<Counted>; RATES.len()],
}

const HOUR: Duration = Duration::from_secs(3600);

/// The rates per second: the heading of each, and the counters that it is the sum of.
const RATES: [(&str, &[&str]); 4] = [
    ("Cmds/s", &["cq_success_tx_cntr"]),
    ("Bytes/s", &["hni_sts_tx_ok_octets", "hni_sts_rx_ok_octets"]),
    ("Errs/s", &["cq_fail_tx_cntr", "pct_spt_timeouts"]),
    ("Retry/s", &["pct_retry_srb_requests"]),
];

/// Services for the same members and VNIs, on one NIC or several: usually those of a job.
#[derive(Clone, Serialize)]
struct User {
    /// The job that has the VNIs, if a record of this node or the pool of this machine says so.
    job: Option<JobId>,
    #[serde(flatten)]
    access: Access,
    /// The network namespace that is its member, by inode number.
    netns: Option<u32>,
    /// The members in words.
    #[serde(skip)]
    who: String,
    devices: Vec<DeviceId>,
    /// The total of all its NICs.
    in_use: ResourceMap<u32>,
    /// Amounts that others cannot have, in use or not.
    reserved: ResourceMap<u32>,
    /// The largest share of any resource of one NIC that it has in use or reserved, in percent.
    share: f64,
    /// The resource of which it has that share.
    most: Option<Resource>,
}

pub(crate) fn run(arguments: &TopArgs, common: &Common) -> Result<Report, Failure> {
    let terminals = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !terminals || arguments.once || !Format::chosen().is_text() {
        return reading(common, |node| {
            let usage = Usage::of(node, common)?;
            let users: Vec<&User> = usage.users.iter().collect();
            Ok(Report::new(table(&users).render(0), &usage))
        });
    }
    let look = || {
        let node = Node::open(common, Intent::Read)?;
        Usage::of(&node, common)
    };
    screen::show(View::new(arguments.interval), look)?;
    Ok(Report::verbatim(""))
}

impl Usage {
    fn of(node: &Node, common: &Common) -> Result<Self, Failure> {
        let mut users = users(node)?;
        name_jobs(&mut users, common)?;
        users.sort_by(by_share);
        let nics = node.devices().iter().map(NicUsage::of).collect::<cxi::Result<_>>()?;
        Ok(Self { nics, users })
    }
}

/// Sorts the largest share first.
fn by_share(one: &User, other: &User) -> Ordering {
    other.share.total_cmp(&one.share)
}

impl NicUsage {
    fn of(device: &Device) -> cxi::Result<Self> {
        let info = device.info()?;
        let sum = |names: &[&str]| {
            names.iter().try_fold((0, Duration::ZERO), |(sum, _): Counted, name| {
                let (value, time) = counted(device, name).ok()?;
                Some((value.wrapping_add(sum), time))
            })
        };
        let restarts = device.link_history().restarts_within(HOUR, SystemTime::now());
        Ok(Self {
            device: device.id(),
            link_up: info.link_up,
            link_restarts: restarts,
            link: devices::link(&info),
            resources: device.availability()?.resources,
            counters: RATES.map(|(_, names)| sum(names)),
        })
    }
}

/// The users of all services, in the order of NICs and services.
fn users(node: &Node) -> Result<Vec<User>, Failure> {
    let mut users: Vec<User> = Vec::new();
    for device in node.devices() {
        let levels = device.availability()?;
        for (id, measured) in measure(std::slice::from_ref(device), &[])? {
            let service = &measured.found.service;
            if !service.is_enabled() {
                continue;
            }
            let new = User::of(&measured.found);
            let known =
                users.iter().position(|user| user.who == new.who && user.access == new.access);
            let index = known.unwrap_or(users.len());
            if known.is_none() {
                users.push(new);
            }
            let user = &mut users[index];
            user.devices.push(id);
            for (resource, amounts) in measured.resources.iter() {
                let count = amounts.in_use.unwrap_or_default();
                user.in_use[resource] += u32::from(count);
                user.reserved[resource] += u32::from(amounts.reserved);
                let taken = count.max(amounts.reserved);
                let share = percent(taken, levels.resources[resource].total);
                if share > user.share {
                    (user.share, user.most) = (share, Some(resource));
                }
            }
        }
    }
    Ok(users)
}

impl User {
    fn of(found: &Found) -> Self {
        Self {
            job: None,
            access: Access::of(found.service.members(), found.service.vnis()),
            netns: found.netns,
            who: who(found),
            devices: Vec::new(),
            in_use: ResourceMap::default(),
            reserved: ResourceMap::default(),
            share: 0.0,
            most: None,
        }
    }

    /// Amount that it has in use or reserved.
    fn taken(&self, resource: Resource) -> u32 {
        self.in_use[resource].max(self.reserved[resource])
    }
}

/// Names the jobs that have the VNIs, by the records of this node and the pool of this machine, if
/// it has one.
fn name_jobs(users: &mut [User], common: &Common) -> Result<(), Failure> {
    let records = records(common)?.0.into_iter();
    let mut jobs: Vec<(JobId, IdSet)> =
        records.map(|record| (record.job.clone(), record.vni_set())).collect();
    let store = SitePool::of(&common.settings)?;
    if store.is_here()? {
        let pool = store.look()?;
        let held = pool.jobs();
        jobs.extend(held.map(|(job, held)| (job.clone(), held.vnis.to_set())));
    }
    for user in users {
        let has = |vni: Vni| user.access.vnis.contains(vni);
        let job =
            jobs.iter().find(|(_, vnis)| vnis.iter().filter_map(|vni| Vni::new(vni).ok()).any(has));
        user.job = job.map(|(job, _)| job.clone());
    }
    Ok(())
}

/// Amounts that each user has in use and, after a slash, reserved.
fn table(users: &[&User]) -> Columns {
    let resources = Resource::ALL.map(|resource| resource.to_string());
    let mut headings = vec!["Share", "Job", "Who", "VNIs", "NICs"];
    headings.extend(resources.iter().map(String::as_str));
    let numbers: Vec<usize> = [0].into_iter().chain(5..headings.len()).collect();
    let mut table = Columns::new(&headings).right(&numbers);
    for user in users {
        let mut row = vec![
            format!("{:.1}%", user.share),
            or_dash(user.job.as_ref()),
            user.who.clone(),
            user.access.vnis.to_string(),
            nic_names(&user.devices),
        ];
        row.extend(
            Resource::ALL
                .map(|resource| format!("{}/{}", user.in_use[resource], user.reserved[resource])),
        );
        table.row_in(fullness(user.share), row);
    }
    table
}
