//! Explanations of refusals for an administrator.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use cxi::{Device, Host, Limit, Limits, Member, Resource, ServiceSpec, VniRange};
use cxi_ioctl::{DriverRelease, Errno, Fault, Faulty, Opcode};
use cxi_job::JobLimits;
use cxi_job::explain::{Explanation, Inquiry};
use cxi_job::limits::Mode;
use cxi_mock::{MockNode, NicConfig};
use cxi_site::proc::ProcFs;

use crate::support::{
    add_process, allocate, cxi, devices, empty_proc, id, job, like, mock, node, of_user, open,
    planned, refuse, virtual_function, vni,
};

fn spec(uid: u32, number: u16, limits: &[(Resource, Limit)]) -> ServiceSpec {
    let limits = limits.iter();
    ServiceSpec::builder()
        .member(Member::Uid(uid))
        .vni(vni(number))
        .limits(limits.fold(Limits::none(), |all, (resource, limit)| all.with(*resource, *limit)))
        .build()
        .unwrap()
}

fn refused(device: &Device, spec: &ServiceSpec) -> Explanation {
    let error = device.services().create(spec).unwrap_err();
    Inquiry::new(&error).device(device).spec(spec).explain()
}

/// A `/proc` in which this process has these ids and capabilities.
fn proc(uid_map: &str, capabilities: &str) -> (tempfile::TempDir, ProcFs) {
    let (root, proc) = empty_proc();
    fs::create_dir(root.path().join("77")).unwrap();
    symlink("77", root.path().join("self")).unwrap();
    fs::write(root.path().join("77/uid_map"), uid_map).unwrap();
    let status =
        format!("Name:\tcxi\nUid:\t5\t5\t5\t5\nGid:\t6\t6\t6\t6\nCapEff:\t{capabilities}\n");
    fs::write(root.path().join("77/status"), status).unwrap();
    (root, proc)
}

const INITIAL: &str = "0 0 4294967295\n";
const ALL: &str = "000001ffffffffff";
const NONE: &str = "0000000000000000";

#[test]
fn two_nics_three_jobs_and_a_fourth() {
    let mock = mock(2);
    let node = node(&mock);
    for (uid, number) in [(1001, 1024), (1002, 1025), (1003, 1026)] {
        let request = job(uid, number).limits(planned(16, Mode::Strict));
        allocate(&node, request);
    }
    // The second job runs, as far as it can be seen.
    let device = of_user(&mock, 1002);
    let lni = device.alloc_lni(id(3)).unwrap();
    let _counter = lni.alloc_ct().unwrap();

    let request = job(1004, 1027).limits(planned(16, Mode::Strict));
    let error = refuse(&node, request);
    let expected = "\
cxi0: no TLE pool is left for the 16 TLEs of the job
  A NIC has 4 TLE pools. The default service has one even while it is disabled, so at most 3 \
services with TLEs fit on a NIC, however few TLEs they ask for. A service without limits also has \
TLEs.
  Held by:
    service 1 (default service, VNIs 1,10, disabled): 512 TLEs reserved
    service 2 (uid 1001, VNI 1024): 16 TLEs reserved, nothing in use
    service 3 (uid 1002, VNI 1025): 16 TLEs reserved
    service 4 (uid 1003, VNI 1026): 16 TLEs reserved, nothing in use
  What to do:
    - Give jobs limits with 0 TLEs: any number of them then fit on a NIC, without triggered operations.
    - Wait for one of these jobs to end. If one has ended, release its services, or clean up \
what ended jobs left on the node.
cxi1: no TLE pool is left for the 16 TLEs of the job
  A NIC has 4 TLE pools. The default service has one even while it is disabled, so at most 3 \
services with TLEs fit on a NIC, however few TLEs they ask for. A service without limits also has \
TLEs.
  Held by:
    service 1 (default service, VNIs 1,10, disabled): 512 TLEs reserved
    service 2 (uid 1001, VNI 1024): 16 TLEs reserved, nothing in use
    service 3 (uid 1002, VNI 1025): 16 TLEs reserved, nothing in use
    service 4 (uid 1003, VNI 1026): 16 TLEs reserved, nothing in use
  What to do:
    - Give jobs limits with 0 TLEs: any number of them then fit on a NIC, without triggered operations.
    - Wait for one of these jobs to end. If one has ended, release its services, or clean up \
what ended jobs left on the node.
The job has no service on any NIC.";
    assert_eq!(error.to_string(), expected);

    // The driver's own refusal, for a job without a plan, says the same.
    let request = job(1004, 1027).limits(JobLimits::Unlimited);
    let refused = refuse(&node, request);
    assert_eq!(refused.failures().len(), 2);
    for error in [&error, &refused] {
        assert_eq!(error.code(), cxi_site::ErrorCode::NotEnough);
        assert_eq!(error.errno(), Errno::ENOSPC);
    }
    let explanation = &refused.failures()[1].explanations[0];
    assert_eq!(
        explanation.problem,
        "SVC_ALLOC: no TLE pool is left: 4 services, including the default service, have one \
         each; a service limited to 0 TLEs needs none"
    );
    let planned = &error.failures()[1].explanations[0];
    assert_eq!(explanation.holders, planned.holders);
    assert_eq!(explanation.advice, planned.advice);
    // And what it advises works.
    let request = job(1004, 1027).limits(planned_without_tles());
    allocate(&node, request);
}

