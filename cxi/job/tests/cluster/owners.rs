//! Owners of a node's services: what records name, what a killed prolog has begun, and what is foreign.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use cxi::{Device, DeviceId, Errno, Member, ServiceId, ServiceSpec, Vni};
use cxi_ioctl::{Intercept, Opcode, Transport as _};
use cxi_job::clean::OrphanReason;
use cxi_job::cluster::{Cleaning, JobShape, ServiceRecords, Site, SiteError};
use cxi_job::owners::OwnedService;
use cxi_job::{Node, ReleaseOptions};
use cxi_mock::{Credentials, Fault, InProcess, MockNode};
use cxi_site::{ErrorCode, NodeName};
use tempfile::TempDir;

use crate::support::{
    Pool, compute, job, of_user, place, pool, release, reserve, services, site, site_with, starting,
};

/// Somebody else makes a service that looks like the job's, on the first NIC.
fn make_foreign(site: &Site, pool: &Pool, mock: &MockNode) -> u32 {
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    let vni = site.controller(pool).unwrap().list().unwrap()[0].0.vnis[0];
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(vni);
    device.services().create(&spec.build().unwrap()).unwrap().get()
}

/// Makes a service that looks like the job's in everything.
fn make_twin(mock: &MockNode, id: u32) -> u32 {
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    let own = device.services().get(ServiceId::new(id).unwrap()).unwrap();
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni_access(own.vnis());
    let spec = spec.limits(own.limits()).traffic_classes(own.traffic_classes().unwrap());
    device.services().create(&spec.build().unwrap()).unwrap().get()
}

/// Makes a record what a prolog leaves that was killed before it named its services.
fn kill_before_it_named<const NICS: usize>(directory: &Path, id: u32, before: [&[u32]; NICS]) {
    let path = directory.join(format!("jobs/{id}.json"));
    let text = fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let record = &mut value["record"];
    let begun = |nic: usize| {
        let granted = &record["grant"]["services"][nic];
        let terms = serde_json::json!({
            "traffic_classes": granted["traffic_classes"],
            "limits": granted["granted"],
        });
        serde_json::json!({"device": format!("cxi{nic}"), "before": before[nic], "terms": terms})
    };
    let begun: Vec<_> = (0..NICS).map(begun).collect();
    record["begun"] = serde_json::json!(begun);
    record["grant"] = serde_json::Value::Null;
    record["made"] = serde_json::json!([]);
    fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn what_a_killed_prolog_made_is_found_unless_somebody_else_may_have_made_it() {
    let (directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    let clean = || node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    let confirmed = || directory.path().join("decisions/ended/1/confirmed/n1").exists();

    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    // It is repeated, and adopts them.
    let again = node.prolog(&starting(1)).unwrap().grant.unwrap();
    assert!(again.services.iter().all(|entry| entry.adopted));
    // It is not repeated.
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    release(&site, &pool, 1);
    assert_eq!(clean().ended, [job(1)]);
    assert_eq!((services(&mock), confirmed()), (vec![], true));

    // What was there before is not its own, whatever it looks like.
    site.controller(&pool).unwrap().collect().unwrap();
    reserve(&site, &pool, 1, "n1").unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    let started = node.prolog(&starting(1)).unwrap();
    assert_eq!(started.warnings.len(), 1, "{:?}", started.warnings);
    kill_before_it_named(directory.path(), 1, [&[1, foreign], &[1]]);
    release(&site, &pool, 1);
    assert_eq!(clean().ended, []);
    assert_eq!((services(&mock), confirmed()), (vec![(0, foreign)], false));
    // As soon as it is gone, the VNI is free.
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    device.services().destroy(ServiceId::new(foreign).unwrap()).unwrap();
    assert_eq!(clean().ended, [job(1)]);
    assert!(confirmed());

    // One that came later may be of either: both are left.
    site.controller(&pool).unwrap().collect().unwrap();
    reserve(&site, &pool, 1, "n1").unwrap();
    let own = node.prolog(&starting(1)).unwrap().grant.unwrap().services[0].service;
    let later = make_twin(&mock, own.get());
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    release(&site, &pool, 1);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), report.code()), (2, None));
    assert_eq!(services(&mock).len(), 2, "cxi1's is gone, {later}");
    assert!(!confirmed());
    // Only an order takes them.
    assert_eq!(clean().clean.orphans, []);
    let mut order = Cleaning::new("1024-1099".parse().unwrap());
    order.foreign = true;
    let cleaned = node.clean(&order, &ReleaseOptions::once()).unwrap();
    assert_eq!((cleaned.ended, services(&mock), confirmed()), (vec![job(1)], vec![], true));
}

