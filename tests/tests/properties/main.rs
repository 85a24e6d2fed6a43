//! Random sequences of commands from several open files and callers, against a reference model
//! that is written from the driver's described behavior alone: plain maps and counters.
//!
//! `CXI_PROPERTY_CASES` sets the number of sequences; a long run takes 20,000. Sequences that
//! found a bug are kept in `proptest-regressions`.
#![forbid(unsafe_code)]

mod reach;

use cxi_tests::sequence::machine::Machine;
use proptest::test_runner::{Config, FileFailurePersistence};
use proptest_state_machine::prop_state_machine;

/// Steps of a sequence.
const LENGTH: std::ops::Range<usize> = 1..200;

/// Sets the number of sequences.
const CASES: &str = "CXI_PROPERTY_CASES";

fn config() -> Config {
    let cases = std::env::var(CASES).map_or(24, |text| {
        text.parse().unwrap_or_else(|_| panic!("{CASES}={text}: expected a number of sequences"))
    });
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/proptest-regressions/resources.txt");
    Config {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(seeds))),
        max_shrink_iters: 1_000,
        ..Config::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn resources(sequential LENGTH => Machine);
}
