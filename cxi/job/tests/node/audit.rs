//! Findings of an audit and of a check of an environment.

use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Limit, Limits, Member, Resource, ServiceSpec, TrafficClasses};
use cxi_ioctl::{Errno, Fault, Opcode};
use cxi_job::audit::{Audit, Code, Severity};
use cxi_job::limits::Mode;
use cxi_job::{AuditOptions, JobLimits, NicPolicy, SlingshotEnv};
use cxi_mock::{MockNode, NicConfig};
use cxi_site::pool::Timestamp;

use crate::support::{
    allocate, cxi, devices, faulty, id, job, like, mock, node, planned, texts, vni,
};

fn found(audit: &Audit) -> Vec<(Code, u32, Option<u32>)> {
    let findings = audit.findings.iter();
    findings
        .map(|finding| {
            let service = finding.service.map(cxi::ServiceId::get);
            (finding.code, finding.device.number(), service)
        })
        .collect()
}

fn no_tles() -> JobLimits {
    JobLimits::Fixed(Limits::default())
}

#[test]
fn a_clean_node() {
    let mock = mock(4);
    let node = node(&mock);
    let request = job(1000, 1024).limits(planned(16, Mode::Strict));
    allocate(&node, request);
    let mut options = AuditOptions::default();
    options.pool = Some("1024-65535".parse().unwrap());
    options.user_exists = Some(|uid| uid == 1000);
    let audit = node.audit(&options);
    assert_eq!(audit.findings, []);
    assert_eq!(audit.worst(), None);
}

#[test]
fn services_that_are_not_as_they_should_be() {
    let mock = mock(1);
    let node = node(&mock);
    let services = devices(&mock)[0].services();
    let create = |spec: cxi::ServiceSpecBuilder| {
        let spec = spec.limits(Limits::default()).build().unwrap();
        services.create(&spec).unwrap()
    };
    let user = || ServiceSpec::builder().member(Member::Uid(1000));
    create(ServiceSpec::builder().vni(vni(1024)));
    create(user().unrestricted_vnis());
    create(user().member(Member::Uid(4444)).vni(vni(1025)));
    create(user().vni(vni(9)).vni(vni(1026)).vni(vni(7)));
    create(ServiceSpec::builder().vni(vni(8)).system(true));
    let mut options = AuditOptions::default();
    options.pool = Some("1024-65535".parse().unwrap());
    options.user_exists = Some(|uid| uid == 1000);
    let audit = node.audit(&options);
    assert_eq!(
        found(&audit),
        [
            (Code::NoMembers, 0, Some(2)),
            (Code::Unfinished, 0, Some(3)),
            (Code::DeadUser, 0, Some(4)),
            (Code::OutsidePool, 0, Some(5)),
        ]
    );
    let texts = texts(&audit.findings);
    assert_eq!(
        texts[0],
        "error: cxi0: service 2 (everyone, VNI 1024) is open to everyone on the node: restrict it \
         to the uid, gid or network namespace of a job"
    );
    like(&texts[2], "*is for uid 4444, which the node does not know*");
    like(&texts[3], "*VNIs outside the scheduler's pool: 7,9;*");
    assert_eq!(audit.worst(), Some(Severity::Error));
}

#[test]
fn jobs_of_different_users_share_no_vni() {
    let mock = mock(2);
    let services = devices(&mock)[0].services();
    let create = |uid, numbers: [u16; 2], enabled| {
        let spec = ServiceSpec::builder().member(Member::Uid(uid));
        let spec = spec.vnis(numbers.map(vni)).limits(Limits::default());
        let service = services.create(&spec.build().unwrap()).unwrap();
        services.set_enabled(service, enabled).unwrap();
    };
    create(1000, [1024, 1025], true);
    create(1001, [1025, 1026], true);
    // Two jobs of one user, one that cannot be used, and one on another NIC.
    create(1000, [1024, 1027], true);
    create(1002, [1024, 1028], false);
    let other = job(1003, 1024).nics(NicPolicy::Listed([cxi(1)].into()));
    allocate(&node(&mock), other);
    let audit = node(&mock).audit(&AuditOptions::default());
    let shared = audit.findings.iter();
    let shared = shared.filter(|finding| finding.code == Code::SharedVni);
    assert_eq!(
        texts(shared),
        ["error: cxi0: service 3 (uid 1001, VNIs 1025,1026) and service 2 (uid 1000, VNIs \
          1024,1025) share VNI 1025: their processes can communicate with each other; give each \
          job its own VNIs"]
    );
}

