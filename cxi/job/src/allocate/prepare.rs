//! Preparation: facts that can be determined about a NIC before anything is made on it.

use super::error::{Cause, NicFailure};
use super::make::Made;
use crate::explain::{Explanation, Inquiry};
use crate::grant::GrantedService;
use crate::job_request::{JobLimits, JobRequest};
use crate::limits::{Cut, NicUsage, plan};
use crate::node::NodeNic;
use crate::owners::{Begun, Terms};
use crate::view::NicView;
use cxi::error::Error;
use cxi::{
    Device, DeviceId, Limit, Limits, LnisPerRgid, Resource, Service, ServiceId, ServiceSpec,
};
use cxi_site::proc::ProcFs;

/// One NIC, with the service to be made on it.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    pub(super) device: &'a Device,
    proc: &'a ProcFs,
    pub(super) spec: ServiceSpec,
    pub(super) asked: Option<Limits>,
    pub(super) cuts: Vec<Cut>,
    pub(super) lnis_per_rgid: Option<LnisPerRgid>,
    /// The services that were there before.
    pub(super) before: Vec<ServiceId>,
    /// The one of them that already is the job's.
    pub(super) adopt: Option<Adopt>,
}

/// An existing service that already is the job's.
#[derive(Debug)]
pub(super) struct Adopt {
    pub(super) made: Made,
    pub(super) enabled: bool,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(
        nic: &'a NodeNic,
        request: &JobRequest,
        nics: usize,
        proc: &'a ProcFs,
        own: &(dyn Fn(DeviceId, &Service) -> bool + Sync),
    ) -> Result<Self, NicFailure> {
        let Some(device) = nic.device() else {
            let problems = nic.problems().to_vec();
            return Err(NicFailure::new(nic.id(), Cause::Unusable(problems)));
        };
        let fail = |error: Error, spec: &ServiceSpec| refused(device, proc, spec, error);
        let view = NicView::read(device).map_err(|error| fail(error, &request.spec))?;
        let adopt = find_own(&view, request, &|service| own(nic.id(), service));
        let totals = device.totals().map_err(|error| fail(error, &request.spec))?;
        // An adopted service keeps its limits, whatever has happened on the NIC since.
        let planned = match &adopt {
            Some(_) => Ok((request.limits.asked(&view.usage), Vec::new())),
            None => limits(request, &view.usage),
        };
        let (limits, cuts) = planned.map_err(|error| {
            let explanations = Explanation::from_plan(&error, device);
            NicFailure::new(nic.id(), Cause::Plan(error)).explained(explanations)
        })?;
        let spec = request.spec.with_limits(limits);
        spec.fits(&totals).map_err(|error| fail(Error::invalid(error).on(nic.id()), &spec))?;
        let lnis_per_rgid = match request.rgids.on(device, nics) {
            // What is not free may be the job's own: it keeps what it has.
            Err(_) if adopt.is_some() => None,
            count => count.map_err(|error| NicFailure::new(nic.id(), Cause::Rgids(error)))?,
        };
        Ok(Self {
            device,
            proc,
            spec,
            lnis_per_rgid,
            asked: request.limits.asked(&view.usage),
            cuts,
            before: view.services.iter().map(Service::id).collect(),
            adopt,
        })
    }

    /// Returns what is about to be made; `None` if it is there.
    pub(super) fn begun(&self) -> Option<Begun> {
        let terms = Terms {
            traffic_classes: self.spec.traffic_classes(),
            limits: self.spec.limits().copied(),
        };
        let (device, before) = (self.device.id(), self.before.clone());
        self.adopt.is_none().then_some(Begun { device, before, terms })
    }

    pub(super) fn refused(&self, spec: &ServiceSpec, error: Error) -> NicFailure {
        refused(self.device, self.proc, spec, error)
    }

    pub(super) fn granted(&self, made: Made, request: &JobRequest) -> GrantedService {
        GrantedService {
            device: self.device.id(),
            service: made.service,
            vnis: self.spec.vnis(),
            traffic_classes: request.traffic_classes(),
            asked: self.asked,
            granted: made.limits.map(Limits::as_stored),
            cuts: made.cuts,
            lnis_per_rgid: self.lnis_per_rgid,
            adopted: self.adopt.is_some(),
        }
    }
}

