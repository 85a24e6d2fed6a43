//! The part of one NIC in a check.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cxi_data::Address;
use cxi_data::collective::{Combine, Endpoint, Error, Pings, RoundTrips, Timing};
use cxi_mock::SplitMix64;
use cxi_site::NodeName;

use super::meeting::{Answers, Collectives};
use super::verdict::median;

/// Time after which a question is asked again. A node whose processors are busy answers late.
pub(super) const RETRY: Duration = Duration::from_millis(200);
/// Time for which a process answers others before it looks at something else.
const MOMENT: Duration = Duration::from_millis(5);
/// Width of the tree: see `docs/COLLECTIVES.md`.
const WIDTH: NonZeroU32 = NonZeroU32::new(8).unwrap();
const ALLREDUCES: usize = 8;
/// Usual times of an answer after which a message of an operation is repeated, at the earliest.
const ANSWERS: u32 = 8;
/// Nodes that may be silent before the others are waited for only so much of the usual time, and that are
/// asked again: a node that reaches nobody must be done before the others believe that it has died.
const SILENT: usize = 3;
const HASTE: u32 = 4;

/// Terms of a check.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) session: u32,
    pub(super) pings: NonZeroU32,
    pub(super) partners: usize,
    pub(super) seed: u32,
    pub(super) silence: Duration,
    /// Time for which the nodes wait for each other.
    pub(super) wait: Duration,
}

impl Terms {
    /// Time for which all wait for a node that does not answer while they perform operations together. Each has
    /// just answered; but files show to each at another time that the operations begin, and until then it answers
    /// none of their messages.
    fn patience(&self) -> Duration {
        self.silence.max(self.wait)
    }

    fn deadline(&self) -> Duration {
        self.patience().saturating_add(self.silence)
    }

    /// Longest time of an operation that fails, after which a node still tells others of it.
    pub(super) fn failing(&self) -> Duration {
        self.deadline().saturating_add(self.patience())
    }

    /// Times of the operations that all perform together. Where answers take long, a message that is repeated
    /// sooner than it can be answered only makes them take longer.
    fn timing(&self, said: &BTreeMap<NodeName, Answers>) -> Timing {
        let usual =
            median(&mut said.values().filter_map(|answers| answers.median_ns).collect::<Vec<_>>());
        let answered = Duration::from_nanos(usual.unwrap_or_default()).saturating_mul(ANSWERS);
        let silence = self.patience();
        let retry = answered.min(silence / ANSWERS).max(RETRY / 4);
        Timing { retry, silence, deadline: self.deadline() }
    }

    /// Time that a node takes that reaches nobody, or as many as it asks again; or that gets each answer just before
    /// it would ask again.
    pub(super) fn longest(&self) -> Duration {
        let times = |time: Duration, nodes: usize| {
            time.saturating_mul(u32::try_from(nodes).unwrap_or(u32::MAX))
        };
        let patient = times(self.silence, self.partners.min(SILENT));
        let hasty = times(self.silence / HASTE, self.partners.saturating_sub(SILENT));
        let nobody = patient.saturating_add(hasty);
        let late = times(RETRY.saturating_mul(self.pings.get()), self.partners);
        nobody.max(patient.saturating_mul(2)).max(late)
    }
}

/// Performs the part of one NIC: tells what the others have answered, and answers them until it is decided
/// whether all perform operations together.
pub(super) fn take_part(
    endpoint: Endpoint,
    here: &NodeName,
    members: &[(NodeName, Address)],
    terms: Terms,
    tell: impl FnOnce(BTreeMap<NodeName, Answers>),
    together: &OnceLock<Result<(), String>>,
) -> Collectives {
    let addresses: Vec<Address> = members.iter().map(|(_, address)| *address).collect();
    match endpoint.pings(terms.session, &addresses) {
        Ok(mut pings) => {
            let said = ask(&mut pings, members, terms);
            let timing = terms.timing(&said);
            tell(said);
            finish(pings, &addresses, members, terms.session, timing, together)
        }
        Err(error) => {
            let others = members.iter().filter(|(node, _)| node != here);
            tell(others.map(|(node, _)| (node.clone(), not_asked(&error))).collect());
            Collectives::Problem(error.to_string())
        }
    }
}

