//! Steps of `cxi selftest --write` on a NIC: a separate service, everything below it, a put from
//! the NIC to itself, and its end.

use std::time::Duration;

use cxi::lni::{EventQueueOptions, LeList, PtOptions, TgqOptions, TxqOptions};
use cxi::{
    Device, ErrorKind, Limit, Limits, Lni, Member, Resource, Service, ServiceId, ServiceSpec,
    TrafficClass, Usage, Vni,
};
use cxi_data::{
    Address, Append, Buffer, Dma, Event, Events, Report, SetState, TargetFlags, TargetQueue,
    TransmitQueue,
};

use super::steps::{Steps, answer, refusal};

/// Longest time that the NIC may take for a put, or to clean up after an LNI.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the put.
const LEN: usize = 4096;
/// Number of counters that the service may have.
const COUNTERS: u16 = 2;
/// Resources that the put takes, besides entries.
const QUEUES: [Resource; 4] = [Resource::Ptes, Resource::Txqs, Resource::Tgqs, Resource::Eqs];

/// The service: for one user, on a VNI that no other service has, with nothing reserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Own {
    pub(crate) vni: Vni,
    pub(crate) uid: u32,
}

impl Own {
    pub(crate) fn spec(self) -> cxi::Result<ServiceSpec> {
        let mut limits = Limits::none();
        for resource in QUEUES {
            limits[resource] = Limit::at_most(2);
        }
        limits[Resource::Cts] = Limit::at_most(COUNTERS);
        limits[Resource::Acs] = Limit::at_most(4);
        limits[Resource::Les] = Limit::at_most(16);
        Ok(ServiceSpec::builder()
            .member(Member::Uid(self.uid))
            .vni(self.vni)
            .limits(limits)
            .build()?)
    }

    /// The services that are exactly this: only this command makes such ones.
    fn made(self, device: &Device) -> cxi::Result<Vec<ServiceId>> {
        let spec = self.spec()?;
        let services = device.services().list()?;
        let own = |service: &&Service| ServiceSpec::try_from(*service).as_ref() == Ok(&spec);
        Ok(services.iter().filter(own).map(Service::id).collect())
    }

    /// Destroys what is left of it.
    pub(crate) fn clean(self, device: &Device) -> cxi::Result<()> {
        for id in self.made(device)? {
            device.services().destroy_when_idle(id, PATIENCE)?;
        }
        Ok(())
    }
}

/// Runs everything, and destroys the service whatever happens. `killed` allocates in a process that
/// is killed, and says what came of that.
pub(crate) fn write(
    device: &Device,
    own: Own,
    killed: Option<impl FnOnce(ServiceId) -> String>,
) -> cxi::Result<Steps> {
    let mut steps = Steps::default();
    let services = device.services();
    let id = match services.create(&own.spec()?) {
        Ok(id) => id,
        // The caller lacks a privilege, or others have the VNI: that says nothing about the driver.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotPermitted(_) | ErrorKind::VniTaken(_)) =>
        {
            return Err(error);
        }
        Err(error) => {
            steps.must("creating a service", refusal(&error), "done");
            return Ok(steps);
        }
    };
    let used = use_service(device, own, id, &mut steps);
    steps.must("using it", said(&used, id), "done");
    if let Some(killed) = killed {
        steps.must("a process that uses it is killed", killed(id), "killed");
    }
    let ended = services.destroy_when_idle(id, PATIENCE);
    steps.must("destroying it", said(&ended, id), "done");
    if ended.is_ok() {
        let left = own.made(device).map(|left| left.len());
        steps.must("services left", answer(left), "0");
    }
    Ok(steps)
}

/// Returns the result of a step, without the ID of the service, which is another one on each NIC.
fn said(result: &cxi::Result<()>, id: ServiceId) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(error) => refusal(error).replace(&format!("service {id}"), "the service"),
    }
}

