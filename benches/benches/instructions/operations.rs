//! What a program does with a device, as series of three layers.

use std::hint::black_box;
use std::sync::Arc;

use cxi::lni::{EventQueueOptions, MapOptions};
use cxi::{
    Device, DeviceMemory, Limit, Limits, Lni, Member, Resource, ServiceBuffer, ServiceId,
    ServiceSpec, Services, TrafficClass, TrafficClasses,
};
use cxi_benches::mock::{Result, lni, vni};

use crate::series::Act;

/// Services that a node with many jobs has.
const MANY: usize = 64;

/// Something a program does. What is prepared is warm: each call is like the one before.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// A call leaves the device as it found it.
    pub(crate) cycle: bool,
    pub(crate) prepare: fn(&Device) -> Result<Act>,
}

pub(crate) const SERVICE_CYCLE: Operation = Operation {
    name: "service create + destroy",
    cycle: true,
    prepare: service_cycle,
};

pub(crate) const ALL: &[Operation] = &[
    SERVICE_CYCLE,
    Operation {
        name: "service create",
        cycle: false,
        prepare: |device| {
            let (services, spec) = (device.services(), spec()?);
            Ok(Box::new(move || {
                black_box(services.create(&spec).expect("room for a service"));
            }))
        },
    },
    Operation {
        name: "service destroy",
        cycle: false,
        prepare: |device| {
            let (services, id) = service(device)?;
            Ok(Box::new(move || {
                services.destroy(id).expect("an idle service");
            }))
        },
    },
    Operation {
        name: "service get",
        cycle: true,
        prepare: |device| {
            let (services, id) = service(device)?;
            Ok(Box::new(move || {
                black_box(services.get(id).expect("a service"));
            }))
        },
    },
    Operation {
        name: "service usage",
        cycle: true,
        prepare: |device| {
            let (services, id) = service(device)?;
            Ok(Box::new(move || {
                black_box(services.usage(id).expect("a service"));
            }))
        },
    },
    Operation {
        name: "service enable",
        cycle: true,
        prepare: |device| {
            let (services, id) = service(device)?;
            Ok(Box::new(move || {
                services.set_enabled(id, true).expect("an idle service");
            }))
        },
    },
    Operation {
        name: "service update",
        cycle: true,
        prepare: |device| {
            let (services, id) = service(device)?;
            let spec = spec()?;
            Ok(Box::new(move || {
                services.update(id, &spec).expect("an idle service");
            }))
        },
    },
    Operation {
        name: "service list of 64",
        cycle: true,
        prepare: |device| {
            let services = device.services();
            // One is there from the start.
            for _ in 1..MANY {
                services.create(&spec()?)?;
            }
            let mut buffer = ServiceBuffer::new();
            services.list_into(&mut buffer)?;
            Ok(Box::new(move || {
                services.list_into(&mut buffer).expect("a list");
                assert_eq!(buffer.len(), MANY);
            }))
        },
    },
    Operation {
        name: "LNI alloc + free",
        cycle: true,
        prepare: |device| {
            let (device, id) = (device.clone(), service(device)?.1);
            drop(device.alloc_lni(id)?);
            Ok(Box::new(move || {
                drop(device.alloc_lni(id).expect("an LNI"));
            }))
        },
    },
    Operation {
        name: "LNI alloc + reserve 8 PIDs + free",
        cycle: true,
        prepare: |device| {
            let (device, id) = (device.clone(), service(device)?.1);
            drop(device.alloc_lni(id)?);
            let vni = vni()?;
            Ok(Box::new(move || {
                let lni = device.alloc_lni(id).expect("an LNI");
                black_box(lni.reserve_pids(vni, None, 8).expect("PIDs"));
            }))
        },
    },
    Operation {
        name: "LNI alloc + CT alloc + free",
        cycle: true,
        prepare: |device| {
            let (device, id) = (device.clone(), lni(device)?.0);
            Ok(Box::new(move || {
                let lni = device.alloc_lni(id).expect("an LNI");
                black_box(lni.alloc_ct().expect("a counter"));
            }))
        },
    },
    Operation {
        name: "CP alloc + free",
        cycle: true,
        prepare: |device| {
            let vni = vni()?;
            below(device, move |lni| {
                black_box(lni.alloc_cp(vni, TrafficClass::BestEffort).expect("a CP"));
            })
        },
    },
    Operation {
        name: "domain alloc + free",
        cycle: true,
        prepare: |device| {
            let vni = vni()?;
            below(device, move |lni| {
                black_box(lni.alloc_domain(vni, None).expect("a domain"));
            })
        },
    },
    Operation {
        name: "EQ alloc + free",
        cycle: true,
        prepare: |device| {
            below(device, |lni| {
                let options = EventQueueOptions::new(4096);
                black_box(lni.alloc_eq(&options).expect("an event queue"));
            })
        },
    },
    Operation {
        name: "MD map + unmap",
        cycle: true,
        prepare: |device| {
            let memory = Arc::new(DeviceMemory::new(4096)?);
            below(device, move |lni| {
                let md = lni.map_memory(&memory, &MapOptions::new());
                black_box(md.expect("a mapping"));
            })
        },
    },
];

/// A job's service: one user, one VNI, two classes, limits that fit a NIC often.
fn spec() -> Result<ServiceSpec> {
    let limit = Limit::new(2, 64)?;
    let limits = [Resource::Txqs, Resource::Tgqs, Resource::Eqs, Resource::Cts]
        .into_iter()
        .fold(Limits::none(), |limits, resource| {
            limits.with(resource, limit)
        });
    let spec = ServiceSpec::builder()
        .member(Member::Uid(0))
        .vni(vni()?)
        .traffic_classes(TrafficClasses::BEST_EFFORT | TrafficClasses::LOW_LATENCY)
        .limits(limits);
    Ok(spec.build()?)
}

fn service(device: &Device) -> Result<(Services, ServiceId)> {
    let services = device.services();
    let id = services.create(&spec()?)?;
    Ok((services, id))
}

fn service_cycle(device: &Device) -> Result<Act> {
    let (services, spec) = (device.services(), spec()?);
    Ok(Box::new(move || {
        let id = services.create(&spec).expect("room for a service");
        services.destroy(id).expect("an idle service");
    }))
}

/// Something with an LNI that stays.
fn below(device: &Device, act: impl Fn(&Lni) + 'static) -> Result<Act> {
    let (_, lni) = lni(device)?;
    Ok(Box::new(move || act(&lni)))
}
