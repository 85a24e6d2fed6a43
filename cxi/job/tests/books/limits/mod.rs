//! Limit planning: the published table, the arithmetic at its edges, pools, modes, and who holds what is missing.

use cxi::pools::LE_POOLS;
use cxi::{DeviceId, Limit, Limits, Resource, ResourceMap, ServiceId};
use cxi_job::limits::{
    Bottleneck, CutReason, LimitPolicy, Mode, NicUsage, ResourcePolicy, ServiceUsage, Subtract,
    forecast, lnis_per_rgid, plan,
};

mod properties;

/// In the driver's order: PTEs, TXQs, TGQs, EQs, CTs, LEs, TLEs, ACs.
const CASSINI_1: [u32; 8] = [2048, 1024, 512, 2047, 2047, 16384, 2048, 1022];
const CASSINI_2: [u32; 8] = [2048, 2048, 1024, 2047, 2047, 16384, 2048, 1022];

fn nic(totals: [u32; 8], services: Vec<ServiceUsage>) -> NicUsage {
    NicUsage::new(DeviceId::new(1), ResourceMap::from(totals), services)
}

fn service(id: u32, limits: &[(Resource, u16, u16)]) -> ServiceUsage {
    let mut map = Limits::default();
    for (resource, reserved, max) in limits {
        map[*resource] = Limit::new(*reserved, *max).unwrap();
    }
    ServiceUsage::new(ServiceId::new(id).unwrap(), map)
}

/// The default service as the driver makes it.
fn default_service() -> ServiceUsage {
    service(1, &[(Resource::Tles, 512, 512)])
}

fn limit(reserved: u16, max: u16) -> Limit {
    Limit::new(reserved, max).unwrap()
}

const SCALE: Mode = Mode::ScaleBack { floor: 1 };
const STRICT: Mode = Mode::Strict;

#[test]
fn the_published_table() {
    let policy = LimitPolicy::hpe_recommended();
    for cores in [1_u16, 8, 64, 128] {
        let nic = nic(CASSINI_2, vec![default_service()]);
        let size = cores.into();
        let plan = plan(&policy, size, &nic, STRICT).unwrap();
        let tles = cores.max(8);
        for (resource, reserved, max) in [
            (Resource::Txqs, 2 * cores, 2048),
            (Resource::Tgqs, cores, 1024),
            (Resource::Eqs, 2 * cores, 2047),
            (Resource::Cts, cores, 2047),
            (Resource::Tles, tles, tles),
            (Resource::Ptes, 6 * cores, 2048),
            (Resource::Les, 16 * cores, 16384),
            (Resource::Acs, 2 * cores, 1022),
        ] {
            assert_eq!(plan.limits[resource], limit(reserved, max), "{resource}, {cores} cores");
        }
        assert_eq!(plan.cuts, []);
    }
}

#[test]
fn a_device_with_less_bounds_the_maximum() {
    let policy = LimitPolicy::hpe_recommended();
    let nic = nic(CASSINI_1, vec![default_service()]);
    // What the NIC can never have is a shortage for a job that wants all or nothing.
    let short = plan(&policy, 600, &nic, STRICT).unwrap_err().short;
    let plan = plan(&policy, 600, &nic, Mode::ScaleBack { floor: 1 }).unwrap();
    assert_eq!(short, plan.cuts);
    assert_eq!(plan.limits[Resource::Txqs], limit(1024, 1024));
    assert_eq!(plan.limits[Resource::Tgqs], limit(512, 512));
    assert_eq!(plan.limits[Resource::Acs], limit(1022, 1022));
    assert_eq!(plan.limits[Resource::Ptes], limit(2048, 2048));
    let cuts: Vec<String> = plan.cuts.iter().map(ToString::to_string).collect();
    assert_eq!(
        cuts,
        [
            "cxi1: 3600 PTEs wanted, 2048 available: the NIC has no more",
            "cxi1: 1200 TXQs wanted, 1024 available: the NIC has no more",
            "cxi1: 600 TGQs wanted, 512 available: the NIC has no more",
            "cxi1: 1200 ACs wanted, 1022 available: the NIC has no more",
        ]
    );
}

#[test]
fn a_node_without_cores_reserves_nothing_and_has_no_tles() {
    let policy = LimitPolicy::hpe_recommended();
    let nic = nic(CASSINI_1, vec![]);
    let plan = plan(&policy, 0, &nic, STRICT).unwrap();
    assert_eq!(plan.limits[Resource::Tles], Limit::NONE);
    assert_eq!(plan.limits[Resource::Ptes], Limit::at_most(2048));
}

