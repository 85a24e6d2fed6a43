//! `cxi job plan`.

use cxi::Limits;
use cxi_job::JobLimits;
use cxi_job::cluster::NetworkOptions;
use cxi_job::explain::Explanation;
use cxi_job::limits::{Bottleneck, Cut, NicUsage, forecast, plan};
use serde::Serialize;

use super::cli::SizeArgs;
use super::node::JobNode;
use crate::exit::{Exit, Failure};
use crate::node::Intent;
use crate::options::Common;
use crate::output::{Columns, Report, joined, merge, nic_names, shapes};
use crate::settings::Settings;

#[derive(Serialize)]
struct One {
    #[serde(serialize_with = "shapes::limits")]
    limits: Limits,
    cuts: Vec<Cut>,
    /// Number of such jobs that fit; null if there is no limit.
    fits: Option<u32>,
    /// Resource that runs out first.
    first_out: Option<String>,
}

pub(super) fn run(size: &SizeArgs, common: &Common) -> Result<Report, Failure> {
    let node = JobNode::open(common, Intent::Read)?;
    of_node(&node, size, &common.settings)
}

pub(super) fn of_node(
    node: &JobNode,
    size: &SizeArgs,
    settings: &Settings,
) -> Result<Report, Failure> {
    let limits = size.of_size()?.limits(&NetworkOptions::default(), settings)?;
    let JobLimits::Planned { policy, size, mode } = limits else {
        return Ok(Report::of(
            "No limits: the job may use everything that the NIC has. The driver reserves 8 TLEs for it and \
             takes one of the NIC's 4 TLE pools.\n",
            "plans",
            &[(); 0],
        ));
    };
    let (mut plans, mut failures) = (Vec::new(), Vec::new());
    for nic in node.nics.nics() {
        let (true, Some(device)) = (nic.is_usable(), nic.device()) else {
            failures.push(Failure::new(
                Exit::NoDevice,
                format!("{}: {}", nic.id(), joined(nic.problems(), "; ")),
            ));
            continue;
        };
        let usage = NicUsage::read(device)?;
        match plan(&policy, size, &usage, mode) {
            Ok(made) => plans.push((device.id(), one(&usage, made.limits, made.cuts))),
            Err(error) => {
                let short = Explanation::from_plan(&error, device);
                failures.extend(
                    short.iter().map(|short| Failure::new(Exit::NotEnough, short.to_string())),
                );
            }
        }
    }
    let mut text = String::new();
    let texts = plans.iter().map(|(device, plan)| (*device, plan_text(plan)));
    for (devices, plan) in merge(texts) {
        text += &format!("{}:\n{plan}", nic_names(&devices));
    }
    Ok(Report::by_device(text, "plans", &plans).with_failures(failures))
}

fn one(usage: &NicUsage, limits: Limits, cuts: Vec<Cut>) -> One {
    let (fits, first_out) = forecast(usage, &limits).unzip();
    One {
        limits,
        cuts,
        fits,
        first_out: first_out.map(|out| match out {
            Bottleneck::Resource(resource) => resource.to_string(),
            Bottleneck::TlePools => "TLE pools".to_owned(),
            Bottleneck::LePools => "LE pools".to_owned(),
            _ => "another resource".to_owned(),
        }),
    }
}

fn plan_text(plan: &One) -> String {
    let mut table = Columns::new(&["Resource", "Reserved", "Max"]).right(&[1, 2]);
    for (resource, limit) in plan.limits.iter() {
        table.row([resource.to_string(), limit.reserved().to_string(), limit.max().to_string()]);
    }
    let mut text = table.render(2);
    for cut in &plan.cuts {
        text += &format!("  Less than the policy asks for: {}\n", cut.text());
    }
    text += &match plan.fits.zip(plan.first_out.as_ref()) {
        None => "  Any number of such jobs fit: nothing is reserved\n".to_owned(),
        Some((0, out)) => format!("  No such job fits: there are not enough {out}\n"),
        Some((1, out)) => format!("  1 more job of this size fits; {out} are the limit\n"),
        Some((fits, out)) => format!("  {fits} more jobs of this size fit; {out} are the limit\n"),
    };
    text
}
