//! The verdict of a check: what all nodes have said, taken together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cxi::DeviceId;
use cxi_site::NodeName;
use serde::Serialize;

use super::meeting::{Answers, Arrival, Asked, Collectives, NicArrival, Start, Together};
use super::nic::RETRY;

/// A node is slow if its fastest pair takes this much longer than that of a usual node, and also longer
/// than usual differences.
const SLOW: f64 = 3.0;
/// Deviations from the median that are usual, in units of the median absolute deviation: four standard
/// deviations of a normal distribution.
const USUAL: f64 = 4.0 * 1.4826;
/// Fewest nodes among which one can be told to be slow.
const ENOUGH: usize = 3;
/// Fewest other nodes with which a node must fail to be blamed although it reaches some, and how many times
/// more these are than those with which one of them fails.
const MANY: usize = 4;
/// Usual time of answers from which on silence says more about the nodes' processors than about the fabric.
const LATE: Duration = RETRY.checked_div(4).expect("not zero");

/// Everything that the nodes have said.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) start: Start,
    pub(super) arrivals: BTreeMap<NodeName, Result<Arrival, String>>,
    pub(super) asked: BTreeMap<NodeName, Result<Asked, String>>,
    pub(super) together: BTreeMap<NodeName, Result<Together, String>>,
}

/// Result of a check.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) nodes: Vec<NodeName>,
    pub(super) nics: Vec<NicVerdict>,
    pub(super) findings: Vec<Finding>,
    /// The nodes to take out of service: whatever is wrong is wrong there.
    pub(super) drain: Vec<NodeName>,
}

/// Result of one NIC of each node.
#[derive(Debug, Serialize)]
pub(super) struct NicVerdict {
    pub(super) device: DeviceId,
    /// Median of the medians of all pairs, in nanoseconds.
    pub(super) median_ns: Option<u64>,
    pub(super) barrier_ns: Option<u64>,
    pub(super) allreduce_ns: Option<u64>,
    pub(super) pairs: Vec<Pair>,
}

/// Answers of one node to another.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    pub(super) from: NodeName,
    pub(super) to: NodeName,
    #[serde(flatten)]
    pub(super) answers: Answers,
}

impl Pair {
    fn is_of(&self, node: &NodeName) -> bool {
        self.from == *node || self.to == *node
    }

    fn is_of_any(&self, nodes: &BTreeSet<&NodeName>) -> bool {
        nodes.contains(&self.from) || nodes.contains(&self.to)
    }
}

/// Something that should be looked at.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    /// The node to blame; `None` if it may be either of two.
    pub(super) node: Option<NodeName>,
    pub(super) device: Option<DeviceId>,
    pub(super) message: String,
}

impl NicVerdict {
    /// The answers of one node to another, if it was asked.
    pub(super) fn answers(&self, from: &NodeName, to: &NodeName) -> Option<&Answers> {
        // They are sorted, as what the nodes have said is.
        let order = |pair: &Pair| (&pair.from, &pair.to).cmp(&(from, to));
        let at = self.pairs.binary_search_by(order).ok()?;
        Some(&self.pairs[at].answers)
    }
}

impl Verdict {
    pub(super) fn of(said: &Said) -> Self {
        let mut verdict = Self {
            nodes: said.start.nodes.clone(),
            nics: Vec::new(),
            findings: Vec::new(),
            drain: Vec::new(),
        };
        verdict.presence(said);
        for device in devices(said) {
            verdict.nic(said, device);
        }
        let blamed: BTreeSet<&NodeName> =
            verdict.findings.iter().filter_map(|finding| finding.node.as_ref()).collect();
        verdict.drain =
            verdict.nodes.iter().filter(|node| blamed.contains(node)).cloned().collect();
        verdict
    }

    fn find(
        &mut self,
        node: Option<&NodeName>,
        device: Option<DeviceId>,
        message: impl Into<String>,
    ) {
        self.findings.push(Finding { node: node.cloned(), device, message: message.into() });
    }