#[test]
fn owners_stay_within_their_ranges_and_ranges_do_not_overlap() {
    let mock = mock(1);
    let node = node(&mock);
    let services = devices(&mock)[0].services();
    for (uid, number) in [(1000, 1500), (1000, 3000), (2000, 2500), (7, 9)] {
        let spec = ServiceSpec::builder().member(Member::Uid(uid));
        let spec = spec.vni(vni(number)).limits(Limits::default());
        services.create(&spec.build().unwrap()).unwrap();
    }
    let mut options = AuditOptions::default();
    for (uid, vnis) in [(1000, "1024-2047"), (2000, "2048-4095")] {
        let range = (Member::Uid(uid), vnis.parse().unwrap());
        options.ranges.push(range);
    }
    let audit = node.audit(&options);
    assert_eq!(found(&audit), [(Code::OutsideRange, 0, Some(3))]);
    let text = audit.findings[0].to_string();
    like(&text, "*outside the range of uid 1000: 3000; expected 1024-2047");
    let more = (Member::Uid(1000), "2900-3000".parse().unwrap());
    options.ranges.push(more);
    let audit = node.audit(&options);
    assert_eq!(found(&audit), [(Code::RangesOverlap, 0, None)]);
    let text = audit.findings[0].to_string();
    like(&text, "*uid 2000 and uid 1000 are both configured to use VNIs 2900-3000:*");
}

#[test]
fn a_service_without_vnis_is_open_on_an_old_driver() {
    let config = NicConfig::new().release(cxi_ioctl::DriverRelease::Shs12_0);
    let mock = MockNode::with_nics(1, &config).unwrap();
    let spec = ServiceSpec::builder().member(Member::Uid(1)).unrestricted_vnis();
    let spec = spec.limits(Limits::default()).build().unwrap();
    let device = devices(&mock).remove(0).allow_quirks(Quirks::OPEN_VNIS);
    device.services().create(&spec).unwrap();
    let audit = node(&mock).audit(&AuditOptions::default());
    assert_eq!(found(&audit), [(Code::NoVnis, 0, Some(2))]);
}

#[test]
fn idle_since_an_earlier_audit() {
    let mock = mock(1);
    let node = node(&mock);
    for number in 1024..1026 {
        allocate(&node, job(0, number).limits(planned(1, Mode::Strict)));
    }
    let hour = Duration::from_secs(3600);
    let at = |minutes: u64| Timestamp::from_millis(1_000_000 + minutes * 60_000);
    let idle = |minutes, earlier| {
        let mut options = AuditOptions::default();
        options.earlier = earlier;
        options.now = at(minutes);
        options.idle_after = hour;
        options
    };
    let first = node.audit(&idle(0, None));
    assert_eq!(first.findings, []);
    assert_eq!(first.observation.idle.len(), 2);

    let user = devices(&mock).remove(0);
    let lni = user.alloc_lni(id(3)).unwrap();
    let counter = lni.alloc_ct().unwrap();
    let audit = |minutes, earlier| node.audit(&idle(minutes, Some(earlier)));
    let second = audit(30, &first.observation);
    assert_eq!(second.findings, []);
    drop((counter, lni));
    let third = audit(70, &second.observation);
    assert_eq!(found(&third), [(Code::Idle, 0, Some(2))]);
    like(&third.findings[0].text, "*has nothing in use for 70 min*");
    // Its id for another job starts anew; the other one was in use meanwhile.
    user.services().destroy(id(2)).unwrap();
    allocate(&node, job(0, 1099).limits(no_tles()));
    assert_eq!(audit(110, &third.observation).findings, []);
    assert_eq!(found(&audit(131, &third.observation)), [(Code::Idle, 0, Some(3))]);
}