#[test]
fn an_epilog_destroys_what_its_record_names_and_nothing_else() {
    let (directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock), [(0, foreign)]);
    let said = report.foreign().next().unwrap().to_string();
    assert_eq!(
        said,
        format!("cxi0: service {foreign} (uid 1000, VNI 1024): left: no record says who made it")
    );
    // The VNI is not free, and a second epilog says so again.
    release(&site, &pool, 1);
    assert!(reserve(&site, &pool, 1, "n1").is_err());
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(report.foreign().count(), 1);
    // Nor is it after the node has lost its records.
    fs::remove_dir_all(directory.path().join("jobs")).unwrap();
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((services(&mock).len(), report.foreign().count()), (1, 1));
    assert!(reserve(&site, &pool, 1, "n1").is_err());
}

#[test]
fn a_prolog_that_fails_does_not_end_the_run_that_it_repeats() {
    let (_directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    mock.nics()[1].faults().inject(Fault::errno(Errno::EIO).on(Opcode::SVC_LIST_GET));
    node.prolog(&starting(1)).unwrap_err();
    mock.nics()[1].faults().clear();
    let (records, broken) = node.list().unwrap();
    assert_eq!((records.len(), broken.len(), records[0].running.len()), (1, 0, 1));
    node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock).len(), 2);
    // Another size is another request: refused, or ordered.
    let mut other = starting(1);
    other.shape = JobShape::of_size(2);
    let error = node.prolog(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        "job 1 runs on this node for another request (uid 1000, VNI 1024, size 1); asked for: uid \
         1000, VNI 1024, size 2"
    );
    assert_eq!(services(&mock).len(), 2);
    other.replace = true;
    let replaced = node.prolog(&other).unwrap().grant.unwrap();
    assert!(replaced.services.iter().all(|entry| !entry.adopted));
    assert_eq!(services(&mock).len(), 2);
}

#[test]
fn what_comes_after_a_failed_repeat_of_a_prolog_is_not_the_jobs() {
    let (_directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let second = Device::with_transport(DeviceId::new(1), mock.nics()[1].root().unwrap());
    second.services().destroy(ServiceId::new(2).unwrap()).unwrap();
    let fault = Fault::errno(Errno::EPERM).on(Opcode::SVC_ALLOC);
    mock.nics()[1].faults().inject(fault);
    node.prolog(&starting(1)).unwrap_err();
    mock.nics()[1].faults().clear();
    let foreign = make_foreign(&site, &pool, &mock);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock)), (1, vec![(0, foreign)]));
}

#[test]
fn a_record_of_an_earlier_boot_names_nothing() {
    let (directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let path = directory.path().join("jobs/1.json");
    let text = fs::read_to_string(&path).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["record"]["boot"] = "another".into();
    fs::write(&path, value.to_string()).unwrap();
    // The services that the NICs have now are somebody else's, however much they look like its own.
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock).len()), (2, 2));
    // The job that runs again after the reboot owns what it makes.
    fs::write(&path, value.to_string()).unwrap();
    node.prolog(&starting(1)).unwrap();
    assert_eq!(services(&mock).len(), 4);
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock).len(), 2);
}

#[test]
fn a_broken_record_of_a_service_still_says_that_it_is_somebodys() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().display().to_string();
    let site = site_with(directory.path(), "");
    let mock = cxi_test_kit::node(1);
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(1024).unwrap());
    let id = device.services().create(&spec.build().unwrap()).unwrap();
    let made = OwnedService::of(device.id(), &device.services().get(id).unwrap());
    records.add(made, "an administrator").unwrap();
    let node = compute(&site, &mock);
    let mut order = Cleaning::new("1024".parse().unwrap());
    order.foreign = true;
    let clean = || node.clean(&order, &ReleaseOptions::once()).unwrap().clean.orphans.len();
    assert_eq!(clean(), 0);
    fs::write(format!("{place}/services/cxi0-2.json"), "").unwrap();
    assert_eq!(clean(), 0);
    records.remove(device.id(), id).unwrap();
    assert_eq!(clean(), 1);
}

