//! LNIs and what is below them through the safe library.

use std::sync::Arc;
use std::time::Duration;

use cxi::lni::{EventQueueOptions, MapOptions, PtOptions, TgqOptions};
use cxi::{DeviceMemory, Errno, Limit, Limits, Resource};
use cxi_ioctl::LniAllocForm;

use super::{Opener, Outcome, ensure, modest, vni};

pub(super) fn limits_bite(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let spec = modest(20)?
        .limits(Limits::none().with(Resource::Tgqs, Limit::new(4, 16)?))
        .build()?;
    let service = device.services().create_scoped(&spec)?;
    let lni = device.alloc_lni(service.id())?;
    let options = TgqOptions::new(64);
    let mut queues = (0..16)
        .map(|_| lni.alloc_tgq(&options))
        .collect::<cxi::Result<Vec<_>>>()?;
    let in_use = device
        .services()
        .usage(service.id())?
        .in_use(Resource::Tgqs);
    ensure(in_use == 16, "all 16 are in use")?;
    let Err(error) = lni.alloc_tgq(&options) else {
        return Err("a 17th of at most 16 was had".into());
    };
    ensure(error.errno() == Errno::ENOSPC, &error.to_string())?;
    drop(queues.pop());
    queues.push(lni.alloc_tgq(&options)?);
    drop(queues);
    lni.close()?;
    service.destroy()?;
    Ok(())
}

pub(super) fn a_closed_file_gives_everything_back(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let service = device.services().create(&modest(21)?.build()?)?;
    {
        let other = open()?;
        // An LNI that no handle gives back, as when the process is killed.
        LniAllocForm::new().alloc(&**other.transport(), service.get())?;
        ensure(
            device.services().destroy(service).is_err(),
            "the LNI holds the service",
        )?;
    }
    let deadline = Duration::from_secs(10);
    device.services().destroy_when_idle(service, deadline)?;
    Ok(())
}

pub(super) fn targets_are_mapped(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let spec = modest(22)?
        .limits(
            Limits::none()
                .with(Resource::Ptes, Limit::exactly(2))
                .with(Resource::Eqs, Limit::exactly(2))
                .with(Resource::Acs, Limit::exactly(2)),
        )
        .build()?;
    let service = device.services().create_scoped(&spec)?;
    let lni = device.alloc_lni(service.id())?;
    let events = lni.alloc_eq(&EventQueueOptions::new(4096))?;
    let pte = lni.alloc_pte(PtOptions::IS_MATCHING, Some(&events))?;
    let domain = lni.alloc_domain(vni(22)?, None)?;
    let mapping = pte.map(&domain, 3)?;
    let pte = match pte.close() {
        Ok(()) => return Err("a mapped PtlTE was freed".into()),
        Err(refused) => refused.handle,
    };
    mapping.close()?;
    pte.close()?;
    domain.close()?;
    events.close()?;
    lni.close()?;
    service.destroy()?;
    Ok(())
}

pub(super) fn memory_is_registered(open: Opener<'_>) -> Outcome {
    let device = open()?;
    let spec = modest(23)?
        .limits(Limits::none().with(Resource::Acs, Limit::exactly(1)))
        .build()?;
    let service = device.services().create_scoped(&spec)?;
    let lni = device.alloc_lni(service.id())?;
    let memory = Arc::new(DeviceMemory::new(8192)?);
    let first = lni.map_memory(&memory, &MapOptions::new())?;
    let second = lni.map_memory(&memory, &MapOptions::new())?;
    ensure(
        first.lac() == second.lac(),
        "mappings of one kind share an AC",
    )?;
    first.close()?;
    second.close()?;
    lni.close()?;
    service.destroy()?;
    Ok(())
}
