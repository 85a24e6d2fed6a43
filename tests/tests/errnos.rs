//! The table of errnos that commands can return, against what was recorded.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use cxi_ioctl::{DriverRelease, Errno, Opcode};
use cxi_mock::Errnos;
use cxi_tests::archive;
use cxi_tests::scenario::{Scenario, Step};

type Recorded = BTreeMap<Opcode, BTreeSet<(Errno, DriverRelease)>>;

/// Looking an errno up by name is slow, and the recordings name few.
type Names = BTreeMap<String, Option<Errno>>;

fn collect(steps: &[Step], release: DriverRelease, names: &mut Names, to: &mut Recorded) {
    for step in steps {
        collect(&step.steps, release, names, to);
        let inner = step.step.as_deref().unwrap_or(step);
        let info = Opcode::all().iter().find(|info| info.name == inner.op);
        let (Some(info), Some(expect)) = (info, &step.expect) else { continue };
        let errors = expect.errors.iter().flatten().chain([&expect.errno]);
        let mut errno =
            |name: &String| *names.entry(name.clone()).or_insert_with(|| name.parse().ok());
        let errnos: Vec<_> = errors.filter_map(&mut errno).collect();
        to.entry(info.opcode).or_default().extend(errnos.iter().map(|errno| (*errno, release)));
    }
}

static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
    let (mut all, mut names) = (Recorded::new(), Names::new());
    for file in archive::packed().unwrap() {
        let scenario = Scenario::parse(&file.json).unwrap();
        collect(&scenario.steps, scenario.driver, &mut names, &mut all);
    }
    all
});

#[test]
fn every_recorded_errno_is_one_that_the_table_has_for_that_release() {
    let recorded = &*RECORDED;
    assert!(recorded.len() > 40, "{}", recorded.len());
    let missing: Vec<String> = recorded
        .iter()
        .flat_map(|(opcode, errnos)| errnos.iter().map(move |it| (opcode, it)))
        .filter(|(opcode, (errno, release))| !Errnos::All.of(**opcode, *release).contains(errno))
        .map(|(opcode, (errno, release))| format!("{opcode} {errno} {release}"))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_table_invents_no_errno() {
    // What any command of its kind can return: the NIC is gone, memory is short, the caller lacks a
    // privilege, the answer does not reach the caller. The harness of the recordings could cause
    // only some of these. The last one is of groups that are made through configfs.
    let general = [Errno::EIO, Errno::ENOMEM, Errno::EPERM, Errno::EFAULT, Errno::EOPNOTSUPP];
    let recorded = &*RECORDED;
    let mut invented = BTreeSet::new();
    // Nobody has recorded a driver of November 2026: the errnos of its commands are inferred.
    let is_recorded = |since| since < DriverRelease::Main2026_11;
    for info in Opcode::all() {
        for release in DriverRelease::ALL {
            let all = Errnos::All.of(info.opcode, release);
            if info.since > release {
                assert_eq!(all, [Errno::EINVAL], "{} {release}", info.name);
                continue;
            }
            for errno in all.iter().copied() {
                let known = recorded.get(&info.opcode);
                let seen = known.is_some_and(|it| it.iter().any(|(seen, _)| *seen == errno));
                if is_recorded(info.since) && !seen && !general.contains(&errno) {
                    invented.insert(format!("{} {errno}", info.opcode));
                }
            }
            let likely = Errnos::Likely.of(info.opcode, release);
            assert!(likely.iter().all(|errno| all.contains(errno)), "{}", info.name);
        }
    }
    assert!(invented.is_empty(), "{invented:?}");
}