fn not_asked(error: &Error) -> Answers {
    Answers { problem: Some(error.to_string()), ..Answers::default() }
}

/// Distances in the list to the nodes that each node asks: the next one, and random others. They are the
/// same for all nodes, so that as many ask each node as it asks, and at each step one.
fn distances(size: usize, partners: usize, seed: u32) -> Vec<usize> {
    let mut distances: Vec<usize> = (1..size).collect();
    if partners < distances.len() {
        let mut random = SplitMix64::new(seed.into());
        for place in 1..partners {
            let rest = (distances.len() - place) as u64;
            let offset = usize::try_from(random.draw() % rest).unwrap_or_default();
            distances.swap(place, place + offset);
        }
        distances.truncate(partners.max(1));
    }
    distances
}

/// Asks other nodes, the next one in the list first. A few that are silent are asked once more at the end:
/// they may have learned late that the check begins.
fn ask(
    pings: &mut Pings,
    members: &[(NodeName, Address)],
    terms: Terms,
) -> BTreeMap<NodeName, Answers> {
    let size = members.len();
    let own = pings.rank() as usize;
    let (mut said, mut silent) = (BTreeMap::new(), Vec::new());
    for distance in distances(size, terms.partners, terms.seed) {
        let rank = (own + distance) % size;
        let haste = if silent.len() < SILENT { 1 } else { HASTE };
        let answers = ask_one(pings, rank, terms.pings, terms.silence / haste);
        if answers.problem.is_some() {
            silent.push(rank);
        }
        said.insert(members[rank].0.clone(), answers);
    }
    if silent.len() <= SILENT {
        for rank in silent {
            let answers = ask_one(pings, rank, terms.pings, terms.silence);
            said.insert(members[rank].0.clone(), answers);
        }
    }
    said
}

fn ask_one(pings: &mut Pings, rank: usize, count: NonZeroU32, silence: Duration) -> Answers {
    let rank = u32::try_from(rank).unwrap_or(u32::MAX);
    match pings.ask(rank, count, RETRY, silence) {
        Ok(trips) => answers(&trips, count, silence),
        Err(error) => not_asked(&error),
    }
}

fn answers(trips: &RoundTrips, pings: NonZeroU32, silence: Duration) -> Answers {
    let problem = (trips.answered < pings.get()).then(|| {
        let why = trips.undelivered.map_or_else(String::new, |why| format!(": {why}"));
        format!("no answer within {silence:?}{why}")
    });
    let mut times: Vec<u64> = trips.times.iter().map(nanoseconds).collect();
    Answers {
        answered: trips.answered,
        retries: trips.retries,
        least_ns: times.iter().min().copied(),
        median_ns: median(&mut times),
        problem,
    }
}

