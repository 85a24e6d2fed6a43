//! LE pools, which drivers up to SHS 14.0.0 give to every service that may have LEs.

use cxi::pools::LE_POOLS;
use cxi::{
    Device, DeviceId, DriverRelease, Limit, Limits, Resource, ResourceMap, ServiceId, ServiceSpec,
};
use cxi_job::explain::Inquiry;
use cxi_job::limits::{
    Bottleneck, LimitPolicy, Mode, NicUsage, ResourcePolicy, ServiceUsage, forecast, plan,
};
use cxi_mock::{MockNode, NicConfig};

use crate::support::{devices, vni};

/// A NIC with the driver of that release.
fn nic(release: DriverRelease) -> Device {
    let mock = MockNode::with_nics(1, &NicConfig::new().release(release)).unwrap();
    devices(&mock).remove(0)
}

/// A service on that VNI with these LEs.
fn with(number: u16, reserved: u16, max: u16) -> ServiceSpec {
    let spec = ServiceSpec::builder().vni(vni(number));
    let limits = les(Limit::new(reserved, max).unwrap());
    spec.limits(limits).build().unwrap()
}

fn les(limit: Limit) -> Limits {
    Limits::none().with(Resource::Les, limit)
}

/// A NIC with one service that reserves LEs and nine that may have some; and the default one.
fn ten_services() -> NicUsage {
    let service = |id: u32| {
        let limit = match id {
            2 => Limit::exactly(1),
            _ => Limit::at_most(1),
        };
        ServiceUsage::new(ServiceId::new(id).unwrap(), les(limit))
    };
    let totals = ResourceMap::from_fn(|_| 1000);
    NicUsage::new(DeviceId::new(0), totals, (1..=11).map(service).collect())
}

#[test]
fn by_reservation_a_maximum_is_free() {
    let nic = ten_services();
    assert_eq!(nic.le_pool_holders().count(), 1);
    assert_eq!(forecast(&nic, &les(Limit::at_most(5))), None);
    let forecast = forecast(&nic, &les(Limit::exactly(1)));
    assert_eq!(forecast, Some((14, Bottleneck::LePools)));
}

#[test]
fn by_maximum_it_takes_a_pool() {
    let mut nic = ten_services();
    nic.le_pool_by_maximum = true;
    let holders = nic.le_pool_holders().map(|usage| usage.service.get());
    assert!(holders.eq(2..=11), "not the default service");
    for limit in [Limit::exactly(1), Limit::at_most(5)] {
        let forecast = forecast(&nic, &les(limit));
        assert_eq!(forecast, Some((5, Bottleneck::LePools)));
    }
    assert_eq!(forecast(&nic, &les(Limit::NONE)), None);
}

#[test]
fn a_job_that_reserves_no_les_is_planned_without_a_pool() {
    let mut nic = ten_services();
    for id in 20..40 {
        let service = ServiceId::new(id).unwrap();
        let usage = ServiceUsage::new(service, les(Limit::exactly(1)));
        nic.services.push(usage);
    }
    let policy = LimitPolicy::slurm().with(Resource::Les, ResourcePolicy::fixed(0, 64));
    let plan = plan(&policy, 1, &nic, Mode::Strict).unwrap();
    assert_eq!(plan.limits[Resource::Les], Limit::at_most(64));
}

#[test]
fn what_is_read_from_a_nic_goes_by_its_driver() {
    for (release, holders) in [(DriverRelease::Shs13_1, 2), (DriverRelease::Main2026_07, 1)] {
        let device = nic(release);
        let services = device.services();
        services.create(&with(5, 1, 1)).unwrap();
        services.create(&with(6, 0, 1)).unwrap();
        let usage = NicUsage::read(&device).unwrap();
        assert_eq!(usage.le_pool_holders().count(), holders, "{release}");
    }
}

#[test]
fn a_refusal_is_explained_with_all_that_hold_a_pool() {
    let device = nic(DriverRelease::Shs13_1);
    let spec = |number: u16| with(100 + number, 0, 64);
    for number in 0..15 {
        device.services().create(&spec(number)).unwrap();
    }
    let error = device.services().create(&spec(15)).unwrap_err();
    let explanation = Inquiry::new(&error).device(&device).explain();
    assert_eq!(explanation.holders.len(), LE_POOLS);
    assert_eq!(
        explanation.holders[0].to_string(),
        "service 2 (everyone, VNI 100): up to 64 LEs, nothing in use"
    );
}