fn room_for(job: JobLimits, few: u32) -> AuditOptions<'static> {
    let mut options = AuditOptions::default();
    options.job = job;
    options.few = few;
    options
}

#[test]
fn how_many_more_jobs_fit() {
    let mock = mock(1);
    let node = node(&mock);
    let job_limits = planned(64, Mode::Strict);
    let say = |few| {
        let audit = node.audit(&room_for(job_limits, few));
        audit.findings.first().map(ToString::to_string)
    };
    assert_eq!(say(2), None);
    allocate(&node, job(1000, 1024).limits(job_limits));
    assert_eq!(say(1), None);
    assert_eq!(
        say(2).unwrap(),
        "warning: cxi0: two more such jobs fit: of 4 TLE pools 2 are taken by service 1 (default \
         service, VNIs 1,10, disabled), service 2 (uid 1000, VNI 1024)"
    );
    let hog = Limits::none().with(Resource::Txqs, Limit::exactly(700));
    allocate(&node, job(1001, 1025).limits(JobLimits::Fixed(hog)));
    assert_eq!(
        say(1).unwrap(),
        "warning: cxi0: one more such job fits: a job reserves 128 TXQs, 196 of 1024 are left, the \
         others are reserved by service 2 (uid 1000, VNI 1024), service 3 (uid 1001, VNI 1025)"
    );
    for number in 1030..1032 {
        allocate(&node, job(1002, number));
    }
    let text = node.audit(&room_for(JobLimits::Unlimited, 0)).findings[0].to_string();
    like(&text, "error: cxi0: no more such job fits: of 4 TLE pools 4*");
}

#[test]
fn nics_that_disagree() {
    let enabled = NicConfig::new().parameters(|params| params.disable_default_svc = false);
    let mock = MockNode::new([NicConfig::new(), enabled]).unwrap();
    let node = node(&mock);
    let build = |request: cxi_job::JobRequestBuilder| request.build().unwrap();
    node.allocate(&build(job(1000, 1024).limits(no_tles()))).unwrap();
    let first = NicPolicy::Listed([cxi(0)].into());
    node.allocate(&build(job(1001, 1025).limits(no_tles()).nics(first))).unwrap();
    let services = devices(&mock)[1].services();
    services.set_enabled(id(2), false).unwrap();
    let audit = node.audit(&AuditOptions::default());
    assert_eq!(
        found(&audit),
        [
            (Code::MissingOnNic, 1, None),
            (Code::DefaultServiceEnabled, 1, Some(1)),
            (Code::DefaultServicesDiffer, 1, Some(1)),
            (Code::ServicesDiffer, 1, Some(2)),
        ]
    );
    like(&audit.findings[0].text, "nothing like service 3 (uid 1001, VNI 1025) of cxi0*");
    like(&audit.findings[3].text, "*but differ: whether it is enabled");
}

#[test]
fn nics_that_cannot_be_asked() {
    let down = NicConfig::new().identity(|identity| identity.link_up = false);
    let mock = MockNode::new([down, NicConfig::new()]).unwrap();
    let (node, faults) = faulty(&mock);
    faults[1].inject(Fault::errno(Errno::EIO).on(Opcode::SVC_RSRC_LIST_GET));
    let audit = node.audit(&AuditOptions::default());
    assert_eq!(found(&audit), [(Code::NicUnusable, 0, None), (Code::NicUnreadable, 1, None)]);
}

