//! Properties of every plan and forecast.

use proptest::prelude::*;

use super::*;

fn any_service(id: u32) -> impl Strategy<Value = ServiceUsage> {
    let pair = (0..400_u16, 0..400_u16);
    (
        proptest::array::uniform8(pair),
        any::<bool>(),
        proptest::array::uniform8(prop_oneof![0..500_u16, Just(u16::MAX)]),
    )
        .prop_map(move |(pairs, system, used)| {
            let limits =
                ResourceMap::from(pairs.map(|(reserved, more)| limit(reserved, reserved + more)));
            let service = ServiceUsage::new(ServiceId::new(id).unwrap(), limits)
                .in_use(ResourceMap::from(used));
            if system { service.system() } else { service }
        })
}

fn any_nic() -> impl Strategy<Value = NicUsage> {
    let totals = proptest::array::uniform8(prop_oneof![0..3000_u32, 60_000..80_000_u32]);
    let services =
        (0..5_u32).prop_flat_map(|count| (2..2 + count).map(any_service).collect::<Vec<_>>());
    (totals, services).prop_map(|(totals, services)| nic(totals, services))
}

fn any_policy() -> impl Strategy<Value = LimitPolicy> {
    let resource = (0..600_u32, proptest::option::weighted(0.2, 0..3000_u32), 0..70_000_u32);
    (proptest::array::uniform8(resource), 0..3_u8, any::<bool>(), any::<bool>()).prop_map(
        |(resources, subtract, tles, bounded)| {
            let subtract = [Subtract::None, Subtract::System, Subtract::All][usize::from(subtract)];
            // Each resource is replaced below: what is left of Slurm's policy is its bound.
            let base = if bounded { LimitPolicy::slurm() } else { LimitPolicy::empty() };
            let policy = base.subtract(subtract).tles(tles);
            Resource::ALL.into_iter().zip(resources).fold(
                policy,
                |policy, (resource, (def, res, max))| {
                    policy.with(resource, ResourcePolicy { def, res, max })
                },
            )
        },
    )
}

proptest! {
    #[test]
    fn no_plan_asks_for_what_the_driver_calls_invalid(nic in any_nic(), policy in any_policy(), size in 0..300_u32, mode in 0..4_u8) {
        let mode = [Mode::Strict, Mode::ScaleBack { floor: 0 }, SCALE, Mode::BestEffort][usize::from(mode)];
        let always = matches!(mode, Mode::BestEffort | Mode::ScaleBack { floor: 0 });
        let plan = match plan(&policy, size, &nic, mode) {
            Err(error) => {
                prop_assert!(!always, "{}", error);
                prop_assert!(!error.short.is_empty());
                return Ok(());
            }
            Ok(plan) => plan,
        };
        for (resource, limit) in plan.limits.iter() {
            prop_assert!(limit.reserved() <= limit.max());
            prop_assert!(u32::from(limit.max()) <= nic.totals[resource], "{}: {}", resource, limit);
            if resource != Resource::Tles {
                prop_assert!(u32::from(limit.max()) <= policy.get(resource).max);
                prop_assert!(u32::from(limit.reserved()) <= policy.get(resource).asked(size));
            }
            let cut = plan.cuts.iter().any(|cut| cut.resource == resource);
            let less = u32::from(limit.reserved()) < policy.get(resource).asked(size).min(65_535);
            let unwanted = resource == Resource::Tles && limit.max() == 0;
            prop_assert!(!less || cut || unwanted || policy.get(resource).max == 0, "{}: cut without a record", resource);
        }
        let tles = plan.limits[Resource::Tles];
        prop_assert_eq!(tles.reserved(), tles.max());
        prop_assert!(tles.max() == 0 || tles.max() >= 8);
        let reserved = |resource: Resource| u32::from(plan.limits[resource].reserved());
        prop_assert!(mode != Mode::BestEffort || Resource::ALL.iter().all(|r| *r == Resource::Tles || reserved(*r) == 0));
    }

    #[test]
    fn the_forecast_is_what_the_driver_would_reserve(nic in any_nic(), mut service in any_service(99)) {
        service.limits[Resource::Tles] = Limit::exactly(service.limits[Resource::Tles].reserved());
        let Some((fits, _)) = forecast(&nic, &service.limits) else { return Ok(()) };
        let mut nic = nic;
        let fits_now = |nic: &NicUsage| {
            let room = service.limits.iter().all(|(resource, limit)| u32::from(limit.reserved()) <= nic.unreserved(resource));
            let tles = service.limits[Resource::Tles] == Limit::NONE || nic.tle_pool_holders().count() < 4;
            let les = service.limits[Resource::Les].reserved() == 0 || nic.le_pool_holders().count() < 15;
            room && tles && les
        };
        for _ in 0..fits.min(50) {
            prop_assert!(fits_now(&nic));
            nic.services.push(service.clone());
        }
        prop_assert!(fits > 50 || !fits_now(&nic));
    }
}