fn nanoseconds(time: &Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Answers the others until it is decided whether all perform operations together; then does.
fn finish(
    mut pings: Pings,
    addresses: &[Address],
    members: &[(NodeName, Address)],
    session: u32,
    timing: Timing,
    together: &OnceLock<Result<(), String>>,
) -> Collectives {
    let decided = loop {
        if let Some(decided) = together.get() {
            break decided.clone();
        }
        if let Err(error) = pings.answer_for(MOMENT) {
            break Err(error.to_string());
        }
    };
    decided
        .and_then(|()| collectives(pings.leave(), addresses, members, session, timing))
        .unwrap_or_else(Collectives::Problem)
}

fn collectives(
    endpoint: Endpoint,
    addresses: &[Address],
    members: &[(NodeName, Address)],
    session: u32,
    timing: Timing,
) -> Result<Collectives, String> {
    let named = |error: Error| match error {
        Error::Failed { failure, undelivered } => {
            let node = members.get(failure.rank as usize).map(|(node, _)| node.as_str());
            let why = undelivered.map_or_else(String::new, |why| format!(": {why}"));
            format!("{} {}{why}", node.unwrap_or("a node"), failure.cause)
        }
        other => other.to_string(),
    };
    let mut group =
        endpoint.join(session.wrapping_add(1), addresses, WIDTH, timing).map_err(named)?;
    let run = (|| {
        // The first one waits for the last node to come here.
        group.barrier()?;
        let start = Instant::now();
        group.barrier()?;
        let barrier = start.elapsed();
        let mut times = Vec::new();
        for round in 0..ALLREDUCES as u64 {
            let start = Instant::now();
            let sum = group.allreduce(Combine::Sum, [round, 1, 1, 1, 1, 1, 1, 1])?;
            times.push(nanoseconds(&start.elapsed()));
            let nodes = members.len() as u64;
            if sum != [round * nodes, nodes, nodes, nodes, nodes, nodes, nodes, nodes] {
                return Ok(Err(format!("an allreduce of 1 of {nodes} nodes gave {sum:?}")));
            }
        }
        let allreduce_ns = median(&mut times).unwrap_or_default();
        Ok(Ok(Collectives::Times { barrier_ns: nanoseconds(&barrier), allreduce_ns }))
    })();
    // Others may still have to learn how the last operation ended.
    let left = group.leave().map(drop);
    let times = run.map_err(named)??;
    left.map_err(named)?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn partners_are_the_next_node_and_others_that_the_seed_says() {
        assert_eq!(distances(5, 8, 1), [1, 2, 3, 4]);
        assert_eq!(distances(2, 1, 1), [1]);
        assert_eq!(distances(1, 1, 1), [0; 0]);
        assert_eq!(distances(1000, 1, 1), [1]);
        let drawn = distances(1000, 16, 7);
        let distinct: BTreeSet<usize> = drawn.iter().copied().collect();
        assert_eq!((drawn[0], distinct.len()), (1, 16), "{drawn:?}");
        assert!(distinct.iter().all(|distance| (1..1000).contains(distance)), "{drawn:?}");
        assert_eq!(drawn, distances(1000, 16, 7));
        assert_ne!(drawn, distances(1000, 16, 8));
        // All but one of few: the one that is left out differs.
        let left = |seed| (1..9).find(|one| !distances(9, 7, seed).contains(one));
        assert!((0..50).map(left).collect::<BTreeSet<_>>().len() > 4);
    }

    fn terms(partners: usize) -> Terms {
        Terms {
            session: 1,
            pings: NonZeroU32::MIN,
            partners,
            seed: 1,
            silence: Duration::from_secs(4),
            wait: Duration::from_secs(30),
        }
    }

    #[test]
    fn operations_repeat_no_sooner_than_is_answered() {
        let said = |time: u64| {
            let answers = Answers { median_ns: Some(time * 1_000_000), ..Answers::default() };
            BTreeMap::from([(NodeName::new("n1").unwrap(), answers)])
        };
        // Repeated after 50 ms, or eight answers, and never so late that nobody could be told to be silent.
        for (answer, retry) in [(0, 50), (1, 50), (100, 800), (199, 1592), (60_000, 3750)] {
            let timing = terms(3).timing(&said(answer));
            assert_eq!((timing.check(), timing.retry), (Ok(()), Duration::from_millis(retry)));
        }
    }

    #[test]
    fn a_node_that_reaches_nobody_is_done_in_time() {
        let seconds = [(1, 8), (3, 24), (16, 25), (63, 72)];
        for (partners, seconds) in seconds {
            assert_eq!(terms(partners).longest(), Duration::from_secs(seconds));
        }
        // Five questions a second, if each is answered late.
        let many = Terms { pings: NonZeroU32::new(10).unwrap(), ..terms(63) };
        assert_eq!(many.longest(), Duration::from_secs(126));
    }
}
