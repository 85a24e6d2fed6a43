//! The acts of threads. Each leaves the NIC as it found it, whatever goes wrong.

use std::sync::Arc;
use std::time::Duration;

use cxi::lni::{
    EventQueueOptions, LeList, MapFlags, MapOptions, PtOptions, TgqOptions, TxqOptions,
};
use cxi::{
    Device, DeviceMemory, Error, ErrorKind, Limit, Limits, Lni, LnisPerRgid, Member, Refusal,
    Resource, ResourceMap, ServiceId, ServiceSpec, ServiceSpecBuilder, TrafficClass, Vni, VniRange,
};
use cxi_job::{AuditOptions, Filter, JobLimits, JobRequest, Node, ReleaseOptions, ReleaseStatus};

use crate::Place;

/// A name, what a thread does, and the failures that other threads may cause.
pub(crate) struct Act(
    pub(crate) &'static str,
    pub(crate) fn(&Place) -> cxi::Result<()>,
    pub(crate) fn(&Error) -> bool,
);

/// Other threads do not interfere.
const NOTHING: fn(&Error) -> bool = |_| false;

/// Reading the usage of a service, as others do, keeps it busy for a moment.
const READERS: fn(&Error) -> bool = Error::is_busy;

pub(crate) const ACTS: &[Act] = &[
    Act("services", services, READERS),
    Act("ranges", ranges, READERS),
    Act("scarce services", scarce, NOTHING),
    Act("one VNI for all", contended, taken),
    Act("questions", questions, gone),
    Act("queues", queues, READERS),
    Act("targets", targets, READERS),
    Act("memory", memory, READERS),
    Act("a file that ends", ending, NOTHING),
    Act("a tree on a shared file", shared_tree, READERS),
];

const PATIENCE: Duration = Duration::from_secs(60);

/// A service may be gone when it is asked for, and another may have its id when it is looked for.
fn gone(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::NoSuchService { .. } => true,
        ErrorKind::Refused(why) => matches!(why, Refusal::Nevertheless(_)),
        _ => false,
    }
}

/// Another thread has the VNI.
fn taken(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::VniTaken(_))
}

impl Place {
    /// One of the NICs, on a file of the thread's own.
    fn device(&self) -> &Device {
        &self.own[usize::try_from(self.round).unwrap() % self.own.len()]
    }

    fn shared(&self) -> &Device {
        &self.shared[usize::try_from(self.round).unwrap() % self.shared.len()]
    }

    /// VNIs of this thread alone.
    fn vni(&self, number: u16) -> Vni {
        Vni::new(1024 + 64 * self.thread + number).unwrap()
    }

    fn range(&self) -> VniRange {
        VniRange::new(Vni::new(8192 + 64 * self.thread).unwrap(), 64).unwrap()
    }
}

fn some() -> Limits {
    ResourceMap::from_fn(|resource| match resource {
        Resource::Tles => Limit::NONE,
        _ => Limit::new(1, 16).unwrap(),
    })
}

fn spec(limits: Limits) -> ServiceSpecBuilder {
    ServiceSpec::builder().member(Member::Uid(0)).limits(limits)
}

/// A service that is destroyed in the end, even after a failure.
fn with_service(
    device: &Device,
    spec: ServiceSpecBuilder,
    act: impl FnOnce(ServiceId) -> cxi::Result<()>,
) -> cxi::Result<()> {
    let services = device.services();
    let id = match services.create(&spec.build().unwrap()) {
        Ok(id) => id,
        Err(error) => {
            // It could not be undone: readers kept it busy, or whoever has the VNI was gone when
            // that was looked up, and then it may be dangerous.
            if let Some(left) = error.leftover() {
                let reason = left.error.kind();
                let known = left.error.is_busy() || matches!(reason, ErrorKind::Quirk { .. });
                assert!(known, "{error}");
                services.destroy_when_idle(left.service, PATIENCE).unwrap();
            }
            return Err(error);
        }
    };
    let result = act(id);
    // Others may be reading its usage.
    services.destroy_when_idle(id, PATIENCE).unwrap();
    result
}

/// An LNI of such a service.
fn with_lni(
    device: &Device,
    vni: Vni,
    act: impl FnOnce(Lni, ServiceId) -> cxi::Result<()>,
) -> cxi::Result<()> {
    with_service(device, spec(some()).vni(vni), |id| act(device.alloc_lni(id)?, id))
}