    /// Nodes that did not come, or did not stay.
    fn presence(&mut self, said: &Said) {
        for node in &said.start.nodes {
            if !said.start.came.contains(node) {
                self.find(Some(node), None, "did not come");
                continue;
            }
            match said.arrivals.get(node) {
                Some(Err(error)) => self.find(Some(node), None, error),
                None => self.find(Some(node), None, "has taken back that it came"),
                Some(Ok(_)) => match said.asked.get(node) {
                    Some(Err(error)) => self.find(Some(node), None, error),
                    None => self.find(Some(node), None, "came, and did not finish"),
                    Some(Ok(_)) => {}
                },
            }
        }
    }

    fn nic(&mut self, said: &Said, device: DeviceId) {
        let (mut members, mut vnis) = (Vec::new(), BTreeMap::<u16, Vec<&NodeName>>::new());
        for (node, arrival) in &said.arrivals {
            let Ok(arrival) = arrival else { continue };
            match arrival.nics.get(&device) {
                Some(NicArrival::Address { vni, .. }) => {
                    members.push(node);
                    vnis.entry(*vni).or_default().push(node);
                }
                Some(NicArrival::Problem(problem)) => self.find(Some(node), Some(device), problem),
                None => self.find(Some(node), Some(device), "the node has no such NIC"),
            }
        }
        let usual = vnis.iter().max_by_key(|(_, nodes)| nodes.len()).map(|(vni, _)| *vni);
        for (vni, nodes) in &vnis {
            let Some(usual) = usual.filter(|usual| usual != vni) else { continue };
            // If as many use either, nobody is wrong.
            let is_divided = nodes.len() == vnis[&usual].len();
            for node in nodes {
                let message = format!("{node} uses VNI {vni}, and others VNI {usual}");
                self.find(Some(*node).filter(|_| !is_divided), Some(device), message);
            }
        }
        let mut pairs = Vec::new();
        for (from, asked) in &said.asked {
            let Some(nic) = asked.as_ref().ok().and_then(|asked| asked.nics.get(&device)) else {
                continue;
            };
            for (to, answers) in nic {
                pairs.push(Pair { from: from.clone(), to: to.clone(), answers: answers.clone() });
            }
        }
        self.unreached(device, &members, &pairs);
        self.lossy(device, &members, &pairs);
        self.slow(device, &members, &pairs);
        let (barrier_ns, allreduce_ns) = self.together(said, device);
        let mut medians: Vec<u64> =
            pairs.iter().filter_map(|pair| pair.answers.median_ns).collect();
        let median_ns = median(&mut medians);
        self.nics.push(NicVerdict { device, median_ns, barrier_ns, allreduce_ns, pairs });
    }

    /// Blames a node whom nobody reaches, or that reaches nobody; otherwise names the pair.
    ///
    /// Silence of a few is no evidence where answers usually come about as late as a question is repeated.
    fn unreached(&mut self, device: DeviceId, members: &[&NodeName], pairs: &[Pair]) {
        let late = usually(members, pairs).filter(|usual| *usual >= LATE);
        let mut blamed = self.cut_off(device, members, pairs, late.is_some());
        let enough = if late.is_some() { MANY.max(members.len() / 2) } else { MANY };
        for (node, message) in mostly_failing(members, pairs, &blamed, enough) {
            self.find(Some(node), Some(device), message);
            blamed.insert(node);
        }
        let failed = pairs.iter().filter(|pair| pair.answers.problem.is_some());
        let failed: Vec<&Pair> = failed.filter(|pair| !pair.is_of_any(&blamed)).collect();
        if let Some(usual) = late.filter(|_| !failed.is_empty()) {
            let message = format!(
                "{} of {} pairs did not reach each other, but answers usually take {} ms: the nodes are too \
                 slow to judge these pairs",
                failed.len(),
                pairs.len(),
                usual.as_millis()
            );
            return self.find(None, Some(device), message);
        }
        let mut named = BTreeSet::new();
        for pair in failed {
            let key =
                if pair.from < pair.to { (&pair.from, &pair.to) } else { (&pair.to, &pair.from) };
            if named.insert(key) {
                let why = pair.answers.problem.as_deref().unwrap_or_default();
                self.find(
                    None,
                    Some(device),
                    format!("{} does not reach {}: {why}", pair.from, pair.to),
                );
            }
        }
    }

