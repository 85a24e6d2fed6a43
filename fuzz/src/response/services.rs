//! The NIC itself and its services.

use std::time::Duration;

use cxi::{
    Backoff, Device, Limit, Limits, LnisPerRgid, Member, Service, ServiceBuffer, ServiceId,
    ServiceSpec, TrafficClasses, Vni, VniRange,
};

use super::{Hurry, told};
use crate::input::Input;

fn service(input: &mut Input<'_>) -> ServiceId {
    ServiceId::new(u32::from(input.byte() % 5) + 1).unwrap_or(ServiceId::DEFAULT)
}

fn vni(input: &mut Input<'_>) -> Vni {
    Vni::new(u16::from(input.byte()) + 1).expect("not zero")
}

/// A specification of one of several kinds.
pub(super) fn spec(input: &mut Input<'_>) -> ServiceSpec {
    let choice = input.byte();
    let mut builder = ServiceSpec::builder();
    builder = match choice & 3 {
        0 => builder.vni(vni(input)),
        1 => builder.vnis((10..14).filter_map(|vni| Vni::new(vni).ok())),
        2 => builder.vni_range(VniRange::from_bounds(64, 71).expect("a block")),
        _ => builder.unrestricted_vnis(),
    };
    builder = match choice >> 2 & 3 {
        0 => builder,
        1 => builder.member(Member::Uid(1000)),
        2 => builder.member(Member::NetNs(4_026_532_000)),
        _ => builder.member(Member::Uid(1000)).member(Member::Gid(100)),
    };
    if choice & 16 != 0 {
        builder = builder.limits(Limits::from_fn(|_| Limit::at_most(input.byte().into())));
    }
    if choice & 32 != 0 {
        builder = builder.traffic_classes(TrafficClasses::BEST_EFFORT);
    }
    builder
        .enabled(choice & 64 == 0)
        .exclusive_vnis(choice & 128 != 0 && choice & 3 != 3)
        .build()
        .expect("a specification")
}

/// What can be asked of a service without a driver.
fn looked_at(service: &Service) {
    let _ = ServiceSpec::try_from(service).map_err(|error| error.to_string());
    let _ = (
        service.is_enabled(),
        service.is_system(),
        service.is_limited(),
    );
    let _ = (service.limits(), service.counter_pool(), service.vnis());
    let json = serde_json::to_string(service).expect("a service as JSON");
    assert!(json.len() < 8192);
}

pub(super) fn call(call: u8, device: &Device, input: &mut Input<'_>) {
    let services = device.services();
    match call {
        0 => {
            if let Some(info) = told(device, device.info()) {
                let json = serde_json::to_string(&info).expect("a NIC as JSON");
                assert_eq!(serde_json::from_str(&json).ok(), Some(info), "{json}");
            }
        }
        1 => drop(told(device, device.totals())),
        2 => {
            if let Some(driver) = told(device, device.driver()) {
                let _ = (driver.to_string(), driver.lni_form(), driver.quirks());
            }
        }
        3 => {
            if let Some(left) = told(device, device.availability()) {
                let _ = serde_json::to_string(&left).expect("what is left as JSON");
            }
        }
        4 => drop(told(device, device.inbound_wait())),
        5 => {
            let _ = told(device, device.telemetry_counters());
            let _ = told(device, device.telemetry("x"));
            let _ = told(device, device.set_rdzv_get_enabled(false));
        }
        6 => {
            let spec = spec(input);
            let _ = told(device, services.create(&spec));
        }
        7 => {
            let spec = spec(input);
            if let Some(scoped) = told(device, services.create_scoped(&spec)) {
                match input.byte() % 3 {
                    0 => drop(scoped),
                    1 => drop(scoped.keep()),
                    _ => {
                        let done = scoped.destroy().map_err(|refused| refused.error);
                        let _ = told(device, done);
                    }
                }
            }
        }
        8 => {
            for service in told(device, services.list()).unwrap_or_default() {
                looked_at(&service);
            }
        }
        9 => {
            let mut buffer = ServiceBuffer::new();
            for _ in 0..2 {
                let _ = told(device, services.list_into(&mut buffer));
                buffer.iter().for_each(looked_at);
            }
        }
        10 => {
            if let Some(service) = told(device, services.get(service(input))) {
                looked_at(&service);
            }
        }
        11 => drop(told(device, services.usage(service(input)))),
        12 => drop(told(device, services.usage_all())),
        _ => change(call, device, input),
    }
}

fn change(call: u8, device: &Device, input: &mut Input<'_>) {
    let services = device.services();
    let id = service(input);
    match call {
        13 => {
            let spec = spec(input);
            let _ = told(device, services.update(id, &spec));
        }
        14 => drop(told(device, services.set_enabled(id, input.flag()))),
        15 => {
            let count = LnisPerRgid::new(u32::from(input.byte() % 9));
            let count = count.unwrap_or_else(|error| panic!("{error}"));
            let _ = told(device, services.set_lnis_per_rgid(id, count));
        }
        16 => drop(told(device, services.lnis_per_rgid(id))),
        17 => drop(told(device, services.set_exclusive_cp(id, input.flag()))),
        18 => drop(told(device, services.exclusive_cp(id))),
        19 => {
            let range = VniRange::from_bounds(128, 131).expect("a block");
            let _ = told(device, services.set_vni_range(id, range));
        }
        20 => drop(told(device, services.vni_range(id))),
        21 => drop(told(device, services.set_netns(id, input.u32()))),
        22 => drop(told(device, services.netns(id))),
        23 => drop(told(device, services.destroy(id))),
        24 => {
            let backoff = Backoff::new(Duration::from_millis(1), Duration::from_secs(1));
            let clock = Hurry::default();
            let deadline = Duration::from_secs(5);
            let done = services.destroy_when_idle_with(id, deadline, backoff, &clock);
            let _ = told(device, done);
        }
        25 => {
            // Twice at once is as good as twice.
            let services = services.clone();
            let _ = told(device, services.get(id));
            let _ = told(device, services.destroy_when_idle(id, Duration::ZERO));
        }
        26 => drop(told(device, services.usage(id))),
        _ => drop(told(device, services.get(id))),
    }
}
