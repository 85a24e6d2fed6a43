//! `cxi explain` without a text: why a program has no network.

use std::collections::BTreeMap;

use cxi_job::explain::{GivenVni, Network, NicNetwork, Program};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::node::reading;
use crate::options::Common;
use crate::output::{Report, by_nic, wrapped};

/// Explains the network of one program on this node, or compares those of several.
pub(super) fn run(programs: &[(String, Program)], common: &Common) -> Result<Report, Failure> {
    if let [(_, program)] = programs {
        return reading(common, |node| {
            Ok(report(&Network::of(program, node.devices())?, Some(program)))
        });
    }
    Ok(report(&Network::between(programs), None))
}

fn report(network: &Network, program: Option<&Program>) -> Report {
    let mut text = format!("{}\n", network.verdict);
    for reason in &network.reasons {
        text += &format!("  {reason}\n");
    }
    if !network.advice.is_empty() {
        text += "  What to do:\n";
    }
    for advice in &network.advice {
        text += &format!("    - {advice}\n");
    }
    let nics = network.nics.iter().map(|nic| (nic.device, on_nic(nic)));
    text.extend(by_nic(nics).into_iter().map(|line| line + "\n"));
    text += &vnis(&network.vnis);
    if let Some(program) = program {
        text += &variables(&program.deciding());
    }
    let code = if network.works { 0 } else { Exit::Findings as u8 };
    Report::of(wrapped(&text), "network", network).ending_with(code)
}

fn on_nic(nic: &NicNetwork) -> String {
    let mut text = match nic.takes {
        None => "libfabric finds no service".to_owned(),
        Some(taken) => format!(
            "libfabric takes service {} and VNI {}{}",
            taken.service,
            taken.vni,
            if taken.by_variables { "" } else { ", which it finds by itself" }
        ),
    };
    if nic.usable.iter().all(|usable| !usable.enabled) {
        text += "\n  no enabled service admits this user";
    }
    for usable in &nic.usable {
        let admits = if usable.enabled { "admits" } else { "would admit" };
        text += &format!("\n  {} {admits} this user", usable.name);
    }
    text
}

fn vnis(vnis: &[GivenVni]) -> String {
    let mut text = String::new();
    for given in vnis {
        text += &format!("VNI {}: {}", given.vni, given.role.name());
        if !given.taken_by.is_empty() {
            text += &format!("; {} takes this one", given.taken_by.join(", "));
        }
        text.push('\n');
    }
    text
}

fn variables(variables: &BTreeMap<&str, &str>) -> String {
    variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
}

#[derive(Serialize)]
struct Environment<'a> {
    of: &'a str,
    vni_roles: Vec<GivenVni>,
    variables: BTreeMap<&'a str, &'a str>,
}

/// The variables that decide, and what each VNI is for.
pub(super) fn environment(programs: &[(String, Program)]) -> Report {
    let found: Vec<Environment<'_>> = programs
        .iter()
        .map(|(of, program)| Environment {
            of,
            vni_roles: program.vnis(),
            variables: program.deciding(),
        })
        .collect();
    let mut text = String::new();
    if programs.len() > 1 {
        text += &format!("{}\n", Network::between(programs).verdict);
    }
    for environment in &found {
        if programs.len() > 1 {
            text += &format!("{}:\n", environment.of);
        }
        if environment.vni_roles.is_empty() {
            text +=
                "SLINGSHOT_VNIS is not set: libfabric looks for a service of this user by itself\n";
        }
        text += &vnis(&environment.vni_roles);
        text += &variables(&environment.variables);
    }
    Report::of(wrapped(&text), "environments", &found)
}