fn planned_without_tles() -> JobLimits {
    use cxi_job::limits::LimitPolicy;
    JobLimits::Planned {
        policy: LimitPolicy::hpe_recommended().tles(false),
        size: 16,
        mode: Mode::Strict,
    }
}

#[test]
fn the_first_short_resource_and_nothing_false_about_the_others() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let services = device.services();
    services.create(&spec(5588, 1024, &[(Resource::Tgqs, Limit::exactly(500))])).unwrap();
    services.create(&spec(5589, 1025, &[(Resource::Acs, Limit::exactly(1000))])).unwrap();
    let wanted = [
        (Resource::Ptes, Limit::exactly(10)),
        (Resource::Tgqs, Limit::exactly(100)),
        (Resource::Eqs, Limit::exactly(100)),
        (Resource::Acs, Limit::exactly(100)),
    ];
    assert_eq!(
        refused(&device, &spec(1000, 1026, &wanted)).to_string(),
        "\
cxi0: SVC_ALLOC: not enough TGQs: 100 requested, 12 available
  A reservation is refused unless it fits into what no other service has reserved, whether in use or not: 12 TGQs here.
  The driver stops at the first resource that is short, so it did not check EQs, ACs; according to the list of services, there \
are not enough of these either: 100 ACs with 22 available.
  Held by:
    service 2 (uid 5588, VNI 1024): 500 TGQs reserved, nothing in use
  What to do:
    - Reserve at most 12 TGQs for the job, or let its reservations be scaled back to what fits.
    - Wait for one of these jobs to end. If one has ended, release its services, or clean up what ended jobs left on the node."
    );
    let wanted = [(Resource::Tgqs, Limit::exactly(100)), (Resource::Eqs, Limit::exactly(100))];
    let text = refused(&device, &spec(1000, 1026, &wanted)).reasons.join("\n");
    like(&text, "*did not check EQs; according to the list of services, there are enough.");
}

#[test]
fn le_pools() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let one = |number| spec(1000, number, &[(Resource::Les, Limit::exactly(1))]);
    for number in 0..15 {
        device.services().create(&one(1024 + number)).unwrap();
    }
    let refused = refused(&device, &one(2000));
    like(&refused.problem, "SVC_ALLOC: no LE pool is left*");
    let holder = "service 16 (uid 1000, VNI 1038): 1 LEs reserved, nothing in use";
    assert_eq!(refused.holders[14].to_string(), holder);
    let error = refuse(&node(&mock), job(1000, 1500).limits(planned(16, Mode::Strict)));
    let planned = &error.failures()[0].explanations[0];
    let problem = "no LE pool is left for the 256 LEs of the job";
    assert_eq!(planned.problem, problem);
    assert_eq!([refused.holders.len(), planned.holders.len()], [15; 2]);
}

