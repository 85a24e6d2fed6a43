//! `cxi top`: live resource usage by job.

use std::io::{self, IsTerminal as _};
use std::thread;
use std::time::Duration;

use clap::Args;
use cxi::{DeviceId, Resource, ResourceMap, Vni, VniAccess};
use cxi_job::{IdSet, JobId};
use serde::Serialize;

use crate::args::duration;
use crate::exit::Failure;
use crate::job::list::records;
use crate::node::{Node, reading};
use crate::options::Common;
use crate::output::{Columns, Report, nic_names};
use crate::service::found::who;
use crate::service::show::measure;
use crate::vni::cli::PoolArgs;

/// Moves to the upper left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Print the table once, as is done where standard output is not a terminal
    #[arg(long)]
    once: bool,
    /// How often to refresh
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "2s")]
    interval: Duration,
    #[command(flatten)]
    pool: PoolArgs,
}

/// Services for the same members and VNIs, on one NIC or several: a job, mostly.
#[derive(Serialize)]
struct User {
    /// The job that has the VNIs, if a record of this node or the pool of this machine says so.
    job: Option<JobId>,
    members: String,
    vnis: VniAccess,
    devices: Vec<DeviceId>,
    /// On all its NICs together.
    in_use: ResourceMap<u32>,
    /// The largest part of a resource of one NIC that it has in use, in percent.
    share: f64,
}

pub(crate) fn run(arguments: &TopArgs, common: &Common) -> Result<Report, Failure> {
    let again = io::stdout().is_terminal() && !arguments.once && !common.json;
    let look = || reading(common, |node| of_node(arguments, node, common));
    if !again {
        return look();
    }
    loop {
        look()?.before(CLEAR).print(false)?;
        thread::sleep(arguments.interval.max(Duration::from_millis(10)));
    }
}

fn of_node(arguments: &TopArgs, node: &Node, common: &Common) -> Result<Report, Failure> {
    let mut users = users(node)?;
    name_jobs(&mut users, &arguments.pool, common)?;
    users.sort_by(|one, other| other.share.total_cmp(&one.share));
    Ok(Report::of(table(&users).render(0), "users", &users))
}

/// Who could use something, in order of the NICs and services.
fn users(node: &Node) -> Result<Vec<User>, Failure> {
    let mut users: Vec<User> = Vec::new();
    for device in node.devices() {
        let levels = device.availability()?;
        for (id, measured) in measure(std::slice::from_ref(device), &[])? {
            let service = &measured.found.service;
            if !service.is_enabled() {
                continue;
            }
            let members = who(&measured.found);
            let known = users
                .iter()
                .position(|user| user.members == members && user.vnis == service.vnis());
            let index = known.unwrap_or(users.len());
            if known.is_none() {
                users.push(User::new(members, service.vnis()));
            }
            let user = &mut users[index];
            user.devices.push(id);
            for (resource, amounts) in measured.resources.iter() {
                let count = amounts.in_use.unwrap_or_default();
                user.in_use[resource] += u32::from(count);
                let total = levels.resources[resource].total.max(1);
                user.share = user.share.max(f64::from(count) * 100.0 / f64::from(total));
            }
        }
    }
    Ok(users)
}

impl User {
    fn new(members: String, vnis: VniAccess) -> Self {
        Self {
            job: None,
            members,
            vnis,
            devices: Vec::new(),
            in_use: ResourceMap::default(),
            share: 0.0,
        }
    }
}

/// Names the jobs that have the VNIs, by the records of this node and the pool of this machine, if
/// it has one.
fn name_jobs(users: &mut [User], pool: &PoolArgs, common: &Common) -> Result<(), Failure> {
    let records = records(common)?.into_iter();
    let mut jobs: Vec<(JobId, IdSet)> = records
        .map(|record| (record.job.clone(), record.vni_set()))
        .collect();
    let file = pool.file(&common.settings)?;
    if file.path.exists() {
        let pool = file.look()?;
        jobs.extend(pool.jobs().map(|(job, held)| {
            let vnis = held.vnis.iter().map(Vni::get).collect();
            (job.clone(), vnis)
        }));
    }
    for user in users {
        let has = |vni: Vni| user.vnis != VniAccess::Unrestricted && user.vnis.contains(vni);
        let job = jobs
            .iter()
            .find(|(_, vnis)| vnis.iter().filter_map(|vni| Vni::new(vni).ok()).any(has));
        user.job = job.map(|(job, _)| job.clone());
    }
    Ok(())
}

fn table(users: &[User]) -> Columns {
    let resources = Resource::ALL.map(|resource| resource.to_string());
    let mut headings = vec!["Share", "Job", "Who", "VNIs", "NICs"];
    headings.extend(resources.iter().map(String::as_str));
    let numbers: Vec<usize> = (5..headings.len()).chain([0]).collect();
    let mut table = Columns::new(&headings).right(&numbers);
    for user in users {
        let job = user.job.as_ref().map_or("-", JobId::as_str);
        let mut row = vec![
            format!("{:.1}%", user.share),
            job.to_owned(),
            user.members.clone(),
            user.vnis.to_string(),
            nic_names(&user.devices),
        ];
        row.extend(user.in_use.iter().map(|(_, count)| count.to_string()));
        table.row(row);
    }
    table
}
