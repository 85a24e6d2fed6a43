//! The layer for schedulers on a node with one NIC whose driver is of another version.

use std::collections::BTreeMap;
use std::sync::Arc;

use cxi::{Device, DeviceId, Service, ServiceId};
use cxi_ioctl::{DriverRelease, Errno, Fault, Faulty, Opcode, Record};
use cxi_job::audit::Code;
use cxi_job::release::Outcome;
use cxi_job::{
    AuditOptions, CleanPolicy, Filter, JobRequest, Node, ReleaseOptions, ReleaseReport as Released,
};
use cxi_mock::{Credentials, InProcess, MockNode, NicConfig};

use crate::problems::Problems;
use crate::refusals::ERRNOS;
use crate::stage::{block, vni};
use crate::twist::{Twist, Twisted};

const STRANGE: DeviceId = DeviceId::new(0);
const GOOD: DeviceId = DeviceId::new(1);

type FaultyFile = Faulty<Arc<Twisted<InProcess>>>;

/// A node of two NICs. The driver of the first one will misbehave.
struct Stage {
    mock: MockNode,
    node: Node,
    fault: Arc<FaultyFile>,
    record: Arc<Record<Arc<FaultyFile>>>,
}

impl Stage {
    fn new(release: DriverRelease) -> Self {
        let mock = MockNode::with_nics(2, &NicConfig::new().release(release)).unwrap();
        let open = |nic: usize| {
            let file = mock.nics()[nic].open().unwrap();
            file.transport(Credentials::root())
        };
        let fault = Arc::new(Faulty::new(Arc::new(Twisted::new(open(0)))));
        let record = Arc::new(Record::new(Arc::clone(&fault)));
        let node = Node::from_devices([
            Device::with_transport(STRANGE, Arc::clone(&record)),
            Device::with_transport(GOOD, Arc::new(open(1))),
        ]);
        Self { mock, node, fault, record }
    }

    /// The services of both NICs except the default ones, listed on a file that works.
    fn services(&self) -> BTreeMap<(DeviceId, ServiceId), Service> {
        let mut all = BTreeMap::new();
        for (nic, id) in self.mock.nics().iter().zip([STRANGE, GOOD]) {
            let file = nic.root().unwrap();
            let device = Device::with_transport(id, Arc::new(file));
            for service in device.services().list().unwrap() {
                if !service.id().is_default() {
                    all.insert((id, service.id()), service);
                }
            }
        }
        all
    }

    fn allocate(&self, ranged: bool) {
        self.node.allocate(&job(ranged)).unwrap_or_else(|error| panic!("{error}"));
    }
}

fn job(ranged: bool) -> JobRequest {
    let job = JobRequest::builder().uid(1000);
    let job = if ranged { job.vni_range(block()) } else { job.vni(vni(1024)) };
    job.build().unwrap()
}

/// Changes what the driver does from now on.
#[derive(Clone, Debug)]
enum Change {
    Refuses(Opcode, Errno),
    Answers(Opcode, usize),
}

impl Change {
    fn make(&self, stage: &Stage) {
        match self {
            Self::Refuses(opcode, errno) => {
                stage.fault.inject(Fault::errno(*errno).on(*opcode));
            }
            Self::Answers(opcode, len) => {
                stage.fault.inner().plan(*opcode, Twist::Length(*len));
            }
        }
    }
}

/// Runs an operation under each change of each command that it sends, on drivers that differ.
fn each_change(
    prepare: impl Fn(&Stage, bool),
    operate: impl Fn(&Stage, bool, Option<&str>, &mut Problems),
) {
    let mut problems = Problems::default();
    for release in [DriverRelease::Shs13_0, DriverRelease::Shs14_0_1, DriverRelease::Main2026_07] {
        for ranged in [false, true] {
            if ranged && release < DriverRelease::Shs13_1 {
                continue;
            }
            let fresh = || {
                let stage = Stage::new(release);
                prepare(&stage, ranged);
                let _before = stage.record.take();
                stage
            };
            let stage = fresh();
            operate(&stage, ranged, None, &mut problems);
            let mut changes = Vec::new();
            let mut sent = BTreeMap::new();
            for exchange in stage.record.take().exchanges {
                let Some(opcode) = exchange.opcode() else { continue };
                let longest = sent.entry(opcode).or_insert(0);
                *longest = exchange.response().len().max(*longest);
            }
            for (opcode, len) in sent {
                changes.extend(ERRNOS.map(|errno| Change::Refuses(opcode, errno)));
                if len > 0 {
                    let lengths = [0, len.saturating_sub(4), len + 4, len + 64];
                    changes.extend(lengths.map(|len| Change::Answers(opcode, len)));
                }
            }
            for change in changes {
                let stage = fresh();
                change.make(&stage);
                let case = format!("{release}, range: {ranged}, {change:?}");
                operate(&stage, ranged, Some(&case), &mut problems);
            }
        }
    }
    problems.report();
}