fn use_service(device: &Device, own: Own, id: ServiceId, steps: &mut Steps) -> cxi::Result<()> {
    let services = device.services();
    let read = services.get(id)?;
    let as_made = ServiceSpec::try_from(&read).as_ref() == Ok(&own.spec()?);
    let read = if as_made { "as it was made" } else { "otherwise" };
    steps.must("the service, read", read, "as it was made");
    steps.compare("its LNIs per RGID", services.lnis_per_rgid(id)?);
    let lni = device.alloc_lni(id)?;
    steps.compare("destroyed in use", said(&services.destroy(id), id));

    let mut counters = Vec::new();
    let refused = loop {
        match lni.alloc_ct() {
            Ok(_) if counters.len() > usize::from(COUNTERS) => break Ok(()),
            Ok(counter) => counters.push(counter),
            Err(error) => break Err(error),
        }
    };
    steps.must("counters it gets", counters.len(), &COUNTERS.to_string());
    steps.compare("one more", said(&refused, id));

    match loop_back(&lni, own.vni) {
        Ok((usage, is_same)) => {
            let used = QUEUES.map(|resource| format!("{} {resource}", usage.in_use(resource)));
            steps.compare("what it has in use then", used.join(", "));
            let arrived = if is_same { "arrived unchanged" } else { "arrived changed" };
            steps.must("a put to the NIC itself", arrived, "arrived unchanged");
        }
        Err(error) => steps.must("a put to the NIC itself", error, "arrived unchanged"),
    }
    Ok(())
}

/// Puts bytes from one buffer to another through the NIC. Returns what the service has in use then,
/// and whether the bytes are the same.
fn loop_back(lni: &Lni, vni: Vni) -> Result<(Usage, bool), cxi_data::Error> {
    let info = lni.device().info()?;
    let mut events = Events::new(lni.alloc_eq(&EventQueueOptions::new(1 << 16))?, &info)?;
    let profile = lni.alloc_cp(vni, TrafficClass::BestEffort)?;
    let domain = lni.alloc_domain(vni, None)?;
    let options = TxqOptions::new(64).event_queue(events.queue());
    let mut transmit = TransmitQueue::new(lni.alloc_txq(&profile, &options)?, &info, &domain)?;
    let options = TgqOptions::new(64).event_queue(events.queue());
    let mut target = TargetQueue::new(lni.alloc_tgq(&options)?, &info)?;
    let pte = lni.alloc_pte(PtOptions::empty(), Some(events.queue()))?;
    let _mapping = pte.map(&domain, 0)?;
    let (inbox, outbox) = (Buffer::new(lni, LEN)?, Buffer::new(lni, LEN)?);
    let usage = lni.device().services().usage(lni.service())?;

    let entry = Append::new(&pte, LeList::Priority, inbox.whole()).flags(TargetFlags::OP_PUT);
    target.post(&entry)?;
    target.post(&SetState::enable(&pte))?;
    // The PtlTE takes a put only when the NIC has reported both.
    let (mut linked, mut enabled) = (false, false);
    while !(linked && enabled) {
        match events.wait(PATIENCE)? {
            Event::Entry(event) => linked = event.result.is_ok(),
            Event::State(event) => enabled = event.result.is_ok(),
            Event::Stopped(stop) => return Err(cxi_data::Error::Stopped(stop.failure)),
            _ => {}
        }
    }
    // No two words of it are the same, so that bytes in another place are noticed.
    let bytes: Vec<u8> = (0_u32..).flat_map(u32::to_le_bytes).take(LEN).collect();
    outbox.write(0, &bytes)?;
    let to = Address::new(&info, &domain).portal(0);
    let put = Dma::put(outbox.whole(), to);
    transmit.post(&put.report(Report::event(&events, 1)))?;
    let completion = loop {
        match events.wait(PATIENCE)? {
            Event::Completion(completion) => break completion,
            Event::Stopped(stop) => return Err(cxi_data::Error::Stopped(stop.failure)),
            _ => {}
        }
    };
    completion.result.map_err(cxi_data::Error::Stopped)?;
    let mut arrived = vec![0; LEN];
    inbox.read(0, &mut arrived)?;
    Ok((usage, arrived == bytes))
}