#[test]
fn arithmetic_saturates() {
    // 512 for each of 128 CPUs is 65536, which is 0 in 16 bits.
    let policy = LimitPolicy::slurm().with(Resource::Txqs, ResourcePolicy::scaled(512, 1024));
    let scaled = Mode::ScaleBack { floor: 1 };
    let one = plan(&policy, 128, &nic(CASSINI_1, vec![]), scaled).unwrap();
    assert_eq!(one.limits[Resource::Txqs], limit(1024, 1024));
    assert_eq!(one.cuts[0].wanted, 65536);

    let huge = nic([u32::MAX; 8], vec![]);
    let policy =
        LimitPolicy::empty().with(Resource::Acs, ResourcePolicy::scaled(u32::MAX, u32::MAX));
    let plan = plan(&policy, u32::MAX, &huge, STRICT).unwrap();
    assert_eq!(plan.limits[Resource::Acs], limit(u16::MAX, u16::MAX));
    assert_eq!(plan.limits[Resource::Ptes], Limit::NONE);
}

#[test]
fn system_services_are_taken_off_and_others_by_choice() {
    let mut in_use = ResourceMap::<u16>::default();
    in_use[Resource::Acs] = 900;
    let system = service(2, &[(Resource::Acs, 100, 1022)]).system().in_use(in_use);
    let user = service(5, &[(Resource::Acs, 60, 1022)]).owner("uid 5588");
    let nic = nic(CASSINI_1, vec![default_service(), system, user]);
    let size = 64;
    let policy = LimitPolicy::hpe_recommended();
    let (none, all) = (policy.subtract(Subtract::None), policy.subtract(Subtract::All));
    for (policy, mode, expected) in [
        (&none, STRICT, limit(128, 1022)),
        (&policy, SCALE, limit(122, 1022)),
        (&all, SCALE, limit(62, 1022)),
        (&LimitPolicy::slurm(), SCALE, limit(122, 122)),
    ] {
        let limits = plan(policy, size, &nic, mode).unwrap().limits;
        assert_eq!(limits[Resource::Acs], expected, "{policy:?}");
    }
    // For Slurm's plugin that is a bound like the NIC's total: no step fails for it.
    let slurm = plan(&LimitPolicy::slurm(), size, &nic, STRICT).unwrap();
    assert_eq!(slurm.limits[Resource::Acs], limit(122, 122));
    assert_eq!(
        slurm.cuts[0].to_string(),
        "cxi1: 128 ACs wanted, 122 available: 900 held by service 2"
    );
    let slurm = LimitPolicy::slurm().subtract(Subtract::All);
    let error = plan(&slurm, size, &nic, STRICT).unwrap_err().to_string();
    assert!(error.ends_with("60 held by service 5 (uid 5588)"), "{error}");

    assert_eq!(
        plan(&all, size, &nic, STRICT).unwrap_err().to_string(),
        "cxi1: 128 ACs wanted, 62 available: 900 held by service 2, 60 held by service 5 (uid 5588)"
    );
    let floor = |floor| plan(&all, size, &nic, Mode::ScaleBack { floor });
    assert_eq!(floor(32).unwrap_err().short.len(), 1);
    assert_eq!(floor(31).unwrap().cuts.len(), 1);
}

#[test]
fn a_use_of_65535_is_unknown() {
    let reported = ResourceMap::from([u16::MAX; 8]);
    let system =
        service(2, &[(Resource::Tles, 8, 8), (Resource::Ptes, 48, 2048)]).system().in_use(reported);
    assert_eq!((system.holds(Resource::Ptes), system.holds(Resource::Les)), (48, 0));
    let policy = LimitPolicy::hpe_recommended();
    let nic = nic(CASSINI_1, vec![system]);
    let plan = plan(&policy, 300, &nic, SCALE).unwrap();
    assert_eq!(plan.limits[Resource::Ptes], limit(1800, 2048));
    assert_eq!(plan.limits[Resource::Tles], Limit::exactly(300));
    // The C arithmetic of 16 bits would have 2048 - 65535 = 2049 here.
    assert!(
        plan.limits
            .iter()
            .all(|(resource, limit)| u32::from(limit.max()) <= CASSINI_1[resource.index()])
    );
}

#[test]
fn the_fourth_job_with_tles_finds_no_pool() {
    let job = |id| service(id, &[(Resource::Tles, 8, 8)]).owner(format!("uid {}", 1000 + id));
    let nic = nic(CASSINI_1, vec![default_service().system(), job(2), job(3), job(4)]);
    let (policy, size) = (LimitPolicy::hpe_recommended(), 4);
    let error = plan(&policy, size, &nic, STRICT).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cxi1: 4 TLEs wanted, 0 available: all 4 TLE pools are taken, \
         by service 1, service 2 (uid 1002), service 3 (uid 1003), service 4 (uid 1004)"
    );
    let scaled = plan(&policy, size, &nic, SCALE).unwrap();
    assert_eq!(scaled.limits[Resource::Tles], Limit::NONE);
    assert!(
        matches!(&scaled.cuts[..], [cut] if matches!(&cut.reason, CutReason::NoTlePool(by) if by.len() == 4))
    );
    let without = plan(&policy.tles(false), size, &nic, STRICT).unwrap();
    assert_eq!((without.limits[Resource::Tles], without.cuts.len()), (Limit::NONE, 0));
}