#[test]
fn an_allocation_names_everything_that_exists() {
    each_change(
        |_, _| (),
        |stage, ranged, case, problems| {
            let result = stage.node.allocate(&job(ranged));
            let case = case.unwrap_or("nothing is strange");
            let there = stage.services();
            match result {
                Ok(grant) => {
                    let granted: Vec<_> =
                        grant.services.iter().map(|entry| (entry.device, entry.service)).collect();
                    let exist: Vec<_> = there.keys().copied().collect();
                    problems.ensure(granted == exist, case, format!("{exist:?}: {grant:?}"));
                    let enabled = there.values().all(Service::is_enabled);
                    problems.ensure(enabled, case, "a granted service is disabled");
                }
                Err(error) => {
                    for (device, service) in there.keys() {
                        let named = error.left().iter().any(|left| {
                            left.device == *device
                                && left.service.is_none_or(|named| named == *service)
                        });
                        let what = format!("{device} service {service} is not named: {error}");
                        problems.ensure(named && *device == STRANGE, case, what);
                    }
                }
            }
        },
    );
}

/// Checks that services reported as destroyed are, and that those that remain are reported.
fn check_release(
    stage: &Stage,
    release: &Released,
    concerns: fn(&Service) -> bool,
    case: &str,
    problems: &mut Problems,
) {
    let there = stage.services();
    let nic_named = release.nics.iter().any(|nic| nic.device == STRANGE);
    for released in &release.services {
        let exists = there.contains_key(&(released.device, released.service));
        problems.ensure(released.is_gone() != exists, case, released);
    }
    for (place, _) in there.iter().filter(|(_, service)| concerns(service)) {
        let mut left = release.left().map(|left| (left.device, left.service));
        let named = left.any(|left| left == *place) || nic_named && place.0 == STRANGE;
        let what = format!("{place:?} is left and not named: {release}");
        problems.ensure(named, case, what);
    }
}

/// Nothing is wrong with the node except what the test breaks.
fn check_audit(node: &Node, case: &str, problems: &mut Problems) {
    for finding in node.audit(&AuditOptions::default()).findings {
        let expected = match finding.code {
            Code::NicUnreadable => finding.device == STRANGE,
            // Both NICs actually have it.
            Code::NearlyExhausted => true,
            _ => false,
        };
        problems.ensure(expected, case, &finding);
    }
}

fn clean(stage: &Stage) -> Released {
    let policy = CleanPolicy::new("1024-8191".parse().unwrap()).foreign(true).unfinished(None);
    let clean = stage.node.clean(&policy, &ReleaseOptions::once());
    clean.unwrap().release.unwrap()
}

#[test]
fn a_release_tells_the_truth() {
    each_change(Stage::allocate, |stage, ranged, case, problems| {
        let filter = if ranged { Filter::vnis(block().iter()) } else { Filter::vnis([vni(1024)]) };
        let release = stage.node.release(&filter, &ReleaseOptions::once());
        let case = case.unwrap_or("nothing");
        check_release(stage, &release, |_| true, case, problems);
        for released in &release.services {
            let told = match &released.outcome {
                Outcome::Failed { errno, .. } => *errno != Errno::EIO.raw(),
                _ => true,
            };
            problems.ensure(told, case, released);
        }
    });
}

#[test]
fn a_clean_up_tells_the_truth_and_spares_what_is_alive() {
    each_change(
        |stage, ranged| {
            stage.allocate(ranged);
            let alive = JobRequest::builder().uid(1001).vni(vni(9000));
            stage.node.allocate(&alive.build().unwrap()).unwrap();
        },
        |stage, _, case, problems| {
            let case = case.unwrap_or("nothing");
            let before = stage.services();
            let release = clean(stage);
            let after = stage.services();
            let alive = |service: &Service| service.vnis().to_string() == "9000";
            for (place, _) in before.iter().filter(|(_, service)| alive(service)) {
                let spared = after.contains_key(place);
                problems.ensure(spared, case, format!("{place:?} was alive: {release}"));
            }
            let orphan = |service: &Service| service.vnis().to_string() != "9000";
            check_release(stage, &release, orphan, case, problems);
        },
    );
}

#[test]
fn an_audit_says_which_nic_it_cannot_read_and_finds_nothing_that_is_not_so() {
    each_change(Stage::allocate, |stage, _, case, problems| {
        check_audit(&stage.node, case.unwrap_or("nothing"), problems);
    });
}

/// The NIC goes away, or a command fails once, at each command of an operation.
fn each_moment(operate: impl Fn(&Stage, &str, &mut Problems)) {
    let mut problems = Problems::default();
    for errno in [Errno::EIO, Errno::EINTR, Errno::EAGAIN, Errno::ENOMEM] {
        for k in 0.. {
            let stage = Stage::new(DriverRelease::Main2026_07);
            stage.allocate(false);
            let injection = Fault::errno(errno).after(k);
            stage.fault.inject(if errno == Errno::EIO { injection } else { injection.times(1) });
            operate(&stage, &format!("{errno} at command {k}"), &mut problems);
            if stage.fault.injected() == 0 {
                assert!(k > 1, "too few commands");
                break;
            }
        }
    }
    problems.report();
}

#[test]
fn a_clean_up_at_each_moment() {
    each_moment(|stage, case, problems| {
        check_release(stage, &clean(stage), |_| true, case, problems);
    });
}

#[test]
fn an_audit_and_a_look_at_the_node_at_each_moment() {
    each_moment(|stage, case, problems| check_audit(&stage.node, case, problems));
    each_moment(|stage, case, problems| {
        let devices = stage.node.nics().iter().filter_map(|nic| nic.device());
        let node = Node::from_devices(devices.cloned());
        for nic in node.nics() {
            let usable = nic.is_usable() || nic.id() == STRANGE && !nic.problems().is_empty();
            problems.ensure(usable, case, format!("{:?}", nic.problems()));
        }
        let _audit = node.audit(&AuditOptions::default());
    });
}
