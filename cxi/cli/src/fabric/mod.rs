//! `cxi fabric`: a check whether nodes reach each other, before a job runs.

pub(crate) mod cli;
mod meeting;
mod nic;
mod picture;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use cxi::{Device, DeviceId, ServiceId, Vni, VniAccess};
use cxi_data::Address;
use cxi_data::collective::Endpoint;
use cxi_job::explain::{Network, NicNetwork, Program};
use cxi_site::NodeName;

use crate::exit::{Exit, Failure};
use crate::job::node::SiteNode;
use crate::node::{Intent, Node, this_node};
use crate::options::Common;
use crate::output::Report;
use cli::{CheckArgs, FabricCommand};
use meeting::{Answers, Arrival, Asked, Meeting, NicArrival, Start, Together, Word};
use nic::Terms;
use verdict::{Finding, NicVerdict, Said, Verdict, microseconds, shown};

/// Matrices of more nodes are only in JSON and in the picture.
const MOST_ROWS: usize = 16;
/// More nodes would spend their time on each other's files.
const MOST_NODES: usize = 1024;
/// Of up to so many nodes, each asks all others; of more, so many, unless it is told.
const ALL_PAIRS: usize = 64;
const PARTNERS: usize = 16;
/// Silences for which the nodes wait for each other's word, beyond what asking can take.
const PATIENCE: u32 = 2;

pub(crate) fn run(command: &FabricCommand, common: &Common) -> Result<Report, Failure> {
    match command {
        FabricCommand::Check(arguments) => check(arguments, common),
        FabricCommand::Show { directory, svg } => {
            let verdict = Verdict::of(&said(directory)?);
            Ok(if *svg { Report::verbatim(picture::svg(&verdict)) } else { report(&verdict) })
        }
    }
}

/// Everything that a directory of a check is shown as: the text, and the picture.
pub(crate) fn shown_of(directory: &Path) -> Result<String, Failure> {
    let verdict = Verdict::of(&said(directory)?);
    Ok(text_of(&verdict) + &picture::svg(&verdict))
}

/// Everything that was said in the directory of a check, so far.
fn said(directory: &Path) -> Result<Said, Failure> {
    let meeting = Meeting::at(directory);
    let Some(start) = meeting.start() else {
        let message = format!("{}: no check has begun here", directory.display());
        return Err(Failure::new(Exit::NotFound, message));
    };
    let start = start.map_err(Failure::bad_input)?;
    let nodes = start.nodes.len().max(start.came.len());
    if nodes > MOST_NODES {
        let message =
            format!("{}: {nodes} nodes: expected at most {MOST_NODES}", directory.display());
        return Err(Failure::bad_input(message));
    }
    let none = Duration::ZERO;
    Ok(Said {
        arrivals: meeting.wait_for(&start.came, Word::Arrival, none),
        asked: meeting.wait_for(&start.came, Word::Asked, none),
        together: meeting.wait_for(&start.came, Word::Together, none),
        start,
    })
}

/// The nodes of a check, and the VNI that they share.
fn wanted(arguments: &CheckArgs, common: &Common) -> Result<(Vec<NodeName>, Option<Vni>), Failure> {
    let (names, vni) = match (&arguments.nodes, &arguments.job) {
        (Some(nodes), _) => (nodes.names().to_vec(), None),
        (None, Some(job)) => {
            let here = SiteNode::new(common, Intent::Read)?;
            let decision = here.node(arguments.node.as_ref())?.decision(job)?;
            let missing = || Failure::new(Exit::NotFound, format!("job {job}: no such job"));
            let decision = decision.ok_or_else(missing)?;
            let nodes = decision.components.values().flat_map(|part| part.nodes.names().to_vec());
            (nodes.collect(), decision.vnis.first().copied())
        }
        (None, None) => (Vec::new(), None),
    };
    let (mut nodes, mut seen) = (Vec::new(), BTreeSet::new());
    for name in names {
        let name = NodeName::new(name).map_err(Failure::bad_input)?;
        if seen.insert(name.clone()) {
            nodes.push(name);
        }
    }
    if !(2..=MOST_NODES).contains(&nodes.len()) {
        let message = format!("{} nodes: expected 2 to {MOST_NODES}", nodes.len());
        return Err(Failure::bad_input(message));
    }
    Ok((nodes, arguments.vni.or(vni)))
}

