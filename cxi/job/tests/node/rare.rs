//! What happens to few jobs.

use std::fs;
use std::sync::Arc;

use cxi::{Device, Host, Limit, Limits, Member, Resource, ServiceSpec};
use cxi_job::explain::Inquiry;
use cxi_job::limits::Mode;
use cxi_job::{Filter, JobLimits, NicPolicy, Node, ReleaseOptions, ReleaseStatus};
use cxi_mock::Credentials;

use crate::support::{allocate, cxi, devices, id, job, mock, node, planned, refuse, vni};

#[test]
fn a_scaled_back_service_is_adopted_when_there_is_more_again() {
    let mock = mock(1);
    let node = node(&mock);
    let hog = Limits::none().with(Resource::Txqs, Limit::exactly(1000));
    let hog = job(7, 2000).limits(JobLimits::Fixed(hog));
    allocate(&node, hog);
    let wanted = |mode| job(1000, 4034).limits(planned(16, mode));
    let small = wanted(Mode::ScaleBack { floor: 1 });
    let first = allocate(&node, small.clone()).services.remove(0);
    assert_eq!(first.cuts[0].resource, Resource::Txqs);
    let services = devices(&mock)[0].services();
    services.destroy(id(2)).unwrap();

    let second = allocate(&node, small.clone()).services.remove(0);
    assert!(second.adopted);
    assert_eq!(
        (second.service, second.granted),
        (first.service, first.granted)
    );
    // Who would not have taken that little gets another one, and who insists on all of it that.
    let more = allocate(&node, wanted(Mode::ScaleBack { floor: 16 }))
        .services
        .remove(0);
    assert!(!more.adopted);
    let all = allocate(&node, wanted(Mode::Strict)).services.remove(0);
    assert_eq!((all.adopted, all.service), (true, more.service));
}

#[test]
fn a_nic_that_cannot_be_opened_fails_the_job() {
    let root = tempfile::tempdir().unwrap();
    let (dev, sysfs) = (root.path().join("dev"), root.path().join("sys"));
    fs::create_dir_all(sysfs.join("class/cxi_user/cxi1")).unwrap();
    fs::create_dir_all(&dev).unwrap();
    let node = Node::discover(&Host::with_roots(&dev, &sysfs)).unwrap();
    let error = refuse(&node, job(1000, 1024).nics(NicPolicy::All));
    assert!(
        error.to_string().starts_with("cxi1: cannot open "),
        "{error}"
    );
    let filter = Filter::vnis([vni(1024)]);
    let release = node.release(&filter, &ReleaseOptions::once());
    assert_eq!(release.status(), ReleaseStatus::Failed);
    assert!(release.to_string().contains("cannot open"), "{release}");
    let error = refuse(&node, job(1000, 1024).nics(NicPolicy::AnyUsable(1)));
    assert!(error.failures().is_empty() && error.left().is_empty());
}

#[test]
fn a_limit_that_bites_names_who_uses_it() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let limit = Limit::at_most(2);
    let wanted = ServiceSpec::builder()
        .member(Member::Uid(1000))
        .vni(vni(1024));
    let wanted = wanted.limits(Limits::none().with(Resource::Cts, limit));
    let service = device.services().create(&wanted.build().unwrap()).unwrap();
    let user = mock.nics()[0].open().unwrap();
    let user = user.transport(Credentials::user(1000, 6));
    let user = Device::with_transport(cxi(0), Arc::new(user));
    let lni = user.alloc_lni(service).unwrap();
    let _counters = [lni.alloc_ct().unwrap(), lni.alloc_ct().unwrap()];
    let error = lni.alloc_ct().unwrap_err();
    let explanation = Inquiry::new(&error).device(&device).explain();
    let holders: Vec<String> = explanation
        .holders
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(holders, ["service 2 (uid 1000, VNI 1024): 2 CTs in use"]);
    assert_eq!(
        explanation.advice[0],
        "Let the job's processes use fewer CTs."
    );

    let pids = lni.reserve_pids(vni(1024), None, 511);
    let error = lni.reserve_pids(vni(1024), None, 511).unwrap_err();
    drop(pids);
    let text = Inquiry::new(&error).device(&device).explain().to_string();
    assert!(
        text.contains("End other processes of the service"),
        "{text}"
    );
}

#[test]
fn a_driver_that_answers_strangely_is_said() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("dev")).unwrap();
    // A file takes any command and answers nothing.
    fs::write(root.path().join("dev/cxi0"), "").unwrap();
    let host = Host::with_roots(root.path().join("dev"), root.path());
    let error = host.open(cxi(0)).unwrap().info().unwrap_err();
    let text = Inquiry::new(&error).explain().to_string();
    assert!(
        text.contains("This library does not know the driver's interface."),
        "{text}"
    );
}
