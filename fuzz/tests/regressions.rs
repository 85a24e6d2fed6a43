//! Inputs that once failed do so no more, and seeds do not either.

use cxi_fuzz::{TARGETS, corpus};

#[test]
fn what_once_failed_passes() {
    for target in TARGETS.iter().copied() {
        for (path, input) in corpus::regressions(target).unwrap() {
            println!("{}", path.display());
            (target.run)(&input);
        }
    }
}

#[test]
fn every_target_has_seeds_that_pass() {
    for target in TARGETS.iter().copied() {
        let seeds = corpus::seeds(target).unwrap();
        assert!(seeds.len() >= 5, "{}: {} seeds", target.name, seeds.len());
        for seed in seeds {
            assert!(
                seed.len() <= target.longest,
                "{}: {}",
                target.name,
                seed.len()
            );
            (target.run)(&seed);
        }
    }
}
