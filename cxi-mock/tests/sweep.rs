//! Findings of sweeps in programs of this process.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cxi_ioctl::abi::service::{SvcAllocCmd, SvcDestroyCmd, SvcFlags};
use cxi_ioctl::{CommandError, Errno, execute};
use cxi_mock::{
    Ended, Errnos, FindingKind, InProcess, MockNode, NicConfig, Pairs, SweepConfig, SweepError,
    sweep, sweep_with,
};

fn config() -> SweepConfig {
    SweepConfig::new(NicConfig::new()).nics(2)
}

fn open(node: &MockNode) -> Vec<InProcess> {
    node.nics().iter().map(|nic| nic.root().unwrap()).collect()
}

fn alloc(file: &InProcess) -> Result<u32, CommandError> {
    let mut command = SvcAllocCmd::new();
    command.svc_desc.flags = SvcFlags::RESTRICTED_VNIS.bits();
    command.svc_desc.num_vld_vnis = 1;
    command.svc_desc.vnis[0] = 1024;
    execute(file, &command).map(|response| response.svc_id)
}

fn destroy(file: &InProcess, service: u32) -> Result<(), CommandError> {
    execute(file, &SvcDestroyCmd::of(service))
}

/// Makes a service on each NIC, or none, as far as SVC_DESTROY permits.
fn prolog(node: &MockNode) -> Result<(), CommandError> {
    let files = open(node);
    let mut made = Vec::new();
    for file in &files {
        match alloc(file) {
            Ok(service) => made.push((file, service)),
            Err(error) => {
                for (file, service) in made {
                    let _ = destroy(file, service);
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

fn kinds(found: &cxi_mock::SweepReport) -> Vec<(String, FindingKind)> {
    found.findings.iter().map(|it| (it.failures.to_string(), it.kind)).collect()
}

#[test]
fn a_careful_program_has_no_findings() {
    let report = sweep(&config().kill(true).unplug(true), prolog).unwrap();
    report.expect_no_findings();
    assert_eq!(report.commands.len(), 2);
    // EIO, ENOSPC and EEXIST, two kills and an unplugged NIC.
    let cases: Vec<String> = report.cases.iter().map(ToString::to_string).collect();
    assert_eq!(cases.len() % 2, 0, "{cases:?}");
    for case in ["1:SVC_ALLOC:ENOSPC", "cxi1:1:SVC_ALLOC:kill-after", "1:SVC_ALLOC:unplug"] {
        assert!(cases.iter().any(|it| it == case), "{case} in {cases:?}");
    }
    assert!(report.missed.is_empty());
}

#[test]
fn an_answer_that_is_lost_leaves_a_service() {
    let report = sweep(&config().errnos(Errnos::All), prolog).unwrap();
    let lost = |device: &str| (format!("{device}1:SVC_ALLOC:lost"), FindingKind::ServiceLeft);
    assert_eq!(kinds(&report), [lost(""), lost("cxi1:")]);
    assert!(report.to_string().contains("1 service (2) left on cxi1"), "{report}");
}

#[test]
fn success_that_is_claimed_is_found_and_a_repeated_command_is_not() {
    let claims = |node: &MockNode| {
        let files = open(node);
        let _ = files.iter().map(alloc).collect::<Vec<_>>();
        Ok::<_, Errno>(())
    };
    let report = sweep(&config(), claims).unwrap();
    assert!(report.findings.iter().all(|it| it.kind == FindingKind::Swallowed), "{report}");
    assert_eq!(report.findings.len(), report.cases.len());
    let again = |node: &MockNode| {
        let files = open(node);
        files.iter().try_for_each(|file| alloc(file).or_else(|_| alloc(file)).map(drop))
    };
    sweep(&config(), again).unwrap().expect_no_findings();
}

#[test]
fn one_failure_repeats_a_finding() {
    let careless = |node: &MockNode| open(node).iter().try_for_each(|file| alloc(file).map(drop));
    let all = sweep(&config(), careless).unwrap();
    let first = all.findings.first().unwrap();
    assert_eq!(first.kind, FindingKind::ServiceLeft);
    let only = config().only([first.failures.clone()]);
    let again = sweep(&only, careless).unwrap();
    assert_eq!((again.findings, again.cases.len()), (vec![first.clone()], 1));
    let other = config().only(["1:SVC_DESTROY:EIO".parse().unwrap()]);
    assert_eq!(
        sweep(&other, careless).unwrap_err().to_string(),
        "1:SVC_DESTROY:EIO does not occur: command 1 is SVC_ALLOC, not SVC_DESTROY"
    );
    let later = config().only(["cxi1:9:SVC_ALLOC:EIO".parse().unwrap()]);
    assert_eq!(
        sweep(&later, careless).unwrap_err().to_string(),
        "cxi1:9:SVC_ALLOC:EIO does not occur: that NIC gets 1 commands"
    );
}

#[test]
fn a_panic_is_a_finding_and_a_kill_leaves_what_the_next_one_cleans_up() {
    let panics = |node: &MockNode| {
        alloc(&open(node)[0]).expect("room");
        Ok::<_, Errno>(())
    };
    let report = sweep(&config(), panics).unwrap();
    assert!(report.findings.iter().all(|it| it.kind == FindingKind::Crash), "{report}");
    assert!(!report.findings.is_empty());

    let epilog = |node: &MockNode, _: &Ended| {
        for (file, nic) in open(node).iter().zip(node.nics()) {
            for group in nic.state().rgroups.iter().filter(|group| group.id != 1) {
                destroy(file, group.id)?;
            }
        }
        Ok::<_, CommandError>(())
    };
    sweep_with(&config().kill(true), prolog, epilog).unwrap().expect_no_findings();
    let nothing = |_: &MockNode, _: &Ended| Ok::<_, Errno>(());
    let report = sweep_with(&config().kill(true), prolog, nothing).unwrap();
    // With two services left without a failure, nothing is too much.
    report.expect_no_findings();
}

#[test]
fn nothing_that_a_killed_caller_sends_has_an_effect() {
    struct Undo(InProcess, u32);
    impl Drop for Undo {
        fn drop(&mut self) {
            let _ = destroy(&self.0, self.1);
        }
    }
    let scoped = |node: &MockNode| {
        let file = open(node).remove(0);
        let service = alloc(&file)?;
        let undo = Undo(file, service);
        alloc(&undo.0).and_then(|second| destroy(&undo.0, second))
    };
    let check = |node: &MockNode, ended: &Ended| {
        let services = node.nics()[0].state().svc_count;
        (*ended != Ended::Killed || services > 1)
            .then_some(())
            .ok_or("a killed program has destroyed its service")
    };
    let kills = ["2:SVC_ALLOC:kill-before", "3:SVC_DESTROY:kill-after"];
    let only = config().only(kills.map(|kill| kill.parse().unwrap()));
    let report = sweep_with(&only, scoped, check).unwrap();
    assert!(report.findings.iter().all(|it| it.kind != FindingKind::Check), "{report}");
    assert!(report.findings.iter().all(|it| it.kind == FindingKind::ServiceLeft), "{report}");
    assert_eq!(report.findings.len(), 2, "{report}");
}

#[test]
fn pairs_find_what_no_failure_alone_shows() {
    let pairs = Pairs { time: Duration::from_secs(20), seed: 7 };
    // Whoever ignores the failure to undo something is not to blame for one failure.
    let report = sweep(&config().pairs(pairs), prolog).unwrap();
    let expected = ("cxi1:1:SVC_ALLOC:ENOSPC+2:SVC_DESTROY:EBUSY", FindingKind::ServiceLeft);
    let found = kinds(&report);
    let is_expected =
        |(failures, kind): &(String, FindingKind)| (failures.as_str(), *kind) == expected;
    assert!(found.iter().any(is_expected), "{report}");
    assert!(report.findings.iter().all(|it| it.failures.0.len() == 2), "{report}");
}

#[test]
fn there_is_no_report_without_a_program_that_works() {
    let fails = |_: &MockNode| Err::<(), _>("no such job");
    assert_eq!(
        sweep(&config(), fails).unwrap_err().to_string(),
        "without any failure, the program ends with: no such job"
    );
    let idle = |_: &MockNode| Ok::<_, Errno>(());
    assert_eq!(sweep(&config(), idle).unwrap_err(), SweepError::NoCommands);
}

#[test]
fn each_run_starts_with_the_services_of_a_snapshot() {
    let node = MockNode::with_nics(1, &NicConfig::new()).unwrap();
    alloc(&open(&node)[0]).unwrap();
    let runs = AtomicU64::new(0);
    let epilog = |node: &MockNode| {
        runs.fetch_add(1, Ordering::Relaxed);
        destroy(&open(node)[0], 2)
    };
    let report = sweep(&SweepConfig::starting_with(node.snapshot()), epilog).unwrap();
    report.expect_no_findings();
    assert_eq!(runs.into_inner(), 1 + report.cases.len() as u64);
}