/// Each missing NIC has a PCI device of its own, or none.
#[test]
fn nics_that_are_missing() {
    let mock = mock(2);
    let text = |nics, without_driver: Option<&[&str]>| {
        let mut options = AuditOptions::default();
        options.nics = nics;
        options.without_driver =
            without_driver.map(|it| it.iter().map(ToString::to_string).collect());
        let audit = node(&mock).audit(&options);
        assert!(audit.findings.iter().all(|finding| finding.code == Code::NicMissing));
        audit.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (a, b) = ("0000:a1:00.0", "0000:e1:00.0");
    assert!(text(Some(2), Some(&[])).is_empty());
    assert_eq!(
        text(Some(4), Some(&[a])),
        [
            "error: cxi2: the NIC is not there (2 of 4 expected): PCI device 0000:a1:00.0 has no \
             driver; dmesg says why",
            "error: cxi3: the NIC is not there (2 of 4 expected): the PCI bus does not show it \
             either; look at the hardware",
        ]
    );
    let two = text(None, Some(&[a, b]));
    assert_eq!(two.len(), 2);
    like(&two[1], "error: cxi3: the NIC is not there (2): PCI device 0000:e1:00.0 *");
    like(&text(Some(3), None)[0], "*: look at the PCI bus (lspci) and at dmesg");
}

#[test]
fn an_environment_against_its_node() {
    let mock = mock(2);
    let node = node(&mock);
    let request = job(1000, 4034).vni(vni(4035)).limits(no_tles()).build().unwrap();
    let env = node.allocate(&request).unwrap().env().unwrap();
    assert_eq!(env.check(&node, &[Member::Gid(5), Member::Uid(1000)]), []);
    let texts = |env: &SlingshotEnv, who: &[Member]| texts(env.check(&node, who));
    let classes = TrafficClasses::LOW_LATENCY | TrafficClasses::DEDICATED_ACCESS;
    let wrong = SlingshotEnv::new(
        [vni(4034), vni(9)],
        [(cxi(0), id(2)), (cxi(1), id(7)), (cxi(5), id(2))],
        Some(classes),
    )
    .unwrap();
    assert_eq!(
        texts(&wrong, &[Member::Uid(7)]),
        [
            "cxi0: service 2 (uid 1000, VNIs 4034,4035) is not for this user: an open gives EPERM",
            "cxi0: service 2 (uid 1000, VNIs 4034,4035) does not allow VNI 9",
            "cxi0: service 2 does not allow traffic class dedicated-access",
            "cxi1: there is no service 7: it was released, or the variables are another node's",
            "cxi5: the node has no such NIC",
        ]
    );
    devices(&mock)[0].services().set_enabled(id(2), false).unwrap();
    assert_eq!(texts(&env, &[]), ["cxi0: service 2 is disabled"]);
    mock.nics()[1].faults().unplug();
    assert_eq!(
        texts(&env, &[]),
        ["cxi0: service 2 is disabled", "cxi1: SVC_LIST_GET: the device has been removed"]
    );
}

#[test]
fn results_are_plain_data() {
    use cxi_job::{Grant, JobRequest};
    let mock = mock(2);
    let node = node(&mock);
    let range = cxi::VniRange::new(vni(2048), 4).unwrap();
    let requests = [
        job(1000, 1024).limits(planned(16, Mode::ScaleBack { floor: 1 })),
        JobRequest::builder().uid(1000).vni_range(range),
    ];
    for request in requests {
        let grant = allocate(&node, request);
        let json = serde_json::to_string(&grant).unwrap();
        assert_eq!(serde_json::from_str::<Grant>(&json).unwrap(), grant);
    }
    let audit = node.audit(&AuditOptions::default());
    let json = serde_json::to_string(&audit).unwrap();
    assert_eq!(serde_json::from_str::<Audit>(&json).unwrap(), audit);
}

#[test]
fn how_few_is_few() {
    let mock = mock(1);
    let node = node(&mock);
    let best_effort = room_for(planned(16, Mode::BestEffort), 100);
    let text = node.audit(&best_effort).findings[0].to_string();
    like(&text, "warning: cxi0: 3 more such jobs fit: of 4 TLE pools 1 are taken by*");
    assert_eq!(Severity::Info.to_string(), "info");

    let les = Limits::none().with(Resource::Les, Limit::exactly(1));
    let les = JobLimits::Fixed(les);
    for number in 1030..1043 {
        let request = job(1000, number).limits(les);
        allocate(&node, request);
    }
    let text = node.audit(&room_for(les, 5)).findings[0].to_string();
    like(
        &text,
        "warning: cxi0: two more such jobs fit: of 15 LE pools 13 are taken by service 2 (uid \
             1000, VNI 1030), service 3 *",
    );
}