/// A change that readers of the usage may prevent.
fn patiently(change: impl Fn() -> cxi::Result<()>) -> cxi::Result<()> {
    loop {
        match change() {
            Err(error) if error.is_busy() => std::thread::yield_now(),
            result => return result,
        }
    }
}

fn services(place: &Place) -> cxi::Result<()> {
    let device = place.device();
    let services = device.services();
    let wanted = spec(some()).vni(place.vni(0)).vni(place.vni(1));
    with_service(device, wanted, |id| {
        let read = services.get(id)?;
        assert!(read.is_enabled() && read.limits()[Resource::Txqs] == Limit::new(1, 16).unwrap());
        assert_eq!(services.usage(id)?.in_use(Resource::Txqs), 0);
        patiently(|| services.set_enabled(id, false))?;
        assert!(!services.get(id)?.is_enabled());
        let again = spec(some()).vni(place.vni(0)).vni(place.vni(1)).build().unwrap();
        patiently(|| services.update(id, &again))?;
        let count = LnisPerRgid::new(4).unwrap();
        patiently(|| services.set_lnis_per_rgid(id, count))?;
        assert_eq!(services.lnis_per_rgid(id)?, count);
        Ok(())
    })
}

fn ranges(place: &Place) -> cxi::Result<()> {
    let device = place.device();
    let services = device.services();
    let wanted = spec(Limits::default()).vni_range(place.range()).exclusive_cp(true).enabled(false);
    with_service(device, wanted, |id| {
        assert_eq!(services.vni_range(id)?, Some(place.range()));
        patiently(|| services.set_exclusive_cp(id, true))?;
        assert!(services.exclusive_cp(id)?);
        patiently(|| services.set_enabled(id, true))?;
        let lni = device.alloc_lni(id)?;
        let profile = lni.alloc_cp(place.range().first(), TrafficClass::BestEffort)?;
        profile.modify(place.range().last())
    })
}

/// All threads want more than half of the TGQs: one at a time gets them.
fn scarce(place: &Place) -> cxi::Result<()> {
    let device = place.device();
    let most = device.totals()?[Resource::Tgqs] / 2 + 1;
    let spec = spec(Limits::none().with(Resource::Tgqs, Limit::exactly(most)));
    match with_service(device, spec.vni(place.vni(2)), |_| Ok(())) {
        Err(error) if matches!(error.kind(), ErrorKind::NotEnough(_)) => Ok(()),
        result => result,
    }
}

fn contended(place: &Place) -> cxi::Result<()> {
    let device = place.device();
    let block = VniRange::new(Vni::new(20_480).unwrap(), 16).unwrap();
    with_service(device, spec(Limits::default()).vni_range(block), |id| {
        assert_eq!(device.services().vni_range(id)?, Some(block));
        Ok(())
    })
}

fn questions(place: &Place) -> cxi::Result<()> {
    let device = place.shared();
    let services = device.services();
    let driver = device.driver()?.detected_release();
    assert_eq!(driver, place.own[0].driver()?.detected_release());
    assert!(device.info()?.link_up);
    let list = services.list()?;
    assert!(list.iter().any(|service| service.id().is_default()));
    for usage in services.usage_all()? {
        let in_use = usage.in_use(Resource::Tgqs);
        assert!(in_use <= device.totals()?[Resource::Tgqs]);
    }
    for service in list {
        let _usage = services.usage(service.id())?;
        let _netns = services.netns(service.id())?;
    }
    let have = device.availability()?;
    assert!(have.resources[Resource::Txqs].total > 0);
    let node = Node::from_devices([device.clone()]);
    let _audit = node.audit(&AuditOptions::default());
    device.inbound_wait()
}

