//! Answers that are shorter or longer than this library knows, or empty.

use std::collections::BTreeMap;

use cxi::ErrorKind;
use cxi_ioctl::{Exchange, Opcode};

use crate::problems::{Problems, named};
use crate::stage::{Plan, Run, each_call, full, run};
use crate::twist::Twist;

/// More than the library has room for: in this process, all of the room can be written.
const BEYOND_ALL_ROOM: usize = 4096;

/// Lengths that are wrong for a response of `right` bytes. One byte too few is left out: no number
/// of the interface has such a length.
fn wrong(right: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = if full() {
        (0..=right + 64).collect()
    } else {
        [1, 2, 3, 4, 8, 63, 64]
            .into_iter()
            .flat_map(|by| [right + by, right.saturating_sub(by)])
            .chain([0, right / 2])
            .collect()
    };
    lengths.push(BEYOND_ALL_ROOM);
    lengths.sort_unstable();
    lengths.dedup();
    lengths.retain(|len| *len != right && len + 1 != right);
    lengths
}

/// The commands that were answered, with the lengths of their answers.
fn responses(log: &[Exchange]) -> BTreeMap<Opcode, usize> {
    let mut responses = BTreeMap::new();
    for exchange in log {
        let response = exchange.response();
        if let (Some(opcode), Ok(()), 1..) = (exchange.opcode(), exchange.result(), response.len())
        {
            let longest = responses.entry(opcode).or_default();
            *longest = response.len().max(*longest);
        }
    }
    responses
}

/// Returns the number of services that are not named: one, if its number is in the answer that
/// cannot be read.
fn unnamed(run: &Run) -> usize {
    let named = named(run);
    run.made.iter().filter(|id| !named.contains(id)).count()
}

#[test]
fn an_answer_of_another_length_is_an_error_and_no_value() {
    let mut problems = Problems::default();
    each_call(|release, nic, call, fine| {
        let expected = fine.result.unwrap();
        for (opcode, right) in responses(&fine.log) {
            for len in wrong(right) {
                // The part of PTE_STATUS after the numbers of LEs is an input, too.
                if opcode == Opcode::PTE_STATUS && (12..right).contains(&len) {
                    continue;
                }
                // The other of the two known forms.
                if opcode == Opcode::GET_DEV_PROPERTIES && (77..=84).contains(&len) {
                    continue;
                }
                let case = format!("{release}: {}: {len} bytes of {opcode}", call.name);
                let twist = Plan::Twist(opcode, Twist::Length(len));
                let run = run(nic, call, twist).unwrap();
                let lost = usize::from(opcode == Opcode::SVC_ALLOC && run.result.is_err());
                problems.ensure(unnamed(&run) == lost, &case, format!("{:?}", run.made));
                match &run.result {
                    // A lookup for its own sake may fail.
                    Ok(value) => problems.check_value((value, &expected), call, opcode, &case),
                    Err(error) => {
                        problems.check_error(error, &case);
                        let told = match error.kind() {
                            ErrorKind::Protocol(_) => error.command() == Some(opcode),
                            ErrorKind::Unsupported { .. }
                            | ErrorKind::NotGuaranteed { .. }
                            | ErrorKind::Quirk { .. } => true,
                            _ => false,
                        };
                        problems.ensure(told, &case, error);
                    }
                }
            }
        }
    });
    problems.report();
}