    /// Blames a node that fails with all others in one direction, or where all answer late, with more of them and
    /// in both; returns it with those that are blamed already.
    fn cut_off<'a>(
        &mut self,
        device: DeviceId,
        members: &[&'a NodeName],
        pairs: &[Pair],
        is_late: bool,
    ) -> BTreeSet<&'a NodeName> {
        let is_known = |node: &&&NodeName| {
            self.findings.iter().any(|finding| {
                finding.node.as_ref() == Some(**node)
                    && finding.device.is_none_or(|of| of == device)
            })
        };
        let mut blamed: BTreeSet<&NodeName> = members.iter().filter(is_known).copied().collect();
        let rest = || pairs.iter().filter(|pair| !pair.is_of_any(&blamed));
        let enough = if is_late { MANY } else { 2 };
        // Failed pairs of a node in one direction, if these are all, with the reason.
        let all_fail = |of: &dyn Fn(&Pair) -> bool| {
            let (mut count, mut why) = (0, None);
            for pair in rest().filter(|pair| of(pair)) {
                why = Some(pair.answers.problem.as_deref()?);
                count += 1;
            }
            why.map(|why| (count, why)).filter(|(count, _)| *count >= enough)
        };
        let mut cut_off = Vec::new();
        for node in members.iter().filter(|node| !blamed.contains(**node)) {
            let to = all_fail(&|pair| pair.to == **node);
            let from = all_fail(&|pair| pair.from == **node);
            if is_late && (to.is_none() || from.is_none()) {
                continue;
            }
            if let Some((count, why)) = to {
                cut_off.push((*node, format!("is not reached by {count} other nodes: {why}")));
            } else if let Some((count, why)) = from {
                cut_off.push((*node, format!("does not reach {count} other nodes: {why}")));
            }
        }
        // If nobody reaches anybody, there is nobody to compare with.
        if cut_off.len() + blamed.len() < members.len() {
            for (node, message) in cut_off {
                self.find(Some(node), Some(device), message);
                blamed.insert(node);
            }
        }
        blamed
    }

    /// Messages that had to be repeated: the NIC already repeats what a switch loses.
    fn lossy(&mut self, device: DeviceId, members: &[&NodeName], pairs: &[Pair]) {
        let lost = |node: &NodeName| -> (u64, u64) {
            let own = pairs.iter().filter(|pair| pair.is_of(node));
            own.filter(|pair| pair.answers.problem.is_none()).fold((0, 0), |(lost, all), pair| {
                (lost + u64::from(pair.answers.retries), all + u64::from(pair.answers.answered))
            })
        };
        let counts: Vec<(&NodeName, (u64, u64))> =
            members.iter().map(|node| (*node, lost(node))).collect();
        let total: u64 = counts.iter().map(|(_, (lost, _))| lost).sum::<u64>() / 2;
        let all: u64 = counts.iter().map(|(_, (_, all))| all).sum::<u64>() / 2;
        // One in a hundred is no accident; but a single one may have come to a process that had not begun.
        if total * 100 < all || total < 2 {
            return;
        }
        // Every message of the node to blame is one of another node, too, so it has about all of them.
        let worst = counts.iter().max_by_key(|(_, (lost, _))| *lost);
        let blamed =
            worst.filter(|(_, (lost, _))| counts.len() >= ENOUGH && *lost * 10 >= total * 9);
        if let Some((node, (lost, all))) = blamed {
            let message = format!("{lost} messages were repeated for {all} answers");
            self.find(Some(node), Some(device), message);
        } else {
            let message =
                format!("{total} messages were repeated for {all} answers, of several nodes");
            self.find(None, Some(device), message);
        }
    }

    /// Nodes of which even the fastest pair is slow.
    fn slow(&mut self, device: DeviceId, members: &[&NodeName], pairs: &[Pair]) {
        let nearest = |node: &&NodeName, time: fn(&Answers) -> Option<u64>| {
            let own = pairs.iter().filter(|pair| pair.is_of(node));
            own.filter_map(|pair| time(&pair.answers)).min()
        };
        let times: Vec<(&NodeName, u64)> = members
            .iter()
            .filter_map(|node| Some((*node, nearest(node, |answers| answers.least_ns)?)))
            .collect();
        if times.len() < ENOUGH {
            return;
        }
        // Where nodes are busy, the fastest of all answers is luck: a slow node has none that is as fast as
        // half the answers of a usual node.
        let mut halves: Vec<u64> =
            members.iter().filter_map(|node| nearest(node, |answers| answers.median_ns)).collect();
        let half = median(&mut halves).unwrap_or_default();
        let Some(usual) = median(&mut times.iter().map(|(_, time)| *time).collect::<Vec<_>>())
        else {
            return;
        };
        let mut deviations: Vec<u64> = times.iter().map(|(_, time)| time.abs_diff(usual)).collect();
        let deviation = median(&mut deviations).unwrap_or_default();
        let limit = microseconds(usual);
        let limit =
            (SLOW * limit).max(limit + USUAL * microseconds(deviation)).max(microseconds(half));
        for (node, time) in times.into_iter().filter(|(_, time)| microseconds(*time) > limit) {
            let (time, usual) = (shown(time), shown(usual));
            let message = format!("is slow: {time} to its nearest node, where {usual} are usual");
            self.find(Some(node), Some(device), message);
        }
    }

    /// The times of the slowest node, and what failed although all pairs reached each other.
    fn together(&mut self, said: &Said, device: DeviceId) -> (Option<u64>, Option<u64>) {
        let (mut barrier, mut allreduce) = (None, None);
        let mut problems = BTreeSet::new();
        for together in said.together.values().flatten() {
            match together.nics.get(&device) {
                Some(Collectives::Times { barrier_ns, allreduce_ns }) => {
                    barrier = barrier.max(Some(*barrier_ns));
                    allreduce = allreduce.max(Some(*allreduce_ns));
                }
                Some(Collectives::Problem(problem)) => {
                    problems.insert(problem);
                }
                None => {}
            }
        }
        if self.findings.is_empty() {
            for problem in problems {
                self.find(None, Some(device), format!("together, {problem}"));
            }
        }
        (barrier, allreduce)
    }
}