#[test]
fn vnis_that_are_taken_by_generation() {
    // Single VNIs: the drivers from 13.0 to 14.0.0.
    let config = NicConfig::new().release(DriverRelease::Shs13_1);
    let mock = MockNode::with_nics(1, &config).unwrap();
    let device = devices(&mock).remove(0);
    device.services().create(&spec(1000, 1024, &[])).unwrap();
    let text = refused(&device, &spec(1001, 1024, &[])).to_string();
    assert_eq!(
        text,
        "\
cxi0: SVC_ALLOC: VNI 1024 is taken by service 2
  Both are single VNIs. The drivers of SHS 13.0 to 14.0.0 allow a VNI in one service only, even a disabled one; SHS \
12.0, 14.0.1 and later allow the same VNI in several.
  Held by:
    service 2 (uid 1000, VNI 1024): VNI 1024
  What to do:
    - Reuse a VNI only after its services are destroyed on every node.
    - If the job of service 2 has ended, release it; otherwise give the new job other VNIs."
    );
    let text = refused(&device, &spec(1001, 10, &[])).to_string();
    like(&text, "*The VNIs of the default service*");

    // Ranges: every driver.
    let mock = crate::support::mock(1);
    let device = devices(&mock).remove(0);
    let range = VniRange::new(vni(2048), 16).unwrap();
    let range = ServiceSpec::builder().member(Member::Uid(1000)).vni_range(range);
    device.services().create(&range.build().unwrap()).unwrap();
    let text = refused(&device, &spec(1001, 2050, &[])).to_string();
    like(
        &text,
        "cxi0: SVC_ALLOC: VNI 2050 is taken: service 2 has VNIs 2048-2063\n  One of them is a \
             range of VNIs.*",
    );
}

#[test]
fn rights() {
    let mock = mock(1);
    let device = of_user(&mock, 5);
    let error = device.services().create(&spec(5, 1024, &[])).unwrap_err();
    let explain = |uid_map, capabilities| {
        let (_root, proc) = proc(uid_map, capabilities);
        Inquiry::new(&error).device(&device).proc(proc).explain().to_string()
    };
    assert_eq!(
        explain(INITIAL, NONE),
        "\
cxi0: SVC_ALLOC: not permitted: it needs CAP_SYS_ADMIN in the initial user namespace, and a physical function
  This process does not have CAP_SYS_ADMIN. The user ID does not matter: root is refused without the capability, \
and another user is not refused with it.
  What to do:
    - Run it as root, from the scheduler's daemon or its prolog."
    );
    assert!(explain("0 1000 1\n", ALL).contains("is in a user namespace (/proc/self/uid_map)"));
    assert!(explain(INITIAL, ALL).contains("a security module"));

    // A virtual function, which sysfs tells.
    let (_mock, _sysfs, device) = virtual_function();
    let error = device.services().create(&spec(5, 1024, &[])).unwrap_err();
    let (_root, proc) = proc(INITIAL, ALL);
    let text = Inquiry::new(&error).device(&device).proc(proc).explain().to_string();
    like(&text, "*Run it on the host, on the physical function.*");
}

#[test]
fn an_open_is_refused() {
    let mock = mock(1);
    let root = devices(&mock).remove(0);
    let (_root, proc) = proc(INITIAL, NONE);
    let error = root.alloc_lni(id(1)).unwrap_err();
    assert_eq!(error.errno(), Errno::EKEYREVOKED);
    let text = Inquiry::new(&error).device(&root).explain().to_string();
    like(&text, "*SLINGSHOT_SVC_IDS and SLINGSHOT_DEVICES are not set*");

    let service = root.services().create(&spec(1000, 1024, &[])).unwrap();
    let error = root.alloc_lni(service).unwrap_err();
    let inquiry = Inquiry::new(&error).device(&root).service(service).proc(proc);
    let text = inquiry.explain().to_string();
    like(&text, "*It is service 2 (uid 1000, VNI 1024): only its members may use it*");
    like(&text, "*This process has effective uid 5, effective gid 6.*");

    root.services().set_enabled(service, false).unwrap();
    let error = root.alloc_lni(service).unwrap_err();
    let text = Inquiry::new(&error).device(&root).explain().to_string();
    like(&text, "*It is service 2 (uid 1000, VNI 1024, disabled).*");
}

