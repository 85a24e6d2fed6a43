//! A controller's command on a job is killed at each system call that may change a file: whatever it
//! leaves is finished by the commands that follow, and no VNI is lost.

use std::fs;
use std::process::Command;

use cxi_test_kit::{full, skip};
use tempfile::TempDir;

use super::kills::{Act, GO, at_call};
use crate::common::{Said, command, in_shell};

const RESERVE: &str = "reserve 1 --uid=1000 --nodes=n[1-2]";
const END: [&str; 4] = ["release 1", "confirm 1 --node=n1", "confirm 1 --node=n2", "sweep -- true"];

struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(TempDir::new().unwrap());
        Said::from(site.command("vni configure 1024-1025").output().unwrap()).done();
        site
    }

    fn command(&self, words: &str) -> Command {
        let mut command = command(words);
        command
            .current_dir(self.0.path())
            .env("CXI_POOL_FILE", self.0.path().join("pool"))
            .env("CXI_CONTROLLER_RECORDS", self.0.path().join("decisions"))
            .env("CXI_CONTROLLER_WAIT", "0s");
        command
    }

    fn job(&self, words: &str) -> Said {
        let command = &mut self.command(&format!("job {words}"));
        command.output().unwrap().into()
    }

    /// Ends the job, and checks that nothing is left of it.
    fn end(&self, what: &str) {
        for words in END {
            let said = self.job(words);
            // There is no such job, or it is waiting for no node: it may have ended.
            assert!([0, 5, 8].contains(&said.code), "{what}, {words}: {said:?}");
        }
        for directory in ["running", "ended"] {
            let left = fs::read_dir(self.0.path().join("decisions").join(directory));
            assert_eq!(left.map_or(0, Iterator::count), 0, "{what}: {directory}");
        }
        let pool = self.command("vni show --json").output().unwrap();
        let pool = Said::from(pool).json();
        assert_eq!(pool["free"], 2, "{what}: {pool}");
    }
}

#[test]
fn what_a_killed_command_leaves_of_a_job_is_finished() {
    for (before, killed) in [
        (&[][..], RESERVE),
        (&[], "reserve 1 --uid=1000 --nodes=n1 --network=no_vni"),
        (&[RESERVE], END[0]),
        // The end of another job also frees VNIs that all nodes have confirmed.
        (&[RESERVE, END[0], END[1], END[2]], "release 2"),
    ] {
        // With `CXI_TEST_FULL`, kill it at every call.
        'calls: for call in (0..).step_by(if full() { 1 } else { 3 }) {
            // The scheduler tries again, or ends the job.
            for again in [false, true] {
                let site = Site::new();
                for words in before {
                    assert_eq!(site.job(words).code, 0, "{words}");
                }
                let what = format!("{killed}, killed at call {call}, again: {again}");
                let inner = site.command(&format!("job {killed}"));
                match at_call(in_shell(&inner, GO), call, Act::Kill) {
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        assert!(call >= 3, "{what}");
                        break 'calls;
                    }
                    Err(errno) => {
                        return skip(format_args!("ptrace(2) is not possible here: {errno}"));
                    }
                }
                if again {
                    let said = site.job(killed);
                    assert!([0, 5, 8].contains(&said.code), "{what}: {said:?}");
                }
                site.end(&what);
            }
        }
    }
}
