//! Random schedules: whatever happens on the way, the operations end, and with the right results.

use std::time::Duration;

use cxi_data::collective::{Cause, Combine, Failure, Operation};
use cxi_mock::SplitMix64;
use proptest::prelude::*;
use proptest::sample::select;

use super::simulation::{Conduct, Network, Simulation, TIMING};

const OPERATIONS: [Operation; 7] = [
    Operation::Barrier,
    Operation::Broadcast,
    Operation::Reduce(Combine::Sum),
    Operation::Allreduce(Combine::Sum),
    Operation::Allreduce(Combine::Min),
    Operation::Allreduce(Combine::And),
    Operation::Reduce(Combine::Max),
];

/// A network with at most as many faults as cannot silence a neighbor.
fn network() -> impl Strategy<Value = Network> {
    (any::<u64>(), 0..30_u32, 0..20_000_u64, 0..5_000_u64).prop_map(
        |(seed, faults, delay, skew)| Network {
            numbers: SplitMix64::new(seed),
            faults,
            delay: Duration::from_micros(delay),
            skew: Duration::from_micros(skew),
        },
    )
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..config() })]

    #[test]
    fn any_schedule_ends_with_the_right_results(
        size in 1..20_u32,
        width in 1..5_u32,
        operations in prop::collection::vec(select(&OPERATIONS[..]), 1..6),
        network in network(),
    ) {
        let mut simulation = Simulation::new(size, width, &operations, network);
        simulation.run();
        simulation.all_succeed();
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_dead_member_is_named_within_the_deadline(
        size in 2..20_u32,
        width in 1..5_u32,
        dead in 0..20_u32,
        at in 0..3_u32,
        network in network(),
    ) {
        let dead = dead % size;
        let mut simulation = Simulation::new(size, width, &[Operation::Barrier; 4], network);
        simulation.conduct[dead as usize] = Conduct::Dies(at);
        simulation.run();
        let failure = Failure { rank: dead, cause: Cause::Silent };
        let parent = simulation.tree.parent(dead);
        for member in simulation.members.iter().filter(|member| member.rank() != dead) {
            prop_assert_eq!(member.failure(), Some(failure), "member {}", member.rank());
        }
        if let Some(parent) = parent {
            prop_assert!(simulation.results[parent as usize].len() <= at as usize + 1);
        }
        prop_assert!(simulation.now < 2 * TIMING.deadline, "{:?}", simulation.now);
    }

    #[test]
    fn a_member_that_answers_and_does_not_enter_is_named_as_late(
        size in 2..20_u32,
        width in 1..5_u32,
        late in 0..20_u32,
        network in network(),
    ) {
        let late = late % size;
        let mut simulation = Simulation::new(size, width, &[Operation::Barrier; 3], network);
        simulation.conduct[late as usize] = Conduct::Stays(1);
        simulation.run();
        let failure = Failure { rank: late, cause: Cause::Late };
        for member in &simulation.members {
            prop_assert_eq!(member.failure(), Some(failure), "member {}", member.rank());
        }
    }
}