/// The time that an answer usually takes, whatever one node does: of each node, the time within which a quarter
/// of its pairs answer, and of these the median.
fn usually(members: &[&NodeName], pairs: &[Pair]) -> Option<Duration> {
    let of_node = |node: &&NodeName| {
        let own = pairs.iter().filter(|pair| pair.is_of(node));
        // Where there are answers and no time, all questions were repeated.
        let time = |pair: &Pair| match pair.answers {
            Answers { answered: 0, .. } => None,
            Answers { median_ns, .. } => Some(median_ns.map_or(RETRY, Duration::from_nanos)),
        };
        let mut times: Vec<Duration> = own.filter_map(time).collect();
        times.sort_unstable();
        times.get(times.len() / 4).copied()
    };
    median(&mut members.iter().filter_map(of_node).collect::<Vec<_>>())
}

/// Nodes that fail with enough others, who fail with few: as behind a port that loses most of what it gets.
fn mostly_failing<'a>(
    members: &[&'a NodeName],
    pairs: &'a [Pair],
    blamed: &BTreeSet<&NodeName>,
    enough: usize,
) -> Vec<(&'a NodeName, String)> {
    let mut failed: BTreeMap<&NodeName, BTreeMap<&NodeName, &str>> = BTreeMap::new();
    for pair in pairs.iter().filter(|pair| !pair.is_of_any(blamed)) {
        let Some(why) = pair.answers.problem.as_deref() else { continue };
        failed.entry(&pair.from).or_default().insert(&pair.to, why);
        failed.entry(&pair.to).or_default().insert(&pair.from, why);
    }
    let fails_alone = |node: &&'a NodeName| {
        let others = failed.get(*node).filter(|others| others.len() >= enough)?;
        let with_few = others.keys().filter(|other| failed[*other].len() * MANY <= others.len());
        let (_, why) = others.first_key_value()?;
        (with_few.count() * 2 > others.len())
            .then(|| (*node, format!("fails with {} other nodes: {why}", others.len())))
    };
    members.iter().filter_map(fails_alone).collect()
}