/// A refusal by the driver, explained.
fn refused(device: &Device, proc: &ProcFs, spec: &ServiceSpec, error: Error) -> NicFailure {
    let explanation = Inquiry::new(&error).device(device).spec(spec).proc(proc.clone()).explain();
    NicFailure::new(device.id(), Cause::Service(error)).explained(vec![explanation])
}

/// The limits for which the NIC has room, and what was cut.
fn limits(
    request: &JobRequest,
    usage: &NicUsage,
) -> Result<(Option<Limits>, Vec<Cut>), crate::limits::PlanError> {
    match &request.limits {
        JobLimits::Unlimited => Ok((None, Vec::new())),
        JobLimits::Fixed(limits) => Ok((Some(*limits), Vec::new())),
        JobLimits::Planned { policy, size, mode } => {
            let plan = plan(policy, *size, usage, *mode)?;
            Ok((Some(plan.limits), plan.cuts))
        }
    }
}

/// Returns whether a service is for the users, VNIs and traffic classes specified, and limited if
/// that is: the limits themselves are not compared.
pub(super) fn matches_spec(service: &Service, spec: &ServiceSpec) -> bool {
    !service.is_system()
        && service.members().as_ref() == spec.members()
        && service.vnis() == spec.vnis()
        && service.traffic_classes() == spec.traffic_classes()
        && service.is_limited() == spec.limits().is_some()
}

/// Finds the service that an earlier run for the same job made.
fn find_own(
    view: &NicView,
    request: &JobRequest,
    may_be_own: &dyn Fn(&Service) -> bool,
) -> Option<Adopt> {
    if !request.adopt {
        return None;
    }
    let services = view.services.iter().filter(|service| may_be_own(service));
    let own = services.filter_map(|service| own(service, view, request));
    // A disabled one was abandoned before its last step.
    own.max_by_key(|adopt| adopt.enabled)
}

fn own(service: &Service, view: &NicView, request: &JobRequest) -> Option<Adopt> {
    let wanted = request.spec.with_limits(match request.limits {
        JobLimits::Unlimited => None,
        _ => Some(service.limits()),
    });
    if !matches_spec(service, &wanted) {
        return None;
    }
    let adopt = |limits, cuts| {
        Some(Adopt {
            made: Made { service: service.id(), limits, cuts },
            enabled: service.is_enabled(),
        })
    };
    let have = service.limits();
    match &request.limits {
        JobLimits::Unlimited => adopt(None, Vec::new()),
        JobLimits::Fixed(limits) if limits.as_stored() == have => adopt(Some(have), Vec::new()),
        JobLimits::Fixed(_) => None,
        JobLimits::Planned { policy, size, mode } => {
            // Plan as the earlier run did: without the service itself.
            let mut before = view.usage.clone();
            before.services.retain(|other| other.service != service.id());
            let plan = plan(policy, *size, &before, *mode).ok();
            if let Some(plan) = plan
                && plan.limits.as_stored() == have
            {
                return adopt(Some(have), plan.cuts);
            }
            scaled_back(request, &view.usage, have).then(|| adopt(Some(have), Vec::new()))?
        }
    }
}

/// Returns whether these limits may be what an earlier run scaled the requested ones back to, when
/// other services held other amounts.
fn scaled_back(request: &JobRequest, usage: &NicUsage, have: Limits) -> bool {
    let JobLimits::Planned { policy, mode, .. } = &request.limits else { return false };
    let Some(asked) = request.limits.asked(usage).map(Limits::as_stored) else { return false };
    have.iter().all(|(resource, have)| {
        let asked = asked[resource];
        let Some(floor) = mode.floor(policy, resource) else { return *have == asked };
        if resource == Resource::Tles {
            return *have == Limit::NONE || have.reserved() <= asked.reserved();
        }
        have.max() == asked.max()
            && have.reserved() <= asked.reserved()
            && u32::from(have.reserved()) >= floor.min(asked.reserved().into())
    })
}
