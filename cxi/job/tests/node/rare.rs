//! Cases that few jobs meet.

use std::fs;

use cxi::{Host, Limit, Limits, Resource};
use cxi_job::explain::Inquiry;
use cxi_job::limits::Mode;
use cxi_job::{Filter, JobLimits, NicPolicy, Node, ReleaseOptions, ReleaseStatus};

use crate::support::{allocate, cxi, devices, id, job, like, mock, node, planned, refuse, vni};

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
    assert_eq!((second.service, second.granted), (first.service, first.granted));
    // Who would not have taken that little gets another one, and who insists on all of it that.
    let more = allocate(&node, wanted(Mode::ScaleBack { floor: 16 })).services.remove(0);
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
    like(&error, "cxi1: cannot open *");
    let filter = Filter::vnis([vni(1024)]);
    let release = node.release(&filter, &ReleaseOptions::once());
    assert_eq!(release.status(), ReleaseStatus::Failed);
    like(&release, "*cannot open*");
    let error = refuse(&node, job(1000, 1024).nics(NicPolicy::AnyUsable(1)));
    assert!(error.failures().is_empty() && error.left().is_empty());
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
    like(&text, "*This library does not know the driver's interface.*");
}
