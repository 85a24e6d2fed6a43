//! `cxi explain` without a text: why a program has no network.

use std::collections::BTreeMap;

use cxi_job::explain::{GivenVni, Network, Program};
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
    let mut text = network.to_string();
    let nics = network.nics().iter().map(|nic| (nic.device(), nic.to_string()));
    text.extend(by_nic(nics).into_iter().map(|line| line + "\n"));
    text += &vnis(network.vnis());
    if let Some(program) = program {
        text += &variables(&program.deciding());
    }
    let code = if network.works() { 0 } else { Exit::Findings as u8 };
    Report::of(wrapped(&text), "network", network).ending_with(code)
}

fn vnis(vnis: &[GivenVni]) -> String {
    vnis.iter().map(|given| format!("{given}\n")).collect()
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
        text += &format!("{}\n", Network::between(programs).verdict());
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