#[test]
fn tles_are_at_least_eight_or_none() {
    let (policy, size) = (LimitPolicy::hpe_recommended(), 100);
    for (held, strict, scaled) in
        [(1948, Some(100), 100), (1949, None, 99), (2040, None, 8), (2041, None, 0)]
    {
        let system = service(2, &[(Resource::Tles, held, held)]).system();
        let nic = nic(CASSINI_1, vec![system]);
        let got = |mode| {
            let plan = plan(&policy, size, &nic, mode).ok();
            plan.map(|plan| plan.limits[Resource::Tles])
        };
        assert_eq!(got(STRICT), strict.map(Limit::exactly), "{held}");
        let scaled = Some(Limit::exactly(scaled));
        assert_eq!([SCALE, Mode::BestEffort].map(got), [scaled; 2], "{held}");
    }
}

#[test]
fn without_an_le_pool_les_are_shared() {
    let holders = (2..).take(LE_POOLS).map(|id| service(id, &[(Resource::Les, 16, 16384)]));
    let nic = nic(CASSINI_1, holders.collect());
    let (policy, size) = (LimitPolicy::hpe_recommended(), 4);
    let error = plan(&policy, size, &nic, STRICT).unwrap_err();
    assert!(error.to_string().starts_with(
        "cxi1: 64 LEs wanted, 0 available: all 15 LE pools are taken, by service 2, "
    ));
    let plan = plan(&policy, size, &nic, SCALE).unwrap();
    assert_eq!(plan.limits[Resource::Les], Limit::at_most(16384));
}

#[test]
fn best_effort_shares_all_and_fixed_reservations_may_be_zero() {
    let policy = LimitPolicy::slurm().with(Resource::Cts, ResourcePolicy::fixed(0, 64));
    let nic = nic(CASSINI_1, vec![]);
    let best = plan(&policy, 16, &nic, Mode::BestEffort).unwrap();
    assert_eq!(best.limits[Resource::Ptes], Limit::at_most(2048));
    assert_eq!(best.limits[Resource::Tles], Limit::exactly(16));
    assert!(best.cuts.iter().all(|cut| cut.reason == CutReason::BestEffort));
    let strict = plan(&policy, 16, &nic, STRICT).unwrap();
    assert_eq!(strict.limits[Resource::Cts], Limit::at_most(64));
}

#[test]
fn the_forecast_names_what_runs_out_first() {
    let (policy, size) = (LimitPolicy::hpe_recommended(), 4);
    let mut nic = nic(CASSINI_1, vec![default_service()]);
    let limits = plan(&policy, size, &nic, STRICT).unwrap().limits;
    let of_pools = forecast(&nic, &limits);
    assert_eq!(of_pools, Some((3, Bottleneck::TlePools)));
    let without = plan(&policy.tles(false), size, &nic, STRICT).unwrap();
    let of_les = forecast(&nic, &without.limits);
    assert_eq!(of_les.unwrap().1, Bottleneck::LePools);
    nic.totals[Resource::Acs] = 16;
    let of_acs = forecast(&nic, &limits);
    assert_eq!(of_acs, Some((2, Bottleneck::Resource(Resource::Acs))));
    assert_eq!(forecast(&nic, &Limits::default()), None);
}

#[test]
fn rgids_are_shared_when_there_are_too_few() {
    let count = |cpus, nics, free| lnis_per_rgid(cpus, nics, free).map(cxi::LnisPerRgid::get);
    assert_eq!(count(0, 1, 255), Ok(1));
    assert_eq!(count(252, 1, 252), Ok(1));
    assert_eq!(count(253, 1, 252), Ok(2));
    assert_eq!(count(253, 4, 252), Ok(1));
    assert_eq!(count(8 * 255, 1, 255), Ok(8));
    assert_eq!(
        count(8 * 255 + 1, 1, 255).unwrap_err().to_string(),
        "2041 processes on 1 NICs with 255 free RGIDs each would need 9 LNIs per RGID: at most 8 can share one"
    );
    assert!(count(1, 0, 255).is_err() && count(1, 1, 0).is_err());
    assert_eq!(count(u32::MAX, u32::MAX, u32::MAX), Ok(1));
}

#[test]
fn best_effort_says_that_nothing_is_reserved_where_there_is_nothing() {
    let resource = Resource::Acs;
    let (def, res, max) = (1, None, 1);
    let policy = LimitPolicy::empty().with(resource, ResourcePolicy { def, res, max });
    let nic = nic([0; 8], Vec::new());
    let plan = plan(&policy, 1, &nic, Mode::BestEffort);
    let cuts = plan.expect("best effort takes what there is").cuts;
    assert_eq!(cuts.len(), 1);
    assert_eq!((cuts[0].resource, cuts[0].wanted, cuts[0].available), (resource, 1, 0));
}
