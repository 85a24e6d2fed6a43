//! The part of one NIC in a check.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use cxi_data::Address;
use cxi_data::collective::{Combine, Endpoint, Error, Pings, RoundTrips, Timing};
use cxi_job::NodeName;

use super::meeting::{Answers, Collectives};
use super::verdict::median;

/// Time after which a question is asked again. A node whose processors are busy answers late.
const RETRY: Duration = Duration::from_millis(200);
/// Time for which a process answers others before it looks at something else.
const MOMENT: Duration = Duration::from_millis(5);
/// Width of the tree: see `docs/COLLECTIVES.md`.
const WIDTH: NonZeroU32 = NonZeroU32::new(8).unwrap();
const ALLREDUCES: usize = 8;

/// Terms of a check.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) session: u32,
    pub(super) pings: NonZeroU32,
    pub(super) silence: Duration,
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
            tell(ask(&mut pings, members, terms));
            finish(pings, &addresses, members, terms, together)
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

/// Asks every other node, the next one in the list first: at each step, each is asked by one.
fn ask(
    pings: &mut Pings,
    members: &[(NodeName, Address)],
    terms: Terms,
) -> BTreeMap<NodeName, Answers> {
    let size = members.len();
    let own = pings.rank() as usize;
    let others = (1..size).map(|distance| (own + distance) % size);
    let ask = |rank: usize| {
        let (node, _) = &members[rank];
        let number = u32::try_from(rank).unwrap_or(u32::MAX);
        let answers = match pings.ask(number, terms.pings, RETRY, terms.silence) {
            Ok(trips) => answers(&trips, terms),
            Err(error) => not_asked(&error),
        };
        (node.clone(), answers)
    };
    others.map(ask).collect()
}

fn answers(trips: &RoundTrips, terms: Terms) -> Answers {
    let problem = (trips.answered < terms.pings.get()).then(|| {
        let why = trips.undelivered.map_or_else(String::new, |why| format!(": {why}"));
        format!("no answer within {:?}{why}", terms.silence)
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
    terms: Terms,
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
        .and_then(|()| collectives(pings.leave(), addresses, members, terms))
        .unwrap_or_else(Collectives::Problem)
}

fn collectives(
    endpoint: Endpoint,
    addresses: &[Address],
    members: &[(NodeName, Address)],
    terms: Terms,
) -> Result<Collectives, String> {
    let Terms { silence, .. } = terms;
    let timing = Timing { retry: RETRY / 4, silence, deadline: silence.saturating_mul(2) };
    let named = |error: Error| match error {
        Error::Failed { failure, undelivered } => {
            let node = members.get(failure.rank as usize).map(|(node, _)| node.as_str());
            let why = undelivered.map_or_else(String::new, |why| format!(": {why}"));
            format!("{} {}{why}", node.unwrap_or("a node"), failure.cause)
        }
        other => other.to_string(),
    };
    let mut group =
        endpoint.join(terms.session.wrapping_add(1), addresses, WIDTH, timing).map_err(named)?;
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