fn check(arguments: &CheckArgs, common: &Common) -> Result<Report, Failure> {
    let (nodes, vni) = wanted(arguments, common)?;
    let here = match &arguments.node {
        Some(node) => node.clone(),
        None => this_node()?,
    };
    if !nodes.contains(&here) {
        let message = format!("this node, {here}, is not among the nodes of the check");
        return Err(Failure::bad_input(message).hint("Name it with --node."));
    }
    let node = Node::open(common, Intent::Read)?;
    let program = Program::this(&node.proc());
    let network = Network::of(&program, node.devices())?;
    let endpoint = |device: &Device| {
        let (service, vni) = service(device, arguments, vni, &network)?;
        let made = Endpoint::new(device, service, vni, arguments.traffic_class, None);
        Ok((made.map_err(|error| error.to_string())?, vni))
    };
    let mut endpoints = BTreeMap::new();
    let mut arrival = Arrival { nics: BTreeMap::new() };
    for device in node.devices() {
        let arrived = match endpoint(device) {
            Ok((endpoint, vni)) => {
                let Address { nid, pid, .. } = endpoint.address();
                endpoints.insert(device.id(), endpoint);
                NicArrival::Address { nid, pid, vni: vni.get() }
            }
            Err(problem) => NicArrival::Problem(problem),
        };
        arrival.nics.insert(device.id(), arrived);
    }
    let meeting = Meeting::at(&arguments.directory);
    meeting.join(&here, &arrival)?;
    let start = meeting.gather(&nodes, arguments.wait)?;
    if !start.came.contains(&here) {
        let message = format!("the check has begun without node {here}");
        return Err(Failure::bad_input(message).hint("Start it on all nodes within --wait."));
    }
    let arrivals = meeting.wait_for(&start.came, Word::Arrival, Duration::ZERO);
    let terms = terms(arguments, &start);
    let asked = take_part(terms, &meeting, &here, &start, &arrivals, endpoints)?;
    Ok(conclude(arguments, terms, &meeting, &here, start, arrivals, asked))
}

/// The service of a NIC to use, and the VNI.
fn service(
    device: &Device,
    arguments: &CheckArgs,
    vni: Option<Vni>,
    network: &Network,
) -> Result<(ServiceId, Vni), String> {
    let of_nic = network.nics().iter().find(|nic| nic.device() == device.id());
    let taken_vni = || of_nic?.vni();
    let by_service = |id: ServiceId| {
        let service = device.services().get(id).map_err(|error| error.to_string())?;
        let vni = vni.or_else(taken_vni).or_else(|| service.vnis().iter().next());
        vni.map(|vni| (id, vni)).ok_or_else(|| "no VNI: give --vni".to_owned())
    };
    if let Some(id) = arguments.service {
        return by_service(id);
    }
    let Some(vni) = vni else {
        return match of_nic.and_then(NicNetwork::service) {
            Some(id) => by_service(id),
            None => Err("no service admits this user: cxi explain says why".to_owned()),
        };
    };
    let allows = |id: &ServiceId| {
        device.services().get(*id).is_ok_and(|service| {
            service.vnis() == VniAccess::Unrestricted || service.vnis().contains(vni)
        })
    };
    let mut ids = of_nic.into_iter().flat_map(NicNetwork::usable);
    let message = || format!("no enabled service admits this user to VNI {vni}");
    ids.find(allows).map(|id| (id, vni)).ok_or_else(message)
}

/// Terms of a check of the nodes that have come.
fn terms(arguments: &CheckArgs, start: &Start) -> Terms {
    let others = start.came.len().saturating_sub(1);
    let usual = if others < ALL_PAIRS { others } else { PARTNERS };
    let partners = arguments.partners.map_or(usual, |partners| partners.get() as usize);
    Terms {
        session: start.session,
        pings: arguments.pings,
        partners: partners.min(others),
        seed: arguments.seed.unwrap_or(start.session),
        silence: arguments.silence,
        wait: arguments.wait,
    }
}

