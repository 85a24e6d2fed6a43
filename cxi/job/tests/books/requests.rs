//! Requests for a job, valid and invalid.

use cxi::{DeviceId, Vni, VniAccess};
use cxi_job::{InvalidJobRequest, JobRequest, NicPolicy};
use cxi_site::JobId;

fn vni(number: u16) -> Vni {
    Vni::new(number).unwrap()
}

#[test]
fn a_job_gets_all_vnis_that_are_named() {
    let request = JobRequest::builder().uid(5).vni(vni(1024));
    let request = request.vnis([vni(1030), vni(1025)]).build().unwrap();
    let VniAccess::List(list) = request.vnis() else { panic!("{request:?}") };
    assert!(list.iter().eq([1024, 1030, 1025].map(vni)));
}

#[test]
fn a_job_without_nics_is_rejected() {
    let request = |nics| {
        let request = JobRequest::builder().uid(5).vni(vni(1024));
        request.nics(nics).build().map(drop)
    };
    for none in [NicPolicy::AnyUsable(0), NicPolicy::Listed([].into())] {
        assert_eq!(request(none), Err(InvalidJobRequest::NoNicWanted));
    }
    assert_eq!(request(NicPolicy::AnyUsable(1)), Ok(()));
    let listed = NicPolicy::Listed([DeviceId::new(0)].into());
    assert_eq!(request(listed), Ok(()));
}

#[test]
fn what_schedulers_keep_can_be_shared_by_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<cxi_job::Node>();
    shared::<cxi_job::Grant>();
    shared::<cxi_job::AllocateError>();
    shared::<JobId>();
}
