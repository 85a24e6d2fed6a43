//! Who holds what ran out, as an administrator reads it.

use std::sync::Arc;

use cxi::{Device, Limit, Limits, Resource, ServiceId, ServiceSpec, ServiceSpecBuilder, VniRange};
use cxi_job::explain::{Explanation, Inquiry};
use cxi_job::limits::Mode;
use cxi_mock::{Credentials, MockNode};

use crate::support::{cxi, devices, job, mock, node, planned, vni};

fn modest() -> ServiceSpecBuilder {
    ServiceSpec::builder().limits(Limits::default())
}

fn create(device: &Device, spec: ServiceSpecBuilder) -> ServiceId {
    device.services().create(&spec.build().unwrap()).unwrap()
}

fn holders(explanation: &Explanation) -> Vec<String> {
    explanation
        .holders
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn user(mock: &MockNode) -> Device {
    let file = mock.nics()[0].open().unwrap();
    let file = file.transport(Credentials::user(1000, 1000));
    Device::with_transport(cxi(0), Arc::new(file))
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
            "service 68 (everybody, VNIs 4000,4001): 2 entries, nothing in use",
            "service 2 (everybody, VNI 2000): 1 entry, nothing in use",
            "service 3 (everybody, VNIs 2048-2063): 1 entry, nothing in use",
        ]
    );
}

#[test]
fn what_processes_have_of_a_limit() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    let limits = modest().limits(Limits::none().with(Resource::Cts, Limit::at_most(1)));
    let full = create(&device, limits.clone().vni(vni(1024)));
    create(&device, limits.vni(vni(1025)));
    let user = user(&mock);
    let lni = user.alloc_lni(full).unwrap();
    let _counter = lni.alloc_ct().unwrap();
    let error = lni.alloc_ct().unwrap_err();
    let explanation = Inquiry::new(&error).device(&device).explain();
    assert_eq!(
        holders(&explanation),
        ["service 2 (everybody, VNI 1024): 1 CTs in use"]
    );
}

#[test]
fn le_pools_that_a_plan_finds_taken() {
    let mock = mock(1);
    let device = devices(&mock).remove(0);
    for number in 0..15 {
        let les = modest().limits(Limits::none().with(Resource::Les, Limit::exactly(1)));
        create(&device, les.vni(vni(2000 + number)));
    }
    let request = job(1000, 1024).limits(planned(16, Mode::Strict));
    let error = node(&mock).allocate(&request.build().unwrap()).unwrap_err();
    let explanation = &error.failures()[0].explanations[0];
    assert_eq!(
        explanation.problem,
        "no LE pool is left for the 256 LEs of the job"
    );
    assert_eq!(explanation.holders.len(), 15);
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
