//! Holders of an exhausted resource, as an administrator reads them.

use cxi::{
    Device, Limit, Limits, Member, Resource, ServiceId, ServiceSpec, ServiceSpecBuilder, VniRange,
};
use cxi_job::explain::{Explanation, Inquiry};

use crate::support::{devices, like, mock, of_user, texts, vni};

fn modest() -> ServiceSpecBuilder {
    ServiceSpec::builder().limits(Limits::default())
}

fn create(device: &Device, spec: ServiceSpecBuilder) -> ServiceId {
    device.services().create(&spec.build().unwrap()).unwrap()
}

fn holders(explanation: &Explanation) -> Vec<String> {
    texts(&explanation.holders)
}

#[test]
fn places_in_the_table_of_vnis() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    create(&device, modest().vni(vni(2000)));
    let range: VniRange = "2048-2063".parse().unwrap();
    create(&device, modest().vni_range(range));
    create(&device, modest().vnis([]));
    for first in (0..252).step_by(4) {
        let four = (first..first + 4).map(|number| vni(3000 + number));
        create(&device, modest().vnis(four));
    }
    create(&device, modest().vnis([vni(4000), vni(4001)]));
    let more = modest().vni(vni(5000)).build().unwrap();
    let error = device.services().create(&more).unwrap_err();
    let explanation = Inquiry::new(&error).device(&device).explain();
    let holders = holders(&explanation);
    // Those with the most first. Not the one without any VNI; the default service is disabled.
    let four = |holder: &String| holder.ends_with("): 4 entries, nothing in use");
    assert!(holders[..63].iter().all(four));
    assert_eq!(
        holders[63..],
        [
            "service 1 (default service, VNIs 1,10, disabled): 2 entries",
            "service 68 (everyone, VNIs 4000,4001): 2 entries, nothing in use",
            "service 2 (everyone, VNI 2000): 1 entry, nothing in use",
            "service 3 (everyone, VNIs 2048-2063): 1 entry, nothing in use",
        ]
    );
}

#[test]
fn what_processes_have_of_a_limit() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let limits = Limits::none().with(Resource::Cts, Limit::at_most(2));
    let limited = || modest().member(Member::Uid(1000)).limits(limits);
    let full = create(&device, limited().vni(vni(1024)));
    create(&device, limited().vni(vni(1025)));
    let lni = of_user(&mock, 1000).alloc_lni(full).unwrap();
    let _counters = [lni.alloc_ct().unwrap(), lni.alloc_ct().unwrap()];
    let error = lni.alloc_ct().unwrap_err();
    let explanation = Inquiry::new(&error).device(&device).explain();
    let holder = "service 2 (uid 1000, VNI 1024): 2 CTs in use";
    assert_eq!(holders(&explanation), [holder]);
    let advice = "Let the job's processes use fewer CTs.";
    assert_eq!(explanation.advice[0], advice);
    let pids = lni.reserve_pids(vni(1024), None, 511);
    let error = lni.reserve_pids(vni(1024), None, 511).unwrap_err();
    drop(pids);
    let explanation = Inquiry::new(&error).device(&device).explain();
    like(&explanation, "*End other processes of the service*");
}

#[test]
fn a_resource_that_just_fits_is_not_reported_as_short() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let reserving = |ptes, cts| {
        modest().limits(
            Limits::none()
                .with(Resource::Ptes, Limit::exactly(ptes))
                .with(Resource::Cts, Limit::exactly(cts)),
        )
    };
    create(&device, reserving(2000, 1000).vni(vni(1024)));
    let left = device.availability().unwrap().resources[Resource::Cts].reservable;
    for (cts, short) in [(left, false), (left + 1, true)] {
        let spec = reserving(49, cts).vni(vni(1025)).build().unwrap();
        let error = device.services().create(&spec).unwrap_err();
        let text = Inquiry::new(&error).device(&device).spec(&spec).explain();
        let text = text.to_string();
        let also = format!("{cts} CTs with {left} available");
        assert_eq!(text.contains(&also), short, "{text}");
        assert_eq!(text.contains("there are enough."), !short, "{text}");
    }
}