#[test]
fn a_record_follows_its_service_and_ends_with_whoever_holds_it() {
    let (_directory, site, mock, _) = place(1);
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    let node = compute(&site, &mock);
    let create = |vni| {
        let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(vni).unwrap());
        device.services().create(&spec.build().unwrap()).unwrap()
    };
    let owned = |id| OwnedService::of(device.id(), &device.services().get(id).unwrap());
    let mut order = Cleaning::new("1024-1030".parse().unwrap());
    order.foreign = true;
    let clean = || {
        let cleaned = node.clean(&order, &ReleaseOptions::once()).unwrap().clean;
        cleaned.orphans.iter().map(|orphan| (orphan.service, orphan.reason)).collect::<Vec<_>>()
    };
    // Only the administrator's record is followed.
    let (admin, other) = (create(1024), create(1025));
    records.add(owned(admin), "an administrator").unwrap();
    device.services().set_enabled(admin, false).unwrap();
    for id in [admin, other] {
        let mut changed = owned(id);
        changed.members = None;
        records.follow(changed).unwrap();
    }
    assert_eq!(records.all().unwrap().len(), 1);
    assert_eq!(records.all().unwrap()[0].service.members, None);
    records.follow(owned(admin)).unwrap();
    assert_eq!(clean(), [(other, OrphanReason::InPool)]);

    let program = create(1026);
    let held = records.hold(owned(program), "a program").unwrap();
    assert_eq!(clean(), []);
    drop(held);
    assert_eq!(clean(), [(program, OrphanReason::Ended)]);
    assert_eq!(records.all().unwrap().len(), 1);
}

/// The driver cannot tell a service of the same user and VNI from the job's, but its limits can.
#[test]
fn a_service_on_other_terms_is_not_a_killed_prologs() {
    let (directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let foreign = make_foreign(&site, &pool, &mock);
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    let report = node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!((report.foreign().count(), services(&mock)), (1, vec![(0, foreign)]));
}

/// A service is named as soon as it is made: of a prolog that is killed on its second NIC, nothing is
/// mistaken for another's on the first.
#[test]
fn each_service_is_named_as_soon_as_it_is_made() {
    let (directory, site, mock, pool) = place(2);
    let path = directory.path().join("jobs/1.json");
    let seen = Arc::new(Mutex::new(None));
    let files = mock.devices(&Credentials::root()).unwrap().into_iter();
    let nics: Vec<_> = files
        .map(|(number, file)| {
            let (path, seen) = (path.clone(), Arc::clone(&seen));
            let nic = Intercept::new(file, move |file: &InProcess, request| {
                if number == 1 && request.opcode() == Opcode::SVC_ALLOC {
                    let begun = Instant::now();
                    let named = || {
                        let text = fs::read_to_string(&path).unwrap();
                        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                        value["record"]["made"].as_array().unwrap().len()
                    };
                    while named() == 0 && begun.elapsed() < Duration::from_secs(20) {
                        thread::sleep(Duration::from_millis(1));
                    }
                    *seen.lock().unwrap() = Some(named());
                }
                file.submit(request)
            });
            (number, nic)
        })
        .collect();
    let node = Node::from_transports(nics);
    let compute = site.node(NodeName::new("n1").unwrap()).unwrap().nics(move || Ok(node.clone()));
    reserve(&site, &pool, 1, "n1").unwrap();
    compute.prolog(&starting(1)).unwrap();
    assert_eq!(*seen.lock().unwrap(), Some(1));
}

#[test]
fn a_job_that_is_ended_while_it_starts_leaves_nothing() {
    let (directory, pool) = (TempDir::new().unwrap(), pool());
    let site = Arc::new(site(directory.path()));
    let mock = Arc::new(cxi_test_kit::node(2));
    for opcode in [Opcode::SVC_LIST_GET, Opcode::SVC_ALLOC] {
        let files = mock.devices(&Credentials::root()).unwrap().into_iter();
        let once = Arc::new(Mutex::new(true));
        let nics: Vec<_> = files
            .map(|(number, file)| {
                let (site, mock, once) = (Arc::clone(&site), Arc::clone(&mock), Arc::clone(&once));
                let nic = Intercept::new(file, move |file: &InProcess, request| {
                    if request.opcode() == opcode && std::mem::take(&mut *once.lock().unwrap()) {
                        let other = compute(&site, &mock);
                        // The other NIC's service may get its name now, and nothing waits here.
                        let is_busy = |ended: &Result<_, SiteError>| matches!(ended, Err(SiteError::Locked(error)) if error.is_busy());
                        let mut ended = other.epilog(&job(1), None, &ReleaseOptions::once());
                        while is_busy(&ended) {
                            ended = other.epilog(&job(1), None, &ReleaseOptions::once());
                        }
                        ended.unwrap();
                    }
                    file.submit(request)
                });
                (number, nic)
            })
            .collect();
        let node = Node::from_transports(nics);
        let name = NodeName::new("n1").unwrap();
        let starts = site.node(name).unwrap().nics(move || Ok(node.clone()));
        reserve(&site, &pool, 1, "n1").unwrap();
        let refused = starts.prolog(&starting(1)).unwrap_err();
        assert!(matches!(refused, SiteError::EndedMeanwhile(_)), "{refused}");
        assert_eq!(
            (services(&mock), directory.path().join("jobs/1.json").exists()),
            (vec![], false)
        );
    }
}

#[test]
fn a_record_that_is_not_text_is_put_aside_as_any_broken_one() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path());
    let mock = cxi_test_kit::node(1);
    let node = compute(&site, &mock);
    for name in ["jobs", "decisions/running"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
    }
    let path = directory.path().join("jobs/1.json");
    fs::write(&path, b"\0\xff").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert!(!path.exists() && directory.path().join("jobs/1.json.broken").exists());
}