/// Performs the part of this node, and writes it down for the others. Returns what all have asked.
fn take_part(
    terms: Terms,
    meeting: &Meeting,
    here: &NodeName,
    start: &Start,
    arrivals: &BTreeMap<NodeName, Result<Arrival, String>>,
    endpoints: BTreeMap<DeviceId, Endpoint>,
) -> Result<BTreeMap<NodeName, Result<Asked, String>>, Failure> {
    let decided: BTreeMap<DeviceId, OnceLock<Result<(), String>>> =
        endpoints.keys().map(|device| (*device, OnceLock::new())).collect();
    let (heard, together) = thread::scope(|scope| {
        let (told, asked) = channel();
        let mut running = Vec::new();
        for (device, endpoint) in endpoints {
            let members = members(device, &start.came, arrivals);
            let (told, decided) = (told.clone(), &decided[&device]);
            // Whoever waits for all to tell waits until this is gone.
            let tell = move |answers| drop(told.send((device, answers)));
            let part = move || nic::take_part(endpoint, here, &members, terms, tell, decided);
            running.push((device, scope.spawn(part)));
        }
        drop(told);
        let asked = Asked { nics: asked.into_iter().collect() };
        // Whatever happens, the threads must be told to end.
        let written = meeting.say(here, Word::Asked, &asked);
        let heard = written.map(|()| {
            let asking = terms.silence.saturating_mul(PATIENCE).saturating_add(terms.longest());
            // Who asks nobody cannot know how long that takes now.
            let wait =
                if judges(start, arrivals).contains(&here) { asking } else { Duration::ZERO };
            meeting.wait_for::<Asked>(&start.came, Word::Asked, wait)
        });
        for (device, decision) in &decided {
            let all =
                heard.as_ref().map_err(|_| "this node could not say what it asked".to_owned());
            let _ = decision.set(all.and_then(|heard| all_reach(*device, start, arrivals, heard)));
        }
        let nics = running.into_iter().map(|(device, thread)| {
            let ended = thread.join();
            let panicked = |_| meeting::Collectives::Problem("the check has panicked".to_owned());
            (device, ended.unwrap_or_else(panicked))
        });
        let together = Together { nics: nics.collect() };
        heard.map(|heard| (heard, together))
    })?;
    meeting.say(here, Word::Together, &together)?;
    Ok(heard)
}

/// The nodes that can judge others, because they have an address on some NIC; or all, if none has.
fn judges<'a>(
    start: &'a Start,
    arrivals: &BTreeMap<NodeName, Result<Arrival, String>>,
) -> Vec<&'a NodeName> {
    let has_address = |node: &&NodeName| {
        let arrived = arrivals.get(*node).into_iter().flatten();
        let mut nics = arrived.flat_map(|arrival| arrival.nics.values());
        nics.any(|nic| matches!(nic, NicArrival::Address { .. }))
    };
    let able: Vec<&NodeName> = start.came.iter().filter(has_address).collect();
    if able.is_empty() { start.came.iter().collect() } else { able }
}

/// The nodes that have come with a NIC, and its address.
fn members(
    device: DeviceId,
    came: &[NodeName],
    arrivals: &BTreeMap<NodeName, Result<Arrival, String>>,
) -> Vec<(NodeName, Address)> {
    let address = |node: &NodeName| match arrivals.get(node)?.as_ref().ok()?.nics.get(&device)? {
        NicArrival::Address { nid, pid, .. } => {
            Some((node.clone(), Address { nid: *nid, pid: *pid }))
        }
        NicArrival::Problem(_) => None,
    };
    came.iter().filter_map(address).collect()
}

/// Decides whether the nodes perform operations together: only if all pairs reach each other, which
/// all of them find in the same files.
fn all_reach(
    device: DeviceId,
    start: &Start,
    arrivals: &BTreeMap<NodeName, Result<Arrival, String>>,
    heard: &BTreeMap<NodeName, Result<Asked, String>>,
) -> Result<(), String> {
    for (node, _) in members(device, &start.came, arrivals) {
        let Some(Ok(asked)) = heard.get(&node) else {
            return Err(format!("not tried, because {node} has not finished"));
        };
        let mut answers = asked.nics.get(&device).into_iter().flatten();
        if let Some((other, _)) = answers.find(|(_, answers)| answers.problem.is_some()) {
            return Err(format!("not tried, because {node} does not reach {other}"));
        }
    }
    Ok(())
}