fn devices(said: &Said) -> BTreeSet<DeviceId> {
    said.arrivals.values().flatten().flat_map(|arrival| arrival.nics.keys().copied()).collect()
}

/// The time in the middle, of two the longer one.
pub(super) fn median<T: Ord + Copy>(times: &mut [T]) -> Option<T> {
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[allow(clippy::cast_precision_loss, reason = "times far below 2^53 ns")]
pub(super) fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// A time in nanoseconds, for people.
pub(super) fn shown(nanoseconds: u64) -> String {
    format!("{:.1} µs", microseconds(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: usize) -> NodeName {
        NodeName::new(format!("n{number}")).unwrap()
    }

    fn answers(microseconds: u64) -> Answers {
        let time = Some(microseconds * 1000);
        Answers { answered: 8, retries: 0, least_ns: time, median_ns: time, problem: None }
    }

    /// A check of nodes that all came, with what each pair has seen.
    fn said(nodes: usize, pair: impl Fn(usize, usize) -> Answers) -> Said {
        let all: Vec<NodeName> = (1..=nodes).map(node).collect();
        let device = DeviceId::new(0);
        let arrival = |number: usize| {
            let nid = u32::try_from(number).unwrap();
            let address = NicArrival::Address { nid, pid: 0, vni: 1024 };
            (node(number), Ok(Arrival { nics: [(device, address)].into() }))
        };
        let asked = |from: usize| {
            let others = (1..=nodes).filter(|to| *to != from);
            let answers = others.map(|to| (node(to), pair(from, to))).collect();
            (node(from), Ok(Asked { nics: [(device, answers)].into() }))
        };
        let together = |number: usize| {
            let times = Collectives::Times { barrier_ns: 10_000, allreduce_ns: 20_000 };
            (node(number), Ok(Together { nics: [(device, times)].into() }))
        };
        Said {
            start: Start { session: 1, nodes: all.clone(), came: all },
            arrivals: (1..=nodes).map(arrival).collect(),
            asked: (1..=nodes).map(asked).collect(),
            together: (1..=nodes).map(together).collect(),
        }
    }

    fn unreached() -> Answers {
        Answers { problem: Some("no answer within 3s".to_owned()), ..Answers::default() }
    }

    /// The nodes to blame, and all messages.
    fn verdict(said: &Said) -> (Vec<String>, Vec<String>) {
        let Verdict { drain, findings, .. } = Verdict::of(said);
        let messages = findings.into_iter().map(|finding| finding.message).collect();
        (drain.iter().map(ToString::to_string).collect(), messages)
    }

    #[test]
    fn nothing_is_found_where_nothing_is_wrong() {
        // Pairs differ, as they do.
        let good = said(5, |from, to| answers(40 + (from * 7 + to * 3) as u64 % 11));
        assert_eq!(verdict(&good), (vec![], vec![]));
        let nic = &Verdict::of(&good).nics[0];
        assert_eq!(
            (nic.pairs.len(), nic.barrier_ns, nic.allreduce_ns),
            (20, Some(10_000), Some(20_000))
        );
    }

    #[test]
    fn a_node_of_which_all_pairs_are_slow_is_named() {
        let slow = said(4, |from, to| answers(if from == 3 || to == 3 { 900 } else { 41 }));
        let message = "is slow: 900.0 µs to its nearest node, where 41.0 µs are usual";
        assert_eq!(verdict(&slow), (vec!["n3".to_owned()], vec![message.to_owned()]));
        // Of two nodes, nobody can tell, and one slow pair is no slow node.
        assert_eq!(verdict(&said(2, |_, _| answers(900))).0, Vec::<String>::new());
        let pair = said(4, |from, to| answers(if from + to == 7 { 900 } else { 41 }));
        assert_eq!(verdict(&pair).0, Vec::<String>::new());
    }

    #[test]
    fn a_node_at_a_port_that_loses_messages_is_named() {
        let lost = |from: usize, to: usize| Answers {
            retries: u32::from(from == 2 || to == 2),
            ..answers(41)
        };
        let (drain, messages) = verdict(&said(4, lost));
        assert_eq!(drain, ["n2"]);
        assert_eq!(messages, ["6 messages were repeated for 48 answers"]);
        // If several nodes lose some, it is the fabric's.
        let (drain, messages) = verdict(&said(4, |_, _| Answers { retries: 1, ..answers(41) }));
        assert_eq!(drain, Vec::<String>::new());
        assert!(messages[0].contains("of several nodes"), "{messages:?}");
    }

    #[test]
    fn whom_nobody_reaches_is_to_blame_and_of_two_nobody_is() {
        for nodes in [3, 4, 9] {
            let both = said(
                nodes,
                |from, to| if from == 3 || to == 3 { unreached() } else { answers(41) },
            );
            assert_eq!(verdict(&both).0, ["n3"], "{nodes}");
            let one_way = said(nodes, |from, _| if from == 3 { unreached() } else { answers(41) });
            assert_eq!(verdict(&one_way).0, ["n3"], "{nodes}");
            let pair =
                said(nodes, |from, to| if from + to == 3 { unreached() } else { answers(41) });
            let message = "n1 does not reach n2: no answer within 3s".to_owned();
            assert_eq!(verdict(&pair), (vec![], vec![message]), "{nodes}");
        }
        let two =
            said(
                6,
                |from, to| {
                    if [from, to].iter().any(|one| *one > 4) { unreached() } else { answers(41) }
                },
            );
        assert_eq!(verdict(&two).0, ["n5", "n6"]);
    }

    /// A node that reaches some others still is to blame, if these reach each other.
    #[test]
    fn who_fails_with_many_others_is_to_blame() {
        let often = |bad: &'static [usize]| {
            move |from: usize, to: usize| {
                let is_lucky = (from * 5 + to * 3).is_multiple_of(4);
                let is_bad = bad.iter().any(|one| [from, to].contains(one));
                if is_bad && !is_lucky { unreached() } else { answers(41) }
            }
        };
        for (nodes, bad, named) in
            [(9, &[3][..], vec!["n3"]), (64, &[37], vec!["n37"]), (64, &[5, 37], vec!["n37", "n5"])]
        {
            let mut drain = verdict(&said(nodes, often(bad))).0;
            drain.sort();
            assert_eq!(drain, named, "{nodes}");
        }
        let message = &verdict(&said(9, often(&[3]))).1[0];
        assert_eq!(message, "fails with 7 other nodes: no answer within 3s");
        // Between two halves, it may be either.
        let halves = |from: usize, to: usize| {
            if (from <= 5) != (to <= 5) && !(from + to).is_multiple_of(9) {
                unreached()
            } else {
                answers(41)
            }
        };
        assert_eq!(verdict(&said(10, halves)).0, Vec::<String>::new());
    }

    /// On busy nodes, how fast the fastest of all answers was is chance.
    #[test]
    fn luck_of_others_makes_no_node_slow() {
        let time = |least: u64, median: u64| Answers {
            least_ns: Some(least * 1000),
            median_ns: Some(median * 1000),
            ..answers(0)
        };
        let busy = |from: usize, to: usize| {
            time(if [from, to].contains(&3) { 3600 } else { 400 + from as u64 }, 9_800)
        };
        assert_eq!(verdict(&said(9, busy)), (vec![], vec![]));
        // Not even the fastest answer is as fast as half of those of others.
        let slow = |from: usize, to: usize| {
            if [from, to].contains(&3) { time(50_000, 60_000) } else { time(400, 9_800) }
        };
        assert_eq!(verdict(&said(9, slow)).0, ["n3"]);
    }

    /// As 64 processes on two processors are.
    #[test]
    fn nodes_that_are_too_slow_to_judge_are_not_blamed() {
        let late = |from: usize, to: usize, time: u64| {
            // One node has bad luck, and others some.
            let is_unlucky = [from, to].contains(&26) && (from + to).is_multiple_of(4);
            let is_silent = is_unlucky || (from * 7 + to * 3).is_multiple_of(64);
            if is_silent { unreached() } else { answers(time) }
        };
        let slow = said(64, |from, to| late(from, to, 149_000));
        let (drain, messages) = verdict(&slow);
        assert_eq!(drain, Vec::<String>::new());
        let message = "90 of 4032 pairs did not reach each other, but answers usually take 149 ms: \
                       the nodes are too slow to judge these pairs";
        assert_eq!(messages, [message]);
        // The same silence between nodes that are fast is one's fault.
        assert_eq!(verdict(&said(64, |from, to| late(from, to, 149))).0, ["n26"]);
        // A question that was always repeated has no time.
        let untimed = Answers { least_ns: None, median_ns: None, ..answers(0) };
        let repeated = said(64, |from, to| match late(from, to, 0) {
            Answers { problem: None, .. } => untimed.clone(),
            silent => silent,
        });
        assert!(verdict(&repeated).1[0].contains("usually take 200 ms"));
        // Late answers alone are no problem, and whom nobody reaches is out of reach, however late others are.
        assert_eq!(verdict(&said(64, |_, _| answers(149_000))), (vec![], vec![]));
        let dead = |from: usize, to: usize| {
            if [from, to].contains(&37) { unreached() } else { answers(149_000) }
        };
        assert_eq!(verdict(&said(64, dead)).0, ["n37"]);
        // So is one at a port that loses most of what it gets.
        let lossy = |from: usize, to: usize| {
            let is_lucky = (from + to).is_multiple_of(4);
            if [from, to].contains(&37) && !is_lucky { unreached() } else { answers(149_000) }
        };
        assert_eq!(verdict(&said(64, lossy)).0, ["n37"]);
        // One slow node of three makes the others no slower.
        let one = |from: usize, to: usize| answers(if from + to == 3 { 41 } else { 149_000 });
        assert_eq!(verdict(&said(3, one)).0, ["n3"]);
    }

    #[test]
    fn a_single_repeated_message_is_no_loss() {
        let once = |from, _| Answers { retries: u32::from(from == 2), ..answers(41) };
        assert_eq!(verdict(&said(2, once)), (vec![], vec![]));
    }

    /// Numbers of other nodes may be anything.
    #[test]
    fn the_largest_numbers_are_added_up() {
        let most = Answers {
            answered: u32::MAX,
            retries: u32::MAX,
            least_ns: Some(u64::MAX),
            median_ns: Some(u64::MAX),
            problem: None,
        };
        let (drain, messages) = verdict(&said(3, |_, _| most.clone()));
        assert_eq!(drain, Vec::<String>::new());
        let expected = "25769803770 messages were repeated for 25769803770 answers";
        assert!(messages[0].starts_with(expected), "{messages:?}");
    }

    #[test]
    fn who_says_nothing_or_nonsense_is_named() {
        let mut odd = said(5, |_, _| answers(41));
        odd.start.came.retain(|one| *one != node(1));
        odd.arrivals.insert(node(2), Err("n2.arrival.json: not JSON".to_owned()));
        odd.asked.remove(&node(3));
        odd.asked.insert(node(4), Err("n4.asked.json: not JSON".to_owned()));
        let (drain, messages) = verdict(&odd);
        assert_eq!(drain, ["n1", "n2", "n3", "n4"]);
        assert!(messages.contains(&"did not come".to_owned()), "{messages:?}");
        assert!(messages.contains(&"came, and did not finish".to_owned()), "{messages:?}");
    }
}
