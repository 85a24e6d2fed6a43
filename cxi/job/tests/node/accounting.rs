//! Nothing is lost track of, whatever fails and whenever.

use cxi::{DeviceId, LnisPerRgid, Member, ServiceId, VniRange};
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::{AllocateError, Grant, JobRequest, JobRequestBuilder};
use cxi_mock::{Errnos, FailureKind, FailurePoint, MockNode, NicConfig, SweepConfig, sweep};

use crate::support::{
    cxi, existing, faulty, ids, job, like, mock, node, planned, refuse, user_services, vni,
};

const NICS: u8 = 4;

/// Errors that drivers return, and an unknown one.
const ERRNOS: [Errno; 10] = [
    Errno::EIO,
    Errno::EFAULT,
    Errno::EINVAL,
    Errno::ENOSPC,
    Errno::EPERM,
    Errno::EEXIST,
    Errno::EBUSY,
    Errno::ENOMEM,
    Errno::EINTR,
    Errno::from_raw(4242),
];

fn kinds() -> Vec<(&'static str, JobRequest)> {
    let range = VniRange::new(vni(2048), 16).unwrap();
    let netns = Member::NetNs(4_026_532_000);
    let build = |request: JobRequestBuilder| request.build().unwrap();
    let scaled = planned(16, cxi_job::limits::Mode::ScaleBack { floor: 1 });
    vec![
        ("list", build(job(1000, 4034).limits(scaled))),
        ("rgids", build(job(1000, 4034).lnis_per_rgid(LnisPerRgid::new(4).unwrap()))),
        ("range", build(JobRequest::builder().uid(1000).vni_range(range))),
        ("namespace", build(JobRequest::builder().member(netns).vni(vni(4034)))),
        ("namespace and range", build(JobRequest::builder().member(netns).vni_range(range))),
    ]
}

/// With these the driver has not done what was asked.
const DEFINITE: [Errno; 4] = [Errno::ENOSPC, Errno::EEXIST, Errno::EPERM, Errno::EACCES];

fn all_named(exist: &[(DeviceId, ServiceId)], error: &AllocateError, case: &str) {
    for (device, service) in exist {
        let named = error.left().iter().any(|left| {
            left.device == *device && left.service.is_none_or(|named| named == *service)
        });
        assert!(named, "{case}: {device} service {service} is not named: {error}");
    }
}

/// Everything that exists is known: granted, or named by the error.
fn all_known(mock: &MockNode, result: &Result<Grant, AllocateError>, case: &str) {
    let exist = existing(mock);
    match result {
        Ok(grant) => {
            let granted: Vec<(DeviceId, ServiceId)> =
                grant.services.iter().map(|entry| (entry.device, entry.service)).collect();
            assert_eq!(exist, granted, "{case}");
        }
        Err(error) => {
            let text = error.to_string();
            let nothing = text.contains("The job has no service on any NIC");
            assert!(!nothing || !text.contains("is left behind"), "{case}: {text}");
            all_named(&exist, error, case);
            // What is named exists, unless the NIC could not be asked.
            for left in error.left() {
                if let Some(service) = left.service {
                    assert!(exist.contains(&(left.device, service)), "{case}: {error}");
                }
            }
        }
    }
}

#[test]
fn every_failure_that_a_driver_can_cause() {
    for (kind, request) in kinds() {
        let config = SweepConfig::new(NicConfig::new()).nics(NICS);
        let config = config.errnos(Errnos::All).unplug(true);
        let report = sweep(&config, |mock| {
            let result = node(mock).allocate(&request);
            all_known(mock, &result, kind);
            result.map(drop)
        });
        let mut report = report.unwrap();
        // A service without a VNI cannot be recognized if its ID got lost, and destroying one whose
        // range was refused can harm the kernel. The error names them.
        let refused = FailureKind::Errno(Errno::EEXIST);
        let is_named = |point: &FailurePoint| {
            kind.contains("range") && point.kind == FailureKind::Lost
                || point.opcode == Opcode::SVC_SET_VNI_RANGE && point.kind == refused
        };
        report.findings.retain(|finding| !finding.failures.0.iter().all(is_named));
        report.expect_no_findings();
        assert!(report.cases.len() > 50, "{kind}: {report}");
    }
}

#[test]
fn every_answer_that_is_lost_and_errnos_that_no_driver_returns() {
    let strange = [Errno::EINTR, Errno::from_raw(4242)];
    for (kind, request) in kinds() {
        for errno in ERRNOS {
            for carried_out in [false, true] {
                // A refusal with a reason is an answer, and never one to what was done.
                if carried_out && DEFINITE.contains(&errno)
                    || !carried_out && !strange.contains(&errno)
                {
                    continue;
                }
                for k in 0.. {
                    let mock = mock(NICS);
                    let (node, faults) = faulty(&mock);
                    let injection = Fault::errno(errno).after(k).once();
                    let injection = if carried_out { injection.carried_out() } else { injection };
                    let fault = &faults[usize::try_from(k).unwrap() % faults.len()];
                    fault.inject(injection);
                    let result = node.allocate(&request);
                    let case = format!("{kind}, command {k}, {errno}, carried out: {carried_out}");
                    all_known(&mock, &result, &case);
                    // With one failure, everything can be undone except what cannot be recognized.
                    if kind != "range" && kind != "namespace and range" {
                        let left = result.as_ref().err().map_or(0, |error| error.left().len());
                        assert_eq!(left, 0, "{case}: {result:?}");
                    }
                    if fault.injected() == 0 {
                        assert!(result.is_ok(), "{case}");
                        assert!(k > 3, "{case}: too few commands");
                        break;
                    }
                }
            }
        }
    }
}

#[test]
fn a_service_that_is_dangerous_to_destroy_stays_and_is_named() {
    let mock = mock(2);
    let root = crate::support::devices(&mock).remove(1);
    let spec = cxi::ServiceSpec::builder().member(Member::Uid(0)).vni(vni(9));
    let service = root.services().create(&spec.build().unwrap()).unwrap();
    let lni = root.alloc_lni(service).unwrap();
    // A VNI that no service has, which uid 0 gets anyway.
    let _domain = lni.alloc_domain(vni(2050), None).unwrap();
    let range = VniRange::new(vni(2048), 16).unwrap();
    let request = JobRequest::builder().uid(1000).vni_range(range);
    let (node, faults) = faulty(&mock);
    let error = refuse(&node, request);
    let left: Vec<_> = error.left().iter().map(|left| (left.device, left.service)).collect();
    assert_eq!(left, [(cxi(1), Some(crate::support::id(3)))], "{error}");
    like(&error, "*still exists: cxi1: SVC_DESTROY: not sent*");
    assert_eq!(user_services(&mock).len(), 2);
    assert!(faults.iter().all(|fault| fault.injected() == 0));
}

#[test]
fn two_failures_at_once() {
    // The first makes the allocation fail, the second hits what undoes it.
    let request = job(1000, 4034).build().unwrap();
    for second in 0..8 {
        for nic in 0..usize::from(NICS) {
            for carried_out in [false, true] {
                let mock = mock(NICS);
                let (node, faults) = faulty(&mock);
                let alloc = Fault::errno(Errno::ENOMEM).on(Opcode::SVC_ALLOC);
                faults[1].inject(alloc);
                let more = Fault::errno(Errno::EIO).after(3 + second);
                faults[nic].inject(if carried_out { more.carried_out() } else { more });
                let error = node.allocate(&request).unwrap_err();
                let case = format!("cxi{nic}, from command {second}, {carried_out}");
                all_named(&ids(&user_services(&mock)), &error, &case);
            }
        }
    }
}