/// The first node that can judge and has finished prints the result, the others that they have done their part; or
/// each prints what is wrong with it.
fn conclude(
    arguments: &CheckArgs,
    terms: Terms,
    meeting: &Meeting,
    here: &NodeName,
    start: Start,
    arrivals: BTreeMap<NodeName, Result<Arrival, String>>,
    asked: BTreeMap<NodeName, Result<Asked, String>>,
) -> Report {
    let judges = judges(&start, &arrivals);
    let first = judges.iter().find(|node| asked.contains_key(**node)).or(judges.first());
    if let Some(first) = first.filter(|first| **first != here && !arguments.this_node) {
        let text = format!("{here} is done; {first} prints the result\n");
        return Report::of(text, "printed_by", first);
    }
    let finishing: Vec<NodeName> = asked.keys().cloned().collect();
    let wait = terms.silence.saturating_mul(PATIENCE).saturating_add(terms.failing());
    let together = meeting.wait_for(&finishing, Word::Together, wait);
    let verdict = Verdict::of(&Said { start, arrivals, asked, together });
    if arguments.this_node { report_of(here, &verdict) } else { report(&verdict) }
}

fn report(verdict: &Verdict) -> Report {
    let report = Report::new(text_of(verdict), verdict);
    if verdict.findings.is_empty() { report } else { report.ending_with(Exit::Findings as u8) }
}

fn text_of(verdict: &Verdict) -> String {
    let mut text = format!("{} nodes\n", verdict.nodes.len());
    for nic in &verdict.nics {
        text += &summary(nic);
        if verdict.nodes.len() <= MOST_ROWS {
            text += &matrix(nic, &verdict.nodes);
        }
    }
    if verdict.findings.is_empty() {
        text += "No problems found.\n";
        return text;
    }
    text.extend(verdict.findings.iter().map(problem));
    if !verdict.drain.is_empty() {
        let names: Vec<&str> = verdict.drain.iter().map(NodeName::as_str).collect();
        text += &format!("Take out of service: {}\n", names.join(","));
    }
    text
}

/// Report of what is wrong with one node.
fn report_of(here: &NodeName, verdict: &Verdict) -> Report {
    let findings = verdict.findings.iter();
    let own: Vec<&Finding> = findings.filter(|one| one.node.as_ref() == Some(here)).collect();
    let text: String = own.iter().map(|finding| problem(finding)).collect();
    let report = Report::of(text, "findings", &own);
    if own.is_empty() { report } else { report.ending_with(Exit::Findings as u8) }
}

fn problem(finding: &Finding) -> String {
    let node = finding.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
    let device = finding.device.map(|device| format!("{device}: ")).unwrap_or_default();
    format!("problem: {node}{device}{}\n", finding.message)
}

fn summary(nic: &NicVerdict) -> String {
    let time = |name: &str, time: Option<u64>| {
        time.map_or_else(String::new, |time| format!(", {name} {}", shown(time)))
    };
    let reached = nic.pairs.iter().filter(|pair| pair.answers.problem.is_none()).count();
    format!(
        "{}: {reached} of {} pairs reached{}{}{}\n",
        nic.device,
        nic.pairs.len(),
        time("median", nic.median_ns),
        time("barrier", nic.barrier_ns),
        time("allreduce", nic.allreduce_ns)
    )
}

/// Medians in microseconds. Rows are the nodes that ask, columns those that answer.
fn matrix(nic: &NicVerdict, nodes: &[NodeName]) -> String {
    let widest = nodes.iter().map(|node| node.as_str().len()).max().unwrap_or_default().max(6);
    let cell = |text: &str| format!(" {text:>widest$}");
    let mut text = format!("  {:widest$}", "µs");
    text.extend(nodes.iter().map(|node| cell(node.as_str())));
    text.push('\n');
    for from in nodes {
        text += &format!("  {:widest$}", from.as_str());
        for to in nodes {
            text += &match nic.answers(from, to) {
                None => cell("-"),
                Some(answers) if answers.problem.is_some() => cell("none"),
                Some(Answers { median_ns: Some(time), .. }) => {
                    cell(&format!("{:.1}", microseconds(*time)))
                }
                Some(_) => cell("late"),
            };
        }
        text.push('\n');
    }
    text
}
