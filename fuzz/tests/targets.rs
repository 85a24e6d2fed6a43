//! Every target survives what once broke it, its seeds, and a second of mutations.

use std::process::Command;

use cxi_fuzz::{TARGETS, corpus};

#[test]
fn every_target_has_seeds_that_are_not_too_long() {
    for target in TARGETS {
        let seeds = corpus::seeds(*target).unwrap();
        assert!(seeds.len() >= 5, "{}: {} seeds", target.name, seeds.len());
        for seed in seeds {
            let (length, longest) = (seed.len(), target.longest);
            assert!(length <= longest, "{}: {length} bytes", target.name);
        }
    }
}

#[test]
fn every_target_survives_hostile_input() {
    let smoke = Command::new(env!("CARGO_BIN_EXE_smoke")).arg("1").output();
    let smoke = smoke.expect("the runner starts");
    let said = String::from_utf8_lossy(&smoke.stdout);
    assert!(smoke.status.success(), "{said}{}", String::from_utf8_lossy(&smoke.stderr));
    for target in TARGETS {
        let ran = said
            .lines()
            .filter_map(|line| line.strip_prefix(target.name)?.strip_prefix(": "))
            .filter_map(|rest| rest.strip_suffix(" inputs")?.parse::<u64>().ok());
        assert!(ran.sum::<u64>() > 0, "{} did not run:\n{said}", target.name);
    }
}