#[test]
fn who_keeps_a_service_busy() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let services = device.services();
    let service = services.create(&spec(1000, 1024, &[])).unwrap();
    let user = of_user(&mock, 1000);
    let _lni = user.alloc_lni(service).unwrap();
    let (root, proc) = proc(INITIAL, ALL);
    let text = |error| {
        let inquiry = Inquiry::new(error).device(&device).service(service);
        inquiry.proc(proc.clone()).explain().to_string()
    };
    let destroy = services.destroy(service).unwrap_err();
    like(&text(&destroy), "*On cxi0, no visible process has the NIC open.*");
    for (pid, uid) in [(4711, 1000), (4712, 1001)] {
        add_process(root.path(), pid, "osu_bw", uid);
    }
    for error in [&destroy, &services.set_enabled(service, false).unwrap_err()] {
        let text = text(error);
        like(&text, "*On cxi0, process 4711 (osu_bw, uid 1000) has the NIC open.*");
        like(&text, "*kill -KILL 4711\n*");
    }
}

#[test]
fn what_keeps_a_parent_service_busy() {
    let config = NicConfig::new().release(DriverRelease::Main2026_11).virtual_functions(1);
    let mock = MockNode::with_nics(1, &config).unwrap();
    let device = devices(&mock).remove(0);
    let parent = ServiceSpec::builder().parent(true).vni(vni(1024)).build().unwrap();
    let parent = device.services().create(&parent).unwrap();
    mock.nics()[0].set_parent_service(0, parent.get()).unwrap();
    let error = device.services().destroy(parent).unwrap_err();
    let text = Inquiry::new(&error).device(&device).service(parent).explain().to_string();
    like(&text, "*It is a parent service: *");
    like(&text, "*write 0 to vf/N/svc_id*");
    assert!(!text.contains("kill"), "{text}");
}

#[test]
fn a_nic_that_is_not_there_or_gone() {
    let root = tempfile::tempdir().unwrap();
    let host = Host::with_roots(root.path(), root.path());
    let error = host.open(cxi(0)).unwrap_err();
    let text = Inquiry::new(&error).explain().to_string();
    like(&text, "*Check whether the driver is loaded*");

    let mock = mock(1);
    let fault = Faulty::new(open(&mock.nics()[0]));
    let device = Device::with_transport(cxi(0), Arc::new(fault));
    device.totals().unwrap();
    mock.nics()[0].faults().unplug();
    let wanted = spec(1000, 1024, &[]);
    let text = refused(&device, &wanted).to_string();
    like(&text, "cxi0: SVC_ALLOC: the device has been removed\n*");
}

#[test]
fn an_explanation_needs_no_nic_that_answers() {
    let mock = mock(1);
    let fault = Arc::new(Faulty::new(open(&mock.nics()[0])));
    let device = Device::with_transport(cxi(0), Arc::clone(&fault));
    let huge = spec(1000, 1024, &[(Resource::Ptes, Limit::exactly(2000))]);
    device.services().create(&huge).unwrap();
    let error = device.services().create(&huge).unwrap_err();
    fault.inject(Fault::errno(Errno::EIO).on(Opcode::SVC_LIST_GET));
    let explanation = Inquiry::new(&error).device(&device).spec(&huge).explain();
    assert_eq!(explanation.problem, "SVC_ALLOC: not enough PTEs: 2000 requested, 48 available");
    assert!(explanation.holders.is_empty() && !explanation.advice.is_empty());
}