/// A broken record claims a service by number only, and numbers are used again.
#[test]
fn a_broken_record_of_a_service_does_not_take_a_job_its_own() {
    let (directory, site, mock, pool) = place(1);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    let own = node.prolog(&starting(1)).unwrap().grant.unwrap().services[0].service;
    fs::create_dir(directory.path().join("services")).unwrap();
    fs::write(directory.path().join(format!("services/cxi0-{own}.json")), "").unwrap();
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock), []);
}

#[test]
fn a_cleanup_forgets_services_that_are_gone() {
    let directory = TempDir::new().unwrap();
    let site = site(directory.path());
    let mock = cxi_test_kit::node(1);
    let records = ServiceRecords::of(site.settings()).unwrap();
    let device = Device::cxi0(mock.nics()[0].root().unwrap());
    let make = || {
        let spec = ServiceSpec::builder().member(Member::Uid(1000)).vni(Vni::new(1024).unwrap());
        let id = device.services().create(&spec.build().unwrap()).unwrap();
        let made = OwnedService::of(device.id(), &device.services().get(id).unwrap());
        records.add(made, "an administrator").unwrap();
        id
    };
    let (gone, stays) = (make(), make());
    device.services().destroy(gone).unwrap();
    let node = compute(&site, &mock);
    node.clean(&Cleaning::default(), &ReleaseOptions::once()).unwrap();
    let left: Vec<_> = records.all().unwrap().iter().map(|one| one.service.service).collect();
    assert_eq!(left, [stays]);
}

#[test]
fn a_component_of_another_size_is_told_whose_limits_it_has() {
    let (_directory, site, mock, pool) = place(1);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    let mut second = starting(1);
    second.component = Some(job(2));
    second.shape = JobShape::of_size(2);
    let started = node.prolog(&second).unwrap();
    assert_eq!(
        started.warnings,
        ["2 (size 2) shares the services that were made for 1 (size 1), with their limits"]
    );
}

#[test]
fn a_vni_of_a_live_job_is_not_given_to_another_user() {
    let (_directory, site, mock, _) = place(1);
    let node = compute(&site, &mock);
    node.prolog(&of_user(1, 1000, 1024)).unwrap();
    let before = services(&mock).len();
    let refused = node.prolog(&of_user(2, 1001, 1024)).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::OtherUser);
    assert_eq!(refused.to_string(), "job 1 of uid 1000 runs on this node with VNI 1024");
    assert_eq!((services(&mock).len(), node.list().unwrap().0.len()), (before, 1));
    // A step of the same user shares it; and it is free again when both have ended.
    node.prolog(&of_user(3, 1000, 1024)).unwrap();
    for id in [1, 3] {
        assert_eq!(node.prolog(&of_user(2, 1001, 1024)).unwrap_err().code(), ErrorCode::OtherUser);
        node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
    }
    node.prolog(&of_user(2, 1001, 1024)).unwrap();
}

