//! Services.

use std::time::Duration;

use cxi::driver::Quirks;
use cxi::{Limit, Limits, LnisPerRgid, Member, Resource, Service, ServiceId, ServiceSpecBuilder};
use cxi_ioctl::Opcode;

use super::Call;
use crate::stage::{Stage, Value, block, shown, spec, vni};

const NAMESPACE: u32 = 4_026_532_000;

fn create(stage: &Stage, spec: ServiceSpecBuilder) -> cxi::Result<Value> {
    let spec = spec.build().unwrap();
    stage.services().create(&spec).map(|id| Value { text: id.to_string(), made: vec![id] })
}

/// All properties of a service.
fn seen(service: &Service) -> (ServiceId, String) {
    (service.id(), format!("{service:?} {:?}", service.descriptor()))
}

pub(super) const CALLS: &[Call] = &[
    Call::new("Services::create, VNI list", |stage| create(stage, spec().vni(vni(1024))))
        .like(&["cxil_alloc_svc"]),
    Call::new("Services::create, disabled", |stage| {
        create(stage, spec().vni(vni(1024)).enabled(false))
    }),
    Call::new("Services::create, VNI range", |stage| create(stage, spec().vni_range(block())))
        .since_13_1(),
    Call::new("Services::create, exclusive VNI", |stage| {
        create(stage, spec().vni_range(block()).exclusive_vnis(true))
    })
    .since_13_1(),
    Call::new("Services::create, namespace", |stage| {
        let namespace = cxi::ServiceSpec::builder().member(Member::NetNs(NAMESPACE));
        create(stage, namespace.vni(vni(1024)))
    })
    .since_14_0(),
    Call::new("Services::create, parent", |stage| {
        let limits = Limits::none().with(Resource::Txqs, Limit::exactly(16));
        let parent = cxi::ServiceSpec::builder().parent(true).limits(limits);
        create(stage, parent.vni(vni(1024)))
    })
    .since_november_2026(),
    Call::new("Services::create_scoped", |stage| {
        let spec = spec().vni(vni(1024)).build().unwrap();
        let scoped = stage.services().create_scoped(&spec)?;
        let id = scoped.id();
        match scoped.destroy() {
            Ok(()) => Ok(shown(id)),
            Err(refused) => {
                // It is kept for the check of what an error leaves in place.
                let _id = refused.handle.keep();
                stage.keep(id);
                Err(refused.error)
            }
        }
    }),
    Call::new("ScopedService::keep", |stage| {
        let spec = spec().vni(vni(1024)).build().unwrap();
        let scoped = stage.services().create_scoped(&spec)?;
        stage.keep(scoped.id());
        Ok(shown(scoped.keep()))
    }),
    Call::new("Services::get", |stage| {
        let id = stage.listed();
        stage.services().get(id).map(|service| shown(seen(&service)))
    })
    .like(&["cxil_get_svc"]),
    Call::new("Services::get, VNI range", |stage| {
        let id = stage.ranged();
        stage.services().get(id).map(|service| shown(seen(&service)))
    })
    .since_13_1(),
    Call::new("Services::list", |stage| {
        let _list = stage.listed();
        let services = stage.services().list()?;
        Ok(shown(services.iter().map(seen).collect::<Vec<_>>()))
    })
    .like(&["cxil_get_svc_list"]),
    Call::new("Services::list, VNI range", |stage| {
        let _range = stage.ranged();
        let services = stage.services().list()?;
        Ok(shown(services.iter().map(seen).collect::<Vec<_>>()))
    })
    .since_13_1(),
    Call::new("Services::usage", |stage| {
        let id = stage.listed();
        stage.services().usage(id).map(shown)
    })
    .like(&["cxil_get_svc_rsrc_use"]),
    Call::new("Services::usage_all", |stage| {
        let _list = stage.listed();
        stage.services().usage_all().map(shown)
    })
    .like(&["cxil_get_svc_rsrc_list"]),
    Call::new("Services::update", |stage| {
        let id = stage.listed();
        let spec = spec().vni(vni(1024)).enabled(false).build().unwrap();
        stage.services().update(id, &spec).map(shown)
    })
    .like(&["cxil_update_svc"]),
    Call::new("Services::set_enabled", |stage| {
        let id = stage.listed();
        stage.services().set_enabled(id, false).map(shown)
    })
    .like(&["cxil_svc_enable"]),
    Call::new("Services::set_vni_range", |stage| {
        let id = stage.waiting();
        stage.services().set_vni_range(id, block()).map(shown)
    })
    .since_13_1()
    .like(&["cxil_svc_set_vni_range"])
    // The service should have no range; the ranges of others are only looked up early.
    .taking_for_an_answer(&[Opcode::SVC_GET_VNI_RANGE, Opcode::SVC_LIST_GET]),
    Call::new("Services::vni_range", |stage| {
        let id = stage.ranged();
        stage.services().vni_range(id).map(shown)
    })
    .since_13_1()
    .like(&["cxil_svc_get_vni_range"]),
    Call::new("Services::set_netns", |stage| {
        let id =
            stage.service(cxi::ServiceSpec::builder().members([]).vni(vni(1024)).enabled(false));
        stage.services().set_netns(id, NAMESPACE).map(shown)
    })
    .since_14_0()
    .like(&["cxil_svc_set_netns"]),
    Call::new("Services::netns", |stage| {
        let namespace = cxi::ServiceSpec::builder().member(Member::NetNs(NAMESPACE));
        let id = stage.service(namespace.vni(vni(1024)));
        stage.services().netns(id).map(shown)
    })
    .since_14_0()
    .like(&["cxil_svc_get_netns"])
    .taking_for_an_answer(&[Opcode::SVC_GET_NETNS]),
    Call::new("Services::set_lnis_per_rgid", |stage| {
        let id = stage.listed();
        let count = LnisPerRgid::new(4).unwrap();
        stage.services().set_lnis_per_rgid(id, count).map(shown)
    })
    .since_13_1()
    .like(&["cxil_set_svc_lpr"]),
    Call::new("Services::lnis_per_rgid", |stage| {
        let id = stage.listed();
        stage.services().lnis_per_rgid(id).map(shown)
    })
    .like(&["cxil_get_svc_lpr"]),
    Call::new("Services::set_exclusive_cp", |stage| {
        let id = stage.ranged();
        stage
            .armed()
            .clone()
            .allow_quirks(Quirks::SWITCHED_EXCLUSIVE_CP)
            .services()
            .set_exclusive_cp(id, true)
            .map(shown)
    })
    .since_13_1()
    .like(&["cxil_svc_set_exclusive_cp"]),
    Call::new("Services::exclusive_cp", |stage| {
        let id = stage.ranged();
        stage.services().exclusive_cp(id).map(shown)
    })
    .since_13_1()
    .like(&["cxil_svc_get_exclusive_cp"]),
    Call::new("Services::destroy", |stage| {
        let id = stage.listed();
        stage.services().destroy(id).map(shown)
    })
    .like(&["cxil_destroy_svc"]),
    Call::new("Services::destroy_when_idle", |stage| {
        let id = stage.listed();
        stage.arm();
        let patience = Duration::from_secs(1);
        stage.device.services().destroy_when_idle(id, patience).map(shown)
    }),
];