fn queues(place: &Place) -> cxi::Result<()> {
    with_lni(place.device(), place.vni(3), |lni, _| {
        let profile = lni.alloc_cp(place.vni(3), TrafficClass::BestEffort)?;
        let wait = lni.alloc_wait()?;
        let events = lni.alloc_eq(&EventQueueOptions::new(4096).event_wait(&wait))?;
        let txq = lni.alloc_txq(&profile, &TxqOptions::new(64).event_queue(&events))?;
        let tgq = lni.alloc_tgq(&TgqOptions::new(64).event_queue(&events))?;
        txq.commands()?.write_u64(0, 7).unwrap();
        assert_eq!(txq.commands()?.read_u64(0), Ok(7));
        assert_eq!(tgq.ack_counter()?, 0);
        let next = events.resize(8192)?;
        events.complete_resize()?;
        assert_eq!(events.memory().address(), next.address());
        assert_eq!(events.adjust_reserved_slots(2)?, 2);
        let counter = lni.alloc_ct()?;
        counter.doorbell()?.ring(0, 1).unwrap();
        drop((profile, wait));
        drop((events, lni));
        tgq.close().unwrap();
        txq.close().unwrap();
        Ok(())
    })
}

fn targets(place: &Place) -> cxi::Result<()> {
    with_lni(place.device(), place.vni(4), |lni, _| {
        let block = lni.reserve_pids(place.vni(4), None, 4)?;
        let domain = lni.alloc_domain(place.vni(4), Some(block.first))?;
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None)?;
        let mapping = pte.map(&domain, 3)?;
        pte.invalidate(LeList::Priority, 1)?;
        let status = pte.status(4);
        mapping.close().unwrap();
        status.map(drop)
    })
}

fn memory(place: &Place) -> cxi::Result<()> {
    with_lni(place.device(), place.vni(5), |lni, _| {
        let buffer = Arc::new(DeviceMemory::new(8192).unwrap());
        let on_demand = MapOptions::new().flags(MapFlags::READ | MapFlags::WRITE);
        let first = lni.map_memory(&buffer, &on_demand)?;
        let second = lni.map_memory(&buffer, &on_demand)?;
        assert_eq!(first.lac(), second.lac());
        first.update(0..4096)?;
        drop(lni);
        first.close().unwrap();
        second.close().unwrap();
        Ok(())
    })
}

/// Handles that outlive everything: the end of the file frees what they stand for.
fn ending(place: &Place) -> cxi::Result<()> {
    let device = place.device();
    let default = device.alloc_lni(ServiceId::DEFAULT);
    assert!(default.is_err(), "the default service is disabled");
    with_lni(device, place.vni(6), |lni, id| {
        let tgq = lni.alloc_tgq(&TgqOptions::new(64))?;
        drop(lni);
        assert_eq!(device.services().usage(id)?.in_use(Resource::Tgqs), 1);
        drop(tgq);
        Ok(())
    })
}

/// As [`targets`], on a file that all threads use.
fn shared_tree(place: &Place) -> cxi::Result<()> {
    with_lni(place.shared(), place.vni(7), |lni, _| {
        let domain = lni.alloc_domain(place.vni(7), None)?;
        let pte = lni.alloc_pte(PtOptions::IS_MATCHING, None)?;
        let _mapping = pte.map(&domain, 9)?;
        let events = lni.alloc_eq(&EventQueueOptions::new(4096))?;
        let _counter = lni.alloc_ct()?;
        drop(lni);
        assert_eq!(events.memory().read_u64(0), Ok(0));
        Ok(())
    })
}

/// A job from prolog to epilog on all NICs. There are TLE pools for three of them, and four threads
/// have jobs that want one: such a job gets services on all NICs or on none.
pub(crate) fn job(node: &Node, thread: u16, round: u64) -> bool {
    let vni = Vni::new(1024 + thread).unwrap();
    let mut request = JobRequest::builder().uid(1000 + u32::from(thread)).vni(vni);
    let wants_tles = thread < 4;
    if !wants_tles {
        request = request.limits(JobLimits::Fixed(Limits::default()));
    }
    let grant = match node.allocate(&request.build().unwrap()) {
        Ok(grant) => grant,
        Err(error) => {
            assert!(wants_tles && error.left().is_empty(), "{error}");
            assert!(error.to_string().contains("no TLE pool is left"), "{error}");
            return false;
        }
    };
    assert_eq!(grant.services.len(), node.nics().len());
    if round.is_multiple_of(3) {
        let _audit = node.audit(&AuditOptions::default());
    }
    let filter =
        if round.is_multiple_of(2) { Filter::for_grant(&grant) } else { Filter::vnis([vni]) };
    let release = node.release(&filter, &ReleaseOptions::until(PATIENCE));
    assert_eq!(release.status(), ReleaseStatus::Done, "{release}");
    assert_eq!(release.services.len(), node.nics().len());
    true
}