/// An ID is used again after an administrator has destroyed a job's service by name.
#[test]
fn a_number_that_is_used_again_is_of_its_last_maker() {
    let (_directory, site, mock, _) = place(1);
    let node = compute(&site, &mock);
    let destroyed = |id| {
        let released = node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
        released.services.iter().filter(|one| one.is_gone()).count()
    };
    let first = node.prolog(&of_user(1, 1000, 1024)).unwrap().grant.unwrap().services[0].service;
    Device::cxi0(mock.nics()[0].root().unwrap()).services().destroy(first).unwrap();
    let second = node.prolog(&of_user(2, 1000, 1024)).unwrap().grant.unwrap().services[0].service;
    assert_eq!(first, second);
    assert_eq!(destroyed(1), 0);
    assert_eq!(destroyed(2), 1);
}

/// A prolog that is killed before it has made anything can have made nothing of what comes after another
/// job's prolog has begun, although a step of its user may ask for the same.
#[test]
fn what_a_second_killed_prolog_made_is_not_the_firsts() {
    let (directory, site, mock, _) = place(2);
    let node = compute(&site, &mock);
    let epilog = |id| node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
    node.prolog(&of_user(1, 1000, 1024)).unwrap();
    for id in services(&mock) {
        let device =
            Device::with_transport(DeviceId::new(id.0), mock.nics()[id.0 as usize].root().unwrap());
        device.services().destroy(ServiceId::new(id.1).unwrap()).unwrap();
    }
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    node.prolog(&of_user(2, 1000, 1024)).unwrap();
    kill_before_it_named(directory.path(), 2, [&[1], &[1]]);
    assert_eq!(epilog(1).services.len(), 0);
    assert_eq!(epilog(2).services.iter().filter(|one| one.is_gone()).count(), 2);
    assert_eq!(services(&mock), []);
}

/// The services that a killed prolog has made are named when the next one begins.
#[test]
fn what_a_killed_prolog_made_is_named_before_another_begins() {
    let (directory, site, mock, _) = place(1);
    let node = compute(&site, &mock);
    let epilog = |id| node.epilog(&job(id), None, &ReleaseOptions::once()).unwrap();
    node.prolog(&of_user(1, 1000, 1024)).unwrap();
    kill_before_it_named(directory.path(), 1, [&[1]]);
    node.prolog(&of_user(2, 1000, 1024)).unwrap();
    let (records, _) = node.list().unwrap();
    let first = records.iter().find(|record| record.job == job(1)).unwrap();
    assert_eq!((first.made.len(), first.begun.len()), (1, 0));
    kill_before_it_named(directory.path(), 2, [&[1, 2]]);
    assert_eq!(epilog(2).services.iter().filter(|one| one.is_gone()).count(), 1);
    assert_eq!(services(&mock), [(0, 2)]);
    assert_eq!(epilog(1).services.iter().filter(|one| one.is_gone()).count(), 1);
    assert_eq!(services(&mock), []);
}

/// A NIC that does not answer at first may have a service of the job that has no name yet.
#[test]
fn a_nic_that_does_not_list_its_services_gets_no_second_one() {
    let (directory, site, mock, pool) = place(2);
    let node = compute(&site, &mock);
    reserve(&site, &pool, 1, "n1").unwrap();
    node.prolog(&starting(1)).unwrap();
    kill_before_it_named(directory.path(), 1, [&[1], &[1]]);
    let once = Fault::errno(Errno::EAGAIN).on(Opcode::SVC_LIST_GET).times(1);
    mock.nics()[0].faults().inject(once);
    let refused = node.prolog(&starting(1)).unwrap_err();
    assert!(matches!(refused, SiteError::Unanswered { .. }), "{refused}");
    assert_eq!(services(&mock).len(), 2);
    let again = node.prolog(&starting(1)).unwrap().grant.unwrap();
    assert!(again.services.iter().all(|entry| entry.adopted));
    node.epilog(&job(1), None, &ReleaseOptions::once()).unwrap();
    assert_eq!(services(&mock), []);
}
