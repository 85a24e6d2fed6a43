//! Services through the safe library.

use cxi::driver::Quirks;
use cxi::{
    ErrorKind, Limit, Limits, LnisPerRgid, Member, Resource, ServiceBuffer, TrafficClasses,
    VniAccess,
};

use super::{Opener, Outcome, ensure, modest, vni};

pub(super) fn what_was_made_is_read_back(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let services = device.services();
    let spec = modest(1)?
        .member(Member::Uid(4242))
        .traffic_classes(TrafficClasses::LOW_LATENCY)
        .limits(Limits::none().with(Resource::Txqs, Limit::new(2, 8)?))
        .build()?;
    let service = services.create_scoped(&spec)?;
    let read = services.get(service.id())?;
    let wanted = vni(1)?;
    ensure(read.is_enabled(), "a new service is enabled")?;
    ensure(!read.is_system(), "a new service is not a system service")?;
    let listed = matches!(read.vnis(), VniAccess::List(list) if list.contains(wanted));
    ensure(listed, "the VNI is there")?;
    ensure(
        read.traffic_classes() == Some(TrafficClasses::LOW_LATENCY),
        "the class is there",
    )?;
    ensure(
        read.limits()[Resource::Txqs] == Limit::new(2, 8)?,
        "the limit is there",
    )?;
    let members = read.members().ok_or("the service has members")?;
    ensure(
        members.iter().eq([Member::Uid(4242)]),
        "the user is the only member",
    )
}

pub(super) fn lists_agree(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let services = device.services();
    let made = (10..15)
        .map(|number| Ok(services.create_scoped(&modest(number)?.enabled(false).build()?)?))
        .collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let mut buffer = ServiceBuffer::new();
    services.list_into(&mut buffer)?;
    let list = services.list()?;
    let usage = services.usage_all()?;
    ensure(buffer.len() == list.len(), "the reused buffer has as many")?;
    ensure(usage.len() == list.len(), "usage names as many")?;
    for service in &made {
        let found = list.iter().any(|listed| listed.id() == service.id());
        ensure(found, "a service that was made is listed")?;
    }
    Ok(())
}

pub(super) fn settings_are_kept(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let services = device.services();
    let service = services.create_scoped(&modest(3)?.build()?)?;
    services.set_enabled(service.id(), false)?;
    ensure(!services.get(service.id())?.is_enabled(), "disabled")?;
    services.set_enabled(service.id(), true)?;
    ensure(services.get(service.id())?.is_enabled(), "enabled again")?;
    // Old drivers mix up RGIDs that are shared; the library does not share them there.
    let shared = !device.driver()?.quirks().contains(Quirks::SHARED_RGID);
    let count = LnisPerRgid::new(if shared { 4 } else { 1 })?;
    services.set_lnis_per_rgid(service.id(), count)?;
    ensure(
        services.lnis_per_rgid(service.id())? == count,
        "LNIs per RGID",
    )
}

pub(super) fn a_shortage_is_explained(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let services = device.services();
    let total = device.totals()?[Resource::Tgqs];
    let half = total / 2 + 1;
    let first = modest(4)?
        .limits(Limits::none().with(Resource::Tgqs, Limit::exactly(half)))
        .build()?;
    let second = modest(5)?
        .limits(Limits::none().with(Resource::Tgqs, Limit::exactly(half)))
        .build()?;
    let _first = services.create_scoped(&first)?;
    let Err(error) = services.create_scoped(&second) else {
        return Err("two halves and more cannot be had".into());
    };
    let expected = format!(
        "{}: SVC_ALLOC: not enough TGQs: {half} requested, {} available",
        device.id(),
        total - half
    );
    ensure(error.to_string() == expected, &error.to_string())
}

pub(super) fn a_service_in_use_stays(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let service = device.services().create(&modest(6)?.build()?)?;
    let lni = device.alloc_lni(service)?;
    let error = match device.services().destroy(service) {
        Ok(()) => return Err("a service in use was destroyed".into()),
        Err(error) => error,
    };
    ensure(
        matches!(error.kind(), ErrorKind::Busy { .. }),
        &error.to_string(),
    )?;
    lni.close()?;
    device.services().destroy(service)?;
    Ok(())
}
