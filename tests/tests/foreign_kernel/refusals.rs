//! A kernel that does not know a command, or knows another form of it.

use cxi::ErrorKind;
use cxi_ioctl::{Errno, Exchange, Fault};

use crate::problems::Problems;
use crate::stage::{Plan, each_call, run};

/// Errnos of kernels for commands that they do not know, and an unknown one.
pub(crate) const ERRNOS: [Errno; 5] =
    [Errno::EINVAL, Errno::EOPNOTSUPP, Errno::ENOTTY, Errno::ENOSYS, Errno::from_raw(4242)];

/// Returns whether the library did not even ask, because it no longer knows what the driver can do.
fn is_cautious(error: &cxi::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported { .. } | ErrorKind::NotGuaranteed { .. } | ErrorKind::Quirk { .. }
    )
}

#[test]
fn a_command_that_is_always_refused_gives_an_error_with_its_errno_or_is_not_needed() {
    let mut problems = Problems::default();
    each_call(|release, nic, call, fine| {
        let mut opcodes: Vec<_> = fine.log.iter().filter_map(Exchange::opcode).collect();
        opcodes.sort_unstable();
        opcodes.dedup();
        let expected = fine.result.unwrap();
        for opcode in opcodes {
            for errno in ERRNOS {
                let case = format!("{release}: {}: {opcode} gives {errno}", call.name);
                let injection = Fault::errno(errno).on(opcode);
                let run = run(nic, call, Plan::Fail(injection)).unwrap();
                problems.check_made(&run, &case);
                match &run.result {
                    Ok(value) => problems.check_value((value, &expected), call, opcode, &case),
                    Err(error) => {
                        problems.check_error(error, &case);
                        let kept = error.errno() == errno || is_cautious(error);
                        problems.ensure(kept, &case, error);
                    }
                }
            }
        }
    });
    problems.report();
}
